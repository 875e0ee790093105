"""One ant of Focused ACO: a walk that changes the source tour in a few places, and local search of the changes.

A tour is a list of segments of the source: a few differences need a few segments, for any number of cities. Segment i
is traversed from source position ``first[i]`` to ``last[i]``, forwards or backwards. Segments are in tour order and
together contain every position once. Operations take time proportional to the number of segments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cpu.moves import make_moves
from pymoo_gpuaco.backends.cpu.workspace import pop, push
from pymoo_gpuaco.problems.metrics import Graph, distance
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    UInt64,
    UInt64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import STATE, STREAM_CONSTRUCTION, begin_stream, next_below, next_uniform
from pymoo_gpuaco.runtime.threads import thread_array

# Maximum number of segments that a move of the local search adds: it removes up to three edges.
_SEGMENTS_PER_MOVE = 3


@struct
class Segments(NamedTuple):
    """Tour of an ant as segments of the source, see `make_segments`."""

    tour: Int32_1d
    position: Int32_1d
    first: Int32_1d
    last: Int32_1d
    used: Int64_1d
    walked: UInt8_1d
    queue: Int32_1d
    queued: UInt8_1d
    ring: Int64_1d
    chances: Float64_1d
    rng: UInt64_1d


@struct
class Built(NamedTuple):
    """Tours of m ants as segments, see `make_built`."""

    first: Int32_2d
    last: Int32_2d
    used: Int64_1d
    longer: Float64_1d


def make_segments(tour: np.ndarray, position: np.ndarray, capacity: int, k: int) -> Segments:
    """Allocate segments of a source tour; threads share ``tour`` and ``position``."""
    n = len(tour)
    return Segments(
        tour=tour,  # the source
        position=position,  # position[tour[p]] == p
        first=np.zeros(capacity, np.int32),
        last=np.zeros(capacity, np.int32),
        used=thread_array(1, np.int64),  # number of segments
        walked=np.zeros(n, np.uint8),  # 1: this source position is visited; 0 except while the ant walks
        queue=np.empty(n, np.int32),  # as in ``workspace.Workspace``, with the next two
        queued=np.zeros(n, np.uint8),
        ring=thread_array(2, np.int64),
        chances=thread_array(k),  # among which an ant draws
        rng=thread_array(STATE, np.uint64),
    )


def make_built(m: int, capacity: int) -> Built:
    """Allocate the tours of m ants."""
    return Built(
        first=np.zeros((m, capacity), np.int32),  # see ``Segments``, also for the next two
        last=np.zeros((m, capacity), np.int32),
        used=np.zeros(m, np.int64),
        longer=np.zeros(m),  # length of the tour minus the length of the source
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
    """Split a segment so that one begins at a city; return the latter."""
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
    """Improve from queued cities until the capacity is used up or ``stop[0]`` is 1, and empty the queue.

    ``moves`` < 0: no improvement.
    """
    capacity = w.first.shape[0] - _SEGMENTS_PER_MOVE
    while w.ring[1] > 0:
        city = pop(w)
        while moves >= 0 and w.used[0] <= capacity and stop[0] == 0:
            if _improve_city(graph, w, city, moves) == 0.0:
                break


@compiled_callee
def difference(graph, w):  # type: ignore[no-untyped-def]
    """Return the length of the tour minus the length of the source."""
    n, k = w.tour.shape[0], w.used[0]
    total = 0.0
    for i in range(k):
        a, b = w.first[i], w.last[i]
        total += distance(graph, w.tour[b], w.tour[w.first[i + 1 if i + 1 < k else 0]])
        high = max(a, b)
        total -= distance(graph, w.tour[high], w.tour[high + 1 if high + 1 < n else 0])
    return total


@inlined
def _begin_segment(w, q):  # type: ignore[no-untyped-def]
    w.first[w.used[0]] = q
    w.last[w.used[0]] = q
    w.used[0] += 1


@compiled_callee
def _gap(w, q, step):  # type: ignore[no-untyped-def]
    """Return the number of unvisited positions next to q in the direction of ``step``, up to the end of the source."""
    n = w.tour.shape[0]
    free = n - 1 - q if step > 0 else q
    for i in range(w.used[0]):
        low, high = min(w.first[i], w.last[i]), max(w.first[i], w.last[i])
        if step > 0 and high > q:
            free = min(free, max(low - q - 1, 0))
        elif step < 0 and low < q:
            free = min(free, max(q - high - 1, 0))
    return free


@compiled_callee
def _copy_source(w, q):  # type: ignore[no-untyped-def]
    """Append unvisited cities that follow the last city, at position q, in the source; return their number."""
    n, added = w.tour.shape[0], np.int64(0)
    for step in (1, -1):
        while True:
            free = _gap(w, q, step)
            i = w.used[0] - 1
            if free > 0:
                q += step * free
                w.last[i] = q
                added += free
            # the source is a cycle: continue at its other end
            end = n - 1 if step > 0 else 0
            other = n - 1 - end
            if q != end or find(w, other) >= 0:
                break
            q = other
            _begin_segment(w, q)
            added += 1
        if added > 0:
            break
    return added


@compiled_callee
def _nearest_gap(graph, w, city):  # type: ignore[no-untyped-def]
    """Return the unvisited city nearest to ``city`` among those adjacent to a visited one in the source."""
    n, k = w.tour.shape[0], w.used[0]
    nearest, chosen = np.inf, np.int64(-1)
    for i in range(k):
        a, b = w.first[i], w.last[i]
        low, high = min(a, b), max(a, b)
        for q in (low - 1 if low > 0 else n - 1, high + 1 if high + 1 < n else 0):
            if find(w, q) < 0:
                c = w.tour[q]
                d = distance(graph, city, c)
                if d < nearest or (d == nearest and c < chosen):
                    nearest, chosen = d, np.int64(c)
    return chosen


@compiled_callee
def _is_visited(w, walking, city):  # type: ignore[no-untyped-def]
    q = w.position[np.uint32(city)]
    return w.walked[np.uint32(q)] != 0 if walking else find(w, q) >= 0


@compiled_callee
def _next_city(graph, backup, w, weights, walking, city, has_capacity, rng, chances):  # type: ignore[no-untyped-def]
    """Draw an unvisited candidate by roulette; if there is none, choose from the backup list, then from all gaps.

    Without ``has_capacity``, choose only cities adjacent to visited ones, which create no further gaps.
    """
    k = weights.shape[1]
    if has_capacity:
        total = 0.0
        for r in range(k):
            visited = _is_visited(w, walking, graph.neighbours[city, r])
            chances[r] = 0.0 if visited else weights[city, r]
            total += chances[r]
        if total > 0.0:
            spin = next_uniform(rng) * total
            chosen = np.int64(-1)
            for r in range(k):
                if chances[r] > 0.0:
                    chosen = np.int64(graph.neighbours[city, r])
                    spin -= chances[r]
                    if spin <= 0.0:
                        break
            return chosen
        for r in range(backup.shape[1]):
            c = backup[city, r]
            if not _is_visited(w, walking, c):
                return np.int64(c)
    return _nearest_gap(graph, w, city)


@compiled_callee
def _walk(graph, backup, w, weights, new_edges, rng, chances):  # type: ignore[no-untyped-def]
    """Walk until ``new_edges`` edges are not in the source, then copy the source; queue the ends of new edges."""
    n, capacity = w.tour.shape[0], w.first.shape[0]
    w.used[0] = 0
    city = next_below(rng, n)
    q = w.position[city]
    _begin_segment(w, q)
    w.walked[q] = 1
    visited, n_new, walking = np.int64(1), 0, True
    while visited < n:
        has_capacity = w.used[0] < capacity // 2 - 2  # each remaining gap needs a segment, one gap needs two
        j = _next_city(graph, backup, w, weights, walking, city, has_capacity, rng, chances)
        p = w.position[j]
        step = p - q
        i = w.used[0] - 1
        if abs(step) == 1 and (w.first[i] == q or (w.last[i] > w.first[i]) == (step > 0)):
            w.last[i] = p
        else:
            _begin_segment(w, p)
            if abs(step) != 1 and abs(step) != n - 1:
                n_new += 1
                push(w, city)
                push(w, j)
        if not has_capacity:
            n_new = max(n_new, new_edges)
        visited += 1
        city, q = j, p
        if walking:
            w.walked[p] = 1
        if walking and (n_new >= new_edges or visited == n):
            walking = False
            for i in range(w.used[0]):
                a, b = w.first[i], w.last[i]
                for e in range(min(a, b), max(a, b) + 1):
                    w.walked[e] = 0
        if n_new >= new_edges:
            visited += _copy_source(w, q)
            q = w.last[w.used[0] - 1]
            city = np.int64(w.tour[q])
    push(w, w.tour[w.first[0]])
    push(w, city)


@compiled
def build_tours(
    graph: Graph,
    backup: Int32_2d,
    w: Segments,
    weights: Float64_2d,
    new_edges: int,
    moves: int,
    key: UInt64,
    first: int,
    last: int,
    built: Built,
    stop: UInt8_1d,
) -> None:
    """Build and improve tours of ants first .. last-1; write them to ``built``.

    ``backup`` (n, b) lists the nearest cities, ``weights`` (n, k) are those of the candidates. ``moves`` < 0: no local
    search. Once ``stop[0]`` is 1, ants leave ``built.longer`` at infinity.
    """
    for ant in range(first, last):
        if stop[0] != 0:
            break
        begin_stream(w.rng, key, ant, STREAM_CONSTRUCTION)
        _walk(graph, backup, w, weights, new_edges, w.rng, w.chances)
        search(graph, w, moves, stop)
        built.longer[ant] = difference(graph, w)
        built.used[ant] = w.used[0]
        for i in range(w.used[0]):
            built.first[ant, i] = w.first[i]
            built.last[ant, i] = w.last[i]
