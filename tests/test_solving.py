"""One line for one tour, one for several seeds, and paths that do not come back."""

import itertools
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from pymoo.core.callback import Callback
from pymoo.optimize import minimize
from pymoo.problems.single.traveling_salesman import create_random_tsp_problem

from pymoo_gpuaco import (
    GPU2PPLS,
    GPUACS,
    GPUFACO,
    GPUMMAS,
    TSP,
    ColonyTermination,
    Front,
    GPU2OptIHC,
    GPUMemetic,
    MultiObjectiveTSP,
    OpenPath,
    Summary,
    load_tsp,
    solve,
    summary,
)
from tests.algorithm_cases import cities
from tests.engine_cases import cloud

SQUARE = np.array([[0, 0], [3, 0], [3, 4], [0, 4]])
D = TSP(SQUARE).D


@pytest.mark.parametrize(
    "what", [SQUARE, SQUARE.tolist(), D, TSP(SQUARE)], ids=["array", "list", "matrix", "TSP"]
)
def test_one_line_solves_coordinates_a_matrix_or_a_problem(what):
    tour, length = solve(what, target=14)
    assert length == 14  # 3 + 4 + 3 + 4
    assert tour.tolist() == [0, 1, 2, 3]


def test_one_line_solves_by_name_and_pymoos_own_problem(tmp_path):
    assert solve("gr17").length == 2085
    file = tmp_path / "square.csv"
    np.savetxt(file, SQUARE, delimiter=",")
    assert solve(file, target=14).length == 14
    problem = create_random_tsp_problem(12, random_state=np.random.default_rng(1))
    tour, length = solve(problem, seconds=0.2)
    assert length == pytest.approx(problem.evaluate(tour[None])[0, 0])


def test_the_time_ends_a_search_and_the_seed_repeats_it(clock):
    """Each generation takes a second; the one that begins before the end is the last."""
    generations = []

    def second(algorithm):
        generations.append(algorithm.n_iter)
        clock.step(1.0)

    first = solve(cities(40), seconds=3, algorithm=GPUACS(2, callback=second, backend="cpu"))
    assert sorted(first.tour) == list(range(40))
    assert generations == [1, 2, 3, 4]
    ended = GPUACS(2, termination=("n_gen", 3), local_search=False, backend="cpu")
    one, two, other = (solve(cities(40), algorithm=ended, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.tour, two.tour)
    assert not np.array_equal(one.tour, other.tour)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.ones((3, 3)),), ValueError, "three cities in space or a matrix"),
        ((np.ones(4),), ValueError, "coords must have shape"),
        ((np.ones((2, 2)),), ValueError, "2 x 2 numbers are two cities or a matrix"),
        ((SQUARE, -1.0), ValueError, "seconds must be in"),
        (("pcb424",), ValueError, "pcb442"),
    ],
)
def test_what_cannot_be_solved_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        solve(*arguments)
    with pytest.raises(TypeError, match="algorithm must be one of this package"):
        solve(SQUARE, algorithm="GPUMMAS")


