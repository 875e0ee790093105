"""Subgradient ascent of node penalties that make the minimum 1-tree similar to a tour, and its lower bound.

Held and Karp, "The traveling-salesman problem and minimum spanning trees: part II", Mathematical Programming 1 (1971):
penalties pi_i on both edges of city i do not change the order of tours by length, but they change the 1-tree, and
w(T_pi) - 2 sum(pi) is a lower bound of all tours. Its subgradient at city i is the degree in T_pi minus 2. Steps shrink
with the square of the remaining part of the run, after Volgenant and Jonker, "A branch and bound algorithm for the
symmetric traveling salesman problem based on the 1-tree relaxation", European Journal of Operational Research 9 (1982).
Each step repeats part of the previous one, like theirs (0.3 of it: Helsgaun 2000, section 4.1).

A tour enters and leaves a remote cluster once, like a city. An ascent of the penalties of single cities needs thousands
of steps to find the penalty of a whole cluster. An ascent that also changes the penalties of clusters needs about ten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.complete import ALL_PAIRS_LIMIT, CompleteGraph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.one_tree import OneTree, find_one_tree, join_blocks, make_one_tree, search_blocks
from pymoo_gpuaco.candidates.quadrant import has_quadrants
from pymoo_gpuaco.candidates.sparse import SparseGraph, sparse_graph
from pymoo_gpuaco.runtime.compiled import Float64_1d, Float64_2d, Int32_1d, compiled, inlined, struct
from pymoo_gpuaco.runtime.stop import Stop

_NEW_SHARE = 0.7  # of a step; the rest repeats the last step
_CLUSTER_STEP = 0.3  # first step of a cluster in units of its gap
_CHECKS = (0.1, 0.4, 0.7)  # shares of the run after which missing edges are added: more gave no better bounds
_RESET_BELOW = 0.1  # penalties whose bound falls this share below the best are reset
_CITY_EDGES = 5  # the mean length of this many candidates is the scale of a city
_LEAST_CLUSTER = 3  # minimum cities of a cluster
_CITIES_A_CALL = 2_000  # cities of all 1-trees of one thread between two checks of the deadline
_SEPARATION = 1.2  # minimum ratio of the shortest edge out of a cluster to the longest edge of its tree


class Ascent(NamedTuple):
    """The best penalties found and their lower bound."""

    pi: NDArray[np.float64]  # (n,) node penalties, in units of distance
    shared: NDArray[np.float64]  # (n,) the part of pi that moved whole clusters
    bound: float | None  # lower bound of all tours; None if not requested or too costly
    iterations: int  # number of 1-trees
    graph: SparseGraph  # graph of the 1-trees
    tree: OneTree  # workspace, with any of the 1-trees


def ascend(
    instance: ListedInstance,
    ids: NDArray[np.int32],
    distances: NDArray[np.float64],
    *,
    iterations: int | None = None,
    bound: bool = True,
    stop: Stop | None = None,
) -> Ascent:
    """Raise the minimum 1-tree of a sparse graph by node penalties.

    The ascent begins with the instance's `penalties`, and ends early if the 1-tree is a tour. Without `stop` the result
    is reproducible.

    instance : symmetric.
    ids, distances : (n, k) candidates, for example 10 per city by quadrant, and their distances. A greedy tour is
        added.
    iterations : number of 1-trees, >= 1; with 100, the bound of random cities is within 0.03 % of its limit.
        None: 1,000,000 / n, at least 20 and at most 300.
    bound : True: prove the bound, see `complete.CompleteGraph`.
    stop : ends the ascent early, without a bound.
    """
    n = instance.n
    planned = min(300, max(20, 1_000_000 // n)) if iterations is None else iterations
    graph = sparse_graph(instance, ids, distances)
    affordable = n <= ALL_PAIRS_LIMIT or has_quadrants(instance.metric, instance.coords)
    complete = CompleteGraph(instance) if bound and affordable else None
    tree = make_one_tree(graph)
    state = _first_penalties(instance, ids, distances, planned)
    pi, best = state.penalties[0], state.best
    made = 0

    def stopped() -> bool:
        return stop is not None and stop.ended()

    def is_check(before: int, made: int) -> bool:
        return any(before / planned < share <= made / planned for share in _CHECKS)

    def weigh(pi: NDArray[np.float64]) -> float:
        return find_one_tree(pi, tree) - 2.0 * float(pi.sum()) + graph.constant

    def keep() -> None:
        if best[1] > best[0]:
            best[0], state.kept[:] = best[1], state.penalties

    while made < planned and not stopped():
        before = made
        if made == 0:
            best[1], made = weigh(pi), 1
            keep()
            clusters = find_clusters(graph.u[tree.tree], graph.v[tree.tree], graph.length[tree.tree])
        elif len(tree.total) > 1:  # the blocks are searched in parallel
            take_step(tree.degree, clusters, made, state)
            best[1] = weigh(pi)
            made += 1
            keep()
        else:
            until = planned if stop is None else min(planned, made + max(1, _CITIES_A_CALL // n))
            if complete is not None:
                until = next((m for m in range(made + 1, until) if is_check(made, m)), until)
            made = _take_steps(tree, clusters, graph.constant, made, until, state)
        if not np.any(tree.degree != 2):
            break
        if complete is not None and is_check(before, made):
            graph, tree = complete.add_lighter_edges(graph, pi)
            best[0], best[1] = weigh(state.kept[0]), weigh(pi)
            keep()
            if best[1] < best[0] - _RESET_BELOW * abs(best[0]):
                # the bound rose only because the graph lacked edges
                state.penalties[:], state.step[:] = state.kept, 0.0
                weigh(pi)
    proven = None if complete is None or stopped() else complete.lower_bound(graph, state.kept[0])
    return Ascent(state.kept[0], state.kept[1], proven, made, graph, tree)


@struct
class Penalties(NamedTuple):
    """State of an ascent. Rows are pi, and its part shared by clusters."""

    penalties: Float64_2d  # (2, n)
    step: Float64_2d  # (2, n) the last change
    kept: Float64_2d  # (2, n) the best penalties
    best: Float64_1d  # (2,) the weight of ``kept``, and the latest weight
    scale: Float64_1d  # (n,) see `_city_scales`
    first_step: float  # in units of ``scale``; longer runs can correct larger steps
    planned: int  # number of 1-trees


def _first_penalties(
    instance: ListedInstance, ids: NDArray[np.int32], distances: NDArray[np.float64], planned: int
) -> Penalties:
    """Return the state before the first of ``planned`` 1-trees."""
    penalties = np.zeros((2, instance.n))
    if instance.penalties is not None:
        penalties[0] = instance.penalties
    if instance.form is not None and instance.form.has_dummy:
        # without a penalty the dummy, at distance 0 from all, would join all cities
        penalties[0, -1] = float(instance.neighbour_distances[:-1, 0].max())
    return Penalties(
        penalties,
        np.zeros_like(penalties),
        penalties.copy(),
        np.full(2, -np.inf),
        _city_scales(instance, ids, distances),
        float(np.clip(0.7 * (planned / 100.0) ** 0.8, 0.35, 1.0)),
        planned,
    )


def _city_scales(
    instance: ListedInstance, ids: NDArray[np.int32], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the geometric mean of the mean candidate distance of each city and that of all cities.

    Distances include the initial penalties.
    """
    few, near = ids[:, :_CITY_EDGES], distances[:, :_CITY_EDGES]
    if instance.penalties is not None:
        near = np.maximum(0.0, near + (instance.penalties[:, None] + instance.penalties[few]))
    near = near.mean(axis=1)
    if instance.form is not None and instance.form.has_dummy:  # the dummy is at distance 0 from all
        near[-1] = near[:-1].mean()
    return np.sqrt(near * near.mean())


