"""Ask and tell: tours that are handed out for evaluation, and the objectives that come back."""

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
from pymoo_gpuaco.problems.instance import differ, example_that_differs, is_length


class Tours(NamedTuple):
    """Some tours and their lengths: rows (e, n) and (e,)."""

    rows: NDArray[np.signedinteger[Any]]
    lengths: NDArray[np.float64]

    def best(self) -> tuple[NDArray[np.int32], float]:
        """The first of the shortest tours, and its length."""
        first = int(self.lengths.argmin())
        return self.rows[first].astype(np.int32), float(self.lengths[first])


def canonical(
    tours: ArrayLike, symmetric: bool, constraints: TourConstraints | None = None
) -> NDArray[np.int64]:
    """Return tours (e, n) in one form each, so that equal tours are equal rows for ``xtol`` and duplicate checks.

    Tours are rotated to begin at city 0; where direction is free, its smaller neighbour comes second. Paths keep their
    start; where direction is free, they begin at the smaller of their ends. With precedence, tours begin at its home.
    """
    if constraints is not None and not constraints.closed:
        rows = np.array(tours, dtype=np.int64)
        if symmetric and constraints.start is None and constraints.end is None:
            turned = rows[:, 0] > rows[:, -1]
            rows[turned] = rows[turned, ::-1]
        return rows
    given = np.asarray(tours)
    n = given.shape[1]
    if constraints is not None and len(constraints.precedence):
        begins = (given == constraints.home).argmax(axis=1)[:, None]
        return np.take_along_axis(given.astype(np.int64), (begins + np.arange(n)) % n, axis=1)
    rows = np.empty(given.shape, np.int64)
    for tour, row, zero in zip(given, rows, (given == 0).argmax(axis=1).tolist(), strict=True):
        if symmetric and tour[zero - 1] < tour[(zero + 1) % n]:
            row[: zero + 1], row[zero + 1 :] = tour[zero::-1], tour[:zero:-1]
        else:
            row[: n - zero], row[n - zero :] = tour[zero:], tour[:zero]
    return rows


def check_tours(name: str, tours: Any, n: int) -> NDArray[np.int64]:
    """Return (m, n) int64 rows that are permutations of 0 .. n-1; ValueError names the first that is not."""
    return checks.permutations(name, np.atleast_2d(checks.tours_given(name, tours)), n)


class AskAndTell(Arguments):
    """Hands out tours as individuals without F, and checks the individuals that come back."""

    def _forget_run(self) -> None:
        """Drop what belongs to one run."""
        self._custom_objective = False  # whether the objective is a custom one, not the tour length
        self._lists_with_ties = False  # whether that was known before the instance was made
        self._n_eval_due = 0
        self._handed_out: Tours | None = None  # by the last ask(), if it was an engine that built them
        self._asked: Population | None = None  # of the last ask()

    def _hand_out(self, rows: NDArray[np.int64], built: int) -> Population:
        infills = self._asked = Population.new("X", rows)
        # the evaluator will count the tours it sees; the others were built just the same, as were those of an
        # ask() that no tell() followed
        self._n_eval_due = max(self.evaluator.n_eval, self._n_eval_due) + built
        self.evaluator.n_eval = self._n_eval_due - len(infills)
        return infills

    def _hand_out_given(self, sampling: Any, size: int | None) -> Population:
        """Hand out the tours of a ``sampling``, of which ``size`` are asked for where it draws them."""
        if isinstance(sampling, (list, tuple)):
            sampling = np.array(sampling)
        given = Initialization(sampling).do(
            self.problem, size, random_state=self.random_state, algorithm=self
        )
        # only X is taken: an F of another problem, or of none, would never be evaluated again
        tours = check_tours("sampling", given.get("X"), self.instance.n)
        self._handed_out = self._asked = None
        return self._hand_out(self._as_rows(tours), len(tours))

    def _as_rows(self, tours: NDArray[Any]) -> NDArray[np.int64]:
        """Return tours (e, n) as X of individuals: as they are if a custom objective decides, else in one form each."""
        if self._custom_objective:
            return np.array(tours, np.int64)
        return canonical(tours, self.instance.symmetric, self.instance.constraints)

    def _evaluated(self, infills: Population | None) -> Tours:
        """Return the tours and the F that the evaluator or the user gave them."""
        if infills is None or len(infills) == 0:
            raise ValueError("tell() needs the evaluated individuals of ask(), got none")
        if not isinstance(infills, Population):
            raise TypeError(f"tell() needs a Population, got {type(infills).__name__}")
        tours = infills.get("X")
        if self._handed_out is not None and self._were_handed_out(tours):
            tours = self._handed_out.rows  # of millions of cities to compare them again takes a while
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
        # in an ask-and-tell loop the user may have evaluated with an evaluator of his own
        self.evaluator.n_eval = max(self.evaluator.n_eval, self._n_eval_due)
        return Tours(tours, lengths)

    def _were_handed_out(self, tours: NDArray) -> bool:
        handed_out = self._handed_out
        return handed_out is not None and (tours is handed_out.rows or np.array_equal(tours, handed_out.rows))

    def _outside(self, evaluated: Tours) -> Tours:
        """Return the evaluated tours that were not handed out."""
        if self._were_handed_out(evaluated.rows):
            return Tours(evaluated.rows[:0], evaluated.lengths[:0])
        known = set() if self._handed_out is None else {row.tobytes() for row in self._handed_out.rows}
        rows = self._as_rows(evaluated.rows)
        new = np.array([row.tobytes() not in known for row in rows], dtype=bool)
        return Tours(rows[new], evaluated.lengths[new])

    def _notice_custom_objective(self) -> None:
        """Tell before the first tours are handed out whether the objective is the tour length."""
        example = None if is_length(self.problem) else example_that_differs(self.problem)
        if example is not None:
            self._lists_with_ties = True
            self._adapt_to_custom_objective(*example)

    def _compare_with_distances(self, tours: Tours, best: int) -> None:
        """Notice a custom objective that equals the length of most tours, by F of a tour that was handed out."""
        if self._custom_objective:
            return
        value = float(tours.lengths[best])
        if self._handed_out is not None and self._were_handed_out(tours.rows):
            length = float(self._handed_out.lengths[best])
        else:
            length = self.instance.tour_length(tours.rows[best])
        if differ(value, length):
            self._adapt_to_custom_objective(value, length)

    def _adapt_to_custom_objective(self, value: float, length: float) -> None:
        self._custom_objective = True
        warnings.warn(
            f"the problem's objective ({value:.10g}) is not the tour's length under its distances ({length:.10g}): "
            "the objective decides which tours are best, and tours are evaluated as they were built, wherever they "
            "begin. Trails are between neighbours and do not know positions. "
            f"{self._response_to_custom_objective()}",
            stacklevel=2,
        )

    def _response_to_custom_objective(self) -> str:
        """Say for the warning what the algorithm does about a custom objective."""
        return "Of each generation only the shortest tour is evaluated"
