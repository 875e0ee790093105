"""Alpha-nearness: the increase of the minimum 1-tree if an edge must be in it.

Helsgaun, "An effective implementation of the Lin-Kernighan traveling salesman heuristic", European Journal of
Operational Research 126 (2000), section 4.1: after an ascent of the penalties, five edges of least alpha contain the
optimal tour about as well as ten or more of the shortest edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pymoo_gpuaco.candidates.ascent import Ascent
from pymoo_gpuaco.candidates.complete import heaviest_between, make_link_tree
from pymoo_gpuaco.candidates.one_tree import OneTree, find_one_tree, make_one_tree
from pymoo_gpuaco.candidates.sparse import SparseGraph
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread, thread_count

# Maximum cities for candidates by alpha-nearness.
MOST_FOR_ALPHA = 200_000


def check_alpha(symmetric: bool, n: int) -> None:
    """Raise ValueError if candidates by alpha-nearness are not defined or would take too long."""
    if not symmetric:
        raise ValueError("candidates='alpha' requires a symmetric instance; use candidates='nearest'")
    if n > MOST_FOR_ALPHA:
        raise ValueError(
            f"candidates='alpha' allows at most {MOST_FOR_ALPHA} cities, got {n}; use candidates='quadrant'"
        )


class AlphaLists(NamedTuple):
    """k candidates of each of n cities, sorted by (alpha, distance, id)."""

    ids: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)
    alphas: NDArray[np.float64]  # (n, k) >= 0, 0 for edges of the 1-tree

    def by_distance(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the (n, k) ids and distances with rows sorted by (distance, id), for the engines."""
        order = np.lexsort((self.ids, self.distances), axis=-1)
        return np.take_along_axis(self.ids, order, axis=1), np.take_along_axis(self.distances, order, axis=1)


def alpha_values(
    graph: SparseGraph, pi: NDArray[np.float64], tree: OneTree | None = None
) -> NDArray[np.float64]:
    """Return the alpha (m,) of every edge under penalties `pi` (n,), in O(m log n).

    ``tree`` : workspace for the 1-tree of the graph, allocated if missing.

    Alpha is the weight of the edge minus that of the heaviest edge it replaces: on the path between its ends in the
    spanning tree, or the second edge of the special leaf (Helsgaun 2000, section 4.1).
    """
    tree = make_one_tree(graph) if tree is None else tree
    find_one_tree(pi, tree)
    weight = graph.length + (pi[graph.u] + pi[graph.v])
    links = make_link_tree(graph.u[tree.tree], graph.v[tree.tree], weight[tree.tree])
    alphas = np.empty(len(weight))
    leaf, extra = int(tree.extra[0]), int(tree.extra[1])

    def work(_: int, first: int, last: int) -> None:
        _alphas(graph, weight, links, leaf, weight[extra], alphas, first, last)

    spread(work, len(weight), thread_count())
    return alphas


@compiled
def _alphas(graph, weight, links, leaf, second, alphas, first, last):  # type: ignore[no-untyped-def]
    """Write alpha of edges first .. last-1; ``second`` is the weight of the leaf's second edge."""
    for e in range(first, last):
        u, v = graph.u[e], graph.v[e]
        way = second if leaf in (u, v) else links.weight[heaviest_between(links, u, v)]
        alphas[e] = max(0.0, weight[e] - way)  # the leaf's first edge is lighter than its second


def alpha_lists(ascent: Ascent, k: int) -> AlphaLists:
    """Return the `k` edges of least alpha of each city, from the graph and the penalties of an ascent.

    k : at most the minimum number of edges of a city in that graph. Raises ValueError if it is larger.
    """
    graph = ascent.graph
    n, m = graph.n, len(graph.u)
    ends = np.concatenate([graph.u, graph.v])
    incident = csr_array((np.ones(2 * m, bool), (ends, np.tile(np.arange(m), 2))), shape=(n, m))
    first, edge = incident.indptr.astype(np.int64), incident.indices.astype(np.int32)
    most = int(np.diff(first).min())
    if not 1 <= k <= most:
        raise ValueError(f"k must be in [1, {most}] on this graph, got {k}")
    alphas = alpha_values(graph, ascent.pi, ascent.tree)
    alphas[graph.stays] = np.inf  # fixed edges are no candidates
    lists = AlphaLists(np.empty((n, k), np.int32), np.empty((n, k)), np.empty((n, k)))

    def work(_: int, low: int, high: int) -> None:
        _least_of_city(graph, first, edge, alphas, lists, low, high)

    spread(work, n, thread_count())
    return lists


@compiled
def _least_of_city(graph, first, edge, alphas, lists, low, high):  # type: ignore[no-untyped-def]
    """Write the first edges of each city by (alpha, distance, id) to its row."""
    k = lists.ids.shape[1]
    for i in range(low, high):
        for s in range(first[i + 1] - first[i]):
            e = edge[first[i] + s]
            j = graph.v[e] if graph.u[e] == i else graph.u[e]
            a, d = alphas[e], graph.length[e]
            t = min(s, k)
            while t > 0:
                b, c = lists.alphas[i, t - 1], lists.distances[i, t - 1]
                if b < a or (b == a and (c < d or (c == d and lists.ids[i, t - 1] < j))):
                    break
                if t < k:
                    lists.ids[i, t], lists.distances[i, t], lists.alphas[i, t] = lists.ids[i, t - 1], c, b
                t -= 1
            if t < k:
                lists.ids[i, t], lists.distances[i, t], lists.alphas[i, t] = j, d, a
