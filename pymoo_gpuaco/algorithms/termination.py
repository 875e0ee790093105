"""Terminations of a run without one, and the time and the budget that any termination leaves."""

from __future__ import annotations

import copy
import difflib
import math
import re
import time
from typing import Any

import numpy as np
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny, Termination
from pymoo.termination.default import DefaultTermination
from pymoo.termination.delta import DeltaToleranceTermination
from pymoo.termination.fmin import MinimumFunctionValueTermination
from pymoo.termination.max_time import TimeBasedTermination
from pymoo.termination.robust import RobustTermination
from pymoo.util.sliding_window import SlidingWindow

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.bound import is_proven, seconds_to_prove
from pymoo_gpuaco.candidates.exact import MOST_CITIES
from pymoo_gpuaco.pareto.instance import MOST_FOR_ALL_TOURS

MOST_CITIES_TO_PROVE = 12_000  # of a bound that is to take no longer than a moment
_FOREVER = 1e8  # s: a longer budget is none, as a clock cannot wait for its end
_BROKEN = 1e30  # more than any length: what a broken constraint counts for stagnation
# A proof starts when the run has lasted this many times the estimated time of the proof.
_WORTH_A_PROOF = 10.0

# The names of pymoo's short forms; those of counts take whole numbers.
_COUNTS = ("n_gen", "n_iter", "n_eval", "n_evals")
_BUDGETS = (*_COUNTS, "time", "fmin", "soo", "moo")
# Terminations whose ``perc`` is no share of a budget: a first tour is at 99 % of a target, and the rest takes the run.
_GOALS = (NoTermination, MinimumFunctionValueTermination, DeltaToleranceTermination, RobustTermination)


