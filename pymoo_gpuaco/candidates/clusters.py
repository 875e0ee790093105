"""Clusters of cities, from the order in which Kruskal's algorithm joins them, as one tree of groups.

A tour enters and leaves a remote cluster once, like a city. An ascent of the penalties of single cities needs thousands
of steps to find the penalty of a whole cluster. An ascent that also changes the penalties of clusters needs about ten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, inlined

_FEWEST = 3  # minimum cities of a cluster
_SEPARATION = 1.2  # minimum ratio of the shortest edge out of a cluster to the longest edge of its tree


class Clusters(NamedTuple):
    """A tree of groups: 0 .. n-1 are the cities, n + r is the union by the r-th lightest edge of a spanning tree."""

    parent: NDArray[np.int32]  # (2n - 1,) the union with a group; the last group is its own parent
    gap: NDArray[np.float64]  # (2n - 1,) edge out of a cluster minus its longest edge; 0 if it is no cluster
    sums: NDArray[np.float64]  # (2n - 1,) scratch
    shift: NDArray[np.float64]  # (2n - 1,) result of `shifts`


def find_clusters(u: NDArray[np.int32], v: NDArray[np.int32], weight: NDArray[np.float64]) -> Clusters:
    """Find the clusters in the n - 1 edges of a spanning tree, with weights >= 0, of cities 0 .. n-1."""
    n = len(u) + 1
    order = np.argsort(weight, kind="stable")
    clusters = Clusters(
        np.arange(2 * n - 1, dtype=np.int32),
        np.zeros(2 * n - 1),
        np.empty(2 * n - 1),
        np.empty(2 * n - 1),
    )
    size, above = np.ones(2 * n - 1, np.int32), np.arange(2 * n - 1, dtype=np.int32)
    _join_groups(clusters, u[order], v[order], weight[order], size, above)
    return clusters


@inlined
def representative(parent, i):  # type: ignore[no-untyped-def]
    """Return the root of the set of i, halving the path to it (Tarjan and van Leeuwen, Journal of the ACM 31, 1984)."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@compiled
def _join_groups(clusters, u, v, weight, size, above):  # type: ignore[no-untyped-def]
    """Join groups edge by edge."""
    n = u.shape[0] + 1
    for r in range(n - 1):
        group = n + r
        for city in (u[r], v[r]):
            part = representative(above, city)
            above[part], clusters.parent[part] = group, group
            size[group] = size[part] if city == u[r] else size[group] + size[part]
            within = weight[part - n] if part >= n else 0.0
            if _FEWEST <= size[part] <= n // 2 and weight[r] > _SEPARATION * within:
                clusters.gap[part] = weight[r] - within


@compiled
def shifts(clusters, degree):  # type: ignore[no-untyped-def]
    """Write the change of the penalty of each group to ``shift``, in units of distance, from 1-tree degrees (n,).

    As for a city, the sum of (degree - 2) over a cluster is the excess of its outgoing edges. It is limited to [-1, 1],
    because a cluster can have any number of edges and the step would overshoot.
    """
    n, groups = degree.shape[0], clusters.parent.shape[0]
    for g in range(groups):
        clusters.sums[g] = degree[g] - 2 if g < n else 0.0
    for g in range(groups - 1):
        clusters.sums[clusters.parent[g]] += clusters.sums[g]
    clusters.shift[groups - 1] = 0.0
    for g in range(groups - 2, -1, -1):
        way = min(1.0, max(-1.0, clusters.sums[g]))
        clusters.shift[g] = clusters.shift[clusters.parent[g]] + clusters.gap[g] * way
