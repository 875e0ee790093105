"""The shortest assignment of an asymmetric instance, with dual prices of leaving and entering each city.

A tour assigns a successor to each city, so the shortest assignment, which may have several cycles, is a lower bound. An
assignment is shortest if prices exist such that no edge costs less than the prices of its two ends, and no edge of the
assignment more. SciPy finds the assignment. The prices are lengths of shortest paths between its edges.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pymoo_gpuaco.runtime.stop import Stop

MOST_ASSIGNED = 1_000
"""Maximum cities of an assignment: for a flow shop SciPy takes 0.6 s of a processor, without a look at the clock."""

# Tolerance of reduced costs relative to the largest number, a thousand times the rounding errors.
_ROUNDING = 1e-12

# Maximum rounds of shorter paths. No tested instance needed more than 65, and the bound holds after any number.
_MOST_ROUNDS = 200


class Assignment(NamedTuple):
    """A shortest assignment of n cities; lengths and prices in units of the matrix.

    Reduced costs, of an edge minus the prices of its ends, are 0 for the edges of the assignment and >= 0 for all
    others, up to rounding.
    """

    successor: NDArray[np.int64]  # (n,) of each city, never itself
    to_leave: NDArray[np.float64]  # (n,) prices
    to_enter: NDArray[np.float64]  # (n,) prices, with the same mean as those of leaving
    bound: float  # lower bound of assignments and tours


def shortest_assignment(
    matrix: NDArray[np.float64], far: float, stop: Stop | None = None
) -> Assignment | None:
    """Return a shortest assignment, reproducibly; None if ``stop`` ends the search.

    matrix : (n, n), row = from, no negative entries; n >= 2. The diagonal is ignored, and entries above ``far``,
        including infinite ones, count as ``far``.
    """
    n = len(matrix)
    costs = np.minimum(matrix, far)
    np.fill_diagonal(costs, np.inf)
    if stop is not None and stop.ended():
        return None
    successor = linear_sum_assignment(costs)[1]
    assigned = costs[np.arange(n), successor]
    rounding = _ROUNDING * float(np.abs(assigned).max())
    to_enter, lower = np.zeros(n), np.full(n, np.inf)
    for _ in range(min(n, _MOST_ROUNDS)):
        if not np.any(lower > rounding):
            break
        if stop is not None and stop.ended():
            return None
        to_leave = assigned - to_enter[successor]
        cheapest = np.minimum(to_enter, (costs - to_leave[:, None]).min(axis=0))
        lower, to_enter = to_enter - cheapest, cheapest
    least = (costs - to_enter).min(axis=1)
    largest = max(float(np.abs(part).max()) for part in (assigned, least, to_enter))
    bound = max(0.0, math.fsum([*least.tolist(), *to_enter.tolist()]) - n * _ROUNDING * largest)
    to_leave = assigned - to_enter[successor]
    shift = 0.5 * float(to_enter.mean() - to_leave.mean())
    return Assignment(successor, to_leave + shift, to_enter - shift, bound)
