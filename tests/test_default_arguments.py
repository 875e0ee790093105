"""Promises of docs/promises.md hold for what most people type: an algorithm without an argument."""

import copy
import pickle

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import ALL_ALGORITHMS, TSP, solve
from tests.algorithm_cases import assert_same, shorten_climbs, snapshot
from tests.interrupts import is_interrupted, needs_timer

every_algorithm = pytest.mark.parametrize("cls", ALL_ALGORITHMS.values(), ids=list(ALL_ALGORITHMS))


def cities(n=60):
    """Cities whose distances are no whole numbers."""
    return TSP(np.random.default_rng(n).random((n, 2)))


def assert_exact(problem, result):
    """The tour is a permutation, and its length what the problem's own edges add up to, to the last bit."""
    assert np.array_equal(np.sort(result.X), np.arange(problem.n_var))
    assert result.F[0] == problem.tour_length(result.X)
    edges = problem.D[result.X, np.roll(result.X, -1)]
    assert result.F[0] == pytest.approx(edges.sum(), rel=1e-12)


@every_algorithm
@pytest.mark.parametrize("n", [3, 5, 12, 13, 60])
def test_a_tour_is_a_permutation_of_exactly_its_length(cls, n, monkeypatch):
    shorten_climbs(monkeypatch)
    problem = cities(n)
    assert_exact(problem, minimize(problem, cls(), ("n_gen", 3), seed=1))


@every_algorithm
def test_the_same_seed_gives_the_same_run_and_a_copy_goes_on_as_it(cls, monkeypatch):
    shorten_climbs(monkeypatch)
    one, two = (cls().setup(cities(), termination=("n_gen", 5), seed=3) for _ in range(2))
    one.run()
    for _ in range(2):
        two.next()
    others = copy.deepcopy(two), pickle.loads(pickle.dumps(two))
    for algorithm in (two, *others):
        algorithm.run()
        assert_same(snapshot(algorithm), snapshot(one))


@every_algorithm
def test_time_that_is_over_leaves_the_first_tour_and_no_more(cls):
    """Nothing of a generation is built then: of some 10 milliseconds as of the hours that it may take elsewhere."""
    problem = cities()
    result = minimize(problem, cls(), ("time", 1e-9), seed=1)
    assert (result.algorithm.n_iter - 1, result.algorithm.evaluator.n_eval) == (1, 1)
    assert_exact(problem, result)


@needs_timer
@every_algorithm
@pytest.mark.parametrize("seconds", [0.03, 0.3])
def test_ctrl_c_is_heard_and_leaves_the_best_tour_and_a_run_that_goes_on(cls, seconds):
    problem = cities(200)
    minimize(problem, cls(), ("time", 1e-9))  # compiled
    algorithm = cls().setup(problem, termination=("time", 60.0), seed=1)
    is_interrupted(seconds, algorithm.run)
    kept = algorithm.result()
    if kept.X is not None:  # it may come before the first tour
        assert_exact(problem, kept)
    algorithm.next()
    assert_exact(problem, algorithm.result())
    assert kept.X is None or algorithm.result().F[0] <= kept.F[0]


@every_algorithm
def test_a_generation_that_begins_again_after_ctrl_c_loses_no_tour(cls, monkeypatch):
    """pymoo starts again where its first generation had no end, and finds longer tours there, or none as short."""
    shorten_climbs(monkeypatch)
    problem = cities()

    def strike_once(*_, **__):
        monkeypatch.undo()
        raise KeyboardInterrupt

    algorithm = cls().setup(problem, termination=("n_gen", 3), seed=1)
    monkeypatch.setattr(problem, "_evaluate", strike_once)
    with pytest.raises(KeyboardInterrupt):
        algorithm.next()
    assert_exact(problem, algorithm.result())
    algorithm.opt.set("F", np.array([[0.5]]))  # shorter than any
    algorithm.run()
    assert algorithm.result().F[0] == 0.5


@pytest.mark.parametrize("kind", ["plane", "matrix", "two-way", "equal", "line"])
def test_solve_gives_a_tour_of_exactly_its_length(kind):
    n, rng = 40, np.random.default_rng(2)
    what = {
        "plane": rng.random((n, 2)),
        "matrix": (square := rng.random((n, n))) + square.T,
        "two-way": rng.random((n, n)),
        "equal": np.ones((n, 2)),
        "line": np.column_stack([np.arange(n), np.zeros(n)]),
    }[kind]
    tour, length = found = solve(what, seconds=0.2)
    assert np.array_equal(np.sort(tour), np.arange(n))
    assert length == found.problem.tour_length(tour)
    if kind == "line":
        assert length == 2 * (n - 1)
