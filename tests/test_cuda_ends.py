"""The host ends kernels that run, when time is over and by Ctrl-C. The kernels run on the host, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pymoo_gpuaco.backends.cuda.device as device_module
from pymoo_gpuaco import LocalSearch
from pymoo_gpuaco.backends.cuda.device import Device
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.backends.cuda.walks import acs
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.runtime.clock import CLOCK
from tests.engine_cases import cloud, colony
from tests.stop_cases import M, N, device, engine_of, set_halt

__all__ = ["device"]  # a fixture


def halt_until_next_wait(own: Device, monkeypatch: pytest.MonkeyPatch, check: Callable[[], None]) -> None:
    """Halt kernels; the next wait of the host calls ``check``, and ends that."""
    wait = own.wait

    def end(early: bool = False) -> None:
        wait(early)
        check()
        own.halted = True
        own.write("halt", np.zeros(1, np.int32))
        monkeypatch.setattr(own, "wait", wait)

    set_halt(own, 1)
    monkeypatch.setattr(own, "wait", end)


def assert_greedy(engine: CudaColony, lengths: np.ndarray) -> None:
    greedy, length = engine.greedy_tour()
    m = engine.n_ants
    assert engine.n_built == 1
    assert lengths.tolist() == [length] * m
    assert np.array_equal(engine.tours(np.arange(m)), np.tile(greedy, (m, 1)))


@pytest.mark.usefixtures("device")
def test_ants_that_walk_together_are_ended_between_two_steps(monkeypatch):
    monkeypatch.setattr(acs, "_WAIT_FROM", 1)
    engine, other = engine_of("acs sync"), engine_of("acs sync")
    for one in (engine, other):
        one.update_trails(TrailUpdate(0.5, ((np.arange(N), 9.0),), on_tours_only=True))
        one.construct(1)

    def check() -> None:
        arrived = np.empty(1, np.uint32)
        engine.device.read(arrived, "arrivals")
        # the only block, once, and the word of the first barrier
        assert arrived.tolist() == [(1 << 31) + 1]

    halt_until_next_wait(engine.device, monkeypatch, check)
    before = engine.export_state()["tau"]
    assert_greedy(engine, engine.construct(2))
    assert np.array_equal(engine.export_state()["tau"], before)
    for key in (3, 4):  # as if it had not been begun
        assert np.array_equal(engine.construct(key), other.construct(key))
        assert engine.n_built == M
    assert np.array_equal(engine.export_state()["tau"], other.export_state()["tau"])


@pytest.mark.usefixtures("device")
def test_a_walk_over_lists_is_ended_and_no_search_begins_on_its_tours(monkeypatch):
    n, m = 1100, 2  # a walk reads whether it is halted every 1,024 steps
    engine = colony(cloud(n), "cuda", n_ants=m, local_search=LocalSearch())
    unfinished = []

    def check() -> None:
        tours = np.empty((m, n), np.int32)
        engine.device.read(tours, "next_tours")
        unfinished.extend((np.sort(tours) != np.arange(n)).any(axis=1))

    halt_until_next_wait(engine.device, monkeypatch, check)
    monkeypatch.setattr(engine._search, "improve", lambda *_, **__: pytest.fail("on unfinished tours"))
    assert_greedy(engine, engine.construct(1))
    assert unfinished == [True] * m


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(("n", "kicks"), [(700, 0.0), (120, 1.0)])
def test_the_host_ends_a_search_early(n, kicks):
    problem = cloud(n)
    engine = colony(problem, "cuda", n_ants=1, local_search=LocalSearch(kicks=kicks))
    tour = np.random.default_rng(4).permutation(n).astype(np.int32)[None]
    optimum, [length] = engine.improve(tour, 1)
    set_halt(engine.device, 1)
    ended, [longer] = engine.improve(tour, 1)
    assert np.array_equal(np.sort(ended[0]), np.arange(n))
    assert longer == problem.tour_length(ended[0])
    assert length < longer < problem.tour_length(tour[0])
    set_halt(engine.device, 0)
    assert np.array_equal(engine.improve(tour, 1)[0], optimum)


@pytest.mark.usefixtures("device")
def test_the_search_of_a_long_construction_ends_early(clock, monkeypatch):
    engine = engine_of("2opt")
    assert engine.device.ends_early  # nothing is known yet
    for seconds in (1.0, 0.0):
        monkeypatch.setattr(engine.device, "wait", lambda *_, s=seconds: clock.step(s))
        engine.construct(1)
        assert engine.device.ends_early == (seconds > 0.0)


def halt_of(device: Device) -> int:
    """Memory that kernels read to see if they must end."""
    found = np.empty(1, np.int32)
    with device.working():
        device.read(found, "halt")
    return int(found[0])


class Marked:
    """A mark that the device comes to after some questions, or when kernels shall end."""

    def __init__(self, device: Device, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.seen, self._end, self._device = 0.0, [], seconds, device
        monkeypatch.setattr(CLOCK, "monotonic", lambda: self.now)
        monkeypatch.setattr(device.arrays, "events", [self, *device.arrays.events[1:]])

    def record(self) -> None:
        pass

    def query(self) -> bool:
        self.now += 0.03125
        return self.now > self._end

    def synchronize(self) -> None:
        self.seen.append(halt_of(self._device))
        self._end = 0.0


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("seconds", "halt_at", "ended"),
    # what takes less than 0.1 s is whole; questions are 1/32 s apart
    [(0.09, 0.0, None), (5.0, None, None), (5.0, 0.0, 0.125), (5.0, 1.0, 1.0), (0.5, 1.0, None)],
)
def test_kernels_are_ended_when_time_is_over(seconds, halt_at, ended, monkeypatch):
    device = engine_of("2opt").device
    mark = Marked(device, seconds, monkeypatch)
    assert device.ends_early  # the duration of a construction is not known yet
    device.stop.until = halt_at
    device.wait()
    assert mark.seen == ([] if ended is None else [1])
    assert device.halted == (ended is not None)
    assert halt_of(device) == 0
    assert ended is None or ended <= mark.now <= ended + 0.0625


@pytest.mark.usefixtures("device")
def test_kernels_are_ended_by_an_interrupt(monkeypatch):
    device = engine_of("2opt").device
    mark = Marked(device, 5.0, monkeypatch)
    monkeypatch.setattr(device_module, "_yield_to_threads", device.stop.interrupt)
    device.wait()
    assert mark.now <= 0.1875  # what takes less than 0.1 s is whole
    assert mark.seen == [1]
    assert halt_of(device) == 0


@pytest.mark.usefixtures("device")
def test_a_search_that_was_ended_early_is_no_reference(monkeypatch):
    engine, other = engine_of("2opt"), engine_of("2opt")
    take = engine._tours.take_next

    def ended() -> object:
        engine.device.halted = True
        return take()

    monkeypatch.setattr(engine._tours, "take_next", ended)
    engine.construct(1)
    monkeypatch.setattr(engine._tours, "take_next", take)
    assert np.array_equal(engine.construct(2), other.construct(2))
    assert engine.export_state()["reference_length"] == other.export_state()["reference_length"]
