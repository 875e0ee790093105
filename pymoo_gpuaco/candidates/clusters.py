"""Clusters of cities, from the order in which Kruskal's algorithm joins them, as one tree of groups.

A cluster far from all else acts on a tour like a city: it is entered and left once. An ascent that moves single cities
takes thousands of steps to find the penalty of a whole cluster; one that also moves clusters takes some ten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.host.compiled import compiled, inlined

_FEWEST = 3  # cities of a cluster
_APART = 1.2  # a cluster's way out is longer by this factor than the longest edge of its own tree


class Clusters(NamedTuple):
    """Groups 0 .. n-1 are the cities, group n + r is what the r-th lightest edge of the spanning tree joins."""

    parent: NDArray[np.int32]  # (2n - 1,) the group that a group becomes part of; the last one's is itself
    gap: NDArray[
        np.float64
    ]  # (2n - 1,) how much longer a cluster's way out is than its own edges; 0 for no cluster
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
def _top(above, i):  # type: ignore[no-untyped-def]
    """The group that holds i and is in no other yet, halving the way to it."""
    while above[i] != i:
        above[i] = above[above[i]]
        i = above[i]
    return i


@compiled
def _join_groups(clusters, u, v, weight, size, above):  # type: ignore[no-untyped-def]
    """Join groups edge by edge."""
    n = u.shape[0] + 1
    for r in range(n - 1):
        group = n + r
        for city in (u[r], v[r]):
            part = _top(above, city)
            above[part], clusters.parent[part] = group, group
            size[group] = size[part] if city == u[r] else size[group] + size[part]
            inner = weight[part - n] if part >= n else 0.0
            if _FEWEST <= size[part] <= n // 2 and weight[r] > _APART * inner:
                clusters.gap[part] = weight[r] - inner


@compiled
def shifts(clusters, degree):  # type: ignore[no-untyped-def]
    """Write into ``shift`` where each group's penalty should go, by the degrees (n,) of a 1-tree, in units of distance.

    The edges that leave a cluster are two too many or too few where the degrees of its cities less 2 sum to that,
    as for one city. That sum is cut to [-1, 1]: a cluster can have any number of edges, and would overshoot.
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
