"""A length that no tour falls below: proven when asked for, or within a run that is not to be late for it."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from pymoo_gpuaco.algorithms.ask_tell import AskAndTell
from pymoo_gpuaco.algorithms.display import ColonyOutput
from pymoo_gpuaco.algorithms.termination import MOST_CITIES_TO_PROVE, colony_terminations, seconds_left
from pymoo_gpuaco.candidates.bound import A_MOMENT, compile_proof, prove_lower_bound, seconds_to_prove
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.stop import Stop

# No lower bound has been asked for yet.
_UNKNOWN = "unknown"
# A proof starts only if the time left is this many times the estimated time of the proof.
_LEFT_TO_PROVE = 5.0


class ProvesBound(AskAndTell):
    """An algorithm that can prove how short a tour may be."""

    def _forget_run(self) -> None:
        super()._forget_run()
        self._lower_bound: Any = _UNKNOWN

    @property
    @abstractmethod
    def instance(self) -> ListedInstance:
        """The problem as arrays."""

    @property
    def lower_bound(self) -> float | None:
        """A length that no tour of the problem's distances falls below, computed when first asked.

        Up to 12 cities it is the optimum (by dynamic programming), above the bound of Held and Karp (1970). It holds
        for tours that break no constraint. None where it would take long to prove (from some 100,000 cities on; about a
        second at 20,000), and where no tour of up to 12 cities keeps to the constraints. It holds for the distances, so
        for objectives that are the tour's length.
        """
        if self._lower_bound == _UNKNOWN:  # a pickle's is another object
            self._lower_bound = self._prove(Stop())
        return self._lower_bound

    def bound_in_time(self, longest: float = float("inf")) -> float | None:
        """``lower_bound`` if it is known, or can be proven in a run without making that late.

        None where that takes longer than ``longest`` seconds, or might take longer than the termination leaves.
        """
        if self._lower_bound == _UNKNOWN:
            needed, left = seconds_to_prove(self.instance), self._seconds_left()
            if needed > longest or (left is not None and max(0.0, left) < _LEFT_TO_PROVE * needed):
                return None
            stop = Stop(None if left is None else time.monotonic() + left)
            bound = self._prove(stop)
            if bound is None and stop.ended():
                return None  # given up
            self._lower_bound = bound
        return self.lower_bound

    @property
    def _started(self) -> float:
        """Begin of the run by time.time(), now before it."""
        return time.time() if self.start_time is None else float(self.start_time)

    def _seconds_left(self) -> float | None:
        return seconds_left(self.termination, self._started, self.n_iter or 1)

    def _prove(self, stop: Stop) -> float | None:
        """Return the bound. An interrupt is heard at once, also while something is compiled, and ends the proof."""
        instance = self.instance
        try:
            return interruptible(lambda: prove_lower_bound(instance, stop))
        except BaseException:
            stop.interrupt()
            raise

    def _proof_compiler(self) -> Callable[[ListedInstance], None]:
        """Return a function that compiles a proof if this run may come to one: compiling in the run would be late."""
        verbose, output = getattr(self.display, "verbose", False), getattr(self.display, "output", None)
        known = getattr(self.problem, "best_known", None)
        shown = verbose and isinstance(output, ColonyOutput) and not known
        ends_run = any(part.proven for part in colony_terminations(self.termination))
        left = self._seconds_left()

        def compile_if_wanted(instance: ListedInstance) -> None:
            needed = seconds_to_prove(instance) if shown or ends_run else math.inf
            wanted = (shown and needed <= A_MOMENT) or (ends_run and instance.n <= MOST_CITIES_TO_PROVE)
            if wanted and (left is None or left >= _LEFT_TO_PROVE * needed):
                compile_proof(instance)

        return compile_if_wanted
