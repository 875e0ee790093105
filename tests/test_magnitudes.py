"""Distances of very different magnitude: what is proven holds, optima are found, and no number is rounded in silence.

All is compared with dynamic programming in Python's whole numbers, which have any number of digits.
"""

import json
import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, TSP, GPUMemetic, MultiObjectiveTSP, read_cities, solve
from pymoo_gpuaco.candidates.bound import is_proven, prove_lower_bound
from pymoo_gpuaco.candidates.exact import shortest_with_constraints
from pymoo_gpuaco.problems.pymoo_problems import as_instance
from pymoo_gpuaco.problems.symmetric import ranked, reach
from tests.fuzz import SEED, TIMES
from tests.instances import listed_instance

NUMBERS = (1e0, 1e3, 1e9, 1e15, float(sys.maxsize), 1e18, 1e20, 1e30)


def optimum(problem):
    """The least number of broken constraints, and the least exact length with it, of all round trips."""
    matrix, n = problem.D, problem.n_cities
    entries = [Fraction(entry) for entry in matrix[np.isfinite(matrix)].tolist()]
    broken = 1 + n * max(entries)  # more than any tour
    unit = math.lcm(*(entry.denominator for entry in entries))
    costs = [
        [int((broken if entry == np.inf else Fraction(entry)) * unit) for entry in row] for row in matrix
    ]
    for i, j in problem.fixed_edges.tolist():
        costs[i][j] -= int(broken * unit)
        if problem.symmetric:
            costs[j][i] -= int(broken * unit)
    best = {(1 << j, j): costs[0][j] for j in range(1, n)}
    for visited in sorted({sum(1 << j for j in range(1, n) if key >> j & 1) for key in range(2, 1 << n, 2)}):
        ends = [(j, best[visited, j]) for j in range(1, n) if (visited, j) in best]
        for k in range(1, n):
            if not visited >> k & 1:
                best[visited | 1 << k, k] = min(cost + costs[j][k] for j, cost in ends)
    everyone = (1 << n) - 2
    total = min(best[everyone, j] + costs[j][0] for j in range(1, n))
    count, rest = divmod(Fraction(total, unit), broken)
    return count + len(problem.fixed_edges), rest


def exact_length(instance, tour):
    """Length of a tour, or of a path, without rounding; forbidden edges have length 0."""
    closed = instance.constraints is None or instance.constraints.closed
    lengths = instance.distance(tour, np.roll(tour, -1))[: len(tour) if closed else -1]
    return sum(map(Fraction, lengths[np.isfinite(lengths)].tolist()), Fraction(0))


def measured(problem, tour):
    """Broken constraints and the exact length of a tour."""
    return int(problem.violations(tour[None])[0]), exact_length(as_instance(problem), tour)


def drawn(rng, n):
    """Some distances among longer ones, perhaps infinite ones, and perhaps fixed edges."""
    number = float(rng.choice(NUMBERS))
    matrix = rng.integers(1, 100, (n, n)).astype(float) if rng.random() < 0.6 else rng.random((n, n))
    chosen = rng.random((n, n)) < rng.choice([0.03, 0.1, 0.3, 0.6])
    kind = rng.integers(5)
    if kind == 0:
        matrix[chosen] = number
    elif kind == 1:  # two numbers
        matrix[chosen], matrix[rng.random((n, n)) < 0.1] = number, max(1.0, number * 1e-5)
    elif kind == 2:
        matrix[chosen], matrix[rng.random((n, n)) < 0.2] = number, np.inf
    elif kind == 3:  # a city that nothing else enters
        matrix[:, rng.integers(n)] = number
    else:
        matrix *= 10.0 ** int(rng.integers(0, 28))
    if rng.random() < 0.6:
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    np.fill_diagonal(matrix, 0.0)
    edges = [(2, 0), (1, 3)] if n > 4 else [(2, 0)]
    fixed = [(i, j) for i, j in edges if rng.random() < 0.6 and np.isfinite(matrix[i, j])]
    return TSP(matrix=matrix, fixed_edges=fixed or None)


