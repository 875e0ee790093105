"""What problems of others must be like, so that their solutions are tours."""

from __future__ import annotations

from typing import Any

import numpy as np
from pymoo.core.problem import Problem

__all__ = ["WITHOUT_DISTANCES", "check_permutations", "check_size"]

WITHOUT_DISTANCES = (
    "Where no distances make up the objective (flow shop, quadratic assignment, linear ordering), take pymoo's GA with "
    "its operators for permutations and InsertionMutation or SwapMutation of pymoo_gpuaco.operators"
)
"""What the refusal of a problem without distances names instead."""


def check_permutations(problem: Any, needs: str) -> None:
    """Raise unless it is a Problem over integers without constraints; ``needs`` tells what is taken.

    TypeError where it is no pymoo Problem or its variables are no integers, ValueError for constraints.
    """
    what = type(problem).__name__
    if not isinstance(problem, Problem):
        hint = ". load_tsp reads a name or a file" if isinstance(problem, str) else ""
        hint = ". TSP(coords) or TSP(matrix=D) makes one" if isinstance(problem, (np.ndarray, list)) else hint
        raise TypeError(f"{what} is not a pymoo Problem; {needs}{hint}")
    if problem.n_ieq_constr or problem.n_eq_constr:
        raise ValueError(
            f"{what} has {problem.n_ieq_constr + problem.n_eq_constr} constraints; {needs}. "
            "Take them into the objective as a penalty: the tour's length plus a price for each violation"
        )
    vtype = problem.vtype
    if not isinstance(vtype, type) or not issubclass(vtype, (int, np.integer)) or vtype is bool:
        name = vtype.__name__ if isinstance(vtype, type) else repr(vtype)
        raise TypeError(f"{what} has variables of vtype {name}, not int; {needs}")


def check_size(problem: Problem, n: int) -> None:
    """Raise ValueError unless variables and bounds of a problem are those of permutations of the n cities of its D."""
    what = type(problem).__name__
    if problem.n_var != n:
        raise ValueError(f"D of {what} is {n} x {n}, but the problem has {problem.n_var} variables")
    # TravelingSalesman itself says xu = n.
    if problem.has_bounds() and not (np.all(problem.xl == 0) and np.all(np.isin(problem.xu, (n - 1, n)))):
        raise ValueError(
            f"{what} must have bounds xl=0 and xu={n - 1}: its tours are permutations of 0..{n - 1}"
        )
