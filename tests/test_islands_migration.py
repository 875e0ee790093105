"""Migration without any worker: tours and members of fronts that travel, what islands do with them, and who waits."""

from __future__ import annotations

import _thread
import math
import os
from types import SimpleNamespace

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, GPUMemetic, MultiObjectiveTSP
from pymoo_gpuaco.backends.protocol import Migrates
from pymoo_gpuaco.islands import island as island_module
from pymoo_gpuaco.islands.archipelago import Archipelago, FrontArchipelago
from pymoo_gpuaco.islands.cluster import pickled
from pymoo_gpuaco.islands.island import (
    Island,
    Migrants,
    RoundReport,
    RoundRequest,
    SetUpRequest,
    no_migrants,
)
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.pareto.archive import FrontShare
from pymoo_gpuaco.runtime.stop import end_on_interrupt
from tests.algorithm_cases import cities, run_to_end
from tests.eax_cases import good_tours
from tests.engine_cases import BACKENDS, cloud, memetic
from tests.instances import front_instance, listed_instance
from tests.islands_cases import colony

# ---- the client loop


def loop(n_islands=2, topology="all", deterministic=False, interval=1.0, problem=None):
    problem = problem or cities(12)
    return Archipelago(listed_instance(problem, 1), b"", 5, (interval, topology, deterministic), n_islands)


def test_a_round_is_given_the_progress_of_the_run_and_its_pace(clock):
    engine = loop(deterministic=True, interval=3)
    engine.progress = 0.0
    assert engine._request(engine.members[0]).pace == 0.0
    engine.progress, engine.members[0].round = 0.5, 4
    assert engine._request(engine.members[0])[6:8] == (
        0.5,
        0.5 / 12,
    )  # half of the run in 4 rounds of 3 generations
    engine = loop()
    engine.progress = 0.5
    assert engine._request(engine.members[0])[6:8] == (0.5, 0.0)
    engine.stop_at(clock.now + 2000.0)
    assert engine._request(engine.members[0]).pace == pytest.approx(
        0.00025, rel=1e-4
    )  # the other half takes 2000 s


@pytest.mark.parametrize(
    ("topology", "annealed", "expected"),
    [
        ("all", (True, False, False), True),
        ("all", (True, True, True), False),
        ("ring", (True, False, True), True),
    ],
)
def test_an_island_whose_annealing_is_over_waits_for_the_others(clock, topology, annealed, expected):
    engine = loop(3, topology)
    for member, over in zip(engine.members, annealed, strict=True):
        report = RoundReport(no_migrants(12), 1.0, over, over, True, 1, 2.5)
        engine._store(member, report)
    assert engine._waits(engine.members[0]) == expected
    clock.step(2.6)  # as long as its round took
    assert not engine._waits(engine.members[0])
    engine.stop_at(clock.now + 4.0)
    engine._store(engine.members[0], report._replace(annealed=True, awaits_migrants=True))
    assert engine.members[0].waits_until == pytest.approx(clock.now + 0.3 * 4.0)


def test_a_state_comes_back():
    engine = loop(3)
    member = engine.members[1]
    member.best, member.value, member.round, member.begun = np.arange(12, dtype=np.int32), 1.5, 7, 2
    other = loop(3)
    other.import_state(engine.export_state())
    again = other.export_state()
    for name, array in engine.export_state().items():
        assert np.array_equal(array, again[name]), name
    assert other.members[0].best is None
    with pytest.raises(ValueError, match=r"state\['tours'\] must have shape"):
        loop(2).import_state(engine.export_state())


# ---- an island


class Local(Island):
    """An island without a worker of Dask."""

    def __init__(self, name, is_dropped):
        actors = {} if is_dropped else {"island": self}
        self._key, self._worker = "island", SimpleNamespace(name=name, state=SimpleNamespace(actors=actors))


class Here:
    """An island in this process."""

    def __init__(self, algorithm=None, problem=None, is_dropped=False, name="of a cluster", **start):
        self.island = Local(name, is_dropped)
        payload = pickled((algorithm or colony(), problem or cities(30)))
        start = {"number": 0, "seed": [1, 0, 0], "gpus": 0, "neighbours": 1, **start}
        start["algorithm"] = payload
        self.answer = self.island.set_up(SetUpRequest(**start))

    def search(self, migrants=None, n=30, **order):
        given = {
            "migrants": migrants or no_migrants(n),
            "exchanges": True,
            "parts": 1,
            "interval": 2,
            "deterministic": True,
            "left": math.inf,
            "progress": math.nan,
            "pace": 0.0,
            "target": -math.inf,
        }
        return self.island.search(RoundRequest(**{**given, **order}))


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(island_module, "_shared", None)
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "2")


