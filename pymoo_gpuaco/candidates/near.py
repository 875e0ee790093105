"""A longer list of near cities, read when all candidates of a city are visited."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.metrics import Metric

_ROWS = 4096  # rows handled together, which bounds the temporaries


def near_cities(instance: ListedInstance, length: int) -> NDArray[np.int32]:
    """Return (n, length) ids, ascending by distance, the city itself first; short rows are filled with the city."""
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
    points, norm = _flat(instance)
    tree = cKDTree(points)
    for first in range(0, n, _ROWS):
        found = tree.query(points[first : first + _ROWS], k=count, p=norm, workers=-1)[1]
        result[first : first + _ROWS, :count] = found.reshape(-1, count)
    return result


def _flat(instance: ListedInstance) -> tuple[NDArray[np.float64], float]:
    """Points and the Minkowski norm in which the metric's order of distances is that of straight lines."""
    coords = instance.coords
    if instance.metric == Metric.GEO:
        lat, lon = coords[:, 0], coords[:, 1]
        return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]), 2.0
    points = coords if coords[:, 2].any() else coords[:, :2]
    return points, {int(Metric.MAN): 1.0, int(Metric.MAX): np.inf}.get(instance.metric, 2.0)
