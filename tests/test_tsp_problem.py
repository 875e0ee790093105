"""The TSP as a pymoo Problem."""

import copy
import pickle
import tracemalloc
from enum import Enum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pymoo_gpuaco.candidates.listed import make_graph
from pymoo_gpuaco.problems import METRIC_NAMES, TSP, Metric, distances, summation
from pymoo_gpuaco.problems.summation import tour_length
from tests.instances import listed_instance

# A 3-4-5 grid: 0 (0,0), 1 (3,0), 2 (3,4), 3 (0,4); round trip 3 + 4 + 3 + 4 = 14, crossed 3 + 5 + 3 + 5 = 16.
SQUARE = np.array([[0, 0], [3, 0], [3, 4], [0, 4]])


def test_tour_length_of_the_square_by_hand():
    problem = TSP(SQUARE)
    assert problem.tour_length([0, 1, 2, 3]) == 14
    np.testing.assert_array_equal(problem.tour_lengths([[0, 1, 2, 3], [0, 1, 3, 2]]), [14, 16])
    assert problem.tour_lengths(np.zeros((0, 4), dtype=int)).shape == (0,)


def test_tour_length_of_an_asymmetric_matrix_follows_the_direction():
    problem = TSP(matrix=[[7, 1, 2], [3, 7, 4], [5, 6, 7]])
    assert problem.tour_length([0, 1, 2]) == 1 + 4 + 5
    assert problem.tour_length([2, 1, 0]) == 6 + 3 + 2
    assert not problem.symmetric
    assert problem.integral


def test_attributes_tell_pymoo_a_permutation_of_all_cities():
    problem = TSP(SQUARE, "EUC_2D", best_known=14, name="square", optimal_tour=[0, 1, 2, 3])
    assert (problem.n_var, problem.n_obj, problem.n_constr, problem.vtype) == (4, 1, 0, int)
    np.testing.assert_array_equal(problem.xl, 0)
    np.testing.assert_array_equal(problem.xu, 3)
    assert problem.n_cities == 4
    assert problem.metric is Metric.EUC
    assert problem.label == "square"
    assert problem.name() == "TSP"
    assert "TSP" in str(problem)
    np.testing.assert_array_equal(problem.positions, SQUARE)
    np.testing.assert_array_equal(problem.pareto_front(), [[14]])
    assert TSP(SQUARE).pareto_front() is None
    assert TSP(SQUARE, "EUC_2D", optimal_tour=[1, 2, 3, 0]).best_known == 14


def test_a_problem_shows_what_it_is_in_one_line():
    square = TSP(SQUARE, "EUC_2D", best_known=14, name="square")
    assert str(square) == "TSP square: 4 cities, Euclidean distances, rounded (EUC_2D), best known 14"
    assert repr(TSP(SQUARE)) == "TSP: 4 cities, Euclidean distances, not rounded (EXACT)"
    assert (
        repr(TSP(np.arange(9).reshape(3, 3), "MAN_3D"))
        == "TSP: 3 cities, distances along the axes, rounded (MAN_3D)"
    )
    matrix = TSP(matrix=[[0, 1, 2], [1, 0, 3], [2, 4, 0]])
    assert str(matrix) == "TSP: 3 cities, distances from an asymmetric matrix"


@pytest.mark.parametrize(
    ("arguments", "symmetric", "integral"),
    [
        ({"coords": SQUARE}, True, False),
        ({"coords": SQUARE, "metric": "EUC_2D"}, True, True),
        ({"matrix": [[0, 1, 2], [1, 0, 3], [2, 3, 0]]}, True, True),
        ({"matrix": [[0, 1, 2], [1, 0, 3], [2, 3.5, 0]]}, False, False),
        ({"matrix": [[5, 1, 2], [1, 6, 3], [2, 3, 7.5]]}, True, True),  # the diagonal does not count
    ],
)
def test_symmetric_and_integral(arguments, symmetric, integral):
    problem = TSP(**arguments)
    assert (problem.symmetric, problem.integral) == (symmetric, integral)


def test_noise_of_the_last_digit_does_not_make_a_matrix_asymmetric():
    matrix = np.array([[0, 0.1, 0.2], [0.1, 0, 0.3], [0.2, np.nextafter(0.3, 1), 0]])
    problem = TSP(matrix=matrix)
    assert problem.symmetric
    np.testing.assert_array_equal(problem.matrix, problem.matrix.T)
    assert not TSP(matrix=matrix + np.triu(np.full((3, 3), 1e-6), 1)).symmetric


