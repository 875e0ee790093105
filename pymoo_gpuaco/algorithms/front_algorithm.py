"""Common base of algorithms for several objectives: a front that lives outside of pymoo's population."""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from moocore import is_nondominated
from numpy.typing import NDArray
from pymoo.core.individual import Individual, default_config
from pymoo.core.population import Population
from pymoo.core.result import Result
from pymoo.core.termination import Termination
from pymoo.util.display.output import Output

from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.algorithms.display import FrontOutput
from pymoo_gpuaco.algorithms.termination import FrontTermination, colony_terminations
from pymoo_gpuaco.pareto.instance import front_instance
from pymoo_gpuaco.problems.multi_objective import as_multi_objective
from pymoo_gpuaco.problems.symmetric import ranked_objectives

_HANDED_OUT = 100  # new members a generation that pymoo gets to see
_SECONDS_A_TOUR, _SECONDS_A_CITY = 4e-6, 4e-8  # of a front that is made a population, on a core of 2.8 GHz
_log = logging.getLogger("pymoo_gpuaco")


def population_of(tours: NDArray[np.int64], objectives: NDArray[np.float64]) -> Population:
    """Make evaluated individuals of tours (f, n), which they share with the array; they share their settings, too."""
    none = np.empty(0)
    alike = vars(Individual(default_config(), G=none, H=none))
    individuals = []
    for row, values in zip(tours, objectives, strict=True):
        one = Individual.__new__(Individual)  # its constructor takes three times as long
        vars(one).update(alike, data={}, evaluated={"F", "G", "H"})
        one.X, one.F = row, values
        individuals.append(one)
    return Population(individuals)


