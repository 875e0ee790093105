"""Base of all algorithms: the engine of a run, its lower bound, and pymoo's life cycle around `AskAndTell`.

A copy or a pickle holds the engine's exported state instead of the engine, and builds a new engine when it needs one.
"""

from __future__ import annotations

import copy
import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

from pymoo.core.problem import Problem
from pymoo.core.result import Result
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import PYMOO_ARGUMENTS, Count, check_sampling, check_seed
from pymoo_gpuaco.algorithms.ask_tell import AskAndTell, check_tours
from pymoo_gpuaco.algorithms.termination import (
    progress,
    seconds_left,
)
from pymoo_gpuaco.backends import check_backend
from pymoo_gpuaco.candidates.bound import prove_lower_bound, seconds_to_prove
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import SetUpStop, Stop

# First estimate of the time of a generation after its search (evaluation, learning), as a share of the set-up time.
_POST_SEARCH_SHARE = 0.05
# Share of the remaining time that optional work of set-up may take; required work has no limit.
_SET_UP_SHARE = 1 / 3
_ALLOWED_OVERRUN = 0.2  # s that a generation may end after its deadline
_UNKNOWN = "unknown"  # lower bound that has not been computed
# A proof starts only if the remaining time is at least this multiple of its estimated time.
_LEFT_TO_PROVE = 5.0

_log = logging.getLogger("pymoo_gpuaco")


