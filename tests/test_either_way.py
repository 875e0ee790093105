"""Matrices that are symmetric up to potentials: round trips are searched as symmetric ones."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    TSP,
    GPUMemetic,
    OpenPath,
    solve,
)
from pymoo_gpuaco.candidates.bound import prove_lower_bound
from pymoo_gpuaco.candidates.lists import listed_instance, with_lists
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.memetic.translated import TranslatedSearch
from pymoo_gpuaco.problems import matrix as matrix_module
from pymoo_gpuaco.problems.instance import as_instance
from pymoo_gpuaco.problems.symmetric import symmetric_matrix


def with_potentials(n: int, rng: np.random.Generator, whole: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric matrix S and one, S + p(j) - p(i), that differs from it by potentials; halved ones are S + .5."""
    height = rng.integers(0, 50, n).astype(float) if whole else rng.random(n) * 50.0
    symmetric = np.triu(
        rng.integers(50, 100, (n, n)).astype(float) if whole else rng.random((n, n)) + 50.0, 1
    )
    symmetric += symmetric.T
    matrix = symmetric + height[None, :] - height[:, None]
    np.fill_diagonal(matrix, 0.0)
    return symmetric, matrix


def drum(n: int, rng: np.random.Generator) -> np.ndarray:
    """A drill that takes 4 uphill and 3 downhill: potentials of half a unit."""
    x, y = rng.integers(0, 10_000, (2, n)).astype(float)
    dy = y[None, :] - y[:, None]
    matrix = 2.0 * np.abs(x[:, None] - x) + np.where(dy >= 0.0, 4.0 * dy, -3.0 * dy)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def lengths_of_all(matrix: np.ndarray) -> np.ndarray:
    n = len(matrix)
    tours = np.array([(0, *rest) for rest in itertools.permutations(range(1, n))])
    return matrix[tours, np.roll(tours, -1, axis=1)].sum(axis=1)


@settings(max_examples=30, deadline=None)
@given(st.integers(4, 8), st.integers(0, 2**32 - 1), st.sampled_from(["whole", "fractions", "drum"]))
def test_every_round_trip_is_as_long(n, seed, kind):
    rng = np.random.default_rng(seed)
    matrix = drum(n, rng) if kind == "drum" else with_potentials(n, rng, kind == "whole")[1]
    found = symmetric_matrix(matrix, 1e-12 if kind == "fractions" else 0.0)
    assert found is not None
    np.testing.assert_array_equal(found, found.T)
    if kind == "fractions":
        np.testing.assert_allclose(lengths_of_all(found), lengths_of_all(matrix), rtol=1e-12)
    else:
        np.testing.assert_array_equal(lengths_of_all(found), lengths_of_all(matrix))


@settings(max_examples=50, deadline=None)
@given(st.integers(3, 9), st.integers(0, 2**32 - 1), st.sampled_from([1.0, -1.0]))
def test_a_matrix_that_is_off_by_one_in_one_entry_is_not_taken(n, seed, off):
    rng = np.random.default_rng(seed)
    _, matrix = with_potentials(n, rng)
    i, j = rng.choice(n, 2, replace=False)
    matrix[i, j] += off
    assert symmetric_matrix(matrix) is None
    assert not listed_instance(TSP(matrix=matrix + 50.0), 3).symmetric


def test_the_last_rows_count_where_a_matrix_is_looked_at_in_pieces(monkeypatch):
    monkeypatch.setattr(matrix_module, "_ENTRIES", 40)  # two rows at a time
    symmetric, matrix = with_potentials(19, np.random.default_rng(1))
    np.testing.assert_array_equal(symmetric_matrix(matrix), symmetric)
    matrix[18, 17] += 1.0
    assert symmetric_matrix(matrix) is None


def test_edges_that_are_forbidden_both_ways_stay_so():
    symmetric, matrix = with_potentials(12, np.random.default_rng(3))
    for i in range(2, 11):  # city 0 knows cities 1 and 11 alone, which know others
        matrix[0, i] = matrix[i, 0] = symmetric[0, i] = symmetric[i, 0] = np.inf
    np.testing.assert_array_equal(symmetric_matrix(matrix), symmetric)
    instance = listed_instance(TSP(matrix=matrix), 5)
    assert instance.symmetric
    assert not instance.constraints.directed
    matrix[5, 6] = np.inf  # this way alone
    assert symmetric_matrix(matrix) is None
    apart = np.where(np.add.outer(np.arange(12) < 6, np.arange(12) < 6) == 1, np.inf, matrix)
    assert symmetric_matrix(apart) is None  # the potentials of one half are unknown in the other


