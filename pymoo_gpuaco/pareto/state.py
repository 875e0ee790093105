"""State of a Pareto search as plain arrays, from which any device can continue."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.seen import Seen
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours

_MOST = 2**62


def archive_state(archive: Archive) -> State:
    """Return copies of all arrays of an archive."""
    m = archive.count
    return {
        "archive_tours": archive.tours[:m].copy(),
        "archive_lengths": archive.lengths[:m].copy(),
        "archive_explored": archive.explored[:m].copy(),
        "archive_present": archive.present().astype(np.uint8),
        "archive_seen": archive.seen.slots.copy(),
        "archive_numbers": np.array([archive.added, archive.dropped]),
    }


def restored_archive(state: State, archive: Archive, most_looked: int) -> Archive:
    """Fill the empty ``archive`` from an exported state. Raises ValueError for arrays of another problem."""
    m = _rows(state, "archive_tours")
    tours = stored_tours(state, "archive_tours", m, archive.n)
    if not tours.any(axis=1).all():
        raise ValueError("state['archive_tours'] must not have a row of zeros")
    lengths = stored_numbers(state, "archive_lengths", (m, archive.k))
    explored = stored_integers(state, "archive_explored", (m,), 0, most_looked, np.int16)
    present = stored_integers(state, "archive_present", (m,), 0, 1, np.uint8).astype(bool)
    slots = np.array(state.get("archive_seen", np.empty(0)))
    if slots.dtype != np.uint64 or slots.ndim != 1 or len(slots) < 2 or len(slots) & (len(slots) - 1):
        raise ValueError(
            f"state['archive_seen'] must be a power of two of uint64, got {slots.dtype} {slots.shape}"
        )
    if np.count_nonzero(slots) * 2 > len(slots):
        raise ValueError("state['archive_met'] must be at least half empty")
    numbers = stored_integers(state, "archive_numbers", (2,), 0, _MOST, np.int64)
    archive.restore(tours, lengths, explored, present, Seen(archive.seen.unit, slots))
    archive.added, archive.dropped = map(int, numbers)
    return archive


def keys_state(names: list[bytes]) -> NDArray[np.float64]:
    """Return byte strings of float64 as rows."""
    return np.array([np.frombuffer(name) for name in names]).reshape(len(names), -1 if names else 0)


def stored_keys(state: State, name: str, width: int) -> list[bytes]:
    """Return the byte strings of rows from `keys_state`."""
    m = _rows(state, name)
    return [row.tobytes() for row in stored_numbers(state, name, (m, width if m else 0))]


def stored_sums(state: State, k: int, by_directions: bool) -> list[bytes]:
    """Return the keys of solved weighted sums of k objectives: directions, or pairs of corners of the front."""
    width, other = (k, 2 * k) if by_directions else (2 * k, k)
    if np.shape(state.get("front_sums", ()))[1:] == (other,):
        raise ValueError(
            f"ref_dirs must {'not ' * by_directions}be given, as in the run that the state is of: it has solved "
            f"{'weighted sums that it found itself' if by_directions else 'those of its ref_dirs'}"
        )
    return stored_keys(state, "front_sums", width)


def stored_candidates(state: State, n: int) -> NDArray[np.int32]:
    """Return candidate lists (n, ..)."""
    shape = np.shape(state.get("front_candidates", np.empty(0)))
    width = shape[1] if len(shape) == 2 else 1
    return stored_integers(state, "front_candidates", (n, width), 0, n - 1)


def _rows(state: State, name: str) -> int:
    shape = np.shape(state.get(name, np.empty(0)))
    if len(shape) != 2:
        raise ValueError(f"state['{name}'] must have rows, got shape {shape}")
    return checks.integer("rows", shape[0], 0)