class Seen(Callback):
    """Notes seed and generation."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def notify(self, algorithm):
        self.seen.append((algorithm.seed, algorithm.n_gen))


@pytest.mark.parametrize(
    "problem", [cities(40), MultiObjectiveTSP([cities(40), cloud(40)])], ids=["one", "two"]
)
def test_what_the_algorithm_was_given_holds_where_solve_is_given_nothing(problem, capsys):
    make = {1: GPUMemetic, 2: GPU2PPLS}[problem.n_obj]
    algorithm = make(seed=5, termination=("n_gen", 2), verbose=True, callback=Seen(), backend="cpu")
    one, again = solve(problem, algorithm=algorithm), solve(problem, algorithm=algorithm)
    np.testing.assert_array_equal(one[0], again[0])
    assert algorithm.callback.seen == 2 * [(5, 1), (5, 2)]
    assert capsys.readouterr().out.count("n_gen") == 2  # a header each
    solve(problem, algorithm=algorithm, seed=1, verbose=False)
    assert algorithm.callback.seen[4:] == [(1, 1), (1, 2)]
    assert capsys.readouterr().out == ""
    named = make.__name__
    with pytest.raises(ValueError, match=f"seconds=1 conflicts with the termination of {named}"):
        solve(problem, 1, algorithm=algorithm)
    seen = Seen()
    solve(problem, 0.1, algorithm=make(callback=seen, backend="cpu"))
    assert {seed for seed, _ in seen.seen} == {1}


def test_solve_takes_no_algorithm_that_has_a_problem_and_none_for_another_number_of_objectives():
    algorithm = GPUMemetic(termination=("n_gen", 1))
    with pytest.raises(ValueError, match=r"target=14 conflicts with the termination of GPUMemetic"):
        solve(SQUARE, algorithm=algorithm, target=14)
    algorithm.setup(TSP(SQUARE))
    with pytest.raises(ValueError, match="algorithm must not be set up"):
        solve(cities(9), algorithm=algorithm)
    with pytest.raises(ValueError, match=r"TSP has 1 objective; .* For one objective take GPUMMAS"):
        solve(TSP(SQUARE), algorithm=GPU2PPLS())


def test_a_summary_has_a_line_for_each_seed():
    found = summary(load_tsp("gr17"), GPUACS(2), ("n_gen", 3), seeds=[4, 7])
    assert found.seeds.tolist() == [4, 7]
    assert found.generations.tolist() == [3, 3]
    assert found.tours.tolist() == [6, 6]
    np.testing.assert_allclose(found.gaps, 100 * (found.lengths / 2085 - 1))
    assert found.best.F[0] == found.lengths.min()
    columns = found.as_dict()
    assert columns["stopped_by"].tolist() == ["", ""]  # pymoo's termination has no words for it
    assert {len(column) for column in columns.values()} == {2}
    lines = repr(found).splitlines()
    assert len(lines) == 1 + 1 + 2 + 3
    assert lines[0] == "TSP gr17: 17 cities, distances from a matrix, best known 2085"
    assert lines[5].split() == ["mean", f"{found.lengths.mean():.10g}", f"{found.gaps.mean():.3f}"]


def test_a_summary_keeps_no_engine_but_its_state():
    """Ten colonies would fill the memory of a GPU."""
    found = summary(cities(9), GPUACS(2, backend="cpu"), ("n_gen", 3), seeds=[4, 7])
    assert [result.algorithm._engine for result in found.results] == [None, None]
    alone = minimize(cities(9), GPUACS(2, backend="cpu"), ("n_gen", 3), seed=7).algorithm
    assert np.array_equal(found.results[1].algorithm.trails(), alone.trails())


def test_the_best_of_a_summary_breaks_the_fewest_constraints_and_is_the_shortest_of_these():
    line = TSP(matrix=np.abs(np.subtract.outer(range(5), range(5))) + 0.0, fixed_edges=[(0, 4)])
    tours = ([0, 1, 2, 3, 4], [0, 2, 4, 1, 3], [0, 2, 1, 3, 4])
    # 8 with the edge; 12 without it; 10 with it
    lengths = [8.0, 12.0, 10.0]
    assert line.tour_lengths(np.array(tours)).tolist() == lengths
    assert line.violations(np.array(tours)).tolist() == [0, 1, 0]

    def best(*order):
        results = [
            SimpleNamespace(
                X=np.array(tours[i]),
                F=[length],
                problem=line,
                exec_time=1.0,
                algorithm=SimpleNamespace(n_iter=2, evaluator=SimpleNamespace(n_eval=1), termination=None),
            )
            for i, length in order
        ]
        return Summary(range(len(order)), results).best.F[0]

    assert best((1, 12.0), (2, 10.0), (0, 8.0)) == 8.0
    assert best((1, 1.0), (2, 10.0)) == 10.0  # a shorter tour that breaks a constraint is no better


def test_a_summary_without_a_best_known_length_has_no_gaps():
    found = summary(cities(9), GPUACS(2), ("n_gen", 1), seeds=1)
    assert np.isnan(found.gaps).all()
    assert str(found).splitlines()[2].split()[2] == "-"
    found = summary(cities(9), GPUACS(2), ColonyTermination(n_max_gen=1), seeds=1)
    assert str(found).splitlines()[2].endswith("  budget: 1 generations")


@pytest.mark.parametrize(
    ("seeds", "words"), [(0, "seeds must be"), ([], "at least one"), ([-1], "seeds must be")]
)
def test_seeds_that_are_none_are_refused(seeds, words):
    with pytest.raises(ValueError, match=words):
        summary(cities(9), seeds=seeds)


LINE = np.array([[0, 0], [10, 0], [1, 0], [7, 0], [4, 0]])  # five places on a line: 0, 2, 4, 3, 1 in order


def test_an_open_path_from_a_given_start():
    problem = OpenPath(TSP(LINE), start=0)
    path, length = solve(problem, target=10)
    assert length == 10  # from one end of the line to the other, once
    assert path.tolist() == [0, 2, 4, 3, 1]
    assert problem.positions.tolist() == LINE.tolist()
    # from the place at 4: to the nearer end at 0, and then over all of it to 10
    assert solve(OpenPath(matrix=TSP(LINE).D, start=4), target=14).length == 4 + 10


def test_an_open_path_with_free_ends_begins_at_the_smaller():
    problem = OpenPath(LINE)
    assert problem.symmetric
    assert (problem.n_cities, problem.n_var, problem.matrix) == (5, 5, None)
    path, length = solve(problem, target=10)
    assert (path.tolist(), length) == ([0, 2, 4, 3, 1], 10)


def test_an_open_path_has_what_its_problem_has():
    globe = TSP(
        [[0.0, 0.0], [0.0, 10.0], [0.0, 20.0]], "HAVERSINE", names=list("abc"), fixed_edges=[(0, 2)], name="g"
    )
    path = OpenPath(globe, start=0)
    assert (path.label, path.names.tolist(), path.fixed_edges.tolist()) == ("g", list("abc"), [[0, 2]])
    np.testing.assert_array_equal(path.coords, globe.coords)
    np.testing.assert_array_equal(path.cities, globe.cities)
    assert solve(path).tour.tolist() == [0, 2, 1]
    matrix = TSP(matrix=globe.D, forbidden_edges=[(0, 1)], positions=[[0, 0], [1, 0], [2, 0]])
    again = OpenPath(matrix)
    assert (again.n_forbidden, again.positions.tolist()) == (1, matrix.positions.tolist())
    assert OpenPath(np.random.default_rng(1).random((4, 3))).coords.shape == (4, 3)  # in space


def test_a_solution_is_a_pair_that_knows_its_problem_and_its_metric():
    found = solve(SQUARE)
    tour, length = found
    assert isinstance(found, tuple)
    assert len(found) == 2
    assert (found.tour is tour, found.length == length == 14) == (True, True)
    words = "TSP: 4 cities, Euclidean distances, not rounded (EXACT)"
    assert repr(found) == f"Solution(length=14, tour=[0, 1, 2, 3], problem={words!r})"
    again = pickle.loads(pickle.dumps(found))
    assert (again.length, again.problem.n_cities) == (14, 4)


def test_of_several_objectives_a_front_is_found(clock):
    problem = MultiObjectiveTSP([cloud(7, 1), cloud(7, 2)])
    front = solve(problem, seconds=1, algorithm=GPU2PPLS(backend="cpu"))
    assert isinstance(front, Front)
    assert front.problem is problem
    tours, lengths = front
    np.testing.assert_array_equal(problem.tour_lengths(tours), lengths)
    # at its ends a front has the shortest tours by each objective
    every = problem.tour_lengths([(0, *rest) for rest in itertools.permutations(range(1, 7))])
    np.testing.assert_array_equal(lengths.min(axis=0), every.min(axis=0))
    with pytest.raises(ValueError, match="target requires one objective, got 2"):
        solve(problem, target=3)
    with pytest.raises(TypeError, match=r"algorithm must be GPU2PPLS\(..\) for 2 objectives, got GPUMemetic"):
        solve(problem, algorithm=GPUMemetic())
    with pytest.raises(ValueError, match="summary requires one objective, got 2 of MultiObjectiveTSP"):
        summary(problem)


@pytest.mark.parametrize(
    "what", [None, 5, {"a": (0, 0), "b": (1, 1)}, {(0, 0), (1, 1)}, (place for place in [(0, 0), (1, 1)])]
)
def test_what_holds_no_cities_is_refused_by_its_type(what):
    with pytest.raises(TypeError, match=rf"what must be an array .* or a graph, got {type(what).__name__}$"):
        solve(what)
    if what is not None:
        with pytest.raises((TypeError, ValueError), match=rf"got {type(what).__name__}$|got \(\)$"):
            TSP(what)


RING = [[0, 0], [1, 0], [2, 0], [2, 1], [1, 1], [0, 1]]  # the shortest tour is 0 1 2 3 4 5, either way round


@pytest.mark.parametrize(
    ("start", "fixed", "tour"),
    [
        (0, [(0, 5)], [0, 5, 4, 3, 2, 1]),
        (0, [(0, 1)], [0, 1, 2, 3, 4, 5]),
        (0, [(5, 0)], [0, 5, 4, 3, 2, 1]),  # the chain follows the start
        (3, [(3, 2), (2, 1)], [3, 2, 1, 0, 5, 4]),
        (3, [(4, 3), (3, 2)], [3, 2, 1, 0, 5, 4]),
        (3, [(2, 3), (3, 4), (1, 0)], [3, 4, 5, 0, 1, 2]),
        (0, [(4, 3), (3, 2)], [0, 5, 4, 3, 2, 1]),  # away from the start, most in the direction given
        (0, [(4, 3), (1, 2), (2, 3)], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_a_round_trip_turns_so_that_fixed_edges_follow_its_start(start, fixed, tour):
    assert solve(RING, 1, start=start, end=start, fixed_edges=fixed).tour.tolist() == tour


def test_the_direction_of_a_one_way_round_trip_stays():
    one_way = np.full((4, 4), 9.0)
    one_way[range(4), [1, 2, 3, 0]] = 1.0
    assert solve(TSP(matrix=one_way), 1, start=1, end=1, fixed_edges=[(0, 1)]).tour.tolist() == [1, 2, 3, 0]
    before = {"precedence": [(4, 2)], "fixed_edges": [(0, 1)]}  # 4 before 2 asks for the other way round
    assert solve(RING, 1, start=0, end=0, **before).tour.tolist() == [0, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    "problem",
    [
        [[3, 4]],
        TSP([[3, 4]]),
        TSP(matrix=[[0.0]]),
        OpenPath([[3, 4]]),
        [("home", 3, 4)],
        TSP([[3, 4]], names=["a"]),
    ],
    ids=repr,
)
def test_one_city_has_an_answer(problem):
    tour, length = solve(problem, 1)
    assert (tour.tolist(), length) == ([0], 0)


@pytest.mark.parametrize("algorithm", [GPUMMAS, GPUACS, GPU2OptIHC, GPUFACO])
def test_one_city_is_refused_by_colonies(algorithm):
    with pytest.raises(ValueError, match=r"need at least 2 cities, got 1: use GPUMemetic\(\)"):
        solve(TSP([[3, 4]]), 1, algorithm=algorithm(backend="cpu"))
