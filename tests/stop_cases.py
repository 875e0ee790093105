"""Colonies on the host in the place of a device, whose generations are cut into launches of a few ants."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda import engine as plans
from pymoo_gpuaco.backends.cuda import local_search as batch_improver
from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import Device
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from tests import emulator
from tests.engine_cases import COLONIES, cloud, colony

HOURS = 10_000.0
M, TOGETHER, KICKS = 7, 3, 5  # ants, and of a launch; kicks of a launch
N = 33
every_way = pytest.mark.parametrize("way", COLONIES)
CUT = [way for way in COLONIES if way != "acs sync"]


# where ants change no trails as they walk
STILL = [way for way in CUT if "xi" not in COLONIES[way]]


@pytest.fixture
def device(monkeypatch, compiled_kernels) -> emulator.Emulator:
    emulator.skip_without_compiler()
    monkeypatch.setattr(CudaClimbers.climb, "__defaults__", (1 << 24,))
    # the host takes long for what a device does at once
    monkeypatch.setattr(batch_improver, "_TOURS_AT_ONCE", TOGETHER)
    return emulator.install(monkeypatch, compiled_kernels)


@pytest.fixture
def cut(device, monkeypatch) -> emulator.Emulator:
    """Cut generations of more than three ants, and searches of more than five kicks."""
    monkeypatch.setattr(plans, "STEPS", 1)
    monkeypatch.setattr(plans, "FEWEST_ANTS", TOGETHER)
    monkeypatch.setattr(plans, "KICKS", KICKS)
    return device


def engine_of(way: str, m: int = M) -> CudaColony:
    return colony(cloud(N), "cuda", **{**COLONIES[way], "n_ants": m})


def whole(engine: CudaColony, lengths: np.ndarray) -> np.ndarray:
    """All tours of a construction, which are what its lengths say."""
    tours = engine.tours(np.arange(M))
    assert np.array_equal(np.sort(tours, axis=1), np.tile(np.arange(N), (M, 1)))
    assert np.array_equal(lengths, cloud(N).tour_lengths(tours))
    assert np.array_equal(lengths, engine.export_state()["lengths"])
    return tours


def set_halt(device: Device, value: int) -> None:
    with device.working():
        device.write("halt", np.array([value], np.int32))
