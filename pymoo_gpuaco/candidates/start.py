"""First tours by greedy edge matching: the shortest edges that keep a set of paths, until one path is left.

Bentley, "Fast algorithms for geometric traveling salesman problems", ORSA Journal on Computing 4 (1992): 14 to 18 %
longer than the best tour on random cities. Candidate edges come first; the paths that remain are joined in
rounds, each with the edges from their ends to the nearest other ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.nearest import nearest_by_coordinates
from pymoo_gpuaco.candidates.quadrant import has_quadrants, quadrant_lists
from pymoo_gpuaco.host.compiled import compiled
from pymoo_gpuaco.host.keys import generator
from pymoo_gpuaco.host.threads import spread, thread_count
from pymoo_gpuaco.host.union_find import representative
from pymoo_gpuaco.problems.metrics import Metric

_LOOKED_AT = 6  # candidates a city in the first round: more of them cost time and change nothing
_ENDS_ASKED = 8  # other ends that an end looks at in a later round
_BLOCK = 1 << 22  # entries of a matrix that are copied together
_SPREAD = 0.3


def greedy_tour(
    instance: ListedInstance, ids: NDArray[np.int32] | None = None, lengths: NDArray[np.float64] | None = None
) -> NDArray[np.int32]:
    """Return an (n,) tour by greedy edge matching, in O(n log n) with coordinates.

    Equal edges go by city id, so the tour is the same on every run. With an asymmetric matrix edges keep their
    direction: one leaves each city and one enters it. Edges that must stay come first.

    ids, lengths : (n, k) candidates of each city, the nearest first, and how long each counts; of either, the
        instance's own if left out.
    """
    ids = instance.neighbours if ids is None else ids
    lengths = instance.neighbour_distances if lengths is None else lengths
    n, directed = instance.n, not instance.symmetric
    links = np.full((n, 2), -1, np.int32)  # directed: whence and where to
    parent = np.arange(n, dtype=np.int32)
    paths = n - _link_partners(instance, links, parent)
    k = min(_LOOKED_AT, ids.shape[1])
    source, target, length = np.empty(n * k, np.int32), np.empty(n * k, np.int32), np.empty(n * k, np.float32)
    m = _edges_of_lists(ids, lengths, k, directed, source, target, length)
    paths -= _join(source[:m], target[:m], length[:m], links, parent, directed)
    dummy = n - 1 if instance.form is not None and instance.form.has_dummy else -1
    dummy_waits = dummy >= 0 and links[dummy, 0] < 0  # it joins both ends of the path of all others
    while paths > 1 + dummy_waits:
        source, target, length = _edges_between_ends(instance, links, parent)
        paths -= _join(source, target, length, links, parent, directed)
    if dummy_waits:
        end = int(np.flatnonzero(links[:, 1] < 0)[0])
        links[end, 0 if links[end, 0] < 0 else 1], links[dummy, 0] = dummy, end
    tour = np.empty(n, np.int32)
    _walk(links, directed, tour)
    return tour


def _link_partners(instance: ListedInstance, links: NDArray[np.int32], parent: NDArray[np.int32]) -> int:
    """Take the edges that must stay; return how many they are."""
    partner = instance.partner
    if partner is None:
        return 0
    joined = np.flatnonzero(partner >= 0)
    links[joined, 0] = partner[joined]
    parent[joined] = np.minimum(joined, partner[joined])
    return len(joined) // 2


def varied_tours(instance: ListedInstance, count: int, key: int) -> NDArray[np.int32]:
    """Return (count, n) greedy tours, each by distances that are up to 30 % longer at random.

    They differ in long edges, which a search changes least. ``key`` in [0, 2**64) decides the random numbers.
    """
    tours = np.empty((count, instance.n), np.int32)
    usual = instance.neighbour_distances

    def work(_: int, first: int, last: int) -> None:
        for number in range(first, last):
            longer = 1.0 + _SPREAD * generator(key, number + 1).random(usual.shape)
            tours[number] = greedy_tour(instance, lengths=usual * longer)

    spread(work, count, thread_count())
    return tours


def _edges_between_ends(
    instance: ListedInstance, links: NDArray[np.int32], parent: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return source, target and length of edges from each end of a path to some of the nearest other ends.

    An end sees one end of its own path at most, so as long as there are two paths some edge joins two of them.
    """
    if instance.metric == Metric.EXPLICIT:
        return _edges_by_matrix(instance, links, parent)
    ends = np.flatnonzero(links[: len(instance.real_coords), 1] < 0).astype(np.int32)
    k = min(_ENDS_ASKED, len(ends) - 1)
    coords = instance.coords[ends]
    if has_quadrants(instance.metric, coords):
        near, length = quadrant_lists(instance.metric, coords, k)
    else:
        near, length = nearest_by_coordinates(Metric(instance.metric), coords, k)
    return np.repeat(ends, k), ends[near.ravel()], length.ravel()


