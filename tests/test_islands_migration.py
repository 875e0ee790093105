"""Migration without any worker: which tours travel, what an island and its engine do with them, and who waits."""

import asyncio
import math
import os
import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, GPUMemetic, MultiObjectiveTSP
from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.backends.protocol import Migrates
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.islands import archipelago as archipelago_module
from pymoo_gpuaco.islands import island as island_module
from pymoo_gpuaco.islands.archipelago import Archipelago
from pymoo_gpuaco.islands.cluster import pickled
from pymoo_gpuaco.islands.island import (
    Island,
    Migrants,
    Order,
    Report,
    Start,
    no_migrants,
    shortest,
)
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.problems import OpenPath
from tests.algorithm_cases import cities
from tests.eax_cases import good_tours
from tests.engine_cases import BACKENDS, asymmetric, cloud, memetic
from tests.islands_cases import colony

# ---- which tours travel


def test_the_shortest_migrants_wait_in_the_order_in_which_they_came(monkeypatch):
    tours = np.arange(5, dtype=np.int32)[:, None] + np.zeros((5, 4), np.int32)
    given = Migrants(tours, np.array([[5.0], [1.0], [4.0], [2.0], [3.0]]))
    assert shortest(given) is given
    monkeypatch.setattr(island_module, "MOST_MIGRANTS", 3)
    assert shortest(given).tours[:, 0].tolist() == [1, 3, 4]
    monkeypatch.setattr(island_module, "MOST_CITIES", 8)  # two tours a message
    assert shortest(given).values.ravel().tolist() == [1.0, 2.0]


# ---- the client loop


def loop(n_islands=2, topology="all", deterministic=False, interval=1.0, problem=None):
    problem = problem or cities(12)
    return Archipelago(listed_instance(problem, 1), b"", 5, (interval, topology, deterministic), n_islands)


@pytest.mark.parametrize(
    ("deterministic", "left", "given", "pace"),
    [
        (True, None, (0.5, 4, 10.0), 0.5 / (4 * 3)),  # half of the run in 4 rounds of 3 generations
        (True, None, (0.0, 0, 0.0), 0.0),
        (False, None, (0.5, 4, 10.0), 0.05),  # and in 10 seconds
        (False, 20.0, (0.5, 4, 10.0), 0.025),  # the other half is known to take 20
        (False, None, (math.nan, 4, 10.0), 0.0),
    ],
)
def test_a_round_is_given_the_progress_of_the_run_when_it_is_sent(
    monkeypatch, deterministic, left, given, pace
):
    now = [100.0]
    monkeypatch.setattr(archipelago_module.time, "monotonic", lambda: now[0])
    engine = loop(deterministic=deterministic, interval=3)
    engine.stop_at(None if left is None else 100.0 + left)
    engine.expect(*given)
    now[0] = 104.0
    order = engine._order(engine.members[0])
    assert order.pace == pytest.approx(pace)
    expected = given[0] if deterministic else given[0] + 4.0 * pace  # there clocks decide nothing
    np.testing.assert_allclose(order.progress, expected)
    now[0] = 1e6
    assert not engine._order(engine.members[0]).progress > 1.0


@pytest.mark.parametrize(
    ("topology", "annealed", "expected"),
    [
        ("all", (True, False, False), True),
        ("all", (True, True, True), False),
        ("ring", (True, True, False), True),  # 0 receives from 2
        ("ring", (True, False, True), False),
        ("none", (True, False, False), False),
    ],
)
def test_an_island_whose_annealing_is_over_waits_for_those_it_receives_from(
    monkeypatch, topology, annealed, expected
):
    now = [100.0]
    monkeypatch.setattr(archipelago_module.time, "monotonic", lambda: now[0])
    engine = loop(3, topology)
    for member, over in zip(engine.members, annealed, strict=True):
        report = Report(None, 1.0, no_migrants(12), over, over, True, 1, 2.5, 0, None)
        engine._store(member, report)
    assert engine._waits(engine.members[0]) == expected
    now[0] = 102.6  # as long as its round took
    assert not engine._waits(engine.members[0])
    engine.stop_at(now[0] + 4.0)
    engine._store(engine.members[0], report._replace(annealed=True, awaits_migrants=True))
    assert engine.members[0].waits_until == pytest.approx(now[0] + 0.3 * 4.0)


