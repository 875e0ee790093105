"""Node penalties that push the minimum 1-tree towards a tour, and the lower bound that comes with them.

Held and Karp, "The traveling-salesman problem and minimum spanning trees: part II", Mathematical Programming 1 (1971):
a penalty pi_i on both edges of city i changes no tour's order by length, but it does change the 1-tree, and
w(T_pi) - 2 sum(pi) is below every tour. Its subgradient at city i is the degree in T_pi less 2. Steps shrink with the
square of the part of the run that is left, after Volgenant and Jonker, "A branch and bound algorithm for the symmetric
traveling salesman problem based on the 1-tree relaxation", European Journal of Operational Research 9 (1982), and
repeat part of the step before, as theirs do (0.3 of it: Helsgaun 2000, section 4.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.clusters import find_clusters, shifts
from pymoo_gpuaco.candidates.complete import CompleteGraph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.one_tree import OneTree, find_one_tree, make_one_tree
from pymoo_gpuaco.candidates.sparse import SparseGraph, sparse_graph
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.stop import Stop

MAX_ITERATIONS = 1000
_NEW_SHARE = 0.7  # of the step; the rest repeats the last one
_CLUSTER_STEP = 0.3  # first step of a cluster in units of its gap
_CHECKS = (0.0, 0.1, 0.2, 0.4, 0.7)  # shares of the run after which edges that the lists lack are looked for
_BETWEEN_CHECKS = 8  # iterations at least: a check takes as long as some ten of them
_RUNAWAY = 0.1  # penalties that fall this far behind the best are given up
_CITY_EDGES = 5  # candidates whose mean length is a city's scale


class Ascent(NamedTuple):
    """The best penalties found and what they prove."""

    pi: NDArray[np.float64]  # (n,) node penalties, in units of distance
    shared: NDArray[np.float64]  # (n,) the part of pi that has moved whole clusters
    bound: float | None  # no tour is shorter; None where it was not asked for or is too costly to prove
    iterations: int  # 1-trees made
    graph: SparseGraph  # what they were made on
    tree: OneTree  # where they were written: the last is any of them


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

    It begins with the instance's `penalties`, and ends early where the 1-tree is a tour. Without `stop` the result is
    the same on every run.

    instance : symmetric.
    ids, distances : (n, k) candidates, say 10 a city by quadrant, and how far they are. A greedy tour is added.
    iterations : 1-trees to make, 1 to `MAX_ITERATIONS`; 100 bring the bound of random cities to 0.03 % of what more
        can reach. None: a million divided by n, 20 at least and 300 at most.
    bound : whether to prove the bound; see `complete.CompleteGraph`.
    stop : once it has ended, the ascent ends within some edges' search, without a bound.

    Raises ValueError or TypeError naming the parameter.
    """
    n = instance.n
    if iterations is not None:
        planned = checks.integer("iterations", iterations, 1, MAX_ITERATIONS)
    else:
        planned = min(300, max(20, 1_000_000 // n))
    checks.flag("bound", bound)
    graph = sparse_graph(instance, ids, distances)
    complete = CompleteGraph(instance) if bound else None
    if complete is not None and not complete.affordable:
        complete = None
    scale = _city_scales(instance, ids, distances)
    tree = make_one_tree(graph)
    penalties, step = np.zeros((2, n)), np.zeros((2, n))  # pi, and the part of it that is shared
    pi = penalties[0]
    if instance.penalties is not None:
        pi[:] = instance.penalties
    if instance.form is not None and instance.form.has_dummy:
        # without one the dummy, at distance 0 from all, would join all cities: every one is nearer to another than this
        pi[-1] = float(instance.neighbour_distances[:-1, 0].max())
    best_penalties, safe_penalties = penalties.copy(), penalties.copy()
    best, safe = -np.inf, -np.inf  # by the graph so far; by all edges
    checks_left = list(_CHECKS) if complete is not None else []
    made, checked, done = 0, -_BETWEEN_CHECKS, 0.0

    def late() -> bool:
        return stop is not None and stop.ended()

    while (made == 0 or done < 1.0) and not late():
        weight = find_one_tree(pi, tree) - 2.0 * float(pi.sum()) + graph.constant
        made += 1
        if weight > best:
            best, best_penalties = weight, penalties.copy()
        done = made / planned
        if not np.any(tree.degree != 2):
            break
        due = len(checks_left) > 0 and done >= checks_left[0] and made - checked >= _BETWEEN_CHECKS
        if complete is not None and due:
            checks_left, checked = [c for c in checks_left if c > done], made
            graph, tree = complete.add_lighter_edges(graph, pi)
            weight = find_one_tree(pi, tree) - 2.0 * float(pi.sum()) + graph.constant
            if weight > safe:
                safe, safe_penalties = weight, penalties.copy()
            elif weight < safe - _RUNAWAY * abs(safe):
                # it climbed where the graph lacked edges: back
                penalties[:], step[:] = safe_penalties, 0.0
            best = find_one_tree(best_penalties[0], tree) - 2.0 * float(best_penalties[0].sum())
            best += graph.constant
            if safe > best:
                best, best_penalties = safe, safe_penalties
            find_one_tree(pi, tree)
        if made == 1:
            clusters = find_clusters(graph.u[tree.tree], graph.v[tree.tree], graph.length[tree.tree])
        left = (1.0 - done) ** 2
        shifts(clusters, tree.degree)
        new_share = 1.0 if made == 1 else _NEW_SHARE
        _take_step(
            tree.degree,
            scale,
            _first_step(planned) * left,
            clusters,
            _CLUSTER_STEP * left,
            new_share,
            step,
            penalties,
        )
    if complete is None or late():
        return Ascent(best_penalties[0], best_penalties[1], None, made, graph, tree)
    proven = complete.lower_bound(graph, best_penalties[0])
    if proven < safe:
        best_penalties, proven = safe_penalties, complete.lower_bound(graph, safe_penalties[0])
    return Ascent(best_penalties[0], best_penalties[1], proven, made, graph, tree)


def _first_step(iterations: int) -> float:
    """First step in units of a city's scale: a longer run can take larger steps back in time (measured)."""
    return float(np.clip(0.7 * (iterations / 100.0) ** 0.8, 0.35, 1.0))


def _city_scales(
    instance: ListedInstance, ids: NDArray[np.int32], distances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Geometric mean of how far candidates are at each city and how far they are on the whole.

    Lengths count with the penalties with which the ascent begins, where there are any.
    """
    few, near = ids[:, :_CITY_EDGES], distances[:, :_CITY_EDGES]
    if instance.penalties is not None:
        near = np.maximum(0.0, near + (instance.penalties[:, None] + instance.penalties[few]))
    near = near.mean(axis=1)
    if instance.form is not None and instance.form.has_dummy:  # it is at distance 0 from all
        near[-1] = near[:-1].mean()
    return np.sqrt(near * near.mean())


@compiled
def _take_step(degree, scale, size, clusters, cluster_size, new_share, step, penalties):  # type: ignore[no-untyped-def]
    """Move penalties (2, n), see `ascend`, along the subgradient, partly along the step before."""
    for i in range(degree.shape[0]):
        shared = cluster_size * clusters.shift[i]
        own = size * scale[i] * (degree[i] - 2) + shared
        penalties[0, i] += new_share * own + (1.0 - new_share) * step[0, i]
        penalties[1, i] += new_share * shared + (1.0 - new_share) * step[1, i]
        step[0, i], step[1, i] = own, shared
