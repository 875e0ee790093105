"""A generation may be longer than the time that is left: it ends early, and what it has built by then counts."""

import copy
import time
from itertools import count

import numpy as np
import pytest
from pymoo.core.termination import TerminateIfAll, TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination.max_gen import MaximumGenerationTermination
from pymoo.termination.max_time import TimeBasedTermination

from pymoo_gpuaco import GPUAS, GPUEAS, GPUMMAS, TSP, LocalSearch
from pymoo_gpuaco.algorithms.termination import ColonyTermination, seconds_left
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.backends.cpu.windows import search
from pymoo_gpuaco.backends.protocol import Stoppable
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop, end_on_interrupt
from tests.cpu_window_cases import SmallWindows
from tests.engine_cases import COLONIES, climbers, cloud, colony, memetic
from tests.instances import listed_instance
from tests.interrupts import is_interrupted, needs_timer, timed_interrupts

HOURS = 10_000.0

#: a generation of each takes minutes on any machine
LONG = {
    "GPUAS": (GPUAS(n_ants=200_000, backend="cpu"), 1000),
    "GPUMMAS": (GPUMMAS(n_ants=24, local_search=LocalSearch(kicks=900.0), backend="cpu"), 3000),
    "construction": (GPUMMAS(n_ants=200_000, local_search=False, backend="cpu"), 1000),
}
long_ones = pytest.mark.parametrize(("algorithm", "n"), LONG.values(), ids=list(LONG))


@pytest.mark.parametrize("parameters", COLONIES.values(), ids=list(COLONIES))
def test_a_construction_without_time_hands_out_the_greedy_tour(parameters):
    problem = cloud(33)
    engine = colony(problem, n_ants=4, **{k: v for k, v in parameters.items() if k != "n_ants"})
    assert isinstance(engine, Stoppable)
    _, length = engine.greedy_tour()
    engine.stop_at(time.monotonic() - 1.0)
    lengths = engine.construct(1)
    tours = engine.tours(np.arange(4))
    assert np.array_equal(lengths, problem.tour_lengths(tours))
    assert engine.n_built >= 1
    if engine.n_built == 1:
        assert lengths.min() <= length
    # the next construction, with time, is as if that one had not been made
    engine.stop_at(None)
    other = colony(problem, n_ants=4, **{k: v for k, v in parameters.items() if k != "n_ants"})
    lengths = engine.construct(2)
    if "xi" not in parameters:  # there ants change trails as they walk
        assert np.array_equal(lengths, other.construct(2))
    assert engine.n_built == 4


@pytest.mark.parametrize("parameters", COLONIES.values(), ids=list(COLONIES))
def test_time_enough_changes_nothing(parameters):
    engine, other = (colony(cloud(40), **parameters) for _ in range(2))
    engine.stop_at(time.monotonic() + HOURS)
    for key in range(2):
        assert np.array_equal(engine.construct(key), other.construct(key))
        assert np.array_equal(engine.tours(np.arange(6)), other.tours(np.arange(6)))


@pytest.mark.parametrize("algorithm", [GPUAS, GPUEAS], ids=["GPUAS", "GPUEAS"])
def test_trails_of_all_pairs_of_cities_are_set_within_the_limit(algorithm):
    """Of 20,000 cities they are 1.6 gigabytes, which must not be allocated after the end."""
    problem = cloud(60)
    engine, other = (
        algorithm(backend="cpu").setup(problem, termination=("n_gen", 1), seed=1).engine for _ in range(2)
    )
    engine.stop_at(time.monotonic() - 1.0)
    engine.reset_trails(0.5)
    engine.construct(1)
    assert not engine._trails.arrays.tau.any()
    engine.stop_at(None)
    assert np.all(engine.trails_of([[0, 1], [3, 59]]) == 0.5)
    engine.reset_trails(0.25)
    other.reset_trails(0.25)
    assert np.array_equal(engine.construct(2), other.construct(2))
    assert np.array_equal(engine.export_state()["tau"], np.full((60, 60), 0.25, np.float32))


def test_whole_tours_are_loaded_no_more_once_time_is_over(monkeypatch):
    engine = memetic(cloud(200), n=64)
    loads = []
    monkeypatch.setattr(search, "load", lambda *window: loads.append(len(window)))
    engine.stop_at(time.monotonic() - 1.0)
    engine.device.stop.flag[0] = 1
    engine.device.search.search_tours(np.zeros((64, 200), np.int32), search.Kicks(10, 1, longest=10), True)
    assert not loads


def test_windows_are_laid_out_no_more_once_time_is_over(monkeypatch):
    """Of 50,000 cities each, eight in a round."""
    device = CpuWindows(listed_instance(cloud(300), 7), SmallWindows(whole_up_to=8, window=64))
    monkeypatch.setattr(search, "load", lambda *_: pytest.fail("no time for it"))
    tour, dirty = np.random.default_rng(1).permutation(300).astype(np.int32), np.ones(300, np.uint8)
    device.stop.flag[0] = 1
    before = tour.copy()
    assert device.search.repair_stretches(tour, dirty, 0, 3) == 3
    after, searched = device.search.round(tour, dirty, 0, 3, search.Kicks(10, 1, longest=10))
    assert searched == 3
    assert np.array_equal(tour, before)
    assert np.array_equal(after, before)
    assert dirty.all()


