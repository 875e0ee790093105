"""Temperature over a run: cycles of annealing, each twice as long as the one before.

Nobody knows how long a run lasts, so the tour is good at the end of every cycle, and half of the time spent so far went
into the last one. Where the run's progress is known, the cycle in which it would end takes all that is left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Cooling:
    """Where a run is in its cycles; generations are its unit of time."""

    first: int  # generations of the first cycle, >= 1
    cycle: int = 0
    done: int = 0  # generations of this cycle
    planned: int = 0  # generations that it takes; 0 before it starts
    generations: int = 0  # of the run
    progress: float = math.nan  # of the run, in [0, 1]

    def next(self) -> tuple[float, float]:
        """Count a generation of trials; return its first and last temperature as shares of the heat."""
        if self.planned == 0:
            self.planned = self.first << min(self.cycle, 40)
            left = self._left()
            if left < 3 * self.planned:  # the next cycle, twice as long, would not come to its end
                self.planned = max(1, int(left))
        elif self.planned != self.first << min(self.cycle, 40) and math.isfinite(self._left()):
            # the last cycle: what is left of the run is known better the further it is
            self.planned = max(self.done + 1, self.done + int(self._left()))
        hot = 1.0 - self.done / self.planned
        self.done += 1
        self.generations += 1
        cold = 1.0 - self.done / self.planned
        return hot, cold

    @property
    def at_end(self) -> bool:
        """Whether the generation just counted ends a cycle."""
        return 0 < self.planned <= self.done

    def begin_next(self) -> None:
        """Go on to the next cycle."""
        self.cycle, self.done, self.planned = self.cycle + 1, 0, 0

    def _left(self) -> float:
        """Generations left of the run, infinite where nobody knows."""
        if not 0.0 < self.progress <= 1.0 or self.generations == 0:
            return math.inf
        return self.generations * (1.0 - self.progress) / self.progress
