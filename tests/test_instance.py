"""Instance arrays and neighbour lists against brute force."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymoo.core.problem import ElementwiseProblem, Problem
from pymoo.problems import get_problem
from pymoo.problems.single import Rastrigin
from pymoo.problems.single.traveling_salesman import TravelingSalesman, create_random_tsp_problem

from pymoo_gpuaco.candidates.quadrant import has_quadrants
from pymoo_gpuaco.problems import METRIC_NAMES, TSP, Metric, load_tsp
from tests.instances import listed_instance


def brute_force(D, k):
    """Return the k nearest of each city, by (distance, id), from the full matrix."""
    n = len(D)
    ids = [sorted((j for j in range(n) if j != i), key=lambda j: (D[i, j], j))[:k] for i in range(n)]
    return np.array(ids), np.take_along_axis(D, np.array(ids), axis=1)


def places_of(rows):
    """Number the place of each city: equal rows are one place."""
    number = {}
    return np.array([number.setdefault(tuple(row), len(number)) for row in (rows + 0.0).tolist()])


def check_lists(instance, D, places):
    """Assert what `Instance` promises of its neighbour lists, ties that do not fit aside.

    They hold the nearest where no two cities lie at one of the ``places`` (n,); else of one's own place the city before
    and the one after, and then others as long as there are any: see test_copies.
    """
    ids, near = instance.neighbours, instance.neighbour_distances
    n, k = ids.shape
    assert ids.dtype == np.int32
    assert ids.flags.c_contiguous
    assert near.flags.c_contiguous
    if len(set(places)) == n:
        np.testing.assert_array_equal(near, brute_force(D, k)[1])
    else:
        own = (places[ids] == places[:, None]).sum(axis=1)
        assert np.all(own <= np.maximum(2, k - (len(set(places)) - 1)))
    np.testing.assert_array_equal(near, np.take_along_axis(D, ids.astype(int), axis=1))
    assert not (ids == np.arange(n)[:, None]).any()
    assert all(len(set(row)) == k for row in ids)
    pairs = [list(zip(near[i], ids[i], strict=True)) for i in range(n)]
    assert all(row == sorted(row) for row in pairs)


@st.composite
def placed_cities(draw):
    """Draw a metric and cities: scattered, on a coarse grid (duplicates and ties), or all at one place."""
    name = draw(st.sampled_from(list(METRIC_NAMES)))
    n = draw(st.integers(3, 60))
    width = draw(st.sampled_from([0, 1, 3, 40, 80]))
    step = draw(st.sampled_from([1, 0.5, 0.37]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return name, rng.integers(-width, width + 1, size=(n, METRIC_NAMES[name][1])) * step


@given(placed_cities(), st.integers(1, 70))
@settings(deadline=None, max_examples=150)
def test_neighbours_by_coordinates_equal_brute_force(cities, k):
    name, coords = cities
    problem = TSP(coords, name)
    instance = listed_instance(problem, k)
    assert (instance.n, instance.k) == (len(coords), min(k, len(coords) - 1))
    places = places_of(coords)
    check_lists(instance, problem.D, places)
    # in space and on the globe the tree returns every city: ties go to the lowest id
    by_tree = not has_quadrants(problem.metric, problem.coords)
    if by_tree and len(set(places)) == instance.n <= instance.k + 9:
        np.testing.assert_array_equal(instance.neighbours, brute_force(problem.D, instance.k)[0])


@given(st.integers(3, 40), st.integers(1, 50), st.booleans(), st.integers(1, 5), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=100)
def test_neighbours_by_matrix_equal_brute_force_with_ties_to_the_lowest_id(n, k, symmetric, high, seed):
    matrix = np.random.default_rng(seed).integers(0, high, size=(n, n)).astype(float)
    if symmetric:
        matrix = matrix + matrix.T
    problem = TSP(matrix=matrix, symmetric=False if not symmetric else None)
    instance = listed_instance(problem, k)
    places = places_of(np.hstack([matrix, matrix.T]) * (1.0 - np.hstack([np.eye(n), np.eye(n)])))
    check_lists(instance, matrix, places)
    if len(set(places)) == n:
        np.testing.assert_array_equal(instance.neighbours, brute_force(matrix, instance.k)[0])


def test_arrays_of_the_two_kinds_of_instance():
    problem = TSP([[0, 0], [3, 0], [3, 4], [0, 4]])
    instance = listed_instance(problem, 99)
    assert (instance.n, instance.k) == (4, 3)
    assert instance.coords is problem.coords
    assert instance.matrix.shape == (0, 0)
    np.testing.assert_array_equal(instance.neighbours, [[1, 3, 2], [0, 2, 3], [3, 1, 0], [2, 0, 1]])
    np.testing.assert_array_equal(instance.neighbour_distances, [[3, 4, 5]] * 4)
    assert instance.tour_length([0, 1, 2, 3]) == 14
    with pytest.raises(ValueError, match="not a permutation"):
        instance.tour_length([0, 1, 2, 2])
    with pytest.raises(ValueError, match=r"tour must have shape \(4,\)"):
        instance.tour_length([[0, 1, 2, 3]])

    by_matrix = listed_instance(TSP(matrix=problem.D), 2)
    assert by_matrix.coords.shape == (0, 3)
    assert by_matrix.metric == Metric.EXPLICIT
    assert by_matrix.tour_length([0, 2, 1, 3]) == instance.tour_length([0, 2, 1, 3]) == 18


def test_pla85900_needs_no_n_by_n_array(tsplib_dir):
    problem = load_tsp(tsplib_dir / "pla85900.tsp")
    tracemalloc.start()
    try:
        instance = listed_instance(problem, 32)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert instance.neighbours.shape == (85900, 32)
    assert peak < 200e6  # n * n bytes would be 7.4e9
    # Spot checks by brute force.
    for city in (0, 1, 40000, 85899):
        row = np.delete(np.hypot(*(problem.positions - problem.positions[city]).T), city)
        expected = np.sort(np.ceil(np.sort(row)[:32]))
        np.testing.assert_array_equal(instance.neighbour_distances[city], expected)


class Tolls(ElementwiseProblem):
    """A user's own problem: a matrix, and an objective that is not its tour length."""

    def __init__(self, D, **kwargs):
        self.D = D
        n = len(D)
        super().__init__(**{"n_var": n, "n_obj": 1, "xl": 0, "xu": n - 1, "vtype": int, **kwargs})

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = 1.0


