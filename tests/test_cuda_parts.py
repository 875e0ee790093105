"""Parts of CUDA engines: names that collide, names that are missing, and what is compiled. Needs no device."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import Device, Part, Source
from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks
from pymoo_gpuaco.backends.cuda.instance import ListPlan
from pymoo_gpuaco.backends.cuda.local_search import CudaImprover
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from tests.engine_cases import cloud, instance_for
from tests.fake_device import FakeDriver, install

SIZES = (132, 133, 265, 400)  # one ant a multiprocessor, two, three and four


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


class Half(Part):
    """A part with one array and one kernel."""

    def __init__(self):
        self.sources = [Source("trails/trails.cu", {"DENSE": 1, "SYMMETRIC": 1}, ["fill_trails"])]
        self.needed = {"own": 16}


def test_two_arrays_of_one_name_are_refused(driver):
    with pytest.raises(ValueError, match="array of the same name"):
        Device(0).set_up([Half(), Half()], "")
    assert not driver.compiled


def test_an_array_that_is_not_there_has_no_address(driver):
    device = Device(0)
    device.set_up([Half()], "")
    assert device.arrays.address("own") != 0
    for look in (device.arrays.__getitem__, device.arrays.address):
        with pytest.raises(LookupError, match=r"no device array is named 'onw'; there are .*own"):
            look("onw")
    assert device.arrays.optional("tabus") == 0  # asked for as one that not every engine has
    with pytest.raises(ValueError, match="named 'own' already"):
        device.arrays.allocate("own", 16)


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"local_search": LocalSearch()},
        {"candidate_list_size": None},
        {"candidate_list_size": None, "selection": "wrs"},
        {"candidate_list_size": None, "selection": "hybrid"},
        {"candidate_list_size": None, "selection": "acceptance_tournament"},
        {"selection": "pseudo_random_proportional"},
        {"selection": "pseudo_random_proportional", "together": False},
    ],
    ids=str,
)
def test_the_number_of_ants_compiles_nothing_anew(parameters, driver):
    for m in SIZES:
        chosen = ColonyParameters(n_ants=m, **parameters)
        CudaColony(instance_for(cloud(60), chosen), chosen).construct(1)
    codes = {(file, *sorted(definitions.items())) for file, definitions in driver.compiled}
    assert len(driver.compiled) == len(SIZES) * len(codes)


@pytest.mark.parametrize("n", [60, 30_000])  # the tour under change in shared memory, and not
def test_improving_builds_no_colony_and_compiles_once(n, driver):
    improver = CudaImprover(listed_instance(cloud(n), 8), LocalSearch())
    compiled = list(driver.compiled)
    assert {file for file, _ in compiled} == {"tours/tours.cu", "local_search/local_search.cu"}
    for m in (3, 400, 132, 0) if n == 60 else (3, 5):
        tours, lengths = improver.improve(np.tile(np.arange(n), (m, 1)), 1)
        assert tours.shape == (m, n)
        assert lengths.shape == (m,)
    assert driver.compiled == compiled


def test_lists_that_32_bits_cannot_count_are_refused():
    # 2^31 / 1024 = 2,097,152 rows of 1024 candidates
    assert ListPlan(2_097_151, 1024).countable
    assert not ListPlan(2_097_152, 1024).countable
    assert not ListPlan(2_097_152, 993).countable  # padded to 1024
    instance = SimpleNamespace(n=2_097_152, k=1024, symmetric=True)
    assert "candidate_list_size" in lacks(instance, ColonyParameters(candidate_list_size=1024))
    instance.k = 32
    assert lacks(instance, ColonyParameters(candidate_list_size=32)) is None


@pytest.mark.parametrize("n", [60, 60_000])  # a scan of 60,000 cities has parts, and notes its moves
def test_batch_climbers_take_a_state_of_the_cpu(n, driver):
    engine = CudaClimbers(listed_instance(cloud(n), 1), ClimberParameters(2, moves="batch"))
    own = engine.export_state()
    state = {
        name: own[name]
        for name in ("tours", "lengths", "restart", "gain", "move", "best_tours", "best_lengths")
    }
    state["tours"] = np.tile(np.arange(n, dtype=np.int32), (2, 1))
    state["row"] = np.array([-1, 7])
    engine.import_state(state)
    taken = engine.export_state()
    np.testing.assert_array_equal(taken["tours"], state["tours"])
    assert list(taken["part"]) == [-1, 0]  # a scan that is under way begins again


def test_code_that_does_not_load_is_a_backend_that_is_not_available(driver, monkeypatch):
    def refuse(code: bytes) -> None:
        raise driver.Error("the provided PTX was compiled with an unsupported toolchain")

    monkeypatch.setattr(driver, "module_from_buffer", refuse)
    with pytest.raises(BackendUnavailable, match="driver may be older"):
        CudaColony(instance_for(cloud(20), ColonyParameters()), ColonyParameters())
    assert not driver.taken


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"memory": "selective"}, "do not step together"),
        ({"memory": "selective", "selection": "pseudo_random_proportional"}, "do not step together"),
        ({"candidate_list_size": None, "selection": "pseudo_random_proportional"}, "needs candidate lists"),
    ],
)
def test_parameters_that_only_the_cpu_supports_are_refused(parameters, words, driver):
    chosen = ColonyParameters(**parameters)
    with pytest.raises(BackendUnavailable, match=words):
        CudaColony(instance_for(cloud(20), chosen), chosen)
