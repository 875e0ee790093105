"""Ask and tell: tours for evaluation, and their objectives."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Arguments
from pymoo_gpuaco.problems.constraints import TourConstraints
from pymoo_gpuaco.problems.pymoo_problems import differ, example_that_differs, is_length


class Tours(NamedTuple):
    """Tours (e, n) and their lengths (e,)."""

    rows: NDArray[np.signedinteger[Any]]
    lengths: NDArray[np.float64]

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the first of the shortest tours, and its length."""
        first = int(self.lengths.argmin())
        return self.rows[first].astype(np.int32), float(self.lengths[first])


def canonical(
    tours: ArrayLike, symmetric: bool, constraints: TourConstraints | None = None
) -> NDArray[np.int64]:
    """Return tours (e, n) in canonical form: equal tours become equal rows, for ``xtol`` and duplicate checks.

    Closed tours are rotated to begin at city 0, with precedence at the home city; if both directions are equivalent,
    the smaller neighbour of city 0 comes second. Paths are not rotated, and begin at their smaller end if both
    directions are equivalent.
    """
    if constraints is not None and not constraints.closed:
        rows = np.array(tours, dtype=np.int64)
        if symmetric and constraints.start is None and constraints.end is None:
            turned = rows[:, 0] > rows[:, -1]
            rows[turned] = rows[turned, ::-1]
        return rows
    given, directed = np.asarray(tours), constraints is not None and len(constraints.precedence) > 0
    home = constraints.home if constraints is not None and directed else 0
    rows = np.empty(given.shape, np.int64)
    for tour, row, first in zip(given, rows, (given == home).argmax(axis=1).tolist(), strict=True):
        row[: len(row) - first], row[len(row) - first :] = tour[first:], tour[:first]
        if symmetric and not directed and row[-1] < row[1]:
            row[1:] = row[:0:-1].copy()
    return rows


def check_tours(name: str, tours: Any, n: int) -> NDArray[np.int64]:
    """Return (m, n) int64 rows that are permutations of 0 .. n-1; ValueError names the first that is not."""
    return checks.permutations(name, np.atleast_2d(checks.tours_given(name, tours)), n)


class AskAndTell(Arguments):
    """Conversion of tours to individuals without F for ``ask``, and validation of the individuals of ``tell``."""

    def _forget_run(self) -> None:
        """Reset the attributes of a run."""
        self._custom_objective = False  # the objective is not the tour length
        self._lists_with_ties = False  # a custom objective was detected before the instance was created
        self._n_eval_due = 0  # n_eval after the next tell()
        self._handed_out: Tours | None = None  # tours of the last ask(), if an engine built them
        self._asked: Population | None = None  # of the last ask()

    def _to_infills(self, rows: NDArray[np.int64], built: int) -> Population:
        """Return individuals of tours (e, n); n_eval will count the ``built`` tours of the generation."""
        infills = self._asked = Population.new("X", rows)
        # the evaluator adds the tours it evaluates; add the others here, also those of an ask() without a tell()
        self._n_eval_due = max(self.evaluator.n_eval, self._n_eval_due) + built
        self.evaluator.n_eval = self._n_eval_due - len(infills)
        return infills

    def _sample(self, sampling: Any, size: int | None) -> Population:
        """Return individuals of the tours of a ``sampling``; a pymoo Sampling draws ``size`` of them."""
        if isinstance(sampling, (list, tuple)):
            sampling = np.array(sampling)
        given = Initialization(sampling).do(
            self.problem, size, random_state=self.random_state, algorithm=self
        )
        # only X is used: pymoo would not evaluate a given F again, which may be of another problem
        tours = check_tours("sampling", given.get("X"), self.instance.n)
        self._handed_out = self._asked = None
        return self._to_infills(self._as_rows(tours), len(tours))

    def _as_rows(self, tours: NDArray[Any]) -> NDArray[np.int64]:
        """Return tours (e, n) as X of individuals, in canonical form; unchanged with a custom objective."""
        if self._custom_objective:
            return np.array(tours, np.int64)
        return canonical(tours, self.instance.symmetric, self.instance.constraints)

    def _evaluated(self, infills: Population | None) -> Tours:
        """Return the tours of evaluated individuals and their F; raise TypeError or ValueError for invalid ones."""
        if infills is None or len(infills) == 0:
            raise ValueError("tell() needs the evaluated individuals of ask(), got none")
        if not isinstance(infills, Population):
            raise TypeError(f"tell() needs a Population, got {type(infills).__name__}")
        tours = infills.get("X")
        if (handed_out := self._known(tours)) is not None:
            tours = handed_out.rows  # the same array, so that later comparisons are by identity
        else:
            tours = check_tours("infills", tours, self.instance.n)
        values = [individual.F for individual in infills]
        k = self.problem.n_obj
        if any(f is None or np.size(f) != k for f in values):
            expected = "one value" if k == 1 else f"{k} values"
            raise ValueError(f"every individual given to tell() must be evaluated: F must have {expected}")
        lengths = np.array([np.ravel(f) for f in values], np.float64)
        lengths = lengths[:, 0] if k == 1 else lengths
        if not np.all(np.isfinite(lengths)):
            raise ValueError(
                f"F of individuals given to tell() must be finite, got {lengths[~np.isfinite(lengths)][0]}"
            )
        # in an ask-and-tell loop the user may evaluate with another evaluator
        self.evaluator.n_eval = max(self.evaluator.n_eval, self._n_eval_due)
        return Tours(tours, lengths)

    def _known(self, tours: NDArray) -> Tours | None:
        """Return the tours of the last ``ask`` if these are the same."""
        known = self._handed_out
        same = known is not None and (tours is known.rows or np.array_equal(tours, known.rows))
        return known if same else None

    def _outside(self, evaluated: Tours) -> Tours:
        """Return the evaluated tours that the last ``ask`` did not return."""
        if self._known(evaluated.rows) is not None:
            return Tours(evaluated.rows[:0], evaluated.lengths[:0])
        known = set() if self._handed_out is None else {row.tobytes() for row in self._handed_out.rows}
        rows = self._as_rows(evaluated.rows)
        new = np.array([row.tobytes() not in known for row in rows], dtype=bool)
        return Tours(rows[new], evaluated.lengths[new])

    def _detect_custom_objective(self) -> None:
        """Detect before the first ``ask`` if the objective differs from the tour length."""
        example = None if is_length(self.problem) else example_that_differs(self.problem)
        if example is not None:
            self._lists_with_ties = True
            self._adapt_to_custom_objective(*example)

    def _compare_with_distances(self, tours: Tours, best: int) -> None:
        """Detect, by F of an evaluated tour, a custom objective that equals the length of most tours."""
        if self._custom_objective:
            return
        value, known = float(tours.lengths[best]), self._known(tours.rows)
        length = self.instance.tour_length(tours.rows[best]) if known is None else float(known.lengths[best])
        if differ(value, length):
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