def test_pymoos_travelling_salesman_is_taken_and_left_as_it_is():
    problem = create_random_tsp_problem(20, random_state=np.random.default_rng(1))
    problem.D[3, 3] = 5.0
    before, attributes = problem.D.copy(), set(vars(problem))
    instance = listed_instance(problem, 6)
    assert instance.metric == Metric.EXPLICIT
    assert instance.symmetric
    assert not instance.integral
    D = before.copy()
    np.fill_diagonal(D, 0)
    np.testing.assert_array_equal(instance.matrix, D)
    check_lists(instance, D, np.arange(20))
    np.testing.assert_array_equal(problem.D, before)
    assert set(vars(problem)) == attributes
    assert not np.shares_memory(instance.matrix, problem.D)
    tour = np.random.default_rng(2).permutation(20)
    assert instance.tour_length(tour) == pytest.approx(problem.evaluate(tour)[0], rel=1e-14)


def test_users_own_problems_with_a_matrix_are_taken():
    D = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    instance = listed_instance(Tolls(D), 2)
    assert (instance.symmetric, instance.integral) == (False, True)
    assert listed_instance(Tolls(np.array(D), vtype=np.int64), 1).n == 3
    assert listed_instance(Tolls(D, xu=3), 1).n == 3  # as TravelingSalesman has it
    assert listed_instance(Tolls(D, xl=None, xu=None), 1).n == 3


M3 = np.ones((3, 3))


@pytest.mark.parametrize(
    ("problem", "error", "message"),
    [
        (
            Tolls(M3, n_obj=2),
            ValueError,
            "Tolls has 2 objectives; expected a TSP, pymoo's TravelingSalesman",
        ),
        (Tolls(M3, n_ieq_constr=1), ValueError, "1 constraints; expected"),
        (Tolls(M3, n_eq_constr=2), ValueError, "2 constraints; expected"),
        (Tolls(M3, vtype=float), TypeError, "vtype float, not int; expected .*vtype=int"),
        (Tolls(M3, vtype=None), TypeError, "vtype None, not int"),
        (Tolls(M3, vtype=bool), TypeError, "vtype bool, not int"),
        (Rastrigin(n_var=3), TypeError, "Rastrigin has variables of vtype float"),
        (Problem(n_var=3, n_obj=1, xl=0, xu=2, vtype=int), TypeError, "no distances D; expected"),
        (Tolls(M3, n_var=4), ValueError, "D of Tolls is 3 x 3, but the problem has 4 variables"),
        (Tolls(M3, xl=1), ValueError, "bounds xl=0 and xu=2"),
        (Tolls(M3, xu=7), ValueError, "bounds xl=0 and xu=2"),
        (Tolls(np.ones((3, 4))), ValueError, "D of Tolls must be square"),
        (Tolls(M3 * np.nan), ValueError, "D of Tolls must hold finite distances"),
        (Tolls(-M3), ValueError, "got -1 from city 0 to city 1"),
        (Tolls([["a"] * 3] * 3), TypeError, "D of Tolls must be an array of numbers"),
        (TravelingSalesman(np.zeros((1, 1))), ValueError, "at least 2 cities"),
        (Tolls(np.where(np.eye(3)[[1, 2, 0]], np.inf, 1.0)), ValueError, "got inf from city 0 to city 1"),
        (get_problem("zdt1"), ValueError, "2 objectives"),
        (M3, TypeError, r"ndarray is not a pymoo Problem; expected .* TSP\(matrix=D\) makes one"),
        (None, TypeError, "NoneType is not a pymoo Problem"),
        ("pcb442", TypeError, "str is not a pymoo Problem.* load_tsp reads a name"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_is_needed(problem, error, message):
    with pytest.raises(error, match=message):
        listed_instance(problem, 2)
