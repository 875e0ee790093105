"""The arrays of a memetic search on CUDA: for as many tours as a run is to have, whatever comes between.

The kernels run on the host.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import search_device
from pymoo_gpuaco.backends.cuda.device.memory import RESERVE
from pymoo_gpuaco.backends.cuda.windows import plan
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.memetic.parameters import MOST_TOURS, MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from tests.engine_cases import cloud
from tests.windows_cases import emulated

__all__ = ["emulated"]  # a fixture

N = 200


def engine_of(n_windows: int | None = None) -> MemeticSearch:
    parameters = MemeticParameters(n_windows=n_windows, candidates="quadrant")
    return MemeticSearch(search_device.CudaWindows(listed_instance(cloud(N, 3), 8), parameters))


def test_more_tours_than_the_memory_holds_are_not_planned(emulated, monkeypatch):
    device = engine_of().device
    usual = device.n_tours
    monkeypatch.setattr(plan, "CITIES_THAT_EVOLVE", 1e6)  # a thousand tours in any time
    with device.working():
        assert device.tours_in(100.0) == MOST_TOURS > usual
        held = sum(search_device._arrays(device._tours, device.windows).values())
        for m in (400, 100, usual):
            room = (
                sum(search_device._arrays(*device._parts(device._layout(m), device.windows.lists)).values())
                - held
                + RESERVE
            )
            monkeypatch.setattr(device.device, "free_memory", lambda room=room: room)
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


def test_a_copy_lays_its_windows_out_as_the_first_engine(emulated, monkeypatch):
    monkeypatch.setattr(plan, "CITIES_THAT_EVOLVE", 15.0)
    monkeypatch.setattr(search_device, "thread_count", lambda: 2)
    first, copy = engine_of(), engine_of()
    assert copy.device.tours_in(600.0) == first.device.tours_in(600.0) == 75
    for engine in (first, copy):
        with engine.device.working():
            engine._allocate(11)
    assert copy.device.n_windows == first.device.n_windows
    assert copy.device.plan == first.device.plan
    untouched = engine_of()
    untouched.import_state(engine_of().export_state())  # of a run that has not begun
    assert untouched.device.n_tours == engine_of().device.n_tours


def test_tours_from_outside_have_as_many_beside_them_as_pay(emulated, monkeypatch):
    engine = engine_of()
    monkeypatch.setattr(engine.device, "tours_in", lambda seconds: 9 if seconds is None else 12)
    engine.stop_at(time.monotonic() + 1000.0)
    engine.accept(np.arange(N)[None], [engine.instance.tour_length(np.arange(N))])
    assert len(engine.lengths) == 12