def test_a_tour_around_forbidden_edges_is_found():
    rng = np.random.default_rng(4)
    _, matrix = with_potentials(40, rng)
    ring = rng.permutation(40)
    allowed = np.zeros((40, 40), bool)
    for step in (1, 2, 3):
        allowed[ring, np.roll(ring, -step)] = allowed[np.roll(ring, -step), ring] = True
    problem = TSP(matrix=np.where(allowed, matrix, np.inf))
    result = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 3), seed=1)
    assert result.G[0] == 0
    assert result.F[0] == matrix[result.X, np.roll(result.X, -1)].sum()


@pytest.mark.parametrize("n", [3, 20])
def test_a_tour_that_lacks_an_edge_is_no_sign_of_another_objective(n, recwarn):
    """It is a path then, which is as long as by the matrix in its own direction alone."""
    _, matrix = with_potentials(n, np.random.default_rng(n))
    city = np.arange(n)
    matrix[np.abs(city[:, None] - city) > 1] = np.inf  # a street with two ends: there is no round trip
    problem = TSP(matrix=matrix + 50.0 * (1.0 - np.eye(n)))
    assert listed_instance(problem, 5).symmetric
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 3), seed=1)
    while algorithm.has_next():
        algorithm.next()
    assert not algorithm._custom_objective
    assert not recwarn.list
    best = algorithm.opt[0]
    assert best.G[0] == 1
    assert best.F[0] == problem.tour_length(best.X)


def test_paths_fixed_edges_and_other_objectives_keep_their_direction():
    _, matrix = with_potentials(20, np.random.default_rng(5))

    class Windy(TSP):
        def _evaluate(self, x, out, *args, **kwargs):
            out["F"] = x[:, :1] * 1.0

    assert listed_instance(TSP(matrix=matrix), 5).symmetric
    assert not listed_instance(OpenPath(matrix=matrix), 5).symmetric
    assert not listed_instance(TSP(matrix=matrix, fixed_edges=[(1, 2)]), 5).symmetric
    assert not listed_instance(Windy(matrix=matrix), 5).symmetric


def test_the_usual_search_takes_it_without_doubling_and_tells_lengths_by_the_matrix():
    matrix = drum(60, np.random.default_rng(6))
    problem = TSP(matrix=matrix)
    algorithm = GPUMemetic(backend="cpu")
    result = minimize(problem, algorithm, ("n_gen", 4), seed=1)
    assert isinstance(result.algorithm.engine, MemeticSearch)
    assert not problem.symmetric
    assert result.F[0] == matrix[result.X, np.roll(result.X, -1)].sum()
    # beside what differs by one in one entry and has to be searched in another way
    matrix[3, 4] += 1.0
    other = minimize(TSP(matrix=matrix), GPUMemetic(backend="cpu"), ("n_gen", 4), seed=1)
    assert isinstance(other.algorithm.engine, TranslatedSearch)
    assert abs(other.F[0] - result.F[0]) <= 1.0


def test_the_bound_is_a_whole_number_and_proves_the_tour():
    matrix = drum(40, np.random.default_rng(7))
    assert (0.5 * (matrix + matrix.T) % 1.0 == 0.5).any()
    solution = solve(matrix, seconds=1.0, algorithm=GPUMemetic(backend="cpu"))
    bound = prove_lower_bound(listed_instance(TSP(matrix=matrix), 8))
    assert bound == np.ceil(bound)
    assert 0.97 * solution.length <= bound <= solution.length
    # that of the asymmetric instance holds for the same tours
    other = prove_lower_bound(with_lists(as_instance(TSP(matrix=matrix)), 8))
    assert other <= solution.length
    assert bound >= 0.99 * other


@pytest.mark.parametrize("n", [7, 8])
def test_the_best_of_all_tours_is_found(n):
    rng = np.random.default_rng(n)
    for matrix in (with_potentials(n, rng)[1], with_potentials(n, rng, whole=False)[1], drum(n, rng)):
        result = minimize(TSP(matrix=matrix), GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1)
        assert result.F[0] == pytest.approx(lengths_of_all(matrix).min(), rel=1e-12)
