"""One line for one tour, one for several seeds, and paths that do not come back."""

import numpy as np
import pytest
from pymoo.problems.single.traveling_salesman import create_random_tsp_problem

from pymoo_gpuaco import GPUACS, TSP, OpenPath, load_tsp, solve, summary
from tests.algorithm_cases import cities

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


def test_the_time_ends_a_search_and_the_seed_repeats_it():
    first = solve(cities(40), seconds=0.3, algorithm=GPUACS(2))
    assert sorted(first.tour) == list(range(40))
    one = solve(cities(40), target=first.length, seed=1)
    two = solve(cities(40), target=first.length, seed=1)
    np.testing.assert_array_equal(one.tour, two.tour)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((np.ones((3, 3)),), ValueError, "three cities in space or a matrix"),
        ((np.ones(4),), ValueError, "coords must have shape"),
        ((SQUARE, -1.0), ValueError, "seconds must be in"),
        (("pcb424",), ValueError, "pcb442"),
    ],
)
def test_what_cannot_be_solved_is_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        solve(*arguments)
    with pytest.raises(TypeError, match="algorithm must be one of this package's"):
        solve(SQUARE, algorithm="GPUMMAS")


def test_a_summary_has_a_line_for_each_seed():
    found = summary(load_tsp("gr17"), GPUACS(2), ("n_gen", 3), seeds=[4, 7])
    assert found.seeds.tolist() == [4, 7]
    assert found.generations.tolist() == [3, 3]
    assert found.tours.tolist() == [6, 6]
    np.testing.assert_allclose(found.gaps, 100 * (found.lengths / 2085 - 1))
    assert found.best.F[0] == found.lengths.min()
    columns = found.as_dict()
    assert {len(column) for column in columns.values()} == {2}
    lines = str(found).splitlines()
    assert len(lines) == 1 + 2 + 3
    assert lines[4].split() == ["mean", f"{found.lengths.mean():.10g}", f"{found.gaps.mean():.3f}"]


def test_a_summary_without_a_best_known_length_has_no_gaps():
    found = summary(cities(9), GPUACS(2), ("n_gen", 1), seeds=1)
    assert np.isnan(found.gaps).all()
    assert str(found).splitlines()[1].split()[2] == "-"


@pytest.mark.parametrize(
    ("seeds", "words"), [(0, "seeds must be"), ([], "at least one"), ([-1], "seeds must be")]
)
def test_seeds_that_are_none_are_refused(seeds, words):
    with pytest.raises(ValueError, match=words):
        summary(cities(9), seeds=seeds)


LINE = np.array([[0, 0], [10, 0], [1, 0], [7, 0], [4, 0]])  # five places on a line: 0, 2, 4, 3, 1 in order


def test_an_open_path_from_a_given_start():
    problem = OpenPath(TSP(LINE), start=0)
    tour, length = solve(problem, target=10)
    assert length == 10  # from one end of the line to the other, once
    assert problem.path(tour).tolist() == [0, 2, 4, 3, 1]
    assert problem.positions.tolist() == LINE.tolist()
    # from the place at 4: to the nearer end at 0, and then over all of it to 10
    assert solve(OpenPath(TSP(LINE).D, start=4), target=14).length == 4 + 10


def test_an_open_path_with_free_ends_keeps_symmetry():
    problem = OpenPath(TSP(LINE))
    assert problem.symmetric
    assert problem.n_cities == 6
    tour, length = solve(problem, target=10)
    path = problem.path(tour)
    assert length == 10
    assert path.tolist() in ([0, 2, 4, 3, 1], [1, 3, 4, 2, 0])


@pytest.mark.parametrize("start", [None, 2])
def test_a_tours_length_is_its_paths(start):
    problem = OpenPath(cities(9), start)
    rng = np.random.default_rng(3)
    for _ in range(20):
        tour = rng.permutation(problem.n_cities)
        path = problem.path(tour)
        assert start is None or path[0] == start
        legs = cities(9).D[path[:-1], path[1:]]
        assert sorted(path) == list(range(9))
        assert problem.tour_length(tour) == legs.sum()


def test_a_start_that_is_no_city_is_refused():
    with pytest.raises(ValueError, match=r"start must be an integer in \[0, 4\], got 5"):
        OpenPath(TSP(LINE), start=5)
    with pytest.raises(ValueError, match="tour must have 6 cities"):
        OpenPath(TSP(LINE)).path([0, 1, 2])