def check_bound(problem, broken, shortest, tour):
    """A bound is no longer than the exact optimum; a proof is one."""
    instance = listed_instance(problem, 5)
    bound = prove_lower_bound(instance)
    if broken:
        assert bound is None or problem.n_cities > 12
        return
    assert Fraction(bound) <= shortest
    if is_proven(instance, tour, bound):
        assert measured(problem, tour)[1] <= shortest * (1 + (0 if problem.integral else Fraction(1, 10**9)))


def test_what_is_returned_and_proven_for_up_to_twelve_cities_is_the_optimum():
    rng = np.random.default_rng([SEED, 1])
    for _ in range(60 * TIMES):
        problem = drawn(rng, int(rng.choice([3, 4, 5, 6, 7, 8, 9, 12])))
        best = optimum(problem)
        tour = shortest_with_constraints(as_instance(problem))
        assert measured(problem, tour) == best
        check_bound(problem, *best, tour)
        check_bound(problem, *best, rng.permutation(problem.n_cities))


def test_thirteen_and_fourteen_cities_are_searched_to_the_optimum():
    rng = np.random.default_rng([SEED, 2])
    for _ in range(2 * TIMES):
        problem = drawn(rng, int(rng.integers(13, 15)))
        best = optimum(problem)
        algorithm = GPUMemetic(backend="cpu")
        tour = minimize(problem, algorithm, ("n_gen", 30), seed=1, return_least_infeasible=True).X
        assert measured(problem, tour) == best
        check_bound(problem, *best, tour)


def test_the_front_of_a_few_cities_is_that_of_all_tours():
    rng = np.random.default_rng([SEED, 3])
    tours = all_tours(7)
    for _ in range(3 * TIMES):
        number, objectives = float(rng.choice(NUMBERS[2:])), []
        for _ in range(2):
            matrix = rng.integers(1, 100, (7, 7)).astype(float)
            matrix[rng.random((7, 7)) < rng.choice([0.1, 0.4])] = number
            objectives.append(np.triu(matrix, 1) + np.triu(matrix, 1).T)
        problem = MultiObjectiveTSP(objectives)
        lengths = np.unique(problem.tour_lengths(tours), axis=0)
        front = [one for one in lengths if not ((lengths <= one).all(1) & (lengths < one).any(1)).any()]
        result = minimize(problem, GPU2PPLS(backend="cpu"), ("n_gen", 20), seed=1)
        for one in front:  # sums that hold 1e18 are rounded
            assert ((1.0 + 1e-14) * one >= result.F).all(axis=1).any()
        assert np.array_equal(result.F, problem.tour_lengths(result.X))


def test_a_long_edge_beside_a_fixed_one_hides_no_digits():
    """Eight cities, where 2 n max = 1.5e20 added to the other distances left nothing of them."""
    matrix = np.random.default_rng(0).integers(1, 100, (8, 8))
    matrix += matrix.T
    matrix[0, 1] = matrix[1, 0] = sys.maxsize
    with pytest.warns(UserWarning, match="use inf for missing edges"):
        problem = TSP(matrix=matrix, fixed_edges=[(2, 3)])
    tours = [(0, *rest) for rest in permutations(range(1, 8))]
    kept = [tour for tour in tours if abs(tour.index(2) - tour.index(3)) == 1]
    whole = matrix.tolist()
    shortest = min(sum(whole[a][b] for a, b in zip(tour, (*tour[1:], 0), strict=True)) for tour in kept)
    assert shortest == 589
    assert solve(problem, seconds=5).length == 589
    assert prove_lower_bound(listed_instance(problem, 5)) == 589


def all_tours(n):
    return np.array([(0, *rest) for rest in permutations(range(1, n))])


