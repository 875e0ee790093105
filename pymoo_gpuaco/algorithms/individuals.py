"""Permutations of a generation, and pymoo's individuals of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population

from pymoo_gpuaco import checks


class Permutations(NamedTuple):
    """Permutations (e, n) and their objective (e,), or objectives (e, k)."""

    rows: NDArray[np.signedinteger[Any]]
    values: NDArray[np.float64]

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the first row of least objective, and that objective."""
        first = int(self.values.argmin())
        return self.rows[first].astype(np.int32), float(self.values[first])

    def same_rows(self, rows: NDArray[Any]) -> bool:
        """Return True if these are the rows."""
        return rows is self.rows or np.array_equal(rows, self.rows)

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


def objectives_of(infills: Population | None, k: int) -> NDArray[np.float64]:
    """Return the objective (e,), or k objectives (e, k), of evaluated individuals.

    Raises TypeError or ValueError for none, for those that are not evaluated, and for F that is not finite.
    """
    if infills is None or len(infills) == 0:
        raise ValueError("tell() needs the evaluated individuals of ask(), got none")
    if not isinstance(infills, Population):
        raise TypeError(f"tell() needs a Population, got {type(infills).__name__}")
    values = [individual.F for individual in infills]
    if any(f is None or np.size(f) != k for f in values):
        expected = "one value" if k == 1 else f"{k} values"
        raise ValueError(f"every individual given to tell() must be evaluated: F must have {expected}")
    objectives = np.array([np.ravel(f) for f in values], np.float64)
    if not np.isfinite(objectives).all():
        raise ValueError(
            f"F of individuals given to tell() must be finite, got {objectives[~np.isfinite(objectives)][0]}"
        )
    return objectives[:, 0] if k == 1 else objectives
