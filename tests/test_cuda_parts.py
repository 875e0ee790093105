"""Parts of CUDA engines: arrays, what is compiled, plans, and parameters of kernels. Needs no device."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.device import DeviceLimits, resident_blocks, sources
from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks
from pymoo_gpuaco.backends.cuda.instance import ListPlan
from pymoo_gpuaco.backends.cuda.walks import acs
from pymoo_gpuaco.backends.cuda.walks.acs import heuristic
from pymoo_gpuaco.backends.cuda.walks.rules import rule_shape
from pymoo_gpuaco.backends.cuda.walks.walk import row_shape, tabu_bytes
from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.colony.parameters import ClimberParameters, ColonyParameters, LocalSearch
from pymoo_gpuaco.problems import TSP
from tests.acs_cases import SYNC
from tests.engine_cases import cloud, instance_for
from tests.fake_device import FakeDriver, install
from tests.instances import listed_instance

SIZES = (132, 133, 265, 400)  # one ant a multiprocessor, two, three and four


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch)


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
def test_the_number_of_ants_compiles_nothing_again(parameters, driver):
    for m in SIZES:
        chosen = ColonyParameters(n_ants=m, **parameters)
        CudaColony(instance_for(cloud(60), chosen), chosen).construct(1)
    codes = {(file, *sorted(definitions.items())) for file, definitions in driver.compiled}
    assert len(driver.compiled) == len(SIZES) * len(codes)


def test_lists_that_32_bits_cannot_count_are_refused():
    # 2^31 / 1024 = 2,097,152 rows of 1024 candidates
    assert ListPlan(2_097_151, 1024).countable
    assert not ListPlan(2_097_152, 1024).countable
    assert not ListPlan(2_097_152, 993).countable  # padded to 1024
    instance = SimpleNamespace(n=2_097_152, k=1024, symmetric=True)
    assert "candidate_list_size" in lacks(instance, ColonyParameters(candidate_list_size=1024))
    instance.k = 32
    assert lacks(instance, ColonyParameters(candidate_list_size=32)) is None


@pytest.mark.parametrize("n", [60, 60_000])  # a scan of 60,000 cities has parts
def test_climbers_take_a_state_of_the_cpu(n, driver):
    engine = CudaClimbers(listed_instance(cloud(n), 1), ClimberParameters(2))
    state = engine.export_state()
    state["tours"] = np.tile(np.arange(n, dtype=np.int32), (2, 1))
    state["row"] = np.array([-1, 7])
    engine.import_state(state)
    taken = engine.export_state()
    np.testing.assert_array_equal(taken["tours"], state["tours"])
    assert list(taken["row"]) == [-1, 0]  # a scan under way is restarted


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


# ---- blocks that wait for each other


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "blocks"),
    [
        (256, 64, 0, 4),  # 16384 registers of a part are 8 warps of 2048: 32 warps, 4 blocks of 8
        (256, 65, 0, 3),  # 2080 registers of a warp are 2304: 7 warps of a part, 28 in all
        (1024, 64, 0, 1),
        (1024, 65, 0, 0),
        (1024, 32, 0, 2),  # 64 warps
        (96, 16, 0, 16),  # of 21 by warps, every device holds 16
        (256, 32, 60_000, 3),  # 3 * 61_024 of 205_824 bytes
    ],
)
def test_blocks_that_a_multiprocessor_holds(threads, registers, shared, blocks):
    assert resident_blocks(LIMITS, threads, registers, shared) == blocks


def sync_colony(n_ants):
    parameters = ColonyParameters(n_ants=n_ants, **{**SYNC, "xi": 0.1})
    return CudaColony(instance_for(cloud(33), parameters), parameters)


def test_more_blocks_than_the_device_holds_are_not_launched(driver, monkeypatch):
    """The fake kernel has 64 registers: 132 multiprocessors hold 4 blocks of 8 ants each."""
    engine = sync_colony(8 * 529)
    engine.reset_trails(1.0)
    engine.construct(1)
    monkeypatch.setattr(engine.walk, "_ants_per_block", 8)
    driver.launched.clear()
    with pytest.raises(DeviceFailed, match=r"the 529 blocks of acs_sync wait for each other, .* holds 528"):
        engine.construct(2)
    assert "acs_sync" not in driver.launched


def test_arrivals_at_barriers_fit_their_counter(driver, monkeypatch):
    """Seven ants are one block, which arrives at 33 barriers."""
    monkeypatch.setattr(acs, "_MOST_ARRIVALS", 33)
    sync_colony(7)
    monkeypatch.setattr(acs, "_MOST_ARRIVALS", 32)
    with pytest.raises(BackendUnavailable, match="counts 32 arrivals at barriers, got 1 blocks at 33"):
        sync_colony(7)


# ---- plans of walks


LIMITS = DeviceLimits(100, 64, 200 << 10, registers=1 << 16, shared_in_all=201 << 10)


def shape_of(n, limits=LIMITS, **parameters):
    """Return the lanes of an ant, and the launch shape for 1000 ants."""
    return rule_shape(n, 1000, ColonyParameters(candidate_list_size=None, **parameters), limits)


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
    assert shape_of(1000, selection=selection)[1].ant_bytes == bytes_of_1000_cities


@pytest.mark.parametrize(
    ("size", "lanes", "ants"),
    [(1, 1, 32), (2, 2, 16), (3, 4, 8), (4, 4, 8), (16, 16, 2), (33, 32, 1), (1024, 32, 1)],
)
def test_a_tournament_has_a_lane_for_every_city_drawn(size, lanes, ants):
    found, shape = shape_of(200, selection="acceptance_tournament", tournament_size=size)
    assert (found, shape.ants_per_block) == (lanes, ants)


def test_fewer_ants_share_a_block_where_their_memory_does_not_fit():
    # 160 bytes an ant, see above: two fit into 400 bytes, not eight
    tight = replace(LIMITS, shared_bytes=400)
    lanes, shape = shape_of(1000, tight, selection="acceptance_tournament", tournament_size=4)
    assert (lanes, shape.ants_per_block, shape.in_shared) == (16, 2, True)
    assert not shape_of(1000, tight, selection="compressed")[1].in_shared


@pytest.mark.parametrize(
    ("tabu", "ants", "resident"),
    [
        ("bitmask", 1000, True),  # 128 bytes an ant
        ("list", 1100, True),  # 4,000 bytes an ant, eleven ants a block
        ("list", 1200, False),
        ("compact", 2200, True),  # 2,000 bytes an ant, 22 ants a block
        ("compact", 2300, False),
    ],
)
def test_rows_are_in_shared_memory_if_they_fit_beside_the_ants_of_a_block(tabu, ants, resident):
    # 160,000 bytes of rows leave room for 44,800 bytes of ants; 100 multiprocessors have one block each
    shape, found = row_shape(ants, tabu_bytes(tabu, 1000), 160_000, LIMITS)
    assert found is resident
    if resident:
        assert (shape.blocks, shape.ants_per_block) == (100, ants // 100)


@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0])
@pytest.mark.parametrize("scale", [1.0, 1e-100])
def test_the_heuristic_stays_within_a_float(beta, scale):
    # cities at one place count as `shortest` apart; the furthest keeps a weight above zero
    instance = listed_instance(TSP(np.array([[0, 0], [0, 0], [1, 0], [1e7, 0]]) * scale, "EXACT"), 3)
    table = heuristic(instance, beta, 0.5 * scale, 32)
    assert np.isfinite(table).all()
    assert (table[:, :3] > 0.0).all()
    assert table.max() == 1.0


PAIR = 'struct Pair {{ {} }};\nextern "C" __global__ void use(Pair pair, int n) {{}}'


def test_a_struct_is_passed_as_its_members(monkeypatch):
    text = PAIR.format("const int *a, *b;  // (n,)\n unsigned long long* c; float x, y;")
    monkeypatch.setattr(sources, "read", lambda name: text)
    assert sources.parameters("a.cu", ["use"]) == {"use": "PPPffi"}


@pytest.mark.parametrize("members", ["int n; const int* a;", "const int* a; int n;", "int2 pair;"])
def test_a_struct_with_gaps_is_refused(members, monkeypatch):
    monkeypatch.setattr(sources, "read", lambda name: PAIR.format(members))
    with pytest.raises(ValueError, match=r"struct Pair must begin|unsupported kernel parameter 'int2"):
        sources.parameters("a.cu", ["use"])
