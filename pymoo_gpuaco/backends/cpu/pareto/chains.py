"""Chains of edge exchanges: edges are removed from the tour and added to it alternately.

A chain of r exchanges is 2r cities t0, t1, .. : the tour loses (t0, t1), (t2, t3), .. and gains (t1, t2), .. and
(t_{2r-1}, t0). S. Lin and B. W. Kernighan, "An effective heuristic algorithm for the traveling-salesman problem",
Operations Research 21 (1973), search chains with positive partial gains; 2-opt, 3-opt and Or-opt moves are chains. Most
closed chains do not give a tour: `closes` checks this before any city is moved.

For directed edges, the city before t0 is t1, the one before t2 is t3, and so on: each added edge leads from the end of
a stretch to the begin of another, so that no stretch is reversed. Costs are computed in this direction. Directed chains
with an even number of exchanges never give a tour: they are odd permutations of successors, and two tours differ by an
even one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.device import MOST_EXCHANGES
from pymoo_gpuaco.pareto.instance import cost
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined


class Walker(NamedTuple):
    """A tour of n cities under a weighted sum, and the workspace of chains; c candidates a city."""

    tour: NDArray[np.int32]  # (n,)
    position: NDArray[np.int32]  # (n,) of each city on the tour
    listed: NDArray[np.int32]  # (n, c) candidates of each city
    near: NDArray[np.float64]  # (n, c) weighted costs of the candidates' edges
    table: NDArray[np.float64]  # (n, n) weighted costs of all edges, or (0, 0)
    weights: NDArray[np.float64]  # (k,)
    chain: NDArray[np.int32]  # (2 MOST_EXCHANGES,) cities t0, t1, ..
    gain: NDArray[np.float64]  # (MOST_EXCHANGES + 1,) partial gains of the open chain
    upto: NDArray[np.int64]  # (MOST_EXCHANGES + 1,) candidates tried, by exchange
    at: NDArray[np.int64]  # (MOST_EXCHANGES + 1,) positions of the removed edges, ascending
    ends: NDArray[np.int64]  # (2, MOST_EXCHANGES) which of t0, t1, .. begins and ends each stretch
    stretches: NDArray[np.int64]  # (2, MOST_EXCHANGES) stretches in their new order, and whether reversed
    moved: NDArray[np.int32]  # (n,) workspace for moved cities


def make_walker(n: int, k: int, c: int, tabled: bool) -> Walker:
    """Allocate the arrays."""
    m = MOST_EXCHANGES
    return Walker(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty((n, c), np.int32),
        np.empty((n, c)),
        np.empty((n, n) if tabled else (0, 0)),
        np.empty(k),
        np.empty(2 * m, np.int32),
        np.empty(m + 1),
        np.empty(m + 1, np.int64),
        np.empty(m + 1, np.int64),
        np.empty((2, m), np.int64),
        np.empty((2, m), np.int64),
        np.empty(n, np.int32),
    )


@inlined
def after(w, city):  # type: ignore[no-untyped-def]
    """Return the next city on the tour."""
    p = w.position[city] + 1
    return w.tour[p if p < w.tour.shape[0] else 0]


@inlined
def before(w, city):  # type: ignore[no-untyped-def]
    """Return the previous city on the tour."""
    p = w.position[city]
    return w.tour[p - 1 if p > 0 else w.tour.shape[0] - 1]


@inlined
def weighted(costs, w, i, j):  # type: ignore[no-untyped-def]
    """Return the weighted cost of an edge."""
    if w.table.shape[0] > 0:
        return w.table[i, j]
    total = 0.0
    for q in range(w.weights.shape[0]):
        total += w.weights[q] * cost(costs, q, i, j)
    return total


@compiled_callee
def weigh(costs, weights, w, in_order):  # type: ignore[no-untyped-def]
    """Compute weighted costs of edges; ``in_order`` sorts each city's candidates by them."""
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
    if w.table.shape[0] > 0:
        for i in range(n):
            for j in range(n):
                total = 0.0
                for q in range(k):
                    total += weights[q] * costs.table[i, j, q]
                w.table[i, j] = total


@inlined
def put(tour, w):  # type: ignore[no-untyped-def]
    """Load a tour (n,)."""
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
    w.upto[1] = 0
    return 1


