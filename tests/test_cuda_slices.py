"""Long generations of CUDA engines are cut into launches, which changes no tour, and end early. On the host."""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable

import numpy as np
import pytest

from pymoo_gpuaco import GPUAS, GPUMMAS, GPU2OptIHC, LocalSearch
from pymoo_gpuaco.backends.cuda import engine as plans
from pymoo_gpuaco.backends.cuda import local_search as batch_improver
from pymoo_gpuaco.backends.cuda.device import DeviceLimits
from pymoo_gpuaco.backends.cuda.engine import CudaColony, Slices, default_ants, slices
from pymoo_gpuaco.backends.protocol import Stoppable
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.runtime.philox import fold_in
from tests import fake_device
from tests.engine_cases import COLONIES, asymmetric, climbers, cloud, colony, instance_for
from tests.stop_cases import (
    CUT,
    HOURS,
    STILL,
    TOGETHER,
    M,
    N,
    cut,
    device,
    engine_of,
    every_way,
    whole,
)

__all__ = ["cut", "device"]  # fixtures


def test_what_is_cut_by_hand():
    walk = ColonyParameters()
    # 2^31 steps are 178,956 ants of 12,000 cities
    assert slices(12_000, 200_000, walk, False) == Slices(178_956, (0,))
    assert slices(12_000, 170_000, walk, False) == Slices(170_000, (0,))
    assert slices(12_000, 200_000, walk, True) == Slices(200_000, (0,))
    # of all cities a step weighs 32 at a time: 1000 * 32 an ant
    everyone = ColonyParameters(candidate_list_size=None)
    assert slices(1000, 100_000, everyone, False) == Slices(67_108, (0,))
    # 10 * 4000 kicks are two launches of 2^14, and one of 7232; the ants of a launch are the fewest there may be
    kicked = ColonyParameters(local_search=LocalSearch(kicks=10.0))
    assert slices(4000, 5000, kicked, False) == Slices(4096, (16384, 16384, 7232))
    assert slices(1000, 5000, ColonyParameters(local_search=LocalSearch(kicks=0.0)), False) == Slices(
        5000, (0,)
    )
    # a kick a city where direction counts: 3000 * (1 + 13 + 128) steps an ant
    usual = ColonyParameters(local_search=LocalSearch())
    assert slices(3000, 6000, usual, False, symmetric=False) == Slices(5041, (3000,))
    assert slices(20_000, 6000, usual, False, symmetric=False) == Slices(4096, (16384, 3616))


@pytest.mark.parametrize("n", [8, 1000, 30_000, 1_000_000])
@pytest.mark.parametrize("search", [{}, {"local_search": LocalSearch()}, {"searched_elsewhere": True}])
def test_the_usual_colony_is_not_cut(n, search):
    parameters = ColonyParameters(**search)
    m = default_ants(n, parameters, DeviceLimits(148, 64, 227 << 10, 1 << 16, 228 << 10))
    if search:
        assert m == 148 * (32 if n <= 6000 and "local_search" in search else 6)
    cut = slices(n, m, parameters, False)
    assert cut.ants >= m
    assert len(cut.kicks) == 1


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("way", STILL)
def test_each_launch_builds_what_a_colony_of_its_own_would(way):
    engine = engine_of(way)
    assert isinstance(engine, Stoppable)
    tours = whole(engine, engine.construct(9))
    turns = 7 if way == "kicks" else 1  # 33 kicks, five at a time
    keys = [fold_in(9, number) for number in range(3 * turns)]
    assert keys[0] == 9
    assert len(set(keys)) == 3 * turns
    for number, (first, end) in enumerate([(0, 3), (3, 6), (6, 7)]):
        alone = engine_of(way, end - first)
        alone.construct(fold_in(9, number * turns))
        assert np.array_equal(alone.tours(np.arange(end - first)), tours[first:end])


@pytest.mark.usefixtures("cut")
@every_way
def test_time_enough_changes_nothing(way):
    engine, other = engine_of(way), engine_of(way)
    engine.stop_at(time.monotonic() + HOURS)
    for key in range(2):
        lengths = engine.construct(key)
        assert np.array_equal(lengths, other.construct(key))
        assert np.array_equal(whole(engine, lengths), other.tours(np.arange(M)))
        assert engine.n_built == M


