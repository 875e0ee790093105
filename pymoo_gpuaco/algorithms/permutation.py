"""Base of all algorithms: an engine searches permutations, and pymoo's ``minimize``, ask/tell and checkpoints drive it.

The best permutations of the engine become pymoo individuals without F. The user's evaluator sets F, and the algorithm
learns from it. A copy or a pickle holds the engine's exported state, and builds a new engine when it needs one.
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

import numpy as np
from numpy.typing import NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.result import Result
from pymoo.core.termination import Termination
from pymoo.util.display.output import Output

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms import arguments
from pymoo_gpuaco.algorithms.display import ColonyOutput, without_bar
from pymoo_gpuaco.algorithms.individuals import (
    Permutations,
    best_of,
    best_of_both,
    evaluated_by_user,
    sampled,
)
from pymoo_gpuaco.algorithms.termination import (
    NO_TIME,
    ColonyTermination,
    check_termination,
    progress,
    seconds_left,
    termination_of,
)
from pymoo_gpuaco.backends import check_backend
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import end_on_interrupt
from pymoo_gpuaco.runtime.threads import MOST_THREADS, run_in_progress

# First estimate of the time of a generation after its search (evaluation, learning), as a share of the set-up time.
_POST_SEARCH_SHARE = 0.05
_ALLOWED_OVERRUN = 0.2  # s that a generation may end after its deadline

_log = logging.getLogger("pymoo_gpuaco")


@dataclass(kw_only=True, eq=False, repr=False)
class PermutationAlgorithm(arguments.Arguments, Algorithm):
    """A pymoo algorithm whose engine builds permutations; subclasses choose the engine and learn from its results.

    Parameters
    ----------
    sampling : permutations to start from: a pymoo Sampling, an (m, n) array of permutations, or a Population, of which
        only X is used. They are evaluated as generation 1. If the objective is the tour length, tours are rotated to
        begin at city 0. None: no given permutations.
    backend : "auto" (CUDA if a device is usable, otherwise the CPU), "cpu" or "cuda".
    device : number of the CUDA device, >= 0.
    threads : host threads, in [1, 1024]; None: `PYMOO_GPUACO_THREADS`, else one a core. Runs in one process share its
        cores: each uses fewer threads while others are in progress, with the same results.

    The other arguments are pymoo's own. Any other name raises TypeError. A value out of its range raises ValueError,
    a value of a wrong type TypeError, also in the subclasses; both name the parameter, the value and what is allowed.
    """

    sampling: Any = None
    backend: str = "auto"
    device: int = 0
    threads: int | None = None

    _default_termination: ClassVar[Callable[[], Termination]] = partial(ColonyTermination, proven=True)
    _default_output: ClassVar[Callable[[], Output]] = ColonyOutput
    _several_devices: ClassVar[bool] = False  # the engine may use several devices

    def __post_init__(self) -> None:
        """Pass pymoo's own arguments to pymoo, and validate all arguments."""
        if self.output is None:
            self.output = type(self)._default_output()
        own = {name: getattr(self, name) for name in arguments.PYMOO_ARGUMENTS}
        arguments.check_kinds(own)
        Algorithm.__init__(self, **own)
        self._given = {name: own[name] for name in arguments.CHANGED_BY_A_RUN}  # as before a run
        self._forget_run()
        self._check()

    def _forget_run(self) -> None:
        """Reset the attributes of a run."""
        self._instance: Any = None
        self._engine: Any = None
        self._engine_state: State | None = None
        self._size: int | None = None  # number of ants or climbers, chosen by the first engine of the run
        self._begun = False
        self._asked: Population | None = None  # of the last ask()
        self._asked_permutations: Permutations | None = None  # of the last ask(), if an engine built them
        self._n_eval_due = 0  # n_eval after the next tell()
        self.iteration_mean = float("nan")  # mean objective of the last generation that was built
        self._setup_seconds = 0.0  # duration of set-up without compilation
        self._built_at = 0.0  # end of the last search by CLOCK.monotonic()
        self._post_search_seconds = 0.0  # s of the last generation after its search
        self._conversion_seconds = 0.0  # s of converting the results to pymoo's at the end of the run

    # ---- what a subclass provides

    def _check(self) -> None:
        """Validate the arguments of the class; raise TypeError or ValueError."""
        arguments.check_sampling(self.sampling)
        check_backend(self.backend, self.device, self._several_devices)
        checks.optional_integer("threads", self.threads, 1, MOST_THREADS)

    def _inspect_problem(self) -> None:
        """Raise TypeError or ValueError for a problem that the algorithm cannot solve; there is no engine yet."""

    @abstractmethod
    def _instance_maker(self) -> Callable[[], Any]:
        """Return a function that turns the problem into arrays; it holds copies, as it runs in another thread."""

    @staticmethod
    @abstractmethod
    def _make_engine(*args: Any, **kwargs: Any) -> Any:
        """Create the engine from instance, ``parameters``, ``backend`` and ``device``: a function of ``backends``."""

    @abstractmethod
    def _parameters(self) -> Any:
        """Return the parameters of the engine; raise TypeError or ValueError for invalid ones."""

    def _adopt(self, engine: Any) -> None:
        """Record what a new engine has chosen, such as the number of ants."""

    def _begin(self) -> None:
        """Prepare a new run; the engine exists."""

    @abstractmethod
    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        """Build a generation; return rows for ``ask`` (e, n), their objectives (e,), and the number built."""

    def _learn(self, evaluated: Permutations) -> None:
        """Learn from the rows of the generation and from their F, which the evaluator has set."""

    def _accept(self, outside: Permutations) -> None:
        """Add evaluated rows that no ``ask`` built, or those of ``sampling``; ``_learn`` follows, with all rows."""
        self.engine.accept(outside.rows, outside.values)

    def canonical(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return a copy (e, n) in which equal solutions are equal rows."""
        return np.array(rows, np.int64)

    @property
    def may_stagnate(self) -> bool:
        """True if generations without a better solution may end the run now."""
        return True

    def describe(self) -> str:
        """Return the name of the algorithm and a summary of its parameters, for the header; the engine exists."""
        return type(self).__name__

    # ---- engine and instance; a copy or a pickle leaves them out, and they are built again

    @property
    def instance(self) -> Any:
        """The problem as arrays."""
        if self._instance is None:
            _ = self.engine
        return self._instance

    @property
    def engine(self) -> Any:
        """The engine of this run, built at the first access."""
        if self._engine is None:
            known, make_instance = self._instance, self._instance_maker()
            make, state = self._engine_maker(), self._engine_state

            def build() -> tuple[Any, Any]:
                instance = make_instance() if known is None else known
                engine = make(instance)
                if state is not None:
                    engine.import_state(state)
                return instance, engine

            # an interrupt takes effect at once; the abandoned thread has no reference to this object
            with compiling.announced(None), run_in_progress(self.threads):
                self._instance, engine = interruptible(build)
            self._adopt(engine)
            self._engine, self._engine_state = engine, None
        return self._engine

    def _engine_maker(self) -> Callable[..., Any]:
        """Return a function that builds the engine; it holds copies of the arguments, as it runs in another thread."""
        device = int(self.device) if isinstance(self.device, Integral) else self.device
        make, parameters = type(self)._make_engine, self._parameters()
        return partial(make, parameters=parameters, backend=self.backend, device=device)

    def prepare(self) -> None:
        """Build the engine if there is none, instead of in the next generation."""
        _ = self.engine

    def release_engine(self) -> None:
        """Replace the engine by its exported state and free its memory; the next access builds another engine."""
        if self._engine is not None:
            self._engine_state, self._engine = self._engine.export_state(), None

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes but the engine and the instance, with the engine's state as plain arrays."""
        state = {**self.__dict__, "_engine": None, "_instance": None, "_asked": None}
        if self._engine is not None:
            state["_engine_state"] = self._engine.export_state()
        if self.start_time is not None:  # minus the seconds of the run: time in a file does not count
            state["start_time"] = self.start_time - CLOCK.wall()
        return {**state, "display": without_bar(self.display)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes of a state."""
        self.__dict__.update(state)
        if self.start_time is not None:
            self.start_time += CLOCK.wall()

    def check_loaded(self) -> None:
        """Raise TypeError or ValueError for invalid data of a file; the engine checks its own state."""
        self._check()
        if not isinstance(self._engine_state, dict | None) or not (self._engine is self._instance is None):
            raise ValueError("a file holds the state of an engine as arrays, not an engine or an instance")
        if self._asked_permutations is not None:
            self._asked_permutations.check(self.problem.n_var)

    # ---- pymoo's life cycle

    def setup(
        self, problem: Problem, verbose: bool | None = None, progress: bool = False, **kwargs: Any
    ) -> PermutationAlgorithm:
        """Prepare a run. A used object starts again, with the last arguments of the constructor and ``setup``.

        A misspelt argument raises TypeError. If the call raises an error, the object is unchanged.
        """
        arguments.check_flags(verbose, progress)
        self._refuse_unknown(kwargs, self.arguments() + arguments.PYMOO_ARGUMENTS)
        before = self.__dict__.copy()
        try:
            self._reset_for_setup(arguments.given_to_setup(kwargs))
            verbose = self.verbose if verbose is None else verbose
            with compiling.announced(print if verbose else None):  # None: the logger
                super().setup(problem, verbose=verbose, progress=progress)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if before["problem"] is not None and kwargs.get("evaluator") is None:
            self.evaluator.n_eval = 0
        return self

    def _reset_for_setup(self, given: dict[str, Any]) -> None:
        """Reset the object to its last arguments and those ``given``."""
        data = self.data
        self.__dict__.update({} if self.problem is None else self._given, **given)
        self.__post_init__()
        self.data: Any = data  # the user's
        check_termination(self.termination)
        # as in pymoo, the run uses the given object itself; the next run begins with a copy from before this one
        self._given["termination"] = copy.deepcopy(self.termination)
        if self.termination is None:
            self.termination = type(self)._default_termination()
        arguments.check_seed(self.seed)

    def _setup(self, problem: Problem, **kwargs: Any) -> None:
        # The time of the run includes set-up and loading compiled code, but not compilation, which occurs once.
        with compiling.timed() as took:
            self._inspect_problem()
            self.prepare()
        self._setup_seconds, self._post_search_seconds = took.seconds, _POST_SEARCH_SHARE * took.seconds
        self.start_time = CLOCK.wall() - took.seconds  # of a result before the first generation

    def _initialize(self) -> None:
        rescued: Any = self.opt  # after an interrupt of the first generation, which runs again now
        super()._initialize()
        self.opt: Any = rescued
        self.start_time = CLOCK.wall() - self._setup_seconds

    def run(self) -> Result:
        """Run to the end; see `run_in_progress`."""
        with run_in_progress(self.threads):
            return super().run()

    def has_next(self) -> bool:
        """Return True until the run ends. Raises ValueError before ``setup``."""
        self._needs_problem()
        self._read_short_form()
        return bool(super().has_next())

    def _read_short_form(self) -> None:
        """Replace a termination such as ("n_gen", 20) that was set during the run, or None, by an object."""
        if self.problem is not None:
            self.termination = termination_of(self.termination, type(self)._default_termination)

    def next(self) -> None:
        """Run one generation. An interrupt from the keyboard ends it early; its best solution joins ``opt``."""
        self._read_short_form()
        began = CLOCK.monotonic()
        try:
            super().next()
        except KeyboardInterrupt:
            self._rescue()
            raise
        # ``_built_at`` may be of an earlier call or of another process
        self._post_search_seconds = CLOCK.monotonic() - max(began, self._built_at)

    def result(self) -> Result:
        """Return pymoo's result, without a solution before the first generation. Raises ValueError before ``setup``."""
        self._needs_problem()
        return super().result()

    def finalize(self) -> Any:
        """End the run. Before ``setup`` there is no display, which pymoo's method requires."""
        return self._finalize() if self.display is None else super().finalize()

    def _needs_problem(self) -> None:
        if self.problem is None:
            raise ValueError(
                "there is no run yet: call setup(problem, ..) first, or minimize(problem, algorithm)"
            )

    # ---- ask

    def _set_deadline(self) -> None:
        """Set the engine's deadline, because a generation may be longer than the remaining time.

        The time after its search is reserved: some tenths of a second for millions of cities. A generation may end
        ``_ALLOWED_OVERRUN`` late: if it ended early, an empty generation would follow.
        """
        if self._engine is None:  # the run continues in another process; compilation does not count
            began = CLOCK.monotonic()
            with compiling.timed() as took:
                _ = self.engine
            self.start_time += CLOCK.monotonic() - began - took.seconds
        left = self._seconds_left()
        if left is not None:
            left -= max(0.0, self._post_search_seconds + self._conversion_seconds - _ALLOWED_OVERRUN)
            if left <= 0.0 and not self._begun:
                _log.warning(NO_TIME, self._setup_seconds)
        until = None if left is None else CLOCK.monotonic() + left
        for engine in self._engines():
            engine.stop_at(until)

    def _progress(self) -> float:
        """Return the used share of the termination's budget, in [0, 1]; NaN without a budget."""
        return progress(self.termination, self.start_time)

    def _seconds_left(self) -> float | None:
        return seconds_left(self.termination, self.start_time)

    def _initialize_infill(self) -> Population:
        if self.sampling is None:
            return self._infill()
        self._set_deadline()
        self._uninterrupted(self._begin_once)
        self._built_at = CLOCK.monotonic()
        rows = sampled(self.sampling, self._size, self)
        self._asked_permutations = None
        return self._to_infills(self.canonical(rows), len(rows))

    def _infill(self) -> Population:
        self._asked_permutations = self._asked = None
        self._set_deadline()
        self._uninterrupted(self._generation)
        return self._asked

    def _generation(self) -> None:
        """Build a generation and the individuals for ``ask``."""
        self._begin_once()
        rows, values, built = self._build(self._draw_key())
        self._built_at = CLOCK.monotonic()
        self._asked_permutations = Permutations(self.canonical(rows), values)
        self._to_infills(self._asked_permutations.rows, built)

    def _begin_once(self) -> None:
        if not self._begun:
            self._begin()
            self._begun = True

    def _uninterrupted(self, work: Callable[[], object]) -> None:
        """Call ``work()``, which uses the engine. An interrupt from the keyboard ends it early and is then raised."""
        with run_in_progress(self.threads):
            end_on_interrupt(work, *(engine.stop for engine in self._engines()))

    def _engines(self) -> list[Any]:
        """Return all engines of the run, which end at a deadline or an interrupt."""
        return [self.engine]

    def _draw_key(self) -> int:
        return int(self.random_state.integers(0, 2**64, dtype=np.uint64))

    def _to_infills(self, rows: NDArray[np.int64], built: int) -> Population:
        """Return individuals of rows (e, n); n_eval will count all that were ``built`` in the generation."""
        infills = self._asked = Population.new("X", rows)
        # the evaluator adds the rows it evaluates; add the others here, also those of an ask() without a tell()
        self._n_eval_due = max(self.evaluator.n_eval, self._n_eval_due) + built
        self.evaluator.n_eval = self._n_eval_due - len(infills)
        return infills

    # ---- tell

    def _advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        if not self._begun:
            raise ValueError("tell() needs the evaluated individuals of ask(): call ask() first")
        evaluated = self._evaluated(infills)
        # in an ask-and-tell loop the user may evaluate with another evaluator
        self.evaluator.n_eval = max(self.evaluator.n_eval, self._n_eval_due)
        self.pop = infills
        if self.sampling is not None and not self.is_initialized:
            self._uninterrupted(lambda: self._learn_from(evaluated))
        else:  # no stops: an interrupt waits for the short update
            end_on_interrupt(lambda: self._learn_from(evaluated))

    _initialize_advance = _advance

    def _evaluated(self, infills: Population | None) -> Permutations:
        """Return the rows of evaluated individuals and their F; raise TypeError or ValueError for invalid ones."""
        return evaluated_by_user(infills, self.problem, self._asked_permutations)

    def _learn_from(self, evaluated: Permutations) -> None:
        """Learn from evaluated rows; the engine accepts those that the last ``ask`` did not return."""
        asked = self._asked_permutations
        if asked is None or evaluated.rows is not asked.rows:
            outside = Permutations(self.canonical(evaluated.rows), evaluated.values).without(asked)
            if len(outside.rows):
                self._accept(outside)
        self._learn(evaluated)

    def _set_optimum(self) -> None:
        # a generation may be worse than the last: add the best so far, first, because ties go to the first
        self.opt = best_of_both(self.opt, self.pop)

    def _rescue(self) -> None:
        """Merge the best row of an interrupted generation into ``opt``, an evaluated one if there is any."""
        found = best_of(self._asked, self._asked_permutations)
        if len(found):
            if "F" not in found[0].evaluated:
                self.evaluator.eval(self.problem, found, algorithm=self)
            self.opt = best_of_both(self.opt, found)
