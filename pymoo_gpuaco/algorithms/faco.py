"""Focused Ant Colony Optimization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, as_parameters
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.backends import make_faco
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.parameters import LocalSearch


@dataclass(kw_only=True, eq=False, repr=False)
class GPUFACO(AntColony):
    """Focused ACO (Skinderowicz 2022): a MAX-MIN colony whose ants change a source tour in a few places.

    An ant chooses edges by trails and distances until ``min_new_edges`` of them are not in the source tour, and copies
    the rest from the source. The local search starts only from the ends of the new edges. The iteration's best tour,
    or rarely the best so far, becomes the next source; only the source deposits. An iteration is fast also for many
    cities. For symmetric instances.

    Parameters
    ----------
    n_ants : m, tours an iteration, >= 1. None: 4 sqrt(n), rounded up to a multiple of 32.
    alpha, beta, candidates : see ``AntColony``; beta is 1 by default.
    rho : evaporation rate in (0, 1]. Default 0.5.
    candidate_list_size : nearest cities that an ant chooses from, in [1, 1024]. Default 16.
    local_search : True (2-opt and Or-opt; default), False, "2opt" (the paper's), "2opt+oropt", or a ``LocalSearch``
        without kicks.
    pheromone : "auto" or "candidate": trails are those of candidate edges.
    backup_list_size : nearest cities after the candidates, in [0, 1024]. An ant whose candidates are all visited
        chooses the nearest unvisited one of these. Default 64.
    min_new_edges : edges that are not in the source and that an ant chooses before it copies, in [1, 64]. Default 8.
    p_best : in (0, 1), sets tau_min as in ``GPUMMAS``, with the number of candidates as number of cities. Default 0.1.
    best_as_source : probability in [0, 1] that the best tour so far is the next source and deposits. Default 0.01.
    iterations : iterations of one generation, >= 1; pymoo evaluates tours of the last. None: 1 on the CPU, 25 on CUDA.
        It is 1 if the objective is not the tour length.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Source: R. Skinderowicz, "Improving Ant Colony Optimization efficiency for solving large TSP instances", Applied
    Soft Computing 120 (2022), doi:10.1016/j.asoc.2022.108653.
    """

    beta: Number = 1.0
    rho: Number = 0.5
    candidate_list_size: Count | None = 16
    backup_list_size: Count = 64
    min_new_edges: Count = 8
    p_best: Number = 0.1
    best_as_source: Number = 0.01
    iterations: Count | None = None

    _make_engine = staticmethod(make_faco)  # type: ignore[assignment]

    def _check(self) -> None:
        if get(self.heuristic) is not None:
            raise ValueError(
                f"heuristic must be None for GPUFACO, got {get(self.heuristic)!r}; GPUMMAS takes one"
            )
        LocalSearch.of(get(self.local_search))  # raises for a function
        super()._check()
        checks.optional_integer("iterations", get(self.iterations), 1)

    def _parameters(self, **others: Any) -> FacoParameters:
        if get(self.candidate_list_size) is None:
            raise ValueError("candidate_list_size must be an integer in [1, 1024] for GPUFACO, got None")
        checks.choice("pheromone", get(self.pheromone), ("auto", "candidate"))
        search = None if self._evaluates_all else self._search()
        return as_parameters(self, FacoParameters, n_ants=self._n_ants(), local_search=search, **others)

    def _begin(self) -> None:
        self._begin_with(self.engine.begin())  # the engine starts with tau_max of its first tour

    def _restart_trails(self) -> None:
        self.engine.begin()  # a source follows

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        if self._custom_objective:  # one iteration, because the evaluated elites determine the next source
            return super()._build(key)
        iterations = int(get(self.iterations) or self.engine.usual_iterations)
        self.engine.iterate(key, iterations)
        tours, lengths, built = self._elites(self.engine.lengths())
        best, length = self.engine.best
        if iterations > 1 and length < lengths[0]:  # of an iteration before the last
            n_elites = int(get(self.n_elites) or 1)
            tours = np.concatenate([best[None], tours])[:n_elites]
            lengths = np.append(length, lengths)[:n_elites]
        return tours, lengths, built

    def _update(self, evaluated: Permutations) -> None:
        if not self._custom_objective and self._asked_permutations is not None:
            return  # the engine has chosen the sources of all iterations
        tour, length = evaluated.best()
        parameters = self._parameters()
        limits = parameters.limits(self._cost(self._best_length) / self._unit, self.instance.k)
        self.engine.follow(parameters.update(tour, self._amount(length), limits))
