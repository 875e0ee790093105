"""Annealing schedule of a run: cycles, temperatures, and the time budget.

Each cycle of annealing is twice as long as the one before. A run of unknown length therefore has good tours at the end
of every cycle, and its latest cycle took half of the time so far. If the progress of the run is known, the cycle in
which the run would end takes all of the remaining time. The temperature depends only on the rounds done and the rounds
left in the cycle, so a run that continues under another budget uses all of that budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop

END = 0.97  # progress at which the last cycle ends, unless the device plans otherwise
# Earliest progress at which annealing ends to leave time for evolution.
EARLIEST_END = 0.6
CYCLES_IN_ONE = 3  # durations of a cycle: in less time the next cycle, twice as long, would not end


@dataclass(frozen=True)
class Plan:
    """Plan of one device for a generation of window search; a round searches all tours or windows once.

    Attributes
    ----------
    rounds : maximum rounds of a generation, >= 1.
    rounds_without_limit : rounds of a generation if the run has no time limit, >= 1.
    rounds_between_checks : rounds between two checks of the clock, at which the host waits for the device, >= 1.
    whole_rounds : True if a launched round continues after the deadline. A round that would exceed the deadline by
        more than half of its duration is then not launched.
    first_cycle : rounds of the first cycle of annealing, >= 1; each cycle is twice as long as the one before.
    cycles_in_one : a run that is shorter than this number of first cycles has a single cycle.
    later_in_one : a later cycle takes the rest of the run if that is shorter than this number of such cycles.
    kicks : kicks of a tour in a round, >= 1.
    end : progress of the run, in (0, 1], at which the last cycle ends; the rest runs at temperature 0.
    earliest_end : progress at which it may end to leave time to evolve the tours, in (0, ``end``].
    temperature : start temperature, in mean edges of the tour, of a cycle with ``kicks_for_temperature`` kicks per
        city; it grows with the square root of the kicks, within [``least_temperature``, ``most_temperature``].
    cool_part : share of a cycle, at its end, with temperature 0.
    merged_while_annealing, merged_at_zero : number of shortest tours to merge with the best tour after a generation
        that ends no cycle, at a temperature above 0 or at 0. With 0 tours to merge, the shortest tour replaces the
        best one if it is shorter.
    """

    rounds: int
    rounds_without_limit: int
    rounds_between_checks: int
    first_cycle: int
    cycles_in_one: int
    later_in_one: int
    kicks: int
    end: float
    temperature: float
    kicks_for_temperature: float
    least_temperature: float
    most_temperature: float
    earliest_end: float = EARLIEST_END
    cool_part: float = 0.0
    merged_while_annealing: int = 0
    merged_at_zero: int = 0
    whole_rounds: bool = False

    def first_temperature(self, kicks: float) -> float:
        """Return the start temperature, in mean edges of the tour, of a cycle with this many kicks per city."""
        wanted = self.temperature * math.sqrt(kicks / self.kicks_for_temperature)
        return min(self.most_temperature, max(self.least_temperature, wanted))


@dataclass(frozen=True)
class Temperature:
    """Temperatures of one round; lengths in whole units of the device."""

    start: float  # at the beginning of the round
    end: float  # at its end
    mean_edge: float  # of the best tour
    kicks_per_city: float  # of the current cycle


@dataclass
class TimedBlock:
    """Measured block of code."""

    times: int = 1  # repetitions of the task in the block, >= 1
    earlier: float = 0.0  # seconds of earlier parts of the task


class TimeBudget:
    """Time left in a run, and the latest duration of each task, in seconds.

    A run without a deadline has time for every task.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self._seconds: dict[str, float] = {}
        self._inner = 0.0  # seconds of finished blocks inside the current block
        #: duration of the whole run in seconds, estimated from its progress, > 0; None: unknown
        self.run_seconds: float | None = None

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline; None: unknown."""
        return None if self.stop.until is None else self.stop.until - CLOCK.monotonic()

    def expect(self, progress: float) -> None:
        """Store the progress of the run, in [0, 1], or NaN if it is unknown."""
        remaining = self.remaining
        self.run_seconds = None
        if remaining is not None and remaining > 0.0 and progress < 1.0:
            self.run_seconds = remaining / (1.0 - progress)

    @property
    def progress(self) -> float:
        """Progress of the run by the clock, at most 1; NaN if unknown."""
        remaining = self.remaining
        if remaining is None or self.run_seconds is None:
            return math.nan
        return 1.0 - max(0.0, remaining) / self.run_seconds

    @contextmanager
    def timed(self, task: str) -> Iterator[TimedBlock]:
        """Measure a task, without the time of measured blocks inside it."""
        began, outer, self._inner = CLOCK.monotonic(), self._inner, 0.0
        block = TimedBlock()
        yield block
        took = CLOCK.monotonic() - began
        self._seconds[task] = (block.earlier + took - self._inner) / block.times
        self._inner = outer + took

    def seconds(self, task: str) -> float:
        """Return the latest duration of a task in seconds; 0 if it was never measured."""
        return self._seconds.get(task, 0.0)

    def n_in_time(self, task: str, most: int = 1, then: str | None = None, overrun: float = 0.0) -> int:
        """Return the number of repetitions of ``task``, up to ``most``, that end in time with one ``then`` after them.

        The last one may overrun by the share ``overrun`` of its duration. A task that was never measured is repeated
        once if any time remains.
        """
        if self.remaining is None:
            return most
        remaining = self.remaining - self.seconds(then or "")
        if task not in self._seconds:
            return int(remaining > 0.0)
        return max(0, min(most, int(remaining / max(self._seconds[task], 1e-9) + overrun)))


@dataclass
class Schedule:
    """Position of a run in its cycles of annealing; the unit of time is a round."""

    first: int  # rounds of the first cycle, >= 1
    # see ``Plan``
    cycles_in_one: int = CYCLES_IN_ONE
    later_in_one: int = CYCLES_IN_ONE
    end: float = END
    cycle: int = 0
    improved: int = 0  # cycle that found the best tour
    done: int = 0  # rounds of this cycle so far
    last: bool = False  # this cycle takes the rest of the run
    finished: bool = False  # the last cycle has ended
    # temperature after the latest round, as a share of the first temperature of the cycle, in which it never rises
    share: float = 1.0
    rounds: int = 0  # under the current budget
    started: float = 0.0  # progress at the beginning of the first of these rounds
    reported: float = math.nan  # latest reported progress of the run, in [0, 1]; NaN: unknown
    progress: float = math.nan  # the same, advanced by the rounds since the report
    step: float = 0.0  # progress per round

    def follow(self, plan: Plan) -> None:
        """Use the plan of a device from now on; allowed at any time in a run."""
        self.first, self.end = plan.first_cycle, plan.end
        self.cycles_in_one, self.later_in_one = plan.cycles_in_one, plan.later_in_one

    def expect(self, progress: float, annealed: int) -> None:
        """Store the progress; ``annealed`` rounds of equal length have passed since the last report, 0: unknown.

        If progress falls, the budget has changed, and the estimates begin again.
        """
        if progress < self.reported or math.isnan(progress) > math.isnan(self.reported):
            self.rounds, self.step = 0, 0.0
            if self.finished:  # the run anneals again
                self.begin_next()
        elif annealed > 0 and progress > self.reported:  # expect the same step from the next rounds
            self.step = (progress - self.reported) / annealed
        self.reported = self.progress = progress

    @property
    def left(self) -> float:
        """Estimated rounds until the last cycle should end; NaN if unknown."""
        if self.rounds == 0 or not self.started < self.progress <= 1.0:
            return math.nan
        return max(0.0, self.rounds * (self.end - self.progress) / (self.progress - self.started))

    @property
    def planned(self) -> int:
        """Rounds of this cycle, unless it is the last one."""
        return self.first << min(self.cycle, 40)

    @property
    def length(self) -> float:
        """Rounds of this cycle; an estimate if it is the last one."""
        if not self.last:
            return float(self.planned)
        left = self.left
        return max(1.0, float(self.planned) if math.isnan(left) else self.done + left)

    def next(self) -> tuple[float, float]:
        """Count a round; return its first and last temperature as shares of the cycle's first temperature."""
        if self.rounds == 0:
            self.started = 0.0 if math.isnan(self.progress) else self.progress
        self._decide_last()
        left = self.left
        if self.last and math.isnan(left):  # new budget: constant temperature until the first estimate
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
        """True if a whole cycle has found no shorter tour, or the last cycle has ended."""
        return self.finished or self.cycle >= self.improved + 2

    @property
    def at_end(self) -> bool:
        """True if the latest counted round ends a cycle."""
        if not self.last:
            return self.done >= self.planned
        return not self.finished and self.progress >= self.end

    def begin_next(self) -> None:
        """Begin the next cycle; after the last one, mark the schedule as finished."""
        if self.last and not self.finished:
            self.finished = True
            return
        self.cycle, self.done, self.share, self.last, self.finished = self.cycle + 1, 0, 1.0, False, False

    def _decide_last(self) -> None:
        """Make this cycle the last one if the next one, twice as long, would not end in time.

        Only a new cycle can become the last one, except the first under a budget, which starts without an estimate. The
        limit of the first cycle of a run is ``cycles_in_one``.
        """
        if self.last:
            self.last = not math.isnan(self.progress)  # if the end is unknown, more cycles follow
            return
        left = (
            self.rounds * (1.0 - self.progress) / (self.progress - self.started)
            if self.left >= 0.0
            else math.inf
        )
        most = self.cycles_in_one if self.cycle == 0 else self.later_in_one
        self.last = (self.done == 0 or self.rounds <= self.done) and self.done + left < most * self.planned
