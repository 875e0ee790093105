"""Base of the algorithms that search tours: candidate lists, custom objectives and the lower bound."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.population import Population

from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.algorithms.permutation import PermutationAlgorithm
from pymoo_gpuaco.candidates.bound import prove_lower_bound, seconds_to_prove
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.problems.constraints import TourConstraints, symmetry_of
from pymoo_gpuaco.problems.pymoo_problems import as_instance, declares_length, differ, example_that_differs
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import SetUpStop, Stop
from pymoo_gpuaco.runtime.threads import run_in_progress

# Share of the remaining time that optional work of set-up may take; required work has no limit.
_SET_UP_SHARE = 1 / 3
_UNKNOWN = "unknown"  # lower bound that has not been computed
# A proof starts only if the remaining time is at least this multiple of its estimated time.
_LEFT_TO_PROVE = 5.0


def canonical(
    tours: ArrayLike, symmetric: bool, constraints: TourConstraints | None = None
) -> NDArray[np.int64]:
    """Return tours (e, n) in canonical form: equal tours become equal rows, for ``xtol`` and duplicate checks.

    Round trips are rotated to begin at city 0, or at the home city if there is precedence. If the direction does not
    count, the smaller neighbour of that city comes second, and paths begin at their smaller end; see `symmetry_of`.
    """
    first, reversible = symmetry_of(symmetric, constraints)
    if first is None:
        rows = np.array(tours, dtype=np.int64)
        turned = reversible & (rows[:, 0] > rows[:, -1])
        rows[turned] = rows[turned, ::-1]
        return rows
    given = np.asarray(tours)
    rows = np.empty(given.shape, np.int64)
    for tour, row, begin in zip(given, rows, (given == first).argmax(axis=1).tolist(), strict=True):
        row[: len(row) - begin], row[len(row) - begin :] = tour[begin:], tour[:begin]
        if reversible and len(row) > 2 and row[-1] < row[1]:
            row[1:] = row[:0:-1].copy()
    return rows


@dataclass(kw_only=True, eq=False, repr=False)
class TourAlgorithm(PermutationAlgorithm):
    """An algorithm whose engine builds tours of an instance with candidate lists.

    All arguments of ``PermutationAlgorithm`` are available.
    """

    def _forget_run(self) -> None:
        super()._forget_run()
        self._custom_objective = False  # the objective is not the tour length
        self._lists_with_ties = False  # a custom objective was detected before the instance was created
        self._lower_bound: Any = _UNKNOWN

    # ---- the instance

    @abstractmethod
    def _candidates(self) -> tuple[int, str]:
        """Return length and kind of the candidate lists, see ``candidates.lists.with_lists``."""

    def _instance_maker(self) -> Callable[[], ListedInstance]:
        problem, (k, kind) = self.problem, self._candidates()
        stop, with_ties = self._set_up_stop(), self._lists_with_ties

        def make() -> ListedInstance:
            return with_lists(as_instance(problem), k, kind, with_ties=with_ties, stop=stop)

        return make

    def _set_up_stop(self) -> SetUpStop:
        """Return the stop of optional work in set-up; it leaves time for the run."""
        left = self._seconds_left()
        return SetUpStop(None if left is None else _SET_UP_SHARE * left)

    def canonical(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return tours (e, n) in canonical form; unchanged with a custom objective, which may depend on positions."""
        if self._custom_objective:
            return super().canonical(rows)
        return canonical(rows, self.instance.symmetric, self.instance.constraints)

    # ---- custom objectives

    def _inspect_problem(self) -> None:
        """Detect before the first ``ask`` if the objective differs from the tour length."""
        example = None if declares_length(self.problem) else example_that_differs(self.problem)
        if example is not None:
            self._lists_with_ties = True
            self._adapt_to_custom_objective(*example)

    def _evaluated(self, infills: Population | None) -> Permutations:
        """Return tours and F; detect, by the best F, a custom objective that equals the length of most tours."""
        evaluated = super()._evaluated(infills)
        self._compare_with_distances(evaluated)
        return evaluated

    def _compare_with_distances(self, tours: Permutations) -> None:
        if self._custom_objective:
            return
        best, asked = int(tours.values.argmin()), self._asked_permutations
        if asked is not None and tours.rows is asked.rows:
            length = float(asked.values[best])
        else:
            length = self.instance.tour_length(tours.rows[best])
        if differ(value := float(tours.values[best]), length):
            self._adapt_to_custom_objective(value, length)

    def _adapt_to_custom_objective(self, value: float, length: float) -> None:
        self._custom_objective = True
        warnings.warn(
            f"the problem's objective ({value:.10g}) is not the tour's length under its distances ({length:.10g}): "
            "the objective ranks tours, which are evaluated as built, not rotated to begin at city 0. "
            "Trails depend on pairs of neighbours, not on positions. "
            f"{self._response_to_custom_objective()}",
            stacklevel=2,
        )

    def _response_to_custom_objective(self) -> str:
        """Return the sentence of the warning that says how the algorithm treats a custom objective."""
        return "Only the shortest tour of each generation is evaluated"

    # ---- lower bound

    @property
    def lower_bound(self) -> float | None:
        """Lower bound of the tour length, computed at the first access.

        Up to 12 cities it is the optimum, by dynamic programming; otherwise the bound of Held and Karp (1970). If
        distances are not whole numbers, it is lowered by rounding errors, 1e-15 of the length for each city. It holds
        for tours that satisfy all constraints, if the objective is the tour length. None above some 100,000 cities,
        where the proof would take long (about a second for 20,000); if no tour of up to 12 cities satisfies the
        constraints; and for several objectives.
        """
        if self._lower_bound == _UNKNOWN:  # ==, because unpickling creates another object
            self._lower_bound = self._prove(Stop())
        return self._lower_bound

    def bound_in_time(self, longest: float = float("inf")) -> float | None:
        """Return ``lower_bound`` if it is known, or if its proof fits into the run; otherwise None.

        A proof may take ``longest`` seconds, and a share of the time that the termination leaves.
        """
        if self._lower_bound == _UNKNOWN:
            needed, left = seconds_to_prove(self.instance), self._seconds_left()
            if needed > longest or (left is not None and max(0.0, left) < _LEFT_TO_PROVE * needed):
                return None
            stop = Stop(None if left is None else CLOCK.monotonic() + left)
            bound = self._prove(stop)
            if bound is None and stop.ended():
                return None  # the deadline ended the proof
            self._lower_bound = bound
        return self._lower_bound

    def _prove(self, stop: Stop) -> float | None:
        """Return the bound. An interrupt takes effect at once, also during compilation, and ends the proof."""
        instance = self.instance
        try:
            with run_in_progress(self.threads):
                return interruptible(lambda: prove_lower_bound(instance, stop))
        except BaseException:
            stop.interrupt()
            raise
