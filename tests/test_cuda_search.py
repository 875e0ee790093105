"""Local search on CUDA against the CPU engine. Needs a CUDA device."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cuda.local_search import CudaImprover
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.problems import TSP
from tests.cuda_cases import colony, is_permutation, random_instance
from tests.engine_cases import asymmetric
from tests.instances import listed_instance

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("moves", ["2opt", "2opt+oropt"])
def test_local_search_ends_where_the_cpu_finds_nothing_more(moves):
    n = 400
    instance = random_instance(n, 10, metric="EUC_2D")
    parameters = {
        "n_ants": 16,
        "candidate_list_size": 10,
        "local_search": LocalSearch(moves=moves, kicks=0.0),
    }
    ours = colony(instance, **parameters)
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(n) for _ in range(16)], np.int32)
    tours, lengths = ours.improve(start, 1)
    assert is_permutation(tours)
    np.testing.assert_array_equal(lengths, [instance.tour_length(t) for t in tours])
    reference = CpuColony(instance, ColonyParameters(**parameters))
    _, further = reference.improve(tours, 1)
    # the order of moves differs, and so do the few cities whose don't-look bit hides a move
    assert further.mean() > 0.995 * lengths.mean()
    _, from_start = reference.improve(start, 1)
    assert lengths.mean() == pytest.approx(from_start.mean(), rel=0.03)


def test_two_opt_alone_looks_at_the_whole_list():
    """The 32 nearest in Skinderowicz 2020, section 5.7; where 17 cities lie together, the 16 nearest are all there."""
    corners = np.repeat([[0.0, 0.0], [100.0, 0.0], [100.0, 300.0], [0.0, 300.0]], 17, axis=0)
    problem = TSP(corners + np.random.default_rng(0).uniform(0.0, 0.1, corners.shape), metric="EXACT")
    crossed = np.arange(68).reshape(4, 17)[[0, 2, 1, 3]].reshape(1, -1)
    assert problem.tour_lengths(crossed)[0] > 2 * 300 + 2 * np.hypot(100, 300) - 1
    search = LocalSearch("2opt", kicks=0.0)
    tours, lengths = CudaImprover(listed_instance(problem, 32), search).improve(crossed, 1)
    assert is_permutation(tours)
    # the rectangle, and at each corner less than 17 times across 0.1 x 0.1
    assert lengths[0] < 2 * 300 + 2 * 100 + 4 * 17 * 0.15


def test_kicks_shorten_tours_and_never_lengthen_them():
    n = 300
    instance = random_instance(n, 10, metric="EUC_2D")
    rng = np.random.default_rng(0)
    start = np.array([rng.permutation(n) for _ in range(16)], np.int32)
    without = colony(
        instance, n_ants=16, candidate_list_size=10, local_search=LocalSearch(kicks=0.0)
    ).improve(start, 1)
    kicked = colony(instance, n_ants=16, candidate_list_size=10, local_search=LocalSearch(kicks=2.0)).improve(
        start, 1
    )
    assert is_permutation(kicked[0])
    assert (kicked[1] <= without[1]).all()
    assert kicked[1].mean() < 0.985 * without[1].mean()


@pytest.mark.parametrize("kicks", [0.0, 1.0])
def test_asymmetric_tours_end_where_the_cpu_finds_little_more(kicks):
    n = 200
    instance = listed_instance(TSP(matrix=np.random.default_rng(3).uniform(1, 1000, (n, n))), 16)
    search = LocalSearch(kicks=kicks)
    ours, reference = CudaImprover(instance, search), CpuImprover(instance, search)
    start = np.array([np.random.default_rng(s).permutation(n) for s in range(32)])
    tours, lengths = ours.improve(start, 1)
    assert is_permutation(tours)
    np.testing.assert_allclose(lengths, [instance.tour_length(t) for t in tours], rtol=1e-12)
    # a move is found from one of its ends alone, so don't-look bits hide some: another search, also one by the engine
    # that made the first, shortens these tours by some 4 %
    _, further = CpuImprover(instance, LocalSearch(kicks=0.0)).improve(tours, 1)
    assert further.mean() > 0.92 * lengths.mean()
    _, from_start = reference.improve(start, 1)
    assert lengths.mean() == pytest.approx(from_start.mean(), rel=0.08)
    np.testing.assert_array_equal(ours.improve(start, 1)[0], tours)


@pytest.mark.parametrize("n", [3, 4, 5, 7, 8, 9])
def test_no_exchange_of_stretches_that_keeps_their_direction_is_left(n):
    problem = asymmetric(n, n)
    improver = CudaImprover(listed_instance(problem, n - 1), LocalSearch(kicks=0.0))
    tours = np.array([np.random.default_rng(s).permutation(n) for s in range(8)])
    lengths = problem.tour_lengths(tours)
    while True:  # a city whose own edges stay is not looked at again by one search; by another it is
        tours, shorter = improver.improve(tours, 1)
        np.testing.assert_array_equal(shorter, problem.tour_lengths(tours))
        assert (shorter <= lengths).all()
        if (shorter == lengths).all():
            break
        lengths = shorter
    for tour, length in zip(tours, lengths, strict=True):
        for first in range(n):
            p, *rest = np.roll(tour, -first)
            for a in range(1, n - 1):
                for b in range(a + 1, n):
                    other = [p, *rest[a:b], *rest[:a], *rest[b:]]
                    assert problem.tour_lengths(np.array([other]))[0] >= length


def test_kicks_of_asymmetric_tours_are_kept_where_they_shorten():
    n = 60
    problem = asymmetric(n, 2)
    instance = listed_instance(problem, 20)
    start = np.array([np.random.default_rng(s).permutation(n) for s in range(8)])
    # a second search of a local optimum finds little more, so what kicks make shorter is theirs
    optima, lengths = CudaImprover(instance, LocalSearch(kicks=0.0)).improve(start, 1)
    for kick_length in (1, 30):
        search = LocalSearch(kicks=5.0, kick_length=kick_length)
        kicked, shorter = CudaImprover(instance, search).improve(optima, 1)
        np.testing.assert_array_equal(shorter, problem.tour_lengths(kicked))
        assert (shorter <= lengths).all()
        assert shorter.mean() < 0.95 * lengths.mean()
    usual = CudaImprover(instance, LocalSearch()).improve(start, 1)[0]  # one a city
    np.testing.assert_array_equal(usual, CudaImprover(instance, LocalSearch(kicks=1.0)).improve(start, 1)[0])


@pytest.mark.parametrize("way", ["all distances 5", "many of length 0"])
def test_equal_distances_end_the_search_of_asymmetric_tours(way):
    n = 40
    drawn = np.random.default_rng(7).integers(0, 3, (n, n)).astype(float)
    matrix = np.full((n, n), 5.0) if way == "all distances 5" else drawn
    matrix[0, 1] = 6.0  # not symmetric
    matrix[1, 0] = 4.0
    problem = TSP(matrix=matrix)
    start = np.array([np.random.default_rng(s).permutation(n) for s in range(5)])
    tours, lengths = CudaImprover(listed_instance(problem, 10), LocalSearch()).improve(start, 1)
    assert is_permutation(tours)
    np.testing.assert_array_equal(lengths, problem.tour_lengths(tours))
    assert (lengths <= problem.tour_lengths(start)).all()


def test_where_a_known_tour_runs_nothing_is_looked_for_but_its_reverse_is_another():
    n = 20
    instance = listed_instance(asymmetric(n, 2), n - 1)
    search = LocalSearch(kicks=0.0)
    engine = colony(instance, n_ants=2, candidate_list_size=n - 1, local_search=search)
    tour = np.random.default_rng(5).permutation(n).astype(np.int32)
    both = np.array([tour, tour[::-1]])
    with engine.device.working():
        engine._search.remember(tour, instance.tour_length(tour))
        engine.device.write("next_tours", both)
        engine._search.improve(1, engine.device.arrays["next_tours"], 2, 0)
        found = np.empty_like(both)
        engine.device.read(found, "next_tours")
    assert found[0].tolist() == tour.tolist()
    assert instance.tour_length(found[1]) < instance.tour_length(tour[::-1])
