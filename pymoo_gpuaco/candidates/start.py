"""First tours by greedy edge matching: the shortest edges that form paths, until one path is left.

Bentley, "Fast algorithms for geometric traveling salesman problems", ORSA Journal on Computing 4 (1992): 14 to 18 %
longer than the best tour on random cities. Candidate edges come first; the remaining paths are joined in rounds, each
with the edges from their ends to the nearest other ends.

Paths are (n, 3) int32. The first two columns are the neighbours of a city, or -1; with directed edges its predecessor
and successor. The third one is the other end of its path, the city itself if it is alone, or -1 if it is no end. So an
edge joins two paths if it connects two ends of different paths.

The key of an edge is its length in single precision, whose bits sort like it, followed by the 32 bits of its number.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.nearest import chained_nearest, nearest_both_ways
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.runtime.compiled import (
    Float64_2d,
    Int32_1d,
    Int32_2d,
    UInt64_1d,
    compiled,
    inlined,
)
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

FIRST_CANDIDATES = 6  # candidates per city in the first round: more cost time and change nothing
NEAR_ENDS = 8  # near ends of an end in a later round
_ENTRIES_PER_BLOCK = 1 << 22  # entries of a matrix per copy
# Edges that all threads filter before one thread takes them in turn: most of them no longer join two ends.
_EDGES_PER_FILTER = 1 << 18
END = 2  # the column of the other end


def greedy_tour(
    instance: ListedInstance, ids: NDArray[np.int32] | None = None, lengths: NDArray[np.float64] | None = None
) -> NDArray[np.int32]:
    """Return an (n,) tour by greedy edge matching, in O(n log n) with coordinates.

    City ids break ties, so the tour is reproducible. With an asymmetric matrix edges are directed: one leaves each city
    and one enters it. Fixed edges come first. Raises ValueError if only edges of infinite length join the remaining
    paths.

    ids, lengths : (n, k) candidates of each city, the nearest first, and their lengths; None: those of the instance.
    """
    ids = instance.neighbours if ids is None else ids
    lengths = instance.neighbour_distances if lengths is None else lengths
    k, n, directed = min(FIRST_CANDIDATES, ids.shape[1]), instance.n, not instance.symmetric
    paths = np.full((n, 3), -1, np.int32)
    paths[:, END] = np.arange(n)
    left = n
    if instance.partner is not None:  # take the fixed edges
        fixed = np.flatnonzero(instance.partner >= 0)
        paths[fixed, 0] = paths[fixed, END] = instance.partner[fixed]
        left -= len(fixed) // 2
    all_cities = np.empty(0, np.int32)  # empty: all cities are ends
    left -= _join(
        _edges_of_lists(ids, lengths, k, directed), all_cities, all_cities, ids[:, :k], paths, directed
    )
    dummy = n - 1 if instance.form is not None and instance.form.has_dummy else -1
    dummy_waits = dummy >= 0 and paths[dummy, 0] < 0  # the dummy joins both ends of the path of all others
    while left > 1 + dummy_waits:
        if instance.metric == Metric.EXPLICIT:
            ends, others, near, length = _edges_by_matrix(instance, paths)
        else:
            ends, others, near, length = _edges_between_ends(instance, paths)
        joined = _join(_keys_of(length.ravel()), ends, others, near, paths, directed)
        if joined == 0:
            raise ValueError("no greedy tour: only edges of infinite length join the remaining paths")
        left -= joined
    if dummy_waits:
        end = int(np.flatnonzero(paths[:, 1] < 0)[0])
        other = paths[end, END]
        paths[end, 0 if paths[end, 0] < 0 else 1], paths[dummy, 0] = dummy, end
        paths[end, END], paths[dummy, END], paths[other, END] = -1, other, dummy
    tour = np.empty(n, np.int32)
    walk(paths, directed, tour)
    return tour


def _edges_of_lists(
    ids: NDArray[np.int32], lengths: NDArray[np.float64], k: int, directed: bool
) -> NDArray[np.uint64]:
    """Return the keys of the edges to the first k candidates: edge k i + s leads from i to its s-th.

    Undirected edges appear once.
    """
    n, threads = len(ids), thread_count()
    keys, found = np.empty(n * k, np.uint64), np.zeros((threads, 2), np.int64)

    def work(part: int, first: int, last: int) -> None:
        found[part] = k * first, write_edges(ids, lengths, k, directed, first, last, keys)

    parallel_for(work, n, threads)
    m = 0
    for first, count in found.tolist():
        keys[m : m + count] = keys[first : first + count]
        m += count
    return keys[:m]


def _keys_of(lengths: NDArray[np.floating]) -> NDArray[np.uint64]:
    """Return the keys of edges 0 .. m-1 of lengths (m,) >= 0; an infinitely long one has none."""
    keys: NDArray[np.uint64] = lengths.astype(np.float32, copy=False).view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(keys), dtype=np.uint64)
    return keys[lengths < np.inf]


def _edges_between_ends(
    instance: ListedInstance, paths: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return ends (e,) of paths, the same again, and indices and distances (e, k) of near ends.

    An end lists at most one end of its own path, so with two or more paths some edge joins two of them.
    """
    ends = np.flatnonzero(paths[: len(instance.real_coords), 1] < 0).astype(np.int32)
    k = min(NEAR_ENDS, len(ends) - 1)
    near, length = chained_nearest(instance.metric, instance.coords[ends], k, per_quadrant=None)
    return ends, ends, near, length


