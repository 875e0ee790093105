"""Problems that cannot be solved and choices that do not exist: one clear exception each, before anything runs."""

import sys

import numpy as np
import pytest
from pymoo.core.problem import Problem
from pymoo.core.result import Result
from pymoo.optimize import minimize
from pymoo.problems import get_problem

import pymoo_gpuaco
from pymoo_gpuaco import (
    TSP,
    BackendUnavailable,
    GPU2OptIHC,
    GPUMemetic,
    Solution,
    checks,
    summary,
    write_route,
    write_tour,
)
from pymoo_gpuaco.visualization import plot_tour
from tests.algorithm_cases import (
    BACKEND,
    Tour,
    cities,
    every_algorithm,
    every_builder,
    every_directed,
    shorten_climbs,
    small,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    shorten_climbs(monkeypatch)


class Permutations(Problem):
    """Any problem over permutations, right or wrong, with a distance matrix."""

    def __init__(self, n=5, D=None, **kwargs):
        super().__init__(**{"n_var": n, "n_obj": 1, "xl": 0, "xu": n - 1, "vtype": int, **kwargs})
        self.D = np.ones((n, n)) if D is None else D

    def _evaluate(self, x, out, *args, **kwargs):
        out["F"] = np.full((len(x), self.n_obj), 1.0)


PROBLEMS = {
    "two objectives": (lambda: Permutations(n_obj=2), ValueError, "2 objectives"),
    "float test problem": (lambda: get_problem("rastrigin"), TypeError, "vtype"),
    "D with NaN": (lambda: Permutations(D=np.full((5, 5), np.nan)), ValueError, "nan from city 0 to city 1"),
}


@every_algorithm
@pytest.mark.parametrize("kind", PROBLEMS)
def test_problem_that_is_no_tsp_is_refused_and_nothing_runs(cls, kind):
    make, error, words = PROBLEMS[kind]
    with pytest.raises(error, match=words):
        minimize(make(), small(cls), ("n_gen", 1), seed=1)
    algorithm = small(cls)
    with pytest.raises(error, match=words):
        algorithm.setup(make(), seed=1)
    algorithm.setup(cities(9), seed=1, termination=("n_gen", 1)).run()  # a right one works after a wrong one


SQUARE = TSP([[0, 0], [1, 0], [1, 1], [0, 1]])
FOUND = Solution(np.arange(4), 4.0, SQUARE)
NO_TOURS = {
    "a file": ("best.tour", "must be cities in order, got 'best.tour'; read_tour reads a file"),
    "a solution": (FOUND, "must be cities in order, got Solution: give its .tour"),
    "a result": (Result(), "must be cities in order, got Result: give its .X"),
}
TAKE_TOURS = {
    "write_route": lambda tour, folder: write_route(folder / "route.csv", SQUARE, tour),
    "write_tour": lambda tour, folder: write_tour(folder / "best.tour", tour),
    "tour_length": lambda tour, _: SQUARE.tour_length(tour),
}


@pytest.mark.parametrize("given", NO_TOURS)
@pytest.mark.parametrize("takes", TAKE_TOURS)
def test_the_error_for_a_result_names_its_tour(takes, given, tmp_path):
    tour, words = NO_TOURS[given]
    with pytest.raises(TypeError, match=words):
        TAKE_TOURS[takes](tour, tmp_path)
    assert not list(tmp_path.iterdir())
    TAKE_TOURS[takes](FOUND.tour, tmp_path)


def test_a_table_of_degrees_is_no_plane():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"Lat": [50.0, 51.0, 52.0], "Lon": [6.0, 7.0, 9.0]})
    with pytest.raises(
        ValueError, match=r"columns of latitude and longitude: read_cities\(table\) measures kilo"
    ):
        TSP(table)
    assert TSP(table, "EXACT").n_cities == 3
    assert TSP(table.rename(columns={"Lat": "x", "Lon": "y"})).n_cities == 3


def test_arguments_in_another_order_are_refused(tmp_path):
    with pytest.raises(
        TypeError, match="problem must be a problem such as a TSP, got ndarray: it is the first argument"
    ):
        plot_tour(FOUND.tour, SQUARE)
    with pytest.raises(TypeError, match=r"got PosixPath: write_route\(path, problem, tour\)"):
        write_route(SQUARE, tmp_path / "route.csv", FOUND.tour)
    with pytest.raises(TypeError, match="problem must be a pymoo Problem, such as a TSP, got GPUMemetic"):
        summary(GPUMemetic(), SQUARE)


