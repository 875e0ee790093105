"""Chains of edge exchanges: edges are alternately removed from the tour and added to it.

A chain of r exchanges is 2r cities t0, t1, .. : the tour loses (t0, t1), (t2, t3), .. and gains (t1, t2), .. and
(t_{2r-1}, t0). S. Lin and B. W. Kernighan, "An effective heuristic algorithm for the traveling-salesman problem",
Operations Research 21 (1973), search chains with positive partial gains; 2-opt, 3-opt and Or-opt moves are chains. Most
closed chains do not give a tour: `closes` checks this before any city is moved.

For directed edges, the city before t0 is t1, the one before t2 is t3, and so on: each added edge leads from the end of
a stretch to the beginning of another, so no stretch is reversed. Costs are computed in this direction. Directed chains
with an even number of exchanges never give a tour: they are odd permutations of successors, and two tours differ by an
even permutation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cpu.workspace import NOT_LOGGING, after, before
from pymoo_gpuaco.memetic.stretches import (
    Stretches,
    cities_in,
    cut,
    find_subtours,
    join,
    make_stretches,
    move,
)
from pymoo_gpuaco.pareto.device import MOST_EXCHANGES
from pymoo_gpuaco.pareto.instance import cost
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    compiled_callee,
    inlined,
    struct,
)


@struct
class Walker(NamedTuple):
    """Arrays of one thread, see `make_walker`."""

    tour: Int32_1d
    position: Int32_1d
    queue: Int32_1d
    queued: UInt8_1d
    ring: Int64_1d
    log: Int32_2d
    logged: Int64_1d
    accepted: Int32_1d
    listed: Int32_2d
    near: Float64_2d
    weights: Float64_1d
    chain: Int32_1d
    gain: Float64_1d
    tried: Int64_1d
    removed: Int32_2d
    added: Int32_2d
    stretches: Stretches


def make_walker(n: int, k: int, c: int) -> Walker:
    """Allocate a tour of n cities with c candidates each under a weighted sum of k objectives, and its chains."""
    m = MOST_EXCHANGES
    return Walker(
        tour=np.empty(n, np.int32),
        position=np.empty(n, np.int32),  # of each city in the tour
        queue=np.empty(n, np.int32),  # cities from which to search; with the next four as in ``Workspace``
        queued=np.zeros(n, np.uint8),
        ring=np.zeros(2, np.int64),
        log=np.empty((0, 2), np.int32),
        logged=np.full(1, NOT_LOGGING, np.int64),
        accepted=np.empty(n, np.int32),  # snapshot of the tour
        listed=np.empty((n, c), np.int32),  # candidates of each city
        near=np.empty((n, c)),  # weighted costs of the candidates' edges
        weights=np.empty(k),
        chain=np.empty(2 * m, np.int32),  # cities t0, t1, ..
        gain=np.empty(m + 1),  # partial gains of the open chain
        tried=np.empty(m + 1, np.int64),  # choices tried per exchange, two per candidate
        removed=np.empty((m, 2), np.int32),  # edges that a closed chain removes
        added=np.empty((m, 2), np.int32),  # edges that it adds
        stretches=make_stretches(n, m),
    )


@inlined
def weighted(costs, w, i, j):  # type: ignore[no-untyped-def]
    """Return the weighted cost of an edge."""
    total = 0.0
    for q in range(w.weights.shape[0]):
        total += w.weights[q] * cost(costs, q, i, j)
    return total


@compiled_callee
def set_weights(costs, weights, w, in_order):  # type: ignore[no-untyped-def]
    """Set the weights (k,) and the candidates' costs; ``in_order``: sort the candidates of each city by cost."""
    k = weights.shape[0]
    n, c = w.near.shape
    for q in range(k):
        w.weights[q] = weights[q]
    for i in range(n):
        for r in range(c):
            total = 0.0
            for q in range(k):
                total += weights[q] * costs.near[i, r, q]
            s = r
            while in_order and s > 0 and w.near[i, s - 1] > total:
                w.near[i, s], w.listed[i, s] = w.near[i, s - 1], w.listed[i, s - 1]
                s -= 1
            w.near[i, s], w.listed[i, s] = total, costs.neighbours[i, r]


@inlined
def set_tour(tour, w):  # type: ignore[no-untyped-def]
    """Copy a tour (n,) into the workspace."""
    for i in range(tour.shape[0]):
        w.tour[i] = tour[i]
        w.position[tour[i]] = i