@dataclass(kw_only=True, eq=False, repr=False)
class TourAlgorithm(AskAndTell):
    """A pymoo algorithm whose engine builds tours; subclasses choose the engine and learn from the tours.

    Parameters
    ----------
    sampling : tours to start from: a pymoo Sampling, an (m, n) array of permutations, or a Population, of which
        only X is used. They are evaluated as generation 1. If the objective is the tour length, they are rotated to
        begin at city 0. None: no given tours.

    The other arguments are pymoo's own. Any other name raises TypeError. A value out of its range raises ValueError,
    a value of a wrong type TypeError, also in the subclasses; both name the parameter, the value and what is allowed.
    """

    sampling: Any = None

    def __post_init__(self) -> None:
        """Validate the arguments."""
        super().__post_init__()
        self._forget_run()
        self._check()

    def _forget_run(self) -> None:
        """Reset the attributes of a run."""
        super()._forget_run()
        self._instance: Any = None
        self._engine: Any = None
        self._engine_state: State | None = None
        self._lower_bound: Any = _UNKNOWN
        self._size: int | None = None  # number of ants or climbers, chosen by the first engine of the run
        self._setup_seconds = 0.0  # duration of set-up without compilation
        self._post_search_seconds = 0.0  # s of the last generation after its search
        self._until: float | None = None  # deadline of the engine, by CLOCK.monotonic()

    # ---- what a subclass provides -------------------------------------------------------------------------------

    @abstractmethod
    def _check(self) -> None:
        """Validate the arguments of the class; raise TypeError or ValueError."""
        check_sampling(self.sampling)

    @abstractmethod
    def _candidates(self) -> int:
        """Return the length of the candidate lists."""

    def _kind_of_candidates(self) -> str:
        """Return the kind of the candidate lists, see ``candidates.lists.with_lists``."""
        return "nearest"

    @property
    def may_stagnate(self) -> bool:
        """True if generations without a shorter tour may end the run now."""
        return True

    def describe(self) -> str:
        """Return the name of the algorithm and a summary of its parameters, for the header; the engine exists."""
        return type(self).__name__

    @abstractmethod
    def _maker(self) -> Callable[[ListedInstance], Any]:
        """Return a function that builds the engine; it holds copies of the arguments, as it runs in another thread."""

    @abstractmethod
    def _adopt(self, engine: Any) -> None:
        """Record what a new engine has chosen, such as the number of ants."""

    # ---- engine and instance: rebuilt after a copy or a pickle, which leave them out --------------------------------

    @property
    def instance(self) -> ListedInstance:
        """The problem as arrays."""
        if self._instance is None:
            _ = self.engine
        return self._instance

    @property
    def engine(self) -> Any:
        """The engine of this run, built at the first access."""
        if self._engine is None:
            known, list_candidates = self._instance, self._instance_maker()
            make, state = self._maker(), self._engine_state

            def build() -> tuple[ListedInstance, Any]:
                instance = list_candidates() if known is None else known
                engine = make(instance)
                if state is not None:
                    engine.import_state(state)
                return instance, engine

            # an interrupt takes effect at once; the abandoned thread has no reference to this object
            with compiling.announced(None):
                self._instance, engine = interruptible(build)
            self._adopt(engine)
            self._engine, self._engine_state = engine, None
        return self._engine

    def _instance_maker(self) -> Callable[[], ListedInstance]:
        """Return a function that creates the instance; it holds copies, because it runs in another thread."""
        problem, k, kind = self.problem, self._candidates(), self._kind_of_candidates()
        stop, with_ties = self._set_up_stop(), self._lists_with_ties

        def make() -> ListedInstance:
            return with_lists(as_instance(problem), k, kind, with_ties=with_ties, stop=stop)

        return make

    def _set_up_stop(self) -> SetUpStop:
        """Return the stop of optional work in set-up; it leaves time for the run."""
        left = self._seconds_left()
        return SetUpStop(None if left is None else _SET_UP_SHARE * left)

    def release_engine(self) -> None:
        """Replace the engine by its exported state and free its memory; the next access builds another engine."""
        if self._engine is not None:
            self._engine_state, self._engine = self._engine.export_state(), None

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the engine and the instance, with the engine's state as plain arrays."""
        state = self.__dict__.copy()
        if self._engine is not None:
            state["_engine_state"] = self._engine.export_state()
        state["_engine"] = None
        state["_instance"] = None
        state["_asked"] = None
        if self.start_time is not None:  # minus the seconds of the run: time in a file does not count
            state["start_time"] = self.start_time - CLOCK.wall()
        if getattr(self.display, "progress", None) is not None:
            # a progress bar is a running generator with a thread, which cannot be copied
            state["display"] = copy.copy(self.display)
            state["display"].progress = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes of a state."""
        self.__dict__.update(state)
        if self.start_time is not None:
            self.start_time += CLOCK.wall()

    def check_loaded(self) -> None:
        """Validate the arguments and what a file holds of the run, except the engine's state, which the engine checks.

        Raises TypeError or ValueError.
        """
        self._check()
        if not isinstance(self._engine_state, dict | None) or not (self._engine is self._instance is None):
            raise ValueError("a file holds the state of an engine as arrays, not an engine or an instance")
        if self._handed_out is not None:
            rows, lengths = self._handed_out
            check_tours("tours of the last ask()", rows, self.problem.n_var)
            if len(checks.finite("lengths of the last ask()", lengths)) != len(rows):
                raise ValueError(f"the last ask() must have {len(rows)} lengths, got {len(lengths)}")

    # ---- lower bound --------------------------------------------------------------------------------------------

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
            return interruptible(lambda: prove_lower_bound(instance, stop))
        except BaseException:
            stop.interrupt()
            raise

    # ---- pymoo's life cycle -------------------------------------------------------------------------------------

    def setup(
        self, problem: Problem, verbose: bool | None = None, progress: bool = False, **kwargs: Any
    ) -> TourAlgorithm:
        """Prepare a run. A used object starts again, with the last arguments of the constructor and ``setup``.

        A misspelt argument raises TypeError. If the call raises an error, the object is unchanged.
        """
        if not isinstance(verbose, bool | None):
            raise TypeError(
                f"verbose must be True or False, got {verbose!r}: termination=.. takes a termination"
            )
        checks.flag("progress", progress)
        self._refuse_unknown(kwargs, self.arguments() + PYMOO_ARGUMENTS)
        # None means the current value of these; for other arguments (seed, n_ants, archive, ..) None is a value
        never_none = ("termination", "output", "display", "callback", "evaluator")
        given = {name: value for name, value in kwargs.items() if value is not None or name not in never_none}
        before = self.__dict__.copy()
        try:
            self._begin_again(given)
            check_seed(self.seed)
            verbose = self.verbose if verbose is None else verbose
            with compiling.announced(print if verbose else None):  # None: the logger
                super().setup(problem, verbose=verbose, progress=progress)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if before["problem"] is not None and "evaluator" not in given:
            self.evaluator.n_eval = 0
        return self

    def _setup(self, problem: Problem, **kwargs: Any) -> None:
        # The time of the run includes set-up and loading compiled code, but not compilation, which occurs once.
        with compiling.timed() as took:
            self._detect_custom_objective()
            self.prepare()
        self._setup_seconds, self._post_search_seconds = took.seconds, _POST_SEARCH_SHARE * took.seconds
        self.start_time = CLOCK.wall() - took.seconds  # of a result before the first generation

    def _initialize(self) -> None:
        rescued = self.opt  # after an interrupt of the first generation, which runs again now
        super()._initialize()
        self.opt = rescued
        self.start_time = CLOCK.wall() - self._setup_seconds

    def prepare(self) -> None:
        """Build the engine if there is none, instead of in the next generation."""
        _ = self.engine

    def finalize(self) -> Any:
        """End the run. Before ``setup`` there is no display, which pymoo's method requires."""
        return self._finalize() if self.display is None else super().finalize()

    def has_next(self) -> bool:
        """Return True until the run ends. Raises ValueError before ``setup``."""
        self._needs_problem()
        return bool(super().has_next())

    def result(self) -> Result:
        """Return pymoo's result; before the first generation it holds no tour. Raises ValueError before ``setup``."""
        self._needs_problem()
        return super().result()

    def _needs_problem(self) -> None:
        if self.problem is None:
            raise ValueError(
                "there is no run yet: call setup(problem, ..) first, or minimize(problem, algorithm)"
            )

    def next(self) -> None:
        """Run one generation. An interrupt from the keyboard ends it early; its best tour joins ``opt``."""
        began = CLOCK.monotonic()
        try:
            super().next()
        except KeyboardInterrupt:
            self._rescue()
            raise
        # ``_built_at`` may be of an earlier call or of another process
        self._post_search_seconds = CLOCK.monotonic() - max(began, self._built_at)

    def _set_deadline(self) -> None:
        """Set the engine's deadline, because a generation may be longer than the remaining time.

        The time of a generation after its search is reserved: some tenths of a second for millions of cities. A
        generation may end ``_ALLOWED_OVERRUN`` late: if it ended early, an empty generation would follow.
        """
        if self._engine is None:  # the run continues in another process; compilation does not count
            began = CLOCK.monotonic()
            with compiling.timed() as took:
                _ = self.engine
            self.start_time += CLOCK.monotonic() - began - took.seconds
        left = self._seconds_left()
        if left is not None:
            left -= max(0.0, self._post_search_seconds + self._conversion_seconds() - _ALLOWED_OVERRUN)
            if left <= 0.0 and not self._begun:
                _log.warning(
                    "pymoo_gpuaco: set-up took %.1f s and reached the time limit: the run ends with its first tour",
                    self._setup_seconds,
                )
        self._until = None if left is None else CLOCK.monotonic() + left
        self.engine.stop_at(self._until)

    def _conversion_seconds(self) -> float:
        """Return the estimated seconds of converting the results to pymoo's at the end of the run."""
        return 0.0

    def _progress(self) -> float:
        """Return the used share of the termination's budget, in [0, 1]; NaN without a budget."""
        return progress(self.termination, self._started)

    @property
    def _started(self) -> float:
        """Start of the run by CLOCK.wall(); the current time before the run."""
        return CLOCK.wall() if self.start_time is None else float(self.start_time)

    def _seconds_left(self) -> float | None:
        return seconds_left(self.termination, self._started)