def test_matrix_of_the_user_is_not_changed_and_not_shared():
    matrix = np.full((3, 3), 9.0)
    problem = TSP(matrix=matrix)
    np.testing.assert_array_equal(matrix, 9)
    np.testing.assert_array_equal(np.diag(problem.D), 0)
    assert not np.shares_memory(matrix, problem.D)


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(METRIC_NAMES)), st.integers(3, 30), st.integers(1, 5))
@settings(deadline=None, max_examples=60)
def test_tour_lengths_equal_the_sum_over_edges(seed, name, n, m):
    rng = np.random.default_rng(seed)
    metric, dimension = METRIC_NAMES[name]
    problem = TSP(rng.uniform(-90, 90, (n, dimension)).round(1), name)
    tours = np.array([rng.permutation(n) for _ in range(m)])
    naive = [
        sum(float(distances(metric, problem.coords, tour[c - 1], tour[c])) for c in range(n))
        for tour in tours
    ]
    np.testing.assert_allclose(problem.tour_lengths(tours), naive, rtol=1e-13)
    np.testing.assert_allclose(TSP(matrix=problem.D).tour_lengths(tours), naive, rtol=1e-13)


def test_many_tours_in_pieces_equal_the_tours_one_by_one():
    rng = np.random.default_rng(5)
    problem = TSP(rng.uniform(0, 1000, (1500, 2)))
    tours = rng.permuted(np.tile(np.arange(1500), (800, 1)), axis=1)  # several pieces, the last one short
    lengths = problem.tour_lengths(tours)
    assert lengths.shape == (800,)
    for row in (0, 348, 349, 350, 799):
        assert lengths[row] == problem.tour_length(tours[row])


def test_edges_of_a_long_tour_are_measured_in_pieces_to_the_last_one():
    n = 2 * (1 << 14) + 5
    problem = TSP(np.column_stack([np.arange(n), np.zeros(n)]))
    assert problem.tour_length(np.arange(n)) == 2 * (n - 1)
    tour = np.random.default_rng(1).permutation(n)
    assert problem.tour_length(tour) == np.abs(tour - np.roll(tour, -1)).sum()


def test_evaluation_never_makes_an_n_by_n_array():
    n = 20000  # n * n doubles would be 3.2 GB
    rng = np.random.default_rng(6)
    problem = TSP(rng.uniform(0, 1e6, (n, 2)))
    tours = rng.permuted(np.tile(np.arange(n), (100, 1)), axis=1)
    tracemalloc.start()
    try:
        problem.evaluate(tours)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150e6


def test_evaluate_gives_a_column_of_lengths():
    problem = TSP(SQUARE)
    F = problem.evaluate(np.array([[0, 1, 2, 3], [0, 2, 1, 3]]))
    np.testing.assert_array_equal(F, [[14], [18]])  # 5 + 4 + 5 + 4
    np.testing.assert_array_equal(problem.evaluate(np.array([3.0, 2.0, 1.0, 0.0])), [14])


@pytest.mark.parametrize(
    "row",
    [
        [0, 1, 2, 2],
        [0, 1, 2, 4],
        [0, 1, 2, -1],
        [0.5, 1, 2, 3],
        [np.nan, 1, 2, 3],
        [1e300, 1, 2, 3],
    ],
)
def test_what_is_no_permutation_is_refused_with_its_row(row):
    problem = TSP(SQUARE)
    X = np.array([[0, 1, 2, 3], row])
    with pytest.raises(ValueError, match=r"X: row 1 is not a permutation of 0\.\.3"):
        problem.evaluate(X)
    with pytest.raises(ValueError, match="tours: row 1 is"):
        problem.tour_lengths(X)
    with pytest.raises(ValueError, match="tour: row 0 is"):
        problem.tour_length(row)


def test_the_refused_row_is_counted_over_all_pieces():
    problem = TSP(np.random.default_rng(7).random((1500, 2)), "EXACT")
    tours = np.tile(np.arange(1500), (800, 1))
    tours[700, 3] = 5
    with pytest.raises(ValueError, match="row 700 "):
        problem.tour_lengths(tours)


@pytest.mark.parametrize(
    ("tours", "message"),
    [
        ([0, 1, 2, 3], r"tours must have shape \(m, 4\), got \(4,\)"),
        ([[0, 1, 2]], r"tours must have shape \(m, 4\), got \(1, 3\)"),
        ([["a", "b", "c", "d"]], "tours must hold city numbers"),
        ([[True, False, True, False]], "tours must hold city numbers"),
    ],
)
def test_tours_of_wrong_shape_or_type_are_refused(tours, message):
    with pytest.raises(ValueError, match=message):
        TSP(SQUARE).tour_lengths(tours)
    with pytest.raises(ValueError, match="tour must have shape"):
        TSP(SQUARE).tour_length([[0, 1, 2, 3]])