class ColonyTermination(checks.KnownKeywords, Termination):
    """Stop at a target, after stagnation, or when a generous budget is spent; ``reason`` says which.

    It is what every algorithm here uses when no termination is given: a run ends within the first generation that
    passes a minute, whatever the instance. Where it shall not depend on the machine's speed, give ("n_gen", ..) or
    ``seconds=None``. pymoo's own default would end a run at generation 31 whatever happens: it normalises the
    permutation as if it were a vector of small integers.

    Parameters
    ----------
    target : length at or below which the run ends; None takes the problem's ``best_known`` where it has one.
    stagnation : generations in a row without a shorter tour that end the run, >= 1, or None for no such limit.
    n_max_gen : most generations, >= 1, or None.
    seconds : most time, > 0, or None: of set-up without compiling, and of the run. Time between a pickle and its
        return, or before this object joined the run, is not counted.
    stagnation_tours : the same counted in tours, for algorithms that finish many in a generation, such as GPU2OptIHC on
        few cities; >= 1, or None.
    proven : whether a tour that is proven to be the shortest ends the run: one as long as the algorithm's
        ``lower_bound``, but for 1e-9 of it where distances are no whole numbers. Up to 12 cities that is known at once,
        up to 12,000 it is looked for when the run has lasted ten times as long as that takes (1 s of 1000 cities in the
        plane, 5 s of a matrix), if it may be over within the run's time. So does a proof that no tour of up to 12
        cities keeps to all constraints. Where the objective is not the tour's length, nothing is proven.
    """

    of_one_length = True  # not of a front

    def __init__(
        self,
        target: float | None = None,
        stagnation: int | None = 1000,
        n_max_gen: int | None = 10_000,
        seconds: float | None = 60.0,
        stagnation_tours: int | None = 1_000_000,
        proven: bool = False,
    ) -> None:
        super().__init__()
        self.target = None if target is None else checks.real("target", target)
        self.stagnation = checks.optional_integer("stagnation", stagnation, 1)
        self.n_max_gen = checks.optional_integer("n_max_gen", n_max_gen, 1)
        self.seconds = None if seconds is None else checks.real("seconds", seconds, 0.0, open_low=True)
        self.stagnation_tours = checks.optional_integer("stagnation_tours", stagnation_tours, 1)
        self.proven = checks.flag("proven", proven)
        self.reason: str | None = None
        self.start_again()

    def start_again(self) -> None:
        """Forget the run that this object has watched."""
        self.reason = None
        #: the run's proven lower bound, once it is known
        self.bound: float | None = None
        #: share of the budget (``n_max_gen``, ``seconds``) that is spent, in [0, 1], NaN without a budget
        self.spent = float("nan") if self.n_max_gen is None and self.seconds is None else 0.0
        self._best = float("inf")
        self._best_generation = 0
        self._best_tours = 0
        self._seconds = 0.0
        self._clock: float | None = None  # when the seconds were counted last

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the clock, which means nothing elsewhere."""
        return {**self.__dict__, "_clock": None}

    def _update(self, algorithm: Any) -> float:
        best, feasible = _best_of(algorithm.opt)
        generation, tours = int(algorithm.n_iter), int(algorithm.evaluator.n_eval)
        if best < self._best:
            self._best, self._best_generation, self._best_tours = best, generation, tours
        self._count_seconds(algorithm)
        target = self.target if self.target is not None else getattr(algorithm.problem, "best_known", None)
        idle, idle_tours = generation - self._best_generation, tours - self._best_tours
        used = self._budgets(generation)
        if getattr(algorithm, "may_stagnate", True):
            used[f"stagnation: no shorter tour in {idle} generations"] = idle, self.stagnation
            used[f"stagnation: no shorter tour among {idle_tours}"] = idle_tours, self.stagnation_tours
        if feasible and target is not None and best <= target:
            self.reason = f"reached target {target:.10g} with length {best:.10g}"
            return 1.0
        if feasible and self.proven and self._is_proven(algorithm):
            self.reason = f"proof: no tour is shorter than {best:.10g}"
            return 1.0
        if not feasible and self.proven and self._is_impossible(algorithm):
            self.reason = "proof: every tour breaks a constraint"
            return 1.0
        return self._ended_by(used, generation)

    def _budgets(self, generation: int) -> dict[str, tuple[float, float | None]]:
        """Used shares of the limits of generations and of time."""
        return {
            f"budget: {generation} generations": (generation, self.n_max_gen),
            f"budget: {round(self._seconds, 1):g} s": (self._seconds, self.seconds),
        }

    def _ended_by(self, used: dict[str, tuple[float, float | None]], generation: int) -> float:
        """Progress towards the end, in [0, 1], by the used share of each limit; the first one reached is the reason."""
        if not math.isnan(self.spent):
            self.spent = min(
                1.0, max(_share(generation, self.n_max_gen), _share(self._seconds, self.seconds))
            )
        shares = {reason: _share(*limit) for reason, limit in used.items()}
        for reason, share in shares.items():
            if share >= 1.0:
                self.reason = reason
                return 1.0
        return max(shares.values())

    def _is_proven(self, algorithm: Any) -> bool:
        """Return True if the best tour is as short as the proven bound; a length below it is none of a tour."""
        instance = getattr(algorithm, "instance", None)  # of this package's algorithms alone
        if instance is None or algorithm._custom_objective or instance.n > MOST_CITIES_TO_PROVE:
            return False
        if self._seconds < _WORTH_A_PROOF * seconds_to_prove(instance):
            return False
        self.bound = algorithm.bound_in_time()
        best = algorithm.opt[int(algorithm.opt.get("F").argmin())].X
        return self.bound is not None and is_proven(instance, np.asarray(best, np.int64), self.bound)

    def _is_impossible(self, algorithm: Any) -> bool:
        """Return True if every tour is known to break a constraint: of few cities, which else have a bound at once."""
        instance = getattr(algorithm, "instance", None)
        if instance is None or algorithm._custom_objective or instance.n > MOST_CITIES:
            return False
        return algorithm.lower_bound is None

    def _count_seconds(self, algorithm: Any) -> None:
        now = time.time()  # as pymoo's start_time
        self._seconds += self._uncounted(now, algorithm.start_time, algorithm.n_iter)
        self._clock = now

    def _uncounted(self, now: float, started: float, n_iter: int) -> float:
        before = self._clock
        if before is None:
            before = started if n_iter == 1 else now
        return max(0.0, now - before)

    def count_from(self, started: float) -> None:
        """Count seconds from ``started`` on, by time.time(), unless they are counted already."""
        if self._clock is None:
            self._clock = started

    def spent_at(self, started: float, n_iter: int) -> float:
        """Share of the budget that is spent before generation ``n_iter``, in [0, 1], NaN without a budget."""
        if self.seconds is None:
            return self.spent
        seconds = self._seconds + self._uncounted(time.time(), started, n_iter)
        return min(1.0, max(self.spent, _share(seconds, self.seconds)))

    def seconds_left(self, started: float, n_iter: int) -> float | None:
        """Seconds that the budget leaves in generation ``n_iter``, or None without a budget of seconds."""
        if self.seconds is None:
            return None
        left = self.seconds - self._seconds - self._uncounted(time.time(), started, n_iter)
        return left if left < _FOREVER else None


class FrontTermination(ColonyTermination):
    """Stop when the front has not changed for long, or when a generous budget is spent; ``reason`` says which.

    It is what GPU2PPLS uses when no termination is given: a run ends within the first generation that passes a minute.
    Up to 9 cities it ends as soon as every tour has been explored, in the first generation that searches.

    Parameters
    ----------
    stagnation : generations in a row without a new member of the front that end the run, >= 1, or None for no such
        limit.
    n_max_gen : most generations, >= 1, or None.
    seconds : most time, set-up without compiling counted, > 0, or None.
    """

    of_one_length = False

    def __init__(
        self, stagnation: int | None = 100, n_max_gen: int | None = None, seconds: float | None = 60.0
    ) -> None:
        super().__init__(None, stagnation, n_max_gen, seconds, None)

    def start_again(self) -> None:
        """Forget the run that this object has watched."""
        super().start_again()
        self._added = -1

    def _update(self, algorithm: Any) -> float:
        generation, added = int(algorithm.n_iter), int(algorithm.engine.archive.added)
        if added != self._added:
            self._added, self._best_generation = added, generation
        self._count_seconds(algorithm)
        if algorithm.engine.instance.n <= MOST_FOR_ALL_TOURS and algorithm.engine.n_sums:
            self.reason = "proof: every tour has been explored"
            return 1.0
        idle = generation - self._best_generation
        return self._ended_by(
            {
                f"stagnation: no new member of the front in {idle} generations": (idle, self.stagnation),
                **self._budgets(generation),
            },
            generation,
        )


def _best_of(opt: Any) -> tuple[float, bool]:
    """Length of the best tour and True; while all break constraints, a number that falls with these and False."""
    broken = float(opt.get("CV").min())
    best = float(opt.get("F").min())
    return (best, True) if broken <= 0.0 else (_BROKEN * broken + best, False)


def _share(used: float, most: float | None) -> float:
    return 0.0 if most is None else used / most


def progress(termination: Termination, started: float, n_iter: int = 1) -> float:
    """Progress of a run that began at ``started`` by time.time(), now, before generation ``n_iter``, in [0, 1].

    NaN where its termination has no budget: a target or a tolerance tells nothing of when a run ends.
    """
    if isinstance(termination, ColonyTermination):
        return termination.spent_at(started, n_iter)
    if isinstance(termination, _GOALS):
        return float("nan")
    if isinstance(termination, TimeBasedTermination):
        return min(1.0, max(0.0, (time.time() - started) / float(termination.max_time)))
    if isinstance(termination, (TerminateIfAny, TerminateIfAll, DefaultTermination)):
        parts = [progress(part, started, n_iter) for part in termination.criteria]
        known = [part for part in parts if not math.isnan(part)]
        if not isinstance(termination, TerminateIfAll):
            return max(known, default=float("nan"))
        return min(known) if len(known) == len(parts) else float("nan")
    return min(1.0, float(termination.perc))


def seconds_left(termination: Any, started: float, n_iter: int = 1) -> float | None:
    """Seconds until a termination's time is over, for a run that began at ``started`` by time.time(); None: never."""
    if isinstance(termination, TimeBasedTermination):
        left = started + float(termination.max_time) - time.time()
        return left if left < _FOREVER else None
    if isinstance(termination, ColonyTermination):
        return termination.seconds_left(started, n_iter)
    if isinstance(termination, (TerminateIfAny, TerminateIfAll)):
        parts = [seconds_left(part, started, n_iter) for part in termination.criteria]
        known = [part for part in parts if part is not None]
        if isinstance(termination, TerminateIfAny):
            return min(known, default=None)
        return max(known) if known and len(known) == len(parts) else None
    return None


