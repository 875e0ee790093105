"""Random instances with all constraints at once, against dynamic programming.

Up to 12 cities the package uses dynamic programming itself; above, precedence has one search and all others another.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic, OpenPath
from tests.fuzz import ASKED, SEED, TIMES

COUNT = 150 * TIMES if ASKED else 24  # instances
GENERATIONS = 16
MAGNITUDES = ("whole", "real", "wide", "marks", "tiny", "huge")


def drawn_matrix(rng: np.random.Generator, n: int, magnitude: str, symmetric: bool) -> np.ndarray:
    """Distances (n, n) of one kind of magnitude."""
    matrix = {
        "whole": lambda: rng.integers(1, 100, (n, n)).astype(float),
        "real": lambda: rng.random((n, n)),
        "wide": lambda: 10.0 ** rng.uniform(0, rng.choice([2, 4, 9, 12]), (n, n)),
        "marks": lambda: np.where(
            rng.random((n, n)) < 0.4, rng.choice([1e3, 1e5, 1e7], (n, n)), rng.integers(1, 100, (n, n))
        ),
        "tiny": lambda: rng.random((n, n)) * 1e-12,
        "huge": lambda: rng.integers(1, 1000, (n, n)) * 1e12,
    }[magnitude]()
    if symmetric:
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, 0.0)
    return matrix


def drawn(rng: np.random.Generator) -> TSP:
    """A problem of 5 to 14 cities with any constraints that some tour satisfies."""
    while True:
        n, symmetric = int(rng.choice([5, 8, 10, 12, 13, 14])), bool(rng.random() < 0.5)
        closed = bool(rng.random() < 0.5)
        hidden = rng.permutation(n)  # a tour that satisfies everything
        arguments: dict[str, object] = {}
        if closed and rng.random() < 0.7:
            arguments["start"] = int(hidden[0])
        if not closed and rng.random() < 0.5:
            arguments["start"] = int(hidden[0])
        if not closed and rng.random() < 0.5:
            arguments["end"] = int(hidden[-1])
        edges = np.stack([hidden, np.roll(hidden, -1)], axis=1)[: n if closed else n - 1]
        if rng.random() < 0.6:
            chosen = edges[rng.random(len(edges)) < rng.choice([0.1, 0.3, 0.6])]
            turned = symmetric & (rng.random(len(chosen)) < 0.5)
            chosen[turned] = chosen[turned, ::-1]
            arguments["fixed_edges"] = rng.permutation(chosen)
        matrix = drawn_matrix(rng, n, str(rng.choice(MAGNITUDES)), symmetric)
        if rng.random() < 0.3:
            forbidden = rng.random((n, n)) < 0.2
            forbidden[edges[:, 0], edges[:, 1]] = False
            forbidden &= forbidden.T | (not symmetric)
            np.fill_diagonal(forbidden, False)
            matrix[forbidden] = np.inf
        if rng.random() < 0.7:
            first = np.argmax(hidden == arguments.get("start", 0)) if closed else 0
            order = np.roll(hidden, -first)
            pairs = np.sort([rng.choice(n, 2, replace=False) for _ in range(rng.integers(1, n))], axis=1)
            arguments["precedence"] = order[pairs]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (TSP if closed else OpenPath)(matrix=matrix, **arguments)  # type: ignore[arg-type]


def shortest(problem: TSP) -> float:
    """Length of a shortest tour that satisfies all constraints, or infinity.

    cost[S, j] is the length of the shortest path through the cities of the set S that ends at j (Held and Karp).
    """
    n, matrix, closed = problem.n_cities, problem.matrix, problem.closed
    assert matrix is not None
    constraints, full = problem.constraints, (1 << n) - 1
    needed, partners = np.zeros(n, np.int64), np.zeros((2, n), np.int64)  # to enter from, to leave to
    home = constraints.home if constraints is not None and closed else 0
    start, end = problem.start, problem.end
    if constraints is not None:
        for i, j in constraints.precedence.tolist():
            needed[j] |= 1 << i
        for i, j in constraints.fixed.tolist():
            partners[0, j] |= 1 << i
            partners[1, i] |= 1 << j
            if not constraints.directed:
                partners[0, i] |= 1 << j
                partners[1, j] |= 1 << i
    begins = [home] if closed else range(n) if start is None else [start]
    sets = np.arange(full + 1)
    counts = np.array([bin(s).count("1") for s in sets])
    cost = np.full((full + 1, n), np.inf)
    for city in begins:
        if not needed[city] and (
            closed or constraints is None or constraints.directed <= (partners[0, city] == 0)
        ):
            cost[1 << city, city] = 0.0
    at_home = 1 << home if closed else 0
    for size in range(1, n):
        layer = sets[counts == size]
        for i in range(n):
            reached = layer[np.isfinite(cost[layer, i])]
            if not len(reached):
                continue
            # all fixed edges from i that are still to come must be the next one; at home one may be the last
            ahead = partners[1, i] & ~reached
            for j in range(n):
                bit = 1 << j
                left = ahead & ~bit
                if closed and i == home:
                    directed_out = constraints is not None and constraints.directed
                    left = left if directed_out else left * 0
                behind = partners[0, j] & ~(1 << i)
                if constraints is not None and constraints.directed:
                    behind = np.broadcast_to(behind, reached.shape)
                else:  # those already visited must be the city before, or home at the end
                    behind = behind & reached
                    if size == n - 1:
                        behind = behind & ~at_home
                allowed = ((reached & bit) == 0) & (left == 0) & (behind == 0) & ((needed[j] & ~reached) == 0)
                if closed and constraints is not None and constraints.directed and size < n - 1:
                    # the city whose fixed edge leads home is the last one
                    allowed &= not partners[1, j] & at_home
                if not closed and size == n - 1 and end not in (None, j):
                    continue
                if not closed and size < n - 1 and j == end:
                    continue
                some = reached[allowed]
                new = some | bit
                cost[new, j] = np.minimum(cost[new, j], cost[some, i] + matrix[i, j])
    last = cost[full]
    if not closed:
        return float(last.min())
    through = last + matrix[:, home]
    must = partners[0, home]
    if constraints is not None and constraints.directed and must:
        through[[city for city in range(n) if not must >> city & 1]] = np.inf
    return float(through.min())


def result_of(problem: TSP, generations: int = GENERATIONS) -> tuple[int, float]:
    """Violations and length of the tour that a run finds."""
    result = minimize(
        problem, GPUMemetic(backend="cpu"), ("n_gen", generations), seed=1, return_least_infeasible=True
    )
    tour = np.asarray(result.X)
    return int(problem.violations(tour[None])[0]), problem.tour_length(tour)


def wrong_results(numbers: Iterable[int], seed: int) -> list[tuple[object, ...]]:
    """Instances of which a run finds a tour that is longer than the optimum, or violates constraints."""
    wrong: list[tuple[object, ...]] = []
    for number in numbers:
        problem = drawn(np.random.default_rng([seed, number]))
        expected = shortest(problem)
        assert np.isfinite(expected), number  # of the hidden tour
        broken, length = result_of(problem)
        if broken or not expected * (1 - 1e-9) <= length <= expected * (1 + 1e-9):
            wrong.append((number, str(problem), broken, length / expected))
    return wrong


@pytest.mark.parametrize("part", range(8))
def test_runs_find_the_optimum_of_dynamic_programming(part: int) -> None:
    assert not wrong_results(range(part, COUNT, 8), SEED)


def test_cycles_leave_a_local_optimum_of_few_nodes() -> None:
    """Precedence and chains of fixed edges leave 6 to 15 nodes; annealing of one path never leaves it."""
    assert not wrong_results([432, 473, 1113, 1219, 1803, 2274, 2450, 2795], 1)
