"""Blocks that wait for each other on CUDA stop waiting where one of them never arrives, and the host raises an error.

The kernels run on the host, where blocks run one after another: the first waits in vain, by a clock that runs fast.
"""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.device import Device
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.cuda.windows import Trials, Windows
from pymoo_gpuaco.backends.errors import DeviceFailed
from tests.engine_cases import COLONIES, cloud, colony
from tests.stop_cases import device, engine_of
from tests.windows_cases import device_of, emulated

__all__ = ["device", "emulated"]  # fixtures

FAILED = "not on the device at the same time"
HOW = Trials(trials=8, all_queued=True)


def start_tours(tours: int) -> np.ndarray:
    return np.array([np.random.default_rng(seed).permutation(60) for seed in range(tours)], np.int32)


def search(windows: CudaWindows, key: int) -> np.ndarray:
    """Search one round, wait for it, and return the tours."""
    with windows.working():
        windows.windows.search(key, HOW)
        windows.wait()
        return windows.read()


def positions_of(part: Windows) -> np.ndarray:
    positions = np.empty((part.tours, 60), np.int32)
    part._device.read(positions, "window_positions")
    return positions


def test_a_commit_whose_blocks_do_not_meet_fails_and_leaves_the_tours(emulated, monkeypatch):
    problem, start = cloud(60), start_tours(2)
    windows, other = device_of(problem, 2, 4), device_of(problem, 2, 4)
    for one in (windows, other):
        with one.working():
            one.load(start, repaired=False)
    part, untouched = windows.windows, np.full(2, 77, np.int32)
    with windows.working():
        windows.device.write("window_counts", untouched)
        with monkeypatch.context() as patch:
            patch.setattr(part, "_commit_blocks", 2)  # of each tour; the device has one multiprocessor
            part.search(1, HOW)
        part.search(2, HOW)  # launched before the host knows; it commits nothing either
        counts = np.empty(2, np.int32)
        windows.device.read(counts, "window_counts")
        assert np.array_equal(counts, untouched)
        with pytest.raises(DeviceFailed, match=FAILED):
            windows.wait()
        assert np.array_equal(windows.read(), start)
        everywhere = np.take_along_axis(positions_of(part), start, axis=1)
        assert np.array_equal(everywhere, np.tile(np.arange(60), (2, 1)))
    assert np.array_equal(search(windows, 7), search(other, 7))
    assert np.array_equal(search(windows, 8), search(other, 8))
    assert (problem.tour_lengths(search(windows, 9)) < problem.tour_lengths(start)).all()


def test_ants_whose_blocks_do_not_meet_fail_and_leave_the_trails(device, monkeypatch):
    engine, other = engine_of("acs sync"), engine_of("acs sync")
    before = engine.export_state()["tau"]
    with monkeypatch.context() as patch:
        patch.setattr(engine.walk, "_ants_per_block", 4)  # of seven: two blocks, and one multiprocessor
        with pytest.raises(DeviceFailed, match=FAILED):
            engine.construct(1)
    assert np.array_equal(engine.export_state()["tau"], before)
    assert np.array_equal(engine.construct(2), other.construct(2))
    assert np.array_equal(engine.tours([3]), other.tours([3]))


@pytest.mark.gpu
@pytest.mark.slow
def test_blocks_that_do_not_fit_on_the_device_wait_ten_seconds_and_fail(monkeypatch):
    """Of 2,500 blocks of 256 threads no device holds all; the first ones wait for the last."""
    engine, other = (colony(cloud(33), "cuda", **{**COLONIES["acs sync"], "n_ants": 20_000}) for _ in "12")
    with monkeypatch.context() as patch:
        patch.setattr(engine.walk, "_ants_per_block", 8)
        with pytest.raises(DeviceFailed, match="the 2500 blocks of acs_sync wait for each other"):
            engine.construct(1)
        patch.setattr(Device, "resident", lambda *_: 2500)
        with pytest.raises(DeviceFailed, match=FAILED):
            engine.construct(1)
    engine.reset_trails(1.0)
    assert np.array_equal(engine.construct(2), other.construct(2))
    assert np.array_equal(engine.tours([3]), other.tours([3]))
