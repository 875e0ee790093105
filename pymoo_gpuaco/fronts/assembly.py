"""Edge assembly of members of a front: tours between two of its tours, an AB-cycle of theirs at a time.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013): tour A with the edges of B along one AB-cycle, its subtours joined by
exchanges of two edges, the shortest first. Here it is shortest by a weighted sum, and every such tour is a child.

What chains of few exchanges do not lead to, this may: two members differ in many edges at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.exchange.ab_cycles import Cycles, find_cycles, make_cycles
from pymoo_gpuaco.fronts.costs import Costs, cost
from pymoo_gpuaco.host.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.host.philox import STREAM_ASSEMBLY, new_stream
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.host.threads import thread_count

MOST_OF_PAIR = 32  # children of one pair of members
_BREADTH = 10  # candidates of a city that subtours are joined by


class Room(NamedTuple):
    """Where one thread works on tours of n cities."""

    positions: NDArray[np.int32]  # (2, n) of each city in A and in B
    cycles: Cycles
    links: NDArray[np.int32]  # (n, 2) the neighbours of each city
    subtour: NDArray[np.int32]  # (n,) number of each city's subtour
    sizes: NDArray[np.int32]  # (n,) cities of each subtour
    children: NDArray[np.int32]  # (MOST_OF_PAIR, n)


def make_room(n: int) -> Room:
    """Allocate the arrays."""
    return Room(
        np.empty((2, n), np.int32),
        make_cycles(n),
        np.empty((n, 2), np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty((MOST_OF_PAIR, n), np.int32),
    )


def assembled(
    costs: Costs,
    tours: NDArray[np.int32],
    others: NDArray[np.int32],
    weights: NDArray[np.float64],
    key: int,
    stop: Stop,
) -> NDArray[np.int32]:
    """Return children (e, n) of tours (m, n), each with the one of ``others`` (m, n) in its row, in order.

    weights : (m, k) under which a pair's subtours are joined.
    key : in [0, 2**64); decides everything, unless ``stop`` ends it early.
    """
    m, n = tours.shape
    rooms = [make_room(n) for _ in range(max(1, min(thread_count(), m)))]
    parts: dict[int, NDArray[np.int32]] = {}

    def work(thread: int, pairs: Iterator[int]) -> None:
        room = rooms[thread]
        for i in pairs:
            stream = new_stream(np.uint64(key), i, STREAM_ASSEMBLY)
            born = breed_pair(costs, weights[i], tours[i], others[i], stream, room, stop.flag)
            parts[i] = room.children[:born].copy()

    stop.share(work, m, len(rooms))
    return np.concatenate([np.empty((0, n), np.int32), *(parts[i] for i in sorted(parts))])


@compiled
def breed_pair(costs, weights, a, b, stream, room, stop):  # type: ignore[no-untyped-def]
    """Write the children of the tours a and b to ``room.children``; return how many there are."""
    n, cycles, links = a.shape[0], room.cycles, room.links
    for p in range(n):
        room.positions[0, a[p]] = p
        room.positions[1, b[p]] = p
    found = find_cycles(a, room.positions[0], b, room.positions[1], n, stream, cycles)
    born = 0
    for cycle in range(found):
        if stop[0] or born == room.children.shape[0]:
            break
        for p in range(n):
            links[a[p], 0] = a[p - 1 if p > 0 else n - 1]
            links[a[p], 1] = a[p + 1 if p + 1 < n else 0]
        first, last = cycles.first[cycle], cycles.first[cycle + 1]
        # all edges of A leave before one of B joins: until then a city may have lost both of its own
        for i in range(first, last, 2):
            _unlink(links, cycles.cities[i], cycles.cities[i + 1])
        for i in range(first, last, 2):
            _link(links, cycles.cities[i + 1], cycles.cities[i + 2 if i + 2 < last else first])
        if not _join(costs, weights, room):
            continue
        _write(links, room.children[born])
        born += 1
    return born


@inlined
def _unlink(links, u, v):  # type: ignore[no-untyped-def]
    links[u, 0 if links[u, 0] == v else 1] = -1
    links[v, 0 if links[v, 0] == u else 1] = -1


@inlined
def _link(links, u, v):  # type: ignore[no-untyped-def]
    links[u, 0 if links[u, 0] < 0 else 1] = v
    links[v, 0 if links[v, 0] < 0 else 1] = u


@inlined
def _next(links, before, city):  # type: ignore[no-untyped-def]
    return links[city, 0] if links[city, 0] != before else links[city, 1]


@inlined
def _weighted(costs, weights, u, v):  # type: ignore[no-untyped-def]
    total = 0.0
    for q in range(weights.shape[0]):
        total += weights[q] * cost(costs, q, u, v)
    return total


@compiled_callee
def _join(costs, weights, room):  # type: ignore[no-untyped-def]
    """Join the subtours to one, the smallest first; whether candidates have allowed it."""
    n, links, subtour, sizes = room.links.shape[0], room.links, room.subtour, room.sizes
    subtour[:] = -1
    parts = 0
    for start in range(n):
        if subtour[start] >= 0:
            continue
        sizes[parts] = 0
        before, city = links[start, 1], np.int32(start)
        while subtour[city] < 0:
            subtour[city] = parts
            sizes[parts] += 1
            before, city = city, _next(links, before, city)
        parts += 1
    left, breadth = parts, min(_BREADTH, costs.neighbours.shape[1])
    while left > 1:
        small = -1
        for s in range(parts):
            if sizes[s] > 0 and (small < 0 or sizes[s] < sizes[small]):
                small = s
        least, u1, u2, v1, v2 = np.inf, 0, 0, 0, 0
        for u in range(n):
            if subtour[u] != small:
                continue
            for r in range(breadth):
                v = costs.neighbours[u, r]
                if subtour[v] == small:
                    continue
                joined = _weighted(costs, weights, u, v)
                for x in range(2):
                    uu = links[u, x]
                    gone = _weighted(costs, weights, u, uu)
                    for y in range(2):
                        vv = links[v, y]
                        more = joined + _weighted(costs, weights, uu, vv)
                        more -= gone + _weighted(costs, weights, v, vv)
                        if more < least:
                            least, u1, u2, v1, v2 = more, u, uu, v, vv
        if least == np.inf:
            return False
        _unlink(links, u1, u2)
        _unlink(links, v1, v2)
        _link(links, u1, v1)
        _link(links, u2, v2)
        other = subtour[v1]
        for city in range(n):
            if subtour[city] == small:
                subtour[city] = other
        sizes[other] += sizes[small]
        sizes[small] = 0
        left -= 1
    return True


@compiled_callee
def _write(links, tour):  # type: ignore[no-untyped-def]
    """Write the one tour (n,) that the links are."""
    before, city = links[0, 1], np.int32(0)
    for p in range(tour.shape[0]):
        tour[p] = city
        before, city = city, _next(links, before, city)
