"""Runs on CUDA that end early keep what they have built, and go on. The kernels run on the host."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS, GPUMMAS, GPU2OptIHC, LocalSearch
from pymoo_gpuaco.backends.protocol import Stoppable
from tests.engine_cases import climbers, cloud
from tests.stop_cases import (
    HOURS,
    STILL,
    TOGETHER,
    M,
    N,
    cut,
    device,
    engine_of,
    whole,
)

__all__ = ["cut", "device"]  # fixtures


@pytest.mark.parametrize("way", ["rwm", "2opt", "kicks", "all cities", "acs sync", "acs relaxed"])
@pytest.mark.parametrize("wait", [0, 1, 2])
def test_an_interrupt_keeps_what_was_built(way, wait, cut):
    engine, other = engine_of(way), engine_of(way)
    waits = iter([*[lambda: None] * wait, engine.stop.interrupt])
    cut.on_wait = lambda: next(waits, lambda: None)()
    whole(engine, engine.construct(1))
    assert engine.n_built <= M
    assert engine.n_built < M or wait > 0 or way == "acs sync"  # which is one launch
    cut.on_wait = lambda: None
    engine.stop.interrupted = False
    if way in STILL:
        assert np.array_equal(engine.construct(2), other.construct(2))
    whole(engine, engine.construct(3))
    assert engine.n_built == M


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
    assert cloud(50).tour_length(tour) == length


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
        read, turns = algorithm.engine.device.read, iter([_thread.interrupt_main])
        monkeypatch.setattr(
            algorithm.engine.device, "read", lambda *where: (next(turns, lambda: None)(), read(*where))
        )
    else:
        waits = iter([*[lambda: None] * 2, _thread.interrupt_main])  # the greedy tour, one launch
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