@dataclass(kw_only=True, eq=False, repr=False)
class EngineAlgorithm(TourAlgorithm):
    """An algorithm with one engine, on a selectable device.

    Parameters
    ----------
    n_elites : best tours of each generation that pymoo evaluates, >= 1. None (default): one; all tours of a colony
        if the problem's objective is not the tour length.
    backend : "auto" (CUDA if a device is usable, otherwise the CPU), "cpu" or "cuda".
    device : number of the CUDA device, >= 0.

    All arguments of ``TourAlgorithm`` are also available.
    """

    n_elites: Count | None = None
    backend: str = "auto"
    device: int = 0

    _several_devices: ClassVar[bool] = False  # the engine may use several devices

    @staticmethod
    @abstractmethod
    def _make_engine(*arguments: Any, **keywords: Any) -> Any:
        """Create the engine from instance, ``parameters``, ``backend`` and ``device``: a function of ``backends``."""

    @abstractmethod
    def _parameters(self) -> Any:
        """Return the parameters of the engine; raise TypeError or ValueError for invalid ones."""

    def _check(self) -> None:
        super()._check()
        checks.optional_integer("n_elites", get(self.n_elites), 1)
        check_backend(self.backend, self.device, self._several_devices)
        self._parameters()

    def _maker(self) -> Callable[..., Any]:
        device = int(self.device) if isinstance(self.device, Integral) else self.device
        return partial(
            type(self)._make_engine, parameters=self._parameters(), backend=self.backend, device=device
        )
