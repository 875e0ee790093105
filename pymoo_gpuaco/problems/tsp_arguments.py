"""Checks of what a `TSP` is given beside its distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_best_known", "check_names", "check_positions"]


def check_names(names: Sequence[Any], n: int) -> NDArray[np.object_]:
    """Return (n,) names as an array."""
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise TypeError(f"names must be a sequence of {n} names, got {names!r}"[:120])
    if len(names) != n:
        raise ValueError(f"names must be {n}, one a city, got {len(names)}")
    array = np.empty(n, dtype=object)
    for city, name in enumerate(names):  # one by one: names may be tuples
        array[city] = name
    return array


def check_positions(positions: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return (n, 2) positions to draw at."""
    try:
        array = np.array(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"positions must be an array of numbers: {error}") from error
    if array.shape != (n, 2) or not np.isfinite(array).all():
        raise ValueError(f"positions must be finite and of shape ({n}, 2), got shape {array.shape}")
    return array


def check_best_known(best_known: float | None) -> float | None:
    """Return the best known length, or None."""
    if best_known is None:
        return None
    try:
        value = float(best_known)
    except (TypeError, ValueError) as error:
        raise TypeError(f"best_known must be a number or None, got {best_known!r}") from error
    if not 0.0 <= value < np.inf:
        raise ValueError(f"best_known must be finite and >= 0, got {best_known!r}")
    return value
