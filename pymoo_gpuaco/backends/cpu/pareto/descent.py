"""Descent under a weighted sum, and paths between two sums.

A descent is local search by chains, and kicks that are undone unless they help. A path is local search under gradually
changing weights, which outputs tours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.chains import (
    begin_chain,
    closes,
    lengths_of,
    next_chain,
    put,
    rejoin,
    weigh,
    weighted,
)
from pymoo_gpuaco.backends.cpu.workspace import pop, push
from pymoo_gpuaco.pareto.front_2d import is_covered
from pymoo_gpuaco.pareto.instance import cost
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee
from pymoo_gpuaco.runtime.philox import next_below

# Cities of each of the three stretches of a kick. Long stretches lead farther, which helps with few cities; short ones
# are faster to repair: with 10,000 cities a second shortens a tour 1.5 times as much
_LONGEST, _SHORTEST, _CITIES_OF_SHORTER = 10, 2, 1000
_EXCHANGES = 3
_DIRECTED_EXCHANGES = 5
_BREADTH = 10  # searched candidates of a city, the nearest under the weights
_DIRECTED_BREADTH = 6
# Of a tour's length: smaller changes are no gain.
_ROUNDING = 1e-9
_STEPS = 4  # weights of a path between the first and the last


@compiled_callee
def _agree(w, back):  # type: ignore[no-untyped-def]
    """Update the snapshot from the current tour, or roll ``back`` to it."""
    for p in range(w.tour.shape[0]):
        if back:
            w.tour[p] = w.accepted[p]
            w.position[w.accepted[p]] = p
        else:
            w.accepted[p] = w.tour[p]


@compiled_callee
def _settle(costs, w, tiny, stop):  # type: ignore[no-untyped-def]
    """Apply chains with a gain until the queue is empty; return the change in length.

    Once ``stop[0]`` is 1, cities are only removed from the queue.
    """
    change = 0.0
    while w.ring[1] > 0:
        city = pop(w)
        exchanges = 1
        while exchanges > 0 and not stop[0]:
            exchanges, gained = improve(costs, w, city, tiny)
            change += gained
    return change


@compiled_callee
def improve(costs, w, city, tiny):  # type: ignore[no-untyped-def]
    """Apply the first chain from a city that shortens the tour; return its exchanges and change in length, or 0, 0."""
    most = _DIRECTED_EXCHANGES if costs.directed else _EXCHANGES
    breadth = min(_DIRECTED_BREADTH if costs.directed else _BREADTH, w.near.shape[1])
    for forward in (True, False):
        if forward and costs.directed:
            continue
        opened = begin_chain(costs, w, city, forward)
        while True:
            exchanges, opened, change = next_chain(costs, w, opened, most, 0.0, breadth)
            if exchanges == 0:
                break
            if change < -tiny and closes(w, exchanges):
                rejoin(w, exchanges)
                for m in range(2 * exchanges):
                    push(w, w.chain[m])
                return exchanges, change
    return 0, 0.0


@compiled_callee
def _kick(costs, w, stream):  # type: ignore[no-untyped-def]
    """Reverse the order of three consecutive stretches (a double bridge); return the change in length."""
    n = w.tour.shape[0]
    longest = min(_LONGEST, max(_SHORTEST, _CITIES_OF_SHORTER // n), (n - 2) // 3)
    start = next_below(stream, n)
    l1, l2, l3 = (
        1 + next_below(stream, longest),
        1 + next_below(stream, longest),
        1 + next_below(stream, longest),
    )
    whole = l1 + l2 + l3
    for i in range(whole):
        w.stretches.moved[i] = w.tour[(start + i) % n]
    a, d = w.tour[start - 1 if start > 0 else n - 1], w.tour[(start + whole) % n]
    b1, b2, c1 = w.stretches.moved[0], w.stretches.moved[l1 - 1], w.stretches.moved[l1]
    c2, d1, d2 = w.stretches.moved[l1 + l2 - 1], w.stretches.moved[l1 + l2], w.stretches.moved[whole - 1]
    for i in range(whole):
        if i < l3:
            city = w.stretches.moved[l1 + l2 + i]
        elif i < l3 + l2:
            city = w.stretches.moved[l1 + i - l3]
        else:
            city = w.stretches.moved[i - l3 - l2]
        p = (start + i) % n
        w.tour[p] = city
        w.position[city] = p
    for city in (a, b1, b2, c1, c2, d1, d2, d):
        push(w, city)
    joined = weighted(costs, w, a, d1) + weighted(costs, w, d2, c1)
    joined += weighted(costs, w, c2, b1) + weighted(costs, w, b2, d)
    parted = weighted(costs, w, a, b1) + weighted(costs, w, b2, c1)
    parted += weighted(costs, w, c2, d1) + weighted(costs, w, d2, d)
    return joined - parted


@compiled
def descend(costs, w, weights, tours, kicks, streams, first, last, stop):  # type: ignore[no-untyped-def]
    """Improve tours first .. last-1 of (m, n), each under its weights (m, k), by ``kicks`` kicks and repairs.

    Ends soon once ``stop[0]`` is 1; tours are valid then.
    """
    n = tours.shape[1]
    for i in range(first, last):
        if stop[0]:
            return
        weigh(costs, weights[i], w, True)
        put(tours[i], w)
        length = 0.0
        for p in range(n):
            length += weighted(costs, w, w.tour[p], w.tour[p + 1 if p + 1 < n else 0])
            push(w, w.tour[p])
        tiny = _ROUNDING * length
        _settle(costs, w, tiny, stop)
        _agree(w, False)
        for _ in range(kicks):
            if stop[0]:
                break
            change = _kick(costs, w, streams[i])
            change += _settle(costs, w, tiny, stop)
            _agree(w, change >= tiny)
        for p in range(n):
            tours[i, p] = w.accepted[p]


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
def slide(costs, w, way, tour, first, last, points, stop):  # type: ignore[no-untyped-def]
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
            push(w, w.tour[p])
        while w.ring[1] > 0:
            city = pop(w)
            exchanges = 1
            while exchanges > 0 and left < most and not stop[0]:
                exchanges, _ = improve(costs, w, city, _ROUNDING * length)
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
