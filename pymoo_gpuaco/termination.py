"""When a colony stops on its own, and why it did."""

from __future__ import annotations

import copy
import difflib
from typing import Any

from pymoo.core.termination import Termination
from pymoo.termination.delta import DeltaToleranceTermination
from pymoo.util.sliding_window import SlidingWindow

from pymoo_gpuaco.colony import checks

# The names of pymoo's short forms; those of counts take whole numbers.
_COUNTS = ("n_gen", "n_iter", "n_eval", "n_evals")
_BUDGETS = (*_COUNTS, "time", "fmin", "soo", "moo")


class ColonyTermination(Termination):
    """Stop at a target, after stagnation, or when a generous budget is spent; ``reason`` says which.

    It is what every algorithm here uses when no termination is given. pymoo's own default would end a run at
    generation 31 whatever happens: it normalises the permutation as if it were a vector of small integers.

    Parameters
    ----------
    target : length at or below which the run ends; None takes the problem's ``best_known`` where it has one.
    stagnation : generations in a row without a shorter tour that end the run, >= 1.
    n_max_gen : most generations, >= 1.
    """

    def __init__(self, target: float | None = None, stagnation: int = 1000, n_max_gen: int = 10_000) -> None:
        super().__init__()
        self.target = None if target is None else checks.real("target", target)
        self.stagnation = checks.integer("stagnation", stagnation, 1)
        self.n_max_gen = checks.integer("n_max_gen", n_max_gen, 1)
        self.reason: str | None = None
        self.start_again()

    def start_again(self) -> None:
        """Forget the run that this object has watched."""
        self.reason = None
        self._best = float("inf")
        self._best_generation = 0

    def _update(self, algorithm: Any) -> float:
        best = float(algorithm.opt.get("F").min())
        generation = int(algorithm.n_iter)
        if best < self._best:
            self._best, self._best_generation = best, generation
        target = self.target if self.target is not None else getattr(algorithm.problem, "best_known", None)
        idle = generation - self._best_generation
        if target is not None and best <= target:
            self.reason = f"target: a tour of length {best:.10g}, at or below {target:.10g}"
        elif idle >= self.stagnation:
            self.reason = f"stagnation: no shorter tour in {idle} generations"
        elif generation >= self.n_max_gen:
            self.reason = f"budget: {generation} generations"
        if self.reason is not None:
            return 1.0
        return max(idle / self.stagnation, generation / self.n_max_gen)


def as_new(termination: Any, keep: bool = False) -> Any:
    """Return what a new run can use: a ``ColonyTermination`` for None, a copy that has seen no run for an object.

    With ``keep``, an object that no run has used is returned itself. Tuples and strings are pymoo's to read.
    """
    if termination is None:
        return ColonyTermination()
    if not isinstance(termination, Termination):
        _check_budget(termination)
        return termination
    if keep and termination.perc == 0.0 and not termination.force_termination:
        return termination
    fresh = copy.deepcopy(termination)
    _start_again(fresh)
    return fresh


def _check_budget(termination: Any) -> None:
    """Check pymoo's short form, ("n_gen", 100): pymoo takes any number, and fails in the run with an AssertionError."""
    if not (isinstance(termination, (tuple, list)) and termination):
        return
    name = termination[0]
    if name not in _BUDGETS:
        close = difflib.get_close_matches(str(name), _BUDGETS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"termination must be one of {', '.join(map(repr, _BUDGETS))}, got {name!r}{hint}")
    if name in _COUNTS and len(termination) == 2:
        checks.real(f"termination {name!r}", termination[1], 1.0)  # pymoo's users write 1e5 too
    elif name == "time" and len(termination) == 2 and not isinstance(termination[1], str):
        checks.real("termination 'time'", termination[1], 0.0, open_low=True)


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
