"""The nearest cities of each city along the rows of a matrix, and along its columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined


class Nearest(NamedTuple):
    """The k nearest of some places, the nearest first; ties go to the lowest place."""

    places: NDArray[np.int32]  # (m, k)
    lengths: NDArray[np.float64]  # (m, k)


def nearest_by_matrix(
    matrix: NDArray[np.float64], k: int, cities: NDArray[np.int32] | None = None
) -> Nearest:
    """Return k neighbours of each city in a matrix (n, n), row = from; never the city itself.

    cities : (m,), k < m: search among these only, by their places in this list; None: all cities.
    """
    m = len(matrix) if cities is None else len(cities)
    found = _none_yet(m, k)
    for place in range(m):
        row = matrix[place].copy() if cities is None else matrix[cities[place], cities]
        row[place] = np.inf
        # All that tie with the k-th, so that the stable sort can prefer the lowest ids.
        candidates = np.flatnonzero(row <= np.partition(row, k - 1)[k - 1])
        candidates = candidates[candidates != place]  # needed if others are infinitely far as well
        chosen = candidates[np.argsort(row[candidates], kind="stable")[:k]]
        found.places[place], found.lengths[place] = chosen, row[chosen]
    return found


def nearest_both_ways(
    matrix: NDArray[np.float64],
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    own: NDArray[np.int32],
    k: int,
    to_leave: NDArray[np.float64],
    to_enter: NDArray[np.float64],
) -> tuple[Nearest, Nearest]:
    """Return for each of ``rows`` (r,) the places of the k nearest of ``columns`` (c,), and vice versa.

    own : (r,) place of the forbidden column of each row, each at most once; k < r and k < c.
    to_leave, to_enter : (r,), (c,) usual costs. A row compares lengths minus the usual cost to enter their columns, a
        column lengths minus the usual cost to leave their rows.
    """
    of_rows, of_columns = _none_yet(len(rows), k), _none_yet(len(columns), k)
    _search_both(matrix, rows, columns, own, to_leave, to_enter, *of_rows, *of_columns)
    return of_rows, of_columns


def _none_yet(m: int, k: int) -> Nearest:
    return Nearest(np.full((m, k), -1, np.int32), np.full((m, k), np.inf))


@inlined
def _before(places, lengths, at, s, t):  # type: ignore[no-untyped-def]
    """Return True if entry s of row ``at`` comes before entry t, by (length, place); empty entries come last."""
    if lengths[at, s] != lengths[at, t]:
        return lengths[at, s] < lengths[at, t]
    return places[at, s] >= 0 and (places[at, t] < 0 or places[at, s] < places[at, t])


@compiled_callee
def _sink(places, lengths, at, size):  # type: ignore[no-untyped-def]
    """Sink the first of ``size`` entries of row ``at`` to its place in a max-heap."""
    p = 0
    while 2 * p + 1 < size:
        q = 2 * p + 1
        if q + 1 < size and _before(places, lengths, at, q, q + 1):
            q += 1
        if not _before(places, lengths, at, p, q):
            break
        place, length = places[at, p], lengths[at, p]
        places[at, p], lengths[at, p] = places[at, q], lengths[at, q]
        places[at, q], lengths[at, q] = place, length
        p = q


@compiled_callee
def _sort(places, lengths, at):  # type: ignore[no-untyped-def]
    """Sort the heap of row ``at``."""
    for size in range(places.shape[1] - 1, 0, -1):
        place, length = places[at, 0], lengths[at, 0]
        places[at, 0], lengths[at, 0] = places[at, size], lengths[at, size]
        places[at, size], lengths[at, size] = place, length
        _sink(places, lengths, at, size)


@compiled
def _search_both(  # type: ignore[no-untyped-def]
    matrix, rows, columns, own, to_leave, to_enter, columns_of, from_row, rows_of, from_column
):
    """Find the nearest columns of all rows and the nearest rows of all columns."""
    k = columns_of.shape[1]
    for a in range(rows.shape[0]):
        for b in range(columns.shape[0]):
            length = matrix[rows[a], columns[b]]
            less = length - to_enter[b]
            if (less < from_row[a, 0] or columns_of[a, 0] < 0) and b != own[a]:
                columns_of[a, 0], from_row[a, 0] = b, less
                _sink(columns_of, from_row, a, k)
            less = length - to_leave[a]
            if (less < from_column[b, 0] or rows_of[b, 0] < 0) and b != own[a]:
                rows_of[b, 0], from_column[b, 0] = a, less
                _sink(rows_of, from_column, b, k)
        _sort(columns_of, from_row, a)
    for b in range(columns.shape[0]):
        _sort(rows_of, from_column, b)
