"""Phases of a run of the memetic search on CUDA: first tours, generations, and how they are recombined.

The kernels run on the host.
"""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import search_device
from pymoo_gpuaco.backends.cuda import windows as plan
from pymoo_gpuaco.backends.cuda.device import RESERVE
from pymoo_gpuaco.memetic.parameters import MOST_TOURS, MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.windows_cases import emulated

__all__ = ["emulated"]  # a fixture

N = 200


def engine_of(n_windows: int | None = 4, n: int = N) -> MemeticSearch:
    parameters = MemeticParameters(n_windows=n_windows, candidates="quadrant")
    return MemeticSearch(search_device.CudaWindows(listed_instance(cloud(n, 3), 8), parameters))


def tours_of(engine: MemeticSearch) -> np.ndarray:
    with engine.device.working():
        return engine.device.read()


def test_a_run_of_known_length_has_the_tours_that_evolve_by_its_end(emulated, monkeypatch):
    # 1.5 cities of all tours a second and thread: 2 threads and 600 s give 1800 cities, 9 tours of 200
    monkeypatch.setattr(plan, "CITIES_THAT_EVOLVE", 1.5)
    monkeypatch.setattr(search_device, "thread_count", lambda: 2)
    parameters = MemeticParameters(candidates="quadrant")
    engine = MemeticSearch(search_device.CudaWindows(listed_instance(cloud(N, 3), 8), parameters))
    usual = engine.device.n_tours
    engine.device.n_trials = 5  # of rounds before
    assert usual > 9
    assert engine.device.tours_in(600.0) == engine.device.tours_in(None) == usual
    monkeypatch.setattr(plan, "CITIES_THAT_EVOLVE", 15.0)
    assert engine.device.tours_in(600.0) == 75  # 90, of which 64 and more grow with the root: of 90 * 64
    with engine.device.working():
        engine._allocate(20)
        # a window each: the emulated device searches fewer at a time
        assert (engine.device.n_tours, engine.device.windows.windows) == (20, 1)
        assert engine._schedule.later_in_one > 1 << 30
        engine._tours.load(np.tile(engine._tours.first, (20, 1)), repaired=False)
        assert engine.device.n_trials == 5
    engine.search(1)
    lengths = [engine.instance.tour_length(tour) for tour in tours_of(engine)]
    assert engine.lengths.tolist() == pytest.approx(lengths)
    assert engine.device.n_trials > 5
    state = engine.export_state()
    other = MemeticSearch(search_device.CudaWindows(listed_instance(cloud(N, 3), 8), parameters))
    other.import_state(state)
    assert other.device.n_tours == 20
    assert np.array_equal(tours_of(other), tours_of(engine))


def test_the_heat_of_a_round_by_hand(emulated, monkeypatch):
    # a cycle of 4 rounds of one window's 25 trials on 200 cities: 0.5 kicks a city are below those of the least heat
    monkeypatch.setattr(search_device, "ROUNDS", 4)
    monkeypatch.setattr(search_device, "FIRST_CYCLE", 4)
    engine = engine_of(4)
    assert engine.device.windows.windows == 1
    assert engine.device._hot_trials == 25  # 200 / 8
    while engine.device.repairs_left > 0:
        engine.search(0)
    edge = engine.best_tours()[1][0] / N
    searched = []
    search = engine.device.windows.search
    monkeypatch.setattr(
        engine.device.windows, "search", lambda key, how: (searched.append(how), search(key, how))
    )
    engine.search(1)
    # shares 1, 3/4, 2/4, 1/4 of the heat, the last fifth without: (share - 0.2) / 0.8 of half a mean edge
    expected = [0.5 * edge * (share - 0.2) / 0.8 for share in (1.0, 0.75, 0.5, 0.25)]
    assert [how.temperature for how in searched] == pytest.approx(expected)
    assert {how.slack for how in searched} == {0.5 * edge}
    assert {(how.trials, how.move_searches, how.overtime) for how in searched} == {(4 * 25, 60 * 25, 60)}


def test_tours_that_come_from_outside_are_repaired_before_they_are_kicked(emulated):
    engine = engine_of()
    engine.search(0)
    fresh, repair = engine_of(), engine_of().device.repairs_left
    fresh.accept(*engine.best_tours())
    assert fresh.device.repairs_left == repair
    state = engine.export_state()
    # of penalties there are none
    assert state["counts"].tolist() == [engine.device.repairs_left, -1] == [0, -1]
    del state["counts"], state["pace"]
    state["engine"] = np.frombuffer(b"cpu", np.uint8).astype(np.int32)
    engine.import_state(state)
    assert engine.device.repairs_left == repair


# ---- arrays for as many tours as a run needs


def test_more_tours_than_the_memory_holds_are_not_planned(emulated, monkeypatch):
    device = engine_of(None).device
    usual = device.n_tours
    monkeypatch.setattr(plan, "CITIES_THAT_EVOLVE", 1e6)  # a thousand tours in any time
    with device.working():
        assert device.tours_in(100.0) == MOST_TOURS > usual
        held = sum(device.windows.needed.values())
        for m in (400, 100, usual):
            wanted = device._windows(device._layout(m), device.windows.lists).needed
            free = sum(wanted.values()) - held + RESERVE
            monkeypatch.setattr(device.device, "free_memory", lambda free=free: free)
            assert 3 * m // 4 < device.tours_in(100.0) <= m  # a quarter less, as often as it takes
        monkeypatch.setattr(device.device, "free_memory", lambda: 0)
        assert device.tours_in(100.0) == usual


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_search_whose_arrays_were_not_all_taken_goes_on(error, emulated, monkeypatch):
    engine = engine_of(4)
    monkeypatch.setattr(engine.device, "tours_in", lambda seconds: 9)
    arrays, taken = type(engine.device.device.arrays), []
    allocate = arrays.allocate

    def failing(self, name, size):
        taken.append(name)
        if len(taken) == 10:
            raise error
        return allocate(self, name, size)

    monkeypatch.setattr(arrays, "allocate", failing)
    with pytest.raises(error):
        engine.search(1)
    engine.search(2)
    assert engine.device.n_tours == len(engine.lengths) == 9
    with engine.device.working():
        tours = engine.device.read()
    assert engine.lengths.tolist() == [engine.instance.tour_length(tour) for tour in tours]
