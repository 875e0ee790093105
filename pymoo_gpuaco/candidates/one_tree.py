"""Minimum 1-trees: a spanning tree and one edge more, so that there is one cycle, as in a tour.

Held and Karp, "The traveling-salesman problem and minimum spanning trees", Operations Research 18 (1970). Every tour
is a 1-tree, so the shortest 1-tree is no longer than the shortest tour. The tree is Boruvka's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.sparse import SparseGraph
from pymoo_gpuaco.host.compiled import compiled, compiled_callee


class OneTree(NamedTuple):
    """Where 1-trees of one graph are written; n cities, m edges. The first three are results."""

    tree: NDArray[np.int64]  # (n - 1,) edges of the spanning tree
    degree: NDArray[np.int32]  # (n,) edges of the 1-tree at a city
    extra: NDArray[np.int64]  # (2,) the leaf that got a second edge, and that edge
    edge: NDArray[np.int64]  # (m,) edges between parts
    part_u: NDArray[np.int32]  # (m,) parts that they join
    part_v: NDArray[np.int32]  # (m,)
    weight: NDArray[np.float64]  # (m,)
    best: NDArray[np.int64]  # (n,) index in ``edge`` of a part's lightest
    best_weight: NDArray[np.float64]  # (n,)
    second: NDArray[np.int64]  # (n,) a city's lightest edge but one
    second_weight: NDArray[np.float64]  # (n,)
    parent: NDArray[np.int32]  # (n,)
    label: NDArray[np.int32]  # (n,)


def make_one_tree(graph: SparseGraph) -> OneTree:
    """Allocate the arrays for a graph."""
    n, m = graph.n, len(graph.u)
    return OneTree(
        np.empty(n - 1, np.int64),
        np.empty(n, np.int32),
        np.empty(2, np.int64),
        np.empty(m, np.int64),
        np.empty(m, np.int32),
        np.empty(m, np.int32),
        np.empty(m),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n, np.int64),
        np.empty(n),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
    )


@compiled
def find_one_tree(graph, pi, o):  # type: ignore[no-untyped-def]
    """Find the minimum 1-tree under d(i, j) + (pi_i + pi_j) and return its weight; equal edges go by number.

    The leaf with the heaviest second edge gets that edge (Helsgaun 2000, section 4.1): any leaf gives a 1-tree that no
    tour is lighter than, and this one the heaviest.
    """
    n = graph.n
    _weigh(graph, pi, o)
    taken, parts, left, total = 0, n, graph.u.shape[0], 0.0
    while parts > 1:
        if taken > 0:
            _lightest_of_parts(o, parts, left)
        for c in range(parts):
            e = o.best[c]
            o.parent[c] = o.part_v[e] if o.part_u[e] == c else o.part_u[e]
        for c in range(parts):
            other = o.parent[c]
            # Where two parts choose one edge, the lower part is the root. No longer cycle is possible, as no two
            # edges are equal: their numbers differ.
            if o.best[other] == o.best[c]:
                if c > other:
                    continue
                o.parent[c] = c
            o.tree[taken] = o.edge[o.best[c]]
            total += o.best_weight[c]
            taken += 1
        parts, left = _merge(o, parts, left)
    return total + _close(graph, o)


@compiled_callee
def _weigh(graph, pi, o):  # type: ignore[no-untyped-def]
    """Weigh all edges; find each city's lightest two."""
    for i in range(graph.n):
        o.best[i], o.second[i] = -1, -1
        o.best_weight[i], o.second_weight[i] = np.inf, np.inf
        o.degree[i] = 0
    for e in range(graph.u.shape[0]):
        i, j = graph.u[e], graph.v[e]
        w = graph.length[e] + (pi[i] + pi[j])  # the brackets make it the same either way round
        o.edge[e], o.part_u[e], o.part_v[e], o.weight[e] = e, i, j, w
        for c in (i, j):
            if w < o.best_weight[c]:
                o.second[c], o.second_weight[c] = o.best[c], o.best_weight[c]
                o.best[c], o.best_weight[c] = e, w
            elif w < o.second_weight[c]:
                o.second[c], o.second_weight[c] = e, w


@compiled_callee
def _lightest_of_parts(o, parts, left):  # type: ignore[no-untyped-def]
    """Find each part's lightest edge; ``edge`` ascends, so the first of equals has the lowest number."""
    for c in range(parts):
        o.best_weight[c] = np.inf
    for s in range(left):
        a, b, w = o.part_u[s], o.part_v[s], o.weight[s]
        if w < o.best_weight[a]:
            o.best[a], o.best_weight[a] = s, w
        if w < o.best_weight[b]:
            o.best[b], o.best_weight[b] = s, w


@compiled_callee
def _merge(o, parts, left):  # type: ignore[no-untyped-def]
    """Number the joined parts anew, drop edges inside them; return how many parts and edges are left."""
    for c in range(parts):
        o.label[c] = -1
        root = c
        while o.parent[root] != root:
            root = o.parent[root]
        at = c
        while o.parent[at] != root:
            o.parent[at], at = root, o.parent[at]
    count, kept = 0, 0
    for s in range(left):
        a, b = o.parent[o.part_u[s]], o.parent[o.part_v[s]]
        if a != b:
            # numbers in the order of the edges, so that parts of one region have near numbers
            for c in (a, b):
                if o.label[c] < 0:
                    o.label[c] = count
                    count += 1
            o.part_u[kept], o.part_v[kept] = o.label[a], o.label[b]
            o.edge[kept], o.weight[kept] = o.edge[s], o.weight[s]
            kept += 1
    return max(count, 1), kept


@compiled_callee
def _close(graph, o):  # type: ignore[no-untyped-def]
    """Count degrees, give a leaf its second edge, return that edge's weight."""
    for s in range(graph.n - 1):
        e = o.tree[s]
        o.degree[graph.u[e]] += 1
        o.degree[graph.v[e]] += 1
    leaf = -1
    for i in range(graph.n):
        if o.degree[i] == 1 and (leaf < 0 or o.second_weight[i] > o.second_weight[leaf]):
            leaf = i
    e = o.second[leaf]
    o.degree[graph.u[e]] += 1
    o.degree[graph.v[e]] += 1
    o.extra[0], o.extra[1] = leaf, e
    return o.second_weight[leaf]
