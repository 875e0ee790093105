"""What all algorithms share: pymoo's life cycle around an engine.

A generation is one call of the engine. pymoo sees the few best tours of it as individuals without F, evaluates them
through the user's evaluator, and what it tells back is what the algorithm learns from. ``evaluator.n_eval`` counts
every tour that was built. The engine is a cache: a copy or a pickle carries its exported state and builds its own.
"""

from __future__ import annotations

import copy
import difflib
import inspect
import logging
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.algorithm import Algorithm
from pymoo.core.initialization import Initialization
from pymoo.core.population import Population
from pymoo.core.problem import Problem
from pymoo.core.variable import get
from pymoo.util.optimum import filter_optimum

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.display import ColonyOutput
from pymoo_gpuaco.algorithms.termination import as_new, progress, seconds_left
from pymoo_gpuaco.backends import State, Stoppable, check_backend
from pymoo_gpuaco.candidates.bound import prove_lower_bound
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.host import compiling
from pymoo_gpuaco.host.meanwhile import apart
from pymoo_gpuaco.host.state import check_seal, seal

PYMOO_ARGUMENTS = (
    "termination",
    "output",
    "display",
    "callback",
    "archive",
    "return_least_infeasible",
    "save_history",
    "verbose",
    "seed",
    "evaluator",
)
# What arguments are called in pymoo and in other ant colonies.
_ELSEWHERE = {
    "pop_size": "n_ants",
    "population_size": "n_ants",
    "ants": "n_ants",
    "evaporation": "rho",
    "decay": "rho",
    "n_neighbors": "candidate_list_size",
    "n_neighbours": "candidate_list_size",
    "k": "candidate_list_size",
    "n_restarts": "n_climbers",
    "random_state": "seed",
    "callbacks": "callback",
    "logger": "output",
}
# Objects that a run changes: every run begins with what was given, not with what the last one left.
_CHANGED_BY_A_RUN = ("termination", "output", "display", "archive")


# No lower bound has been asked for yet.
_UNKNOWN = "unknown"


_log = logging.getLogger("pymoo_gpuaco")


class Tours(NamedTuple):
    """Some tours and their lengths: rows (e, n) and (e,)."""

    rows: NDArray[np.signedinteger[Any]]
    lengths: NDArray[np.float64]

    def best(self) -> tuple[NDArray[np.int32], float]:
        """The first of the shortest tours, and its length."""
        first = int(self.lengths.argmin())
        return self.rows[first].astype(np.int32), float(self.lengths[first])