def test_a_state_comes_back():
    engine = loop(3, deterministic=True)
    member = engine.members[1]
    member.best, member.value, member.round, member.begun = np.arange(12, dtype=np.int32), 1.5, 7, 2
    member.state = b"everything"
    engine.accept(np.arange(12)[None], [1.5])
    other = loop(3, deterministic=True)
    other.import_state(engine.export_state())
    for name, array in engine.export_state().items():
        assert np.array_equal(array, other.export_state()[name]), name
    assert other.members[1].state == b"everything"
    assert other.members[0].best is None
    with pytest.raises(ValueError, match=r"state\['tours'\] must have shape"):
        loop(2).import_state(engine.export_state())


# ---- an island


class Here:
    """An island in this process."""

    def __init__(self, algorithm=None, problem=None, is_dropped=lambda: False, **start):
        self.island = Island(is_dropped)
        payload = pickled((algorithm or colony(), problem or cities(30)))
        begin = {"number": 0, "seed": [1, 0, 0], "state": None, "device": None, "neighbours": 1}
        start = {"version": __version__, "algorithm": payload, **begin, **start}
        self.answer = asyncio.run(self.island.set_up(Start(**start)))

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
        return asyncio.run(self.island.search(Order(**{**given, **order})))


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(island_module, "_shared", None)
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", "2")


def test_an_island_of_another_version_is_refused():
    with pytest.raises(RuntimeError, match=f"a worker has pymoo_gpuaco {__version__}, but the run has 0.0"):
        Here(version="0.0")


@pytest.mark.parametrize(
    ("progress", "pace", "last"), [(0.5, 0.25, 0.75), (0.9, 0.25, 1.0), (np.nan, 0.0, np.nan)]
)
def test_an_algorithm_follows_the_progress_of_the_run(progress, pace, last):
    here = Here()
    assert here.search(progress=progress, pace=pace).built == 2 * 4
    np.testing.assert_equal(here.island.algorithm.termination.spent, last)  # in the second of two generations


def test_migrants_are_taken_in_and_the_state_goes_on_elsewhere():
    best = minimize(cities(30), GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1)
    migrants = Migrants(best.X.astype(np.int32)[None], best.F[None])
    here = Here()
    first = here.search(migrants)
    assert first.value == best.F[0]
    assert np.array_equal(first.best, best.X)
    assert len(first.emigrants.tours) == 0  # the others know it
    there = Here(state=first.state)
    states = [pickle.loads(one.search().state) for one in (here, there)]
    assert states[0].random_state.random() == states[1].random_state.random()
    for name, array in states[0]._engine_state.items():
        assert np.array_equal(array, states[1]._engine_state[name]), name
    assert np.array_equal(states[0].exchanged, states[1].exchanged)


def test_a_round_ends_at_the_target_or_when_the_island_is_dropped():
    long = {"deterministic": False, "interval": 3600.0}
    assert Here().search(target=1e9, **long).built == 4
    assert Here(is_dropped=lambda: True).search(**long).built == 4


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
    monkeypatch.setattr(island_module, "MOST_CITIES", 30 * 25)
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
        problem = cloud(300, 4)
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

    def test_a_state_goes_on_with_its_migrants(self):
        problem = cloud(200, 8)
        engine, migrants = annealed(exchanging(problem)), annealed(exchanging(problem)).emigrants(9)
        engine.immigrate(*migrants)
        twin = exchanging(problem)
        twin.import_state(engine.export_state())
        assert twin.awaits_migrants
        for one in (engine, twin):
            one.search(7)
        first, second = engine.export_state(), twin.export_state()
        assert all(np.array_equal(first[name], second[name]) for name in first)

    @pytest.mark.parametrize("problem", [asymmetric(30), OpenPath(np.random.default_rng(1).random((40, 2)))])
    def test_other_kinds_of_tours_travel_as_tours_of_the_problem(self, problem):
        engine, other = (annealed(exchanging(problem)) for _ in "ab")
        tours, lengths = other.emigrants(9)
        assert lengths == pytest.approx([problem.tour_length(tour) for tour in tours])
        engine.immigrate(tours, lengths)
        engine.search(5)
        tours, lengths = engine.best_tours(9)
        assert lengths == pytest.approx([problem.tour_length(tour) for tour in tours])
