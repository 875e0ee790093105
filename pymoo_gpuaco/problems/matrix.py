"""Checks and magnitudes of distance matrices from users."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks

_ENTRIES = 1 << 21  # per block of rows

MAX_WEIGHT = 1e30
"""Largest entry of a distance matrix: a tour of such edges still fits a 32-bit float on the device."""

LEAST_WEIGHT = 1e-302
"""Minimum of the largest entry of a matrix, unless all are 0: below it, numbers lose digits."""

NOISE = 1e-12
"""Maximum floating-point noise of distances that are not whole numbers, relative to the largest entry."""


ALL_EXACT = 2.0**53
"""Doubles represent every whole number up to this one."""

# A marker of missing edges is at least _MARKER_FACTOR times as large as all distances. It occurs more than once, or it
# is a power of ten or two, or one less than that, and at least _LEAST_MARKER.
_MARKER_FACTOR, _LEAST_MARKER = 1000.0, 999_999_999.0
_POWERS_OF_TEN = {power for k in range(31) for power in (10**k, int(float(10**k)))}


def prepare_matrix(
    matrix: ArrayLike, what: str, forbidden: bool = False, symmetric: bool | None = None
) -> tuple[NDArray[np.float64], bool, bool]:
    """Return a checked (n, n) float64 copy of a distance matrix, and whether it is symmetric and integral.

    The copy's diagonal is 0. Entries of inf are accepted if edges may be ``forbidden``. Warns about a number that looks
    like a marker of missing edges. Pairs that differ by no more than floating-point noise (1e-12 of the largest entry
    except that marker, in a matrix that is not integral) are replaced by their mean. A matrix with only zeros on one
    side of the diagonal is mirrored if ``symmetric`` is True and unchanged if it is False; None raises an error.
    Raises TypeError or ValueError naming `what`.
    """
    full = _as_square(matrix, what)
    if symmetric is not False:
        _mirror_half(full, what, symmetric)
    integral, equal, largest = _check_entries(full, what, forbidden)
    times, second = int((full == largest).sum()), float(full.max(initial=0.0, where=full < largest))
    if forbidden and _is_for_missing(largest, times, second, equal):
        warnings.warn(
            f"{what} has the entry {largest:.10g} {times} times, and {second:.10g} is the next largest: use inf for "
            "missing edges",
            stacklevel=3,
        )
    if not equal and not integral and _is_noise(full, largest):
        levels = levels_of(full)
        equal = _is_noise(full, levels[0][1] if len(levels) > 1 else largest)
        full = 0.5 * (full + full.T) if equal else full
    if symmetric and not equal:
        i, j = np.argwhere(full != full.T)[0]
        raise ValueError(
            f"{what} is not symmetric: it is {full[i, j]:g} from city {i} to city {j}, and {full[j, i]:g} back"
        )
    return full, equal, integral


def _as_square(matrix: ArrayLike, what: str) -> NDArray[np.float64]:
    """Return a float64 copy (n, n) with diagonal 0. Raises TypeError or ValueError if it is none, or rounded."""
    raw = checks.unmasked(what, matrix)
    cells = raw
    if raw.dtype == object and all(type(cell) in (int, float) for cell in raw.flat):
        try:
            raw = raw.astype(np.float64)  # Python's whole numbers beyond 64 bits
        except OverflowError as error:
            raise ValueError(f"{what} must hold distances up to {MAX_WEIGHT:g}: {error}") from error
    if raw.dtype.kind not in "iuf":
        gaps = raw.dtype == object and any(cell is None for cell in raw.flat)
        hint = ": write inf for missing edges, not None" if gaps else ""
        raise TypeError(f"{what} must be an array of numbers, got dtype {raw.dtype}{hint}")
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        raise ValueError(f"{what} must be square, got shape {raw.shape}")
    if not len(raw):
        raise ValueError(f"{what} must hold at least 1 city, got 0")
    full = np.array(raw, dtype=np.float64, order="C")
    np.fill_diagonal(full, 0.0)
    if cells.dtype.kind in "iuO" or cells.dtype.itemsize > full.dtype.itemsize:  # longdouble
        refuse_rounded(what, full.ravel(), cells.ravel())
    return full


def _check_entries(full: NDArray[np.float64], what: str, forbidden: bool) -> tuple[bool, bool, float]:
    """Return whether entries are whole numbers, whether they are symmetric, and the largest finite one.

    Raises ValueError for entries out of range; inf is in range if edges may be ``forbidden``.
    """
    integral, equal, largest = True, True, 0.0
    for rows in blocks(len(full)):  # memory may not suffice for another matrix
        block, turned = full[rows], full[:, rows].T
        infinite = np.isinf(block)
        valid = (block >= 0.0) & (block <= MAX_WEIGHT)  # false for NaN
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
        equal = equal and np.array_equal(block, turned)
        largest = max(largest, float(block[~infinite].max(initial=0.0)))
    if 0.0 < largest < LEAST_WEIGHT:
        raise ValueError(
            f"{what} must hold a distance of {LEAST_WEIGHT:g} or more, or nothing but 0: the largest is {largest:g}; "
            "use a smaller unit"
        )
    return integral, equal, largest


def is_matrix(array: NDArray[Any], matrix: bool | None, metric: object) -> bool:
    """Return True if an array is a matrix and not coordinates: n > 3 rows and columns, unless the user says it.

    Raises ValueError for 3 x 3 and 2 x 2 numbers that may be either.
    """
    n = len(array) if array.ndim == 2 and array.shape[0] == array.shape[1] else 0
    if matrix is not None or metric is not None or not n:
        return bool(matrix)
    if n == 3 or (n == 2 and array[0, 0] == array[1, 1]):
        what, of = ("3 x 3", "three cities in space") if n == 3 else ("2 x 2", "two cities")
        raise ValueError(f"{what} numbers are {of} or a matrix: write TSP(coords) or TSP(matrix=..)")
    return n > 2


def levels_of(matrix: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Group the finite entries above 0 by magnitude; return the smallest and largest of each group, ascending.

    The smallest of a group is longer than any tour of lower groups. A single group is not searched: (inf, 0).
    """
    n = len(matrix)
    occupied = np.zeros(1 << 12, bool)
    for rows in blocks(n):
        # sign and exponent of a double: the power of two below each entry
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
    """Return True if pairs differ by no more than noise, relative to ``largest`` or to the shorter of the two."""
    for rows in blocks(len(matrix)):
        block, turned = matrix[rows], matrix[:, rows].T
        with np.errstate(invalid="ignore"):  # inf - inf: an edge that is forbidden in both directions
            alike = np.abs(block - turned) <= NOISE * np.maximum(np.minimum(block, turned), largest)
        if not (alike | (block == turned)).all():
            return False
    return True


