"""Focused engines end in time and after Ctrl-C, with the best tour and as the run was."""

from __future__ import annotations

import _thread
import time

import numpy as np
import pytest

from pymoo_gpuaco import GPUMemetic
from pymoo_gpuaco.memetic.population import first_tours
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


def test_an_interrupt_while_the_first_tours_are_made_leaves_the_greedy_one(monkeypatch):
    problem = cloud(300, 1)
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)

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
    assert kept.F[0] == problem.tour_length(kept.X) == algorithm.engine.first_tour()[1]
    algorithm.run()
    assert algorithm.result().F[0] < kept.F[0]
