"""Edge assembly: tours take over from each other whatever makes them shorter, one AB-cycle after another.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). The edges that two tours A and B do not share are parted into cycles
that alternate between both. Such a cycle is an exchange for A: its edges of A go, its edges of B come. What is then
several subtours is joined again by the cheapest exchange of two edges, the smallest first.

Where `merge` takes whole components of the difference, this looks at their parts. Annealed tours differ in a thousand
edges that hang together and gain nothing; what one of them does better is then in no component of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.exchange.merge import adjacent
from pymoo_gpuaco.exchange.stretches import sort
from pymoo_gpuaco.host.compiled import compiled, inlined, inner
from pymoo_gpuaco.host.distances import distance, stays
from pymoo_gpuaco.host.keys import generator, key_of_part
from pymoo_gpuaco.host.philox import STREAM_ASSEMBLY, new_stream, next_word
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.host.threads import thread_count

# Hardly anything is left to take over after some ten generations.
MOST_GENERATIONS = 12
# Cities of a subtour, in either direction from where it is cut, from which edges to others are looked for: the best lie
# where the AB-cycle does, and subtours may be long.
MOST_LOOKED_AT = 1000
# A gain below this share of an edge is rounding.
LEAST_GAIN = 1e-9

_A, _B = 0, 1


class Room(NamedTuple):
    """Where one thread works on tours of n cities."""

    order: NDArray[np.int32]  # (n,) tour A
    place: NDArray[np.int32]  # (n,) of each city in it
    beside: NDArray[np.int32]  # (n, 2) each city's neighbours in A, or in the subtours that are to be joined
    rest: NDArray[np.int32]  # (2, n, 2) other ends of edges that only A has, or only B, and no AB-cycle yet
    unused: NDArray[np.int64]  # (2, n) how many they are
    left_at: NDArray[np.int64]  # (2, n) step at which the path left a city by an edge of A, or of B, or -1
    path: NDArray[np.int32]  # (2n + 1,) cities
    cycles: NDArray[np.int32]  # (2n,) cities of all AB-cycles; each begins with an edge of A
    first: NDArray[np.int64]  # (n + 1,) cycle c has the cities first[c] .. first[c+1]-1
    cuts: NDArray[np.int64]  # (n,) places after which A is cut, ascending; stretch s ends with cut s
    joined: NDArray[np.int64]  # (2n,) end joined to an end: stretch s begins with 2s and ends with 2s + 1
    subtour: NDArray[np.int64]  # (n,) of a stretch
    size: NDArray[np.int64]  # (n,) cities of a subtour, 0 once it is part of another
    touched: NDArray[np.int32]  # (4n,) cities whose neighbours have changed
    places: NDArray[np.int64]  # (4n,) of them, ascending


def make_room(n: int) -> Room:
    """Allocate the arrays."""
    return Room(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty((n, 2), np.int32),
        np.empty((2, n, 2), np.int32),
        np.empty((2, n), np.int64),
        np.empty((2, n), np.int64),
        np.empty(2 * n + 1, np.int32),
        np.empty(2 * n, np.int32),
        np.empty(n + 1, np.int64),
        np.empty(n, np.int64),
        np.empty(2 * n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(4 * n, np.int32),
        np.empty(4 * n, np.int64),
    )


def assemble(graph: Graph, tours: NDArray[np.int32], key: int, stop: Stop | None = None) -> NDArray[np.int32]:
    """Let each of the tours (m, n) take over from others until none gets shorter; return them, in their order.

    In every generation each tour is A once and B once. No tour gets longer, and none is written to. The distances of
    ``graph`` must be symmetric, n >= 3. ``key`` in [0, 2**64) decides everything, unless ``stop`` ends it early.

    Raises ValueError where a row is no permutation of 0 .. n-1.
    """
    m, n = tours.shape
    tours = checks.permutations("tours", tours, n).astype(np.int32)
    rooms = [make_room(n) for _ in range(min(thread_count(), m))]
    stop = Stop() if stop is None else stop
    stop.lower()
    for generation in range(MOST_GENERATIONS if m > 1 else 0):
        shorter = _generation(graph, tours, key_of_part(key, generation), rooms, stop)
        if stop.raised() or not shorter:
            break
    return tours


def _generation(
    graph: Graph,
    tours: NDArray[np.int32],
    key: int,
    rooms: list[Room],
    stop: Stop,
) -> bool:
    """Let each tour take over from another; whether any has become shorter. A room a thread."""
    m = len(tours)
    ring = generator(key, m).permutation(m)
    before, gains = tours.copy(), np.zeros(m)

    def work(thread: int, first: int, last: int) -> None:
        room = rooms[thread]
        for i in range(first, last):
            a, b = ring[i], ring[(i + 1) % m]
            stream = new_stream(np.uint64(key), i, STREAM_ASSEMBLY)
            gains[i] = _take_over(graph, before[a], before[b], stream, room, stop.flag)
            tours[a] = room.order

    stop.spread(work, m, len(rooms))
    return bool(gains.any())


@compiled
def _take_over(graph, tour, other, stream, room, stop):  # type: ignore[no-untyped-def]
    """Make ``room.order`` the tour A with what it takes over from B, ``other``; return how much shorter it is."""
    n = tour.shape[0]
    for p in range(n):
        room.order[p] = tour[p]
        room.beside[tour[p], 0] = tour[p - 1 if p > 0 else n - 1]
        room.beside[tour[p], 1] = tour[p + 1 if p + 1 < n else 0]
        room.place[other[p]] = p  # in B, until the difference is known
    _find_difference(other, room)
    for p in range(n):
        room.place[tour[p]] = p
    cycles = _find_cycles(stream, room)
    total = 0.0
    for c in range(cycles):
        if stop[0]:
            break
        gain = _try_cycle(graph, room, room.first[c], room.first[c + 1])
        if gain > 0.0:
            total += gain
    return total


@inner
def _find_difference(other, room):  # type: ignore[no-untyped-def]
    """Note at both ends every edge that only one tour has; ``room.place`` holds the places in ``other``."""
    n = room.order.shape[0]
    for city in range(n):
        p = room.place[city]
        before, after = other[p - 1 if p > 0 else n - 1], other[p + 1 if p + 1 < n else 0]
        u, v = room.beside[city, 0], room.beside[city, 1]
        room.unused[_A, city] = room.unused[_B, city] = 0
        room.left_at[_A, city] = room.left_at[_B, city] = -1
        if u != before and u != after:
            _note(room, _A, city, u)
        if v != before and v != after:
            _note(room, _A, city, v)
        if before != u and before != v:
            _note(room, _B, city, before)
        if after != u and after != v:
            _note(room, _B, city, after)


@inlined
def _note(room, kind, city, end):  # type: ignore[no-untyped-def]
    room.rest[kind, city, room.unused[kind, city]] = end
    room.unused[kind, city] += 1


@inlined
def _drop(room, kind, city, at):  # type: ignore[no-untyped-def]
    """The edge ``at`` of a city is used."""
    room.unused[kind, city] -= 1
    room.rest[kind, city, at] = room.rest[kind, city, room.unused[kind, city]]


@inner
def _find_cycles(stream, room):  # type: ignore[no-untyped-def]
    """Part the difference into AB-cycles; return how many.

    A path goes on by edges of A and B in turn, of two that are left by any. Where it comes to a city that it has left
    by an edge of the kind whose turn it is, what lies between is a cycle and is taken off its end.
    """
    n = room.order.shape[0]
    found = 0
    room.first[0] = 0
    for start in range(n):
        while room.unused[_A, start] > 0:
            room.path[0] = city = start
            steps, kind = 0, _A
            while True:
                at = 0
                if room.unused[kind, city] > 1:
                    at = np.int64(next_word(stream) & np.uint64(1))
                to = room.rest[kind, city, at]
                _drop(room, kind, city, at)
                _drop(room, kind, to, 0 if room.rest[kind, to, 0] == city else 1)
                room.left_at[kind, city] = steps
                steps += 1
                room.path[steps] = city = to
                kind = 1 - kind
                begun = room.left_at[kind, city]
                if begun >= 0:
                    _take_off(room, found, begun, steps, kind)
                    found += 1
                    steps = begun
                    if steps == 0:
                        break
    return found


@inlined
def _take_off(room, cycle, begun, steps, kind):  # type: ignore[no-untyped-def]
    """Write the end of the path as a cycle; its first edge is of the kind."""
    length, first = steps - begun, room.first[cycle]
    for i in range(length):
        # an edge later where it begins with one of B
        room.cycles[first + i] = room.path[begun + (i + kind) % length]
        room.left_at[(kind + i) & 1, room.path[begun + i]] = -1
    room.first[cycle + 1] = first + length


@inner
def _try_cycle(graph, room, first, last):  # type: ignore[no-untyped-def]
    """Apply the AB-cycle of the cities first .. last-1 if that makes A shorter; return by how much, else 0."""
    n, c = room.order.shape[0], room.cycles
    gain = least = 0.0
    for i in range(first, last, 2):
        u, v, w = c[i], c[i + 1], c[i + 2 if i + 2 < last else first]
        # cycles before this one have joined subtours by other edges
        if not adjacent(n, room.place[u], room.place[v]) or adjacent(n, room.place[v], room.place[w]):
            return 0.0
        shorter = distance(graph, u, v)
        gain += shorter - distance(graph, v, w)
        least = max(least, LEAST_GAIN * shorter)
    if gain <= least:
        return 0.0
    stretches = _cut(room, first, last)
    subtours = _find_subtours(room, first, last, stretches)
    touched = _exchange(room, first, last)
    left = subtours
    while left > 1 and gain > least:
        joined = _join_smallest(graph, room, stretches, subtours, touched)
        gain += joined
        left -= 1
        if joined > -np.inf:
            touched += 4
    if gain > least:
        _lay_out(room, touched)
        return gain
    for i in range(touched):
        city = room.touched[i]
        p = room.place[city]
        room.beside[city, 0] = room.order[p - 1 if p > 0 else n - 1]
        room.beside[city, 1] = room.order[p + 1 if p + 1 < n else 0]
    return 0.0


@inlined
def _cut(room, first, last):  # type: ignore[no-untyped-def]
    """Cut A where the cycle takes edges out; return the number of stretches."""
    count = 0
    for i in range(first, last, 2):
        p, q = room.place[room.cycles[i]], room.place[room.cycles[i + 1]]
        # the seam lies behind the last place
        room.cuts[count] = min(p, q) if abs(p - q) == 1 else max(p, q)
        count += 1
    sort(room.cuts, count)
    return count


@inlined
def _stretch(room, stretches, city):  # type: ignore[no-untyped-def]
    """Stretch in which a city lies; the first one begins behind the last cut."""
    p, low, high = room.place[city], 0, stretches
    while low < high:
        middle = (low + high) // 2
        if room.cuts[middle] < p:
            low = middle + 1
        else:
            high = middle
    return low if low < stretches else 0


@inlined
def _end_at(room, stretches, city):  # type: ignore[no-untyped-def]
    """A free end of a stretch at which a city lies; a city alone is both of its ends."""
    n, s = room.order.shape[0], _stretch(room, stretches, city)
    begins = room.cuts[s - 1 if s > 0 else stretches - 1] + 1
    if begins == n:
        begins = 0
    is_first = room.place[city] == begins
    if is_first and begins == room.cuts[s] and room.joined[2 * s] >= 0:
        is_first = False
    return 2 * s if is_first else 2 * s + 1


@inner
def _find_subtours(room, first, last, stretches):  # type: ignore[no-untyped-def]
    """Join stretches by the cycle's edges of B; number the subtours that they are then, and return how many."""
    n = room.order.shape[0]
    for e in range(2 * stretches):
        room.joined[e] = -1
    for i in range(first + 1, last, 2):
        one = _end_at(room, stretches, room.cycles[i])
        room.joined[one] = one  # no longer free
        other = _end_at(room, stretches, room.cycles[i + 1 if i + 1 < last else first])
        room.joined[one], room.joined[other] = other, one
    for s in range(stretches):
        room.subtour[s] = -1
    subtours = 0
    for s in range(stretches):
        if room.subtour[s] >= 0:
            continue
        size, end = 0, 2 * s
        while room.subtour[end >> 1] < 0:
            at = end >> 1
            room.subtour[at] = subtours
            size += room.cuts[at] - (room.cuts[at - 1] if at > 0 else room.cuts[stretches - 1] - n)
            end = room.joined[end ^ 1]
        room.size[subtours] = size
        subtours += 1
    return subtours


