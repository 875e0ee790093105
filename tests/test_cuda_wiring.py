"""Calls of the CUDA engines to ``fake_device``, on any machine. What kernels compute is tested on a GPU."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks
from pymoo_gpuaco.backends.cuda.pareto import CudaFronts
from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.colony.parameters import (
    FEWEST_CITIES_TO_KICK,
    ClimberParameters,
    ColonyParameters,
    LocalSearch,
)
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.pareto.device import Children, Front, Members
from pymoo_gpuaco.pareto.nd_tree import make_tree
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP
from pymoo_gpuaco.problems.symmetric import symmetric_form
from tests.cuda_cases import use
from tests.engine_cases import ANT_SYSTEM, COLONIES, INSTANCES, cloud, instance_for
from tests.fake_device import FakeDriver, install
from tests.instances import front_instance, listed_instance

#: instances whose kernels or launches differ
DIFFERENT = ("3 cities", "33 cities", "30 cities, GEO", "12 cities, all distances 5", "25 cities, asymmetric")


@pytest.fixture(scope="module", autouse=True)
def frozen() -> Iterator[None]:
    """No collection looks at what was there before these tests: that is most of the time of a short one."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


def use_fronts(device: CudaFronts) -> None:
    """Call everything that a device for fronts has."""
    n, k = device.instance.n, device.instance.k
    tours = np.stack([np.roll(np.arange(n, dtype=np.int32), i) for i in range(3)])
    assert device.descend(tours, np.ones((3, k)), 2, 2**64 - 1).shape == (3, n)
    members = Members(
        tours,
        device.instance.lengths(tours),
        np.ones((3, k)),
        np.ones(3),
        np.full(3, 5),
        np.arange(3),
    )
    met = np.zeros(4, np.uint64)
    found = device.explore(members, Front(members.lengths, make_tree(3, 4, k), 0, met))
    assert (found.lengths.shape, found.chain.shape) == ((0, k), (0, 10))  # kernels do nothing
    chain = np.array([[0, 1, 3, 2, *[0] * 6]], np.int32)
    child = Children(np.zeros(1, np.int32), np.full(1, 2, np.int32), chain, members.lengths[:1])
    assert device.follow(members, child).shape == (1, n)
    assert device.follow(members, found).shape == (0, n)
    device.use(np.zeros((n, 3), np.int32))
    device.explore(members, Front(members.lengths, make_tree(3, 4, k), 0, met))


@pytest.mark.parametrize(("n", "k"), [(12, 2), (12, 6), (400, 3), (2000, 2)])
def test_every_launch_of_fronts_fits(n, k, driver):
    parts = [cloud(n, seed) for seed in range(k - 1)]
    parts.append(TSP(np.random.default_rng(0).random((n, 2)), metric="EXACT") if k == 6 else cloud(n, k))
    device = CudaFronts(front_instance(MultiObjectiveTSP(parts), 5))
    use_fronts(device)
    # only where a cost is no float
    assert {d["COST"] for file, d in driver.compiled if "pareto" in file} == {"double" if k == 6 else "float"}
    del device
    gc.collect()
    assert not driver.taken


def test_fronts_of_more_cities_are_left_to_the_cpu(driver):
    few = front_instance(MultiObjectiveTSP([cloud(12), cloud(12, 1)]), 5)
    with pytest.raises(BackendUnavailable, match="on CUDA: at most 2000 cities, got 2001"):
        CudaFronts(dataclasses.replace(few, starts=np.zeros((2, 2001), np.int32)))


@pytest.mark.parametrize("way", COLONIES)
@pytest.mark.parametrize("name", DIFFERENT)
def test_every_launch_fits_its_kernel(name, way, driver):
    problem = INSTANCES[name]
    parameters = ColonyParameters(**{"n_ants": 6, **COLONIES[way]})
    instance = instance_for(problem, parameters)
    if lacks(instance, parameters) is not None:
        pytest.skip("the CUDA engine says what it lacks")
    if way in ("2opt", "windows") and not problem.symmetric:
        with pytest.raises(ValueError, match="symmetric"):
            CudaColony(instance, parameters)
        return
    use(CudaColony(instance, parameters))
    gc.collect()
    assert not driver.taken


