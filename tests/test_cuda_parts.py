"""Parts of CUDA engines: arrays, what is compiled, plans, and parameters of kernels. Needs no device."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import Device, DeviceLimits, Part, Source, signatures, sources
from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks
from pymoo_gpuaco.backends.cuda.instance import ListPlan
from pymoo_gpuaco.backends.cuda.local_search import CudaImprover
from pymoo_gpuaco.backends.cuda.walks.acs import heuristic
from pymoo_gpuaco.backends.cuda.walks.rules import rule_plan
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.problems import TSP
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


# ---- plans of walks


LIMITS = DeviceLimits(multiprocessors=100, warps=64, shared_bytes=200 << 10)


def plan_of(n, limits=LIMITS, **parameters):
    return rule_plan(n, ColonyParameters(candidate_list_size=None, **parameters), limits)


@pytest.mark.parametrize(
    ("selection", "bytes_of_1000_cities"),
    [
        ("roulette", 128),  # a bit for each of 1024 places
        ("stochastic_trial", 128),
        ("compressed", 2000),  # two bytes a city
        ("hybrid", 128 + 304),  # bits, and a list of the last 150 rounded up to 16 bytes
        ("acceptance_tournament", 128 + 32),  # of the last 10
    ],
)
def test_an_ant_remembers_what_its_rule_needs(selection, bytes_of_1000_cities):
    assert plan_of(1000, selection=selection).ant_bytes == bytes_of_1000_cities


@pytest.mark.parametrize(
    ("size", "lanes", "ants"),
    [(1, 1, 32), (2, 2, 16), (3, 4, 8), (4, 4, 8), (16, 16, 2), (33, 32, 1), (1024, 32, 1)],
)
def test_a_tournament_has_a_lane_for_every_city_drawn(size, lanes, ants):
    how = plan_of(200, selection="acceptance_tournament", tournament_size=size)
    assert (how.lanes, how.shape(1000, LIMITS).ants_per_block) == (lanes, ants)


def test_fewer_ants_share_a_block_where_their_memory_does_not_fit():
    # 160 bytes an ant, see above: two fit into 400 bytes, not eight
    tight = DeviceLimits(multiprocessors=100, warps=64, shared_bytes=400)
    how = plan_of(1000, tight, selection="acceptance_tournament", tournament_size=4)
    assert (how.lanes, how.shape(1000, tight).ants_per_block, how.in_shared) == (16, 2, True)
    assert not plan_of(1000, tight, selection="compressed").in_shared


def test_the_heuristic_is_relative_to_the_nearest_candidate():
    # from city 0 the others are at 1, 2 and 4: 1 / d^2 over its largest
    instance = listed_instance(TSP([[0, 0], [1, 0], [2, 0], [4, 0]], "EUC_2D"), 3)
    table = heuristic(instance, 2.0, 0.5, 32)
    assert table.shape == (4, 32)
    assert list(table[0, :3]) == [1.0, 0.25, 0.0625]
    assert not table[:, 3:].any()


@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("scale", [1.0, 1e-100])
def test_the_heuristic_stays_within_a_float(beta, scale):
    # cities at one place count as `shortest` apart; the furthest keeps a weight above zero
    instance = listed_instance(TSP(np.array([[0, 0], [0, 0], [1, 0], [1e7, 0]]) * scale, "EXACT"), 3)
    table = heuristic(instance, beta, 0.5 * scale, 32)
    assert np.isfinite(table).all()
    assert (table[:, :3] > 0.0).all()
    assert table.max() == 1.0


# ---- parameters of kernels


SOURCE = """
#include "other.cuh"
struct Words { long long of[3]; };
struct Two { int a; float b; };
#define SHARED_PARAMETERS  \\
    float alpha,   const \\
        char *memory
// __global__ void commented(int a);
extern "C" __global__ void plain(const double* __restrict__ a,  // (n, 2), (m,)
                                 unsigned b, size_t c, double d, SHARED_PARAMETERS, const Words w) {}
extern "C" __global__ void __launch_bounds__(32 * (WARPS + 1), 2) bounded(int a, Node* e, NODES) {}
extern "C" __global__ void twice(int a) {}
extern "C" __global__ void twice(int a) {}
extern "C" __global__ void structure(int n, Two two) {}
extern "C" __global__ void sequence(int n[3]) {}
extern "C" __global__ void short_one(short n) {}
"""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch):
    """A function that reads one kernel of ``SOURCE``."""
    files = {"own.cu": SOURCE, "other.cuh": "\n#define NODES Node *nodes, int n\n"}
    monkeypatch.setattr(sources, "read", files.__getitem__)
    return lambda kernel: signatures.read("own.cu", [kernel])[kernel]


def test_parameters_are_read_as_they_are_written(written):
    assert written("plain") == "PIQdfPqqq"
    assert written("bounded") == "iPPi"


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("commented", "own.cu must have one kernel commented, it has 0"),
        ("twice", "own.cu must have one kernel twice, it has 2"),
        ("structure", "unsupported kernel parameter 'Two two'"),
        ("sequence", r"unsupported kernel parameter 'int n\[3\]'"),
        ("short_one", "unsupported kernel parameter 'short n'"),
    ],
)
def test_other_parameters_raise_an_error(kernel, words, written):
    with pytest.raises(ValueError, match=words):
        written(kernel)
