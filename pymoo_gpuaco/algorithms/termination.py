"""Default terminations; remaining time and used budget of any termination."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny, Termination
from pymoo.termination import get_termination
from pymoo.termination.default import DefaultTermination
from pymoo.termination.delta import DeltaToleranceTermination
from pymoo.termination.fmin import MinimumFunctionValueTermination
from pymoo.termination.max_time import TimeBasedTermination
from pymoo.termination.robust import RobustTermination

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.bound import is_proven, seconds_to_prove
from pymoo_gpuaco.candidates.exact import MOST_CITIES
from pymoo_gpuaco.pareto.instance import MOST_FOR_ALL_TOURS
from pymoo_gpuaco.runtime.clock import CLOCK

MOST_CITIES_TO_PROVE = 12_000  # the proof of the lower bound takes about a second in the plane
_MAX_SECONDS = 1e8  # s; a longer budget counts as none, because it exceeds the longest wait of a clock
_VIOLATION_PENALTY = 1e30  # penalty per violation when stagnation is detected, more than any length
# A proof starts when the run has lasted this multiple of the estimated time of the proof.
_PROOF_AFTER = 10.0

_Limit: TypeAlias = tuple[float, float | None, str]  # used, maximum, reason to end

NO_TIME = (
    "pymoo_gpuaco: set-up took %.2g s and reached the time limit: no time to search, the run ends with its first tour; "
    "give more seconds"
)
# Names of pymoo's short forms; counts take whole numbers.
_COUNTS = ("n_gen", "n_iter", "n_eval", "n_evals")
_BUDGETS = (*_COUNTS, "time", "fmin", "soo", "moo")
# Terminations whose ``perc`` is no share of a budget: a first tour may be at 99 % of a target.
_GOALS = (
    NoTermination,
    MinimumFunctionValueTermination,
    DeltaToleranceTermination,
    RobustTermination,
    TerminateIfAll,
)


class ColonyTermination(checks.KnownKeywords, Termination):
    """Termination at a target, after stagnation, or at the end of a budget; ``reason`` says which.

    It is the default of every algorithm: the run ends after the generation in which 60 s have elapsed. If the length of
    a run must not depend on the speed of the machine, use ("n_gen", ..) or ``seconds=None``. pymoo's default would end
    a run at generation 31, because it normalises the permutation as a vector of small integers.

    Parameters
    ----------
    target : length at or below which the run ends; None: ``best_known`` of the problem, if any.
    stagnation : generations in a row without a shorter tour that end the run, >= 1, or None.
    n_max_gen : maximum number of generations, >= 1, or None.
    seconds : time limit, > 0, or None. It includes set-up, but neither compilation nor the time in a pickle.
    stagnation_tours : tours in a row without a shorter one that end the run, >= 1, or None; for algorithms with many
        tours in a generation, such as GPU2OptIHC on few cities.
    proven : True: a tour that is proven to be optimal ends the run. Its length equals ``lower_bound`` of the algorithm,
        up to rounding errors if distances are not whole numbers (1e-9 of the length, up to 12 cities 1e-13). Up to 12
        cities the bound is computed at once. Up to 12,000
        cities it is computed when the run has lasted ten times as long as the proof will take (1 s for 1000 cities in
        the plane, 5 s for a matrix), if the remaining time allows it. A proof that no tour of up to 12 cities satisfies
        all constraints also ends the run. Nothing is proven if the objective is not the tour length.
    """

    single_objective = True  # False: of a front

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
        #: used share of the budget (``n_max_gen``, ``seconds``), in [0, 1], NaN without a budget
        self.spent = float("nan") if self.n_max_gen is None and self.seconds is None else 0.0
        self._best = float("inf")
        self._best_generation = self._best_tours = 0

    def _update(self, algorithm: Any) -> float:
        best, feasible = _best_of(algorithm.opt)
        generation, tours = int(algorithm.n_iter), int(algorithm.evaluator.n_eval)
        if best < self._best:
            self._best, self._best_generation, self._best_tours = best, generation, tours
        seconds = CLOCK.wall() - algorithm.start_time
        target = self.target_for(algorithm.problem)
        idle, idle_tours = generation - self._best_generation, tours - self._best_tours
        limits = self._budgets(algorithm, generation, seconds)
        if getattr(algorithm, "may_stagnate", True):
            limits.append((idle, self.stagnation, f"stagnation: no shorter tour in {idle} generations"))
            limits.append(
                (idle_tours, self.stagnation_tours, f"stagnation: no shorter tour among {idle_tours}")
            )
        if feasible and target is not None and best <= target:
            self.reason = f"reached target {target:.10g} with length {best:.10g}"
            return 1.0
        if self.proven and self._is_proven(algorithm, seconds, feasible):
            known = f"no tour is shorter than {best:.10g}" if feasible else "every tour violates a constraint"
            self.reason = f"proof: {known}"
            return 1.0
        return self._ended_by(limits)

    def target_for(self, problem: Any) -> float | None:
        """Return the length that ends a run on a problem."""
        return getattr(problem, "best_known", None) if self.target is None else self.target

    def _budgets(self, algorithm: Any, generation: int, seconds: float) -> list[_Limit]:
        """Return the limits of generations and seconds; set ``spent``."""
        if not math.isnan(self.spent):
            self.spent = min(
                1.0, max(_used_share(generation, self.n_max_gen), _used_share(seconds, self.seconds))
            )
        used = f"{round(seconds, 1):g}" if seconds >= 1.0 else f"{seconds:.2g}"
        set_up = getattr(algorithm, "_setup_seconds", 0.0)
        nothing = ", no time to search after set-up" if _used_share(set_up, self.seconds) >= 1.0 else ""
        return [
            (generation, self.n_max_gen, f"budget: {generation} generations"),
            (seconds, self.seconds, f"budget: {used} s{nothing}"),
        ]

    def _ended_by(self, limits: list[_Limit]) -> float:
        """Return the largest used share of a limit, in [0, 1]; set ``reason`` to the first limit that is reached."""
        shares = [_used_share(used, most) for used, most, _ in limits]
        self.reason = next((limits[i][2] for i, share in enumerate(shares) if share >= 1.0), None)
        return min(1.0, max(shares))

    def _is_proven(self, algorithm: Any, seconds: float, feasible: bool) -> bool:
        """Return True if the best tour is as short as the lower bound, or if every tour violates a constraint."""
        if hasattr(algorithm, "is_proven"):  # no tours
            return feasible and bool(algorithm.is_proven())
        if getattr(algorithm, "_custom_objective", True):  # only a `TourAlgorithm` has the attribute
            return False
        instance = algorithm.instance
        if not feasible:  # up to 12 cities, None proves that no tour is feasible
            return instance.n <= MOST_CITIES and algorithm.lower_bound is None
        if instance.n > MOST_CITIES_TO_PROVE or seconds < _PROOF_AFTER * seconds_to_prove(instance):
            return False
        bound = algorithm.bound_in_time()
        best = algorithm.opt[int(algorithm.opt.get("F").argmin())].X
        return bound is not None and is_proven(instance, np.asarray(best, np.int64), bound)

    def spent_at(self, started: float) -> float:
        """Return the currently used share of the budget, in [0, 1], NaN without a budget."""
        if self.seconds is None:
            return self.spent
        return min(1.0, max(self.spent, _used_share(CLOCK.wall() - started, self.seconds)))

    def seconds_left(self, started: float) -> float | None:
        """Return the remaining seconds, or None without a time limit."""
        return None if self.seconds is None else started + self.seconds - CLOCK.wall()


class FrontTermination(ColonyTermination):
    """Termination after stagnation of the front or at the end of a budget; ``reason`` says which.

    The default termination of GPU2PPLS: a run ends within the first generation that passes a minute. Up to 9 cities it
    ends as soon as every tour has been evaluated.

    Parameters
    ----------
    stagnation : generations in a row without a new member of the front that end the run, >= 1, or None.
    n_max_gen : maximum number of generations, >= 1, or None.
    seconds : time limit, > 0, or None. It includes the set-up, but not compilation.
    """

    single_objective = False

    def __init__(
        self, stagnation: int | None = 100, n_max_gen: int | None = None, seconds: float | None = 60.0
    ) -> None:
        super().__init__(None, stagnation, n_max_gen, seconds, None)
        self._added = -1

    def _update(self, algorithm: Any) -> float:
        generation, added = int(algorithm.n_iter), int(algorithm.engine.archive.added)
        if added != self._added:
            self._added, self._best_generation = added, generation
        if algorithm.engine.instance.n <= MOST_FOR_ALL_TOURS and algorithm.engine.n_sums:
            self.reason = "proof: every tour has been explored"
            return 1.0
        idle = generation - self._best_generation
        words = f"stagnation: no new member of the front in {idle} generations"
        budgets = self._budgets(algorithm, generation, CLOCK.wall() - algorithm.start_time)
        return self._ended_by([(idle, self.stagnation, words), *budgets])


def _best_of(opt: Any) -> tuple[float, bool]:
    """Return the length of the best tour and True, or a penalised length and False if no tour is feasible."""
    broken = float(opt.get("CV").min())
    best = float(opt.get("F").min())
    return (best, True) if broken <= 0.0 else (_VIOLATION_PENALTY * broken + best, False)


def _used_share(used: float, most: float | None) -> float:
    return 0.0 if most is None else used / most


def _criteria(termination: Any) -> list[Any]:
    """Return the terminations of which any ends a run."""
    if isinstance(termination, (TerminateIfAny, DefaultTermination)):
        return [one for part in termination.criteria for one in _criteria(part)]
    return [termination]


def progress(termination: Any, started: float | None) -> float:
    """Return the progress in [0, 1] of a run that began at ``started`` by CLOCK.wall(); None: it begins now.

    It is NaN if the termination has no budget: a target or a tolerance does not determine the end of a run.
    """
    started = CLOCK.wall() if started is None else started
    shares = [_share_of_budget(part, started) for part in _criteria(termination)]
    return max((share for share in shares if not math.isnan(share)), default=float("nan"))


def _share_of_budget(termination: Any, started: float) -> float:
    if isinstance(termination, ColonyTermination):
        return termination.spent_at(started)
    if isinstance(termination, _GOALS):
        return float("nan")
    if isinstance(termination, TimeBasedTermination):
        return min(1.0, max(0.0, (CLOCK.wall() - started) / float(termination.max_time)))
    return min(1.0, float(termination.perc))


def seconds_left(termination: Any, started: float | None) -> float | None:
    """Return the remaining seconds of a run, see `progress`; None without a time limit."""
    started = CLOCK.wall() if started is None else started
    left = [_MAX_SECONDS]
    for part in _criteria(termination):
        if isinstance(part, TimeBasedTermination):
            left.append(started + float(part.max_time) - CLOCK.wall())
        elif isinstance(part, ColonyTermination) and (own := part.seconds_left(started)) is not None:
            left.append(own)
    return min(left) if min(left) < _MAX_SECONDS else None


def colony_terminations(termination: Any) -> list[ColonyTermination]:
    """Return each `ColonyTermination` of which any ends a run."""
    return [part for part in _criteria(termination) if isinstance(part, ColonyTermination)]


def termination_of(given: Any, default: Callable[[], Termination]) -> Termination:
    """Return a termination, that of a short form such as ("n_gen", 20), or the default for None."""
    if isinstance(given, Termination):
        return given
    check_termination(given)
    return default() if given is None else get_termination(*([given] if isinstance(given, str) else given))


def check_termination(termination: Any) -> None:
    """Raise TypeError or ValueError for an invalid or used ``termination``.

    pymoo accepts any number in a short form such as ("n_gen", 100), and raises AssertionError during the run. "soo" and
    "moo" need no number.
    """
    if termination is None:
        return
    if isinstance(termination, Termination):
        if termination.perc > 0.0 or termination.force_termination:
            raise ValueError(
                f"termination must be new, got a used {type(termination).__name__}: create another one"
            )
        return
    given = (termination,) if isinstance(termination, str) else termination
    if not (isinstance(given, (tuple, list)) and given):
        raise TypeError(
            "termination must be a pymoo Termination or its short form, such as ('n_gen', 200) or ('time', 10), "
            f"got {termination!r}"
        )
    name = given[0]
    if name not in _BUDGETS:
        hint = checks.did_you_mean(str(name), {word: repr(word) for word in _BUDGETS})
        raise ValueError(f"termination must be one of {', '.join(map(repr, _BUDGETS))}, got {name!r}{hint}")
    if name in ("soo", "moo"):
        return
    if len(given) != 2:  # without a number, a run by pymoo would never end
        raise ValueError(
            f"termination {name!r} must come with one number, as in ({name!r}, 200), got {termination!r}"
        )
    if name in _COUNTS:
        count = checks.real(f"termination {name!r}", given[1], 1.0)  # a float, because users write 1e5
        if not count.is_integer():
            raise ValueError(f"termination {name!r} must be a whole number, got {given[1]}")
    elif name == "time" and isinstance(given[1], str):
        if not re.fullmatch(r"\d+(:\d+){0,2}", given[1]):
            raise ValueError(f"termination 'time' must be seconds or 'HH:MM:SS', got {given[1]!r}")
    elif name == "time":
        checks.real("termination 'time'", given[1], 0.0, open_low=True)
    elif name == "fmin":
        checks.real("termination 'fmin'", given[1])
