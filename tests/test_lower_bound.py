"""The proven lower bound, as users meet it: of an algorithm, and in the gap column."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUAS, GPUMMAS, TSP


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


def test_asymmetric_instances_have_none() -> None:
    matrix = np.array([[0.0, 1, 9, 9], [9, 0, 1, 9], [9, 9, 0, 1], [1, 9, 9, 0]])
    result = minimize(TSP(matrix=matrix), GPUAS(backend="cpu"), ("n_gen", 2), seed=1)
    assert result.algorithm.lower_bound is None
