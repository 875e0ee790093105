"""A child of tours A and B: A with the edges of B of some AB-cycles instead of those of A, joined to one tour.

A does not change, and the cost depends on the number k of changed edges: without k edges A is k stretches. Most
AB-cycles give one tour, or one long subtour and a few small ones. The best exchange of two edges joins each small one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pymoo_gpuaco.memetic.ab_cycles import count_regions
from pymoo_gpuaco.memetic.partition_crossover import adjacent
from pymoo_gpuaco.memetic.stretches import (
    Stretches,
    begin_of,
    cities_in,
    cut,
    find_subtours,
    join,
    make_stretches,
    sort,
    stretch_at,
)
from pymoo_gpuaco.problems.metrics import distance, stays
from pymoo_gpuaco.runtime.compiled import Int32_1d, Int32_2d, Int64_1d, compiled_callee, inlined, struct

_LONGEST = 2.0**50  # upper limit of an edge, in whole units; only forbidden edges exceed it

# Gain if there is no child: too many edges change, or a subtour has no candidate in another subtour.
REFUSED = -(2**62)

# Cities from either end of a subtour's stretch that may join it to another subtour, if tours have several regions. 8
# tours of 200,000 cities gained as much with 50 or 500 cities as with all, in a tenth of the time.
REACH = 50

_NONE = -1


@struct
class Child(NamedTuple):
    """Child of two tours, see `make_child`."""

    removed: Int32_2d
    added: Int32_2d
    counts: Int64_1d
    stretches: Stretches
    first_of: Int64_1d
    last_of: Int64_1d
    after: Int64_1d
    of_smallest: Int64_1d
    row: Int32_1d
    cities: Int32_1d
    neighbours: Int32_2d
    seen: Int32_1d
    searches: Int32_1d
    reach: int


def make_child(n: int, most: int) -> Child:
    """Allocate the arrays for children with up to ``most`` changed edges of n."""
    return Child(
        removed=np.empty((most, 2), np.int32),  # edges of A that the child lacks, as pairs of cities
        added=np.empty((most, 2), np.int32),  # edges that replace them
        # number of removed edges, of added edges (equal between calls), and of rows of ``neighbours``
        counts=np.zeros(3, np.int64),
        stretches=make_stretches(n, most),
        # first and last stretch of each subtour, in any order, and the next one of the same subtour
        first_of=np.empty(most, np.int64),
        last_of=np.empty(most, np.int64),
        after=np.empty(most, np.int64),
        of_smallest=np.empty(most, np.int64),  # stretches of the smallest subtour, ascending
        row=np.full(n, -1, np.int32),  # row of a city in ``neighbours``, or -1; -1 between calls
        cities=np.empty(2 * most, np.int32),  # city of each row
        # neighbours in the child of cities whose neighbours differ from A
        neighbours=np.empty((2 * most, 2), np.int32),
        seen=np.zeros(n, np.int32),  # number of the latest search in whose subtour a city was
        searches=np.zeros(1, np.int32),  # number of searches
        reach=n if count_regions(n) == 1 else REACH,  # see ``REACH``
    )


@inlined
def units(graph, scale, u, v):  # type: ignore[no-untyped-def]
    """Return the length of an edge in whole units, limited so that a sum of a thousand edges does not overflow."""
    return np.int64(min(np.floor(distance(graph, u, v) * scale + 0.5), _LONGEST))


@inlined
def _neighbour(a, position, child, city, way):  # type: ignore[no-untyped-def]
    """Return one of the two neighbours of a city in the child."""
    row = child.row[city]
    if row >= 0:
        return child.neighbours[row, way]
    n, p = a.shape[0], position[city]
    if way == 0:
        return a[p - 1 if p > 0 else n - 1]
    return a[p + 1 if p + 1 < n else 0]


@inlined
def _replace_neighbour(a, position, child, city, old, new):  # type: ignore[no-untyped-def]
    """Replace the neighbour ``old`` of a city by ``new``."""
    row = child.row[city]
    if row < 0:
        row = child.counts[2]
        before, after = _neighbour(a, position, child, city, 0), _neighbour(a, position, child, city, 1)
        child.neighbours[row, 0], child.neighbours[row, 1] = before, after
        child.row[city], child.cities[row] = row, city
        child.counts[2] += 1
    child.neighbours[row, 0 if child.neighbours[row, 0] == old else 1] = new


@compiled_callee
def _store_neighbours(a, position, k, child):  # type: ignore[no-untyped-def]
    """Store the neighbours in the child of all ends of stretches."""
    child.counts[2] = 0
    for i in range(k):
        u, v = child.removed[i, 0], child.removed[i, 1]
        _replace_neighbour(a, position, child, u, v, _NONE)
        _replace_neighbour(a, position, child, v, u, _NONE)
    for i in range(k):
        u, v = child.added[i, 0], child.added[i, 1]
        _replace_neighbour(a, position, child, u, _NONE, v)
        _replace_neighbour(a, position, child, v, _NONE, u)


@inlined
def _within_reach(stretch, n, k, child):  # type: ignore[no-untyped-def]
    """Return the number of cities of a stretch within reach: they may join its subtour to another."""
    return min(cities_in(stretch, n, k, child.stretches.cuts), 2 * child.reach)


@inlined
def _position_of(t, stretch, n, k, child):  # type: ignore[no-untyped-def]
    """Return the position of the t-th city within reach of either end of a stretch."""
    left_out = max(cities_in(stretch, n, k, child.stretches.cuts) - 2 * child.reach, 0)
    p = begin_of(stretch, n, k, child.stretches.cuts) + t + (left_out if t >= child.reach else 0)
    return p if p < n else p - n


@inlined
def _in_a(position, u, v):  # type: ignore[no-untyped-def]
    """Return True if A has the edge."""
    return adjacent(position.shape[0], position[u], position[v])


@inlined
def _exchange(a, position, child, u, u_next, v, v_next):  # type: ignore[no-untyped-def]
    """Replace the edges u-u_next and v-v_next of the child by u-v and u_next-v_next."""
    removed, added, counts = child.removed, child.added, child.counts
    _change(counts, removed, 0, added, 1, u, u_next, not _in_a(position, u, u_next))
    _change(counts, removed, 0, added, 1, v, v_next, not _in_a(position, v, v_next))
    _change(counts, added, 1, removed, 0, u, v, _in_a(position, u, v))
    _change(counts, added, 1, removed, 0, u_next, v_next, _in_a(position, u_next, v_next))
    _replace_neighbour(a, position, child, u, u_next, v)
    _replace_neighbour(a, position, child, v, v_next, u)
    _replace_neighbour(a, position, child, u_next, u, v_next)
    _replace_neighbour(a, position, child, v_next, v, u_next)


@compiled_callee
def _change(counts, edges, at, others, at_others, u, v, is_other):  # type: ignore[no-untyped-def]
    """Add an edge to ``edges``; if it is in ``others``, remove it there instead, because both changes cancel."""
    if is_other:
        i, last = 0, counts[at_others] - 1
        while not (others[i, 0] == u and others[i, 1] == v) and not (others[i, 0] == v and others[i, 1] == u):
            i += 1
        others[i, 0], others[i, 1] = others[last, 0], others[last, 1]
        counts[at_others] = last
    else:
        row = counts[at]
        edges[row, 0], edges[row, 1] = u, v
        counts[at] = row + 1


@compiled_callee
def _list_stretches(k, child):  # type: ignore[no-untyped-def]
    """List the ``k`` stretches of each subtour."""
    subtour = child.stretches.subtour
    for stretch in range(k):
        child.first_of[subtour[stretch]] = _NONE
    for stretch in range(k):
        _append_stretches(subtour[stretch], stretch, stretch, child)


@inlined
def _append_stretches(subtour, first, last, child):  # type: ignore[no-untyped-def]
    """Append a list of stretches to that of a subtour."""
    if child.first_of[subtour] == _NONE:
        child.first_of[subtour] = first
    else:
        child.after[child.last_of[subtour]] = first
    child.last_of[subtour] = last
    child.after[last] = _NONE


@compiled_callee
def _find_smallest(subtours, child):  # type: ignore[no-untyped-def]
    """Return the smallest subtour and the number of its stretches, which are written to ``of_smallest``."""
    size, smallest = child.stretches.size, np.int64(_NONE)
    for subtour in range(subtours):
        if size[subtour] > 0 and (smallest < 0 or size[subtour] < size[smallest]):
            smallest = np.int64(subtour)
    count, stretch = 0, child.first_of[smallest]
    while stretch != _NONE:
        child.of_smallest[count] = stretch
        count += 1
        stretch = child.after[stretch]
    sort(child.of_smallest, count)
    return smallest, count


@compiled_callee
def _mark_reachable(a, k, count, child):  # type: ignore[no-untyped-def]
    """Begin a search from the smallest subtour: mark its cities that may be joined to another one."""
    child.searches[0] += 1
    for i in range(count):
        stretch = child.of_smallest[i]
        for t in range(_within_reach(stretch, a.shape[0], k, child)):
            child.seen[a[_position_of(t, stretch, a.shape[0], k, child)]] = child.searches[0]


def breeder(length: Any) -> tuple[Any, Any]:
    """Return compiled `breed` and `cycle_gain` for a compiled ``length(graph, scale, u, v)`` of edges in whole units.

    ``graph`` may be of any type with the field ``partner`` of a `Graph`.
    """

    @compiled_callee
    def best_exchange(graph, scale, near, a, position, k, smallest, count, child):  # type: ignore[no-untyped-def]
        """Find the best exchange that joins the smallest subtour to another.

        Returns its gain, its city in the smallest subtour and that city's neighbour, and the same in the other subtour.
        The gain is REFUSED and the cities are -1 if there is none.
        """
        n, s, search = a.shape[0], child.stretches, child.searches[0]
        most = np.int64(REFUSED)
        u = v = u_next = v_next = np.int64(-1)
        for i in range(count):
            stretch = child.of_smallest[i]
            for t in range(_within_reach(stretch, n, k, child)):
                city = a[_position_of(t, stretch, n, k, child)]
                one, two = _neighbour(a, position, child, city, 0), _neighbour(a, position, child, city, 1)
                one_stays, two_stays = stays(graph, city, one), stays(graph, city, two)
                to_one, to_two = length(graph, scale, city, one), length(graph, scale, city, two)
                for r in range(near.shape[1]):
                    other = near[city, r]
                    if child.seen[other] == search:
                        continue
                    added = length(graph, scale, city, other)
                    for way in range(2):
                        end = _neighbour(a, position, child, other, way)
                        if stays(graph, other, end):
                            continue
                        left = length(graph, scale, other, end) - added
                        by_one = to_one + left - length(graph, scale, one, end)
                        by_two = to_two + left - length(graph, scale, two, end)
                        if (
                            max(by_one, by_two) <= most
                            or s.subtour[stretch_at(position[other], k, s.cuts)] == smallest
                        ):
                            continue
                        if by_one > most and not one_stays:
                            most, u, v, u_next, v_next = by_one, city, other, one, end
                        if by_two > most and not two_stays:
                            most, u, v, u_next, v_next = by_two, city, other, two, end
        return most, u, u_next, v, v_next

    @compiled_callee
    def join_smallest(graph, scale, near, a, position, k, subtours, child):  # type: ignore[no-untyped-def]
        """Join the smallest subtour to another by the best exchange of two edges; return its gain, mostly negative.

        A city of the smallest subtour and a candidate in another subtour become neighbours. Returns REFUSED if there is
        no such candidate.
        """
        s = child.stretches
        smallest, count = _find_smallest(subtours, child)
        _mark_reachable(a, k, count, child)
        gain, u, u_next, v, v_next = best_exchange(graph, scale, near, a, position, k, smallest, count, child)
        if u < 0:
            return gain
        into = s.subtour[stretch_at(position[v], k, s.cuts)]
        s.size[into] += s.size[smallest]
        s.size[smallest] = 0
        for i in range(count):
            s.subtour[child.of_smallest[i]] = into
        _append_stretches(into, child.first_of[smallest], child.last_of[smallest], child)
        _exchange(a, position, child, u, u_next, v, v_next)
        return gain

    @compiled_callee
    def cycle_gain(graph, scale, c, cycle):  # type: ignore[no-untyped-def]
        """Return the length of an AB-cycle's edges of A minus that of B, in whole units.

        This is the gain of the child if it is one tour. Joining subtours is rarely a gain.
        """
        first, last, gain = c.first[cycle], c.first[cycle + 1], np.int64(0)
        for i in range(first, last, 2):
            u, v, w = c.cities[i], c.cities[i + 1], c.cities[i + 2 if i + 2 < last else first]
            gain += length(graph, scale, u, v) - length(graph, scale, v, w)
        return gain

    @compiled_callee
    def breed(graph, scale, near, a, position, c, chosen, count, child):  # type: ignore[no-untyped-def]
        """Make the child with the first ``count`` AB-cycles ``chosen`` of ``c``; return its gain in whole units.

        Its edges are those of A without ``child.removed``, and ``child.added``. Returns REFUSED if there is no child.
        """
        most, n, k = child.removed.shape[0], a.shape[0], 0
        gain = np.int64(0)
        for number in range(count):
            first, last = c.first[chosen[number]], c.first[chosen[number] + 1]
            if k + (last - first) // 2 > most:
                return REFUSED
            gain += cycle_gain(graph, scale, c, chosen[number])
            for i in range(first, last, 2):
                u, v, w = c.cities[i], c.cities[i + 1], c.cities[i + 2 if i + 2 < last else first]
                child.removed[k, 0], child.removed[k, 1] = u, v
                child.added[k, 0], child.added[k, 1] = v, w
                k += 1
        child.counts[0] = child.counts[1] = k
        s = child.stretches
        cut(position, child.removed, k, s)
        join(position, child.added, k, s)
        subtours = find_subtours(n, k, s)
        if subtours == 1:
            return gain
        if k + 2 * subtours > most:
            return REFUSED
        _store_neighbours(a, position, k, child)
        _list_stretches(k, child)
        for _ in range(subtours - 1):
            joined = join_smallest(graph, scale, near, a, position, k, subtours, child)
            if joined == REFUSED:
                gain = np.int64(REFUSED)
                break
            gain += joined
        for i in range(child.counts[2]):
            child.row[child.cities[i]] = -1
        return gain

    return breed, cycle_gain


breed, cycle_gain = breeder(units)
