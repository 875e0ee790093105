"""Nearest-neighbour tours: the next city is always the nearest that the tour has not visited."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.metrics import Graph, distance
from pymoo_gpuaco.runtime.compiled import Int32_1d, UInt8_1d, compiled
from pymoo_gpuaco.runtime.stop import Stop


def nearest_neighbour_tour(graph: Graph, start: int, stop: Stop) -> NDArray[np.int32]:
    """Return the tour (n,) of Eq. (1), Uchida et al. 2012, from city ``start``; ties: the lower city.

    Once ``stop`` ends it, a city without unvisited candidates is followed by any unvisited city.
    """
    tour, unvisited, place = np.empty((3, len(graph.neighbours)), np.int32)
    stop.reset()
    stop.parallel_for(lambda *_: _visit_nearest(graph, start, unvisited, place, tour, stop.flag), 1, 1)
    return tour


@compiled
def _visit_nearest(
    graph: Graph, start: int, unvisited: Int32_1d, place: Int32_1d, tour: Int32_1d, stop: UInt8_1d
) -> None:
    """Fill ``tour`` (n,). Workspace: the unvisited cities, and the place (n,) of each among them, -1 if visited."""
    n = tour.shape[0]
    for c in range(n):
        unvisited[c] = place[c] = c
    i = np.int64(start)
    for p in range(n):
        tour[p] = i
        left = n - 1 - p
        last = unvisited[left]
        unvisited[place[i]] = last
        place[last] = place[i]
        place[i] = -1
        j = np.int64(-1)
        for r in range(graph.neighbours.shape[1]):
            if place[graph.neighbours[i, r]] >= 0:
                j = np.int64(graph.neighbours[i, r])
                break
        if j < 0:
            j, nearest = np.int64(unvisited[0]), np.inf
            for q in range(left if stop[0] == 0 else 0):
                d = distance(graph, i, unvisited[q])
                if d < nearest or (d == nearest and unvisited[q] < j):
                    nearest, j = d, np.int64(unvisited[q])
        i = j