@inlined
def _replace(room, city, old, new):  # type: ignore[no-untyped-def]
    """Make a city's neighbour another one."""
    room.beside[city, 0 if room.beside[city, 0] == old else 1] = new


@inlined
def _exchange(room, first, last):  # type: ignore[no-untyped-def]
    """Give the cities of the cycle their neighbours by B for those by A; return how many cities are touched."""
    c, touched = room.cycles, 0
    for i in range(first, last, 2):
        _replace(room, c[i], c[i + 1], -1)
        _replace(room, c[i + 1], c[i], -1)
    for i in range(first, last, 2):
        v, w = c[i + 1], c[i + 2 if i + 2 < last else first]
        _replace(room, v, -1, w)
        _replace(room, w, -1, v)
        room.touched[touched], room.touched[touched + 1] = v, w
        touched += 2
    return touched


@inner
def _join_smallest(graph, room, stretches, subtours, touched):  # type: ignore[no-untyped-def]
    """Join the smallest subtour with another by the best exchange of two edges; return its gain, mostly negative.

    A city of the smallest gets a candidate outside as a neighbour. -inf where no candidate of it lies outside.
    """
    smallest = -1
    for t in range(subtours):
        if room.size[t] > 0 and (smallest < 0 or room.size[t] < room.size[smallest]):
            smallest = t
    stretch = 0
    while room.subtour[stretch] != smallest:
        stretch += 1
    start = room.order[room.cuts[stretch]]
    most, u, v, u_next, v_next = -np.inf, -1, -1, -1, -1
    for way in range(2):  # from where it is cut on, in both directions
        previous, city = start, room.beside[start, way]
        for _ in range(MOST_LOOKED_AT):
            for r in range(graph.neighbours.shape[1]):
                near = graph.neighbours[city, r]
                if room.subtour[_stretch(room, stretches, near)] == smallest:
                    continue
                added = distance(graph, city, near)
                for i in range(2):
                    a = room.beside[city, i]
                    if stays(graph, city, a):
                        continue
                    left = distance(graph, city, a) - added
                    for j in range(2):
                        b = room.beside[near, j]
                        if stays(graph, near, b):
                            continue
                        gain = left + distance(graph, near, b) - distance(graph, a, b)
                        if gain > most:
                            most, u, v, u_next, v_next = gain, city, near, a, b
            if city == start:
                break
            onward = room.beside[city, 0 if room.beside[city, 1] == previous else 1]
            previous, city = city, onward
        if city == start:
            break  # all of it has been seen
    if u < 0:
        return most
    into = room.subtour[_stretch(room, stretches, v)]
    room.size[into] += room.size[smallest]
    room.size[smallest] = 0
    for s in range(stretches):
        if room.subtour[s] == smallest:
            room.subtour[s] = into
    _replace(room, u, u_next, v)
    _replace(room, v, v_next, u)
    _replace(room, u_next, u, v_next)
    _replace(room, v_next, v, u_next)
    room.touched[touched], room.touched[touched + 1] = u, v
    room.touched[touched + 2], room.touched[touched + 3] = u_next, v_next
    return most


@inner
def _lay_out(room, touched):  # type: ignore[no-untyped-def]
    """Lay the tour out as ``room.beside`` has it; what lies between no cities touched, at most, stays in its place."""
    n, places = room.order.shape[0], room.places
    for i in range(touched):
        places[i] = room.place[room.touched[i]]
    sort(places, touched)
    begin, longest = places[touched - 1], places[0] + n - places[touched - 1]
    for i in range(1, touched):
        if places[i] - places[i - 1] > longest:
            begin, longest = places[i - 1], places[i] - places[i - 1]
    p = begin + longest if begin + longest < n else begin + longest - n
    previous, city, steps = room.order[p - 1 if p > 0 else n - 1], room.order[p], n - longest - 1
    if longest == 1:  # every city is touched
        previous, steps = -1, n - 1
    for _ in range(steps):
        onward = room.beside[city, 1 if room.beside[city, 0] == previous else 0]
        previous, city = city, onward
        p = p + 1 if p + 1 < n else 0
        room.order[p], room.place[city] = city, p