@dataclass(kw_only=True, eq=False, repr=False)
class FrontAlgorithm(TourAlgorithm):
    """An algorithm whose engine is a `FrontEngine`: what it hands out is new to the front, and ``opt`` is the front.

    All arguments of ``TourAlgorithm``.
    """

    _quiet = False  # whether pymoo reads opt, and no caller uses what it then returns

    def _check(self) -> None:
        super()._check()
        if any(part.of_one_length for part in colony_terminations(self.termination)):
            raise TypeError(
                "termination must be FrontTermination(..) or pymoo's: ColonyTermination is of one length"
            )

    def _forget_run(self) -> None:
        self._quiet = False
        super()._forget_run()
        self._opt_of: tuple[int, int] | None = None  # what the archive counted when opt was put together
        self._front_arrays: tuple[NDArray[np.int64], NDArray[np.float64]] | None = None
        self._told_dropped = 0
        #: (m, k) lengths that other islands know, while this colony is an island's
        self.exchanged: NDArray[np.float64] = np.empty((0, 1))

    @abstractmethod
    def size_of(self, k: int) -> int:
        """Most tours of a front of k objectives."""

    def _usual_output(self) -> Output:
        return FrontOutput()

    def _usual_termination(self) -> Termination:
        return FrontTermination()

    @property
    def lower_bound(self) -> float | None:
        """None: a front has no single length."""
        return None

    def bound_in_time(self, longest: float = float("inf")) -> float | None:
        """None: a front has no single length."""
        return None

    def _proof_compiler(self) -> Callable[[Any], None]:
        return lambda instance: None

    def _lister(self) -> Callable[[], Any]:
        known, problem, k = self._instance, self.problem, self._candidates()

        def make() -> Any:
            given = as_multi_objective(problem)
            searched = ranked_objectives(given)
            if searched is not given:  # the objectives of what it finds are those of the problem
                self._custom_objective = True
            return front_instance(searched, k)

        return make if known is None else lambda: known

    def __getstate__(self) -> dict[str, Any]:
        """As `TourAlgorithm`; the front is in the engine's state, and ``opt`` is put together again."""
        return {**super().__getstate__(), "_front": None, "_front_arrays": None, "_opt_of": None}

    def _adopt(self, engine: Any) -> None:
        self._size = _HANDED_OUT  # of a sampling that asks for a number

    def _hand_over_seconds(self) -> float:
        archive = self.engine.archive
        return len(archive.front) * (_SECONDS_A_TOUR + _SECONDS_A_CITY * archive.n)

    # ---- a generation

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        engine = self.engine
        before = engine.n_tours
        engine.search(key)
        archive = engine.archive
        if archive.dropped > self._told_dropped:
            self._told_dropped = archive.dropped
            _log.info(
                "pymoo_gpuaco: the front is larger than archive_size=%d: %d tours went",
                archive.size,
                archive.dropped,
            )
        rows = engine.joined if len(engine.joined) else archive.front[:1]
        if len(rows) > _HANDED_OUT:
            rows = rows[np.linspace(0, len(rows) - 1, _HANDED_OUT).astype(np.intp)]
        return (
            archive.tours[rows].astype(np.int32),
            archive.lengths[rows],
            max(engine.n_tours - before, len(rows)),
        )

    def _accept(self, outside: Tours) -> None:
        self.engine.accept(outside.rows)

    def _start_from(self, evaluated: Tours) -> None:
        self._compare_with_distances(evaluated, 0)
        self.engine.accept(evaluated.rows)

    def _notice_custom_objective(self) -> None:
        """Do nothing: objectives are compared when tours are evaluated."""

    def _compare_with_distances(self, tours: Tours, best: int) -> None:
        if self._custom_objective:
            return
        given, own = tours.lengths, self.engine.instance.lengths(tours.rows)
        others = np.flatnonzero(~np.isclose(given, own, rtol=1e-6, atol=0.0).all(axis=1))
        if len(others):
            self._custom_objective, self._opt_of = True, None
            one = others[0]
            warnings.warn(
                f"the problem's objectives ({given[one]}) are not the tour's lengths under its distances ({own[one]}): "
                "the search goes by distances, and res.F are the objectives of what it finds",
                stacklevel=2,
            )

    def _rescue(self) -> None:
        """Do nothing: what was found before an interrupt is in the archive; so are given tours that were evaluated."""
        self._quiet = False
        if self.sampling is None or self.is_initialized or self._asked is None or self._engine is None:
            return
        evaluated = [one.X for one in self._asked if "F" in one.evaluated]
        if evaluated:
            self._engine.accept(np.array(evaluated))

    # ---- the front

    @property
    def opt(self) -> Population | None:
        """The front, with the problem's objectives; None before the first generation."""
        if self._quiet:
            return None
        engine = self.__dict__.get("_engine")
        if engine is None and self.__dict__.get("_engine_state") is not None:
            engine = self.engine
        if engine is None or not len(engine.archive.front):
            return None
        stands = engine.archive.added, engine.archive.dropped
        if self._opt_of != stands:
            arrays = self._arrays(engine)
            front = population_of(*arrays)
            # together: an interrupt may come before there are all of them
            self._front, self._front_arrays, self._opt_of = front, arrays, stands
        return self._front

    @opt.setter
    def opt(self, value: Population | None) -> None:
        """Take what pymoo sets, of which the archive is the better copy: readers get the archive's."""
        self._front, self._opt_of = value, None

    def _arrays(self, engine: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Tours (f, n) of the front as pymoo gets them, and the problem's objectives (f, k), in order."""
        tours, lengths = engine.front()
        rows = self._as_rows(tours)
        if not self._custom_objective:
            return rows, lengths
        objectives = np.asarray(self.problem.evaluate(rows, return_values_of=["F"]), np.float64)
        kept = np.flatnonzero(is_nondominated(objectives))
        kept = kept[np.lexsort(objectives[kept, ::-1].T)]
        return rows[kept], objectives[kept]

    def result(self) -> Result:
        """As pymoo's, which reads each value of each tour by itself; of 100,000 tours that takes seconds."""
        self._quiet = False  # which an interrupt may have left
        opt = self.opt
        try:
            self._quiet = True
            result = super().result()
        finally:
            self._quiet = False
        if opt is not None:
            assert self._front_arrays is not None
            (X, F), none = self._front_arrays, np.empty((len(opt), 0))
            result.opt, result.X, result.F = opt, X.copy(), F.copy()
            result.CV, result.G, result.H = np.zeros((len(opt), 1)), none, none.copy()
        return result

    def advance(self, infills: Population | None = None, **kwargs: Any) -> Any:
        """Take in evaluated tours, as pymoo's ``advance``; return None where others return ``opt``."""
        try:
            return super().advance(infills=infills, **kwargs)
        finally:
            self._quiet = False

    def tell(self, *args: Any, **kwargs: Any) -> Any:
        """Take in evaluated tours; return the front, or the result where the run has ended, as pymoo's ``tell``."""
        ended = self.advance(*args, **kwargs)
        return self.opt if ended is None else ended

    def _post_advance(self) -> None:
        super()._post_advance()
        self._quiet = not self.termination.has_terminated()

    def _set_optimum(self) -> None:
        """The archive is kept up to date by the engine."""