def colony_terminations(termination: Any) -> list[ColonyTermination]:
    """Return each `ColonyTermination` that a termination is made of."""
    if isinstance(termination, (TerminateIfAny, TerminateIfAll)):
        return [one for part in termination.criteria for one in colony_terminations(part)]
    return [termination] if isinstance(termination, ColonyTermination) else []


def as_new(termination: Any, keep: bool = False) -> Any:
    """Return what a new run can use: a copy that has seen no run for an object.

    With ``keep``, an object that no run has used is returned itself. Tuples and strings are pymoo's to read.
    """
    if not isinstance(termination, Termination):
        _check_budget(termination)
        return termination
    if keep and termination.perc == 0.0 and not termination.force_termination:
        return termination
    fresh = copy.deepcopy(termination)
    _start_again(fresh)
    return fresh


def _check_budget(termination: Any) -> None:
    """Check pymoo's short form, ("n_gen", 100): pymoo takes any number, and fails in the run with an AssertionError.

    A word alone is short for one that needs no number.
    """
    given = (termination,) if isinstance(termination, str) else termination
    if not (isinstance(given, (tuple, list)) and given):
        raise TypeError(
            "termination must be a pymoo Termination or its short form, such as ('n_gen', 200) or ('time', 10), "
            f"got {termination!r}"
        )
    name = given[0]
    if name not in _BUDGETS:
        close = difflib.get_close_matches(str(name), _BUDGETS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"termination must be one of {', '.join(map(repr, _BUDGETS))}, got {name!r}{hint}")
    if name in ("soo", "moo"):
        return
    if len(given) != 2:  # pymoo's run without a number would never end
        raise ValueError(
            f"termination {name!r} must come with one number, as in ({name!r}, 200), got {termination!r}"
        )
    if name in _COUNTS:
        count = checks.real(f"termination {name!r}", given[1], 1.0)  # pymoo's users write 1e5 too
        if not count.is_integer():
            raise ValueError(f"termination {name!r} must be a whole number, got {given[1]}")
    elif name == "time" and isinstance(given[1], str):
        if not re.fullmatch(r"\d+(:\d+){0,2}", given[1]):
            raise ValueError(f"termination 'time' must be seconds or 'HH:MM:SS', got {given[1]!r}")
    elif name == "time":
        checks.real("termination 'time'", given[1], 0.0, open_low=True)


def _start_again(part: Any) -> None:
    """Undo what a run has left in a pymoo termination and in the ones it is made of."""
    if isinstance(part, Termination):
        part.perc = 0.0
        part.force_termination = False
        if isinstance(part, DeltaToleranceTermination):
            part.data, part.counter = None, 0
        if isinstance(part, ColonyTermination):
            part.start_again()
        for value in vars(part).values():
            _start_again(value)
    elif isinstance(part, SlidingWindow):
        part.clear()
    elif isinstance(part, (list, tuple)):
        for value in part:
            _start_again(value)
