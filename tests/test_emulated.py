"""A part of the shared engine tests with the kernels run on the host, see ``emulator``; needs g++ and no GPU.

``pytest -m gpu --emulate FILE`` runs any other test file of the CUDA engines that way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from tests import emulator
from tests import test_engines as shared
from tests.engine_cases import COLONIES

if emulator.COMPILER is None:
    pytest.skip("the emulator is compiled by g++, which is not on the PATH", allow_module_level=True)

CUDA = "cuda"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulator")


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch, folder: Path) -> emulator.Emulator:
    # the usual share of a climber is a thousand times as much work
    monkeypatch.setattr(CudaClimbers.climb, "__defaults__", (1 << 28,))
    return emulator.install(monkeypatch, folder)


@pytest.mark.parametrize("way", COLONIES)
def test_every_way_of_building_tours(way):
    shared.test_tours_are_permutations_and_lengths_exact("33 cities", way, CUDA)
    shared.test_an_imported_state_continues_bit_by_bit(way, CUDA)


@pytest.mark.parametrize("name", ["25 cities, asymmetric", "30 cities, GEO", "12 cities at one place"])
@pytest.mark.parametrize("way", ["wrs", "rwm, all cities", "hybrid", "acs sync"])
def test_other_instances(name, way):
    shared.test_tours_are_permutations_and_lengths_exact(name, way, CUDA)


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_trails(memory):
    shared.test_trail_update_by_hand(memory, CUDA)
    shared.test_the_whole_colony_deposits_one_over_its_lengths(3, memory, True, CUDA)


def test_the_greedy_tour():
    shared.test_the_greedy_tour_goes_to_the_nearest_open_city(CUDA)


@pytest.mark.parametrize("moves", ["best", "batch"])
@pytest.mark.parametrize("name", ["64 cities, not rounded", "30 cities, GEO"])
def test_climbers(name, moves):
    shared.test_climbs_end_where_no_pair_improves(name, moves, CUDA)


def test_the_tournament():
    shared.test_the_tournament_has_its_own_distribution(3, CUDA)


def test_threads_that_wait_for_ever_are_reported(tmp_path, monkeypatch):
    source = 'extern "C" __global__ void stuck(int n) {\n    if (threadIdx.x < 5) __syncthreads();\n}\n'
    monkeypatch.setattr(emulator.sources, "read", lambda name: source)
    run = emulator.build("stuck.cu", {}, tmp_path).run_stuck
    assert run(1, 32, b"\0\0\0\0") == 1
    assert run(1, 4, b"\0\0\0\0") == 0
