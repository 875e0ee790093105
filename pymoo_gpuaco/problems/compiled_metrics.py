"""Distances as compiled functions see them: their one definition on the host.

A ``graph`` is any tuple with ``metric``, ``coords`` (n, 3), ``matrix`` (n, n), ``far`` and ``partner``, as
``candidates.graph.Graph``. Its metric is a `Metric`; or that and ``WITH_DUMMY``, where a dummy city has NaN for
coordinates; or ``DOUBLED``, where city 2i is entered and 2i + 1 left where row and column i of the matrix are, see
``problems.symmetric``.
"""

from __future__ import annotations

import math

import numpy as np

from pymoo_gpuaco.problems.adding_up import ADDED_AT_ONCE
from pymoo_gpuaco.problems.metrics import EARTH_DIAMETER_KM, GEO_RADIUS_KM, Metric
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined

EXPLICIT = int(Metric.EXPLICIT)
EUC = int(Metric.EUC)
_CEIL = int(Metric.CEIL)
_ATT = int(Metric.ATT)
_GEO = int(Metric.GEO)
_MAN = int(Metric.MAN)
_MAX = int(Metric.MAX)
_HAVERSINE = int(Metric.HAVERSINE)
WITH_DUMMY, DOUBLED = 32, 64


@compiled_callee
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
        return np.floor(GEO_RADIUS_KM * math.acos(q) + 1.0)
    if metric == _MAN:
        return np.floor(abs(dx) + abs(dy) + abs(dz) + 0.5)
    if metric == _MAX:
        return max(np.floor(abs(dx) + 0.5), np.floor(abs(dy) + 0.5), np.floor(abs(dz) + 0.5))
    straight = math.sqrt(dx * dx + dy * dy + dz * dz)
    if metric == _HAVERSINE:
        return EARTH_DIAMETER_KM * math.asin(min(1.0, straight / EARTH_DIAMETER_KM))
    return straight


@inlined
def between(metric, x1, y1, z1, x2, y2, z2):  # type: ignore[no-untyped-def]
    """Distance of two points in double, with the metric's own TSPLIB rounding.

    GEO takes (latitude, longitude, 0), HAVERSINE points on the sphere.
    """
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
    if graph.metric == EXPLICIT:
        return graph.matrix[p, q]
    if i == j:
        return 0.0
    if graph.metric >= WITH_DUMMY:
        return _of_form(graph, p, q)
    return _other_metric(graph.metric, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])


@compiled_callee
def _of_form(graph, p, q):  # type: ignore[no-untyped-def]
    """Distance of two different cities of a symmetric form, see ``problems.symmetric``."""
    if graph.metric == DOUBLED:
        if (p ^ q) & np.uint32(1) == 0:
            return graph.far
        left, entered = (p, q) if p & np.uint32(1) else (q, p)
        leaving, entering = left >> np.uint32(1), entered >> np.uint32(1)
        return 0.0 if leaving == entering else min(graph.matrix[leaving, entering], graph.far)
    c = graph.coords
    if np.isnan(c[p, 0]) or np.isnan(c[q, 0]):
        return 0.0
    return between(graph.metric - WITH_DUMMY, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])


@inlined
def stays(graph, i, j):  # type: ignore[no-untyped-def]
    """Whether the edge between two cities must stay."""
    return graph.partner.shape[0] > 0 and graph.partner[i] == j


@compiled
def tour_length(graph, tour):  # type: ignore[no-untyped-def]
    """Length of the closed tour, added up in the one order of ``problems.adding_up``."""
    n, at = tour.shape[0], 0
    while at < n - 1 and tour[at] != 0:
        at += 1
    backwards = tour[at - 1 if at > 0 else n - 1] < tour[at + 1 if at + 1 < n else 0]
    total = part = 0.0
    for s in range(n):
        if s % ADDED_AT_ONCE == 0:
            total += part
            part = 0.0
        if backwards:
            to = at - 1 if at > 0 else n - 1
            part += distance(graph, tour[to], tour[at])
        else:
            to = at + 1 if at + 1 < n else 0
            part += distance(graph, tour[at], tour[to])
        at = to
    return total + part
