"""Distance matrices as users give them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["MAX_WEIGHT", "prepare_matrix"]

MAX_WEIGHT = 1e30
"""Largest entry of a distance matrix: a tour of such edges still fits a 32-bit float on the device."""


def prepare_matrix(
    matrix: ArrayLike, what: str, forbidden: bool = False
) -> tuple[NDArray[np.float64], bool, bool]:
    """Return a checked (n, n) float64 copy of a distance matrix, and whether it is symmetric and integral.

    The copy's diagonal is 0. Entries of inf pass where edges may be ``forbidden``. Pairs that differ by no more than
    floating-point noise (1e-12 of the largest entry, in a matrix that is not integral) are replaced by their mean.
    Raises TypeError or ValueError naming `what`.
    """
    raw = np.asarray(matrix)
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{what} must be an array of numbers, got dtype {raw.dtype}")
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        raise ValueError(f"{what} must be square, got shape {raw.shape}")
    if len(raw) < 3:
        raise ValueError(f"{what} must hold at least 3 cities, got {len(raw)}")
    full = np.array(raw, dtype=np.float64, order="C")
    np.fill_diagonal(full, 0.0)
    # Written so that NaN fails too.
    valid = (full >= 0.0) & (full <= MAX_WEIGHT)
    infinite = np.isinf(full)
    if forbidden:
        valid |= infinite & (full > 0.0)
    if not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(
            f"{what} must hold finite distances from 0 to {MAX_WEIGHT:g}"
            f"{', or inf for edges that no tour may use' if forbidden else ''}, got {full[row, column]:g} "
            f"from city {row} to city {column}"
        )
    integral = bool(np.all(full == np.floor(full)))
    symmetric = bool(np.array_equal(full, full.T))
    if not symmetric and not integral and np.array_equal(infinite, infinite.T):
        finite = np.where(infinite, 0.0, full)
        if np.abs(finite - finite.T).max() <= 1e-12 * finite.max():
            full = 0.5 * (full + full.T)
            symmetric = True
    return full, symmetric, integral