@inlined
def begin_chain(costs, w, t0, forward):  # type: ignore[no-untyped-def]
    """Remove the edge of t0 to one of its tour neighbours; return the number of open exchanges.

    Chains of directed edges never begin ``forward``.
    """
    t1 = after(w, t0) if forward else before(w, t0)
    w.chain[0] = t0
    w.chain[1] = t1
    w.gain[1] = weighted(costs, w, t1, t0)
    w.tried[1] = 0
    return 1


@compiled_callee
def next_chain(costs, w, opened, most, slack, breadth):  # type: ignore[no-untyped-def]
    """Return the next chain of at most ``most`` exchanges: (exchanges, open exchanges, change in length).

    An edge can be added if the partial gain stays above ``-slack``; then either edge at its other end can be removed.
    0 exchanges: there is no further chain. `closes` checks if a chain gives a tour.
    """
    t0 = w.chain[0]
    while opened > 0:
        i = w.tried[opened]
        if i >= 2 * breadth:
            opened -= 1
            continue
        if costs.directed:
            i |= 1  # remove only the edge that leads to the city
        w.tried[opened] = i + 1
        last = w.chain[2 * opened - 1]
        left = w.gain[opened] - w.near[last, i >> 1]
        if left <= -slack:
            w.tried[opened] = (i | 1) + 1
            continue
        city = np.int64(w.listed[last, i >> 1])
        if after(w, last) == city or (before(w, last) == city and not costs.directed):
            w.tried[opened] = (i | 1) + 1
            continue
        other = np.int64(after(w, city) if i & 1 == 0 else before(w, city))
        if _is_removed(w, opened, city, other):
            continue
        w.chain[2 * opened] = city
        w.chain[2 * opened + 1] = other
        exchanges = opened + 1
        left += weighted(costs, w, other, city)
        if exchanges < most:
            w.gain[exchanges] = left
            w.tried[exchanges] = 0
            opened = exchanges
        if costs.directed and exchanges & 1 == 0:
            continue
        if other == t0 or before(w, t0) == other or (after(w, t0) == other and not costs.directed):
            continue  # the closing edge is in the tour or has just been removed
        return exchanges, opened, weighted(costs, w, other, t0) - left
    return 0, 0, 0.0


@inlined
def _is_removed(w, opened, city, other):  # type: ignore[no-untyped-def]
    for m in range(opened):
        a, b = w.chain[2 * m], w.chain[2 * m + 1]
        if (a == city and b == other) or (a == other and b == city):
            return True
    return False


@compiled_callee
def lengths_of(costs, w, exchanges, before, out):  # type: ignore[no-untyped-def]
    """Write the lengths of the tour after the chain to ``out`` (k,); ``before`` (k,): lengths of the current tour."""
    last = 2 * exchanges - 1
    for q in range(out.shape[0]):
        total = before[q]
        for m in range(exchanges):
            total -= cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m])
            total += cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m + 2 if 2 * m + 1 < last else 0])
        out[q] = total


@compiled_callee
def closes(w, exchanges):  # type: ignore[no-untyped-def]
    """Return True if the chain gives a tour; `rejoin` then applies the chain."""
    for m in range(exchanges):
        w.removed[m, 0] = w.chain[2 * m]
        w.removed[m, 1] = w.added[m, 0] = w.chain[2 * m + 1]
        w.added[m, 1] = w.chain[2 * m + 2 if m + 1 < exchanges else 0]
    cut(w.position, w.removed, exchanges, w.stretches)
    join(w.position, w.added, exchanges, w.stretches)
    return find_subtours(w.tour.shape[0], exchanges, w.stretches) == 1


@compiled_callee
def rejoin(w, exchanges):  # type: ignore[no-untyped-def]
    """Apply the last chain of `closes` without moving the longest stretch (ties: the first in the new order)."""
    n, cuts, end = w.tour.shape[0], w.stretches.cuts, 2
    longest = 1
    for _ in range(exchanges):
        if cities_in(end >> 1, n, exchanges, cuts) > cities_in(longest, n, exchanges, cuts):
            longest = end >> 1
        end = w.stretches.joined[end ^ 1]
    move(w.tour, w.position, exchanges, longest, w.stretches)