@pytest.mark.parametrize("number", [1e15, float(sys.maxsize), 1e30])
def test_ranked_distances_order_all_tours_in_the_same_way(number):
    rng = np.random.default_rng(3)
    matrix = rng.integers(1, 100, (6, 6)).astype(float)
    matrix[rng.random((6, 6)) < 0.3] = number
    matrix[rng.random((6, 6)) < 0.2] = 1e9
    problem = TSP(matrix=matrix)
    instance = ranked(as_instance(problem))
    assert (instance.matrix <= problem.matrix).all()
    assert instance.matrix.max() <= 99 * reach(6) ** 2 == 99 * 12**2
    exact = [exact_length(as_instance(problem), tour) for tour in all_tours(6)]
    shorter = [int(instance.tour_length(tour)) for tour in all_tours(6)]
    assert len({(a, b) for a, b in zip(exact, shorter, strict=True)}) == len(set(exact)) == len(set(shorter))
    assert np.argsort(exact, kind="stable").tolist() == np.argsort(shorter, kind="stable").tolist()


def test_distances_without_gaps_stay_what_they_are():
    rng = np.random.default_rng(4)
    for matrix in (rng.random((9, 9)), 10.0 ** np.arange(81).reshape(9, 9) * 1e-60, np.zeros((4, 4))):
        problem = TSP(matrix=np.minimum(matrix + 1e-50, 1e30))
        assert ranked(as_instance(problem)) is not None
        assert ranked(as_instance(problem)).matrix is as_instance(problem).matrix
    clustered = as_instance(TSP(matrix=rng.random((60, 60)) * np.where(np.arange(60) % 2, 1.0, 1e9)))
    assert ranked(clustered) is clustered  # of several lengths beyond the gap, and more than 50 cities


def test_one_long_edge_does_not_make_an_asymmetric_matrix_symmetric():
    """Noise was 1e-12 of the largest entry: of 1e15 that is 1,000, more than all differences here."""
    matrix = np.random.default_rng(5).random((6, 6))
    matrix[0, 1] = matrix[1, 0] = 1e15
    assert not TSP(matrix=matrix).symmetric
    matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    matrix[2, 3] *= 1.0 + 1e-15
    assert TSP(matrix=matrix).symmetric


def test_a_tour_that_is_longer_beside_a_long_edge_is_not_proven():
    """Every tour has one edge of 1e18, beside which lengths below 64 are 0."""
    matrix = np.random.default_rng(7).integers(1, 100, (8, 8)).astype(float)
    matrix[:, 2] = 1e18
    problem = TSP(matrix=matrix)
    instance = listed_instance(problem, 5)
    bound, best = prove_lower_bound(instance), shortest_with_constraints(instance)
    lengths = [measured(problem, tour)[1] for tour in all_tours(8)]
    assert problem.tour_length(best) == 1e18
    assert 1e18 * (1 - 1e-14) < bound < 1e18
    assert is_proven(instance, best, bound)
    for tour, length in zip(all_tours(8)[::50], lengths[::50], strict=True):
        assert is_proven(instance, tour, bound) == (length == min(lengths))


# ---- numbers that a double does not hold


SMALL = np.random.default_rng(0).integers(1, 100, (7, 7))


def with_entries(*entries, dtype=object):
    matrix = SMALL.astype(dtype)
    for place, entry in enumerate(entries):
        matrix[0, 1 + place] = entry
    return matrix


@pytest.mark.parametrize(
    ("matrix", "number"),
    [
        (SMALL + 2**62, str(SMALL[0, 1] + 2**62)),
        (with_entries(2**53 + 1), str(2**53 + 1)),
        (with_entries(2**70, 2**53 + 1), str(2**53 + 1)),
        (with_entries(2**70 + 1), str(2**70 + 1)),
        (with_entries(sys.maxsize, sys.maxsize - 1), str(sys.maxsize - 1)),
    ],
)
def test_whole_numbers_that_would_be_rounded_are_refused(matrix, number):
    with pytest.raises(ValueError, match=number):
        TSP(matrix=matrix)
    with pytest.raises(ValueError, match=number):
        solve(matrix, seconds=1)


