"""The shortest tour of a few cities, proven by dynamic programming (Bellman 1962; Held and Karp 1962)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.instance import Instance

__all__ = ["MOST_CITIES", "shortest_tour", "shortest_with_demands"]

MOST_CITIES = 12
"""Cities up to which it takes no longer than a moment: time and memory double with each."""


def shortest_with_demands(instance: Instance) -> NDArray[np.int32]:
    """Return an (n,) tour of an instance that breaks as few of its demands as can be, and of these the shortest.

    Edges that must stay are demands too. Of up to `MOST_CITIES` cities.
    """
    n, demands = instance.n, instance.demands
    everyone = np.arange(n)
    matrix = np.array(instance.distance(everyone[:, None], everyone), float)
    far = 2.0 * n * float(matrix[np.isfinite(matrix)].max() or 1.0)
    matrix[np.isinf(matrix)] = far
    if instance.partner is not None:
        joined = np.flatnonzero(instance.partner >= 0)
        matrix[joined, instance.partner[joined]] -= far
    if demands is None:
        return shortest_tour(matrix).astype(np.int32)
    for i, j in demands.fixed:
        matrix[i, j] -= far
        if not demands.directed:
            matrix[j, i] -= far
    if demands.closed:
        return shortest_tour(matrix).astype(np.int32)
    matrix = np.pad(matrix, (0, 1))  # the way back, over a dummy
    if demands.start is not None:
        matrix[n, np.delete(everyone, demands.start)] = far
    if demands.end is not None:
        matrix[np.delete(everyone, demands.end), n] = far
    tour = shortest_tour(matrix)
    return np.roll(tour, -int(np.argmax(tour == n)) - 1)[:-1].astype(np.int32)


def shortest_tour(matrix: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return an (n,) tour than which none is shorter, from city 0 on, of an (n, n) matrix with row = from; n >= 2.

    cost[S, j] is the length of the shortest path from city 0 through all cities of the set S that ends at its city j.
    S is a number whose bit c stands for city c + 1. A set's number is larger than those of its parts.
    """
    m = len(matrix) - 1
    onward = matrix[1:, 1:]
    bits = 1 << np.arange(m)
    cost = np.full((1 << m, m), np.inf)
    before = np.zeros((1 << m, m), np.int64)
    cost[bits, np.arange(m)] = matrix[0, 1:]
    for part in range(1, 1 << m):
        through = cost[part][:, None] + onward  # to each next city, by the one before it
        last = through.argmin(axis=0)
        new = np.flatnonzero((part & bits) == 0)
        whole = part | bits[new]
        cost[whole, new] = through[last[new], new]
        before[whole, new] = last[new]
    tour, part = [], (1 << m) - 1
    city = int((cost[part] + matrix[1:, 0]).argmin())
    while part:
        tour.append(city + 1)
        part, city = part & ~(1 << city), int(before[part, city])
    return np.array([0, *reversed(tour)])
