"""Tours that are measured in several ways: the problem, and the front that a search of it returns."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from pymoo.algorithms.moo.nsga2 import NSGA2
from pymoo.core.problem import Problem
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.mutation.inversion import InversionMutation
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, Front, GPUMemetic, MultiObjectiveTSP, OpenPath, checkpoint, load_tsp
from pymoo_gpuaco.problems import as_multi_objective
from tests.engine_cases import asymmetric, cloud

SQUARE = np.array([[0.0, 0], [0, 1], [1, 1], [1, 0]])
TOLLS = np.array([[0, 5, 1, 1], [5, 0, 1, 1], [1, 1, 0, 5], [1, 1, 5, 0]])


class Tolls(Problem):
    """A user's own problem of two objectives, with its matrices."""

    def __init__(self, D=None, **changed):
        self.D = np.stack([cloud(5, seed).D for seed in (1, 2)]) if D is None else D
        super().__init__(**{"n_var": 5, "n_obj": 2, "xl": 0, "xu": 4, "vtype": int, **changed})

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = np.zeros((len(x), self.n_obj))


def test_a_square_and_its_tolls():
    problem = MultiObjectiveTSP([SQUARE, TOLLS], names=("way", "tolls"))
    assert (problem.n_cities, problem.n_obj, problem.n_var, problem.symmetric) == (4, 2, 4, True)
    assert problem.names == ("way", "tolls")
    # around: four sides, tolls 5 + 1 + 5 + 1; crossing in the one way and in the other
    tours = [[0, 1, 2, 3], [0, 2, 1, 3], [0, 1, 3, 2]]
    way = 2 + 2 * np.sqrt(2)
    expected = [[4, 12], [way, 1 + 1 + 1 + 1], [way, 5 + 1 + 5 + 1]]
    np.testing.assert_allclose(problem.tour_lengths(tours), expected, rtol=1e-15)
    np.testing.assert_array_equal(problem.evaluate(np.array(tours)), problem.tour_lengths(tours))
    np.testing.assert_array_equal(problem.D[1], TOLLS)
    assert problem.D is problem.D


@pytest.mark.parametrize("n", [3, 5, 7])
def test_every_tour_has_the_lengths_of_its_edges_wherever_it_begins(n):
    parts = [cloud(n, 1), TSP(cloud(n, 2).coords), asymmetric(n)]
    problem = MultiObjectiveTSP(parts)
    tours = np.array([(0, *rest) for rest in itertools.permutations(range(1, n))])
    lengths = problem.evaluate(tours)
    expected = [
        [sum(part.D[a, b] for a, b in itertools.pairwise([*tour, 0])) for part in parts]
        for tour in tours.tolist()
    ]
    np.testing.assert_allclose(lengths, expected, rtol=1e-13)
    for shift in range(n):
        assert np.array_equal(problem.evaluate(np.roll(tours, shift, axis=1)), lengths)
    assert np.array_equal(problem.evaluate(tours[:, ::-1])[:, :2], lengths[:, :2])  # to the last bit


@pytest.mark.parametrize(
    ("problems", "error", "message"),
    [
        ([SQUARE], ValueError, "2 to 6, one per objective, got 1"),
        ([SQUARE] * 7, ValueError, "2 to 6, one per objective, got 7"),
        (cloud(4), TypeError, "problems must be a sequence of 2 to 6"),
        ("kroA100+kroB100", TypeError, "problems must be a sequence of 2 to 6"),
        (
            ["kroA100", "kroB100"],
            TypeError,
            "coords must be an array of numbers, got 'kroA100'; load_tsp reads a",
        ),
        ([cloud(4), load_tsp("gr17")], ValueError, "same cities, got one with 4, gr17 with 17"),
        ([cloud(4), OpenPath(cloud(4))], ValueError, "round trips, got a path: add a city whose distance"),
        (
            [cloud(4), TSP(SQUARE, fixed_edges=[(0, 1)])],
            ValueError,
            "must not have fixed or forbidden edges, got TSP: 4 cities, .*1 fixed edge",
        ),
        ([cloud(4), TSP(SQUARE, forbidden_edges=[(0, 1)])], ValueError, "1 forbidden edge: give a forbidden"),
        ([SQUARE, np.zeros((3, 3))], ValueError, "three cities in space or a matrix"),
        ([SQUARE, [["a", "b"]] * 4], (TypeError, ValueError), "numbers"),
    ],
)
def test_what_is_no_problem_of_several_objectives_is_refused(problems, error, message):
    with pytest.raises(error, match=message):
        MultiObjectiveTSP(problems)


