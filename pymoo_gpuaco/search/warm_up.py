"""What the host does of a focused run is compiled before the run, on a few cities."""

from __future__ import annotations

import functools

import numpy as np

from pymoo_gpuaco.candidates import greedy_tour
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.search.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.search.penalties import penalised_lists
from pymoo_gpuaco.search.population import Population


@functools.cache
def warm_up_host(penalised: bool, evolves: bool) -> None:
    """Compile what tours take over from each other with, and what finds penalties and what evolves where wanted."""
    instance = listed_instance(TSP(np.random.default_rng(0).random((40, 2)), metric="EXACT"), 8)
    if penalised:
        penalised_lists(instance, 8, 1.0, 1)
    population = Population(instance, make_graph(instance))
    population.merge(greedy_tour(instance))
    population.merge(np.random.default_rng(0).permutation(40).astype(np.int32))
    rng = np.random.default_rng(1)
    tours = np.array([rng.permutation(40) for _ in range(FEWEST_TO_EVOLVE)], np.int32)
    population.recombine(tours[:2], 0, Stop())
    if evolves:
        population.recombine(tours, 0, Stop(), last=True)
