"""MAX-MIN Ant System for quadratic assignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco.algorithms.arguments import Count, Number, Word, as_parameters
from pymoo_gpuaco.algorithms.permutation import PermutationAlgorithm
from pymoo_gpuaco.assignment.exact import MOST_TO_BOUND, gilmore_lawler, is_small, least_cost
from pymoo_gpuaco.assignment.model import make_model
from pymoo_gpuaco.assignment.parameters import MOST_LOCATIONS, AssignmentParameters
from pymoo_gpuaco.assignment.search import AssignmentSearch
from pymoo_gpuaco.backends import make_assignment
from pymoo_gpuaco.problems.qap import QAP
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.stop import Stop


@dataclass(kw_only=True, eq=False, repr=False)
class GPUMMASQAP(PermutationAlgorithm):
    """MAX-MIN Ant System for quadratic assignment: ants build placements and improve them by robust tabu search.

    Takes a `QAP` of up to 512 locations. For whole numbers, CPU and CUDA give the same placements for the same seed at
    equal `n_ants` and `n_colonies`. ``evaluator.n_eval`` counts tabu searches.

    Parameters
    ----------
    n_ants : ants of a colony, in [1, 1024].
    n_colonies : colonies, which exchange nothing, in [1, 65536]. None: as many as occupy the device.
    rho : evaporation rate in (0, 1].
    start : placement at which the tabu search of an ant starts: "trails" draws it from the trails, "perturbed" swaps
        items of the best placement of the colony at random.
    tabu_iterations : iterations of each tabu search, in [1, 55000]. None: 100 for each location if both matrices look
        like random numbers, otherwise 20, or 10 with less than 64 ants in all colonies.
    restart_after : iterations in a row without a better placement after which a colony forgets trails and placement,
        >= 1.

    All arguments of ``PermutationAlgorithm`` are also available.

    Sources: T. Stuetzle, H. Hoos, "MAX-MIN Ant System", Future Generation Computer Systems 16 (2000). E. Taillard,
    "Robust taboo search for the quadratic assignment problem", Parallel Computing 17 (1991).
    """

    n_ants: Count = AssignmentParameters.n_ants
    n_colonies: Count | None = None
    rho: Number = AssignmentParameters.rho
    start: Word = AssignmentParameters.start
    tabu_iterations: Count | None = None
    restart_after: Count = AssignmentParameters.restart_after

    _make_engine = staticmethod(make_assignment)

    def _forget_run(self) -> None:
        super()._forget_run()
        self._colonies: int | None = None  # chosen by the first engine of the run
        self._bound: float | None = None  # in units of F
        self._bounded = False

    def _check(self) -> None:
        super()._check()
        self._parameters()

    def _parameters(self) -> AssignmentParameters:
        colonies = get(self.n_colonies)
        return as_parameters(
            self, AssignmentParameters, n_colonies=self._colonies if colonies is None else colonies
        )

    def _inspect_problem(self) -> None:
        if not isinstance(self.problem, QAP):
            what = type(self.problem).__name__
            raise TypeError(
                f"GPUMMASQAP takes a QAP, got {what}: GPUMemetic finds short tours, GPUMMAS others"
            )
        if self.problem.n_var > MOST_LOCATIONS:
            raise ValueError(f"GPUMMASQAP takes up to {MOST_LOCATIONS} locations, got {self.problem.n_var}")

    def _instance_maker(self) -> Callable[[], Any]:
        return partial(make_model, *self.problem.matrices)

    def _adopt(self, engine: AssignmentSearch) -> None:
        self._size, self._colonies = engine.n_ants * engine.n_colonies, engine.n_colonies

    def describe(self) -> str:
        """Return name, ants, colonies and length of the tabu search."""
        engine = self.engine
        ants = f"{engine.n_colonies} x {engine.n_ants} ants"
        return f"{type(self).__name__}: {ants}, {engine.tabu_iterations} iterations of tabu search"

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        engine = self.engine
        engine.search(key)
        placement, cost = engine.best
        self.iteration_mean = float(engine.costs.mean()) if len(engine.costs) else cost
        return placement[None], np.array([cost]), max(1, engine.n_built)

    @property
    def lower_bound(self) -> float | None:
        """Lower bound of F, computed at the first access.

        The optimum of up to 4,000,000 placements, else the bound of Gilmore and Lawler; None above 100 locations.
        """
        if not self._bounded:
            self._bound, self._bounded = self._prove(Stop()), True
        return self._bound

    def bound_in_time(self, longest: float = float("inf")) -> float | None:
        """Return ``lower_bound`` if it is > 0, for the gap of the output; otherwise None. It is computed at once."""
        bound = self.lower_bound
        return bound if bound is not None and bound > 0.0 else None

    def is_proven(self) -> bool:
        """Return True if the best placement costs no more than the lower bound."""
        bound, best = self.lower_bound, float(self.opt.get("F").min())
        return bound is not None and best <= bound + 1e-12 * abs(bound)

    def _prove(self, stop: Stop) -> float | None:
        problem = self.problem
        flow, distance, linear = problem.matrices
        if is_small(problem.n_items, problem.n_locations):
            m = problem.n_items
            flow, linear = np.ascontiguousarray(flow[:m, :m]), linear[:m].copy()
            try:
                return interruptible(partial(least_cost, flow, distance, linear, stop))
            except BaseException:
                stop.interrupt()  # ends the abandoned thread
                raise
        if problem.n_var > MOST_TO_BOUND:
            return None
        return interruptible(partial(gilmore_lawler, flow, distance, linear))
