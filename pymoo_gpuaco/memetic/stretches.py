"""Stretches of a tour, cut at removed edges and joined by added ones: their subtours, and the new tour.

A tour is an array of cities and an array of their positions. Without k of its edges it is k stretches, each given by
its last position. Only the cost of `lay_out` depends on the length of the tour.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.runtime.compiled import (
    Int32_1d,
    Int32_2d,
    Int64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)

_FREE = -1


@struct
class Stretches(NamedTuple):
    """Stretches between cuts of a tour, see `make_stretches`."""

    cuts: Int64_1d
    joined: Int64_1d
    subtour: Int64_1d
    size: Int64_1d
    moved: Int32_1d


def make_stretches(n: int, most: int) -> Stretches:
    """Allocate the stretches of a tour of n cities with up to ``most`` cuts."""
    return Stretches(
        cuts=np.empty(most, np.int64),  # positions before the cuts, ascending; stretch s ends at cuts[s]
        joined=np.empty(2 * most, np.int64),  # end joined to each end; stretch s has the ends 2s and 2s + 1
        subtour=np.empty(most, np.int64),  # subtour of each stretch
        size=np.empty(most, np.int64),  # number of cities of each subtour
        moved=np.empty(n, np.int32),  # cities that get new positions
    )


@inlined
def edge_position(position, u, v):  # type: ignore[no-untyped-def]
    """Return the position of the first of two neighbours in a tour; the last position precedes the first."""
    p, q = np.int64(position[u]), np.int64(position[v])
    return min(p, q) if abs(p - q) == 1 else max(p, q)


@compiled_callee
def cut(position, removed, count, w):  # type: ignore[no-untyped-def]
    """Cut a tour at the first ``count`` edges ``removed``, given as pairs of neighbouring cities."""
    for i in range(count):
        w.cuts[i] = edge_position(position, removed[i, 0], removed[i, 1])
    sort(w.cuts, count)


@compiled_callee
def sort(values, count):  # type: ignore[no-untyped-def]
    """Sort the first ``count`` values by Shell's method."""
    gap = 1
    while gap < count:
        gap = 3 * gap + 1
    while gap > 1:
        gap = (gap - 1) // 3
        for i in range(gap, count):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value


@inlined
def stretch_at(p, count, cuts):  # type: ignore[no-untyped-def]
    """Return the stretch of a position, of ``count`` stretches; stretch 0 begins after the last cut."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if cuts[middle] < p:
            low = middle + 1
        else:
            high = middle
    return low if low < count else 0


@inlined
def begin_of(s, n, count, cuts):  # type: ignore[no-untyped-def]
    """Return the first position of a stretch."""
    p = cuts[s - 1 if s > 0 else count - 1] + 1
    return p if p < n else 0


@inlined
def cities_in(s, n, count, cuts):  # type: ignore[no-untyped-def]
    """Return the number of cities of a stretch."""
    length = cuts[s] - cuts[s - 1 if s > 0 else count - 1]
    return length if length > 0 else length + n


@inlined
def free_end(p, n, count, w):  # type: ignore[no-untyped-def]
    """Return the end, still free, of a stretch at a position; a stretch of one city has both ends there."""
    s = stretch_at(p, count, w.cuts)
    begins = begin_of(s, n, count, w.cuts) == p and w.joined[2 * s] == _FREE
    return 2 * s if begins else 2 * s + 1


@compiled_callee
def join(position, added, count, w):  # type: ignore[no-untyped-def]
    """Join the ends of ``count`` stretches by the same number of edges ``added``."""
    n = position.shape[0]
    for end in range(2 * count):
        w.joined[end] = _FREE
    for i in range(count):
        one = free_end(position[added[i, 0]], n, count, w)
        other = free_end(position[added[i, 1]], n, count, w)
        w.joined[one], w.joined[other] = other, one


@compiled_callee
def find_subtours(n, count, w):  # type: ignore[no-untyped-def]
    """Number the subtours of the joined stretches; return their number."""
    for s in range(count):
        w.subtour[s] = -1
    found = 0
    for s in range(count):
        if w.subtour[s] >= 0:
            continue
        size, end = 0, 2 * s
        while w.subtour[end >> 1] < 0:
            w.subtour[end >> 1] = found
            size += cities_in(end >> 1, n, count, w.cuts)
            end = w.joined[end ^ 1]
        w.size[found] = size
        found += 1
    return found


@compiled
def lay_out(
    tour: Int32_1d, position: Int32_1d, removed: Int32_2d, added: Int32_2d, count: int, w: Stretches
) -> None:
    """Replace the edges ``removed`` of a tour by ``added`` (count, 2); the longest stretch does not move.

    The result must be one tour.
    """
    n = tour.shape[0]
    if count == 0:
        return
    cut(position, removed, count, w)
    join(position, added, count, w)
    longest = 0
    for s in range(1, count):
        if cities_in(s, n, count, w.cuts) > cities_in(longest, n, count, w.cuts):
            longest = s
    move(tour, position, count, longest, w)


@inlined
def write_stretch(tour, end, count, cuts, out, at):  # type: ignore[no-untyped-def]
    """Write the cities of the stretch that is entered at ``end`` to ``out`` from ``at`` on; return where they end."""
    n, s = tour.shape[0], end >> 1
    p, step = begin_of(s, n, count, cuts), 1
    if end & 1:
        p, step = cuts[s], -1
    for _ in range(cities_in(s, n, count, cuts)):
        out[at] = tour[p]
        at += 1
        p += step
        if p == n:
            p = 0
        elif p < 0:
            p = n - 1
    return at


@compiled_callee
def move(tour, position, count, longest, w):  # type: ignore[no-untyped-def]
    """Write the joined stretches to the tour; stretch ``longest`` does not move."""
    n, moved, end = tour.shape[0], 0, w.joined[2 * longest + 1]
    while end >> 1 != longest:
        moved = write_stretch(tour, end, count, w.cuts, w.moved, moved)
        end = w.joined[end ^ 1]
    p = w.cuts[longest]
    for i in range(moved):
        p = p + 1 if p + 1 < n else 0
        tour[p], position[w.moved[i]] = w.moved[i], p
