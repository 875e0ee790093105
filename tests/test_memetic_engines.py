"""Contract of every memetic search, on every kind of device: roles, tours, deadlines and interrupts."""

from __future__ import annotations

import _thread
import math
import time

import numpy as np
import pytest

from pymoo_gpuaco import GPUMemetic
from pymoo_gpuaco.algorithms.tour import canonical
from pymoo_gpuaco.candidates.exact import MOST_CITIES
from pymoo_gpuaco.memetic.population import first_tours
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import BACKENDS, INSTANCES, cloud, memetic
from tests.memetic_cases import (
    before_and_after_a_generation,
    best_of,
    same_generation,
    same_state,
    short,
    tours_of,
)
from tests.test_doors import BAD_ROWS
from tests.test_engines import assert_permutations

__all__ = ["short"]  # a fixture


NAMES = [name for name, p in INSTANCES.items() if p.symmetric and p.n_cities > MOST_CITIES]


@pytest.mark.parametrize("backend", BACKENDS)
class TestMemetic:
    @pytest.mark.parametrize("name", NAMES)
    def test_tours_are_permutations_and_lengths_exact(self, name, backend):
        problem = INSTANCES[name]
        engine = memetic(problem, backend)
        exactly = {"rel": 0.0, "abs": 0.0} if problem.integral else {"rel": 1e-12}
        before = best_of(engine) * (1 + 1e-12)
        for key in (0, 7, 2**64 - 1):
            engine.search(key)
            tours, lengths = tours_of(engine), engine.lengths
            assert_permutations(tours, problem.n_cities)
            assert lengths == pytest.approx(problem.tour_lengths(tours), **exactly)
            best, its = engine.best_tours()
            assert_permutations(best, problem.n_cities)
            assert its == pytest.approx(problem.tour_lengths(best), **exactly)
            assert its[0] <= min(before, lengths.min())
            before = its[0]

    def test_the_best_tours_come_by_length(self, backend):
        problem = cloud(90, 3)
        engine = memetic(problem, backend, n=3)
        for key in range(3):
            engine.search(key)
            tours, lengths = tours_of(engine), engine.lengths
            best = engine.best_tours()[0][0]
            others = [
                row for row in np.argsort(lengths, kind="stable") if not np.array_equal(tours[row], best)
            ]
            for most in range(1, len(tours) + 3):
                found, their = engine.best_tours(most)
                rows = others[: most - 1]
                assert np.array_equal(found, np.concatenate([best[None], tours[rows]]))
                assert np.array_equal(their, [problem.tour_length(best), *lengths[rows]])

    def test_before_a_run_the_first_tour_is_the_best(self, backend):
        problem = cloud(40, 2)
        engine = memetic(problem, backend)
        (tour,), (length,) = engine.best_tours(3)
        assert_permutations(tour[None], 40)
        assert length == problem.tour_length(tour)
        assert engine.lengths.shape == (0,)
        before = tour.copy()
        tour[:] = 0  # a copy
        assert np.array_equal(engine.best_tours()[0][0], before)

    def test_the_key_decides_everything(self, backend):
        problem = cloud(300, 9)
        one, two, other = (memetic(problem, backend) for _ in range(3))
        for key in (3, 2**63 + 5):
            assert same_generation(one, two, key)
            assert same_state(one, two)
            other.search(key + 1)
            assert not same_state(one, other)

    def test_a_long_run_finds_the_optimum_of_a_circle(self, backend):
        angle = np.random.default_rng(3).permutation(60) * 2 * np.pi / 60
        problem = TSP(np.column_stack([np.cos(angle), np.sin(angle)]) * 1e4, metric="EUC_2D")
        best = problem.tour_length(np.argsort(angle))
        engine = memetic(problem, backend)
        for key in range(4):
            engine.search(key)
        assert best_of(engine) == best

    def test_unknown_progress_is_no_end(self, backend):
        problem = cloud(60, 2)
        unknown, unset, ending = (memetic(problem, backend) for _ in range(3))
        unknown.expect(math.nan)
        ending.expect(1.0)
        for key in range(3):
            assert same_generation(unknown, unset, key)
        assert same_state(unknown, unset)
        assert math.isnan(unknown._schedule.progress)
        assert ending._schedule.progress == 1.0

    def test_accepted_tours_are_merged(self, backend):
        problem = cloud(70, 2)
        better = memetic(problem, "cpu")
        for key in range(20):
            better.search(key)
        good, (length,) = better.best_tours()
        for begun in (False, True):
            engine = memetic(problem, backend)
            if begun:
                engine.search(1)
            before, longest = tours_of(engine), engine.lengths.argmax() if begun else 0
            engine.accept(np.concatenate([np.arange(70)[None], good]), [9e9, length])
            best = engine.export_state()["best"][0]
            assert problem.tour_length(best) <= length
            # it takes the place of the longest tour; where there are none, that of all
            before[longest if begun else slice(None)] = best
            assert np.array_equal(tours_of(engine), before)
            assert np.array_equal(engine.lengths, problem.tour_lengths(before))
            engine.accept(np.empty((0, 70), np.int32), [])
            assert np.array_equal(engine.export_state()["best"][0], best)
            engine.search(2)
            assert problem.tour_length(engine.export_state()["best"][0]) <= length

    def test_improving_leaves_the_population_alone(self, backend):
        for problem, engine, other, start in before_and_after_a_generation(backend):
            tours, lengths = engine.improve(start, 5)
            assert np.array_equal(lengths, problem.tour_lengths(tours))
            assert np.all(lengths < problem.tour_lengths(start))
            for few in (3, 1, 0):
                fewer, their = engine.improve(start[:few].reshape(few, 60), 5)
                assert np.array_equal(fewer, tours[:few])
                assert np.array_equal(their, lengths[:few])
            assert same_state(engine, other)
        assert same_generation(engine, other, 2)
        assert same_state(engine, other)

    @pytest.mark.parametrize("row", BAD_ROWS.values(), ids=BAD_ROWS)
    def test_what_is_no_tour_is_refused(self, row, backend):
        engine = memetic(cloud(14), backend)
        before = engine.export_state()
        for door in (lambda: engine.improve(row[None], 1), lambda: engine.accept(row[None], [1.0])):
            with pytest.raises(ValueError, match="tours"):
                door()
        assert all(np.array_equal(before[name], array) for name, array in engine.export_state().items())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_given_tour_that_is_longer_than_the_first_takes_nothing_from_it(backend):
    problem, rng = cloud(400), np.random.default_rng(1)
    first, given = best_of(memetic(problem, backend)), rng.permutation(400)
    assert problem.tour_length(given) > 2.0 * first
    engine = memetic(problem, backend)
    engine.accept(given[None], problem.tour_lengths(given[None]))
    assert engine.best_tours()[1][0] <= first
    assert engine.lengths.max() <= first
    engine.stop_at(time.monotonic() - 1.0)
    engine.search(1)
    assert engine.best_tours()[1][0] <= first
    # and a shorter one counts in whole
    other = memetic(problem, "cpu")
    for key in range(30):
        other.search(key)
    tours, lengths = other.best_tours()
    assert lengths[0] < first
    engine = memetic(problem, backend)
    engine.accept(tours, lengths)
    assert engine.best_tours()[1][0] <= lengths[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_begins_from_a_given_tour(backend):
    problem = cloud(90, 5)
    engine = memetic(problem, "cpu")
    for key in range(30):
        engine.search(key)
    good = canonical(engine.best_tours()[0], True)
    algorithm = GPUMemetic(sampling=good, backend=backend).setup(problem, termination=("n_gen", 2), seed=1)
    algorithm.next()
    state = algorithm.engine.export_state()
    for tour in (*state["tours"], state["best"][0]):  # no part of the first tour is better
        assert np.array_equal(canonical(tour[None], True), good)
    algorithm.next()
    assert algorithm.opt[0].F[0] <= problem.tour_length(good[0])


@pytest.mark.parametrize("backend", BACKENDS)
class TestStopping:
    def test_without_time_there_are_first_tours_and_no_round(self, backend):
        problem = cloud(100, 3)
        engine = memetic(problem, backend)
        (first,), _ = engine.best_tours()
        engine.stop_at(time.monotonic() - 1.0)
        engine.search(1)
        tours = tours_of(engine)
        assert np.array_equal(tours[0], first)
        assert np.array_equal(engine.lengths, problem.tour_lengths(tours))
        assert best_of(engine) == engine.lengths.min()
        assert engine.n_built == 1
        assert engine.n_trials == 0
        before = engine.export_state()
        engine.search(2)
        assert all(np.array_equal(before[name], array) for name, array in engine.export_state().items())
        engine.stop_at(None)
        engine.search(2)
        assert engine.n_built > 1

    def test_time_enough_changes_nothing(self, backend):
        engine, other = (memetic(cloud(60), backend) for _ in range(2))
        engine.stop_at(time.monotonic() + 1e4)
        for key in range(2):
            assert same_generation(engine, other, key)
        assert same_state(engine, other)

    def test_improving_ends_where_there_is_no_time(self, backend):
        for problem, engine, other, start in before_and_after_a_generation(backend):
            engine.stop_at(time.monotonic() - 1.0)
            tours, lengths = engine.improve(start, 5)
            assert_permutations(tours, 60)
            assert np.array_equal(lengths, problem.tour_lengths(tours))
            engine.stop_at(time.monotonic() + 1e4)
            assert np.array_equal(engine.improve(start, 5)[0], other.improve(start, 5)[0])
            assert not np.array_equal(engine.improve(start, 5)[0], tours)
            engine.stop_at(None)
            assert same_state(engine, other)


def test_an_interrupt_while_the_first_tours_are_made_leaves_the_first_one(monkeypatch):
    problem = cloud(300, 1)
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)
    first = best_of(algorithm.engine)

    def strike(*arguments):
        monkeypatch.undo()
        _thread.interrupt_main()
        while not algorithm.engine.stop.interrupted:
            time.sleep(0.001)
        return first_tours(*arguments)

    monkeypatch.setattr("pymoo_gpuaco.memetic.search.first_tours", strike)
    with pytest.raises(KeyboardInterrupt):
        algorithm.run()
    kept = algorithm.result()
    assert kept.F[0] == problem.tour_length(kept.X) == first
    algorithm.run()
    assert algorithm.result().F[0] < kept.F[0]
