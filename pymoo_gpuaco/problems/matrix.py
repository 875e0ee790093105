"""Distance matrices as users give them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks

_ENTRIES = 1 << 21  # looked at together

MAX_WEIGHT = 1e30
"""Largest entry of a distance matrix: a tour of such edges still fits a 32-bit float on the device."""

LEAST_WEIGHT = 1e-302
"""Least of the largest entries, unless all are 0: below, numbers lose their digits."""

NOISE = 1e-12
"""Of the largest entry: what floating-point arithmetic may have added to distances that are no whole numbers."""


ALL_EXACT = 2.0**53
"""Doubles hold every whole number up to this one."""

# A number for missing edges is _STANDS_OUT times as large as all distances. It occurs more than once, or is one of the
# numbers that people write for "no road": powers of ten and two from here on, and those less one.
_STANDS_OUT, _LEAST_ROUND = 1000.0, 999_999_999.0


def prepare_matrix(
    matrix: ArrayLike, what: str, forbidden: bool = False, symmetric: bool | None = None
) -> tuple[NDArray[np.float64], bool, bool]:
    """Return a checked (n, n) float64 copy of a distance matrix, and whether it is symmetric and integral.

    The copy's diagonal is 0. Entries of inf pass where edges may be ``forbidden``, and a number that looks like one for
    missing edges is warned of. Pairs that differ by no more than floating-point noise (1e-12 of the largest entry but
    that number, in a matrix that is not integral) are replaced by their mean. A matrix with nothing but zeros on one
    side of the diagonal is mirrored where it is said to be ``symmetric``, and taken as it is for False.
    Raises TypeError or ValueError naming `what`.
    """
    raw = checks.unmasked(what, matrix)
    cells = raw
    if raw.dtype == object and all(type(cell) in (int, float) for cell in raw.flat):
        try:
            raw = raw.astype(np.float64)  # Python's whole numbers beyond 64 bits
        except OverflowError as error:
            raise ValueError(f"{what} must hold distances up to {MAX_WEIGHT:g}: {error}") from error
    if raw.dtype.kind not in "iuf":
        gaps = raw.dtype == object and any(cell is None for cell in raw.flat)
        hint = ": None is none, and inf says that there is no way" if gaps else ""
        raise TypeError(f"{what} must be an array of numbers, got dtype {raw.dtype}{hint}")
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        raise ValueError(f"{what} must be square, got shape {raw.shape}")
    if len(raw) < 2:
        raise ValueError(f"{what} must hold at least 2 cities, got {len(raw)}")
    full = np.array(raw, dtype=np.float64, order="C")
    np.fill_diagonal(full, 0.0)
    if cells.dtype.kind in "iuO":
        refuse_rounded(what, full.ravel(), cells.ravel())
    if symmetric is not False:
        _mirror_half(full, what, symmetric)
    integral, equal, asymmetry, largest = True, True, 0.0, 0.0
    for rows in blocks(len(full)):  # memory may not suffice for another matrix
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
            equal = False
            both = infinite & np.isinf(turned)
            difference = np.abs(np.where(both, 0.0, block) - np.where(both, 0.0, turned))
            asymmetry = max(asymmetry, float(difference.max()))
        largest = max(largest, float(block[~infinite].max(initial=0.0)))
    if 0.0 < largest < LEAST_WEIGHT:
        raise ValueError(
            f"{what} must hold a distance of {LEAST_WEIGHT:g} or more, or nothing but 0: the largest is {largest:g}; "
            "use a smaller unit"
        )
    times, second = int((full == largest).sum()), float(full.max(initial=0.0, where=full < largest))
    if forbidden and _is_for_missing(largest, times, second, equal):
        warnings.warn(
            f"{what} has the entry {largest:.10g} {times} times, and {second:.10g} is the next largest: use inf for "
            "missing edges",
            stacklevel=3,
        )
    if not equal and not integral and asymmetry <= NOISE * largest:
        levels = levels_of(full)
        equal = _is_noise(full, levels[0][1] if len(levels) > 1 else largest)
        full = 0.5 * (full + full.T) if equal else full
    if symmetric and not equal:
        i, j = np.argwhere(full != full.T)[0]
        raise ValueError(
            f"{what} is not symmetric: it is {full[i, j]:g} from city {i} to city {j}, and {full[j, i]:g} back"
        )
    return full, equal, integral


def levels_of(matrix: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Return the least and the largest of the finite entries above 0, for each group of them, the shortest first.

    The least of a group is longer than any tour of entries below. Of a single group they are not looked for: (inf, 0).
    """
    n = len(matrix)
    occupied = np.zeros(1 << 12, bool)
    for rows in blocks(n):
        # sign and exponent of a double: whole powers of two that entries lie between
        occupied[(matrix[rows].view(np.uint64) >> np.uint64(52)).ravel()] = True
    octaves = np.flatnonzero(occupied[1:-1]) + 1
    octaves = octaves[octaves < 0x7FF]  # inf
    wide = np.diff(octaves) + 1 > math.log2(2.0 * n)
    bounds = [0.0, *(math.ldexp(1.0, int(octave) - 1023) for octave in octaves[1:][wide]), math.inf]
    levels: list[tuple[float, float]] = []
    for begin, end in pairwise(bounds):
        inside = (matrix >= begin) & (matrix < end) & (matrix > 0.0) if len(bounds) > 2 else False
        low = float(matrix.min(initial=math.inf, where=inside))
        high = float(matrix.max(initial=0.0, where=inside))
        if levels and low <= 2.0 * n * levels[-1][1]:
            low, _ = levels.pop()
        levels.append((low, high))
    return levels


