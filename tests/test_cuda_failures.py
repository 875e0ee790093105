"""A device that fails: no memory, a kernel that fails, a compiler or a cache that fails. No GPU is needed.

``fake_device`` stands in for the driver and fails on demand; where tours matter, the kernels run on the host.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS, GPUAS, GPU2OptIHC
from pymoo_gpuaco.backends import BackendUnavailable, make_climbers, make_colony, make_improver, make_search
from pymoo_gpuaco.backends.cuda import engines, search_device
from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import RESERVE, context
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.backends.cuda.local_search import CudaImprover
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.errors import DeviceFailed
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.runtime import notices
from tests import cuda_cases, emulator, fake_device
from tests.engine_cases import COLONIES, cloud, instance_for
from tests.fake_device import FakeDriver, install
from tests.instances import listed_instance
from tests.interrupts import wait_until

N = 33


@pytest.fixture(scope="module", autouse=True)
def nothing_old_is_collected() -> Iterator[None]:
    """Hundreds of collections follow: they need not look at what was there before."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    monkeypatch.setattr(engines, "why_unavailable", lambda: None)
    monkeypatch.setattr(
        search_device, "FIRST_CYCLE", 1 << 20
    )  # kernels that do nothing leave no tours to assemble
    return install(monkeypatch)


def colony_of(way: str) -> Callable[[], CudaColony]:
    parameters = ColonyParameters(**{"n_ants": 6, **COLONIES[way]})
    instance = instance_for(cloud(N), parameters)
    return lambda: CudaColony(instance, parameters)


#: colonies of different arrays and launches
WAYS = ("rwm", "all cities", "candidate memory", "kicks", "windows", "hybrid", "acs sync", "acs selective")
#: how to make an engine of every kind
ENGINES: dict[str, Callable[[], Any]] = {
    **{way: colony_of(way) for way in WAYS},
    "climbers": lambda: CudaClimbers(listed_instance(cloud(N), 1), ClimberParameters(n_climbers=6)),
    "memetic": lambda: MemeticSearch(
        CudaWindows(listed_instance(cloud(N), 8), MemeticParameters(n_windows=24))
    ),
    "improver": lambda: CudaImprover(listed_instance(cloud(N), 8), LocalSearch()),
}
every_engine = pytest.mark.parametrize("name", ENGINES)


def use(engine: Any) -> None:
    """All that a run asks of an engine in its first generation."""
    identity = np.arange(N, dtype=np.int32)
    if isinstance(engine, CudaClimbers):
        engine.start_from(identity[None])
        engine.climb(1)
        engine.best()
        return
    if isinstance(engine, CudaImprover):
        engine.improve(np.tile(identity, (7, 1)), 1)
        return
    if isinstance(engine, MemeticSearch):
        engine.search(1)
        engine.best_tours(2)
        return  # all else works with what is read back, and kernels that do nothing leave no tours there
    cuda_cases.use(engine)


def nothing_is_left(driver: FakeDriver) -> bool:
    """Engines are parts of cycles; and a thread that has made one keeps it until it has ended."""
    wait_until(lambda: gc.collect() >= 0 and not driver.taken, 20.0)
    return driver.primary.depth == 0 and driver.given_up_outside == 0


# ---- memory


@every_engine
def test_no_memory_at_any_allocation_of_the_set_up(name, driver):
    engine = ENGINES[name]()
    allocations = driver.allocations
    del engine
    assert nothing_is_left(driver)
    for number in range(allocations):
        driver.allocations, driver.refuse = 0, number
        with pytest.raises(MemoryError, match=r"^the device ran out of memory; .*needs? ") as raised:
            ENGINES[name]()
        assert not driver.taken  # at once, although the error is still held
        del raised
        assert nothing_is_left(driver), number
    driver.refuse = None
    use(ENGINES[name]())


@every_engine
def test_no_memory_at_any_allocation_of_a_generation(name, driver):
    engine = ENGINES[name]()
    before = driver.allocations
    use(engine)
    allocations = driver.allocations - before
    for number in range(allocations):
        engine = ENGINES[name]()
        driver.allocations, driver.refuse = 0, number
        with pytest.raises(MemoryError, match=r"^the device ran out of memory; .*needs? ") as raised:
            use(engine)
        del raised
        assert driver.primary.depth == 0
        # the engine is as good as before, and needs what it needed
        driver.refuse = None
        use(engine)
        assert driver.allocations >= allocations
        use(engine)
    del engine
    assert nothing_is_left(driver)