def _edges_by_matrix(
    instance: ListedInstance, links: NDArray[np.int32], parent: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """The same by looking along rows of the matrix, which may be asymmetric; ends of the own path are left out."""
    path = np.empty_like(parent)
    _name_paths(parent, path)
    starts = np.flatnonzero(links[:, 1] < 0).astype(np.int32)
    goals = starts if instance.symmetric else np.flatnonzero(links[:, 0] < 0).astype(np.int32)
    k = min(_ENDS_ASKED, len(goals))
    sources, targets, lengths = [], [], []
    rows = max(1, _BLOCK // len(goals))
    for first in range(0, len(starts), rows):
        block = starts[first : first + rows]
        length = instance.distance(block[:, None], goals[None, :])
        length[path[block][:, None] == path[goals]] = np.inf
        near = np.argpartition(length, k - 1, axis=1)[:, :k]
        found = np.take_along_axis(length, near, axis=1).ravel()
        other = np.isfinite(found)
        sources.append(np.repeat(block, k)[other])
        targets.append(goals[near.ravel()[other]])
        lengths.append(found[other])
    return np.concatenate(sources), np.concatenate(targets), np.concatenate(lengths)


def _join(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    length: NDArray[np.floating],
    links: NDArray[np.int32],
    parent: NDArray[np.int32],
    directed: bool,
) -> int:
    """Take (m,) edges, shortest first, where they join two paths; return how many were taken."""
    # One sort of whole numbers is several times faster than that of an index by length: the upper half is the
    # length in single precision, whose bits sort like it, the lower half the edge.
    keys = length.astype(np.float32, copy=False).view(np.uint32).astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.sort()
    return int(_take_edges(keys, source, target, links, parent, directed))


@compiled
def _edges_of_lists(ids, lengths, k, directed, source, target, length):  # type: ignore[no-untyped-def]
    """Write the edges of the lists' first k columns, each once if it has no direction; return how many."""
    m = 0
    for i in range(ids.shape[0]):
        for s in range(k):
            j = ids[i, s]
            new = True
            if j < i and not directed:
                for t in range(k):
                    if ids[j, t] == i:
                        new = False
                        break
            if new:
                source[m], target[m], length[m] = i, j, lengths[i, s]
                m += 1
    return m


@compiled
def _name_paths(parent, path):  # type: ignore[no-untyped-def]
    """Write each city's path, named by its representative."""
    for city in range(parent.shape[0]):
        path[city] = representative(parent, city)


@compiled
def _take_edges(keys, source, target, links, parent, directed):  # type: ignore[no-untyped-def]
    """Greedy matching over edges in the order of ``keys``; see `_join`."""
    taken = 0
    for s in range(keys.shape[0]):
        edge = keys[s] & np.uint64(0xFFFFFFFF)
        i, j = source[edge], target[edge]
        if directed:
            slot_i, slot_j = 1, 0
        else:
            slot_i = 0 if links[i, 0] < 0 else 1
            slot_j = 0 if links[j, 0] < 0 else 1
        if links[i, slot_i] >= 0 or links[j, slot_j] >= 0:
            continue
        root_i, root_j = representative(parent, i), representative(parent, j)
        if root_i != root_j:
            links[i, slot_i], links[j, slot_j] = j, i
            parent[max(root_i, root_j)] = min(root_i, root_j)
            taken += 1
    return taken


@compiled
def _walk(links, directed, tour):  # type: ignore[no-untyped-def]
    """Write the cities of the one path, from its first end (the lower city, if it has no direction)."""
    n = tour.shape[0]
    at, before = 0, -1
    while links[at, 0] >= 0 and (directed or links[at, 1] >= 0):
        at += 1
    for s in range(n):
        tour[s] = at
        onward = links[at, 1] if directed or links[at, 0] == before else links[at, 0]
        before, at = at, onward