def _is_noise(matrix: NDArray[np.float64], largest: float) -> bool:
    """Return whether pairs differ by no more than noise of the ``largest`` distance or of their own, if longer."""
    for rows in blocks(len(matrix)):
        block, turned = matrix[rows], matrix[:, rows].T
        with np.errstate(invalid="ignore"):  # inf - inf: an edge that is forbidden both ways
            off = np.abs(block - turned) > NOISE * np.maximum(np.maximum(block, turned), largest)
        if off.any():
            return False
    return True


def half_of(full: NDArray[np.float64]) -> str | None:
    """Return which half of a matrix (n, n) holds all its distances, "upper" or "lower", or None where both do.

    The other half is zeros, and so is no more than half of the half itself, as of cities at one place.
    """
    n = len(full)
    lower = sum(np.count_nonzero(row[:i]) for i, row in enumerate(full))
    upper = sum(np.count_nonzero(row[i + 1 :]) for i, row in enumerate(full))
    if (lower and upper) or 4 * (lower + upper) < n * (n - 1):
        return None
    return "upper" if upper else "lower"


def _mirror_half(full: NDArray[np.float64], what: str, symmetric: bool | None) -> None:
    """Mirror a half matrix in place. Raises ValueError where it may also be meant as it is."""
    half = half_of(full)
    if half is None or np.isinf(full).any():  # a directed graph is no half
        return
    if symmetric is None:
        raise ValueError(
            f"{what} has distances in its {half} half alone and zeros in the other: symmetric=True (--symmetric yes) "
            "mirrors them, symmetric=False (--symmetric no) takes the zeros as distances"
        )
    full += full.T


def blocks(n: int) -> Iterator[slice]:
    """Rows of an (n, n) matrix, some at a time."""
    rows = max(1, _ENTRIES // n)
    for start in range(0, n, rows):
        yield slice(start, min(n, start + rows))


def largest_finite(matrix: NDArray[np.float64]) -> float:
    """Return the largest entry of a matrix (n, n) that is not infinite, 0 where there is none above it."""
    return float(matrix.max(initial=0.0, where=np.isfinite(matrix)))


def _is_for_missing(
    value: float, times: int, second: float, symmetric: bool, written: int | None = None
) -> bool:
    """Return whether the largest entry of a matrix looks like a number for missing edges.

    times : how often it occurs. second : the next largest entry. written : the whole number that it was read from.
    """
    if not value >= _STANDS_OUT * second:
        return False
    if second > 0.0 and times > (2 if symmetric else 1):
        return True
    if written is not None:  # a power of ten or two, or one less
        is_round = any(n.bit_count() == 1 or str(n).strip("0") == "1" for n in (written, written + 1))
    else:
        near = np.array([value, value + 1.0])
        is_round = bool(((np.frexp(near)[0] == 0.5) | np.isin(near, 10.0 ** np.arange(31))).any())
    return value >= _LEAST_ROUND and is_round


def refuse_rounded(what: str, numbers: NDArray[np.float64], cells: Sequence[Any] | NDArray[Any]) -> None:
    """Raise ValueError where one of ``numbers`` (m,) is not the whole number that its cell holds, an int or its text.

    The largest number may be rounded if it looks like one for missing edges. Cells of other kinds are passed over.
    """
    finite = np.isfinite(numbers)
    large = np.flatnonzero(finite & (np.abs(numbers) >= ALL_EXACT))
    rounded = [at for at in large.tolist() if _is_rounded(numbers[at], cells[at])]
    if not rounded:
        return
    value, written = float(numbers[finite].max()), int(cells[rounded[0]])
    others = numbers[finite & (numbers < value)]
    times, second = int((numbers == value).sum()), float(others.max(initial=0.0))
    missing = _is_for_missing(value, times, second, True, written)
    for at in rounded:
        if not missing or numbers[at] != value or int(cells[at]) != written:
            raise ValueError(
                f"{what} must hold whole numbers that a double holds exactly, as up to 2**53, got {cells[at]}: "
                "subtract a constant from all, or take a larger unit"
            )


def _is_rounded(number: float, cell: Any) -> bool:
    if isinstance(cell, str):
        try:
            cell = int(cell)
        except ValueError:  # written as a decimal
            return False
    return isinstance(cell, (int, np.integer)) and int(cell) != int(number)
