"""A limit of time counts set-up as a person's watch does, and compiling not."""

from __future__ import annotations

import logging
import pickle
import time

import numpy as np
import pytest
from pymoo.optimize import minimize
from pymoo.termination import get_termination

from pymoo_gpuaco import TSP, ColonyTermination, GPUMemetic
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.algorithms.termination import progress
from pymoo_gpuaco.runtime import compiling


@pytest.fixture
def problem() -> TSP:
    return TSP(np.random.default_rng(2).random((40, 2)))


def slow_set_up(monkeypatch: pytest.MonkeyPatch, seconds: float, compiled: bool) -> None:
    """Make preparing a run take the given time, spent by a compiler or not."""
    prepare = TourAlgorithm.prepare

    def slow(self):
        prepare(self)
        if compiled:
            compiling.begin("nothing")
        time.sleep(seconds)
        if compiled:
            compiling.end()

    monkeypatch.setattr(TourAlgorithm, "prepare", slow)


@pytest.mark.parametrize(
    "termination", [("time", 1.0), ColonyTermination(seconds=1.0)], ids=["time", "colony"]
)
def test_a_run_whose_set_up_takes_its_time_ends_with_its_first_tour(
    termination, problem, monkeypatch, caplog
):
    minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 1))  # compiled
    greedy = GPUMemetic(backend="cpu").setup(problem).engine.best_tours()[1][0]
    slow_set_up(monkeypatch, 1.5, compiled=False)
    with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
        result = minimize(problem, GPUMemetic(backend="cpu"), termination, seed=1)
    assert result.algorithm.n_iter - 1 == 1
    assert result.F[0] == problem.tour_length(result.X)
    assert result.F[0] == pytest.approx(greedy, rel=1e-12)
    assert "and reached the time limit: the run ends with its first tour" in caplog.text


@pytest.mark.parametrize("compiled", [True, False])
def test_compiling_does_not_count(compiled, problem, monkeypatch):
    slow_set_up(monkeypatch, 1.5, compiled)
    began = time.perf_counter()
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 2), seed=1)
    took = time.perf_counter() - began
    if not compiled:
        assert algorithm._setup_seconds >= 1.5
    assert algorithm._setup_seconds <= took - (1.4 if compiled else 0.0)
    before = time.time()
    algorithm.ask()
    assert algorithm.start_time >= before - algorithm._setup_seconds


def test_progress_is_of_the_moment_it_is_asked_for():
    now = time.time()
    assert progress(get_termination("time", 1000.0), now - 250.0) == pytest.approx(0.25, abs=0.01)
    assert progress(ColonyTermination(n_max_gen=None, seconds=1000.0), now - 250.0) == pytest.approx(
        0.25, abs=0.01
    )
    assert progress(get_termination("time", 1000.0), now - 2000.0) == 1.0


@pytest.mark.parametrize("compiled", [True, False])
def test_building_the_engine_of_a_run_that_goes_on_counts_and_compiling_does_not(
    compiled, problem, monkeypatch
):
    before = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 3), seed=1)
    before.next()
    algorithm = pickle.loads(pickle.dumps(before))
    earlier = time.time() - algorithm.start_time
    algorithm.termination = ColonyTermination(n_max_gen=None, seconds=1000.0)
    build = GPUMemetic._maker

    def slow(self):
        make = build(self)

        def made(instance):
            if compiled:
                compiling.begin("nothing")
            time.sleep(1.5)
            if compiled:
                compiling.end()
            return make(instance)

        return made

    monkeypatch.setattr(GPUMemetic, "_maker", slow)
    began = time.perf_counter()
    algorithm.next()
    took = time.perf_counter() - began
    spent = 1000.0 * algorithm.termination.spent - earlier
    assert 0.0 < spent <= took + 0.1 - (1.4 if compiled else 0.0)
    assert compiled or spent >= 1.5


def test_the_engine_is_to_stop_before_the_limit_by_what_a_generation_takes_besides(problem, monkeypatch):
    """Of the first one is expected a twentieth of set-up; of the others what the one before took, here .7 s.

    All but .2 s of it: a generation that ends too soon would be followed by an empty one.
    """
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("time", 1000.0), seed=1)
    assert algorithm._post_search_seconds == pytest.approx(0.05 * algorithm._setup_seconds)
    algorithm._post_search_seconds = 0.4
    left, evaluate, clock = [], problem.evaluate, [algorithm.start_time]
    for name in ("time", "monotonic", "perf_counter"):
        monkeypatch.setattr(time, name, lambda: clock[0])
    monkeypatch.setattr(
        algorithm.engine, "stop_at", lambda moment: left.append(moment - algorithm.start_time)
    )

    def slowly(*given, **named):
        clock[0] += 0.7
        return evaluate(*given, **named)

    monkeypatch.setattr(problem, "evaluate", slowly)
    algorithm.next()
    assert algorithm._post_search_seconds == pytest.approx(0.7)
    algorithm.next()
    assert left[0] == pytest.approx(999.8)
    assert left[-1] == pytest.approx(999.5)