def test_names_are_one_an_objective():
    with pytest.raises(ValueError, match="names must be 2, one per objective, got 3"):
        MultiObjectiveTSP([SQUARE, TOLLS], names=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"names must differ, one per objective, got \['a', 'a'\]"):
        MultiObjectiveTSP([SQUARE, TOLLS], names=["a", "a"])
    with pytest.raises(TypeError, match="names must be 2 strings"):
        MultiObjectiveTSP([SQUARE, TOLLS], names="ab")
    named = TSP(SQUARE, name="way", names=["p", "q", "r", "s"])
    problem = MultiObjectiveTSP([TOLLS, named])
    assert problem.names == ("objective 1", "way")
    assert problem.city_names.tolist() == ["p", "q", "r", "s"]
    np.testing.assert_array_equal(problem.cities, SQUARE)
    assert problem.label is None


def test_names_joined_by_a_plus_are_loaded(tmp_path):
    problem = load_tsp("kroA100+kroB100")
    assert problem.label == "kroA100+kroB100"
    assert problem.names == ("kroA100", "kroB100")
    assert str(problem).startswith(
        "MultiObjectiveTSP kroA100+kroB100: 100 cities, 2 objectives (kroA100: Eucl"
    )
    best = [load_tsp(name).optimal_tour for name in ("kroA100", "kroB100")]
    assert problem.tour_lengths([best[0]])[0, 0] == 21282
    assert load_tsp("random:20+random:20:2+random:20:3").n_obj == 3
    with pytest.raises(
        ValueError, match=r"kroA100\+berlin52: problems must have the same cities, got kroA100 with"
    ):
        load_tsp("kroA100+berlin52")
    with pytest.raises(ValueError, match=r"NAME\+NAME, as in kroA100\+kroB100"):
        load_tsp("kroA100+")
    with pytest.raises(ValueError, match=r"a\+kroA100: unknown instance 'a'"):
        load_tsp("a+kroA100")
    (tmp_path / "1+1.csv").write_text("0,0\n0,1\n1,1\n1,0\n2,3\n")
    assert isinstance(load_tsp(str(tmp_path / "1+1.csv")), TSP)  # a file of that name comes first


def test_a_weighted_sum_is_a_tsp():
    problem = MultiObjectiveTSP([cloud(6, 1), cloud(6, 2), cloud(6, 3)])
    tours = np.array([np.random.default_rng(i).permutation(6) for i in range(4)])
    one = problem.weighted([0.5, 0, 2])
    np.testing.assert_allclose(one.tour_lengths(tours), problem.tour_lengths(tours) @ [0.5, 0, 2], rtol=1e-14)
    np.testing.assert_array_equal(one.positions, problem.cities)
    assert one.label == "0.5 objective 1 + 0 objective 2 + 2 objective 3"
    for wrong in ([1, 1], [0, 0, 0], [1, -1, 1], [1, np.nan, 1]):
        with pytest.raises(ValueError, match="weights must be"):
            problem.weighted(wrong)


def test_copies_share_arrays_and_pickles_leave_the_matrices_out(tmp_path):
    problem = MultiObjectiveTSP([cloud(8, 1), asymmetric(8)])
    D = problem.D
    shared = copy.deepcopy(problem)
    assert shared.D is D
    assert shared.parts[0] is not problem.parts[0]
    assert shared.parts[0].coords is problem.parts[0].coords
    loaded = pickle.loads(pickle.dumps(problem))
    assert loaded._D is None
    np.testing.assert_array_equal(loaded.D, D)
    checkpoint.save(problem, tmp_path / "problem")
    again = checkpoint.load(tmp_path / "problem")  # without a pickle
    np.testing.assert_array_equal(again.D, D)
    assert again.names == problem.names
    with pytest.raises(ValueError, match="parts of this MultiObjectiveTSP must be a tuple of TSP"):
        problem.__setstate__({**problem.__getstate__(), "parts": (1, 2)})


def test_pymoos_nsga2_finds_tours_of_it():
    problem = MultiObjectiveTSP([cloud(12, 1), cloud(12, 2)])
    nsga2 = NSGA2(
        pop_size=40,
        sampling=PermutationRandomSampling(),
        crossover=OrderCrossover(),
        mutation=InversionMutation(),
    )
    result = minimize(problem, nsga2, ("n_gen", 30), seed=1)
    random = problem.tour_lengths([np.random.default_rng(i).permutation(12) for i in range(100)])
    assert len(result.F) > 3
    assert np.all(result.F.min(axis=0) < random.min(axis=0))
    np.testing.assert_array_equal(problem.tour_lengths(result.X), result.F)


def test_problems_of_others_are_taken():
    foreign = Tolls()
    taken = as_multi_objective(foreign)
    np.testing.assert_array_equal(taken.D, foreign.D)
    assert not np.shares_memory(taken.D, foreign.D)
    problem = MultiObjectiveTSP([SQUARE, TOLLS])
    assert as_multi_objective(problem) is problem
    assert as_multi_objective(Tolls(foreign.D.tolist(), xu=5)).n_cities == 5


ONES = np.ones((2, 5, 5))