@pytest.mark.usefixtures("cut")
def test_asymmetric_tours_are_cut_between_their_kicks():
    problem = asymmetric(N)

    def engine() -> CudaColony:
        return colony(problem, "cuda", n_ants=M, local_search=LocalSearch())

    first, other, late = engine(), engine(), engine()
    first.stop_at(time.monotonic() + HOURS)
    assert np.array_equal(first.construct(1), other.construct(1))
    late.stop_at(time.monotonic() - 1.0)
    lengths = late.construct(1)
    assert np.array_equal(lengths, problem.tour_lengths(late.tours(np.arange(M))))
    assert late.n_built == TOGETHER
    # the first ants had the first of seven launches of kicks
    assert (lengths[:TOGETHER] >= other.lengths()[:TOGETHER]).all()
    assert lengths[:TOGETHER].mean() > other.lengths()[:TOGETHER].mean()


@pytest.mark.usefixtures("device")
def test_window_search_is_cut_between_its_rounds(monkeypatch):
    monkeypatch.setattr(batch_improver, "_TOURS_AT_ONCE", 1)

    def engine() -> CudaColony:
        return colony(cloud(N), "cuda", n_ants=M, local_search=LocalSearch("windows", kicks=0.3))

    first, other, late, plain = (
        engine(),
        engine(),
        engine(),
        colony(cloud(N), "cuda", n_ants=M, local_search=LocalSearch()),
    )
    first.stop_at(time.monotonic() + HOURS)
    assert np.array_equal(first.construct(1), other.construct(1))
    rounds: list[int] = []
    windows = late._search._windows
    search = windows.search
    monkeypatch.setattr(windows, "search", lambda key, how: (rounds.append(key), search(key, how)))
    late.stop_at(time.monotonic() - 1.0)
    tours = whole(late, late.construct(1))
    assert len(rounds) == batch_improver.ROUNDS_AT_ONCE < len(late._search._rounds)
    assert late.n_built == M
    lengths = cloud(N).tour_lengths(tours)
    assert (lengths <= plain.construct(1)).all()  # what 2-opt and Or-opt have left
    assert lengths.sum() >= other.lengths().sum()


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("way", CUT)
def test_without_time_the_first_ants_count_and_the_others_take_the_best_of_them(way):
    engine, other = engine_of(way), engine_of(way)
    engine.stop_at(time.monotonic() - 1.0)
    tours = whole(engine, engine.construct(1))
    assert engine.n_built == TOGETHER
    lengths = cloud(N).tour_lengths(tours)
    best = int(lengths[:TOGETHER].argmin())
    assert (tours[TOGETHER:] == tours[best]).all()
    if way in STILL and way != "kicks":
        other.construct(1)
        assert np.array_equal(tours[:TOGETHER], other.tours(np.arange(TOGETHER)))
    # the next construction, with time, is as if that one had not been made
    engine.stop_at(None)
    if way in STILL:
        engine, other = engine_of(way), engine_of(way)
        engine.stop_at(time.monotonic() - 1.0)
        engine.construct(1)
        state = {**other.export_state(), "reference": engine.export_state()["reference"]}
        state["reference_length"] = engine.export_state()["reference_length"]
        other.import_state(state)  # what the search remembers of the shortest tour
        engine.stop_at(None)
        assert np.array_equal(engine.construct(2), other.construct(2))
    else:
        whole(engine, engine.construct(2))
    assert engine.n_built == M


@pytest.mark.parametrize("n", [40, 2500])
@every_way
def test_launches_of_a_few_of_many_ants_fit_their_kernels(way, n, monkeypatch):
    if n > 1000 and COLONIES[way].get("candidate_list_size", 0) is None:
        pytest.skip("tables of all pairs of cities take long")
    driver = fake_device.install(monkeypatch)  # a device of 132 multiprocessors
    monkeypatch.setattr(plans, "STEPS", 1)
    monkeypatch.setattr(plans, "FEWEST_ANTS", 150)
    chosen = ColonyParameters(**{**COLONIES[way], "n_ants": 301})
    engine = CudaColony(instance_for(cloud(n), chosen), chosen)
    before = driver.launches
    engine.construct(1)
    walks = 1 if way == "acs sync" else 3
    assert driver.launches - before > walks
    assert engine.n_built == 301


# ---- interrupts


@pytest.mark.parametrize("way", ["rwm", "2opt", "kicks", "all cities", "acs sync", "acs relaxed"])
@pytest.mark.parametrize("wait", [0, 2])
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
def test_climbers_do_less_where_time_is_short():
    engine, other = (climbers(cloud(50), "cuda") for _ in range(2))
    assert isinstance(engine, Stoppable)
    engine.stop_at(time.monotonic() + HOURS)
    assert engine.climb(1) == other.climb(1)
    assert np.array_equal(engine.best()[0], other.best()[0])
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
