"""A lower bound of all tours: the minimum 1-tree over *all* edges, not only those of the lists.

The tree of a sparse graph may be heavier than that of all edges, and is then no bound. An edge outside the tree makes
it lighter if and only if it is lighter than the heaviest tree edge between its ends. Such edges are searched among all
pairs, in the plane with a k-d tree, and added to the graph until there are none.

The heaviest edge between two cities is found in O(log n) steps. Kruskal's algorithm joins parts in the order of edge
weights. In a forest whose smaller root is linked below the larger one, no city is deeper than log2 n, and the last link
between two cities is the heaviest.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.candidates.one_tree import OneTree, find_one_tree, make_one_tree
from pymoo_gpuaco.candidates.quadrant import Tree, build_tree, has_quadrants
from pymoo_gpuaco.candidates.sparse import SparseGraph
from pymoo_gpuaco.problems.metrics import Graph, between, distance
from pymoo_gpuaco.runtime.compiled import Float64_1d, Int32_1d, Int64_1d, compiled, compiled_callee, struct
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

ALL_PAIRS_LIMIT = 10_000
"""Maximum cities for a search of all pairs, outside the plane, where it takes O(n log n)."""
ROOT = np.iinfo(np.int32).max  # rank of the root of a `LinkTree`


@struct
class LinkTree(NamedTuple):
    """A spanning tree of n cities as the links of Kruskal's algorithm."""

    parent: Int32_1d  # (n,)
    rank: Int32_1d  # (n,) index in ``weight`` of the edge above a city
    weight: Float64_1d  # (n - 1,) tree edges, ascending


def make_link_tree(u: NDArray[np.int32], v: NDArray[np.int32], weight: NDArray[np.float64]) -> LinkTree:
    """Build the links from the n - 1 edges of a spanning tree of cities 0 .. n-1, in any order."""
    n = len(u) + 1
    order = np.argsort(weight, kind="stable")
    links = LinkTree(np.arange(n, dtype=np.int32), np.full(n, ROOT, np.int32), weight[order])
    _link(links, u[order], v[order], np.ones(n, np.int32))
    return links


@compiled
def _link(links: LinkTree, u: Int32_1d, v: Int32_1d, size: Int32_1d) -> None:
    """Link the root of the smaller part below that of the larger one, edge by edge."""
    for r in range(u.shape[0]):
        a, b = u[r], v[r]
        while links.parent[a] != a:
            a = links.parent[a]
        while links.parent[b] != b:
            b = links.parent[b]
        if size[a] > size[b]:
            a, b = b, a
        links.parent[a], links.rank[a] = b, r
        size[b] += size[a]


@compiled_callee
def heaviest_between(links, i, j):  # type: ignore[no-untyped-def]
    """Return the index in ``weight`` of the heaviest tree edge between cities i and j; -1 if they are equal."""
    rank = -1
    while i != j:
        if links.rank[i] < links.rank[j]:
            rank, i = links.rank[i], links.parent[i]
        else:
            rank, j = links.rank[j], links.parent[j]
    return rank