@pytest.mark.parametrize(
    ("problem", "error", "message"),
    [
        (cloud(5), ValueError, "TSP has 1 objective; expected a MultiObj.* For one objective take GPUMMAS"),
        (
            Tolls(n_obj=7),
            ValueError,
            "Tolls has 7 objectives; expected a MultiObjectiveTSP, or a Problem with 2",
        ),
        (Tolls(n_ieq_constr=1), ValueError, "1 constraints; expected"),
        (Tolls(vtype=float), TypeError, "vtype float, not int; expected"),
        (Problem(n_var=5, n_obj=2, xl=0, xu=4, vtype=int), TypeError, "no distances D; expected"),
        (Tolls(ONES[0]), ValueError, r"D of Tolls must have shape \(2, n, n\), got \(5, 5\)"),
        (Tolls(np.ones((3, 5, 5))), ValueError, r"must have shape \(2, n, n\), got \(3, 5, 5\)"),
        (Tolls(np.ones((2, 4, 4))), ValueError, "D of Tolls is 4 x 4, but the problem has 5 variables"),
        (Tolls(xl=1), ValueError, "bounds xl=0 and xu=4"),
        (
            Tolls(ONES * [[[1]], [[-1]]]),
            ValueError,
            r"D\[1\] of Tolls: matrix must hold .* got -1 from city 0",
        ),
        (ONES, TypeError, "ndarray is not a pymoo Problem; expected"),
    ],
)
def test_what_no_front_is_searched_of_is_refused(problem, error, message):
    with pytest.raises(error, match=message):
        as_multi_objective(problem)


def test_algorithms_of_one_objective_say_what_to_take():
    problem = MultiObjectiveTSP([cloud(9, 1), cloud(9, 2)])
    with pytest.raises(ValueError, match=r"has 2 objectives; .* GPU2PPLS finds the front of tours"):
        minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 1))


def test_a_front_is_sorted_by_the_first_objective():
    tours = np.array([np.roll(np.arange(4), i) for i in range(4)])
    front = Front(tours, [[3.0, 1], [1, 5], [1, 4], [2, 2]])
    assert front.lengths.tolist() == [[1, 4], [1, 5], [2, 2], [3, 1]]
    assert front.tours.tolist() == tours[[2, 1, 3, 0]].tolist()
    assert (front.tours.dtype, front.size, front.problem) == (np.int32, 4, None)
    ours, lengths = front
    assert ours is front.tours
    assert lengths is front.lengths
    assert repr(front) == "Front(4 tours, lengths 1 to 3, 1 to 5, problem='None')"
    assert repr(Front(np.empty((0, 4)), np.empty((0, 2)))).startswith("Front(0 tours")
    with pytest.raises(ValueError, match=r"shapes \(f, n\) and \(f, k\), got \(4, 4\) and \(3, 2\)"):
        Front(tours, front.lengths[:3])


def test_tours_along_a_front_are_its_ends_and_what_lies_between():
    # scaled to the unit square: (0, 1), (.1, .5), (.5, .1), (1, 0); from the second to the third it is .57 of 1.55
    lengths = np.array([[0, 100], [1, 50], [5, 10], [10, 0]])
    front = Front(np.tile(np.arange(5), (4, 1)), lengths)
    assert front.along(4).tolist() == [0, 1, 2, 3]
    assert front.along(2).tolist() == [0, 3]
    assert Front(front.tours[:1], lengths[:1]).along().tolist() == [0]
    # of three objectives the shortest by each, and the one nearest to all three at once
    three = [[0, 9, 9], [9, 0, 9], [9, 9, 0], [3, 3, 3], [8, 8, 8]]
    assert Front(np.tile(np.arange(5), (5, 1)), three).along().tolist() == [0, 1, 3, 4]
    with pytest.raises(ValueError, match="count must be an integer >= 2, got 1"):
        front.along(1)


def test_the_hypervolume_is_the_area_that_a_front_dominates():
    front = Front(np.tile(np.arange(4), (3, 1)), [[1.0, 3], [2, 2], [3, 1]])
    # below (4, 4): 1 by 1, 2 by 1 and 3 by 1; below 1.01 times (3, 3): from 1 to 2, 2 to 3, 3 to 3.03
    assert front.hypervolume([4, 4]) == 6
    for point, words in (
        ([4, 4, 4], "reference_point must be 2 numbers"),
        ([4, np.nan], "reference_point must be in"),
    ):
        with pytest.raises(ValueError, match=words):
            front.hypervolume(point)
    assert front.reference_point().tolist() == pytest.approx([3.03, 3.03])
    assert front.hypervolume() == pytest.approx(1 * 0.03 + 1 * 1.03 + 0.03 * 2.03)


def test_a_front_survives_copies_and_pickles():
    problem = MultiObjectiveTSP([SQUARE, TOLLS])
    front = Front([[0, 1, 2, 3]], [[4, 12]], problem)
    for same in (pickle.loads(pickle.dumps(front)), copy.deepcopy(front)):
        assert same.tours.tolist() == [[0, 1, 2, 3]]
        assert same.problem.names == problem.names
