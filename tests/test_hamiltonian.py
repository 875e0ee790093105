"""Hamiltonian cycles, where all edges of a graph are 1 and all others forbidden; tours that break constraints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pymoo.core.population import Population
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    TSP,
    ColonyTermination,
    GPUMemetic,
    solve,
    summary,
)


def cycle_of(edges: list[tuple[int, int]], n: int) -> TSP:
    matrix = np.full((n, n), np.inf)
    i, j = np.array(edges).T
    matrix[i, j] = matrix[j, i] = 1.0
    return TSP(matrix=matrix)


def knights(side: int) -> TSP:
    fields = list(itertools.product(range(side), repeat=2))
    edges = [
        (a, b)
        for (a, (x, y)), (b, (u, v)) in itertools.combinations(enumerate(fields), 2)
        if {abs(x - u), abs(y - v)} == {1, 2}
    ]
    return cycle_of(edges, side * side)


def cubic(n: int, rng: np.random.Generator) -> TSP:
    """A cycle through all, hidden by its numbers, and a third edge at each vertex."""
    around = rng.permutation(n)
    while True:
        pairs = rng.permutation(n).reshape(-1, 2)
        if ((np.diff(pairs, axis=1) % n)[:, 0] % (n - 2) > 1).all():
            break
    edges = np.concatenate([np.stack([around, np.roll(around, -1)], 1), around[pairs]])
    return cycle_of([tuple(edge) for edge in edges.tolist()], n)


@pytest.mark.parametrize(
    "make",
    [lambda: knights(6), lambda: knights(8), lambda: cubic(100, np.random.default_rng(1))],
    ids=["6 x 6", "8 x 8", "cubic"],
)
def test_hamiltonian_cycles_are_found(make):
    problem = make()
    ended = ColonyTermination(target=problem.n_cities, n_max_gen=100, stagnation=None, seconds=None)
    found = minimize(problem, GPUMemetic(), ended, seed=1)
    assert (found.F[0], found.G[0]) == (problem.n_cities, 0)
    assert (problem.D[found.X, np.roll(found.X, -1)] == 1.0).all()


def line(n: int = 14) -> TSP:
    """A path through all cities, from whose end no edge leads back."""
    return cycle_of([(i, i + 1) for i in range(n - 1)], n)


def test_a_tour_that_breaks_demands_is_reported():
    with pytest.warns(UserWarning, match="no tour with all fixed edges .* was found: 1 constraint is broken"):
        tour, length = solve(line(), seconds=0.3)
    assert (length, sorted(tour)) == (13, list(range(14)))
    table = summary(line(), termination=("n_gen", 1), seeds=2)
    assert table.violations.tolist() == [1, 1]


def test_a_shorter_tour_that_breaks_more_demands_is_no_better():
    problem = line()
    algorithm = GPUMemetic(backend="cpu").setup(problem, termination=("n_gen", 3), seed=1)
    algorithm.next()
    worse = np.arange(14)[np.r_[0:14:2, 1:14:2]]  # of length 0, as it has no edge of the graph
    assert problem.tour_length(worse) == 0.0
    infills = Population.merge(algorithm.ask(), Population.new("X", worse[None]))
    algorithm.evaluator.eval(problem, infills)
    algorithm.tell(infills=infills)
    algorithm.next()
    assert (algorithm.result().F, algorithm.opt[0].G[0]) == (None, 1)
    assert problem.violations(algorithm.engine.best_tours()[0]).tolist() == [1]
