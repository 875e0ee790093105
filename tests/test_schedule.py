"""The schedule of heat: cycles, the last one, and runs that go on with another budget."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.memetic.schedule import END, Schedule


def rounds_of(schedule: Schedule, progress: list[float], rounds: int = 1) -> list[tuple[int, float, float]]:
    """Cycle, first and last share of every round, of generations of so many rounds that are told the progress."""
    told, annealed = [], 0
    for p in progress:
        schedule.expect(p, annealed)
        annealed = rounds
        for _ in range(rounds):
            cycle = schedule.cycle
            told.append((cycle, *schedule.next()))
            if schedule.at_end:
                schedule.begin_next()
    return told


def shares(told: list[tuple[int, float, float]]) -> list[float]:
    return [hot for _, hot, _ in told]


def test_without_a_budget_cycles_double():
    told = rounds_of(Schedule(2), [math.nan] * 14)
    assert [cycle for cycle, _, _ in told] == [0] * 2 + [1] * 4 + [2] * 8
    assert shares(told) == pytest.approx([1, 0.5, 1, 0.75, 0.5, 0.25, *np.arange(8, 0, -1) / 8])
    assert [cold for _, _, cold in told][:6] == pytest.approx([0.5, 0, 0.75, 0.5, 0.25, 0])


def test_a_short_run_is_one_cycle():
    # 100 rounds of .01 each: after the first, 97 - 1 are left to the end of heat at .97
    told = rounds_of(Schedule(10, cycles_in_one=12), [g / 100 for g in range(100)])
    assert {cycle for cycle, _, _ in told} == {0}
    assert shares(told)[1:4] == pytest.approx([0.9, 1 - 2 / 97, 1 - 3 / 97], abs=0.1)
    assert shares(told)[50] == pytest.approx(min(0.9, 1 - 50 / 97), rel=1e-9)
    assert told[-1][1:] == (0.0, 0.0)


def test_after_the_first_cycle_one_may_take_all_that_is_left():
    # 10 rounds, and 90 are left: more than three times the next 20, but fewer than a thousand times
    told = rounds_of(Schedule(10, later_in_one=1000), [g / 100 for g in range(100)])
    assert [cycle for cycle, _, _ in told] == [0] * 10 + [1] * 90
    assert shares(told)[10:12] == pytest.approx([1.0, 1 - 1 / 87])
    assert shares(told)[54] == pytest.approx(1 - 44 / 87)  # 97 - 10 rounds are heated


def test_a_round_that_took_longer_than_those_before_is_made_up_for():
    schedule = Schedule(10, cycles_in_one=1000)
    rounds_of(schedule, [g / 100 for g in range(11)])  # the next one would bring it to .11
    schedule.catch_up(0.5)
    first, last = schedule.next()
    # eleven rounds in half of the run: ten more in the .47 that are left to the end of heat
    assert (first, last) == pytest.approx((1 - 11 / (11 + 11 * 0.47 / 0.5), 1 - 12 / (11 + 11 * 0.47 / 0.5)))
    assert schedule.progress == pytest.approx(0.51)
    schedule.catch_up(0.3)
    schedule.catch_up(math.nan)
    assert schedule.progress == pytest.approx(0.51)


def test_no_cycle_begins_with_heat_once_the_last_one_should_be_over():
    # too long a run for one cycle, but the first takes until .97
    told = rounds_of(Schedule(97, cycles_in_one=1), [g / 100 for g in range(100)])
    assert [cycle for cycle, _, _ in told][96:] == [0, 1, 1, 1]
    assert shares(told)[96:] == pytest.approx([1 / 97, 0.0, 0.0, 0.0])


def test_a_cycle_is_as_long_as_planned_and_the_last_one_as_what_is_left():
    short, long = Schedule(10, cycles_in_one=12), Schedule(10)
    rounds_of(short, [g / 100 for g in range(51)])
    assert short.last
    # 51 are over, of which progress knows 50; .97 - .5 of the run is left
    assert short.length == pytest.approx(51 + 51 * (0.97 - 0.5) / 0.5, rel=0.03)
    rounds_of(long, [g / 100 for g in range(5)])
    assert not long.last
    assert long.length == 10.0
    rounds_of(long, [g / 100 for g in range(5, 15)])
    assert long.length == 20.0


def test_the_cycle_that_a_long_run_ends_in_takes_all_that_is_left():
    # of 100 rounds the first cycles take 10 and 20; after 30, 70 are left, fewer than three times the 40 of the third
    told = rounds_of(Schedule(10), [g / 100 for g in range(100)])
    assert [cycle for cycle, _, _ in told] == [0] * 10 + [1] * 20 + [2] * 70
    assert shares(told)[30] == 1.0
    assert shares(told)[64] == pytest.approx(1 - 34 / 67)  # 97 - 30 rounds are heated
    assert told[-1][1:] == (0.0, 0.0)


@settings(deadline=None, max_examples=200)
@given(
    first=st.integers(1, 50),
    cycles_in_one=st.sampled_from([1, 3, 12, 1 << 40]),
    rounds=st.sampled_from([1, 4, 32]),
    steps=st.lists(st.floats(0.0, 0.3), min_size=1, max_size=60),
    again=st.integers(0, 80),
)
def test_shares_never_rise_in_a_cycle_and_stay_within_one(first, cycles_in_one, rounds, steps, again):
    """Whatever is told, a budget that begins anew in the middle of it too."""
    progress = np.minimum(np.cumsum(steps), 1.0)
    progress[again:] = np.minimum(np.cumsum(steps[again:]), 1.0)
    told = rounds_of(Schedule(first, cycles_in_one), progress.tolist(), rounds)
    assert all(0.0 <= cold <= hot <= 1.0 for _, hot, cold in told)
    for (cycle, _, cold), (following, hot, _) in itertools.pairwise(told):
        assert hot <= cold if following == cycle else hot <= 1.0


@settings(deadline=None, max_examples=100)
@given(
    first=st.integers(1, 50), rounds=st.integers(60, 400), cycles_in_one=st.sampled_from([1, 3, 12, 1 << 40])
)
def test_a_run_ends_without_heat(first, rounds, cycles_in_one):
    schedule = Schedule(first, cycles_in_one)
    told = rounds_of(schedule, [g / rounds for g in range(rounds)])
    assert told[-1][2] == 0.0
    assert schedule.last is True
    assert schedule.finished is True


def test_a_run_that_goes_on_with_another_budget_cools_on_and_does_not_begin_anew():
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


def test_where_the_end_is_known_no_more_cycles_go_on_as_planned():
    schedule = Schedule(4, cycles_in_one=12)
    rounds_of(schedule, [g / 20 for g in range(3)])
    assert schedule.last
    told = rounds_of(schedule, [math.nan] * 9)
    assert [cycle for cycle, _, _ in told] == [0] * 1 + [1] * 8


def test_what_comes_before_the_first_round_is_no_measure_of_how_long_others_take():
    # a fifth of the run goes into first tours; then each round is a hundredth
    late, prompt = Schedule(10), Schedule(10)
    for g in range(80):
        late.expect(0.2 + g / 100, 1 if g else 0)
        prompt.expect(g / 80, 1 if g else 0)
        assert late.next() == pytest.approx(prompt.next(), abs=0.03)
        if g >= 10:
            assert late.length == pytest.approx(prompt.length, rel=0.05)
        assert late.at_end == prompt.at_end or g >= 75
        for schedule in (late, prompt):
            if schedule.at_end:
                schedule.begin_next()
    assert late.cycle > 1


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


def test_rounds_before_anybody_knew_how_long_the_run_is_count_from_its_beginning():
    schedule = Schedule(10)
    schedule.expect(math.nan, 0)
    schedule.next()
    schedule.next()
    schedule.expect(0.2, 2)
    assert schedule.left == pytest.approx(7.7)  # a fifth took 2, and .77 is left
    one = Schedule(1)
    one.next()
    one.last = True  # when the remaining time is unknown
    assert one.length == 1.0


@pytest.mark.parametrize(("cycles_in_one", "cycles"), [(3, 3), (12, 1)])
def test_a_run_of_known_length_is_one_cycle_up_to_a_bound(cycles_in_one, cycles):
    told = rounds_of(Schedule(10, cycles_in_one), [g / 100 for g in range(100)])
    assert told[-1][0] == cycles - 1


def problem_of(n: int = 300) -> TSP:
    return TSP(np.random.default_rng(4).random((n, 2)), metric="EXACT")


@pytest.mark.usefixtures("few_kicks")
def test_a_resumed_run_of_the_same_termination_equals_the_uninterrupted_one():
    whole = GPUMemetic(backend="cpu").setup(problem_of(), termination=("n_gen", 14), seed=3)
    part = copy.deepcopy(whole)
    for _ in range(6):
        part.next()
    resumed = copy.deepcopy(part)
    for algorithm in (whole, resumed):
        while algorithm.has_next():
            algorithm.next()
    assert np.array_equal(whole.opt[0].X, resumed.opt[0].X)
    one, two = whole.engine.export_state(), resumed.engine.export_state()
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_a_run_that_had_come_to_its_end_anneals_again_when_nobody_knows_any_more_when_it_ends():
    schedule = Schedule(4)
    schedule.last = schedule.finished = True
    schedule.cycle, schedule.done, schedule.rounds, schedule.step = 2, 9, 30, 0.01
    schedule.reported = schedule.progress = 0.98
    schedule.expect(math.nan, 3)
    assert (schedule.finished, schedule.last, schedule.cycle, schedule.done) == (False, False, 3, 0)
    assert (schedule.rounds, schedule.step) == (0, 0.0)
    schedule.cycle = 5
    schedule.expect(math.nan, 3)  # it was not known before either
    assert schedule.cycle == 5
