"""The shortest tour of a few cities, proven by dynamic programming (Bellman 1962; Held and Karp 1962)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_CITIES", "shortest_tour"]

MOST_CITIES = 12
"""Cities up to which it takes no longer than a moment: time and memory double with each."""


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
