"""Temperature over a run: cycles of annealing, each twice as long as the one before.

Nobody knows how long a run lasts, so the tour is good at the end of every cycle, and half of the time spent so far went
into the last one. Where the run's progress is known, the cycle in which it would end takes all that is left of it. The
temperature follows from what a cycle has spent and what is left of it, in rounds of the search, and from nothing else:
a run that goes on with another budget goes on with what that one leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pymoo_gpuaco.memetic.plan import Plan

END = 0.97  # progress at which the last cycle is over where a device says nothing else
CYCLES_IN_ONE = 3  # cycles: the next cycle, twice as long, would not come to its end


@dataclass
class Schedule:
    """Where a run is in its cycles; rounds are its unit of time."""

    first: int  # rounds of the first cycle, >= 1
    # a run that is known to be shorter than so many first cycles is one cycle
    cycles_in_one: int = CYCLES_IN_ONE
    later_in_one: int = CYCLES_IN_ONE  # the same for what is left of it at the beginning of a later cycle
    end: float = END  # progress at which the last cycle is over; what is left of the run goes without heat
    cycle: int = 0
    improved: int = 0  # cycle in which the best tour was found
    done: int = 0  # rounds of this cycle
    last: bool = False  # this cycle takes all that is left of the run
    finished: bool = False  # and has come to its end
    share: float = 1.0  # of the first temperature, at the end of this cycle's last round: it never rises
    rounds: int = 0  # since ``started``
    started: float = 0.0  # progress at which the first of them began
    # progress of the run as it was reported last, in [0, 1]; NaN where nobody knows
    reported: float = math.nan
    progress: float = math.nan  # the same, and what the rounds since have brought
    step: float = 0.0  # how far a round brings the run

    def follow(self, plan: Plan) -> None:
        """Have cycles as a device plans them, wherever the run is."""
        self.first, self.end = plan.first_cycle, plan.end
        self.cycles_in_one, self.later_in_one = plan.cycles_in_one, plan.later_in_one

    def expect(self, progress: float, annealed: int) -> None:
        """Note how far the run is, after so many rounds of which each took its share of the progress; 0: none did.

        Progress that falls is that of another budget: what is left is counted anew.
        """
        if progress < self.reported or math.isnan(progress) > math.isnan(self.reported):
            self.rebase()
        # and how far each round of the next generation will bring it
        elif annealed > 0 and progress > self.reported:
            self.step = (progress - self.reported) / annealed
        self.reported = self.progress = progress

    def catch_up(self, progress: float) -> None:
        """Note that the run is farther than its rounds made believe: some take longer than those before."""
        if progress > self.progress:
            self.progress = progress

    def rebase(self) -> None:
        """Go on under another budget, of which nothing is known yet; a run that had come to its end anneals again."""
        self.rounds, self.step = 0, 0.0
        if self.finished:
            self.begin_next()

    @property
    def left(self) -> float:
        """Rounds until the last cycle is to be over, by the pace of those so far; NaN where that is not known."""
        if self.rounds == 0 or not self.started < self.progress <= 1.0:
            return math.nan
        return max(0.0, self.rounds * (self.end - self.progress) / (self.progress - self.started))

    @property
    def planned(self) -> int:
        """Rounds of this cycle, unless the run ends in it."""
        return self.first << min(self.cycle, 40)

    @property
    def length(self) -> float:
        """Rounds of this cycle, estimated if the run ends in it."""
        if not self.last:
            return float(self.planned)
        left = self.left
        return max(1.0, float(self.planned) if math.isnan(left) else self.done + left)

    def next(self) -> tuple[float, float]:
        """Count a round; return its first and last temperature as shares of the heat."""
        if self.rounds == 0:
            self.started = 0.0 if math.isnan(self.progress) else self.progress
        self._decide_whether_last()
        left = self.left
        if self.last and math.isnan(left):  # under a new budget: as it was, until that is known
            first = last = self.share
        else:
            length = self.done + left if self.last else float(self.planned)
            first = 1.0 - self.done / length if length > self.done else 0.0
            last = max(0.0, first - 1.0 / length) if first > 0.0 else 0.0
        first = min(first, self.share)
        self.share = min(last, first)
        self.done += 1
        self.rounds += 1
        self.progress += self.step
        return first, self.share

    @property
    def may_stagnate(self) -> bool:
        """Whether a whole cycle has brought no shorter tour, or the last one has ended."""
        return self.finished or self.cycle >= self.improved + 2

    @property
    def at_end(self) -> bool:
        """Whether the round just counted ends a cycle."""
        if not self.last:
            return self.done >= self.planned
        return not self.finished and self.progress >= self.end

    def begin_next(self) -> None:
        """Go on to the next cycle, after the last one without heat."""
        if self.last and not self.finished:
            self.finished = True
            return
        self.cycle, self.done, self.share, self.last, self.finished = self.cycle + 1, 0, 1.0, False, False

    def _decide_whether_last(self) -> None:
        """Note whether this cycle is the last: the next, twice as long, would not come to its end.

        A cycle becomes the last at its beginning. The first one under a budget does so at any time, as nothing is known
        at its beginning; the first of all does so in longer runs too.
        """
        if self.last:
            # where nobody knows any more when it ends, cycles go on
            self.last = not math.isnan(self.progress)
            return
        left = (
            self.rounds * (1.0 - self.progress) / (self.progress - self.started)
            if self.left >= 0.0
            else math.inf
        )
        most = self.cycles_in_one if self.cycle == 0 else self.later_in_one
        self.last = (self.done == 0 or self.rounds <= self.done) and self.done + left < most * self.planned
