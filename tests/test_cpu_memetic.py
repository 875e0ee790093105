"""The memetic search on the CPU: tours, state, and cycles of annealing."""

import time

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu import search_device as focused_module
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.memetic import parameters as parameters_module
from pymoo_gpuaco.memetic import population as module
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from tests.cpu_window_cases import SmallWindows
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.tour_cases import random_tours


def windows(problem, n=None):
    """A search of n windows of one tour."""
    return of(problem, SmallWindows(trials=256, whole_up_to=8, window=64, n_windows=n))


def of(problem, parameters=None):
    return MemeticSearch(CpuWindows(listed_instance(problem, 8), parameters))


def found(engine, key):
    """The best tour after one more generation, and its length."""
    engine.search(key)
    (tour,), (length,) = engine.best_tours()
    return tour, length


@pytest.mark.parametrize("threads", ["1", "4"])
def test_windows_of_one_tour(threads, monkeypatch):
    """Lengths are exact and never rise; neither threads nor a saved state nor given tours change the search."""
    problem = cloud(300, 9)
    one, resumed = windows(problem, 3), windows(problem, 3)
    assert (one.n_tours, one.device.n_windows) == (1, 3)
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
    two, last = windows(problem, 3), np.inf
    for key in range(16):
        tour, length = found(one, key)
        assert np.array_equal(np.sort(tour), np.arange(300))
        assert length == problem.tour_length(tour) <= last
        last = length
        if key == 8:
            resumed.import_state(one.export_state())
        for other in (two, resumed) if key > 8 else (two,):
            assert np.array_equal(tour, found(other, key)[0])
            assert np.array_equal(one.export_state()["tours"], other.export_state()["tours"])
        if key == 4:
            start = np.array([np.random.default_rng(i).permutation(300) for i in range(3)])
            improved, lengths = two.improve(start, 5)
            assert np.array_equal(lengths, problem.tour_lengths(improved))
            assert np.all(lengths < 0.5 * problem.tour_lengths(start))
            assert np.array_equal(two.improve(start[:1], 5)[0][0], improved[0])


@pytest.mark.parametrize(("threads", "tours"), [("1", 2), ("2", 2), ("5", 5), ("64", 64)])
def test_there_are_as_many_whole_tours_as_threads(threads, tours, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
    engine = of(cloud(60, 1))
    assert engine.n_tours == tours
    engine.search(1)
    assert len(engine.export_state()["tours"]) == len(engine.lengths) == tours
    assert (
        engine.n_built == tours + engine._tours.population.n_offspring
    )  # one round, and what was recombined
    # many tours share what two have, so that a generation stays short where threads are fewer than tours
    assert engine.n_trials == tours * (parameters_module.KICKS_OF_SHORT_ROUND // tours)
    assert of(cloud(60, 1), MemeticParameters(population_size=3)).n_tours == 3


@pytest.mark.parametrize(("share", "tours"), [(1.0, 60), (0.5, 30), (0.1, 8), (0.05, 2)])
def test_seconds_count_as_much_as_threads_get_of_them(share, tours, monkeypatch):
    """60 s, one thread and 100 cities a second: 60 tours of 100 cities, and half as many where it gets half of a core.

    Eight at least where more than six are wanted, and else as many as usual.
    """
    asked = []
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1")
    monkeypatch.setattr(focused_module, "processor_share", lambda threads, _: asked.append(threads) or share)
    monkeypatch.setattr(parameters_module, "CITIES_PER_SECOND", 100.0)
    device = of(cloud(100, 1)).device
    assert device.tours_in(None) == 2
    assert device.tours_in(1.0) == 2  # too short for more, with any load
    assert not asked
    assert device.tours_in(60.0) == tours
    assert asked == [1]


@pytest.mark.parametrize(("rate", "tours"), [(14.2, 14), (12.2, 12), (11.8, 1)])
def test_long_tours_are_whole_where_a_run_has_time_for_several(rate, tours, monkeypatch):
    """600 s for 300 cities, of which windows are usual from 101 on."""
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1")
    monkeypatch.setattr(focused_module, "processor_share", lambda *_: 1.0)
    monkeypatch.setattr(parameters_module, "WHOLE_UP_TO", 100)
    monkeypatch.setattr(parameters_module, "CITIES_PER_SECOND", rate)
    problem = cloud(300, 4)
    engines = [of(problem, SmallWindows(window=64, trials=256)) for _ in range(3)]
    (one, two), until = engines[:2], time.monotonic() + 600.0
    for engine in engines:
        assert engine.device.n_tours == 1
        assert not engine.device.search.whole
        engine.stop_at(until)
    for key in range(4):
        found(one, key)
    assert (len(one.lengths), one.device.search.whole) == (tours, tours > 1)
    assert one.n_tours == tours
    assert one.device.n_windows == (tours if tours > 1 else 5)  # as many windows of 64 as hold 300 cities
    assert one.device.plan.end == (0.7 if tours > 1 else 0.97)
    two.import_state(one.export_state())
    for key in range(4, 8):
        assert np.array_equal(found(one, key)[0], found(two, key)[0])
    assert np.array_equal(one.export_state()["tours"], two.export_state()["tours"])
    best, evolved = one.best_tours()[1][0], []
    evolve = module.evolve
    monkeypatch.setattr(module, "evolve", lambda *a, **k: evolved.append(len(a[1])) or evolve(*a, **k))
    one.expect(0.0)
    for key in range(8, 40):  # the last cycle, and at its end tours evolve
        found(one, key)
        one.expect((key - 7) / 32)
    tour, length = (row[0] for row in one.best_tours())
    assert length == problem.tour_length(tour) <= best
    assert set(evolved) == ({tours + 1} if tours > 1 else set())  # the best of the run beside them
    tours = random_tours(300, 2)
    better, _ = one.improve(tours, 3)
    assert np.all(problem.tour_lengths(better) < 0.5 * problem.tour_lengths(tours))
    engines[2].import_state(two.export_state())
    engines[2].device.allocate(1)
    assert not engines[2].device.search.whole


def test_a_cycle_takes_over_with_the_best_before_it(monkeypatch):
    engine = of(cloud(200), SmallWindows(trials=512, population_size=4))
    given = []
    # nothing is merged
    monkeypatch.setattr(module, "assemble", lambda _, tours, *__, **___: given.append(tours.copy()) or tours)
    key = 0
    while not given:
        before = engine.best_tours()[1][0]
        engine.search(key)
        key += 1
    lengths = cloud(200).tour_lengths(given[0])
    # that of the generations before, unless a tour of the last round is shorter
    assert lengths[-1] == min(before, lengths[:-1].min())
    assert np.array_equal(engine.export_state()["tours"], given[0][:-1])
    assert engine.best_tours()[1][0] == lengths[-1]
