"""A search for a front as plain arrays, which any device can go on from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.seen import Seen
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours

_MOST = 2**62


def archive_state(archive: Archive) -> State:
    """Copies of all that an archive depends on."""
    m = archive.count
    return {
        "archive_tours": archive.tours[:m].copy(),
        "archive_lengths": archive.lengths[:m].copy(),
        "archive_looked": archive.looked[:m].copy(),
        "archive_kept": archive.kept().astype(np.uint8),
        "archive_met": archive.seen.slots.copy(),
        "archive_numbers": np.array([archive.added, archive.dropped]),
    }


def restored_archive(state: State, archive: Archive, most_looked: int) -> Archive:
    """An archive like ``archive``, which is empty, of an exported state. Raises ValueError for arrays of another."""
    m = _rows(state, "archive_tours")
    tours = stored_tours(state, "archive_tours", m, archive.n)
    if not tours.any(axis=1).all():
        raise ValueError("state['archive_tours'] must not have a row of zeros")
    lengths = stored_numbers(state, "archive_lengths", (m, archive.k))
    looked = stored_integers(state, "archive_looked", (m,), 0, most_looked, np.int16)
    kept = stored_integers(state, "archive_kept", (m,), 0, 1, np.uint8).astype(bool)
    slots = np.array(state.get("archive_met", np.empty(0)))
    if slots.dtype != np.uint64 or slots.ndim != 1 or len(slots) < 2 or len(slots) & (len(slots) - 1):
        raise ValueError(
            f"state['archive_met'] must be a power of two of uint64, got {slots.dtype} {slots.shape}"
        )
    if np.count_nonzero(slots) * 2 > len(slots):
        raise ValueError("state['archive_met'] must be half empty")
    numbers = stored_integers(state, "archive_numbers", (2,), 0, _MOST, np.int64)
    archive.restore(tours, lengths, looked, kept, Seen(archive.seen.unit, slots))
    archive.added, archive.dropped = map(int, numbers)
    return archive


def keys_state(names: list[bytes]) -> NDArray[np.float64]:
    """Byte strings of float64 as rows."""
    return np.array([np.frombuffer(name) for name in names]).reshape(len(names), -1 if names else 0)


def stored_keys(state: State, name: str, width: int) -> list[bytes]:
    """What `keys_state` has made rows of."""
    m = _rows(state, name)
    return [row.tobytes() for row in stored_numbers(state, name, (m, width if m else 0))]


def stored_sums(state: State, k: int, by_directions: bool) -> list[bytes]:
    """Weighted sums of k objectives that were solved: directions, or pairs of corners of the front."""
    width, other = (k, 2 * k) if by_directions else (2 * k, k)
    if np.shape(state.get("front_sums", ()))[1:] == (other,):
        raise ValueError(
            f"ref_dirs must {'not ' * by_directions}be given, as in the run that the state is of: it has solved "
            f"{'weighted sums that it found itself' if by_directions else 'those of its ref_dirs'}"
        )
    return stored_keys(state, "front_sums", width)


def stored_candidates(state: State, n: int) -> NDArray[np.int32]:
    """Candidate lists (n, ..)."""
    shape = np.shape(state.get("front_candidates", np.empty(0)))
    width = shape[1] if len(shape) == 2 else 1
    return stored_integers(state, "front_candidates", (n, width), 0, n - 1)


def _rows(state: State, name: str) -> int:
    shape = np.shape(state.get(name, np.empty(0)))
    if len(shape) != 2:
        raise ValueError(f"state['{name}'] must have rows, got shape {shape}")
    return checks.integer("rows", shape[0], 0)
