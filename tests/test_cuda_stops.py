"""Runs on CUDA that end early keep what they have built, and go on. The kernels run on the host."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS, GPUMMAS, GPU2OptIHC, LocalSearch
from pymoo_gpuaco.backends import Stoppable
from tests.engine_cases import climbers, cloud
from tests.stop_cases import (
    HOURS,
    STILL,
    TOGETHER,
    M,
    N,
    assert_greedy_tour_rescued,
    cut,
    device,
    engine_of,
    strike,
    whole,
)

__all__ = ["cut", "device"]  # fixtures


@pytest.mark.parametrize("way", ["rwm", "2opt", "kicks", "all cities", "acs sync", "acs relaxed"])
@pytest.mark.parametrize("wait", [0, 1, 2])
def test_an_interrupt_keeps_the_best_tour(way, wait, cut):
    engine, other = engine_of(way), engine_of(way)
    waits = iter([*[lambda: None] * wait, strike])
    cut.on_wait = lambda: next(waits, lambda: None)()
    interrupted = False
    try:
        engine.construct(1)
    except KeyboardInterrupt:
        interrupted = True
    cut.on_wait = lambda: None
    if interrupted:
        tour, length = engine.rescued()
        assert np.array_equal(np.sort(tour), np.arange(N))
        assert length == cloud(N).tour_length(tour)
    else:  # one launch, and one wait
        assert wait > 0
        assert way == "acs sync"
    if way in STILL:
        assert np.array_equal(engine.construct(2), other.construct(2))
    lengths = engine.construct(3)
    whole(engine, lengths)
    assert engine.rescued()[1] == lengths.min()


def test_an_interrupt_before_anything_is_built_leaves_the_greedy_tour(device, monkeypatch):
    engine = engine_of("rwm")
    monkeypatch.setattr(engine.walk, "build", strike)
    with pytest.raises(KeyboardInterrupt):
        engine.construct(1)
    assert_greedy_tour_rescued(engine)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("moves", ["best", "batch"])
def test_climbers_do_less_where_time_is_short(moves):
    engine, other = (climbers(cloud(50), "cuda", moves=moves) for _ in range(2))
    assert isinstance(engine, Stoppable)
    engine.stop_at(time.monotonic() + HOURS)
    assert engine.climb(1) == other.climb(1)
    assert np.array_equal(engine.lengths(), other.lengths())
    before = engine.scans
    engine.stop_at(time.monotonic() - 1.0)
    engine.climb(1)
    assert engine.scans - before < before
    tour, length = engine.best()
    assert cloud(50).tour_length(tour) == length == engine.rescued()[1]


def test_climbers_that_are_interrupted_have_a_tour_and_go_on(device, monkeypatch):
    engine = climbers(cloud(50), "cuda")
    read = engine.device.read
    turns = iter([strike])
    monkeypatch.setattr(engine.device, "read", lambda *told: (next(turns, lambda: None)(), read(*told)))
    with pytest.raises(KeyboardInterrupt):
        engine.climb(1)
    tour, length = engine.rescued()
    assert cloud(50).tour_length(tour) == length
    engine.climb(1)
    assert engine.rescued()[1] == engine.best()[1]
    assert engine.best()[1] <= length or engine.scans > 0


RUNS: dict[str, Callable] = {
    "GPUAS": lambda: GPUAS(n_ants=M, backend="cuda"),
    "GPUMMAS": lambda: GPUMMAS(n_ants=M, local_search=LocalSearch(kicks=0.5), backend="cuda"),
    "GPU2OptIHC": lambda: GPU2OptIHC(n_climbers=3, backend="cuda"),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_an_interrupted_run_has_its_best_tour_and_goes_on(run, cut, monkeypatch):
    problem = cloud(N)
    algorithm = run().setup(problem, termination=("n_gen", 3), seed=1)
    if run is RUNS["GPU2OptIHC"]:
        read, turns = algorithm.engine.device.read, iter([strike])
        monkeypatch.setattr(
            algorithm.engine.device, "read", lambda *told: (next(turns, lambda: None)(), read(*told))
        )
    else:
        waits = iter([*[lambda: None] * 2, strike])  # the greedy tour, one launch
        cut.on_wait = lambda: next(waits, lambda: None)()
    with pytest.raises(KeyboardInterrupt):
        algorithm.run()
    kept = algorithm.result()
    assert problem.tour_length(kept.X) == kept.F[0]
    algorithm.run()
    after = algorithm.result()
    assert problem.tour_length(after.X) == after.F[0] <= kept.F[0]


def test_a_run_without_time_counts_the_tours_that_were_built(cut):
    problem = cloud(N)
    algorithm = GPUAS(n_ants=M, backend="cuda").setup(problem, termination=("time", 1e-9), seed=1)
    algorithm.run()
    assert algorithm.evaluator.n_eval == TOGETHER
    assert problem.tour_length(algorithm.result().X) == algorithm.result().F[0]