@compiled_callee
def next_chain(costs, w, opened, most, slack, breadth):  # type: ignore[no-untyped-def]
    """Return the next chain of at most ``most`` exchanges: (exchanges, open exchanges, change in length).

    An edge can be added if the partial gain stays above ``-slack``; then either edge at its other end can be removed.
    0 open exchanges: no further chain. `closes` checks whether a chain gives a tour.
    """
    t0 = w.chain[0]
    while opened > 0:
        i = w.upto[opened]
        if i >= 2 * breadth:
            opened -= 1
            continue
        if costs.directed:
            i |= 1  # only the edge that leads to the city
        w.upto[opened] = i + 1
        last = w.chain[2 * opened - 1]
        left = w.gain[opened] - w.near[last, i >> 1]
        if left <= -slack:
            w.upto[opened] = (i | 1) + 1
            continue
        city = np.int64(w.listed[last, i >> 1])
        if after(w, last) == city or (before(w, last) == city and not costs.directed):
            w.upto[opened] = (i | 1) + 1
            continue
        other = np.int64(after(w, city) if i & 1 == 0 else before(w, city))
        if _has_left(w, opened, city, other):
            continue
        w.chain[2 * opened] = city
        w.chain[2 * opened + 1] = other
        exchanges = opened + 1
        left += weighted(costs, w, other, city)
        if exchanges < most:
            w.gain[exchanges] = left
            w.upto[exchanges] = 0
            opened = exchanges
        if costs.directed and exchanges & 1 == 0:
            continue
        if other == t0 or before(w, t0) == other or (after(w, t0) == other and not costs.directed):
            continue  # the closing edge is in the tour or has just been removed
        return exchanges, opened, weighted(costs, w, other, t0) - left
    return 0, 0, 0.0


@inlined
def _has_left(w, opened, city, other):  # type: ignore[no-untyped-def]
    for m in range(opened):
        a, b = w.chain[2 * m], w.chain[2 * m + 1]
        if (a == city and b == other) or (a == other and b == city):
            return True
    return False


@compiled_callee
def lengths_of(costs, w, exchanges, before, one):  # type: ignore[no-untyped-def]
    """Write to ``one`` (k,) the lengths after the chain, for a tour of lengths ``before`` (k,)."""
    last = 2 * exchanges - 1
    for q in range(one.shape[0]):
        total = before[q]
        for m in range(exchanges):
            total -= cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m])
            total += cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m + 2 if 2 * m + 1 < last else 0])
        one[q] = total


@compiled_callee
def closes(w, exchanges):  # type: ignore[no-untyped-def]
    """Return whether the chain gives a tour, and put its stretches in their new order.

    Stretch s is between removed edges s and s + 1, in tour order.
    """
    n = w.tour.shape[0]
    for m in range(exchanges):  # sort the removed edges by position
        p, q = w.position[w.chain[2 * m]], w.position[w.chain[2 * m + 1]]
        forward = q == p + 1 or (q == 0 and p == n - 1)
        at, first, second = (p, 2 * m, 2 * m + 1) if forward else (q, 2 * m + 1, 2 * m)
        s = m
        while s > 0 and w.at[s - 1] > at:
            w.at[s], w.ends[0, s], w.ends[1, s] = w.at[s - 1], w.ends[0, s - 1], w.ends[1, s - 1]
            s -= 1
        # for now: the ends of the edge, in tour order
        w.at[s], w.ends[0, s], w.ends[1, s] = at, first, second
    s, turned = 0, False
    for step in range(exchanges):
        w.stretches[0, step], w.stretches[1, step] = s, turned
        # stretch s begins behind edge s and ends at edge s + 1
        end = w.ends[1, s] if turned else w.ends[0, s + 1 if s + 1 < exchanges else 0]
        to = (end + 1) % (2 * exchanges) if end & 1 else (end - 1) % (2 * exchanges)
        for e in range(exchanges):
            if w.ends[1, e] == to:
                s, turned = e, False
                break
            if w.ends[0, e] == to:
                s, turned = e - 1 if e > 0 else exchanges - 1, True
                break
        if s == 0:
            return step == exchanges - 1 and not turned
    return False


@compiled_callee
def rejoin(w, exchanges):  # type: ignore[no-untyped-def]
    """Apply the last chain of `closes`; the longest stretch is not moved."""
    n = w.tour.shape[0]
    longest, most = 0, 0
    for step in range(exchanges):
        length = _length(w, w.stretches[0, step], exchanges)
        if length > most:
            longest, most = step, length
    keep, back = w.stretches[0, longest], w.stretches[1, longest] == 1
    # cities behind the stretch that is not moved, in their new order
    count, step = 0, longest
    for _ in range(exchanges - 1):
        if back:
            step = step - 1 if step > 0 else exchanges - 1
        else:
            step = step + 1 if step + 1 < exchanges else 0
        s = w.stretches[0, step]
        turned = (w.stretches[1, step] == 1) != back
        length = _length(w, s, exchanges)
        p = w.at[s] + (length if turned else 1)
        for _i in range(length):
            p = p - n if p >= n else p
            p = p + n if p < 0 else p
            w.moved[count] = w.tour[p]
            count += 1
            p += -1 if turned else 1
    p = w.at[keep] + 1 + most
    for i in range(count):
        p = p - n if p >= n else p
        w.tour[p] = w.moved[i]
        w.position[w.moved[i]] = p
        p += 1


@inlined
def _length(w, s, exchanges):  # type: ignore[no-untyped-def]
    """Return the number of cities of stretch s."""
    to = w.at[s + 1] if s + 1 < exchanges else w.at[0] + w.tour.shape[0]
    return to - w.at[s]
