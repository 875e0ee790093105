"""Short requests, and many at once, as a web service makes them."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    ALL_ALGORITHMS,
    GPU2PPLS,
    TSP,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    solve,
)
from pymoo_gpuaco.runtime import threads as threads_module
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.threads import parallel_for, run_in_progress, thread_count, thread_share

N = 60


def _problem(kind: str) -> TSP:
    random = np.random.default_rng(7)
    coords = random.random((N, 2)) * 1000.0
    if kind == "closed":
        return TSP(coords)
    if kind == "fixed edges":
        return TSP(coords, fixed_edges=[(3, 4), (4, 5), (20, 50)], forbidden_edges=[(0, 1)])
    roads = np.hypot(*(coords[:, None] - coords[None]).T) * random.uniform(1.0, 1.4, (N, N))
    if kind == "asymmetric":
        return TSP(matrix=roads)
    if kind == "precedence":
        return TSP(matrix=roads, precedence=[(city, city + 1) for city in range(1, N - 1, 4)])
    return OpenPath(matrix=roads, start=0)


@pytest.mark.parametrize("kind", ["closed", "fixed edges", "asymmetric", "path", "precedence"])
def test_a_run_without_time_ends_with_an_improved_tour(kind):
    """A greedy tour is 17 to 32 % longer than the best one, a local optimum 5 %, of paths with precedence 10 %."""
    problem = _problem(kind)
    best = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 40), seed=1)
    tour, length = solve(problem, 1e-9, algorithm=GPUMemetic(backend="cpu"))
    assert length == pytest.approx(problem.tour_length(tour))
    assert not problem.violations(tour[None]).any()
    assert length <= (1.1 if kind == "precedence" else 1.06) * best.F[0]


def _alone_or_at_once(cls: type, n_runs: int) -> list[bytes]:
    """States after four generations of runs with seed 1, which begin at once."""
    coords = np.random.default_rng(3).random((40, 2)) * 1000.0
    several = cls.__name__ == "GPU2PPLS"
    begin = threading.Barrier(n_runs)

    def run(_: int) -> bytes:
        problem = MultiObjectiveTSP([coords, coords[::-1]]) if several else TSP(coords)
        begin.wait(60.0)
        result = minimize(problem, cls(backend="cpu"), ("n_gen", 4), seed=1)
        state = result.algorithm.engine.export_state()
        return b"".join(np.ascontiguousarray(state[name]).tobytes() for name in sorted(state))

    with ThreadPoolExecutor(n_runs) as pool:
        return list(pool.map(run, range(n_runs)))


@pytest.mark.parametrize("cls", [*ALL_ALGORITHMS.values(), GPU2PPLS])
def test_eight_runs_at_once_have_the_tours_of_one_alone(cls, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "6")
    (alone,) = _alone_or_at_once(cls, 1)
    assert set(_alone_or_at_once(cls, 8)) == {alone}


@pytest.mark.parametrize(("runs", "share"), [(0, 8), (1, 8), (2, 4), (3, 2), (4, 2), (5, 1), (9, 1)])
def test_runs_in_progress_share_the_threads_of_the_process(runs, share, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "8")
    monkeypatch.setattr(threads_module, "_in_progress", dict.fromkeys(range(runs)))
    assert (thread_count(), thread_share()) == (8, share)
    parts: list[int] = []
    parallel_for(lambda part, *_: parts.append(part), 100, 8)
    assert sorted(parts) == list(range(share))


def test_a_run_counts_once_until_it_ends_and_also_in_its_background_threads():
    assert not threads_module._in_progress
    with contextlib.suppress(KeyError), run_in_progress(3):
        with run_in_progress(5):
            assert interruptible(thread_count) == 5
            assert len(threads_module._in_progress) == 1
        assert interruptible(thread_count) == thread_count() == 3
        assert len(threads_module._in_progress) == 1
        raise KeyError
    assert not threads_module._in_progress


def test_runs_at_once_do_not_wait_for_threads_of_each_other(monkeypatch):
    """On one core three runs have a thread each: every part waits for the other two."""
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1")
    meeting, ended = threading.Barrier(3), []

    def run(_: int) -> None:
        with run_in_progress(None):
            meeting.wait(60.0)
            stop = np.zeros(1, np.uint8)
            parallel_for(lambda *_: ended.append(meeting.wait(60.0)), 5, 1, stop, time.monotonic() + 600.0)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))
    assert sorted(ended) == [0, 1, 2]


def test_threads_of_a_run_shape_it(monkeypatch):
    """Without a time limit the population has a tour a thread."""
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "7")
    coords, found = np.random.default_rng(0).random((30, 2)), {}
    for threads in (None, 3, 7):
        algorithm = GPUMemetic(backend="cpu", threads=threads).setup(
            TSP(coords), termination=("n_gen", 3), seed=1
        )
        assert algorithm.engine.n_tours == (threads or 7)
        found[threads] = algorithm.run().pop.get("X").tobytes()
    assert found[None] == found[7]
    seen: list[int] = []
    solve(
        coords,
        algorithm=GPUMemetic(
            backend="cpu", termination=("n_gen", 1), callback=lambda _: seen.append(thread_count())
        ),
        threads=3,
    )
    assert seen == [3]
    for wrong, error in ((0, ValueError), (1025, ValueError), (1.5, TypeError), ("2", TypeError)):
        with pytest.raises(error, match="threads"):
            solve(coords, 1.0, threads=wrong)