def _edges_by_matrix(
    instance: ListedInstance, paths: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return the same by rows of the matrix; of directed paths, edges lead from last cities to first ones.

    The other end of the same path is infinitely far.
    """
    starts = np.flatnonzero(paths[:, 1] < 0).astype(np.int32)
    if instance.form is not None and instance.form.doubled:
        return _edges_of_twins(instance, paths, starts)
    goals = starts if instance.symmetric else np.flatnonzero(paths[:, 0] < 0).astype(np.int32)
    k = min(NEAR_ENDS, len(goals))
    near, lengths = np.empty((len(starts), k), np.int32), np.empty((len(starts), k))
    rows = max(1, _ENTRIES_PER_BLOCK // len(goals))
    for first in range(0, len(starts), rows):
        block = starts[first : first + rows]
        length = instance.distance(block[:, None], goals[None, :])
        own = (goals == block[:, None]) | (goals == paths[block, END][:, None])
        length[own] = np.inf
        nearest, row = np.argpartition(length, k - 1, axis=1)[:, :k], np.arange(len(block))
        # Of many ends as far as the k-th, the next one in order is listed. Otherwise all would list the same few, and a
        # round would join only these.
        following = (first + row + 1) % len(goals)
        ties = length[row, following] == length[row, nearest[:, -1]]
        nearest[ties, -1] = following[ties]
        near[first : first + rows] = nearest
        lengths[first : first + rows] = np.take_along_axis(length, near[first : first + rows], axis=1)
    return starts, goals, near, lengths


def _edges_of_twins(
    instance: ListedInstance, paths: NDArray[np.int32], ends: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return the same for a doubled instance, see `Form.doubled`: a tour enters each path at one end.

    With poor lists there are thousands of paths.
    """
    assert instance.form is not None
    entered, left = ends[ends % 2 == 0], ends[ends % 2 == 1]
    own = np.searchsorted(entered, paths[left, END]).astype(np.int32)
    k, nothing = min(NEAR_ENDS, len(entered) - 1), np.zeros(len(entered))
    onward, back = nearest_both_ways(instance.matrix, left >> 1, entered >> 1, own, k, nothing, nothing)
    return (
        np.concatenate([left, entered]),
        np.concatenate([entered, left]),
        np.concatenate([onward.ids, back.ids + len(entered)]),
        np.minimum(np.concatenate([onward.distances, back.distances]), instance.form.far),
    )


def _join(
    keys: NDArray[np.uint64],
    ends: NDArray[np.int32],
    others: NDArray[np.int32],
    near: NDArray[np.int32],
    paths: NDArray[np.int32],
    directed: bool,
) -> int:
    """Take edges that join two paths, shortest first; return their number.

    Edge k i + s leads from ends[i] to others[near[i, s]], with ``near`` (e, k); without ends from city i to near[i, s].
    """
    keys.sort()
    near, taken = np.ascontiguousarray(near), 0
    threads = thread_count()
    edges, counts = (
        np.empty((min(_EDGES_PER_FILTER, len(keys)), 2), np.int32),
        np.zeros((threads, 2), np.int64),
    )
    for start in range(0, len(keys), _EDGES_PER_FILTER):
        some = keys[start : start + _EDGES_PER_FILTER]
        counts[:] = 0

        def work(part: int, first: int, last: int, some: NDArray[np.uint64] = some) -> None:
            counts[part] = (
                first,
                filter_possible(some, ends, others, near, paths, directed, first, last, edges),
            )

        parallel_for(work, len(some), threads)
        for first, count in counts.tolist():
            taken += int(take_edges(edges, first, first + count, paths, directed))
    return taken


@inlined
def key_of(length, edge):  # type: ignore[no-untyped-def]
    """Return the key of one edge."""
    return (np.uint64(np.float32(length).view(np.uint32)) << np.uint64(32)) | np.uint64(edge)


@compiled
def write_edges(
    ids: Int32_2d, lengths: Float64_2d, k: int, directed: bool, first: int, last: int, keys: UInt64_1d
) -> int:
    """Write the keys of the edges of cities first .. last-1 from place k first on; return their number."""
    m = k * first
    for i in range(first, last):
        for s in range(k):
            j = ids[i, s]
            keys[m] = key_of(lengths[i, s], k * i + s)  # always: a branch would cost more
            m += 1 if j > i or directed or not _is_listed(ids, k, j, i) else 0
    return m - k * first


@inlined
def _is_listed(ids, k, i, j):  # type: ignore[no-untyped-def]
    """Return True if city j is among the first k candidates of city i. Without early exit there are no branches."""
    found = 0
    for s in range(k):
        found |= 1 if ids[i, s] == j else 0
    return found > 0


@inlined
def _joins(paths, i, j, directed):  # type: ignore[no-untyped-def]
    """Return True if an edge from i to j joins two paths."""
    if paths[i, END] < 0 or paths[j, END] < 0 or paths[i, END] == j or i == j:
        return False
    return not directed or (paths[i, 1] < 0 and paths[j, 0] < 0)


@compiled
def filter_possible(
    keys: UInt64_1d,
    ends: Int32_1d,
    others: Int32_1d,
    near: Int32_2d,
    paths: Int32_2d,
    directed: bool,
    first: int,
    last: int,
    edges: Int32_2d,
) -> int:
    """Write the edges of keys first .. last-1 that still join two paths to ``first`` on; return their number."""
    k, at = np.uint64(near.shape[1]), first
    for place in range(first, last):
        edge = keys[place] & np.uint64(0xFFFFFFFF)
        i = np.int64(edge // k)
        j = near[i, edge % k]
        if ends.shape[0] > 0:
            i, j = np.int64(ends[i]), others[j]
        if _joins(paths, i, j, directed):
            edges[at, 0], edges[at, 1] = i, j
            at += 1
    return at - first


@compiled
def take_edges(edges: Int32_2d, first: int, last: int, paths: Int32_2d, directed: bool) -> int:
    """Match greedily over edges first .. last-1 in their order; see `_join`."""
    taken = 0
    for edge in range(first, last):
        i, j = edges[edge, 0], edges[edge, 1]
        if not _joins(paths, i, j, directed):
            continue
        slot_i = 1 if directed or paths[i, 0] >= 0 else 0
        slot_j = 0 if directed or paths[j, 0] < 0 else 1
        start, end = paths[i, END], paths[j, END]
        paths[i, END] = paths[j, END] = -1
        paths[i, slot_i], paths[j, slot_j] = j, i
        paths[start, END], paths[end, END] = end, start
        taken += 1
    return taken


@compiled
def walk(paths: Int32_2d, directed: bool, tour: Int32_1d) -> None:
    """Write the cities of the path, from its first end (if undirected, the lower city)."""
    before, city = np.int64(-1), np.int64(0)
    while paths[city, 0] >= 0 and (directed or paths[city, 1] >= 0):
        city += 1
    for s in range(tour.shape[0]):
        tour[s] = city
        onward = paths[city, 1] if directed or paths[city, 0] == before else paths[city, 0]
        before, city = city, np.int64(onward)
