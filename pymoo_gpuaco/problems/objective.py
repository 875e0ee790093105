"""Kind of an objective: the length of the tour under the problem's distances, or a custom one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco.problems.instance import as_instance, check_foreign, is_length
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["differ", "example_that_differs", "is_tour_length"]

_N_TOURS = 3  # that are compared; one tells nearly always


def is_tour_length(problem: Problem) -> bool:
    """Return whether the objective of a problem is the tour length under its distances.

    The classes `TSP`, `OpenPath` and pymoo's `TravelingSalesman` say so. Any other problem is evaluated for up to three
    random tours, the same on each call, with `problem.evaluate`: no evaluator counts them. A problem without
    `_evaluate` (its tours are evaluated elsewhere, in an ask-and-tell loop) has a custom objective.

    Raises TypeError or ValueError as `as_instance` does where the problem has no usable distances.
    """
    return is_length(problem) or example_that_differs(problem) is None


def example_that_differs(problem: Problem) -> tuple[float, float] | None:
    """Return F and length of the first of three random tours for which they differ, or None."""
    if not isinstance(problem, TSP):
        check_foreign(problem)
    random = np.random.default_rng(0)
    for _ in range(_N_TOURS):
        tour = random.permutation(problem.n_var)
        length = _length(problem, tour)
        value = float(np.ravel(problem.evaluate(tour[None], return_values_of=["F"]))[0])
        if differ(value, length):
            as_instance(problem)  # raises where the distances are at fault
            return value, length
    return None


def differ(value: float, length: float) -> bool:
    """Return whether an objective value is not this length; infinite and undefined values are not."""
    return not (np.isfinite(value) and abs(value - length) <= 1e-6 * max(abs(value), abs(length), 1e-300))


def _length(problem: Problem, tour: NDArray[np.int64]) -> float:
    """Return the length of a tour without a copy of the problem's matrix, where that is an array."""
    if isinstance(problem, TSP):
        return problem.tour_length(tour)
    D = problem.D
    if isinstance(D, np.ndarray) and D.shape == (len(tour), len(tour)) and D.dtype.kind in "iuf":
        return float(np.asarray(D[tour, np.roll(tour, -1)], np.float64).sum())
    return as_instance(problem).tour_length(tour)
