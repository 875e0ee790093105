"""The shortest tour of a few cities, proven by dynamic programming (Bellman 1962; Held and Karp 1962).

Costs are whole numbers of any size: every finite double is a whole number in a small enough unit. So no sum is rounded
for any range of distances, and a violation of constraints costs more than any tour.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.constraints import UNCONSTRAINED
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.symmetric import SymmetricForm, symmetric_form

MOST_CITIES = 12
"""Maximum cities of the exact search: time and memory double with each city."""

_LONGEST_INT64 = 2**62


def optimal_tour(instance: Instance, form: SymmetricForm | None) -> NDArray[np.int32] | None:
    """Return the best tour (n,) of `shortest_with_constraints`, or None if this would take too long.

    form : `form_to_search` of the instance, or None. Chains of fixed edges can make it small enough.
    """
    if instance.n == 1:
        return np.zeros(1, np.int32)
    if instance.n <= MOST_CITIES:
        return shortest_with_constraints(instance)
    if form is None or form.instance.n > MOST_CITIES:
        return None
    form = symmetric_form(instance)
    assert form is not None
    return form.to_problem(shortest_with_constraints(form.instance))


def shortest_with_constraints(instance: Instance) -> NDArray[np.int32]:
    """Return an (n,) tour with the fewest violations of constraints and fixed edges, and of these the shortest.

    The instance has up to `MOST_CITIES` cities.
    """
    n, constraints = instance.n, instance.constraints or UNCONSTRAINED
    closed, pairs, cities = constraints.closed, constraints.precedence, np.arange(n)
    lengths = np.array(instance.distance(cities[:, None], cities), float)
    broken = np.isinf(lengths).astype(np.int64)  # violations by an edge
    lengths[np.isinf(lengths)] = 0.0
    if instance.partner is not None:
        joined = np.flatnonzero(instance.partner >= 0)
        broken[joined, instance.partner[joined]] -= 1
    for i, j in constraints.fixed:
        broken[i, j] -= 1
        if not constraints.directed:
            broken[j, i] -= 1
    if not closed:
        lengths, broken = np.pad(lengths, (0, 1)), np.pad(broken, (0, 1))  # the dummy closes the path
        if constraints.start is not None:
            broken[n, np.delete(cities, constraints.start)] = 1
        if constraints.end is not None:
            broken[np.delete(cities, constraints.end), n] = 1
    first = (constraints.home if closed else n) if len(pairs) else 0
    order = np.roll(np.arange(len(lengths)), -first)
    rows = np.ix_(order, order)
    tour = order[shortest_tour(lengths[rows], broken[rows], (pairs - first) % len(order))]
    return (tour if closed else np.roll(tour, -int(np.argmax(tour == n)) - 1)[:-1]).astype(np.int32)


def shortest_tour(
    lengths: NDArray[np.float64],
    broken: NDArray[np.int64] | None = None,
    precedence: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the (n,) tour, from city 0 on, with the least sum of ``broken``, and of these with that of ``lengths``.

    Both are (n, n) with row = from; n >= 2. Sums are exact. Of pairs in ``precedence`` (p, 2), acyclic, the first city
    comes before the second.

    cost[S, j] is that of the cheapest path from city 0 through all cities of the set S that ends at its city j.
    S is a number whose bit c stands for city c + 1. A set's number is larger than those of its parts.
    """
    matrix = _whole_costs(lengths, broken)
    m = len(matrix) - 1
    onward = matrix[1:, 1:]
    bits = 1 << np.arange(m)
    unreachable = (len(matrix) + 1) * int(np.abs(matrix).max()) + 1  # costs more than any tour
    cost = np.full((1 << m, m), unreachable, matrix.dtype)
    before = np.zeros((1 << m, m), np.int64)
    cost[bits, np.arange(m)] = matrix[0, 1:]
    needed = np.zeros(m, np.int64)  # cities that must come before each
    for i, j in () if precedence is None else precedence[precedence[:, 0] > 0]:
        needed[j - 1] |= bits[i - 1]
    for part in range(1, 1 << m):
        inside = (part & bits) != 0
        if np.any(needed[inside] & ~part):
            continue
        through = cost[part][:, None] + onward  # to each next city, by last city
        last = through.argmin(axis=0)
        new = np.flatnonzero(~inside & ((needed & ~part) == 0))
        whole = part | bits[new]
        cost[whole, new] = through[last[new], new]
        before[whole, new] = last[new]
    tour, part = [], (1 << m) - 1
    city = int((cost[part] + matrix[1:, 0]).argmin())
    while part:
        tour.append(city + 1)
        part, city = part & ~(1 << city), int(before[part, city])
    return np.array([0, *reversed(tour)])


def _whole_costs(lengths: NDArray[np.float64], broken: NDArray[np.int64] | None) -> NDArray[Any]:
    """Return costs (n, n) as whole numbers, in an integer array if their sums fit, else in an object array."""
    finest = min((math.frexp(length)[1] - 53 for length in lengths.flat if length), default=0)
    unit = Fraction(2) ** (0 if bool(np.all(lengths == np.floor(lengths))) else -finest)
    costs = np.array([[int(Fraction(length) * unit) for length in row] for row in lengths.tolist()], object)
    if broken is not None:
        costs += broken.astype(object) * (1 + len(costs) * int(costs.max()))
    fits = (len(costs) + 2) ** 2 * int(np.abs(costs).max()) < _LONGEST_INT64
    return costs.astype(np.int64) if fits else costs
