"""A tour as segments of a source tour: a few differences take a few segments, for any number of cities.

Segment i is traversed from source position ``first[i]`` to ``last[i]``, forwards or backwards. Segments are in tour
order and together contain every position once. Operations take time proportional to the number of segments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cpu.moves import make_moves
from pymoo_gpuaco.backends.cpu.workspace import pop
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined

# Most segments added by a move of the local search, which removes three edges.
_OF_A_MOVE = 3


class Segments(NamedTuple):
    """One thread's tour: source tour ``tour`` (n,) with its ``position`` (n,), and the segments."""

    tour: np.ndarray  # (n,) int32, the source
    position: np.ndarray  # (n,) int32, position[tour[p]] == p
    first: np.ndarray  # (capacity,) int32
    last: np.ndarray  # (capacity,) int32
    used: np.ndarray  # (1,) int64: their number
    queue: np.ndarray  # (n,) int32, as in ``workspace.Workspace``, with the next two
    queued: np.ndarray  # (n,) uint8
    ring: np.ndarray  # (2,) int64


def make_segments(tour: np.ndarray, position: np.ndarray, capacity: int) -> Segments:
    """Allocate for tours that differ from ``tour``; both arrays are shared with other threads."""
    n = len(tour)
    return Segments(
        tour,
        position,
        np.zeros(capacity, np.int32),
        np.zeros(capacity, np.int32),
        np.zeros(1, np.int64),
        np.empty(n, np.int32),
        np.zeros(n, np.uint8),
        np.zeros(2, np.int64),
    )


@inlined
def find(w, q):  # type: ignore[no-untyped-def]
    """Return the segment that contains source position q, or -1."""
    for i in range(w.used[0]):
        a, b = w.first[np.uint32(i)], w.last[np.uint32(i)]
        if (a <= q and q <= b) or (b <= q and q <= a):
            return np.int64(i)
    return np.int64(-1)


@compiled_callee
def after(w, city):  # type: ignore[no-untyped-def]
    """Return the next city of the tour."""
    q = w.position[np.uint32(city)]
    i = find(w, q)
    a, b = w.first[np.uint32(i)], w.last[np.uint32(i)]
    if q != b:
        return w.tour[np.uint32(q + 1 if a < b else q - 1)]
    i = i + 1 if i + 1 < w.used[0] else 0
    return w.tour[np.uint32(w.first[np.uint32(i)])]


@compiled_callee
def before(w, city):  # type: ignore[no-untyped-def]
    """Return the previous city of the tour."""
    q = w.position[np.uint32(city)]
    i = find(w, q)
    a, b = w.first[np.uint32(i)], w.last[np.uint32(i)]
    if q != a:
        return w.tour[np.uint32(q - 1 if a < b else q + 1)]
    i = i - 1 if i > 0 else w.used[0] - 1
    return w.tour[np.uint32(w.last[np.uint32(i)])]


@compiled_callee
def _cut_before(w, city):  # type: ignore[no-untyped-def]
    """Split so that a segment begins at a city; return that segment."""
    q = w.position[np.uint32(city)]
    i = find(w, q)
    a, b = w.first[i], w.last[i]
    if q == a:
        return i
    for s in range(w.used[0], i + 1, -1):
        w.first[s] = w.first[s - 1]
        w.last[s] = w.last[s - 1]
    w.used[0] += 1
    w.last[i] = q - 1 if a < b else q + 1
    w.first[i + 1] = q
    w.last[i + 1] = b
    return i + 1


@compiled_callee
def reverse_path(w, outside, first, last):  # type: ignore[no-untyped-def]
    """Reverse the path first .. last, where ``outside`` is the tour neighbour of ``first`` that is not on it."""
    if after(w, outside) != first:
        first, last = last, first
    behind = after(w, last)
    _cut_before(w, first)
    j = _cut_before(w, behind)
    i = find(w, w.position[np.uint32(first)])
    k = w.used[0]
    # segments i .. j-1, cyclically; reversing all others gives the same cycle
    count = j - i if j > i else j - i + k
    if 2 * count > k:
        i, count = j, k - count
    j = i + count - 1
    if j >= k:
        j -= k
    for _ in range((count + 1) // 2):
        a, b = w.first[i], w.last[i]
        w.first[i], w.last[i] = w.last[j], w.first[j]
        w.first[j], w.last[j] = b, a
        i = i + 1 if i + 1 < k else 0
        j = j - 1 if j > 0 else k - 1


_improve_city = make_moves(after, before, reverse_path)[0]


@compiled_callee
def search(graph, w, moves, stop):  # type: ignore[no-untyped-def]
    """Improve from the queued cities until the queue is empty, the capacity is used or the time is over."""
    capacity = w.first.shape[0] - _OF_A_MOVE
    while w.ring[1] > 0:
        city = pop(w)
        while w.used[0] <= capacity and stop[0] == 0:
            if _improve_city(graph, w, city, moves) == 0.0:
                break


@compiled_callee
def difference(graph, w):  # type: ignore[no-untyped-def]
    """Return the excess of the tour's length over the source's."""
    n, k = w.tour.shape[0], w.used[0]
    total = 0.0
    for i in range(k):
        a, b = w.first[i], w.last[i]
        total += distance(graph, w.tour[b], w.tour[w.first[i + 1 if i + 1 < k else 0]])
        high = max(a, b)
        total -= distance(graph, w.tour[high], w.tour[high + 1 if high + 1 < n else 0])
    return total


@compiled
def write_out(source, first, last, count, tour):  # type: ignore[no-untyped-def]
    """Write the tour (n,) of ``count`` segments."""
    p = 0
    for i in range(count):
        a, b = first[i], last[i]
        step = 1 if a <= b else -1
        for _ in range(abs(b - a) + 1):
            tour[p] = source[a]
            a += step
            p += 1