def test_a_file_is_no_sampling():
    with pytest.raises(TypeError, match=r"got 'best\.tour'; read_tour reads a file"):
        minimize(SQUARE, GPUMemetic(sampling="best.tour"), ("n_gen", 1))


def test_candidates_that_vanish_beside_one_distance_are_refused_by_windows():
    matrix = np.full((40, 40), 1e-310)
    matrix[0, 1] = matrix[1, 0] = 1.0
    with pytest.raises(ValueError, match=r"must be 0 or at least 1e-302.*use a smaller unit"):
        minimize(TSP(matrix=matrix), GPUMemetic(backend="cpu"), ("n_gen", 1))


ONE_WAY = np.arange(25.0).reshape(5, 5)
ONE_WAY[0, 1] = 9.0  # without it, round trips would be as long either way


def test_asymmetric_matrix_is_refused_by_the_climbers():
    problem = TSP(matrix=ONE_WAY)
    with pytest.raises(ValueError, match=r"2-opt hill climbing.*symmetric.*colony"):
        minimize(problem, small(GPU2OptIHC), ("n_gen", 1), seed=1)


@every_directed
def test_asymmetric_matrix_is_refused_with_a_search_that_reverses(cls):
    problem = TSP(matrix=ONE_WAY)
    with pytest.raises(ValueError, match=r"local_search='2opt'.*symmetric"):
        minimize(problem, small(cls, local_search="2opt"), ("n_gen", 1), seed=1)


@every_builder
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_objective_that_is_no_number_stops_the_run_and_keeps_the_best(cls, value):
    class Broken(Tour):
        calls = 0

        def _evaluate(self, x, out, *args, **kwargs):
            super()._evaluate(x, out)
            self.calls += 1
            if self.calls == 6:  # three tours are compared with their lengths in set-up
                out["F"] = value

    problem = Broken(cities(9).D)
    algorithm = small(cls).setup(problem, termination=("n_gen", 9), seed=1)
    with pytest.raises(ValueError, match=f"must be finite, got {value}"):
        algorithm.run()
    assert algorithm.n_gen == 3
    assert algorithm.result().F[0] == Tour(problem.D).evaluate(algorithm.result().X)[0]


@every_algorithm
@pytest.mark.parametrize(
    ("seed", "error"), [(-1, ValueError), (1.5, TypeError), ("one", TypeError), (np.int64(-7), ValueError)]
)
def test_seed_that_is_none_is_refused_by_name(cls, seed, error):
    with pytest.raises(error, match="seed must be an integer >= 0"):
        minimize(cities(9), small(cls), ("n_gen", 1), seed=seed)
    with pytest.raises(error, match="seed must be an integer >= 0"):
        minimize(cities(9), small(cls, seed=seed), ("n_gen", 1))


@every_algorithm
def test_cuda_without_a_device_says_what_is_missing(cls):
    from pymoo_gpuaco.backends import why_no_cuda

    if why_no_cuda() is None:
        pytest.skip("a CUDA device is usable here")
    with pytest.raises(BackendUnavailable, match=r"(?i)driver|pycuda|nvcc") as error:
        minimize(cities(9), small(cls, backend="cuda"), ("n_gen", 1), seed=1)
    assert "cuda" in str(error.value)
    assert pymoo_gpuaco.BackendUnavailable is BackendUnavailable


@every_algorithm
@pytest.mark.parametrize("value", ["0", "-2", "many", "1.5", "4096"])
@pytest.mark.skipif(BACKEND != "cpu", reason="threads of the CPU engine")
def test_number_of_threads_is_checked(cls, value, monkeypatch):
    monkeypatch.setenv("PYMOO_GPUACO_THREADS", value)
    with pytest.raises(ValueError, match="PYMOO_GPUACO_THREADS must be an integer in"):
        minimize(cities(9), small(cls), ("n_gen", 1), seed=1)


def test_nothing_of_cuda_is_imported_with_the_package():
    import subprocess

    code = "import sys, pymoo_gpuaco; print([m for m in sys.modules if 'pycuda' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("n", [5, 1 << 14])
def test_a_row_that_is_no_permutation_is_named_however_long(n):
    rows = np.stack([np.random.default_rng(1).permutation(n) for _ in range(3)])
    assert checks.permutations("X", rows, n) is rows
    for city in (-1, n, int(rows[2, 1])):
        wrong = rows.copy()
        wrong[2, 0] = city
        with pytest.raises(ValueError, match=r"X: row 9 is not a permutation"):
            checks.permutations("X", wrong, n, first_row=7)
