"""Short requests, and many at once, as a web service makes them."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    ALL_ALGORITHMS,
    GPU2PPLS,
    GPUMMAS,
    TSP,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    solve,
)
from pymoo_gpuaco.backends.cuda.windows import tours_that_evolve
from pymoo_gpuaco.problems.tsp import with_missing
from pymoo_gpuaco.runtime import threads as threads_module
from pymoo_gpuaco.runtime.background import interruptible
from pymoo_gpuaco.runtime.threads import (
    parallel_for,
    processor_share,
    run_in_progress,
    thread_count,
    thread_share,
)
from pymoo_gpuaco.solving import Solution

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


def test_a_run_with_a_time_limit_plans_by_its_share_of_the_time(monkeypatch):
    monkeypatch.setattr(threads_module, "_in_progress", {})
    alone = tours_that_evolve(40.0, 2000, 4, 1000)
    monkeypatch.setattr(threads_module, "_in_progress", dict.fromkeys(range(4)))
    assert processor_share(4, 1e-4) <= 0.25
    assert tours_that_evolve(40.0, 2000, 4, 1000) < alone == tours_that_evolve(160.0, 2000, 4, 1000)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_counts_no_runs_of_its_parent():
    with run_in_progress(None):
        child = os.fork()
        if child == 0:
            os._exit(len(threads_module._in_progress))
    assert os.waitpid(child, 0)[1] == 0


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


def test_a_solution_says_what_happened():
    """Nine places on a circle of radius 1: the shortest tour has nine chords of 40 degrees."""
    angle = np.arange(9) * 2.0 * np.pi / 9.0
    circle = TSP(np.stack([np.cos(angle), np.sin(angle)], axis=1), names=list("abcdefghi"))
    found = solve(circle, 60.0)
    assert found.length == pytest.approx(18.0 * np.sin(np.pi / 9.0))
    assert found.proven
    assert (found.gap, found.violations) == (0.0, 0)
    assert found.reason == f"proof: no tour is shorter than {found.length:.10g}"
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["names"] == ["abcdefghi"[city] for city in facts["tour"]]
    same = ("length", "seconds", "n_eval", "reason", "lower_bound", "proven", "gap", "violations")
    assert facts == {"tour": found.tour.tolist(), "names": facts["names"]} | {
        name: getattr(found, name) for name in same
    }
    assert pickle.loads(pickle.dumps(found)).to_dict() == found.to_dict()


def test_a_solution_without_a_proof_has_no_gap_and_counts_violations(clock):
    square = [(0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (1.0, 0.0)]
    coords = np.array([(x + 3 * i, y) for i in range(4) for x, y in square])
    found = solve(
        coords,
        algorithm=GPUMMAS(
            n_ants=16, backend="cpu", termination=("n_gen", 3), callback=lambda _: clock.step(2.0)
        ),
    )
    assert (found.seconds, found.n_eval, found.reason) == (6.0, 3 * 16, None)
    assert (found.lower_bound, found.proven, found.gap) == (None, False, None)
    assert Solution(found.tour, 8.0, lower_bound=5.0).gap == pytest.approx(60.0)
    edges = [(city, other) for city in range(16) for other in range(city) if city - other != 1]
    with pytest.warns(UserWarning, match="forbidden"):  # what is left is a path, and no round trip
        broken = solve(
            TSP(coords, forbidden_edges=edges), algorithm=GPUMemetic(backend="cpu", termination=("n_gen", 3))
        )
    assert broken.violations == 1
    assert not broken.proven


def test_a_limit_without_time_to_search_is_said(caplog):
    found = solve(np.random.default_rng(1).random((50, 2)), 1e-9)
    assert found.reason.endswith(" s, no time to search after set-up")
    assert "no time to search" in caplog.text


LINE = np.array([(float(x), 0.0) for x in range(14)])


def _continued(problem: TSP, sampling: object, **options: object) -> Solution:
    """The tour with which a run begins."""
    return solve(
        problem, algorithm=GPUMemetic(backend="cpu", termination=("n_gen", 1)), sampling=sampling, **options
    )


@pytest.mark.parametrize("kind", ["positions", "names", "array", "solution"])
def test_a_known_tour_begins_a_run(kind):
    """The long way: even places onward, 7 and 9 exchanged, and odd ones back."""
    tour = [0, 2, 4, 6, 8, 10, 12, 13, 11, 7, 9, 5, 3, 1]
    problem = TSP(LINE, names=[f"p{x}" for x in range(14)])
    known = {
        "positions": tour,
        "names": [f"p{x}" for x in tour],
        "array": np.array([tour]),
        "solution": Solution(np.array(tour), 30.0, problem),
    }[kind]
    assert _continued(problem, known).length == 12 + 1 + 2 + 4 + 2 + 4 + 2 + 2 + 1


def test_new_stops_are_inserted_where_they_are_cheapest_and_old_ones_left_out():
    names = [f"p{x}" for x in range(14)]
    few = TSP(LINE[:13], names=names[:13])
    tour = np.array([0, 2, 4, 6, 8, 10, 12, 11, 7, 9, 5, 3, 1])
    known = Solution(tour, 28.0, few)
    more = _continued(TSP(LINE, names=names), known)  # 13 costs 2 on both sides of 12
    assert more.length == 12 + 1 + 4 + 2 + 4 + 2 + 2 + 1 + 2
    less = _continued(
        TSP(np.delete(LINE[:13], 8, 0)), Solution(tour, 28.0, TSP(LINE[:13]))
    )  # known by coordinates
    assert less.length == 12 + 1 + 4 + 2 + 4 + 2 + 2 + 1
    path = OpenPath(LINE, start=0)
    assert _continued(path, [0, 2, 1, 3]).tour.tolist() == [0, 2, 1, *range(3, 14)]
    assert _continued(OpenPath(LINE, start=5, end=7), [5, 6, 7]).violations == 0
    assert with_missing(OpenPath(LINE, end=13), np.array([5, 13])).tolist() == [*range(14)]


def test_a_known_tour_of_other_cities_is_refused():
    matrix = np.random.default_rng(0).random((15, 15))
    with pytest.raises(ValueError, match=r"15 cities, the problem 14, .*give a tour of positions"):
        solve(matrix[:14, :14], 1.0, matrix=True, sampling=Solution(np.arange(15), 1.0, TSP(matrix=matrix)))
    for wrong in ([1, 2, 1], []):
        with pytest.raises(ValueError, match="sampling must visit one or more cities, each once"):
            solve(LINE, 1.0, sampling=wrong)
    with pytest.raises(ValueError, match=r"sampling must be an integer in \[0, 13\], got 14"):
        solve(LINE, 1.0, sampling=[0, 14])