class CompleteGraph:
    """All edges of a symmetric instance, none of them stored; outside the plane up to `ALL_PAIRS_LIMIT` cities."""

    def __init__(self, instance: ListedInstance) -> None:
        self.instance = instance
        self._graph = make_graph(instance)
        self._tree: Tree | None = None  # of cities in the plane
        if has_quadrants(instance.metric, instance.coords):
            x, y = (np.ascontiguousarray(instance.real_coords[:, axis]) for axis in (0, 1))
            self._tree = build_tree(x, y, thread_count())

    def _lighter_edges(self, pi: NDArray[np.float64], links: LinkTree) -> NDArray[np.int32]:
        """Return for each city a city whose edge to it is lighter than the heaviest tree edge between them, or -1.

        In the plane a k-d tree with the least penalty of each node is searched, elsewhere every pair of cities.
        """
        found, metric, tree = np.full(len(pi), -1, np.int32), int(self.instance.metric), self._tree
        if tree is not None:
            pi, nodes = pi[tree.point], len(tree.boxes)
            summary = np.empty(nodes), np.empty(nodes, np.int32), np.empty(nodes, np.int32)
            _summarise(tree, pi, links, *summary)

        def work(_: int, first: int, last: int) -> None:
            if tree is None:
                _search_pairs(self._graph, pi, links, found, first, last)
            else:
                _search_tree(metric, tree, pi, links, *summary, np.empty(64, np.int64), found, first, last)

        parallel_for(work, len(pi), thread_count())
        return found

    def add_lighter_edges(self, graph: SparseGraph, pi: NDArray[np.float64]) -> tuple[SparseGraph, OneTree]:
        """Return `graph` with all edges that its minimum spanning tree under penalties `pi` (n,) lacks, and that tree.

        The tree returned is minimum over all edges of the instance; its 1-tree, only over those of the graph.
        """
        while True:
            tree = make_one_tree(graph)
            find_one_tree(pi, tree)
            u, v = graph.u[tree.tree], graph.v[tree.tree]
            links = make_link_tree(u, v, graph.length[tree.tree] + (pi[u] + pi[v]))
            lighter = self._lighter_edges(pi, links)
            i = np.flatnonzero(lighter >= 0).astype(np.int32)
            if not len(i):
                return graph, tree
            # Both ends may have found the same edge.
            pairs = np.unique(_numbered(graph.n, i, lighter[i]))
            # With different rounding here and in the search, an edge of the graph may be found.
            pairs = pairs[~np.isin(pairs, _numbered(graph.n, graph.u, graph.v))]
            if not len(pairs):
                return graph, tree
            more_u, more_v = (ends.astype(np.int32) for ends in np.divmod(pairs, graph.n))
            graph = graph._replace(
                u=np.concatenate([graph.u, more_u]),
                v=np.concatenate([graph.v, more_v]),
                length=np.concatenate([graph.length, self.instance.distance(more_u, more_v)]),
                stays=np.concatenate([graph.stays, np.zeros(len(more_u), bool)]),
            )

    def lower_bound(self, graph: SparseGraph, pi: NDArray[np.float64]) -> float:
        """Return a lower bound of all tours from node penalties.

        It is w(T) - 2 sum(pi), with T a minimum 1-tree over all edges under d(i, j) + pi_i + pi_j (Held and Karp 1970),
        minus possible rounding errors; rounded up if all distances are whole.

        graph : connected, any edges; pi : (n,) finite.
        """
        n = self.instance.n
        graph, tree = self.add_lighter_edges(graph, pi)
        u, v, length = graph.u[tree.tree], graph.v[tree.tree], graph.length[tree.tree]
        # Any leaf may get the second edge, if it is the second lightest of all its edges.
        leaf = int(tree.extra[0])
        to_leaf = self.instance.distance(np.arange(n), leaf)
        partner = self.instance.partner
        if partner is not None and partner[leaf] >= 0:
            to_leaf[partner[leaf]] = float(graph.length[graph.stays][0])
        weight_to_leaf = to_leaf + (pi + pi[leaf])
        weight_to_leaf[leaf] = np.inf
        other = int(np.argpartition(weight_to_leaf, 1)[1])
        degree = np.bincount(u, minlength=n) + np.bincount(v, minlength=n)
        degree[[leaf, other]] += 1
        total = math.fsum([*length.tolist(), to_leaf[other], graph.constant, *((degree - 2) * pi).tolist()])
        # A weight has two roundings, a term of the sum one; each is below half a unit of the largest number.
        largest = float(np.abs(length).max() + abs(to_leaf[other]) + 4.0 * np.abs(pi).max())
        total -= 4.0 * np.finfo(float).eps * n * largest * max(1, int(degree.max()))
        return float(math.ceil(total)) if self.instance.integral else total