def test_memory_of_the_host_is_given_back_when_no_kernel_writes_it(driver):
    engine = CudaColony(instance_for(cloud(30), ColonyParameters()), ColonyParameters(n_ants=6))
    engine.construct(1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    driver.on_wait = interrupt
    with pytest.raises(KeyboardInterrupt):
        engine.construct(2)
    driver.on_wait = lambda: None
    assert any(memory.written for memory in driver.shared.values())
    del engine
    gc.collect()
    assert not driver.taken


LISTED = ("rwm", "wrs", "candidate memory", "kicks", "acs sync", "acs relaxed", "acs selective")


@pytest.mark.parametrize(
    ("way", "n"),
    [(way, n) for way in LISTED for n in (300, 2500, 12_000)]
    + [("all cities", n) for n in (20, 240, 2500)]
    + [(rule, n) for rule in ANT_SYSTEM for n in (300, 4000)],  # the deposit takes 4000 cities in two parts
)
def test_every_launch_fits_on_larger_instances(way, n, driver):
    ants = 5000 if way in ANT_SYSTEM and n == 300 else 40
    parameters = ColonyParameters(
        **{"memory": "candidate" if n > 5000 else "auto", **COLONIES[way], "n_ants": ants}
    )
    use(CudaColony(instance_for(cloud(n), parameters), parameters))


@pytest.mark.parametrize(
    ("k", "tabu"), [(1, "list"), (8, "compact"), (33, "bitmask"), (70, "list"), (299, "compact")]
)
@pytest.mark.parametrize("selection", ["wrs", "rwm", "pseudo_random_proportional"])
def test_every_launch_fits_any_length_of_list(k, tabu, selection, driver):
    parameters = ColonyParameters(
        n_ants=5, candidate_list_size=k, tabu=tabu, selection=selection, xi=0.1, local_search=LocalSearch()
    )
    use(CudaColony(instance_for(cloud(300), parameters), parameters))


def tours_for_kernels_that_do_nothing(windows: CudaWindows) -> None:
    """Replace what is read back by tours: kernels that do nothing leave memory as it was."""
    n = windows.instance.n
    tours = np.tile(np.arange(n, dtype=np.int32), (windows.n_tours, 1))
    windows.device.write("window_next", tours)


@pytest.mark.parametrize(
    "name",
    [*(n for n in DIFFERENT if INSTANCES[n].n_cities >= FEWEST_CITIES_TO_KICK), 5000, 70_000],
)
def test_every_launch_of_focused_ants_fits(name, driver, monkeypatch):
    # what the kernels tell of the shortest tour is no tour either
    monkeypatch.setattr(
        CudaWindows, "shortest", lambda windows: np.arange(windows.instance.n, dtype=np.int32)
    )
    problem = INSTANCES[name] if isinstance(name, str) else cloud(name)
    instance = listed_instance(problem, 8)
    if not problem.symmetric:  # what is searched is its symmetric form, of twice as many cities
        form = symmetric_form(instance)
        assert form is not None
        instance = with_lists(form.instance, 16)
    windows = CudaWindows(instance, MemeticParameters())
    engine, n = MemeticSearch(windows), instance.n
    tours_for_kernels_that_do_nothing(windows)
    for key in (1, 2**64 - 1):
        engine.expect(0.5)
        engine.search(key)
        assert engine.lengths.shape == (windows.n_tours,)
        assert engine.best_tours()[0].shape == (1, n)
    engine.import_state(engine.export_state())
    engine.improve(np.arange(n)[None], 1)
    engine.accept(np.arange(n)[None], [1.0])
    assert driver.launched >= {
        "search_windows",
        "commit_exchanges",
        "lay_out",
        "find_positions",
    }
    del engine, windows
    gc.collect()
    assert not driver.taken


@pytest.mark.parametrize("kernel", ["auto", "intra", "tiled", "tuned"])
@pytest.mark.parametrize("name", [*(n for n in DIFFERENT if INSTANCES[n].symmetric), 500, 60_000])
def test_every_launch_of_climbers_fits(name, kernel, driver):
    problem = INSTANCES[name] if isinstance(name, str) else cloud(name)
    parameters = ClimberParameters(n_climbers=6, kernel=kernel)
    engine = CudaClimbers(listed_instance(problem, 1), parameters)
    n = problem.n_cities
    engine.start_from(np.arange(n)[None])
    engine.climb(1)
    assert engine.best()[0].shape == (n,)
    assert engine.export_state()["lengths"].shape == (6,)
    engine.import_state(engine.export_state())
    del engine
    gc.collect()
    assert not driver.taken
