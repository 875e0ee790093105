"""Optimal assignments of few items, and a lower bound of any number."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import Float64_1d, Float64_2d, Int64_1d, UInt8_1d, compiled
from pymoo_gpuaco.runtime.stop import Stop

MOST_PLACEMENTS = 4_000_000  # to enumerate: 10 items at 10 locations; 0.1 s
MOST_TO_BOUND = 100  # locations; some milliseconds


def is_small(items: int, locations: int) -> bool:
    """Return True if all placements can be enumerated at once."""
    return math.perm(locations, items) <= MOST_PLACEMENTS


def least_cost(flow: NDArray, distance: NDArray, linear: NDArray, stop: Stop) -> float | None:
    """Return the least cost of all placements of float64 matrices (m, m), (n, n), (m, n), or None if stopped."""
    m, n = linear.shape
    prunes = bool(flow.min() >= 0.0 and distance.min() >= 0.0 and linear.min() >= 0.0)
    least, partial = np.full(1, np.inf), np.zeros(m + 1)
    enumerate_placements(
        flow, distance, linear, prunes, np.full(m + 1, -1), np.zeros(n, np.int64), partial, least, stop.flag
    )
    return None if stop.is_set() else float(least[0])


@compiled
def enumerate_placements(
    flow: Float64_2d,
    distance: Float64_2d,
    linear: Float64_2d,
    prunes: bool,
    place: Int64_1d,
    taken: Int64_1d,
    partial: Float64_1d,
    least: Float64_1d,
    stop: UInt8_1d,
) -> None:
    """Store the least cost of all placements (1,). ``place`` (m + 1,), -1; ``taken`` (n,), ``partial`` (m + 1,), 0.

    ``prunes``: no number is negative, so that a placement costs at least as much as its first items.
    """
    m, n = linear.shape
    i, steps = 0, 0
    while i >= 0:
        steps += 1
        if steps & 0xFFFF == 0 and stop[0] != 0:
            return
        at = place[i]
        if at >= 0:
            taken[at] = 0
        at += 1
        while at < n and taken[at] != 0:
            at += 1
        if at == n:
            place[i] = -1
            i -= 1
            continue
        place[i] = at
        taken[at] = 1
        cost = partial[i] + linear[i, at] + flow[i, i] * distance[at, at]
        for k in range(i):
            cost += flow[i, k] * distance[at, place[k]] + flow[k, i] * distance[place[k], at]
        if prunes and cost >= least[0]:
            continue
        if i == m - 1:
            least[0] = min(least[0], cost)
            continue
        i += 1
        partial[i] = cost


def gilmore_lawler(flow: NDArray, distance: NDArray, linear: NDArray) -> float:
    """Return the bound of Gilmore (1962) and Lawler (1963) of matrices (n, n): no placement costs less.

    Item i at location l costs at least the product of its flows in ascending and of the distances in descending order;
    the least sum of these is a linear assignment problem.
    """
    from scipy.optimize import linear_sum_assignment  # takes long to load

    n = len(flow)
    others = ~np.eye(n, dtype=bool)
    rows = np.sort(flow[others].reshape(n, n - 1), axis=1)
    columns = np.sort(distance[others].reshape(n, n - 1), axis=1)[:, ::-1]
    least = rows @ columns.T + linear + np.outer(np.diag(flow), np.diag(distance))
    items, places = linear_sum_assignment(least)
    return float(least[items, places].sum())
