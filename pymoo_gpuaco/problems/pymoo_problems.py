"""Pymoo problems of any class as instances: checks, and whether their objective is the tour length."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco.problems.instance import Instance, of_matrix
from pymoo_gpuaco.problems.matrix import half_of, prepare_matrix
from pymoo_gpuaco.problems.qap import QAP
from pymoo_gpuaco.problems.tsp import TSP

_N_TOURS = 3  # random tours to compare; one nearly always suffices


def as_instance(problem: Problem) -> Instance:
    """Turn a pymoo problem into an `Instance`.

    Accepted are `TSP`, pymoo's `TravelingSalesman`, and any single-objective, unconstrained Problem over integer
    permutations (`vtype=int`) that has its distance matrix as attribute `D`. The problem is not changed.

    Raises TypeError when it is not a pymoo Problem, has no `D` or variables that are not integers, and
    ValueError when objectives, constraints, bounds or `D` do not fit.
    """
    if isinstance(problem, TSP):
        return problem.instance
    return of_matrix(*_matrix_of(problem))


def declares_length(problem: Problem) -> bool:
    """Return True if the problem's class defines its objective as the tour length."""
    evaluate = getattr(getattr(problem, "_evaluate", None), "__func__", None)
    if evaluate is TSP._evaluate:
        return True
    from pymoo.problems.single.traveling_salesman import TravelingSalesman

    return evaluate is TravelingSalesman._evaluate


def _matrix_of(problem: Any) -> tuple[NDArray[np.float64], bool, bool]:
    """Check a problem of another class; return a copy of its matrix, and whether that is symmetric and integral."""
    what = type(problem).__name__
    needs = (
        "expected a TSP, pymoo's TravelingSalesman, or a Problem with one objective, no constraints, "
        "vtype=int and the distance matrix as attribute D"
    )
    if isinstance(problem, Problem) and problem.n_obj != 1:
        raise ValueError(
            f"{what} has {problem.n_obj} objectives; {needs}. GPU2PPLS finds the front of tours of several objectives, "
            "and MultiObjectiveTSP.weighted makes one of them"
        )
    D = distances_of(problem, needs)
    matrix, symmetric, integral = prepare_matrix(D, f"D of {what}", symmetric=False)
    check_size(problem, len(matrix))
    if half_of(matrix):
        warnings.warn(
            f"D of {what} has distances only in its {half_of(matrix)} half; the zeros in the other count as distances",
            stacklevel=4,
        )
    return matrix, symmetric, integral


def distances_of(problem: Any, needs: str) -> Any:
    """Return D of a Problem over integers without constraints; ``needs`` states in errors what is accepted.

    Raises TypeError if it is not a pymoo Problem, has no D or variables that are not integers; ValueError if it has
    constraints.
    """
    what = type(problem).__name__
    if isinstance(problem, QAP):
        raise TypeError(f"{what} is quadratic assignment, which has no tours: use GPUMMASQAP()")
    if not isinstance(problem, Problem):
        hint = ". load_tsp reads a name or a file" if isinstance(problem, str) else ""
        hint = ". TSP(coords) or TSP(matrix=D) makes one" if isinstance(problem, (np.ndarray, list)) else hint
        raise TypeError(f"{what} is not a pymoo Problem; {needs}{hint}")
    if problem.n_ieq_constr or problem.n_eq_constr:
        raise ValueError(
            f"{what} has {problem.n_ieq_constr + problem.n_eq_constr} constraints; {needs}. "
            "Add them to the objective as a penalty: the tour length plus a cost per violation"
        )
    vtype = problem.vtype
    if not isinstance(vtype, type) or not issubclass(vtype, (int, np.integer)) or vtype is bool:
        name = vtype.__name__ if isinstance(vtype, type) else repr(vtype)
        raise TypeError(f"{what} has variables of vtype {name}, not int; {needs}")
    if getattr(problem, "D", None) is None:
        raise TypeError(
            f"{what} has no distances D; {needs}. Without distances (flow shop, "
            "linear ordering) take pymoo's GA with its operators for permutations and InsertionMutation or "
            "SwapMutation of pymoo_gpuaco.operators"
        )
    return problem.D


def check_size(problem: Problem, n: int) -> None:
    """Raise ValueError unless variables and bounds of a problem fit permutations of the n cities of its D."""
    what = type(problem).__name__
    if n < 2:
        raise ValueError(f"D of {what} must hold at least 2 cities, got {n}")
    if problem.n_var != n:
        raise ValueError(f"D of {what} is {n} x {n}, but the problem has {problem.n_var} variables")
    # TravelingSalesman has xu = n.
    if problem.has_bounds() and not (np.all(problem.xl == 0) and np.all(np.isin(problem.xu, (n - 1, n)))):
        raise ValueError(
            f"{what} must have bounds xl=0 and xu={n - 1}: its tours are permutations of 0..{n - 1}"
        )


def evaluates_length(problem: Problem) -> bool:
    """Return True if the objective of a problem is the tour length under its distances.

    It is for `TSP`, `OpenPath` and pymoo's `TravelingSalesman`. Any other problem is evaluated for up to three random
    tours, the same on each call, with `problem.evaluate`: no evaluator counts them. A problem without
    `_evaluate` (its tours are evaluated elsewhere, in an ask-and-tell loop) has a custom objective.

    Raises TypeError or ValueError as `as_instance` does if the problem has no usable distances.
    """
    return declares_length(problem) or example_that_differs(problem) is None


def example_that_differs(problem: Problem) -> tuple[float, float] | None:
    """Return F and length of the first of three random tours for which they differ, or None."""
    instance, random = as_instance(problem), np.random.default_rng(0)
    for _ in range(_N_TOURS):
        tour = random.permutation(problem.n_var)
        length = instance.tour_length(tour)
        value = float(np.ravel(problem.evaluate(tour[None], return_values_of=["F"]))[0])
        if differ(value, length):
            return value, length
    return None


def differ(value: float, length: float) -> bool:
    """Return True if an objective value differs from a length; infinite and undefined values do."""
    return not (np.isfinite(value) and abs(value - length) <= 1e-6 * max(abs(value), abs(length), 1e-300))