def half_of(full: NDArray[np.float64]) -> str | None:
    """Return the half of a matrix (n, n) that holds all distances, "upper" or "lower", or None if both do.

    The other half has only zeros. At most half of the entries of the half itself are zeros (coincident cities).
    """
    n = len(full)
    lower = sum(np.count_nonzero(row[:i]) for i, row in enumerate(full))
    upper = sum(np.count_nonzero(row[i + 1 :]) for i, row in enumerate(full))
    if n < 2 or (lower and upper) or 4 * (lower + upper) < n * (n - 1):
        return None
    return "upper" if upper else "lower"


def _mirror_half(full: NDArray[np.float64], what: str, symmetric: bool | None) -> None:
    """Mirror a half matrix in place. Raises ValueError if ``symmetric`` is None."""
    half = half_of(full)
    if half is None or np.isinf(full).any():  # a directed graph, not a half
        return
    if symmetric is None:
        raise ValueError(
            f"{what} has distances only in its {half} half and zeros in the other: symmetric=True (--symmetric yes) "
            "mirrors them, symmetric=False (--symmetric no) takes the zeros as distances"
        )
    full += full.T


def blocks(n: int) -> Iterator[slice]:
    """Yield slices of the rows of an (n, n) matrix, each of bounded size."""
    rows = max(1, _ENTRIES // n)
    for start in range(0, n, rows):
        yield slice(start, min(n, start + rows))


def largest_finite(matrix: NDArray[np.float64]) -> float:
    """Return the largest finite entry of a matrix (n, n), 0 if there is none."""
    return float(matrix.max(initial=0.0, where=np.isfinite(matrix)))


def _is_for_missing(
    value: float, times: int, second: float, symmetric: bool, written: int | None = None
) -> bool:
    """Return True if the largest entry of a matrix looks like a marker of missing edges.

    times : how often it occurs. second : the next largest entry. written : the whole number that it was read from.
    """
    if not value >= _MARKER_FACTOR * second:
        return False
    if second > 0.0 and times > (2 if symmetric else 1):
        return True
    whole = int(value) if written is None else written
    is_round = any(n.bit_count() == 1 or n in _POWERS_OF_TEN for n in (whole, whole + 1))
    return value >= _LEAST_MARKER and is_round


def refuse_rounded(what: str, numbers: NDArray[np.float64], cells: Sequence[Any] | NDArray[Any]) -> None:
    """Raise ValueError if one of ``numbers`` (m,) from 2**53 on has other digits than its cell.

    The largest number may be rounded if it looks like a marker of missing edges.
    """
    finite = np.isfinite(numbers)
    large = np.flatnonzero(finite & (np.abs(numbers) >= ALL_EXACT))
    rounded = [at for at in large.tolist() if _is_rounded(numbers[at], cells[at])]
    if not rounded:
        return
    value, written = float(numbers[finite].max()), int(Decimal(str(cells[rounded[0]])))
    others = numbers[finite & (numbers < value)]
    times, second = int((numbers == value).sum()), float(others.max(initial=0.0))
    missing = _is_for_missing(value, times, second, True, written)
    for at in rounded:
        if not missing or numbers[at] != value or int(Decimal(str(cells[at]))) != written:
            raise ValueError(
                f"{what} must hold whole numbers that a double represents exactly (up to 2**53), got {cells[at]!s}: "
                "subtract a constant from all, or use a larger unit"
            )


def _is_rounded(number: float, cell: Any) -> bool:
    """Return True if a number has other digits than its cell, to the precision in which the cell is written."""
    try:
        written = Decimal(str(cell))
    except InvalidOperation:  # a fraction
        return False
    return written != Decimal(f"{number:.{len(written.as_tuple().digits) - 1}e}")
