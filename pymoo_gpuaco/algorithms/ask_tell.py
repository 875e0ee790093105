"""Ask and tell: a generation of any algorithm.

``ask`` calls the engine, and its best tours become pymoo individuals without F. The user's evaluator sets F, and with
``tell`` the algorithm learns from it. ``evaluator.n_eval`` counts every tour that was built.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population
from pymoo.util.optimum import filter_optimum

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Arguments
from pymoo_gpuaco.problems.constraints import TourConstraints, symmetry_of
from pymoo_gpuaco.problems.pymoo_problems import declares_length, differ, example_that_differs
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop, end_on_interrupt


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

    Round trips are rotated to begin at city 0, with precedence at the home city. If the direction does not count, the
    smaller neighbour of that city comes second, and paths begin at their smaller end; see `symmetry_of`.
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
        if reversible and row[-1] < row[1]:
            row[1:] = row[:0:-1].copy()
    return rows


def check_tours(name: str, tours: Any, n: int) -> NDArray[np.int64]:
    """Return (m, n) int64 rows that are permutations of 0 .. n-1; ValueError names the first that is not."""
    return checks.permutations(name, np.atleast_2d(checks.tours_given(name, tours)), n)


class AskAndTell(Arguments):
    """The generations of a run; `TourAlgorithm` has the engine and its deadline."""

    def _forget_run(self) -> None:
        """Reset the attributes of a run."""
        self._custom_objective = False  # the objective is not the tour length
        self._lists_with_ties = False  # a custom objective was detected before the instance was created
        self._n_eval_due = 0  # n_eval after the next tell()
        self._handed_out: Tours | None = None  # tours of the last ask(), if an engine built them
        self._asked: Population | None = None  # of the last ask()
        self._begun = False
        self._built_at = 0.0  # end of the last search by CLOCK.monotonic()
        self.iteration_mean = float("nan")  # mean length of the tours of the last generation that was built

    # ---- what a subclass provides

    def _begin(self) -> None:
        """Prepare a new run; the engine exists."""

    @abstractmethod
    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        """Build a generation; return tours for ``ask`` (e, n), their distance lengths (e,), and the number built."""

    def _learn(self, evaluated: Tours) -> None:
        """Learn from the tours of the generation and from their F, which the evaluator has set."""

    def _accept(self, outside: Tours) -> None:
        """Add evaluated tours that ``ask`` did not return; ``_learn`` follows, with all evaluated tours."""
        self.engine.accept(outside.rows, outside.lengths)

    def _start_from(self, evaluated: Tours) -> None:
        """Start from the evaluated tours of ``sampling``."""
        self._accept(evaluated)
        self._learn(evaluated)

    # ---- ask

    def _initialize_infill(self) -> Population:
        if self.sampling is not None:
            self._set_deadline()
            self._uninterrupted(self._begin_once)
            self._built_at = CLOCK.monotonic()
            return self._sample(self.sampling, self._size)
        return self._infill()

    def _infill(self) -> Population:
        self._handed_out = self._asked = None
        self._set_deadline()
        self._uninterrupted(self._generation)
        return self._asked

    def _generation(self) -> None:
        """Build the tours of a generation and the individuals for ``ask``."""
        self._begin_once()
        tours, lengths, built = self._build(self._draw_key())
        self._built_at = CLOCK.monotonic()
        rows = self._as_rows(tours)
        self._handed_out = Tours(rows, lengths)
        self._to_infills(rows, built)

    def _begin_once(self) -> None:
        if not self._begun:
            self._begin()
            self._begun = True

    def _uninterrupted(self, work: Callable[[], object]) -> None:
        """Call ``work()``, which uses the engine. An interrupt from the keyboard ends it early and is then raised."""
        end_on_interrupt(work, *self._stops())

    def _stops(self) -> list[Stop]:
        """Return the stops of all engines of the run."""
        return [self.engine.stop]

    def _draw_key(self) -> int:
        return int(self.random_state.integers(0, 2**64, dtype=np.uint64))

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

    # ---- tell

    def _initialize_advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        if not self._begun:
            raise ValueError("tell() needs the evaluated individuals of ask(): call ask() first")
        self._advance(infills=infills, **kwargs)

    def _advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        evaluated = self._evaluated(infills)
        self.pop = infills
        self._compare_with_distances(evaluated)
        if self.sampling is not None and not self.is_initialized:
            self._uninterrupted(lambda: self._start_from(evaluated))
            return
        outside = self._outside(evaluated)

        def learn() -> None:
            if len(outside.lengths):
                self._accept(outside)
            self._learn(evaluated)

        end_on_interrupt(learn)  # no stops: an interrupt waits for the short trail update

    def _set_optimum(self) -> None:
        # a colony is not elitist: add the best tour so far, first, because ties go to the first
        both = self.pop if self.opt is None else Population.merge(self.opt, self.pop)
        self.opt: Any = filter_optimum(both, least_infeasible=True)

    def _rescue(self) -> None:
        """Merge a tour of an interrupted generation into ``opt``: the best evaluated one, otherwise the shortest."""
        if self._asked is None:
            return
        found = [one for one in self._asked if "F" in one.evaluated and np.isfinite(one.F).all()]
        if not found and self._handed_out is not None:
            found = list(self._asked[[int(self._handed_out.lengths.argmin())]])
            self.evaluator.eval(self.problem, Population.create(*found), algorithm=self)
        if found:
            known = Population.empty() if self.opt is None else self.opt
            self.opt = filter_optimum(Population.create(*known, *found), least_infeasible=True)

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

    # ---- custom objectives

    def _detect_custom_objective(self) -> None:
        """Detect before the first ``ask`` if the objective differs from the tour length."""
        example = None if declares_length(self.problem) else example_that_differs(self.problem)
        if example is not None:
            self._lists_with_ties = True
            self._adapt_to_custom_objective(*example)

    def _compare_with_distances(self, tours: Tours) -> None:
        """Detect, by F of the best evaluated tour, a custom objective that equals the length of most tours."""
        if self._custom_objective:
            return
        best = int(tours.lengths.argmin())
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
