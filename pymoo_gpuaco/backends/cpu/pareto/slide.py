"""Path between two weighted sums: local search under gradually changing weights, which outputs tours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.chains import lengths_of, put, weigh
from pymoo_gpuaco.backends.cpu.pareto.descent import ROUNDING, improve, pop, push
from pymoo_gpuaco.pareto.costs import cost
from pymoo_gpuaco.pareto.front_2d import is_covered
from pymoo_gpuaco.runtime.compiled import compiled

_STEPS = 4  # weights between the first and the last


class Way(NamedTuple):
    """Workspace of a path from one tour, k = 2 objectives."""

    tours: NDArray[np.int32]  # (most, n) tours found
    weights: NDArray[np.float64]  # (k,) current
    lengths: NDArray[np.float64]  # (k,) of the current tour
    one: NDArray[np.float64]  # (k,) of the next tour


def make_way(most: int, n: int, k: int) -> Way:
    """Allocate the arrays."""
    return Way(np.empty((most, n), np.int32), np.empty(k), np.empty(k), np.empty(k))


@compiled
def slide(costs, w, r, way, tour, first, last, points, stop):  # type: ignore[no-untyped-def]
    """Improve a tour (n,) under weights that change from ``first`` (k,) to ``last``; return the number of tours found.

    Tours are output unless a point of the front (f, 2) weakly dominates them. The path ends when the workspace is full
    or ``stop[0]`` is 1.
    """
    n, k, most = tour.shape[0], first.shape[0], way.tours.shape[0]
    put(tour, w)
    for q in range(k):
        way.lengths[q] = 0.0
        for p in range(n):
            way.lengths[q] += cost(costs, q, w.tour[p], w.tour[p + 1 if p + 1 < n else 0])
    left = 0
    for step in range(1, _STEPS + 1):
        if stop[0] or left == most:
            break
        length = 0.0
        for q in range(k):
            way.weights[q] = first[q] + (last[q] - first[q]) * step / _STEPS
            length += way.weights[q] * way.lengths[q]
        weigh(costs, way.weights, w, True)
        for p in range(n):
            push(r, w.tour[p])
        while r.span[1] > 0:
            city = pop(r)
            exchanges = 1
            while exchanges > 0 and left < most and not stop[0]:
                exchanges, _ = improve(costs, w, r, city, ROUNDING * length)
                if exchanges == 0:
                    break
                lengths_of(costs, w, exchanges, way.lengths, way.one)
                for q in range(k):
                    way.lengths[q] = way.one[q]
                if not is_covered(points, way.lengths, 0):
                    for p in range(n):
                        way.tours[left, p] = w.tour[p]
                    left += 1
    return left
