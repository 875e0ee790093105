"""Permutations of a generation, and pymoo's individuals of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population
from pymoo.util.optimum import filter_optimum

from pymoo_gpuaco import checks


class Permutations(NamedTuple):
    """Permutations (e, n) and their objective (e,), or objectives (e, k)."""

    rows: NDArray[np.signedinteger[Any]]
    values: NDArray[np.float64]

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the first row of least objective, and that objective."""
        first = int(self.values.argmin())
        return self.rows[first].astype(np.int32), float(self.values[first])

    def without(self, others: Permutations | None) -> Permutations:
        """Return the rows that are not among the others."""
        known = set() if others is None else {row.tobytes() for row in others.rows}
        new = np.array([row.tobytes() not in known for row in self.rows], dtype=bool)
        return Permutations(self.rows[new], self.values[new])

    def check(self, n: int) -> None:
        """Raise ValueError unless the rows are permutations of 0 .. n-1 and the objectives finite."""
        checks.tours("tours of the last ask()", self.rows, n)
        if len(checks.finite("lengths of the last ask()", self.values)) != len(self.rows):
            raise ValueError(f"the last ask() must have {len(self.rows)} lengths, got {len(self.values)}")


def sampled(sampling: Any, size: int | None, algorithm: Any) -> NDArray[np.int64]:
    """Return the permutations (e, n) of a ``sampling``; a pymoo Sampling draws ``size`` of them."""
    if isinstance(sampling, (list, tuple)):
        sampling = np.array(sampling)
    problem, random = algorithm.problem, algorithm.random_state
    given = Initialization(sampling).do(problem, size, random_state=random, algorithm=algorithm)
    # only X is used: pymoo would not evaluate a given F again, which may be of another problem
    return checks.tours("sampling", given.get("X"), problem.n_var)


def evaluated_by_user(infills: Population | None, problem: Any, asked: Permutations | None) -> Permutations:
    """Return the rows of evaluated individuals and their F; the rows of ``asked`` itself if they are equal.

    Raises TypeError or ValueError for none, for rows that are no permutations, and for F that is missing or not finite.
    """
    if infills is None or len(infills) == 0:
        raise ValueError("tell() needs the evaluated individuals of ask(), got none")
    if not isinstance(infills, Population):
        raise TypeError(f"tell() needs a Population, got {type(infills).__name__}")
    rows, k = infills.get("X"), problem.n_obj
    if asked is not None and np.array_equal(rows, asked.rows):
        rows = asked.rows
    else:
        rows = checks.tours("infills", rows, problem.n_var)
    values = [individual.F for individual in infills]
    if any(f is None or np.size(f) != k for f in values):
        expected = "one value" if k == 1 else f"{k} values"
        raise ValueError(f"every individual given to tell() must be evaluated: F must have {expected}")
    objectives = np.array([np.ravel(f) for f in values], np.float64)
    if not np.isfinite(objectives).all():
        raise ValueError(
            f"F of individuals given to tell() must be finite, got {objectives[~np.isfinite(objectives)][0]}"
        )
    return Permutations(rows, objectives[:, 0] if k == 1 else objectives)


def best_of_both(opt: Population | None, found: Population) -> Population:
    """Return the best individuals of both; ties go to those of ``opt``."""
    both = found if opt is None else Population.merge(opt, found)
    return filter_optimum(both, least_infeasible=True)


def best_of(asked: Population | None, built: Permutations | None) -> Population:
    """Return the evaluated individuals; without any, the best that an engine has ``built``, if any."""
    if asked is None:
        return Population.empty()
    found = [one for one in asked if "F" in one.evaluated and np.isfinite(one.F).all()]
    if not found and built is not None:
        return asked[[int(built.values.argmin())]]
    return Population.create(*found)
