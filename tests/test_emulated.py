"""A part of the shared engine tests with the kernels run on the host, see ``emulator``; needs g++ and no GPU.

``pytest -m gpu --emulate FILE`` runs any other test file of the CUDA engines that way.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import ALL_ALGORITHMS, GPU2PPLS, TSP, GPUMemetic, MultiObjectiveTSP, OpenPath
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cuda.assignment import Tier
from pymoo_gpuaco.backends.cuda.climbers import CudaClimbers
from pymoo_gpuaco.backends.cuda.engine import CudaColony
from pymoo_gpuaco.backends.cuda.local_search import CudaImprover
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from tests import emulator, test_cuda_assignment, test_cuda_precedence, test_cuda_search
from tests import test_engines as shared
from tests import test_engines_climbers as climbers
from tests import test_faco as faco
from tests import test_heuristic as heuristics
from tests import test_own_rules as own_rules
from tests import test_scales as scales
from tests import test_trail_updates as updates
from tests.algorithm_cases import small
from tests.assignment_cases import best_of_all, matrices
from tests.engine_cases import COLONIES
from tests.instances import listed_instance

emulator.skip_without_compiler()

CUDA = "cuda"


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch, compiled_kernels: Path) -> emulator.Emulator:
    # the usual share of a climber is a thousand times as much work
    monkeypatch.setattr(CudaClimbers.climb, "__defaults__", (1 << 28,))
    return emulator.install(monkeypatch, compiled_kernels)


@pytest.mark.parametrize("way", COLONIES)
def test_every_way_of_building_tours(way):
    shared.test_tours_are_permutations_and_lengths_exact("33 cities", way, CUDA)
    shared.test_an_imported_state_continues_bit_by_bit(way, CUDA)


# a metric changes how distances are measured, a matrix also where kernels read them
@pytest.mark.parametrize(
    ("name", "way"),
    [
        *(("25 cities, asymmetric", way) for way in ("wrs", "rwm, all cities", "hybrid", "acs sync")),
        *(("30 cities, GEO", way) for way in ("wrs", "rwm, all cities")),
        *(("30 cities, HAVERSINE", way) for way in ("hybrid", "acs sync")),
        *(("12 cities at one place", way) for way in ("wrs", "rwm, all cities", "hybrid", "acs sync")),
    ],
)
def test_other_instances(name, way):
    shared.test_tours_are_permutations_and_lengths_exact(name, way, CUDA)


@pytest.mark.parametrize(
    "way", ["wrs", "rwm, all cities", "hybrid", "candidate memory", "acs sync", "acs selective"]
)
def test_a_heuristic(way):
    heuristics.test_one_over_whole_distances_gives_the_tours_of_the_default(way, False, CUDA)


@pytest.mark.parametrize("way", ["rwm", "candidate memory", "acs sync", "acs selective"])
def test_a_heuristic_where_candidates_are_visited(way):
    heuristics.test_ants_whose_candidates_are_visited_take_the_best_by_heuristic(way, CUDA)


def test_tours_of_a_local_search_in_python():
    own_rules.test_tours_in_place_of_those_of_the_last_construction_deposit(CUDA)


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_trails(memory):
    shared.test_the_whole_colony_deposits_one_over_its_lengths(3, memory, True, CUDA)


@pytest.mark.parametrize("memory", ["dense", "candidate"])
def test_deposits_by_ant(memory):
    by_hand = updates.TestOnEngines()
    by_hand.test_ranks_that_add_and_take(memory, CUDA)
    by_hand.test_what_is_added_is_cut_before_anything_is_taken(memory, CUDA)
    by_hand.test_no_trail_falls_below_the_lower_limit(memory, CUDA)
    by_hand.test_all_kinds_of_deposits_together(memory, CUDA)


def test_two_opt_alone_looks_at_the_whole_list():
    test_cuda_search.test_two_opt_alone_looks_at_the_whole_list()


@pytest.mark.parametrize("moves", ["2opt", "2opt+oropt"])
def test_any_number_of_tours_is_improved(moves):
    problem = shared.cloud(40, 1)
    search = LocalSearch(moves, kicks=0.5)
    instance = listed_instance(problem, 8)
    start = np.array([np.random.default_rng(s).permutation(40) for s in range(5)])
    improver = CudaImprover(instance, search)
    tours, lengths = improver.improve(start, 3)
    np.testing.assert_array_equal(lengths, problem.tour_lengths(tours))
    assert (lengths < problem.tour_lengths(start)).all()
    colony = CudaColony(instance, ColonyParameters(n_ants=2, candidate_list_size=8, local_search=search))
    for few in (5, 2, 0):
        for engine in (improver, colony):  # with a colony around it or without
            np.testing.assert_array_equal(engine.improve(start[:few], 3)[0], tours[:few])


@pytest.mark.parametrize("kicks", [0.0, 2.0])
@pytest.mark.parametrize("in_shared", [True, False])
def test_asymmetric_tours_are_improved(kicks, in_shared, monkeypatch):
    if not in_shared:
        monkeypatch.setitem(emulator.Emulator.limits, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", 256)
    problem = shared.asymmetric(40, 1)
    search = LocalSearch(kicks=kicks)
    start = np.array([np.random.default_rng(s).permutation(40) for s in range(5)])
    improver = CudaImprover(listed_instance(problem, 16), search)
    tours, lengths = improver.improve(start, 3)
    assert (np.sort(tours, axis=1) == np.arange(40)).all()
    np.testing.assert_array_equal(lengths, problem.tour_lengths(tours))
    # the CPU engine makes the same moves in another order: neither is better by much
    _, others = CpuImprover(listed_instance(problem, 16), search).improve(start, 3)
    assert 0.8 < lengths.mean() / others.mean() < 1.25
    assert lengths.mean() < 0.3 * problem.tour_lengths(start).mean()
    np.testing.assert_array_equal(improver.improve(start[:2], 3)[0], tours[:2])


def test_the_greedy_tour():
    shared.test_the_greedy_tour_goes_to_the_nearest_open_city(CUDA)


@pytest.mark.parametrize("name", ["64 cities, not rounded", "30 cities, GEO", "30 cities, HAVERSINE"])
def test_climbers(name):
    climbers.test_climbs_end_where_no_pair_improves(name, CUDA)


def test_the_tournament():
    shared.test_the_tournament_has_its_own_distribution(3, CUDA)


def test_threads_that_wait_for_ever_are_reported(tmp_path):
    source = 'extern "C" __global__ void stuck(int n) {\n    if (threadIdx.x < 5) __syncthreads();\n}\n'
    run = emulator.build("stuck.cu", {}, tmp_path, source).run_stuck
    assert run(1, 32, b"\0\0\0\0") == 1
    assert run(1, 4, b"\0\0\0\0") == 0


@pytest.mark.parametrize("name", ["33 cities", "30 cities, GEO", "12 cities at one place"])
def test_focused_ants(name):
    faco.test_tours_are_permutations_and_lengths_exact(name, "2opt+oropt", CUDA)


def test_iterations_of_focused_ants():
    faco.test_the_best_of_an_iteration_is_the_next_source(CUDA)
    faco.test_trails_stay_within_the_limits_and_the_source_deposits(CUDA)
    faco.test_the_key_decides_everything_and_a_state_continues_bit_by_bit(CUDA)


@pytest.mark.parametrize(("kind", "n"), test_cuda_precedence.SHAPES[:4] + test_cuda_precedence.FIXED)
def test_chains_with_precedence(kind, n):
    test_cuda_precedence.compare_chains(kind, n, 600, 2)


@pytest.mark.parametrize("start", ["trails", "perturbed"])
@pytest.mark.parametrize(
    ("kind", "n"), [("symmetric", 1), ("one-sided", 3), ("asymmetric", 11), ("large", 10), ("twins", 18)]
)
def test_placements(kind, n, start):
    test_cuda_assignment.compare(kind, n, start, 60, 2, n_ants=2, restart_after=1)


@pytest.mark.parametrize("tiers", [(), (Tier(64, 5, 1),)])
def test_placements_by_other_tiles(tiers, monkeypatch):
    monkeypatch.setattr("pymoo_gpuaco.backends.cuda.assignment._TIERS", tiers)
    for kind, n in (("asymmetric", 13), ("symmetric", 21)):
        test_cuda_assignment.compare(kind, n, "trails", 70, 1, n_ants=2)
    engine = test_cuda_assignment.compare("one-sided", 7, "trails", 70, 1, n_ants=2)[1]
    assert engine.best[1] == best_of_all(*matrices("one-sided", 7))


def test_windows_at_every_scale():
    scales.compare_scales(60, 3, 0.02)


def test_costs_with_precedence_become_finer():
    test_cuda_precedence.compare_wide_runs(300, 2)


def test_run_with_precedence(monkeypatch):
    monkeypatch.setattr("pymoo_gpuaco.backends.cuda.precedence.CudaChains.trials", 300)
    test_cuda_precedence.test_run_on_the_device_keeps_precedence_and_resumes()


TRIANGLE = [[0, 0], [3, 4], [6, 0]]  # sides 5, 5 and 6


@pytest.mark.parametrize(("n", "length"), [(2, 10.0), (3, 16.0)])
@pytest.mark.parametrize("cls", ALL_ALGORITHMS.values(), ids=list(ALL_ALGORITHMS))
def test_two_and_three_cities(cls, n, length):
    problem = TSP(TRIANGLE[:n], "EUC_2D")
    result = minimize(problem, small(cls, backend=CUDA), ("n_gen", 2), seed=1)
    assert sorted(result.X) == list(range(n))
    assert result.F[0] == length


@pytest.mark.parametrize(("n", "length"), [(2, 5.0), (3, 10.0)])
def test_paths_of_two_and_three_cities_need_no_kernel(n, length, emulated):
    result = minimize(OpenPath(TRIANGLE[:n], metric="EUC_2D"), GPUMemetic(backend=CUDA), ("n_gen", 2), seed=1)
    assert sorted(result.X) == list(range(n))
    assert result.F[0] == length
    assert not emulated.launched


@pytest.mark.parametrize(("n", "lengths"), [(2, [10.0, 2.0]), (3, [16.0, 4.0])])
def test_two_objectives_of_two_and_three_cities(n, lengths):
    lines = [TSP(TRIANGLE[:n], "EUC_2D"), TSP([[0, 0], [1, 0], [2, 0]][:n], "EUC_2D")]
    result = minimize(MultiObjectiveTSP(lines), GPU2PPLS(backend=CUDA), ("n_gen", 2), seed=1)
    assert result.F.tolist() == [lengths]