@struct
class Clusters(NamedTuple):
    """A tree of groups: 0 .. n-1 are the cities, n + r is the union by the r-th lightest edge of a spanning tree."""

    parent: Int32_1d  # (2n - 1,) the union with a group; the last group is its own parent
    gap: Float64_1d  # (2n - 1,) edge out of a cluster minus its longest edge; 0 if it is no cluster
    sums: Float64_1d  # (2n - 1,) scratch
    shift: Float64_1d  # (2n - 1,) result of `shifts`


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
def _join_groups(
    clusters: Clusters, u: Int32_1d, v: Int32_1d, weight: Float64_1d, size: Int32_1d, above: Int32_1d
) -> None:
    """Join groups edge by edge."""
    n = u.shape[0] + 1
    for r in range(n - 1):
        group = n + r
        for city in (u[r], v[r]):
            part = representative(above, city)
            above[part], clusters.parent[part] = group, group
            size[group] = size[part] if city == u[r] else size[group] + size[part]
            within = weight[part - n] if part >= n else 0.0
            if _LEAST_CLUSTER <= size[part] <= n // 2 and weight[r] > _SEPARATION * within:
                clusters.gap[part] = weight[r] - within


@compiled
def shifts(clusters: Clusters, degree: Int32_1d) -> None:
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
        excess = min(1.0, max(-1.0, clusters.sums[g]))
        clusters.shift[g] = clusters.shift[clusters.parent[g]] + clusters.gap[g] * excess


@compiled
def take_step(degree: Int32_1d, clusters: Clusters, made: int, state: Penalties) -> None:
    """Change the penalties by the degrees (n,) of 1-tree number ``made``."""
    shifts(clusters, degree)
    penalties, step = state.penalties, state.step
    left = (1.0 - made / state.planned) ** 2
    new_share = 1.0 if made == 1 else _NEW_SHARE
    for i in range(degree.shape[0]):
        shared = _CLUSTER_STEP * left * clusters.shift[i]
        own = state.first_step * left * state.scale[i] * (degree[i] - 2) + shared
        penalties[0, i] += new_share * own + (1.0 - new_share) * step[0, i]
        penalties[1, i] += new_share * shared + (1.0 - new_share) * step[1, i]
        step[0, i], step[1, i] = own, shared


@compiled
def _take_steps(
    tree: OneTree, clusters: Clusters, constant: float, made: int, until: int, state: Penalties
) -> int:
    """Repeat step and 1-tree, in one thread, up to number ``until`` or a 1-tree that is a tour; return its number."""
    penalties, best, n = state.penalties, state.best, tree.degree.shape[0]
    while made < until:
        take_step(tree.degree, clusters, made, state)
        search_blocks(penalties[0], tree, 0, tree.total.shape[0])
        weight, is_tour = join_blocks(tree) + constant, True
        for i in range(n):
            weight -= 2.0 * penalties[0, i]
            is_tour = is_tour and tree.degree[i] == 2
        made += 1
        best[1] = weight
        if weight > best[0]:
            best[0] = weight
            for i in range(n):
                state.kept[0, i], state.kept[1, i] = penalties[0, i], penalties[1, i]
        if is_tour:
            break
    return made
