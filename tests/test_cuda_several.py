"""The memetic search on several CUDA devices: the kernels run on the host, on three devices."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.backends.cuda import several
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.cuda.several import MultiGpuDevice
from pymoo_gpuaco.backends.errors import DeviceFailed
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.schedule import Temperature
from pymoo_gpuaco.memetic.search import MemeticSearch
from tests import memetic_cases
from tests.engine_cases import cloud
from tests.instances import listed_instance
from tests.windows_cases import emulated

__all__ = ["emulated", "short"]  # fixtures

short = memetic_cases.short
DEVICES = (0, 1, 2)
TEMPERATURE = Temperature(0.5, 0.4, 1000.0, 10.0)


class OneThread:
    """A pool of no threads: the emulator runs one kernel at a time."""

    def __init__(self, *arguments: object) -> None:
        pass

    @staticmethod
    def map(work, *values):
        return [work(*row) for row in zip(*values, strict=False)]


@pytest.fixture
def three(emulated, monkeypatch):
    """An emulator of three devices."""
    emulated.add_devices(3)
    monkeypatch.setattr(several, "ThreadPoolExecutor", OneThread)
    return emulated


def cards(n: int = 200, size: int | None = 6, devices=DEVICES) -> MultiGpuDevice:
    parameters = MemeticParameters(population_size=size, n_windows=4, candidates="quadrant")
    return MultiGpuDevice(listed_instance(cloud(n, 3), 8), parameters, devices)


def population(m: int, n: int) -> np.ndarray:
    random = np.random.default_rng(5)
    return np.array([random.permutation(n) for _ in range(m)], np.int32)


def length_of(device: MultiGpuDevice, tour: np.ndarray) -> float:
    """EUC_2D length of TSPLIB."""
    corners = device.instance.coords[tour]
    return np.floor(np.hypot(*(corners - np.roll(corners, -1, axis=0)).T) + 0.5).sum()


def assert_tours(tours: np.ndarray, n: int) -> None:
    assert (np.sort(tours, axis=1) == np.arange(n)).all()


def test_devices_copy_directly_from_each_other(three):
    for _ in range(2):  # once in the life of the contexts
        cards()
    assert three.peers == {(one, other) for one in DEVICES for other in DEVICES if one != other}


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_tours_are_dealt_in_order_and_come_back(size, three):
    device = cards(size=size)
    tours = population(size, 200)
    device.load(tours, repaired=True)
    assert [card.n_tours for card in device._used] == {
        2: [1, 1],
        3: [1, 1, 1],
        5: [2, 2, 1],
        6: [2, 2, 2],
    }[size]
    assert np.array_equal(device.read(), tours)
    lengths = [length_of(device, tour) for tour in tours]
    assert device.measure().tolist() == lengths
    assert np.array_equal(device.shortest(), tours[int(np.argmin(lengths))])


def test_a_round_is_that_of_each_device_alone(three):
    device = cards()
    tours = population(6, 200)
    device.load(tours, repaired=True)
    device.anneal(7, TEMPERATURE)
    first = CudaWindows(
        device.instance, MemeticParameters(population_size=2, n_windows=4, candidates="quadrant")
    )
    with first.working():
        first.load(tours[:2], repaired=True)
        first.anneal(7, TEMPERATURE)
        assert np.array_equal(device.read()[:2], first.read())
    assert len({tour.tobytes() for tour in device.read()}) == 6
    assert (device.read() != tours).any(axis=1).all()


@pytest.mark.parametrize("devices", [(0, 1), (2, 0, 1)])
def test_devices_share_one_tour(devices, three):
    n = 600  # ten windows
    device = cards(n, 1, devices)
    device.load(device.first_tour()[None], repaired=False)
    length = device.measure()[0]
    alone = CudaWindows(
        device.instance,
        MemeticParameters(population_size=1, n_windows=4 * len(devices), candidates="quadrant"),
    )
    alone._hot_trials = device.cards[0]._hot_trials  # those of a card, which has fewer windows
    with alone.working():
        alone.load(device.read(), repaired=False)
        for key in range(3):
            for search in (device, alone):
                if key == 0:
                    search.repair(key)
                else:
                    search.anneal(key, TEMPERATURE)
            for card in device.cards:  # all hold the tour that one device finds with as many windows
                with card.working():
                    assert np.array_equal(card.read(), alone.read())
            assert_tours(device.read(), n)
            assert device.measure()[0] == length_of(device, device.read()[0]) < length
            alone.measure()
            assert device.n_trials == alone.n_trials > 0


@pytest.mark.parametrize(("size", "most", "cool"), [(1, 0.7, 0.1), (2, 1.5, 0.2)])
def test_a_single_tour_is_annealed_at_lower_temperatures(size, most, cool, emulated):
    plan = CudaWindows(listed_instance(cloud(200, 3), 8), MemeticParameters(population_size=size)).plan
    assert plan.first_temperature(1.0) == 0.5
    assert plan.first_temperature(1000.0) == most
    assert plan.cool_part == cool


def test_improving_leaves_a_shared_tour_as_it_is(three):
    device = cards(200, 1)
    device.load(device.first_tour()[None], repaired=True)
    given = population(2, 200)
    before, improved = device.read(), given.copy()
    device.improve(improved, 3)
    assert_tours(improved, 200)
    assert all(
        length_of(device, one) < length_of(device, other) for one, other in zip(improved, given, strict=True)
    )
    assert np.array_equal(device.read(), before)
    device.anneal(5, TEMPERATURE)
    assert_tours(device.read(), 200)


def engine(**arguments) -> MemeticSearch:
    return MemeticSearch(cards(**arguments))


def test_runs_repeat_and_go_on_from_a_state_on_any_devices(three):
    one, other = engine(n=60), engine(n=60)
    for key in range(2):
        one.search(key)
        other.search(key)
    state = one.export_state()
    on_two, again = engine(n=60, devices=(2, 0)), engine(n=60)
    on_two.import_state(state)
    again.import_state(state)
    assert np.array_equal(on_two.lengths, one.lengths)
    for search in (one, other, again, on_two):
        search.search(2)
    assert np.array_equal(one.lengths, other.lengths)
    assert np.array_equal(one.lengths, again.lengths)
    assert_tours(on_two.best_tours()[0], 60)


@pytest.mark.parametrize(("size", "n"), [(1, 600), (6, 200)])
def test_a_device_that_fails_is_left_out(size, n, three):
    search = engine(size=size, n=n)
    search.search(0)
    best, trials = search.best_tours()[1][0], search.n_trials
    three.broken_devices.add(1)
    with pytest.warns(RuntimeWarning, match="device 1 has failed.*continues on device 0, 2"):
        search.search(1)
    assert [card.device.index for card in search.device.cards] == [0, 2]
    assert search.best_tours()[1][0] <= best
    assert search.n_trials >= trials
    search.search(2)
    with search.device.working():
        assert_tours(search.device.read(), n)
    three.broken_devices.update((0, 2))
    with pytest.warns(RuntimeWarning), pytest.raises(DeviceFailed):
        search.search(3)


@pytest.mark.parametrize("size", [1, 6])
@pytest.mark.parametrize(
    "call",
    [
        lambda device: device.measure(),
        lambda device: device.read(),
        lambda device: device.improve(population(1, 200), 1),
        lambda device: device.anneal(1, TEMPERATURE),
    ],
)
def test_a_device_may_fail_in_every_call(call, size, three):
    device = cards(size=size)
    device.load(np.tile(device.first_tour(), (size, 1)), repaired=True)
    lengths = device.measure()
    three.broken_devices.add(0)
    with pytest.warns(RuntimeWarning, match="device 0 has failed"):
        call(device)
    assert [card.device.index for card in device.cards] == [1, 2]
    assert np.array_equal(device.measure(), lengths)
    assert_tours(device.read(), 200)


@pytest.mark.parametrize(
    ("device", "error"),
    [
        ("every", "device must be"),
        ([], "list of different numbers"),
        ([1, 1], "list of different numbers"),
        ([0, -1], r"device\[1\] must be an integer >= 0, got -1"),
        ([0.5], r"device\[0\]"),
        (-1, "device must be an integer >= 0"),
    ],
)
def test_devices_are_checked(device, error):
    problem = TSP(np.random.default_rng(0).random((20, 2)))
    with pytest.raises((TypeError, ValueError), match=error):
        GPUMemetic(device=device).setup(problem, termination=("n_gen", 1))


@pytest.mark.parametrize(("device", "indices"), [("all", [0, 1, 2]), ([2, 0], [2, 0]), ([1], [1]), (2, [2])])
def test_the_argument_chooses_the_devices(device, indices, three):
    algorithm = GPUMemetic(4, device=device, backend="cuda")
    algorithm.setup(cloud(60, 1), termination=("n_gen", 1), seed=1)
    algorithm.next()
    search = algorithm.engine.device
    used = search.cards if isinstance(search, MultiGpuDevice) else [search]
    assert [card.device.index for card in used] == indices
