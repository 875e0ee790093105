"""Node penalties in window search: what they are, when windows begin to count them, and what that leaves alone.

The kernels run on the host.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import search_device
from pymoo_gpuaco.backends.cuda.windows import Trials
from pymoo_gpuaco.candidates.ascent import ascend
from pymoo_gpuaco.candidates.lists import lists
from pymoo_gpuaco.memetic import penalties as module
from pymoo_gpuaco.memetic.parameters import MOST_CANDIDATES as NEAR
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.penalties import PenalisedCandidates, penalised_lists
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.memetic.units import float_units
from pymoo_gpuaco.problems import TSP
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.test_windows_search import applied, nearest_neighbour_tours
from tests.tour_cases import edges_of
from tests.windows_cases import device_of, each, emulated, search

__all__ = ["emulated"]  # a fixture

N, ROUNDS = 200, 4  # rounds of a generation; a look at the lists comes before every four


@pytest.fixture
def later(emulated, monkeypatch):
    """Engines whose lists are due after five rounds."""
    monkeypatch.setattr(search_device, "ROUNDS", ROUNDS)
    monkeypatch.setattr(module, "CITIES_PER_ROUND", 40)
    monkeypatch.setattr(module, "FEW_KICKS_FROM", N)

    def make(candidates: str = "auto") -> MemeticSearch:
        parameters = MemeticParameters(n_windows=2, candidates=candidates)
        return MemeticSearch(search_device.CudaWindows(listed_instance(cloud(N, 3), 8), parameters))

    return make


def lists_of(instance, iterations=None) -> PenalisedCandidates:
    return penalised_lists(instance, NEAR, float_units(instance), iterations)


@pytest.mark.parametrize("metric", ["EUC_2D", "EXACT"])
def test_penalties_are_whole_units_of_what_single_cities_are_moved_by(metric):
    instance = listed_instance(cloud(120, 2, metric), 8)
    found = lists_of(instance)
    ascent = ascend(instance, *lists(instance, "quadrant", 2 * NEAR), bound=False)
    expected = (ascent.pi - ascent.shared) * float_units(instance)
    assert np.abs(found.penalties - expected).max() <= 0.5
    assert np.array_equal(found.penalties, np.rint(found.penalties))
    assert found.penalties.any()
    assert np.array_equal(found.near, lists(instance, "alpha", NEAR).ids)


def test_cities_far_out_have_the_largest_penalty_that_is_exact(monkeypatch):
    monkeypatch.setattr(module, "MOST_PENALTY", 3.0)
    penalties = lists_of(listed_instance(cloud(120, 2), 8)).penalties
    assert np.abs(penalties).max() == 3.0


def test_few_cities_and_matrices_have_penalties_too():
    for problem in (cloud(8), TSP(matrix=cloud(30).D), TSP(np.zeros((20, 2)), "EUC_2D")):
        found = lists_of(listed_instance(problem, 7), 50)
        assert found.near.shape == (problem.n_cities, min(NEAR, problem.n_cities - 1))
        assert np.isfinite(found.penalties).all()


@pytest.mark.parametrize("problem", [cloud(300, 4), cloud(270, 5, "EXACT")], ids=["whole", "fractions"])
def test_what_windows_hand_out_is_as_much_shorter_as_without_penalties(problem, emulated):
    device = device_of(problem, 2, 4)
    penalties = np.random.default_rng(1).integers(-20, 20, problem.n_cities).astype(np.float32)
    rows, found = nearest_neighbour_tours(problem, 2), []
    for given in (np.zeros_like(penalties), penalties):
        with device.working():
            device.windows.use(device.windows.lists._replace(penalties=given))
        how = Trials(trials=8, all_queued=True, slack=100.0)
        found.append(search(device.windows, rows, 7, how))
        for tour, exchanges in zip(rows, found[-1], strict=True):
            for one in each(exchanges):
                new = applied(tour, one.removed, one.added)
                gain = problem.tour_length(tour) - problem.tour_length(new)
                assert edges_of(new) != edges_of(tour)
                assert gain >= 0.0
                assert one.rank == pytest.approx(gain, rel=1e-6, abs=1e-6)
    assert not np.array_equal(found[0][0].first, found[1][0].first)


def test_windows_count_penalties_after_as_many_rounds_as_were_planned(later, monkeypatch):
    engine = later()
    used, rounds = [], []
    device, round_ = engine.device, engine._round
    use = device.windows.use
    monkeypatch.setattr(device.windows, "use", lambda lists: (used.append(len(rounds)), use(lists)))
    monkeypatch.setattr(engine, "_round", lambda key: (rounds.append(device.repairs_left), round_(key)))
    for key in range(3):
        engine.search(key)
    assert used == [7]  # the fifth round is one of the last three of the repair, which takes seven
    assert rounds[7] > 0  # every city is searched again
    expected = lists_of(engine.instance, module.trees(N, None))
    held = np.empty(N, np.float32)
    device.device.read(held, "window_penalties")
    assert np.array_equal(held, expected.penalties)
    assert np.array_equal(device.windows.lists.near, expected.near)


@pytest.mark.parametrize(("candidates", "counts"), [("alpha", True), ("quadrant", False), ("nearest", False)])
def test_candidates_that_are_asked_for_are_there_from_the_beginning(candidates, counts, later):
    engine = later(candidates)
    engine.search(1)
    assert ("window_penalties" in engine.device.device.arrays) == counts
    assert np.array_equal(engine.device.windows.lists.near, lists(engine.instance, candidates, NEAR).ids)


@pytest.mark.parametrize("generations", [0, 2])
def test_a_state_goes_on_with_the_lists_that_it_had(generations, later):
    """Whatever lists the engine has that takes it."""
    one, fresh, used = later(), later(), later()
    for key in range(3):
        used.search(100 + key)
    for key in range(generations):
        one.search(key)
    state = one.export_state()
    for engine in (fresh, used):
        engine.import_state(state)
    for key in range(10, 12):
        one.search(key)
        for engine in (fresh, used):
            engine.search(key)
            assert np.array_equal(engine.lengths, one.lengths)
    for engine in (fresh, used):
        after = engine.export_state()
        assert all(np.array_equal(value, after[name]) for name, value in one.export_state().items())


@pytest.mark.parametrize("counts", [[-1, -1], [0, -2], [0], [0, 0, 0]])
def test_a_state_that_is_refused_leaves_the_lists_as_they_are(counts, later):
    engine = later()
    for key in range(3):
        engine.search(key)
    state = engine.export_state()
    assert state["counts"].tolist() == [engine.device.repairs_left, -1]
    with pytest.raises(ValueError, match="counts"):
        engine.import_state({**state, "counts": np.array(counts)})
    assert engine.device.penalties.in_use
    assert all(np.array_equal(state[key], array) for key, array in engine.export_state().items())


def test_a_time_limit_ends_the_wait_for_penalties(later, clock, monkeypatch):
    there, find = threading.Event(), search_device.penalised_lists

    def slowly(*arguments):
        assert there.wait(60.0)
        return find(*arguments)

    monkeypatch.setattr(search_device, "penalised_lists", slowly)
    monkeypatch.setattr(module, "SECONDS", 0.0)
    monkeypatch.setattr(module, "SECONDS_PER_CITY", 0.0)
    engine = later()
    engine.search(0)
    engine.search(1)
    before = engine.lengths
    clock.per_look = 0.25
    engine.stop_at(clock.now + 1.0)
    engine.search(2)
    assert np.array_equal(engine.lengths, before)  # no round was searched
    assert engine.n_built == 1
    assert engine.device.penalties.until == 0
    there.set()
    engine.stop_at(None)
    engine.search(3)
    assert engine.device.penalties.until == -1


def test_an_error_of_the_host_is_raised_in_the_run(later, monkeypatch):
    def fail(*_):
        raise MemoryError("no space for a spanning tree")

    monkeypatch.setattr(search_device, "penalised_lists", fail)
    engine = later("alpha")
    with pytest.raises(MemoryError, match="no space for a spanning tree"):
        engine.search(0)
