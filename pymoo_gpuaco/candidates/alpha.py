"""Alpha-nearness: the increase of the minimum 1-tree if an edge must be in it.

Helsgaun, "An effective implementation of the Lin-Kernighan traveling salesman heuristic", European Journal of
Operational Research 126 (2000), section 4.1: after an ascent of the penalties, five edges of least alpha contain the
optimal tour about as well as ten or more of the shortest edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from pymoo_gpuaco.candidates.ascent import Ascent
from pymoo_gpuaco.candidates.complete import heaviest_between, make_link_tree
from pymoo_gpuaco.candidates.listed import Candidates
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
        replaced = second if leaf in (u, v) else links.weight[heaviest_between(links, u, v)]
        alphas[e] = max(0.0, weight[e] - replaced)  # the leaf's first edge is lighter than its second


def alpha_lists(ascent: Ascent, k: int) -> Candidates:
    """Return the `k` edges of least alpha of each city, sorted by (alpha, distance, id), after an ascent.

    k : at most the minimum number of edges of a city in that graph.
    """
    graph = ascent.graph
    n, m = graph.n, len(graph.u)
    ends = np.concatenate([graph.u, graph.v])
    incident = csr_array((np.ones(2 * m, bool), (ends, np.tile(np.arange(m), 2))), shape=(n, m))
    alphas = alpha_values(graph, ascent.pi, ascent.tree)
    alphas[graph.stays] = np.inf  # fixed edges are no candidates
    lists, least = Candidates(np.empty((n, k), np.int32), np.empty((n, k))), np.empty((n, k))
    edges = incident.indptr.astype(np.int64), incident.indices.astype(np.int32)

    def work(_: int, low: int, high: int) -> None:
        _least_of_city(graph, *edges, alphas, *lists, least, low, high)

    spread(work, n, thread_count())
    return lists


@compiled
def _least_of_city(graph, first, edge, alphas, ids, distances, least, low, high):  # type: ignore[no-untyped-def]
    """Write the first edges of cities low .. high-1 by (alpha, distance, id), and their alphas to ``least``."""
    k = ids.shape[1]
    for i in range(low, high):
        for s in range(first[i + 1] - first[i]):
            e = edge[first[i] + s]
            j = graph.v[e] if graph.u[e] == i else graph.u[e]
            a, d = alphas[e], graph.length[e]
            t = min(s, k)
            while t > 0:
                b, c = least[i, t - 1], distances[i, t - 1]
                if b < a or (b == a and (c < d or (c == d and ids[i, t - 1] < j))):
                    break
                if t < k:
                    ids[i, t], distances[i, t], least[i, t] = ids[i, t - 1], c, b
                t -= 1
            if t < k:
                ids[i, t], distances[i, t], least[i, t] = j, d, a
