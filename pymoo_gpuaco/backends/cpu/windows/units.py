"""Costs in whole units: scaled and rounded distances, so that gains are exact and searches terminate."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cpu.windows.window import Units
from pymoo_gpuaco.candidates import Candidates, lists
from pymoo_gpuaco.candidates.alpha import alpha_lists
from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import Kind, check_alpha
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.population import whole_units

_TO_CHOOSE_FROM = 10
_FEWEST_TREES = 5  # for candidates="alpha"
_WITHOUT_PENALTIES = 8  # candidates without penalties


def make_units(
    instance: ListedInstance, graph: Graph, parameters: MemeticParameters
) -> tuple[Units, Candidates]:
    """Return costs and candidates of an instance, and the lists from which they were chosen.

    Candidates "auto": by alpha-nearness, if the instance is small enough.
    """
    n, scale, kind = instance.n, whole_units(instance), parameters.candidates
    iterations = parameters.iterations(n) if kind in ("auto", "alpha") else 0
    if kind == "alpha":
        check_alpha(instance.symmetric, n)
        iterations = max(iterations, _FEWEST_TREES)
    chosen: Kind = "nearest" if kind == "nearest" else "quadrant"
    without_penalties = parameters.candidate_list_size or _WITHOUT_PENALTIES
    near = lists(instance, chosen, _TO_CHOOSE_FROM if iterations else without_penalties)
    if iterations == 0:
        pi, ids, lengths = np.zeros(n), near.ids, near.distances
    else:
        k = min(parameters.n_candidates(n), near.ids.shape[1])
        ascent = ascend(instance, *near, iterations=iterations, bound=False)
        alpha = alpha_lists(ascent, k)
        pi, ids, lengths = np.rint(ascent.pi * scale), alpha.ids, alpha.distances
    if iterations == 0 and bool((lengths[:, 1:] >= lengths[:, :-1]).all()):
        # already sorted by cost: sorting millions of rows takes seconds
        return Units(graph, scale, pi, ids), near
    costs = np.rint(lengths * scale) + pi[ids]  # the city's own pi does not change the order
    order = np.argsort(costs, axis=1, kind="stable")
    return Units(graph, scale, pi, np.ascontiguousarray(np.take_along_axis(ids, order, axis=1))), near
