"""Fronts of asymmetric distances: chains that turn no stretch, and the search, beside every tour of few cities."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, MultiObjectiveTSP, solve
from pymoo_gpuaco.backends import BackendUnavailable
from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.pareto import search
from pymoo_gpuaco.pareto.device import Front
from pymoo_gpuaco.pareto.instance import FrontInstance, all_tours, front_instance
from pymoo_gpuaco.pareto.nd_tree import make_tree
from pymoo_gpuaco.pareto.weights import single_objective_weights
from tests.front_cases import exact_front
from tests.test_fronts_chains import members


def directed_problem(n: int, k: int = 2, seed: int = 0, symmetric: int = 0) -> MultiObjectiveTSP:
    """Random whole matrices, the first ``symmetric`` of them symmetric."""
    matrices = np.random.default_rng(seed).integers(1, 1000, (k, n, n)).astype(float)
    matrices[:symmetric] += matrices[:symmetric].transpose(0, 2, 1)
    matrices[:, np.arange(n), np.arange(n)] = 0.0
    return MultiObjectiveTSP(list(matrices))


def directed_instance(n: int, k: int = 2, near: int = 0) -> FrontInstance:
    return front_instance(directed_problem(n, k), near or n - 1)


def arcs(tour: np.ndarray) -> frozenset[tuple[int, int]]:
    return frozenset(zip(tour.tolist(), np.roll(tour, -1).tolist(), strict=True))


def permutations_of(n: int) -> np.ndarray:
    return np.array([(0, *rest) for rest in permutations(range(1, n))])


def no_front(k: int = 2) -> Front:
    return Front(np.empty((0, k)), make_tree(0, 1, k), 0, np.zeros(2, np.uint64))


@pytest.mark.parametrize("exchanges", [2, 3, 4, 5])
def test_every_tour_that_so_many_arcs_make_is_found_and_no_other(exchanges):
    # what replaces three or five arcs is one chain; of four it is a double bridge, which is two chains
    n = 7
    device = CpuFronts(directed_instance(n))
    tour = np.random.default_rng(1).permutation(n)
    given = members(device, tour[None], exchanges, 1e9)
    children = device.explore(given, no_front())
    tours = device.follow(given, children)
    assert np.array_equal(device.instance.lengths(tours), children.lengths)
    changed = {r: [row for row in permutations_of(n) if n - len(arcs(row) & arcs(tour)) == r] for r in (3, 5)}
    expected = [row for r, rows in changed.items() if r <= exchanges for row in rows]
    assert {arcs(row) for row in tours} == {arcs(row) for row in expected}
    assert len(tours) == len(expected) == {2: 0, 3: 35, 4: 35, 5: 35 + len(changed[5])}[exchanges]


@pytest.mark.parametrize(("k", "symmetric"), [(2, 0), (2, 1), (3, 0)])
def test_the_search_finds_the_exact_front_without_looking_at_every_tour(k, symmetric, monkeypatch):
    monkeypatch.setattr(search, "MOST_FOR_ALL_TOURS", 3)
    problem = directed_problem(7, k, seed=2, symmetric=symmetric)
    result = minimize(problem, GPU2PPLS(backend="cpu"), ("n_gen", 40), seed=1)
    assert np.array_equal(problem.tour_lengths(result.X), result.F)
    assert np.array_equal(np.unique(result.F, axis=0), exact_front(problem, True))


def test_of_few_cities_the_front_is_exact_and_solutions_keep_their_direction():
    problem = directed_problem(6)
    front = solve(problem)
    assert np.array_equal(front.lengths, exact_front(problem, True))
    assert np.array_equal(problem.tour_lengths(front.tours), front.lengths)
    assert (front.tours[:, 0] == 0).all()
    assert len(all_tours(6, True)) == 120
    assert len(all_tours(6, False)) == 60


def test_kicks_and_ways_keep_lengths_and_do_not_depend_on_threads(monkeypatch):
    tours = np.stack([np.random.default_rng(i).permutation(40) for i in range(4)]).astype(np.int32)
    weights = np.repeat(single_objective_weights(2), 2, axis=0)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
        device = CpuFronts(directed_instance(40, near=8))
        shorter = device.descend(tours, weights, 30, 5)
        found.append((shorter, device.slide(shorter, weights, weights[::-1].copy(), np.empty((0, 2)))))
    for one, three in zip(*found, strict=True):
        assert (np.sort(one, axis=1) == np.arange(40)).all()
        assert np.array_equal(one, three)
    before, after = device.instance.lengths(tours), device.instance.lengths(found[0][0])
    assert (after[:2, 0] < 0.4 * before[:2, 0]).all()
    assert (after[2:, 1] < 0.4 * before[2:, 1]).all()


def test_cuda_says_that_it_knows_no_asymmetric_fronts():
    from pymoo_gpuaco.backends.cuda.pareto.engine import CudaFronts

    with pytest.raises(BackendUnavailable, match="need symmetric distances"):
        CudaFronts(directed_instance(12))
