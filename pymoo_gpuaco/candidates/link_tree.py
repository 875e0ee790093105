"""The heaviest edge between two cities along a spanning tree, in O(log n) steps.

Kruskal's algorithm joins parts in the order of edge weights. In a forest whose smaller root is linked below the larger
one, no city is deeper than log2 n, and the last link between two cities is the heaviest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee

ROOT = np.iinfo(np.int32).max  # rank of the root


class LinkTree(NamedTuple):
    """A spanning tree of n cities as the links of Kruskal's algorithm."""

    parent: NDArray[np.int32]  # (n,)
    rank: NDArray[np.int32]  # (n,) index in ``weight`` of the edge above a city
    weight: NDArray[np.float64]  # (n - 1,) tree edges, ascending


def make_link_tree(u: NDArray[np.int32], v: NDArray[np.int32], weight: NDArray[np.float64]) -> LinkTree:
    """Build the links from the n - 1 edges of a spanning tree of cities 0 .. n-1, in any order."""
    n = len(u) + 1
    order = np.argsort(weight, kind="stable")
    links = LinkTree(np.arange(n, dtype=np.int32), np.full(n, ROOT, np.int32), weight[order])
    _link(links, u[order], v[order], np.ones(n, np.int32))
    return links


@compiled
def _link(links, u, v, size):  # type: ignore[no-untyped-def]
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
