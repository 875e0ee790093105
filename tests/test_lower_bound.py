"""The proven lower bound, as users meet it: of an algorithm, and in the gap column."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUAS, GPUMMAS, TSP
from pymoo_gpuaco.candidates.bound import prove_lower_bound
from pymoo_gpuaco.candidates.exact import shortest_tour
from pymoo_gpuaco.candidates.lists import listed_instance


def _shortest(matrix: np.ndarray) -> float:
    tours = ((0, *rest) for rest in itertools.permutations(range(1, len(matrix))))
    return min(sum(matrix[a, b] for a, b in zip(t, (*t[1:], 0), strict=True)) for t in tours)


@pytest.mark.parametrize("seed", range(5))
def test_no_tour_is_shorter_than_the_bound(seed: int) -> None:
    places = np.random.default_rng(seed).integers(0, 100, (7, 2)).astype(float)
    matrix = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    result = minimize(TSP(matrix=matrix), GPUAS(backend="cpu"), ("n_gen", 3), seed=1)
    bound = result.algorithm.lower_bound
    assert 0.0 < bound <= _shortest(matrix) * (1 + 1e-12)
    assert bound > 0.9 * _shortest(matrix)


def test_a_ring_is_proven_to_be_optimal(capsys: pytest.CaptureFixture[str]) -> None:
    """Cities on a circle: the ring around it is the best tour, and a 1-tree of the same length."""
    angle = 2 * np.pi * np.arange(20) / 20
    problem = TSP(1000 * np.column_stack([np.cos(angle), np.sin(angle)]), metric="EXACT")
    result = minimize(problem, GPUMMAS(backend="cpu"), ("n_gen", 5), seed=1, verbose=True)
    assert result.algorithm.lower_bound == pytest.approx(result.F[0], rel=1e-9)
    printed = capsys.readouterr().out
    assert "gap<= %" in printed
    assert "0.000" in printed


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_dynamic_programming_finds_the_shortest_of_all_tours(n: int, symmetric: bool) -> None:
    matrix = np.random.default_rng(n).integers(1, 30, (n, n)).astype(float)
    matrix = matrix + matrix.T if symmetric else matrix
    tour = shortest_tour(matrix)
    assert sorted(tour) == list(range(n))
    assert tour[0] == 0
    assert matrix[tour, np.roll(tour, -1)].sum() == _shortest(matrix)


@pytest.mark.parametrize("metric", ["EXACT", "GEO", "HAVERSINE", "CEIL_2D"])
def test_the_bound_of_few_cities_is_the_optimum(metric: str) -> None:
    problem = TSP(np.random.default_rng(3).uniform(-80, 80, (12, 2)), metric, best_known=0)
    bound = prove_lower_bound(listed_instance(problem, 5))
    assert bound == pytest.approx(problem.tour_length(shortest_tour(problem.D)), rel=1e-12)
    ring = TSP(matrix=np.abs(np.subtract.outer(range(8), range(8))))
    assert prove_lower_bound(listed_instance(ring, 3)) == 14
