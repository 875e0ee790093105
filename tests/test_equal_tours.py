"""Tours that count as equal, of every form of constraints, against all permutations of five cities."""

import itertools

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic, OpenPath, solve
from pymoo_gpuaco.algorithms.tour import canonical

N = 5
ALL = np.array(list(itertools.permutations(range(N))))
KINDS = {
    "round trip": (TSP, {}),
    "round trip from 2": (TSP, {"start": 2}),
    "path": (OpenPath, {}),
    "path from 1": (OpenPath, {"start": 1}),
    "path to 3": (OpenPath, {"end": 3}),
    "path from 1 to 3": (OpenPath, {"start": 1, "end": 3}),
}
CONSTRAINTS = {
    "none": {},
    "precedence": {"precedence": [(4, 3)]},
    "fixed": {"fixed_edges": [(4, 0)]},
    "forbidden": {"forbidden_edges": [(4, 0), (1, 2)]},
    "all": {"precedence": [(4, 3)], "fixed_edges": [(2, 4)], "forbidden_edges": [(1, 4)]},
}


def problem_of(kind, constraints, symmetric, seed=1):
    matrix = np.random.default_rng(seed).integers(1, 1000, (N, N)).astype(float)
    if symmetric:
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    cls, ends = KINDS[kind]
    return cls(matrix=matrix, **ends, **CONSTRAINTS[constraints])


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_tours_become_one_if_they_have_one_length_and_break_as_many_constraints(kind, constraints, symmetric):
    problem = problem_of(kind, constraints, symmetric)

    def measured(tours):
        return np.stack([problem.violations(tours), problem.tour_lengths(tours)])

    rows = canonical(ALL, problem.symmetric, problem.constraints)
    assert np.array_equal(measured(rows), measured(ALL))
    same_reversed = bool((measured(ALL[:, ::-1]) == measured(ALL)).all())
    same_rotated = bool((measured(np.roll(ALL, 1, axis=1)) == measured(ALL)).all())
    assert same_rotated == problem.closed
    equal = (2 if same_reversed else 1) * (N if same_rotated else 1)
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert set(counts.tolist()) == {equal}


D = [[0, 2, 1], [2, 0, 3], [1, 3, 0]]


def test_a_path_is_not_turned_against_precedence():
    """Of the orders 2 0 1 (1 + 2) and 1 0 2, which is its reverse, only the first has 2 before 0 before 1."""
    result = minimize(
        OpenPath(matrix=D, precedence=[(2, 0), (0, 1)]), GPUMemetic(backend="cpu"), ("n_gen", 1), seed=1
    )
    assert (result.X.tolist(), result.F[0], result.G[0]) == ([2, 0, 1], 3.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_solve_returns_the_best_of_all_permutations(kind, constraints):
    for seed in range(5):
        problem = problem_of(kind, constraints, True, seed)
        least = min(zip(problem.violations(ALL), problem.tour_lengths(ALL), strict=True))
        tour, length = solve(problem, seconds=5)
        assert (problem.violations(tour[None])[0], length) == least
        assert problem.start in (None, tour[0])
        assert problem.home in (None, tour[0])
