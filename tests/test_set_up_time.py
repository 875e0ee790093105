"""A limit of time counts set-up as a person's watch does, and compiling not."""

from __future__ import annotations

import logging
import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize
from pymoo.termination import get_termination

from pymoo_gpuaco import TSP, ColonyTermination, GPUMemetic
from pymoo_gpuaco.algorithms.termination import progress
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.runtime import compiling
from tests.false_clock import FalseClock


@pytest.fixture
def problem() -> TSP:
    return TSP(np.random.default_rng(2).random((40, 2)))


def spend(clock: FalseClock, seconds: float, compiled: bool) -> None:
    """Put the clock forward, in a compiler or not."""
    if compiled:
        compiling.begin("nothing")
    clock.step(seconds)
    if compiled:
        compiling.end()


def slow_set_up(monkeypatch: pytest.MonkeyPatch, clock: FalseClock, seconds: float, compiled: bool) -> None:
    """Make preparing a run take the given time, spent by a compiler or not."""
    prepare = TourAlgorithm.prepare

    def slow(self):
        prepare(self)
        spend(clock, seconds, compiled)

    monkeypatch.setattr(TourAlgorithm, "prepare", slow)


@pytest.mark.parametrize(("set_up", "generations"), [(3.0, 1), (4.0, 1), (2.0, 2)])
@pytest.mark.parametrize(
    "termination", [("time", 3.0), ColonyTermination(seconds=3.0)], ids=["time", "colony"]
)
def test_a_run_whose_set_up_takes_its_time_ends_with_its_first_tour(
    termination, set_up, generations, problem, clock, monkeypatch, caplog
):
    greedy = GPUMemetic(backend="cpu").setup(problem).engine.best_tours()[1][0]
    slow_set_up(monkeypatch, clock, set_up, compiled=False)
    with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
        result = minimize(
            problem, GPUMemetic(backend="cpu"), termination, seed=1, callback=lambda _: clock.step(1.0)
        )
    assert result.algorithm.n_iter - 1 == generations
    assert result.F[0] == problem.tour_length(result.X)
    over = "reached the time limit: no time to search, the run ends with its first tour" in caplog.text
    assert over == (set_up >= 3.0)
    if over:
        assert result.F[0] == pytest.approx(greedy, rel=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_compiling_does_not_count(compiled, problem, clock, monkeypatch):
    slow_set_up(monkeypatch, clock, 2.0, compiled)
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)
    counted = 0.0 if compiled else 2.0
    assert algorithm._setup_seconds == counted
    clock.step(8.0)  # between set-up and the first generation
    algorithm.ask()
    assert algorithm.start_time == clock.wall() - counted


def test_progress_is_of_the_moment_it_is_asked_for(clock):
    for termination in (get_termination("time", 1000.0), ColonyTermination(n_max_gen=None, seconds=1000.0)):
        assert progress(termination, clock.wall() - 250.0) == 0.25
        assert progress(termination, clock.wall() - 2000.0) == 1.0


@pytest.mark.parametrize("compiled", [True, False])
def test_building_the_engine_of_a_run_that_goes_on_counts_and_compiling_does_not(
    compiled, problem, clock, monkeypatch
):
    before = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 3), seed=1)
    before.next()
    clock.step(10.0)
    algorithm = pickle.loads(pickle.dumps(before))
    algorithm.termination = ColonyTermination(n_max_gen=None, seconds=100.0)
    build = GPUMemetic._engine_maker

    def slow(self):
        make = build(self)

        def made(instance):
            spend(clock, 2.0, compiled)
            return make(instance)

        return made

    monkeypatch.setattr(GPUMemetic, "_engine_maker", slow)
    algorithm.next()
    assert algorithm.termination.spent == (0.1 if compiled else 0.12)


def test_the_engine_is_to_stop_before_the_limit_by_what_a_generation_takes_besides(
    problem, clock, monkeypatch
):
    """Of the first one is expected a twentieth of set-up; of the others what the one before took, here .7 s.

    All but .2 s of it: a generation that ends too soon would be followed by an empty one.
    """
    slow_set_up(monkeypatch, clock, 20.0, compiled=False)
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("time", 1000.0), seed=1)
    assert algorithm._post_search_seconds == pytest.approx(1.0)
    left, evaluate, began = [], problem.evaluate, clock.now - 20.0
    monkeypatch.setattr(algorithm.engine, "stop_at", lambda moment: left.append(moment - began))

    def slowly(*given, **named):
        clock.step(0.7)
        return evaluate(*given, **named)

    monkeypatch.setattr(problem, "evaluate", slowly)
    algorithm.next()
    assert algorithm._post_search_seconds == pytest.approx(0.7)
    algorithm.next()
    assert left[0] == pytest.approx(999.2)
    assert left[-1] == pytest.approx(999.5)
