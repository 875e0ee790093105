"""Tours to begin with, tours that are locally best, and their edges."""

from __future__ import annotations

import numpy as np


def edges_of(tour):
    """Edges of a closed tour, without direction."""
    return {frozenset((int(a), int(b))) for a, b in zip(tour, np.roll(tour, -1), strict=True)}


def random_tours(n, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.permutation(n) for _ in range(count)], np.int32)


def two_opt(problem, tour):
    """A tour that no exchange of two edges shortens, found slowly."""
    n, D = len(tour), problem.D
    tour, better = list(tour), True
    while better:
        better = False
        for i in range(n - 1):
            for j in range(i + 2, n - (i == 0)):
                a, b, c, d = tour[i], tour[i + 1], tour[j], tour[(j + 1) % n]
                if D[a, b] + D[c, d] > D[a, c] + D[b, d] + 1e-9:
                    tour[i + 1 : j + 1] = tour[i + 1 : j + 1][::-1]
                    better = True
    return np.array(tour, np.int32)
