"""The nearest cities of each city, by coordinates or along the rows and columns of a matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.candidates.listed import Candidates
from pymoo_gpuaco.candidates.points import at_one_point, with_equal_rows
from pymoo_gpuaco.candidates.quadrant import has_quadrants, quadrant_lists
from pymoo_gpuaco.problems.metrics import Metric, distances
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    compiled,
    compiled_callee,
    inlined,
)
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

# Cities queried beyond k + 1: of cities at equal rounded distance the lower id then wins, except in crowded cases, and
# the query includes neighbours that the rounding of the tree puts in another order.
_SPARE = 8
_SPREAD_FROM = 200  # rows of a matrix: fewer take less time than waking threads
# Entries per query: bounds the temporaries to some tens of megabytes.
_BLOCK_ENTRIES = 1 << 19


def chained_nearest(
    metric: int, coords: NDArray[np.float64], k: int, per_quadrant: int | None = 0
) -> Candidates:
    """Return ids and distances (n, k) of the nearest by coordinates, cities at one point chained.

    Each row is sorted by (distance, id). In a plane some are taken by quadrant, see `quadrant_lists`.
    """
    if has_quadrants(metric, coords):
        return quadrant_lists(metric, coords, k, per_quadrant)
    copies = at_one_point(coords)
    if not copies.any:
        return nearest_by_coordinates(metric, coords, k)
    return copies.lists(
        k,
        lambda cities, most: nearest_by_coordinates(metric, coords[cities], most)[0],
        lambda ids: distances(metric, coords, np.arange(len(coords))[:, None], ids),
    )


def chained_nearest_by_matrix(matrix: NDArray[np.float64], k: int) -> Candidates:
    """Return the same by a matrix (n, n), row = from."""
    found = nearest_by_matrix(matrix, k)
    copies = with_equal_rows(matrix, np.flatnonzero(found.distances[:, :1] == 0.0))
    if not copies.any:
        return found
    return copies.lists(
        k,
        lambda cities, most: nearest_by_matrix(matrix, most, cities).ids,
        lambda ids: np.take_along_axis(matrix, ids.astype(np.int64), axis=1),
    )


def nearest_by_coordinates(metric: int, coords: NDArray[np.float64], k: int) -> Candidates:
    """Return (n, k) neighbour ids and distances in space or on the globe, through a k-d tree, in O(n k) memory."""
    points, norm = _straight(metric, coords)
    n, tree = len(coords), cKDTree(points)
    asked = min(n, k + 1 + _SPARE)
    lists = Candidates(np.empty((n, k), np.int32), np.empty((n, k)))
    rows = max(1, _BLOCK_ENTRIES // asked)
    for start in range(0, n, rows):
        city = np.arange(start, min(n, start + rows))[:, None]
        found = tree.query(points[city[:, 0]], k=asked, p=norm)[1]
        length = distances(metric, coords, city, found)
        # The city itself goes last. If many cities share its point, it may not be among those found.
        length[found == city] = np.inf
        nearest = Candidates(found, length).in_order(k)
        lists.ids[start : start + rows], lists.distances[start : start + rows] = nearest
    return lists


def _straight(metric: int, coords: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return points and the Minkowski norm that order pairs of cities as the metric does."""
    if metric == Metric.GEO:  # straight-line distance on the unit sphere grows with the distance along it
        lat, lon = coords[:, 0], coords[:, 1]
        return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]), 2.0
    points = coords if coords[:, 2].any() else coords[:, :2]
    return points, {int(Metric.MAN): 1.0, int(Metric.MAX): np.inf}.get(metric, 2.0)


def nearest_by_matrix(
    matrix: NDArray[np.float64], k: int, cities: NDArray[np.int32] | None = None
) -> Candidates:
    """Return k neighbours of each city in a matrix (n, n), row = from; never the city itself.

    cities : (m,), k < m: search among these only, by their places in this list; None: all cities.
    """
    cities = np.arange(len(matrix), dtype=np.int32) if cities is None else cities
    found = _empty_lists(len(cities), k)

    def work(_: int, first: int, last: int) -> None:
        _search_rows(matrix, cities, first, last, *found)

    parallel_for(work, len(cities), thread_count() if len(cities) >= _SPREAD_FROM else 1)
    return found


def nearest_both_ways(
    matrix: NDArray[np.float64],
    rows: NDArray[np.int32],
    columns: NDArray[np.int32],
    own: NDArray[np.int32],
    k: int,
    to_leave: NDArray[np.float64],
    to_enter: NDArray[np.float64],
) -> tuple[Candidates, Candidates]:
    """Return for each of ``rows`` (r,) the places of the k nearest of ``columns`` (c,), and vice versa.

    own : (r,) place of the forbidden column of each row, each at most once; k < r and k < c.
    to_leave, to_enter : (r,), (c,) usual costs. A row compares lengths minus the usual cost to enter their columns, a
        column lengths minus the usual cost to leave their rows.
    """
    of_rows, of_columns = _empty_lists(len(rows), k), _empty_lists(len(columns), k)
    _search_both(matrix, rows, columns, own, to_leave, to_enter, *of_rows, *of_columns)
    return of_rows, of_columns


def _empty_lists(m: int, k: int) -> Candidates:
    return Candidates(np.full((m, k), -1, np.int32), np.full((m, k), np.inf))


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
def _search_rows(
    matrix: Float64_2d, cities: Int32_1d, first: int, last: int, places: Int32_2d, lengths: Float64_2d
) -> None:
    """Find the nearest cities of cities first .. last-1."""
    k = places.shape[1]
    for a in range(first, last):
        for b in range(cities.shape[0]):
            length = matrix[cities[a], cities[b]]
            if (length < lengths[a, 0] or places[a, 0] < 0) and b != a:
                places[a, 0], lengths[a, 0] = b, length
                _sink(places, lengths, a, k)
        _sort(places, lengths, a)


@compiled
def _search_both(
    matrix: Float64_2d,
    rows: Int32_1d,
    columns: Int32_1d,
    own: Int32_1d,
    to_leave: Float64_1d,
    to_enter: Float64_1d,
    columns_of: Int32_2d,
    from_row: Float64_2d,
    rows_of: Int32_2d,
    from_column: Float64_2d,
) -> None:
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
