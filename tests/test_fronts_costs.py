"""Costs of edges by every objective, with a table of all of them and without, and tours added up by the table."""

from __future__ import annotations

import numpy as np
import pytest

from pymoo_gpuaco import TSP, MultiObjectiveTSP
from pymoo_gpuaco.pareto import costs as module
from pymoo_gpuaco.pareto.costs import add_up_table, cost, make_costs
from tests.tour_cases import random_tours

N = 7
NEAR = np.array([[1, 2], [0, 3], [4, 2], [3, 3], [5, 6], [6, 0], [2, 1]], np.int32)  # 2 and 3 have fewer


def parts_of(*, matrix: bool) -> tuple[TSP, ...]:
    rng = np.random.default_rng(5)
    places = rng.integers(0, 90, (N, 2))
    other = rng.integers(1, 99, (N, N)) if matrix else rng.random((N, 3))
    problem = MultiObjectiveTSP([TSP(places, "GEO"), TSP(matrix=other) if matrix else TSP(other)])
    return problem.parts


@pytest.mark.parametrize(("most", "matrix", "tabled"), [(7, False, True), (6, False, False), (6, True, True)])
def test_edges_cost_what_the_problems_say(most, matrix, tabled, monkeypatch):
    monkeypatch.setattr(module, "MOST_FOR_TABLE", most)
    parts = parts_of(matrix=matrix)
    costs = make_costs(parts, NEAR)
    assert costs.table.shape == ((N, N, 2) if tabled else (0, 0, 2))
    assert costs.coords.shape == ((2, 0, 3) if tabled else (2, N, 3))
    assert costs.directed == matrix
    for q, part in enumerate(parts):
        for i, j in np.ndindex(N, N):
            assert cost(costs, q, i, j) == (part.D[i, j] if i != j else 0.0)
        real = np.arange(N)[:, None] != NEAR
        assert np.array_equal(costs.near[..., q][real], part.D[np.arange(N)[:, None], NEAR][real])
        assert np.isinf(costs.near[..., q][~real]).all()
    again = make_costs(parts, NEAR[:, :1], costs.table)
    assert again.table is costs.table
    assert again.near.shape == (N, 1, 2)


@pytest.mark.parametrize("n", [3, 4, 511, 512, 513, 1025])
@pytest.mark.parametrize("symmetric", [False, True])
def test_tours_are_added_up_as_the_problem_does_it_to_the_last_bit(n, symmetric):
    """512 edges at a time, from city 0 towards its smaller neighbour."""
    rng = np.random.default_rng(n)
    matrices = rng.random((2, n, n))
    if symmetric:
        matrices = np.triu(matrices, 1) + np.triu(matrices, 1).swapaxes(1, 2)
    problem = MultiObjectiveTSP([TSP(matrix=matrix) for matrix in matrices])
    tours = random_tours(n, 4, n)
    tours = np.concatenate([tours, tours[:, ::-1], np.roll(tours, 1, axis=1)])
    lengths = np.empty((len(tours), 2))
    add_up_table(np.ascontiguousarray(problem.D.transpose(1, 2, 0)), tours, lengths)
    assert np.array_equal(lengths, problem.tour_lengths(tours))
    assert np.array_equal(lengths[:4], lengths[8:])
    assert np.array_equal(lengths[:4], lengths[4:8]) == symmetric
