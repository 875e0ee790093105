"""How long kinds of work take, and for how many there is time: by a clock that stands unless it is put forward."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from pymoo_gpuaco.memetic import schedule as module
from pymoo_gpuaco.memetic.schedule import TimeBudget
from pymoo_gpuaco.runtime.stop import Stop


class Clock:
    def __init__(self) -> None:
        self.now, self.stop = 100.0, Stop()
        self.budget = TimeBudget(self.stop)

    def spend(self, what: str, seconds: float, times: int = 1) -> None:
        with self.budget.timed(what) as block:
            self.now += seconds
            block.times = times


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


def test_the_last_time_counts_for_each_of_what_was_done(clock):
    assert clock.budget.seconds("round") == 0.0
    clock.spend("round", 9.0)
    clock.spend("round", 6.0, times=4)
    clock.spend("merge", 2.0)
    assert clock.budget.seconds("round") == 1.5
    assert clock.budget.seconds("merge") == 2.0


def test_a_block_does_not_count_those_within_it(clock):
    with clock.budget.timed("outer") as block:
        block.times = 2
        clock.now += 1.0
        with clock.budget.timed("inner"):
            clock.now += 10.0
            clock.spend("innermost", 100.0)
        clock.spend("inner", 20.0)
        clock.now += 4.0
    assert clock.budget.seconds("outer") == 2.5  # half of 1 + 4
    assert clock.budget.seconds("inner") == 20.0
    with clock.budget.timed("outer"):
        with clock.budget.timed("inner"):
            clock.now += 10.0
            clock.spend("innermost", 100.0)
        clock.now += 4.0
    assert clock.budget.seconds("inner") == 10.0
    assert clock.budget.seconds("outer") == 4.0


def test_there_is_time_for_what_ends_before_the_run(clock):
    clock.spend("round", 0.25)
    clock.spend("merge", 0.5)
    assert clock.budget.n_in_time("round", 9) == 9  # no end is set
    clock.stop.until = clock.now + 1.0
    assert clock.budget.n_in_time("round") == 1
    assert clock.budget.n_in_time("round", 9) == 4
    assert clock.budget.n_in_time("round", 9, then="merge") == 2
    assert clock.budget.n_in_time("round", 9, then="an unknown task") == 4
    clock.now += 0.125  # half of a round less
    assert clock.budget.n_in_time("round", 9) == 3
    assert clock.budget.n_in_time("round", 9, overrun=0.5) == 4
    clock.now += 2.0
    assert clock.budget.n_in_time("round", 9) == 0


def test_what_has_never_been_done_is_done_once_while_there_is_time(clock):
    clock.stop.until = clock.now + 0.5
    assert clock.budget.n_in_time("round", 9) == 1
    clock.now += 0.5
    assert clock.budget.n_in_time("round", 9) == 0
    clock.spend("nothing", 0.0)
    assert clock.budget.n_in_time("nothing", 9) == 0
    clock.stop.until = clock.now + 1e-3
    assert clock.budget.n_in_time("nothing", 9) == 9


def test_how_far_a_run_is_follows_from_how_far_it_was_and_the_clock(clock):
    clock.budget.expect(0.25)
    assert clock.budget.run_seconds is None  # no end is set
    assert math.isnan(clock.budget.progress)
    clock.stop.until = clock.now + 60.0
    clock.budget.expect(0.25)
    assert clock.budget.run_seconds == 80.0
    clock.now += 20.0
    assert clock.budget.progress == 0.5
    clock.now += 50.0
    assert clock.budget.progress == 1.0
    clock.budget.expect(0.9)  # late
    assert math.isnan(clock.budget.progress)
    clock.stop.until = clock.now + 60.0
    for unknown in (1.0, math.nan):
        clock.budget.expect(unknown)
        assert math.isnan(clock.budget.progress)