@pytest.mark.parametrize(
    ("progress", "pace", "last"), [(0.5, 0.25, 0.75), (0.9, 0.25, 1.0), (np.nan, 0.0, np.nan)]
)
def test_an_algorithm_follows_the_progress_of_the_run(progress, pace, last):
    here = Here()
    assert here.search(progress=progress, pace=pace).built == 2 * 4
    np.testing.assert_equal(here.island.algorithm.termination.spent, last)  # in the second of two generations


def test_migrants_are_taken_in():
    best = minimize(cities(30), GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1)
    report = Here().search(Migrants(best.X.astype(np.int32)[None], best.F[None]))
    assert report.value == best.F[0]
    assert np.array_equal(report.tours.tours, [best.X])  # and no emigrants: the others know it


def test_a_round_ends_at_the_target_or_when_the_island_is_dropped():
    long = {"deterministic": False, "interval": 3600.0}
    assert Here().search(target=1e9, **long).built == 4
    assert Here(is_dropped=True).search(**long).built == 4


def test_an_island_uses_the_gpu_of_its_local_worker():
    assert Here(gpus=2, name=3).island.algorithm.device == 1
    assert Here(name="of a cluster").island.algorithm.device == 0


def test_islands_of_one_host_share_its_cores_unless_the_number_of_threads_is_given(monkeypatch):
    Here(neighbours=2)
    assert os.environ["PYMOO_GPUACO_THREADS"] == "2"
    monkeypatch.delenv("PYMOO_GPUACO_THREADS")
    monkeypatch.setattr(island_module, "thread_count", lambda: 8)
    for neighbours, threads in ((3, "2"), (2, "4")):
        Here(neighbours=neighbours)
        assert os.environ["PYMOO_GPUACO_THREADS"] == threads


def test_an_island_of_a_front_sends_each_member_once_and_no_more_than_a_message_holds(monkeypatch):
    problem = MultiObjectiveTSP(list(np.random.default_rng(0).random((2, 25, 2))))
    monkeypatch.setattr(island_module, "CITIES_A_MESSAGE", 30 * 25)
    here = Here(GPU2PPLS(backend="cpu"), problem)
    engine = here.island.algorithm.engine
    for key in range(12):
        engine.search(key)
    members = len(engine.archive.front)
    assert members > 40
    sent = [here.island._emigrants().tours for _ in range(9)]
    assert [len(rows) for rows in sent[:2]] == [30, min(30, members - 30)]
    lengths = engine.instance.lengths(np.concatenate(sent))
    assert np.array_equal(np.unique(lengths, axis=0), engine.archive.points)
    assert len(lengths) == members


# ---- engines that exchange


def exchanging(problem, backend="cpu", m=FEWEST_TO_EVOLVE):
    engine = memetic(problem, backend, m)
    engine.exchanges = True
    return engine


def annealed(engine, rounds=20, seed=0):
    """Search until evolution is due."""
    for key in range(rounds):
        engine.expect(key / rounds)
        engine.search(1000 * seed + key)
        if engine.awaits_migrants:
            return engine
    raise AssertionError("annealing was never over")


@pytest.mark.usefixtures("few_kicks")
class TestEngines:
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_many_tours_evolve_among_migrants_when_all_annealing_is_over(self, backend):
        problem = cloud(500, 4)
        engine, alone, other = (
            annealed(exchanging(problem, backend, None if backend == "cuda" else 8), seed=seed)
            for seed in (0, 0, 1)
        )
        assert isinstance(engine, Migrates)
        before, made = engine.best_tours(200), engine.n_trials
        tours, lengths = other.emigrants(200)
        assert len(tours) > 1
        assert np.array_equal(problem.tour_lengths(tours), lengths)
        engine.immigrate(tours[::-1], lengths[::-1])
        assert engine.n_trials == made
        for one in (engine, alone):
            one.expect(0.9)
            one.search(50)
            assert not one.awaits_migrants
            assert one.annealed
        after = engine.best_tours(200)[1]
        assert after.max() <= before[1].max()
        assert after[0] <= min(before[1][0], lengths[0])
        assert not np.array_equal(engine.best_tours(200)[0], alone.best_tours(200)[0])

    @pytest.mark.parametrize(
        ("m", "end", "expected"), [(2, None, {1}), (8, None, {1}), (2, 4000, {1}), (8, 4000, {0})]
    )
    def test_before_that_the_best_tour_travels(self, m, end, expected):
        """Many tours, of which it is known when they will evolve, stay different until then."""
        engine, sent = exchanging(cloud(60, 7), m=m), []
        for key in range(10):
            engine.expect(np.nan if end is None else key / end)
            engine.search(key)
            sent.append(len(engine.emigrants(9)[0]))
        assert set(sent) == expected

    def test_a_migrant_is_merged_with_the_best_at_once_and_replaces_no_tour(self):
        problem = cloud(200, 3)
        engine = exchanging(problem)
        engine.expect(0.1)
        engine.search(1)
        own = engine.lengths
        best = good_tours(problem, 1, 3)
        engine.immigrate(best, problem.tour_lengths(best))
        assert engine.best_tours(1)[1][0] <= problem.tour_lengths(best)[0]
        assert np.array_equal(engine.lengths, own)


