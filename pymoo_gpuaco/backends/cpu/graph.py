"""The instance as numba sees it, and the one definition of a distance in this engine."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.compiled import compiled, inlined, inner
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.metrics import Metric, distances

_EXPLICIT = int(Metric.EXPLICIT)
EUC = int(Metric.EUC)
_CEIL = int(Metric.CEIL)
_ATT = int(Metric.ATT)
_GEO = int(Metric.GEO)
_MAN = int(Metric.MAN)
_MAX = int(Metric.MAX)
_EARTH_RADIUS = 6378.388  # km, TSPLIB 95, section 2.4

# GEO costs three cosines and an arc cosine; up to this many cities a table of 8 n^2 bytes is cheaper.
GEO_TABLE_LIMIT = 4000


class Graph(NamedTuple):
    """Arrays of one instance; letters: n cities, k candidates a city."""

    metric: int
    coords: np.ndarray  # (n, 3) float64, or (0, 3) for a matrix
    matrix: np.ndarray  # (n, n) float64, or (0, 0) for coordinates
    neighbours: np.ndarray  # (n, k) int32, ascending by distance
    neighbour_distances: np.ndarray  # (n, k) float64


def with_fewer_neighbours(graph: Graph, most: int) -> Graph:
    """Return the graph with lists of at most so many neighbours."""
    return graph._replace(
        neighbours=np.ascontiguousarray(graph.neighbours[:, :most]),
        neighbour_distances=np.ascontiguousarray(graph.neighbour_distances[:, :most]),
    )


@inner
def _other_metric(metric, x1, y1, z1, x2, y2, z2):  # type: ignore[no-untyped-def]
    """All metrics but EUC."""
    dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
    if metric == _CEIL:
        return np.ceil(math.sqrt(dx * dx + dy * dy + dz * dz))
    if metric == _ATT:
        r = math.sqrt((dx * dx + dy * dy) / 10.0)
        t = np.floor(r + 0.5)
        return t + 1.0 if t < r else t
    if metric == _GEO:
        q1, q2, q3 = math.cos(dy), math.cos(dx), math.cos(x1 + x2)
        q = min(1.0, max(-1.0, 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)))
        return np.floor(_EARTH_RADIUS * math.acos(q) + 1.0)
    if metric == _MAN:
        return np.floor(abs(dx) + abs(dy) + abs(dz) + 0.5)
    if metric == _MAX:
        return max(np.floor(abs(dx) + 0.5), np.floor(abs(dy) + 0.5), np.floor(abs(dz) + 0.5))
    return math.sqrt(dx * dx + dy * dy + dz * dz)


@inlined
def between(metric, x1, y1, z1, x2, y2, z2):  # type: ignore[no-untyped-def]
    """Distance of two points in double, with the metric's own TSPLIB rounding; GEO takes (latitude, longitude, 0)."""
    if metric == EUC:
        dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
        return np.floor(math.sqrt(dx * dx + dy * dy + dz * dz) + 0.5)
    return _other_metric(metric, x1, y1, z1, x2, y2, z2)


@inlined
def distance(graph, i, j):  # type: ignore[no-untyped-def]
    """Distance from city i to city j, 0 from a city to itself."""
    p, q = np.uint32(i), np.uint32(j)  # unsigned: numba looks for no negative index
    c = graph.coords
    if graph.metric == EUC:  # first, being what most instances use
        return between(EUC, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])
    if graph.metric == _EXPLICIT:
        return graph.matrix[p, q]
    if i == j:
        return 0.0
    return _other_metric(graph.metric, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])


@compiled
def tour_length(graph, tour):  # type: ignore[no-untyped-def]
    """Length of the closed tour, summed in tour order."""
    n = tour.shape[0]
    total = distance(graph, tour[n - 1], tour[0])
    for s in range(n - 1):
        total += distance(graph, tour[s], tour[s + 1])
    return total


def make_graph(instance: Instance, table: bool = True) -> Graph:
    """Arrays in the one layout that the compiled functions take, so that they compile once.

    ``table``: whether GEO distances, which take long, may be worked out beforehand.
    """
    metric, matrix, coords = instance.metric, instance.matrix, instance.coords
    if table and metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT:
        everyone = np.arange(instance.n)
        matrix = distances(metric, coords, everyone[:, None], everyone[None, :])
        coords = np.empty((0, 3))
        metric = Metric.EXPLICIT
    return Graph(
        int(metric),
        np.ascontiguousarray(coords, dtype=np.float64),
        np.ascontiguousarray(matrix, dtype=np.float64),
        np.ascontiguousarray(instance.neighbours, dtype=np.int32),
        np.ascontiguousarray(instance.neighbour_distances, dtype=np.float64),
    )
