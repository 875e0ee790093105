"""Focused engines end in time and after Ctrl-C, with the best tour and as the run was."""

from __future__ import annotations

import time

import numpy as np
import pytest

from pymoo_gpuaco import GPUMemetic
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from tests.engine_cases import BACKENDS, cloud, memetic
from tests.focused_cases import (
    at_hand,
    before_and_after_a_generation,
    best_of,
    same_generation,
    same_state,
    short,
)
from tests.test_engines import assert_permutations

__all__ = ["short"]  # a fixture


@pytest.mark.parametrize("backend", BACKENDS)
class TestStopping:
    def test_without_time_there_are_first_tours_and_no_round(self, backend):
        problem = cloud(100, 3)
        engine = memetic(problem, backend)
        engine.stop_at(time.monotonic() - 1.0)
        engine.search(1)
        tours = at_hand(engine)
        assert np.array_equal(tours[0], engine.first_tour()[0])
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
        assert engine.rescued()[1] == best_of(engine)

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


@pytest.mark.gpu
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_in_a_generation_leaves_the_best_tour(times, monkeypatch):
    """Once, and once more while what has been launched is waited for."""
    problem = cloud(300, 1)
    engine = memetic(problem, "cuda")
    engine.search(1)
    device, strikes = engine.device.device, iter(range(times))
    wait = device.wait

    def strike(early=False):
        if next(strikes, None) is not None:
            raise KeyboardInterrupt
        wait(early)

    monkeypatch.setattr(device, "wait", strike)
    before = engine.export_state()
    with pytest.raises(KeyboardInterrupt):
        engine.search(2)
    tour, length = engine.rescued()
    assert problem.tour_length(tour) == length
    after = engine.export_state()
    for name in ("best", "best_length", "schedule", "progress", "pace"):
        assert np.array_equal(before[name], after[name])
    if times == 1:  # rounds that have ended count
        assert np.array_equal(engine.lengths, problem.tour_lengths(at_hand(engine)))
    engine.search(3)
    assert engine.rescued()[1] == best_of(engine)
    assert np.array_equal(engine.lengths, problem.tour_lengths(at_hand(engine)))


def test_an_interrupt_while_the_first_tours_are_made_leaves_the_greedy_one(monkeypatch):
    problem = cloud(300, 1)
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)

    def strike(*_):
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("pymoo_gpuaco.memetic.search.first_tours", strike)
    with pytest.raises(KeyboardInterrupt):
        algorithm.run()
    kept = algorithm.result()
    assert kept.F[0] == problem.tour_length(kept.X) == algorithm.engine.first_tour()[1]
    algorithm.run()
    assert algorithm.result().F[0] < kept.F[0]


@pytest.mark.parametrize("whole_up_to", [8, 1000])
def test_an_interrupt_on_the_cpu_leaves_the_best_tour_and_the_run_as_it_was(whole_up_to, monkeypatch):
    problem = cloud(400, 3)

    def made():
        parameters = MemeticParameters(whole_up_to=whole_up_to, window=64, trials=64)
        instance = listed_instance(problem, 8)
        return MemeticSearch(CpuWindows(instance, parameters))

    engine, other = made(), made()
    for key in range(16):
        assert same_generation(engine, other, key)
    search = engine.device.search
    whole, part = search.search_tours, search.round

    def interrupted(work):
        def strike(*arguments):
            work(*arguments)
            raise KeyboardInterrupt

        return strike

    monkeypatch.setattr(search, "search_tours", interrupted(whole))
    monkeypatch.setattr(search, "round", interrupted(part))
    with pytest.raises(KeyboardInterrupt):
        engine.search(16)
    tour, length = engine.rescued()
    assert problem.tour_length(tour) == length
    assert same_state(engine, other)
    assert np.array_equal(engine.lengths, other.lengths)
    monkeypatch.undo()
    for key in (17, 18):
        assert same_generation(engine, other, key)
        assert engine.rescued()[1] == best_of(engine)
    assert same_state(engine, other)
