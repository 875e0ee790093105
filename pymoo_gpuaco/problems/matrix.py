"""Distance matrices as users give them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.frames import by_its_labels

__all__ = ["LEAST_WEIGHT", "MAX_WEIGHT", "NOISE", "blocks", "largest_finite", "prepare_matrix"]

_ENTRIES = 1 << 21  # looked at together

MAX_WEIGHT = 1e30
"""Largest entry of a distance matrix: a tour of such edges still fits a 32-bit float on the device."""

LEAST_WEIGHT = 1e-302
"""Least of the largest entries, unless all are 0: below, numbers lose their digits."""


NOISE = 1e-12
"""Of the largest entry: what floating-point arithmetic may have added to distances that are no whole numbers."""


def prepare_matrix(
    matrix: ArrayLike, what: str, forbidden: bool = False
) -> tuple[NDArray[np.float64], bool, bool]:
    """Return a checked (n, n) float64 copy of a distance matrix, and whether it is symmetric and integral.

    The copy's diagonal is 0. The columns of a DataFrame with labels of rows and columns come in the order of its rows.
    Entries of inf pass where edges may be ``forbidden``. Pairs that differ by no more than floating-point noise (1e-12
    of the largest entry, in a matrix that is not integral) are replaced by their mean.
    Raises TypeError or ValueError naming `what`.
    """
    raw = checks.unmasked(what, by_its_labels(matrix))
    if raw.dtype.kind not in "iuf":
        gaps = raw.dtype == object and any(cell is None for cell in raw.flat)
        hint = ": None is none, and inf says that there is no way" if gaps else ""
        raise TypeError(f"{what} must be an array of numbers, got dtype {raw.dtype}{hint}")
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        raise ValueError(f"{what} must be square, got shape {raw.shape}")
    if len(raw) < 3:
        raise ValueError(f"{what} must hold at least 3 cities, got {len(raw)}")
    full = np.array(raw, dtype=np.float64, order="C")
    np.fill_diagonal(full, 0.0)
    integral, symmetric, asymmetry, largest = True, True, 0.0, 0.0
    for rows in blocks(len(full)):  # a large matrix leaves no room for another one
        block, turned = full[rows], full[:, rows].T
        infinite = np.isinf(block)
        valid = (block >= 0.0) & (block <= MAX_WEIGHT)  # so that NaN fails too
        if forbidden:
            valid |= infinite & (block > 0.0)
        if not valid.all():
            row, column = np.argwhere(~valid)[0]
            raise ValueError(
                f"{what} must hold finite distances from 0 to {MAX_WEIGHT:g}"
                f"{', or inf for edges that no tour may use' if forbidden else ''}, got {block[row, column]:g} "
                f"from city {rows.start + row} to city {column}"
            )
        integral = integral and bool(np.all(block == np.floor(block)))
        if not np.array_equal(block, turned):
            symmetric = False
            both = infinite & np.isinf(turned)
            difference = np.abs(np.where(both, 0.0, block) - np.where(both, 0.0, turned))
            asymmetry = max(asymmetry, float(difference.max()))
        largest = max(largest, float(block[~infinite].max(initial=0.0)))
    if 0.0 < largest < LEAST_WEIGHT:
        raise ValueError(
            f"{what} must hold a distance of {LEAST_WEIGHT:g} or more, or nothing but 0: the largest is {largest:g}; "
            "take a larger unit"
        )
    if not symmetric and not integral and asymmetry <= NOISE * largest:
        full = 0.5 * (full + full.T)
        symmetric = True
    return full, symmetric, integral


def blocks(n: int) -> Iterator[slice]:
    """Rows of an (n, n) matrix, some at a time."""
    rows = max(1, _ENTRIES // n)
    for start in range(0, n, rows):
        yield slice(start, min(n, start + rows))


def largest_finite(matrix: NDArray[np.float64]) -> float:
    """Return the largest entry of a matrix (n, n) that is not infinite, 0 where there is none above it."""
    largest = 0.0
    for rows in blocks(len(matrix)):
        block = matrix[rows]
        largest = max(largest, float(np.where(np.isinf(block), 0.0, block).max()))
    return largest