@pytest.mark.parametrize(("name", "advice"), [("rwm", "memory='candidate'"), ("climbers", "n_climbers")])
def test_too_little_memory_is_refused_before_anything_is_allocated(name, advice, driver, monkeypatch):
    monkeypatch.setattr(driver, "mem_get_info", lambda: (RESERVE, fake_device.MEMORY))
    with pytest.raises(MemoryError, match=rf"needs .* GB are free; .*{advice}"):
        ENGINES[name]()
    assert driver.allocations == 0


def test_a_search_that_found_no_room_for_more_tours_takes_its_own_again(driver, monkeypatch):
    """Where tours under search lie in global memory, as those of many cities do."""
    monkeypatch.setitem(fake_device.LIMITS, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 896)
    parameters = ColonyParameters(n_ants=6, memory="candidate", local_search=LocalSearch())
    instance = instance_for(cloud(N), parameters)
    engine = CudaColony(instance, parameters)
    assert not engine._search.in_shared
    use(engine)
    more = np.tile(np.arange(N), (200, 1))
    before = driver.allocations
    engine.improve(more, 1)
    allocations = driver.allocations - before
    assert allocations == 4  # tours, their lengths here and there, and what they are searched in
    for number in range(allocations):
        engine = CudaColony(instance, parameters)
        driver.allocations, driver.refuse = 0, number
        with pytest.raises(MemoryError) as raised:
            engine.improve(more, 1)
        del raised
        driver.refuse = None
        engine.construct(1)
        assert "searches" in engine.device.arrays
        engine.improve(more, 1)
    del engine
    assert nothing_is_left(driver)


# ---- kernels


