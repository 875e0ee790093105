"""The annealing schedule: cycles, the last one, runs that continue with another budget, and the time budget."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.memetic.schedule import END, Schedule, TimeBudget
from pymoo_gpuaco.runtime.stop import Stop
from tests.false_clock import FalseClock


def rounds_of(schedule: Schedule, progress: list[float], rounds: int = 1) -> list[tuple[int, float, float]]:
    """Cycle, first and last share of every round, of generations of ``rounds`` rounds with known progress."""
    counted, annealed = [], 0
    for p in progress:
        schedule.expect(p, annealed)
        annealed = rounds
        for _ in range(rounds):
            cycle = schedule.cycle
            counted.append((cycle, *schedule.next()))
            if schedule.at_end:
                schedule.begin_next()
    return counted


def shares(counted: list[tuple[int, float, float]]) -> list[float]:
    return [hot for _, hot, _ in counted]


def test_without_a_budget_cycles_double():
    counted = rounds_of(Schedule(2), [math.nan] * 14)
    assert [cycle for cycle, _, _ in counted] == [0] * 2 + [1] * 4 + [2] * 8
    assert shares(counted) == pytest.approx([1, 0.5, 1, 0.75, 0.5, 0.25, *np.arange(8, 0, -1) / 8])
    assert [cold for _, _, cold in counted][:6] == pytest.approx([0.5, 0, 0.75, 0.5, 0.25, 0])


def test_a_short_run_is_one_cycle():
    # 100 rounds of .01 each: after the first, 97 - 1 are left to the end of annealing at .97
    counted = rounds_of(Schedule(10, cycles_in_one=12), [g / 100 for g in range(100)])
    assert {cycle for cycle, _, _ in counted} == {0}
    assert shares(counted)[1:4] == pytest.approx([0.9, 1 - 2 / 97, 1 - 3 / 97], abs=0.1)
    assert shares(counted)[50] == pytest.approx(min(0.9, 1 - 50 / 97), rel=1e-9)
    assert counted[-1][1:] == (0.0, 0.0)


def test_the_cycle_that_a_long_run_ends_in_takes_all_that_is_left():
    # of 100 rounds the first cycles take 10 and 20; after 30, 70 are left, fewer than three times the 40 of the third
    counted = rounds_of(Schedule(10), [g / 100 for g in range(100)])
    assert [cycle for cycle, _, _ in counted] == [0] * 10 + [1] * 20 + [2] * 70
    assert shares(counted)[30] == 1.0
    assert shares(counted)[64] == pytest.approx(1 - 34 / 67)  # 97 - 30 rounds are heated
    assert counted[-1][1:] == (0.0, 0.0)


@settings(deadline=None, max_examples=200)
@given(
    first=st.integers(1, 50),
    cycles_in_one=st.sampled_from([1, 3, 12, 1 << 40]),
    rounds=st.sampled_from([1, 4, 32]),
    steps=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=60),
    again=st.integers(0, 80),
)
def test_shares_never_rise_in_a_cycle_and_stay_within_one(first, cycles_in_one, rounds, steps, again):
    """For any progress, also if a new budget begins in the middle."""
    progress = np.minimum(np.cumsum(steps), 1.0)
    progress[again:] = np.minimum(np.cumsum(steps[again:]), 1.0)
    counted = rounds_of(Schedule(first, cycles_in_one), progress.tolist(), rounds)
    assert all(0.0 <= cold <= hot <= 1.0 for _, hot, cold in counted)
    for (cycle, _, cold), (following, hot, _) in itertools.pairwise(counted):
        assert hot <= cold if following == cycle else hot <= 1.0


@settings(deadline=None, max_examples=100)
@given(
    first=st.integers(1, 50), rounds=st.integers(60, 400), cycles_in_one=st.sampled_from([1, 3, 12, 1 << 40])
)
def test_a_run_ends_without_heat(first, rounds, cycles_in_one):
    schedule = Schedule(first, cycles_in_one)
    counted = rounds_of(schedule, [g / rounds for g in range(rounds)])
    assert counted[-1][2] == 0.0
    assert schedule.last is True
    assert schedule.finished is True


def test_a_run_that_goes_on_with_another_budget_cools_on_and_does_not_begin_again():
    schedule = Schedule(10, cycles_in_one=12)
    before = rounds_of(schedule, [g / 100 for g in range(50)])
    after = rounds_of(schedule, [g / 50 for g in range(50)])  # as long again
    assert {cycle for cycle, _, _ in (*before, *after)} == {0}
    assert after[0][1] == before[-1][2]
    # of the 50 + 48.5 rounds that the cycle then has, half are over
    assert shares(after)[25] == pytest.approx(1 - 75 / (50 + END * 50), rel=0.02)
    assert after[-1][2] == 0.0


def test_a_run_that_had_ended_anneals_again():
    schedule = Schedule(10, cycles_in_one=12)
    rounds_of(schedule, [g / 100 for g in range(100)])
    assert schedule.finished
    after = rounds_of(schedule, [g / 50 for g in range(50)])
    assert {cycle for cycle, _, _ in after} == {1}  # of 20 rounds if it were not the last
    assert after[0][1] == 1.0
    assert after[-1][2] == 0.0


def test_rounds_bring_a_run_on_as_those_of_the_generation_before_did():
    schedule = Schedule(100)
    schedule.expect(0.1, 0)
    schedule.next()
    assert schedule.progress == 0.1  # by an amount that is not known yet
    schedule.expect(0.3, 4)  # .05 each
    schedule.next()
    schedule.next()
    assert schedule.progress == pytest.approx(0.4)
    schedule.expect(0.5, 0)  # first tours, say
    schedule.expect(0.5, 3)  # which is no other budget
    assert (schedule.rounds, schedule.started, schedule.step) == (3, 0.1, pytest.approx(0.05))
    assert schedule.left == pytest.approx(3 * (0.97 - 0.5) / 0.4)
    schedule.expect(0.6, 1)
    for progress in (0.7, 0.8, 0.9):
        schedule.next()
        assert schedule.progress == pytest.approx(progress)
    schedule.next()
    schedule.next()
    assert math.isnan(schedule.left)  # it should have ended


class BudgetClock(FalseClock):
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(monkeypatch)
        self.stop = Stop()
        self.budget = TimeBudget(self.stop)

    def spend(self, what: str, seconds: float, times: int = 1) -> None:
        with self.budget.timed(what) as block:
            self.now += seconds
            block.times = times


@pytest.fixture
def clock(monkeypatch):
    return BudgetClock(monkeypatch)


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
