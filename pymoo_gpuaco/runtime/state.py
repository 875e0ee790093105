"""Validation of exported states.

A state may come from a file or from another program, and compiled code does not check indices: a wrong city would read
memory outside its arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks

State = dict[str, NDArray]  # arrays by name; engines of both kinds can import it
SMALLEST = float(np.finfo(np.float64).tiny)  # of numbers by which others are divided


def stored(state: State, name: str, shape: tuple[int, ...]) -> NDArray:
    """Return an array of a state. Raises ValueError if it is missing, of another shape or not numeric."""
    if name not in state:
        raise ValueError(f"state has no array {name!r}; it has {', '.join(sorted(state)) or 'none'}")
    array = np.asarray(state[name])
    if array.shape != shape:
        raise ValueError(
            f"state['{name}'] must have shape {shape}, got {array.shape}: "
            "it belongs to another instance, number of ants or climbers, or memory"
        )
    if array.dtype.kind not in "iuf":
        raise ValueError(f"state['{name}'] must hold numbers, got dtype {array.dtype}")
    return array


def stored_numbers(
    state: State,
    name: str,
    shape: tuple[int, ...],
    kind: type = np.float64,
    *,
    low: float = 0.0,
    infinity: bool = False,
) -> NDArray:
    """Return finite numbers >= ``low`` as type ``kind``, contiguous; ``infinity`` also allows +inf, for "none yet"."""
    array: NDArray = np.ascontiguousarray(stored(state, name, shape), kind)
    return checks.finite(f"state['{name}']", array, low, infinity=infinity)


def stored_integers(
    state: State, name: str, shape: tuple[int, ...], low: int, high: int, kind: type = np.int32
) -> NDArray:
    """Return integers between ``low`` and ``high``, both included, as type ``kind``, contiguous."""
    array = checks.integers_in(f"state['{name}']", stored(state, name, shape), low, high)
    return np.ascontiguousarray(array, kind)


def stored_tours(state: State, name: str, m: int, n: int, none: ArrayLike = False) -> NDArray[np.int32]:
    """Return tours (m, n), contiguous; where ``none`` (m,) is True, a row of zeros stands for "none yet"."""
    tours = stored(state, name, (m, n))
    checks.permutations(f"state['{name}']", tours[tours.any(axis=1) | ~np.asarray(none)], n)
    return np.ascontiguousarray(tours, np.int32)
