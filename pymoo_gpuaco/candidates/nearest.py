"""The nearest cities of each city, by coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.candidates.quadrant import nearest_in_the_plane
from pymoo_gpuaco.problems.metrics import Metric, distances

# Cities asked of the k-d tree beyond k + 1: among cities at equal rounded distance it lets the lower id win
# in all but crowded cases, and it covers neighbours that the tree's own rounding puts in another order.
_SPARE = 8
# Cities from which on a search of our own, compiled and on all threads, is several times faster than scipy's.
_LARGE = 20_000
# Cities queried together: bounds the temporaries to some tens of megabytes.
_BLOCK_ENTRIES = 1 << 19


def nearest_by_coordinates(
    metric: Metric, coords: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (n, k) neighbour ids and distances through a k-d tree, in O(n k) memory."""
    if metric == Metric.GEO:
        # Straight-line distance on the unit sphere grows with the distance along it.
        lat, lon = coords[:, 0], coords[:, 1]
        points = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    else:
        points = coords if coords[:, 2].any() else coords[:, :2]
    n = len(coords)
    if n >= _LARGE and points.shape[1] == 2:
        return nearest_in_the_plane(metric, coords, k, min(n - 1, k + _SPARE))
    norm = {Metric.MAN: 1.0, Metric.MAX: np.inf}.get(metric, 2.0)
    tree = cKDTree(points)
    asked = min(n, k + 1 + _SPARE)
    neighbours = np.empty((n, k), dtype=np.int32)
    near = np.empty((n, k))
    rows = max(1, _BLOCK_ENTRIES // asked)
    for start in range(0, n, rows):
        city = np.arange(start, min(n, start + rows))[:, None]
        found = tree.query(points[city[:, 0]], k=asked, p=norm)[1]
        length = distances(metric, coords, city, found)
        # The city itself goes last. Where many share its point it may not be among those found.
        length[found == city] = np.inf
        order = np.lexsort((found, length), axis=-1)[:, :k]
        neighbours[start : start + rows] = np.take_along_axis(found, order, axis=1)
        near[start : start + rows] = np.take_along_axis(length, order, axis=1)
    return neighbours, near
