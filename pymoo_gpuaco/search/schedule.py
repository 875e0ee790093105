"""Temperature over a run: cycles of annealing, each twice as long as the one before.

Nobody knows how long a run lasts, so the tour is good at the end of every cycle, and half of the time spent so far went
into the last one. Where the run's progress is known, the cycle in which it would end takes all that is left of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# The last cycle is over at this progress; what is left of the run goes without heat.
END = 0.97


@dataclass
class Cooling:
    """Where a run is in its cycles; generations are its unit of time."""

    first: int  # generations of the first cycle, >= 1
    cycle: int = 0
    done: int = 0  # generations of this cycle
    generations: int = 0  # of the run
    started: float = 0.0  # progress at which the first generation began
    begun: float = math.nan  # progress at which the run's last cycle began, NaN before it has
    progress: float = math.nan  # of the run, in [0, 1]
    alone: int = 3  # a run that is known to be shorter than so many first cycles is one cycle

    @property
    def planned(self) -> int:
        """Generations of this cycle, unless the run ends in it."""
        return self.first << min(self.cycle, 40)

    @property
    def length(self) -> float:
        """Generations of this cycle, estimated if the run ends in it."""
        if math.isnan(self.begun) or not self.progress > self.started:
            return float(self.planned)
        return max(1.0, (END - self.begun) * self.generations / (self.progress - self.started))

    def next(self) -> tuple[float, float]:
        """Count a generation of trials; return its first and last temperature as shares of the heat."""
        if self.generations == 0 and self.progress > 0.0:
            self.started = self.progress
        if self._is_last():
            self.begun = self.progress
        if math.isnan(self.begun):
            hot, step = 1.0 - self.done / self.planned, 1.0 / self.planned
        else:
            hot = max(0.0, (END - self.progress) / (END - self.begun)) if self.begun < END else 0.0
            step = (1.0 - hot) / self.done if self.done else 0.0
        self.done += 1
        self.generations += 1
        return hot, max(0.0, hot - step)

    @property
    def at_end(self) -> bool:
        """Whether the generation just counted ends a cycle."""
        if math.isnan(self.begun):
            return self.done >= self.planned
        return not self.progress < END

    def begin_next(self) -> None:
        """Go on to the next cycle."""
        self.cycle, self.done = self.cycle + 1, 0

    def _is_last(self) -> bool:
        """Whether a cycle that begins now is the last: the next, twice as long, would not come to its end.

        The first cycle becomes the last at any time, for nothing is known at its beginning, and in longer runs too.
        """
        if not math.isnan(self.begun) or not self.started < self.progress <= 1.0 or self.generations == 0:
            return False
        left = self.generations * (1.0 - self.progress) / (self.progress - self.started)
        most = self.alone if self.cycle == 0 else 3
        return (self.done == 0 or self.cycle == 0) and self.done + left < most * self.planned