def test_numbers_beyond_the_largest_distance_are_refused():
    with pytest.raises(ValueError, match=r"up to 1e\+30"):
        TSP(matrix=with_entries(10**400))
    points = with_entries(2**53 + 1, dtype=np.int64)[:, 1:3]
    with pytest.raises(ValueError, match=r"at most 1e\+15"):  # below 2**53: no whole coordinate is rounded
        TSP(points)


@pytest.mark.parametrize(
    "number", [sys.maxsize, 2**64 - 1, 2**31 - 1, 10**9, 10**15, 999_999_999, 2**70, 1e23]
)
def test_a_number_for_missing_edges_is_warned_of_and_served(number):
    with pytest.warns(UserWarning, match="use inf for missing edges"):
        problem = TSP(matrix=with_entries(number))
    assert problem.matrix[0, 1] == float(number)
    assert measured(problem, solve(problem, seconds=5).tour) == optimum(problem)


def test_numbers_that_repeat_are_for_missing_edges_and_others_are_distances(recwarn):
    for entries in ((123_456,), (2**53 - 7,), (50_000, 51_000)):
        TSP(matrix=with_entries(*entries, dtype=float))
    TSP(matrix=(SMALL > 50).astype(float))
    assert not [one for one in recwarn.list if "use inf" in str(one.message)]
    with pytest.warns(UserWarning, match="123456 2 times, and 97 is the next"):
        TSP(matrix=with_entries(123_456, 123_456, dtype=float))


def test_files_and_graphs_refuse_them_too(tmp_path):
    networkx = pytest.importorskip("networkx")
    weights = "0 1 2 3\n4 0 9007199254740993 7\n8 8 0 9\n1 2 3 0\n"
    header = (
        "NAME: w\nTYPE: ATSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
    )
    tsp, table = tmp_path / "w.atsp", tmp_path / "w.csv"
    for number, refused in ((9007199254740993, True), (9007199254740992, False), (sys.maxsize, False)):
        text = weights.replace("9007199254740993", str(number))
        tsp.write_text(f"{header}EDGE_WEIGHT_SECTION\n{text}EOF\n")
        table.write_text(text.replace(" ", ","))
        graph = networkx.complete_graph(4)
        networkx.set_edge_attributes(graph, 1, "weight")
        graph.edges[1, 2]["weight"] = number
        for read in (
            lambda: read_cities(tsp),
            lambda: read_cities(table),
            lambda graph=graph: read_cities(graph),
        ):
            if refused:
                with pytest.raises(ValueError, match=str(number)):
                    read()
            else:
                assert read().D[1, 2] == float(number)


# ---- hostile JSON, and Python without assertions


def test_json_that_is_nested_too_deeply_is_a_value_error(tmp_path):
    path = tmp_path / "deep.geojson"
    for text in ("[" * 100_000, '{"a":' * 100_000, '{"type":"Point","coordinates":' + "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"deep\.geojson"):
            read_cities(path)
    assert json.loads("[]") == []


def test_python_without_assertions_and_docstrings_runs():
    code = (
        "import numpy as np; from pymoo.optimize import minimize; from pymoo_gpuaco import *\n"
        "points = np.random.default_rng(0).random((9, 2))\n"
        "print(solve(points, seconds=5).length)\n"
        "print(minimize(TSP(points), GPUAS(backend='cpu', n_ants=2), ('n_gen', 1), seed=1).F[0])"
    )
    outputs = [
        subprocess.run(
            [sys.executable, *option, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_DISABLE_JIT": "1"},  # machine code of -OO would be compiled first
        )
        for option in ([], ["-OO"])
    ]
    assert outputs[0].stdout == outputs[1].stdout
