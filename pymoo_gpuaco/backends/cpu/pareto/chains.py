"""Exchanges of a few edges: chains of edges that leave the tour and edges that join it, in turn.

A chain of r exchanges is 2r cities t0, t1, .. : the tour loses (t0, t1), (t2, t3), .. and gains (t1, t2), .. and
(t_{2r-1}, t0). S. Lin and B. W. Kernighan, "An effective heuristic algorithm for the traveling-salesman problem",
Operations Research 21 (1973), look for chains of which every beginning gains; 2-opt, 3-opt and Or-opt moves are chains.
Most of what closes such a chain leaves a tour in pieces: `closes` tells, and only then is anything moved.

Where edges have a direction, the city before t0 is t1, the one before t2 is t3, and so on: each edge that joins leads
from the end of a stretch to the begin of another one, so that no stretch is turned. All costs are asked for that way.
Such a chain of an even number of exchanges leaves several round trips: in the order of cities that follow each other,
it is a cycle of even length, an odd permutation, and one round trip does not become another by an odd one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.costs import cost
from pymoo_gpuaco.pareto.device import MOST_EXCHANGES
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined


class Walker(NamedTuple):
    """One tour of n cities under one weighted sum, and the room that chains take; c candidates a city."""

    tour: NDArray[np.int32]  # (n,)
    position: NDArray[np.int32]  # (n,) of each city on the tour
    listed: NDArray[np.int32]  # (n, c) candidates of each city
    near: NDArray[np.float64]  # (n, c) weighted costs of the candidates' edges
    table: NDArray[np.float64]  # (n, n) weighted costs of all edges, or (0, 0)
    weights: NDArray[np.float64]  # (k,)
    chain: NDArray[np.int32]  # (2 MOST_EXCHANGES,) cities t0, t1, ..
    gain: NDArray[np.float64]  # (MOST_EXCHANGES + 1,) what the chain's first exchanges gain while it is open
    upto: NDArray[np.int64]  # (MOST_EXCHANGES + 1,) candidates that have been looked at, by exchange
    at: NDArray[np.int64]  # (MOST_EXCHANGES + 1,) positions of the edges that leave, in the tour's order
    ends: NDArray[np.int64]  # (2, MOST_EXCHANGES) which of t0, t1, .. begins and ends each stretch that stays
    stretches: NDArray[np.int64]  # (2, MOST_EXCHANGES) stretches in their new order, and whether turned
    moved: NDArray[np.int32]  # (n,) cities on their way to a new position


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
    """Next city on the tour."""
    p = w.position[city] + 1
    return w.tour[p if p < w.tour.shape[0] else 0]


@inlined
def before(w, city):  # type: ignore[no-untyped-def]
    """City before it on the tour."""
    p = w.position[city]
    return w.tour[p - 1 if p > 0 else w.tour.shape[0] - 1]


@inlined
def weighted(costs, w, i, j):  # type: ignore[no-untyped-def]
    """Weighted cost of an edge."""
    if w.table.shape[0] > 0:
        return w.table[i, j]
    total = 0.0
    for q in range(w.weights.shape[0]):
        total += w.weights[q] * cost(costs, q, i, j)
    return total


@compiled_callee
def weigh(costs, weights, w, in_order):  # type: ignore[no-untyped-def]
    """Work out what edges cost under weights (k,); ``in_order`` puts each city's candidates in order of that."""
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
    """Begin with a tour (n,)."""
    for i in range(tour.shape[0]):
        w.tour[i] = tour[i]
        w.position[tour[i]] = i


@inlined
def begin_chain(costs, w, t0, forward):  # type: ignore[no-untyped-def]
    """Let the edge of t0 to one of its neighbours on the tour leave; return how many exchanges are open.

    Chains of directed edges do not begin ``forward``.
    """
    t1 = after(w, t0) if forward else before(w, t0)
    w.chain[0] = t0
    w.chain[1] = t1
    w.gain[1] = weighted(costs, w, t1, t0)
    w.upto[1] = 0
    return 1


@compiled_callee
def next_chain(costs, w, opened, most, slack, breadth):  # type: ignore[no-untyped-def]
    """Go on to the next chain of at most ``most`` exchanges: (exchanges, of them open for more, change in length).

    An edge joins where the chain has gained more than ``-slack`` with it; then either edge at its other end may leave.
    No more exchanges: there is no further chain. Whether what closes is a tour, `closes` says.
    """
    t0 = w.chain[0]
    while opened > 0:
        i = w.upto[opened]
        if i >= 2 * breadth:
            opened -= 1
            continue
        if costs.directed:
            i |= 1  # of the two edges, the one that leads to the city
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
            continue  # what would close it is there, or has just left
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
    """Write to ``one`` (k,) the lengths of the tour that the chain makes of one of lengths ``before`` (k,)."""
    last = 2 * exchanges - 1
    for q in range(one.shape[0]):
        total = before[q]
        for m in range(exchanges):
            total -= cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m])
            total += cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m + 2 if 2 * m + 1 < last else 0])
        one[q] = total


@compiled_callee
def closes(w, exchanges):  # type: ignore[no-untyped-def]
    """Whether the chain leaves one tour; if so, its stretches are put in their new order.

    Stretch s is what stays between the edges that leave s-th and next, in the tour's order.
    """
    n = w.tour.shape[0]
    for m in range(exchanges):  # sort the edges by where they leave
        p, q = w.position[w.chain[2 * m]], w.position[w.chain[2 * m + 1]]
        forward = q == p + 1 or (q == 0 and p == n - 1)
        at, first, second = (p, 2 * m, 2 * m + 1) if forward else (q, 2 * m + 1, 2 * m)
        s = m
        while s > 0 and w.at[s - 1] > at:
            w.at[s], w.ends[0, s], w.ends[1, s] = w.at[s - 1], w.ends[0, s - 1], w.ends[1, s - 1]
            s -= 1
        # for now: the ends of the edge, the one that comes first on the tour first
        w.at[s], w.ends[0, s], w.ends[1, s] = at, first, second
    s, turned = 0, False
    for step in range(exchanges):
        w.stretches[0, step], w.stretches[1, step] = s, turned
        # stretch s begins behind edge s and ends where edge s + 1 leaves
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
    """Make the chain that `closes` has looked at last; the longest stretch stays where it is.

    Returns the first position where cities have changed, and how many have, in a ring.
    """
    n = w.tour.shape[0]
    longest, most = 0, 0
    for step in range(exchanges):
        length = _length(w, w.stretches[0, step], exchanges)
        if length > most:
            longest, most = step, length
    keep, back = w.stretches[0, longest], w.stretches[1, longest] == 1
    # cities behind the stretch that stays, in their new order as it is walked now
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
    first = w.at[keep] + 1 + most
    first = first - n if first >= n else first
    p = first
    for i in range(count):
        p = p - n if p >= n else p
        w.tour[p] = w.moved[i]
        w.position[w.moved[i]] = p
        p += 1
    return first, count


@inlined
def _length(w, s, exchanges):  # type: ignore[no-untyped-def]
    """Cities of stretch s."""
    to = w.at[s + 1] if s + 1 < exchanges else w.at[0] + w.tour.shape[0]
    return to - w.at[s]
