"""The nearest cities of each city: candidate lists by coordinates, and longer lists for visits of all candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.quadrant import nearest_in_the_plane
from pymoo_gpuaco.problems.metrics import Metric, distances

# Cities queried beyond k + 1: of cities at equal rounded distance the lower id then wins, except in crowded cases, and
# the query includes neighbours that the rounding of the tree puts in another order.
_SPARE = 8
# From this number of cities on, the compiled search on all threads is several times faster than scipy's.
_LARGE = 20_000
# Entries per query: bounds the temporaries to some tens of megabytes.
_BLOCK_ENTRIES = 1 << 19
_ROWS = 4096  # rows per step of long lists, to bound the temporaries


def nearest_by_coordinates(
    metric: Metric, coords: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (n, k) neighbour ids and distances through a k-d tree, in O(n k) memory."""
    points, norm = _straight(metric, coords)
    n = len(coords)
    if n >= _LARGE and points.shape[1] == 2:
        return nearest_in_the_plane(metric, coords, k, min(n - 1, k + _SPARE))
    tree = cKDTree(points)
    asked = min(n, k + 1 + _SPARE)
    neighbours = np.empty((n, k), dtype=np.int32)
    near = np.empty((n, k))
    rows = max(1, _BLOCK_ENTRIES // asked)
    for start in range(0, n, rows):
        city = np.arange(start, min(n, start + rows))[:, None]
        found = tree.query(points[city[:, 0]], k=asked, p=norm)[1]
        length = distances(metric, coords, city, found)
        # The city itself goes last. If many cities share its point, it may not be among those found.
        length[found == city] = np.inf
        order = np.lexsort((found, length), axis=-1)[:, :k]
        neighbours[start : start + rows] = np.take_along_axis(found, order, axis=1)
        near[start : start + rows] = np.take_along_axis(length, order, axis=1)
    return neighbours, near


def near_cities(instance: ListedInstance, length: int) -> NDArray[np.int32]:
    """Return (n, length) ids, ascending by distance, the city itself first; short rows are padded with the city."""
    n = instance.n
    count = min(n, length)
    result = np.empty((n, length), np.int32)
    result[:] = np.arange(n)[:, None]
    if instance.metric == Metric.EXPLICIT:
        for first in range(0, n, _ROWS):
            block = instance.matrix[first : first + _ROWS]
            nearest = np.argpartition(block, count - 1, axis=1)[:, :count]
            order = np.argsort(np.take_along_axis(block, nearest, axis=1), axis=1, kind="stable")
            result[first : first + _ROWS, :count] = np.take_along_axis(nearest, order, axis=1)
        return result
    points, norm = _straight(Metric(instance.metric), instance.coords)
    tree = cKDTree(points)
    for first in range(0, n, _ROWS):
        found = tree.query(points[first : first + _ROWS], k=count, p=norm, workers=-1)[1]
        result[first : first + _ROWS, :count] = found.reshape(-1, count)
    return result


def _straight(metric: Metric, coords: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return points and the Minkowski norm that order pairs of cities as the metric does."""
    if metric == Metric.GEO:  # straight-line distance on the unit sphere grows with the distance along it
        lat, lon = coords[:, 0], coords[:, 1]
        return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]), 2.0
    points = coords if coords[:, 2].any() else coords[:, :2]
    return points, {Metric.MAN: 1.0, Metric.MAX: np.inf}.get(metric, 2.0)