@every_engine
def test_a_launch_that_fails_is_reported_and_the_next_run_is_right(name, driver):
    engine = ENGINES[name]()
    before = driver.launches
    use(engine)
    launches = driver.launches - before
    for number in sorted({0, 1, launches // 2, launches - 1} & set(range(launches))):
        engine = ENGINES[name]()
        driver.launches, driver.fail = 0, number
        with pytest.raises(
            DeviceFailed, match="CUDA device 0 failed: cuLaunchKernel failed: too many"
        ) as raised:
            use(engine)
        del raised
        assert driver.primary.depth == 0
        use(engine)
        use(ENGINES[name]())
    del engine
    assert nothing_is_left(driver)


@every_engine
def test_a_context_that_a_kernel_has_spoilt_is_not_used_again(name, driver):
    engine, other = ENGINES[name](), ENGINES[name]()
    driver.launches, driver.fail, driver.fails_for_good = 0, 0, True
    words = r"CUDA device 0 has failed in this process \(.*illegal memory.*start a new process"
    with pytest.raises(DeviceFailed, match=words) as raised:
        use(engine)
    del raised
    for one in (engine, other):
        with pytest.raises(DeviceFailed, match=words):
            use(one)
    with pytest.raises(BackendUnavailable, match=words):
        ENGINES[name]()
    del engine, other, one
    assert nothing_is_left(driver)


def test_after_a_spoilt_context_auto_goes_on_with_the_cpu_and_says_why_once(driver, monkeypatch, caplog):
    notices.warn_once.cache_clear()
    caplog.set_level(logging.WARNING, "pymoo_gpuaco")
    instance, parameters = listed_instance(cloud(N), 8), ColonyParameters(n_ants=4)
    engine = make_colony(instance, parameters)
    assert engine.kind == "cuda"
    driver.launches, driver.fail, driver.fails_for_good = 0, 0, True
    with pytest.raises(DeviceFailed):
        use(engine)
    for _ in range(2):
        assert make_colony(instance, parameters).kind == "cpu"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("pymoo_gpuaco runs on the CPU: CUDA device 0 has failed in this process")
    with pytest.raises(BackendUnavailable, match="backend='cuda' cannot run this: CUDA device 0 has failed"):
        make_colony(instance, parameters, "cuda")


def test_a_spoilt_context_is_found_in_the_set_up_too(driver):
    driver.launches, driver.fail, driver.fails_for_good = 0, 0, True
    with pytest.raises(BackendUnavailable, match="has failed in this process"):
        ENGINES["all cities"]()
    assert nothing_is_left(driver)


RUNS = {
    "GPUAS": lambda backend: GPUAS(n_ants=5, backend=backend),
    "GPUACS": lambda backend: GPUACS(n_ants=5, backend=backend),
    "GPU2OptIHC": lambda backend: GPU2OptIHC(n_climbers=3, backend=backend),
}


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_a_run_that_fails_keeps_its_best_tour(run, for_good, monkeypatch, compiled_kernels):
    emulator.skip_without_compiler()
    monkeypatch.setattr(CudaClimbers.climb, "__defaults__", (1 << 24,))
    device = emulator.install(monkeypatch, compiled_kernels)
    problem = cloud(20)
    expected = minimize(problem, run("cuda"), ("n_gen", 3), seed=1)
    algorithm = run("cuda").setup(problem, termination=("n_gen", 9), seed=1)
    algorithm.next()
    algorithm.next()
    kept = algorithm.result()
    device.launches, device.fail, device.fails_for_good = (
        0,
        1 if run is not RUNS["GPU2OptIHC"] else 0,
        for_good,
    )
    with pytest.raises(DeviceFailed):
        algorithm.run()
    for one in (algorithm.opt[0], algorithm.result()):
        assert np.array_equal(one.X, kept.X)
        assert problem.tour_length(one.X) == one.F[0] == kept.F[0]
    again = minimize(problem, run("auto" if for_good else "cuda"), ("n_gen", 3), seed=1)
    assert problem.tour_length(again.X) == again.F[0]
    if for_good:
        assert again.algorithm.engine.kind == "cpu"
    else:
        assert np.array_equal(again.X, expected.X)


# ---- which device


@pytest.fixture
def no_device(monkeypatch):
    """A driver that starts with no device to be seen, as with an empty CUDA_VISIBLE_DEVICES; its starts so far."""
    starts = []

    class Error(Exception):
        pass

    def init() -> None:
        starts.append(os.getpid())
        raise Error("cuInit failed: no CUDA-capable device is detected")

    driver = types.ModuleType("pycuda.driver")
    driver.Error, driver.init = Error, init
    monkeypatch.setitem(sys.modules, "pycuda", types.ModuleType("pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr(sys.modules["pycuda"], "driver", driver, raising=False)
    monkeypatch.setattr(context, "_pid", None)
    monkeypatch.setattr(context, "_no_start", None)
    notices.warn_once.cache_clear()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return starts


def test_a_driver_that_did_not_start_is_not_asked_again(no_device):
    """It crashes in a child of a process in which it has failed."""
    for _ in range(2):
        with pytest.raises(BackendUnavailable, match="no CUDA-capable device is detected"):
            context.device_count()
    assert no_device == [os.getpid()]


@pytest.mark.usefixtures("no_device")
def test_hidden_devices_are_named(caplog):
    caplog.set_level(logging.WARNING, "pymoo_gpuaco")
    instance, parameters = listed_instance(cloud(9), 8), ColonyParameters(n_ants=2)
    assert make_colony(instance, parameters).kind == "cpu"
    words = "(cuInit failed: no CUDA-capable device is detected) (CUDA_VISIBLE_DEVICES is '')"
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(f"pymoo_gpuaco runs on the CPU: the NVIDIA driver does not start {words}")
    with pytest.raises(BackendUnavailable, match="backend='cuda' cannot run this") as raised:
        make_colony(instance, parameters, "cuda")
    assert words in str(raised.value)


@pytest.mark.parametrize("backend", ["auto", "cuda"])
def test_a_device_that_is_not_there_is_named_with_those_that_are(backend, driver):
    instance = listed_instance(cloud(20), 8)
    words = r"device must be one of the CUDA devices \(0 to 0\), got 3"
    for make in (
        lambda: make_colony(instance, ColonyParameters(n_ants=2), backend, 3),
        lambda: make_search(instance, MemeticParameters(), backend, 3),
        lambda: make_climbers(instance, ClimberParameters(2), backend, 3),
        lambda: make_improver(instance, LocalSearch(), backend, 3),
        lambda: GPUAS(backend=backend, device=3).setup(cloud(9), termination=("n_gen", 1)),
    ):
        with pytest.raises(ValueError, match=words):
            make()