def arrays(problem):
    return {key: value for key, value in vars(problem).items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize(
    "problem",
    [TSP(SQUARE, "EUC_2D", optimal_tour=[0, 1, 2, 3]), TSP(matrix=np.ones((4, 4)), positions=SQUARE)],
    ids=["coords", "matrix"],
)
def test_deep_copy_shares_the_arrays_and_pickle_restores_them(problem):
    problem.D  # noqa: B018 - computed and cached before the copy
    twin = copy.deepcopy({"a": problem, "b": [problem]})
    assert twin["a"] is not problem
    assert twin["a"] is twin["b"][0]
    for key in ("coords", "matrix", "positions", "optimal_tour", "_D"):
        assert getattr(twin["a"], key) is getattr(problem, key)
    assert twin["a"].D is problem.D
    twin["a"].xu[0] = -1
    assert problem.xu[0] == 3

    restored = pickle.loads(pickle.dumps(problem))
    assert restored.metric is problem.metric
    assert restored.best_known == problem.best_known
    for key, value in arrays(problem).items():
        np.testing.assert_array_equal(getattr(restored, "D" if key == "_D" else key), value)
    assert restored.tour_length([0, 2, 1, 3]) == problem.tour_length([0, 2, 1, 3])


def test_pickle_leaves_the_computed_matrix_out():
    problem = TSP(np.random.default_rng(8).random((300, 2)), "EXACT")
    size = len(pickle.dumps(problem))
    problem.D  # noqa: B018
    assert len(pickle.dumps(problem)) == size
    assert copy.copy(problem).coords is problem.coords


def test_arrays_stay_writeable_for_compiled_functions():
    for problem in (TSP(SQUARE), copy.deepcopy(TSP(SQUARE)), TSP(matrix=np.ones((3, 3)))):
        assert all(array.flags.writeable for array in arrays(problem).values())


def test_no_attribute_is_an_enum_member():
    # pymoo's get_params follows attributes without end once it has reached an Enum's class.
    assert not any(isinstance(value, Enum) for value in vars(TSP(SQUARE)).values())


@pytest.mark.parametrize("n", [3, 7, 511, 512, 513, 1700])
@pytest.mark.parametrize("metric", ["EXACT", "HAVERSINE"])
def test_a_cycle_has_one_length_wherever_it_begins_and_whichever_way_it_goes(n, metric):
    rng = np.random.default_rng(n)
    problem = TSP(rng.random((n, 2)) * 80, metric=metric)
    tour = rng.permutation(n)
    turned = [np.roll(way, by) for way in (tour, tour[::-1]) for by in rng.integers(0, n, 10)]
    assert len(set(problem.tour_lengths(np.array(turned)))) == 1
    straight = distances(problem.metric, problem.coords, tour, np.roll(tour, -1)).sum()
    assert problem.tour_length(tour) == pytest.approx(straight, rel=1e-13)


def test_an_asymmetric_tour_has_one_length_wherever_it_begins():
    rng = np.random.default_rng(3)
    problem = TSP(matrix=rng.random((700, 700)))
    tour = rng.permutation(700)
    assert len({problem.tour_length(np.roll(tour, by)) for by in range(0, 700, 7)}) == 1
    assert problem.tour_length(tour[::-1]) != problem.tour_length(tour)


@pytest.mark.parametrize("n", [3, 513, 1700])
def test_compiled_code_adds_up_in_the_same_order(n):
    rng = np.random.default_rng(n)
    for problem in (TSP(rng.random((n, 2)), metric="EXACT"), TSP(matrix=rng.random((n, n)))):
        graph = make_graph(listed_instance(problem, 2))
        for _ in range(10):
            tour = rng.permutation(n).astype(np.int32)
            assert tour_length(graph, tour) == problem.tour_length(tour)


@pytest.mark.parametrize("threads", ["1", "3"])
@pytest.mark.parametrize("metric", ["EUC_2D", "CEIL_2D", "ATT", "GEO", "MAN_2D", "MAX_2D", "EXACT", "EUC_3D"])
def test_tours_are_as_long_to_the_last_bit_on_all_threads(monkeypatch, metric, threads):
    """Wherever the row begins, whichever way it goes, with a last block that is full or not."""
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", threads)
    rng = np.random.default_rng(7)
    for n in (3, 1024, 1500):
        problem = TSP(rng.random((n, 3 if metric == "EUC_3D" else 2)) * 80, metric)
        tours = np.stack([rng.permutation(n) for _ in range(3)])
        graph = make_graph(listed_instance(problem, 2))
        expected = [tour_length(graph, tour) for tour in tours.astype(np.int32)]
        for same in (tours, tours[:, ::-1], np.roll(tours, 7, axis=1)):
            assert problem.tour_lengths(same).tolist() == expected
            with monkeypatch.context() as patch:
                patch.setattr(summation, "_SPREAD_FROM", 1)  # blocks on all threads
                assert problem.tour_lengths(same).tolist() == expected
                with pytest.raises(ValueError, match="row 1 is not a permutation"):
                    problem.tour_lengths(np.stack([same[0], np.zeros(n, int)]))