def test_given_tours_in_one_window_are_repaired_no_more_once_time_is_over(monkeypatch):
    """Of random tours of 20,000 cities that takes seconds."""
    engine, tours = memetic(cloud(200)), np.array([np.random.default_rng(1).permutation(200)])
    repair = search.search_window

    def in_the_middle(*window):
        engine.device.stop.flag[0] = 1
        return repair(*window)

    monkeypatch.setattr(search, "search_window", in_the_middle)
    assert np.array_equal(engine.improve(tours, 1)[0], tours)


def test_the_best_tour_takes_over_from_no_more_tours_once_time_is_over(monkeypatch):
    """Cold tours of 20,000 cities take tenths of a second each."""
    engine = memetic(cloud(200), n=7)
    engine.search(1)
    asked = []
    monkeypatch.setattr(Stop, "passed", lambda self: asked.append(1) or len(asked) > 3)
    merged = []
    monkeypatch.setattr(Population, "merge", lambda self, tour: merged.append(tour))
    monkeypatch.setattr(Population, "recombine", lambda *_: pytest.fail("no time for it"))
    engine._annealing = False
    engine._measure_and_merge()
    assert len(merged) == 3
    engine._recombine(2)


def test_climbers_without_time_have_a_tour():
    problem = cloud(50)
    engine = climbers(problem)
    engine.stop_at(time.monotonic() - 1.0)
    engine.climb(1)
    tour, length = engine.best()
    assert problem.tour_length(tour) == length
    engine.stop_at(None)
    other = climbers(problem)
    other.climb(1, pairs=60_000)
    engine.climb(1, pairs=60_000)
    assert problem.tour_length(engine.best()[0]) == engine.best()[1]


@long_ones
def test_a_run_ends_in_the_middle_of_a_long_generation(algorithm, n, clock, monkeypatch):
    problem = cloud(n)
    run = copy.deepcopy(algorithm).setup(problem, termination=("time", 1000.0), seed=1)
    lengths, construct, looks = run.engine._lengths, run.engine.construct, count()
    enough = 2 if run.n_ants > 1000 else 0  # one tour of the others takes minutes

    def look() -> float:
        """Show the end of the run at the fourth look or later, when enough tours are built."""
        if next(looks) > 3 and np.count_nonzero(np.isfinite(lengths)) >= enough:
            clock.now = 1200.0
        return clock.now

    def begin(key):
        lengths[:] = np.inf
        monkeypatch.setattr(CLOCK, "monotonic", look)
        return construct(key)

    run.engine.construct = begin
    res = run.run()
    assert problem.tour_length(res.X) == res.F[0]
    assert run.n_gen - 1 == 1
    if run.n_ants > 1000:
        assert 1 < run.evaluator.n_eval < run.n_ants


@needs_timer
@long_ones
def test_an_interrupt_ends_a_long_generation_and_keeps_its_best_tour(algorithm, n):
    problem = cloud(n)
    algorithm = algorithm.setup(problem, termination=("n_gen", 5), seed=1)
    construct = algorithm.engine.construct
    with timed_interrupts() as strike_after:
        algorithm.engine.construct = lambda key: (strike_after(0.3), construct(key))[1]
        with pytest.raises(KeyboardInterrupt):
            algorithm.run()
    kept = algorithm.result()
    assert problem.tour_length(kept.X) == kept.F[0]
    # the object is as good as new
    again = minimize(cloud(30), GPUMMAS(n_ants=4, backend="cpu"), ("n_gen", 2), seed=1)
    assert cloud(30).tour_length(again.X) == again.F[0]


@needs_timer
@pytest.mark.parametrize("whole_up_to", [300, 8])
def test_an_interrupt_ends_the_search_of_whole_tours_and_of_windows(whole_up_to):
    problem = cloud(300)

    def engine_of(trials: int) -> MemeticSearch:
        parameters = SmallWindows(whole_up_to=whole_up_to, window=64, trials=trials)
        return MemeticSearch(CpuWindows(listed_instance(problem, 7), parameters))

    def search_often(engine: MemeticSearch) -> None:
        for key in range(40):  # in the first ones windows are only repaired
            if not engine.stop.interrupted:
                engine.search(key)

    search_often(engine_of(64))  # compiles
    engine = engine_of(10**11)  # weeks
    for _ in range(2):
        is_interrupted(0.3, lambda: end_on_interrupt(lambda: search_often(engine), engine.stop))
        tours, lengths = engine.best_tours(99)
        assert np.array_equal(problem.tour_lengths(tours), lengths)
        assert all(np.array_equal(np.sort(row), np.arange(300)) for row in engine.export_state()["tours"])


def test_seconds_left_of_terminations(clock):
    now = clock.wall()
    generations, seconds = MaximumGenerationTermination(3), TimeBasedTermination(10)
    assert seconds_left(generations, now) is None
    assert seconds_left(seconds, now) == 10
    assert seconds_left(seconds, now - 100) == -90
    assert seconds_left(TerminateIfAny(generations, seconds), now) == 10
    assert seconds_left(TerminateIfAll(generations, seconds), now) is None
    assert seconds_left(ColonyTermination(seconds=None), now) is None
    assert seconds_left(ColonyTermination(seconds=7), now) == 7


def test_a_problem_of_three_cities_has_time_limits_too():
    problem = TSP([[0, 0], [3, 0], [3, 4]], "EUC_2D")
    res = minimize(problem, GPUAS(backend="cpu"), ("time", 0.05), seed=1)
    assert res.F[0] == 12
