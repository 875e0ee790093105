"""Varied first tours: greedy tours by random distances.

Each is made by one call of compiled code in one thread. Threads that make many short calls would wait for each other,
because between two calls they need the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.points import at_one_point
from pymoo_gpuaco.candidates.quadrant import (
    ListWorkspace,
    has_quadrants,
    list_distinct_points,
    make_list_workspace,
    measure_of,
)
from pymoo_gpuaco.candidates.start import (
    END,
    FIRST_CANDIDATES,
    NEAR_ENDS,
    filter_possible,
    greedy_tour,
    key_of,
    take_edges,
    walk,
    write_edges,
)
from pymoo_gpuaco.problems.metrics import DOUBLED, Graph, distance
from pymoo_gpuaco.runtime.compiled import (
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt64_1d,
    compiled,
    compiled_callee,
    struct,
)
from pymoo_gpuaco.runtime.intrinsics import as_matrix
from pymoo_gpuaco.runtime.philox import generator
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

_SPREAD = 0.3  # maximum random extension of a distance
# Maximum cities for one call without distinct points in a plane: there each end of a path is compared with all others.
MOST_BY_PAIRS = 10_000
_BY_PAIRS = -1  # instead of the measure of distinct points in a plane
_DIGIT = 11  # bits of a key that are sorted at a time


def varied_tours(
    instance: ListedInstance, count: int, key: int, stop: Stop | None = None
) -> NDArray[np.int32]:
    """Return (count, n) greedy tours, each by distances that are randomly up to 30 % longer.

    They differ in long edges, which a search changes least. ``key`` in [0, 2**64) determines the random numbers. If
    ``stop`` ends the call, fewer tours are returned.
    """
    tours, made = np.empty((count, instance.n), np.int32), np.zeros(count, bool)
    if not count:
        return tours
    graph, usual, stop = instance.graph, instance.neighbour_distances, Stop() if stop is None else stop
    k, distinct = min(FIRST_CANDIDATES, instance.k), _has_distinct_points(instance)
    at_once = distinct or (instance.symmetric and instance.n <= MOST_BY_PAIRS)
    measure = measure_of(graph.metric) if distinct else _BY_PAIRS
    near = np.ascontiguousarray(graph.neighbours[:, :k])

    def work(_: int, numbers: Iterator[int]) -> None:
        w = _make_workspace(instance.n, k) if at_once else None
        for number in numbers:
            if stop.ended():
                break
            lengths = usual * (1.0 + _SPREAD * generator(key, number + 1).random(usual.shape))
            if w is None or not _match(graph, measure, lengths, near, w, tours[number]):
                tours[number] = greedy_tour(instance, lengths=lengths)
            made[number] = True

    stop.reset()
    stop.parallel_dynamic(work, count, min(count, thread_count()))
    return tours[made]


def _has_distinct_points(instance: ListedInstance) -> bool:
    """Return True if the cities are different points in a plane, without fixed edges."""
    if instance.form is not None or instance.partner is not None:
        return False
    return has_quadrants(instance.metric, instance.coords) and not at_one_point(instance.coords).any


@struct
class _Workspace(NamedTuple):
    """Arrays of one thread for a tour of n cities with at most k candidates each."""

    keys: UInt64_1d  # (n k,)
    sorted_keys: UInt64_1d  # (n k,)
    counts: Int64_1d  # (2^_DIGIT,)
    edges: Int32_2d  # (n k, 2)
    paths: Int32_2d  # (n, 3)
    no_ends: Int32_1d  # (0,)
    ends: Int32_1d  # (n,)
    coords: Float64_2d  # (n, 3) of the ends
    lists: ListWorkspace  # of the ends


def _make_workspace(n: int, k: int) -> _Workspace:
    """Allocate the arrays for n cities; memory that is never written is not taken."""
    most = n * max(k, NEAR_ENDS)
    return _Workspace(
        np.empty(most, np.uint64),
        np.empty(most, np.uint64),
        np.empty(1 << _DIGIT, np.int64),
        np.empty((most, 2), np.int32),
        np.empty((n, 3), np.int32),
        np.empty(0, np.int32),
        np.empty(n, np.int32),
        np.empty((n, 3)),
        make_list_workspace(n, NEAR_ENDS),
    )


@compiled
def _match(
    graph: Graph,
    measure: int,
    lengths: Float64_2d,
    near: Int32_2d,
    w: _Workspace,
    tour: Int32_1d,
) -> bool:
    """Make a greedy tour of a symmetric instance in one thread; return False if only infinitely long edges are left.

    measure : of distinct points in a plane, for which it is the tour of `greedy_tour`; or ``_BY_PAIRS``.
    lengths : (n, k) of the candidates. near : (n, k) the first of them, k as in the first round.
    """
    n, left = tour.shape[0], tour.shape[0]
    for city in range(n):
        w.paths[city, 0] = w.paths[city, 1] = -1
        w.paths[city, END] = city
        if graph.partner.shape[0] > 0 and graph.partner[city] >= 0:  # take the fixed edge
            w.paths[city, 0] = w.paths[city, END] = graph.partner[city]
            left -= 1 if graph.partner[city] > city else 0
    m = write_edges(graph.neighbours, lengths, near.shape[1], False, 0, n, w.keys)
    left -= _take_shortest(m, w.no_ends, near, w)
    while left > 1:
        e = 0
        for city in range(n):
            if w.paths[city, 1] < 0:
                w.ends[e] = city
                e += 1
        k = min(NEAR_ENDS, e - 1)
        if measure == _BY_PAIRS:
            m = _list_ends(
                graph, w.ends[:e], k, w.paths, as_matrix(w.lists.ids, e, k), w.lists.lengths, w.keys
            )
        else:
            for end in range(e):
                for axis in range(3):
                    w.coords[end, axis] = graph.coords[w.ends[end], axis]
            list_distinct_points(graph.metric, measure, w.coords[:e], k, w.lists)
            m = e * k
            for edge in range(m):
                w.keys[edge] = key_of(w.lists.lengths[edge], edge)
        joined = _take_shortest(m, w.ends[:e], as_matrix(w.lists.ids, e, k), w)
        if joined == 0:
            return False
        left -= joined
    walk(w.paths, False, tour)
    return True


@compiled_callee
def _list_ends(graph, ends, k, paths, near, lengths, keys):  # type: ignore[no-untyped-def]
    """List the k nearest ends of other paths for each end; write the keys of these edges and return their number.

    Of ends at one distance the next ones in order are listed: otherwise all would list the same few.
    """
    e, m = ends.shape[0], 0
    for a in range(e):
        i, found = np.int64(ends[a]), 0
        for step in range(1, e):
            b = a + step if a + step < e else a + step - e
            j = np.int64(ends[b])
            # a tour enters a doubled city at one end and leaves it at the other
            if paths[i, END] == j or (graph.metric == DOUBLED and (i ^ j) & 1 == 0):
                continue
            length = distance(graph, i, j)
            if not length < np.inf or (found == k and not length < lengths[a * k + k - 1]):
                continue
            place = found if found < k else k - 1
            while place > 0 and length < lengths[a * k + place - 1]:
                near[a, place], lengths[a * k + place] = near[a, place - 1], lengths[a * k + place - 1]
                place -= 1
            near[a, place], lengths[a * k + place] = b, length
            found = min(k, found + 1)
        for place in range(found):
            keys[m] = key_of(lengths[a * k + place], a * k + place)
            m += 1
    return m


@compiled_callee
def _take_shortest(m, ends, near, w):  # type: ignore[no-untyped-def]
    """Take edges of the first m keys that join two paths, shortest first; return their number."""
    keys, other = w.keys, w.sorted_keys
    for digit in range(3):  # the lengths, from their low bits on; edges of one length remain in order
        shift = np.uint64(32 + _DIGIT * digit)
        for value in range(1 << _DIGIT):
            w.counts[value] = 0
        for edge in range(m):
            w.counts[np.int64(keys[edge] >> shift) & ((1 << _DIGIT) - 1)] += 1
        before = 0
        for value in range(1 << _DIGIT):
            before, w.counts[value] = before + w.counts[value], before
        for edge in range(m):
            value = np.int64(keys[edge] >> shift) & ((1 << _DIGIT) - 1)
            other[w.counts[value]] = keys[edge]
            w.counts[value] += 1
        keys, other = other, keys
    count = filter_possible(keys[:m], ends, ends, near, w.paths, False, 0, m, w.edges)
    return take_edges(w.edges, 0, count, w.paths, False)