def problem_of(n=25, k=2):
    return MultiObjectiveTSP(list(np.random.default_rng(0).random((k, n, 2))))


def archipelago(topology="all", n_islands=2):
    """The client loop of a run with some tours, and without any worker."""
    engine = FrontArchipelago(
        front_instance(problem_of(), 3),
        100,
        algorithm=b"",
        key=1,
        rules=(1.0, topology, False),
        n_islands=n_islands,
    )
    engine.accept(np.array([np.random.default_rng(seed).permutation(25) for seed in range(40)]))
    return engine


def test_an_interrupt_leaves_no_report_half_taken_in(monkeypatch):
    engine = archipelago()
    update_front = engine.archive._update_front
    waiting = len(engine.members[1].inbox.tours)

    def interrupted(first):
        _thread.interrupt_main()
        update_front(first)

    monkeypatch.setattr(engine.archive, "_update_front", interrupted)
    starts = engine.instance.starts  # greedy tours, which join the front of random ones
    emigrants = Migrants(starts, engine.instance.lengths(starts))
    report = RoundReport(emigrants, 2.0, False, True, True, 2, 0.1)
    monkeypatch.setattr(engine, "_ask", lambda *_, **__: None)
    monkeypatch.setattr(engine, "_wait", lambda: [(engine.members[0], report)])
    with pytest.raises(KeyboardInterrupt):
        end_on_interrupt(engine.collect, engine.stop)
    lengths = engine.instance.lengths(engine.archive.tours[engine.archive.front])
    assert np.array_equal(lengths, engine.archive.points)
    assert set(map(bytes, engine.instance.lengths(starts))) <= set(map(bytes, engine.archive.points))
    assert len(engine.members[1].inbox.tours) == waiting + 2


@pytest.mark.parametrize("reports", [0, 1])
def test_an_interrupt_ends_the_wait_and_keeps_what_was_reported(monkeypatch, reports):
    engine = loop(deterministic=True)
    best = Migrants(np.arange(12, dtype=np.int32)[None], np.array([[1.5]]))
    answers = [(engine.members[0], RoundReport(best, 1.5, False, True, True, 1, 0.1))] * reports

    def wait():
        _thread.interrupt_main()
        return [answers.pop()] if answers else []

    monkeypatch.setattr(engine, "_ask", lambda *_, **__: None)
    monkeypatch.setattr(engine, "_wait", wait)
    with pytest.raises(KeyboardInterrupt):
        end_on_interrupt(engine.construct, engine.stop)
    assert not engine.stop.interrupted
    assert engine.values == ([1.5, math.inf] if reports else [math.inf] * 2)
    assert [member.best is not None for member in engine.members] == [bool(reports), False]


def test_a_state_is_of_as_many_islands():
    state = archipelago().export_state()
    other = archipelago(n_islands=3)
    before = other.archive.points
    with pytest.raises(ValueError, match="tours"):
        other.import_state(state)
    assert np.array_equal(other.archive.points, before)
    same = archipelago()
    same.archive.add(np.arange(25)[None], np.array([[1.0, 1.0]]))
    same.import_state(state)
    assert np.array_equal(same.archive.points, archipelago().archive.points)


def test_a_search_of_a_part_leaves_the_others_tours_alone():
    problem = problem_of()
    algorithm = GPU2PPLS(backend="cpu").setup(problem, termination=("n_gen", 12), seed=1)
    engine = algorithm.engine
    engine.divide(0, 2)
    run_to_end(algorithm)
    archive = engine.archive
    explored = archive.explored[: archive.count] > 0
    assert explored.any()
    assert not (explored & ~FrontShare(0, 2).has(archive.lengths[: archive.count])).any()