class TourAlgorithm(Algorithm):
    """A pymoo algorithm whose tours an engine builds; subclasses say which engine and what is learned.

    Parameters
    ----------
    sampling : tours to start from: a pymoo Sampling, an (m, n) array of permutations, or a Population, of which
        only X is used. They are evaluated as generation 1, turned to begin at city 0. None starts from nothing.
    n_elites : best tours of each generation that pymoo gets to see, >= 1. None (default): one, and all of a colony's
        where the problem's objective is not the tour's length.
    backend : "auto" (CUDA where a device is usable, else CPU), "cpu" or "cuda".
    device : number of the CUDA device, >= 0.
    **pymoo_arguments : pymoo's own: ``PYMOO_ARGUMENTS``. Any other name raises TypeError.

    A value out of its range raises ValueError, one of another kind TypeError, here and in the subclasses; both name the
    parameter, the value and what is allowed.
    """

    #: own arguments of the class, which ``setup`` and ``minimize`` take as well
    arguments: tuple[str, ...] = ("sampling", "n_elites", "backend", "device")

    _instance: ListedInstance | None
    _lower_bound: Any
    _engine: Any
    _engine_state: State | None
    _size: int | None  # ants or climbers of the run, as its first engine chose them

    def __init__(
        self,
        *,
        sampling: Any = None,
        n_elites: Any = None,
        backend: str = "auto",
        device: int = 0,
        output: Any = None,
        **pymoo_arguments: Any,
    ) -> None:
        self._refuse_unknown(pymoo_arguments)
        super().__init__(output=ColonyOutput() if output is None else output, **pymoo_arguments)
        self.sampling = sampling
        self.n_elites = n_elites
        self.backend = backend
        self.device = device
        self._given: dict[str, Any] = {}
        self._forget_run()

    # ---- what a subclass provides -------------------------------------------------------------------------------

    @abstractmethod
    def _check(self) -> None:
        """Validate the arguments of the class; raise TypeError or ValueError."""
        _check_sampling(self.sampling)
        checks.optional_integer("n_elites", get(self.n_elites), 1)
        check_backend(self.backend, self.device)

    @abstractmethod
    def _candidates(self) -> int:
        """Length of the candidate lists that the engine reads."""

    def _kind_of_candidates(self) -> str:
        """Which cities the candidate lists hold, see ``as_instance``."""
        return "nearest"

    @property
    def lower_bound(self) -> float | None:
        """A length that no tour of the problem's distances falls below (Held and Karp 1970), computed when first asked.

        None where it is not known: asymmetric instances, and those too large to prove it (some 100,000 cities; about
        a second at 20,000). It holds for the distances, so for objectives that are the tour's length.
        """
        if self._lower_bound == _UNKNOWN:  # a pickle's is another object
            self._lower_bound = prove_lower_bound(self.instance)
        return self._lower_bound

    @property
    def patience(self) -> int:
        """Tours without a shorter one that this algorithm may need on its way to one."""
        return 0

    @abstractmethod
    def _maker(self) -> Callable[[ListedInstance], Any]:
        """What builds the engine for an instance; it holds copies of the arguments, as it works in another thread."""

    @abstractmethod
    def _adopt(self, engine: Any) -> None:
        """Note what a new engine has decided for the run."""

    @abstractmethod
    def _begin(self) -> None:
        """Prepare a new run; the engine exists."""

    @abstractmethod
    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        """One generation: tours to hand out (e, n), their lengths under the distances (e,), how many were built."""

    @abstractmethod
    def _learn(self, told: Tours) -> None:
        """Take in the tours of the generation, with the lengths that the evaluator told."""

    def _has_learnt(self, told: Tours) -> bool:
        """Whether ``_learn`` has been called already, expecting what is told now."""
        return False

    @abstractmethod
    def _accept(self, outside: Tours) -> None:
        """Take in told tours that were not handed out, before ``_learn`` is called with all that were told."""

    @abstractmethod
    def _start_from(self, told: Tours) -> None:
        """Take in the evaluated tours of ``sampling``."""

    # ---- engine and instance: rebuilt where a copy or a pickle has left them out -----------------------------------

    @property
    def instance(self) -> ListedInstance:
        """The problem as arrays."""
        if self._instance is None:
            self._instance = apart(self._lister())
        return self._instance

    @property
    def engine(self) -> Any:
        """The engine of this run, built when first asked for."""
        if self._engine is None:
            list_candidates, make, state = self._lister(), self._maker(), self._engine_state

            def build() -> tuple[ListedInstance, Any]:
                instance = list_candidates()
                engine = make(instance)
                if state is not None:
                    engine.import_state(state)
                return instance, engine

            # an interrupt is heard at once; what it leaves behind knows nothing of this object
            self._instance, engine = apart(build)
            self._adopt(engine)
            self._engine, self._engine_state = engine, None
        return self._engine

    def _lister(self) -> Callable[[], ListedInstance]:
        """What returns the problem as arrays; it holds copies, as it works in another thread."""
        known, problem = self._instance, self.problem
        k, kind = self._candidates(), self._kind_of_candidates()
        return lambda: listed_instance(problem, k, kind) if known is None else known

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the engine and the instance, with the engine's state as plain arrays."""
        state = self.__dict__.copy()
        if self._engine is not None:
            state["_engine_state"] = self._engine.export_state()
        state["_engine"] = None
        state["_instance"] = None
        if getattr(self.display, "progress", None) is not None:
            # a progress bar is a live generator and a thread: the copy goes on without one
            state["display"] = copy.copy(self.display)
            state["display"].progress = None
        return sealed(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state of ``__getstate__``. Raises ValueError where its arrays are no longer what they were."""
        own = dict(state)
        check_seal(own.pop("_seal"), _arrays(own))
        self.__dict__.update(own)

    def __repr__(self) -> str:
        """The class with the arguments that are not the defaults."""
        defaults: dict[str, Any] = {}
        for cls in reversed(inspect.getmro(type(self))[:-1]):
            defaults |= {n: p.default for n, p in inspect.signature(cls).parameters.items()}
        told = []
        for name in self.arguments:
            usual = defaults.get(name)
            value = get(getattr(self, name, usual))
            if name == "sampling" and value is not None:
                told.append("sampling=..")
            elif value is not usual and not (isinstance(value, type(usual)) and value == usual):
                told.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(told)})"

    # ---- pymoo's life cycle -------------------------------------------------------------------------------------

    def setup(
        self, problem: Problem, verbose: bool | None = None, progress: bool = False, **kwargs: Any
    ) -> TourAlgorithm:
        """Prepare a run. A used object starts anew, with what the constructor and ``setup`` were last given.

        A misspelt argument raises TypeError. A call that raises leaves the object as it was.
        """
        self._refuse_unknown(kwargs)
        # None leaves these as they are; elsewhere (seed, n_ants, archive ..) it has a meaning of its own
        never_none = ("termination", "output", "display", "callback", "evaluator")
        told = {name: value for name, value in kwargs.items() if value is not None or name not in never_none}
        before = self.__dict__.copy()
        try:
            self._begin_with_what_was_given(told)
            self._forget_run()
            _check_seed(told.get("seed", self.seed))
            verbose = self.verbose if verbose is None else verbose
            with compiling.announced(print if verbose else None):
                super().setup(problem, verbose=verbose, progress=progress, **told)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        if before["problem"] is not None and "evaluator" not in told:
            self.evaluator.n_eval = 0
        return self

    def _begin_with_what_was_given(self, told: dict[str, Any]) -> None:
        """Move the objects that a run changes from ``told`` into the attributes, fresh, and remember them."""
        given = (
            self._given
            if self.problem is not None
            else {name: getattr(self, name) for name in _CHANGED_BY_A_RUN}
        )
        termination = told.get("termination")
        self._given = {name: told.pop(name, given[name]) for name in _CHANGED_BY_A_RUN}
        self.termination = as_new(self._given["termination"], keep=termination is not None)
        if termination is not None:
            # as in pymoo the run uses the very object that setup was given; the next begins with a copy from before
            self._given["termination"] = copy.deepcopy(self.termination)
        self.output = copy.copy(self._given["output"])
        self.output.is_initialized = False  # so that the header is printed
        self.display = self._given["display"]
        self.archive = self._given["archive"]

    def _refuse_unknown(self, arguments: dict[str, Any]) -> None:
        known = self.arguments + PYMOO_ARGUMENTS
        for name in arguments:
            if name not in known:
                close = [_ELSEWHERE[name]] if _ELSEWHERE.get(name) in known else []
                close += difflib.get_close_matches(name, known, n=1, cutoff=0.75)
                hint = f" Did you mean {close[0]}?" if close else ""
                raise TypeError(
                    f"{type(self).__name__} has no argument {name!r}.{hint} It takes {', '.join(sorted(known))}"
                )

    def _forget_run(self) -> None:
        """Drop what belongs to one run, so that a used object can be set up again."""
        self.is_initialized = False
        self.start_time: Any = None
        self.n_iter = None
        self.pop = self.off = self.opt = None
        self.history: list[Algorithm] = []
        self._instance = None
        self._lower_bound = _UNKNOWN
        self._engine = None
        self._engine_state = None
        self._other_objective = False  # whether another value than a tour's length was told
        self.iteration_mean = float("nan")  # mean length of the tours of the last generation that was built
        self._size = None
        self._begun = False
        self._setup_seconds = 0.0  # that set-up took without compiling
        self._n_eval_due = 0
        self._handed_out: Tours | None = None  # by the last ask(), if it was an engine that built them

    def _setup(self, problem: Problem, **kwargs: Any) -> None:
        self._check()
        # what is built here counts in the run's time as the run does, but for compiling, which a machine does once
        began = time.perf_counter()
        with compiling.counted() as compilers:
            self.prepare()
        self._setup_seconds = max(0.0, time.perf_counter() - began - compilers.seconds)

    def _initialize(self) -> None:
        super()._initialize()
        self.start_time = time.time() - self._setup_seconds

    def prepare(self) -> None:
        """Build what the next generation would build before it begins, where a copy or a file has left it out."""
        _ = self.engine

    def next(self) -> None:
        """Make one generation. An interrupt from the keyboard ends it; the best tour it has built joins ``opt``."""
        try:
            super().next()
        except KeyboardInterrupt:
            self._rescue()
            raise

    def _rescue(self) -> None:
        engine = self._engine
        rescued = engine.rescued() if isinstance(engine, Stoppable) else None
        if rescued is None and self._handed_out is not None:  # it came while these were evaluated
            rescued = self._handed_out.best()
        if rescued is None:
            return
        tour = Population.new("X", canonical(rescued[0][None], self.instance.symmetric))
        self.evaluator.eval(self.problem, tour, algorithm=self)
        both = tour if self.opt is None else Population.merge(self.opt, tour)
        self.opt = filter_optimum(both, least_infeasible=True)

    def _limit_time(self) -> None:
        """Tell the engine when the termination's time is over: a generation may be longer than what is left."""
        if isinstance(self.engine, Stoppable):
            started = time.time() if self.start_time is None else self.start_time
            left = seconds_left(self.termination, started, self.n_iter or 1)
            if left is not None and left <= 0.0 and not self._begun:
                _log.warning(
                    "pymoo_gpuaco: set-up took %.1f s, and the time is over: the run ends with its first tour",
                    self._setup_seconds,
                )
            self.engine.stop_at(None if left is None else time.monotonic() + left)

    def _progress(self) -> float:
        """How far the run is by what it may spend, in [0, 1], or NaN where nobody knows."""
        started = time.time() if self.start_time is None else self.start_time
        return progress(self.termination, started, self.n_iter or 1)

    def _initialize_infill(self) -> Population:
        self._limit_time()
        if not self._begun:
            self._begin()
            self._begun = True
        if self.sampling is not None:
            return self._sampled()
        return self._infill()

    def _sampled(self) -> Population:
        sampling = self.sampling
        if isinstance(sampling, (list, tuple)):
            sampling = np.array(sampling)
        given = Initialization(sampling).do(
            self.problem, self._size, random_state=self.random_state, algorithm=self
        )
        # only X is taken: an F of another problem, or of none, would never be evaluated again
        tours = check_tours("sampling", given.get("X"), self.instance.n)
        self._handed_out = None
        return self._hand_out(canonical(tours, self.instance.symmetric), len(tours))

    def _infill(self) -> Population:
        self._limit_time()
        self._handed_out = None
        tours, lengths, built = self._build(self._draw_key())
        rows = canonical(tours, self.instance.symmetric)
        self._handed_out = Tours(rows, lengths)
        return self._hand_out(rows, built)

    def _draw_key(self) -> int:
        return int(self.random_state.integers(0, 2**64, dtype=np.uint64))

    def _hand_out(self, rows: NDArray[np.int64], built: int) -> Population:
        infills = Population.new("X", rows)
        # the evaluator will count the tours it sees; the others were built just the same, as were those of an
        # ask() that no tell() followed
        self._n_eval_due = max(self.evaluator.n_eval, self._n_eval_due) + built
        self.evaluator.n_eval = self._n_eval_due - len(infills)
        return infills

    def _initialize_advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        if not self._begun:
            raise ValueError("tell() needs the evaluated individuals of ask(): call ask() first")
        if self.sampling is None:
            self._advance(infills=infills, **kwargs)
            return
        self._start_from(self._told(infills))

    def _advance(self, infills: Population | None = None, **kwargs: Any) -> None:
        told = self._told(infills)
        self.pop = infills
        self._compare_with_distances(told, int(told.lengths.argmin()))
        if self._has_learnt(told):
            return
        outside = self._outside(told)
        if len(outside.lengths):
            self._accept(outside)
        self._learn(told)

    def _told(self, infills: Population | None) -> Tours:
        """Tours and the F that the evaluator or the user gave them."""
        if infills is None or len(infills) == 0:
            raise ValueError("tell() needs the evaluated individuals of ask(), got none")
        if not isinstance(infills, Population):
            raise TypeError(f"tell() needs a Population, got {type(infills).__name__}")
        tours = infills.get("X")
        if not self._were_handed_out(tours):
            tours = check_tours("infills", tours, self.instance.n)
        values = [individual.F for individual in infills]
        if any(f is None or np.size(f) != 1 for f in values):
            raise ValueError("every individual given to tell() must be evaluated: F must have one value")
        lengths = np.array([float(np.ravel(f)[0]) for f in values])
        if not np.all(np.isfinite(lengths)):
            raise ValueError(f"F of told individuals must be finite, got {lengths[~np.isfinite(lengths)][0]}")
        # in an ask-and-tell loop the user may have evaluated with an evaluator of his own
        self.evaluator.n_eval = max(self.evaluator.n_eval, self._n_eval_due)
        return Tours(tours, lengths)

    def _were_handed_out(self, tours: NDArray) -> bool:
        return self._handed_out is not None and np.array_equal(tours, self._handed_out.rows)

    def _outside(self, told: Tours) -> Tours:
        """The tours that were not handed out."""
        if self._were_handed_out(told.rows):
            return Tours(told.rows[:0], told.lengths[:0])
        known = set() if self._handed_out is None else {row.tobytes() for row in self._handed_out.rows}
        rows = canonical(told.rows, self.instance.symmetric)
        new = np.array([row.tobytes() not in known for row in rows], dtype=bool)
        return Tours(rows[new], told.lengths[new])

    def _compare_with_distances(self, tours: Tours, best: int) -> None:
        if self._other_objective:
            return
        told = float(tours.lengths[best])
        if self._handed_out is not None and self._were_handed_out(tours.rows):
            length = float(self._handed_out.lengths[best])
        else:
            length = self.instance.tour_length(tours.rows[best])
        if abs(length - told) > 1e-6 * max(abs(length), abs(told), 1e-300):
            self._other_objective = True
            warnings.warn(
                f"the problem's objective ({told:.10g}) is not the tour's length under its distances ({length:.10g}): "
                "ants walk by distance, and the objective decides which of their tours count as best. "
                f"{self._answer_to_other_objective()}",
                stacklevel=2,
            )

    def _answer_to_other_objective(self) -> str:
        """What the algorithm does about an objective that is not the length, for the warning."""
        return "Only the shortest tour of each generation is evaluated"

    def _post_advance(self) -> None:
        # under save_history pymoo takes these three away while it copies, and a copy may fail
        lent = {name: self.__dict__[name] for name in ("history", "callback", "display")}
        try:
            super()._post_advance()
        except BaseException:
            if self.display is None:
                self.__dict__.update(lent)
            raise

    def _set_optimum(self) -> None:
        # a colony is not elitist, so the best so far joins; first, for it to win ties
        both = self.pop if self.opt is None else Population.merge(self.opt, self.pop)
        self.opt = filter_optimum(both, least_infeasible=True)


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """A state with what tells it from a damaged one, as ``__setstate__`` takes it."""
    return {**state, "_seal": seal(_arrays(state))}


def _arrays(state: dict[str, Any]) -> State:
    """What compiled code reads: the engine's state and the tours that the algorithm keeps."""
    own = {name: value for name, value in state.items() if type(value) is np.ndarray}  # no Population
    return {**own, **(state["_engine_state"] or {})}


def canonical(tours: ArrayLike, symmetric: bool) -> NDArray[np.int64]:
    """Rotate tours (e, n) to begin at city 0; where direction is free, its smaller neighbour comes second.

    Equal cycles then are equal rows, which makes ``xtol`` and duplicate checks mean something.
    """
    rows = np.array(tours, dtype=np.int64)
    for row in rows:
        start = int(np.argmax(row == 0))
        row[:] = np.concatenate((row[start:], row[:start]))
        if symmetric and row[1] > row[-1]:
            row[1:] = row[:0:-1].copy()
    return rows


def check_tours(name: str, tours: Any, n: int) -> NDArray[np.int64]:
    """Return (m, n) int64 rows that are permutations of 0 .. n-1; ValueError names the first that is not."""
    return checks.permutations(name, np.atleast_2d(np.asarray(tours)), n)


def _check_sampling(sampling: Any) -> None:
    if isinstance(sampling, (list, tuple)):
        try:
            np.array(sampling)
        except ValueError as error:
            raise ValueError(f"sampling must hold tours of equal length: {error}") from error
    elif not (sampling is None or isinstance(sampling, np.ndarray) or callable(sampling)):
        raise TypeError(
            f"sampling must be a pymoo Sampling, an (m, n) array of permutations or a Population, got {sampling!r}"
        )


def _check_seed(seed: Any) -> None:
    try:
        np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"seed must be an integer >= 0, a numpy Generator or None, got {seed!r}: {error}"
        ) from error