def _numbered(n: int, u: NDArray[np.int32], v: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a number (m,) for each undirected edge between n cities."""
    return np.minimum(u, v).astype(np.int64) * n + np.maximum(u, v)


@compiled
def _summarise(
    tree: Tree, pi: Float64_1d, links: LinkTree, least: Float64_1d, heaviest: Int32_1d, member: Int32_1d
) -> None:
    """Write for each node its least penalty, the heaviest tree edge between its cities, and one of the cities."""
    n, leaves = pi.shape[0], 1 << tree.depth
    for j in range(leaves):
        low, high = (n * j) >> tree.depth, (n * (j + 1)) >> tree.depth
        least[leaves + j], heaviest[leaves + j] = np.inf, -1
        member[leaves + j] = tree.point[low]
        for p in range(low, high):
            least[leaves + j] = min(least[leaves + j], pi[p])
            between_both = heaviest_between(links, tree.point[low], tree.point[p])
            heaviest[leaves + j] = max(heaviest[leaves + j], between_both)
    for box in range(leaves - 1, 0, -1):
        a, b = 2 * box, 2 * box + 1
        member[box] = member[a]
        least[box] = min(least[a], least[b])
        between_both = heaviest_between(links, member[a], member[b])
        heaviest[box] = max(between_both, max(heaviest[a], heaviest[b]))


@compiled
def _search_tree(
    metric: int,
    tree: Tree,
    pi: Float64_1d,
    links: LinkTree,
    least: Float64_1d,
    heaviest: Int32_1d,
    member: Int32_1d,
    stack: Int64_1d,
    found: Int32_1d,
    first: int,
    last: int,
) -> None:
    """Write for the cities at positions first .. last-1 the lightest edge that makes the tree lighter, if any.

    A node is skipped if no edge into it can be lighter than the heaviest tree edges between. Distances, rounded or not,
    are monotone in the differences of coordinates, so a box gives a lower bound.
    """
    n, leaves = pi.shape[0], 1 << tree.depth
    for p in range(first, last):
        city, x, y, best = tree.point[p], tree.x[p], tree.y[p], np.inf
        stack[0], size = 1, 1
        while size > 0:
            size -= 1
            box = stack[size]
            dx = max(0.0, max(tree.boxes[box, 0] - x, x - tree.boxes[box, 1]))
            dy = max(0.0, max(tree.boxes[box, 2] - y, y - tree.boxes[box, 3]))
            light = between(metric, dx, dy, 0.0, 0.0, 0.0, 0.0) + (pi[p] + least[box])
            if light >= best or light >= links.weight[links.weight.shape[0] - 1]:
                continue
            edge = max(heaviest[box], heaviest_between(links, city, member[box]))
            if edge < 0 or light >= links.weight[edge]:
                continue
            if box < leaves:
                stack[size], stack[size + 1] = 2 * box, 2 * box + 1
                size += 2
                continue
            j = box - leaves
            for q in range((n * j) >> tree.depth, (n * (j + 1)) >> tree.depth):
                if q != p:
                    d = between(metric, x, y, 0.0, tree.x[q], tree.y[q], 0.0)
                    w = d + (pi[p] + pi[q])
                    if w < best and w < links.weight[heaviest_between(links, city, tree.point[q])]:
                        best, found[city] = w, tree.point[q]


@compiled
def _search_pairs(
    graph: Graph, pi: Float64_1d, links: LinkTree, found: Int32_1d, first: int, last: int
) -> None:
    """Write the same for cities first .. last-1 by a search of all cities."""
    for i in range(first, last):
        best = np.inf
        for j in range(pi.shape[0]):
            if j != i:
                w = distance(graph, i, j) + (pi[i] + pi[j])
                if w < best and w < links.weight[heaviest_between(links, i, j)]:
                    best, found[i] = w, j
