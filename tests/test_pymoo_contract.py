"""Promises of pymoo about every algorithm: results, counts, problems, runners of evaluations."""

import copy
import multiprocessing
import warnings

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.optimize import minimize
from pymoo.parallelization import StarmapParallelization
from pymoo.problems.single.traveling_salesman import TravelingSalesman
from pymoo.util.archive import SingleObjectiveArchive

from pymoo_gpuaco import GPUMMAS, TSP, GPU2OptIHC, Recorder
from pymoo_gpuaco.algorithms.tour import canonical
from tests.algorithm_cases import (
    M,
    Tour,
    cities,
    every_algorithm,
    every_base,
    every_builder,
    every_colony,
    every_directed,
    is_canonical,
    length,
    run_to_end,
    small,
)

pytestmark = pytest.mark.usefixtures("short_climbs")


# ---- what a run takes -----------------------------------------------------------------------------------------------


@every_base
@pytest.mark.parametrize(
    ("argument", "wrong", "words"),
    [
        ("display", True, "display must be a pymoo Display, got True$"),
        ("output", 3, "output must be a pymoo Output, got 3$"),
        ("callback", 3, "callback must be a pymoo Callback or a function, got 3$"),
        ("callback", Recorder, r"got <class .*Recorder'>: give an object, Recorder\(\.\.\)$"),
        ("archive", 3, "archive must be a pymoo Archive, got 3$"),
        ("archive", [], r"archive must be a pymoo Archive, got \[\]$"),
        (
            "evaluator",
            Evaluator,
            r"evaluator must be a pymoo Evaluator, got .* give an object, Evaluator\(\.\.\)$",
        ),
    ],
)
def test_arguments_of_pymoo_of_another_kind_are_refused_by_name(cls, argument, wrong, words):
    with pytest.raises(TypeError, match=words):
        small(cls, **{argument: wrong})
    algorithm = small(cls)
    with pytest.raises(TypeError, match=words):
        minimize(cities(9), algorithm, ("n_gen", 1), seed=1, **{argument: wrong})
    with pytest.raises(TypeError, match=words):
        algorithm.setup(cities(9), **{argument: wrong})
    algorithm.setup(cities(9), termination=("n_gen", 1), seed=1, **{argument: None}).run()


def test_a_termination_is_no_verbose():
    """pymoo takes both by place: ``setup(problem, verbose, progress)``."""
    with pytest.raises(
        TypeError, match=r"verbose must be True or False, got \('time', 5\): termination=\.\."
    ):
        small(GPUMMAS).setup(cities(9), ("time", 5))
    with pytest.raises(TypeError, match="progress must be True or False, got 5"):
        small(GPUMMAS).setup(cities(9), True, 5)


# ---- what a run gives back ------------------------------------------------------------------------------------------


@every_algorithm
def test_result_has_pymoo_shapes_and_the_length_of_its_tour(cls):
    problem = cities(14)
    res = minimize(problem, small(cls), ("n_gen", 4), seed=1)
    assert res.X.shape == (14,)
    assert is_canonical(res.X)
    assert res.F.shape == (1,)
    assert res.F[0] == length(problem, res.X) == problem.evaluate(res.X)[0]
    assert (res.G.shape, res.H.shape, res.CV.shape) == ((0,), (0,), (1,))
    assert res.CV[0] == 0.0
    assert len(res.opt) == len(res.pop) == 1
    assert np.array_equal(res.opt[0].X, res.X)
    assert res.pop[0].F[0] == length(problem, res.pop[0].X)
    assert res.history == []
    assert res.archive is None
    assert res.problem is problem
    assert isinstance(res.algorithm, cls)
    assert res.algorithm.n_gen == 5  # one past the last, as with every pymoo algorithm
    assert 0.0 <= res.exec_time < 600.0


@every_base
def test_before_the_first_generation_a_result_holds_no_tour_and_before_set_up_there_is_none(cls):
    algorithm = cls()
    for door in (algorithm.result, algorithm.run, algorithm.has_next):
        with pytest.raises(ValueError, match=r"there is no run yet: call setup\(problem, \.\.\)"):
            door()
    algorithm.setup(cities(9), termination=("n_gen", 1), seed=1)
    assert algorithm.result().X is None
    algorithm.run()
    assert algorithm.result().X is not None


@every_colony
def test_elites_are_the_population_shortest_first(cls):
    problem = cities(14)
    res = minimize(problem, small(cls, n_elites=3, local_search=False), ("n_gen", 3), seed=1)
    assert len(res.pop) == 3
    F = res.pop.get("F")[:, 0]
    assert np.array_equal(F, np.sort(F))
    assert [length(problem, x) for x in res.pop.get("X")] == list(F)
    assert res.algorithm.evaluator.n_eval == 3 * M
    assert len(minimize(problem, small(cls, n_elites=M + 9), ("n_gen", 1), seed=1).pop) == M


@every_builder
def test_optimum_never_gets_worse_and_is_the_best_ever_given(cls):
    # of few cities every batch of climbs finds the best tour
    problem = cities(150 if cls is GPU2OptIHC else 30)
    best, seen = [], []

    def watch(algorithm):
        best.append(float(algorithm.opt[0].F[0]))
        seen.append(float(algorithm.pop.get("F").min()))

    extra = {} if cls is GPU2OptIHC else {"local_search": False}
    minimize(problem, small(cls, **extra), ("n_gen", 25), seed=2, callback=watch)
    assert best == list(np.minimum.accumulate(seen))
    assert len(set(seen)) > 1  # generations differ, or nothing was shown


def test_canonical_form_turns_and_where_direction_is_free_mirrors():
    tours = [[3, 1, 2, 0, 4], [4, 0, 2, 1, 3]]  # one cycle in both directions
    assert canonical(tours, True).tolist() == [[0, 2, 1, 3, 4], [0, 2, 1, 3, 4]]
    assert canonical(tours, False).tolist() == [[0, 4, 3, 1, 2], [0, 2, 1, 3, 4]]


@every_builder
def test_n_eval_counts_every_tour_built(cls):
    counts = []
    algorithm = small(cls).setup(cities(14), termination=("n_gen", 4), seed=1)
    built = []
    if cls is GPU2OptIHC:
        climb = algorithm.engine.climb
        algorithm.engine.climb = lambda key: built.append(climb(key)) or built[-1]
    else:
        built = [M] * 4
    while algorithm.has_next():
        algorithm.next()
        counts.append(algorithm.evaluator.n_eval)
    assert counts == list(np.cumsum([max(1, b) for b in built]))
    assert len(counts) == 4


@every_base
def test_archive_collects_what_was_handed_out(cls):
    problem = cities(14)
    archive = SingleObjectiveArchive(max_size=5)
    algorithm = small(cls).setup(problem, termination=("n_gen", 4), seed=1, archive=archive)
    run_to_end(algorithm)
    kept = algorithm.result().archive
    assert len(archive) == 0
    assert 1 <= len(kept) <= 5
    assert set(kept.get("F")[:, 0]) == {algorithm.opt[0].F[0]}
    # another problem: nothing of the first may be left
    other = cities(9, seed=8)
    run_to_end(algorithm.setup(other))
    assert {len(x) for x in algorithm.archive.get("X")} == {9}


@every_builder
def test_custom_evaluator_sees_what_is_handed_out_and_keeps_the_count(cls):
    class Counting(Evaluator):
        handed_out = 0

        def _eval(self, problem, pop, evaluate_values_of, **kwargs):
            self.handed_out += len(pop)
            assert kwargs["algorithm"].problem is problem
            super()._eval(problem, pop, evaluate_values_of, **kwargs)

    for form in ("constructor", "minimize"):
        evaluator, called = Counting(callback=lambda pop: called.append(len(pop))), []  # noqa: B023
        inside, outside = (
            ({"evaluator": evaluator}, {}) if form == "constructor" else ({}, {"evaluator": evaluator})
        )
        res = minimize(cities(14), small(cls, **inside), ("n_gen", 3), seed=1, **outside)
        used = res.algorithm.evaluator
        assert used.handed_out == 3
        assert called == [1, 1, 1]
        assert used.n_eval >= 3 if cls is GPU2OptIHC else used.n_eval == 3 * M
        if form == "minimize":
            assert used is evaluator


# ---- problems -------------------------------------------------------------------------------------------------------


@every_algorithm
def test_pymoo_travelling_salesman_is_solved_and_left_alone(cls):
    problem = TravelingSalesman(np.random.default_rng(3).random((12, 2)))
    before = {key: copy.deepcopy(value) for key, value in vars(problem).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        res = minimize(problem, small(cls), ("n_gen", 3), seed=1)
    assert res.F[0] == pytest.approx(length(problem, res.X), rel=1e-12)
    assert vars(problem).keys() == before.keys()
    assert np.array_equal(problem.D, before["D"])


@every_builder
def test_objective_of_the_user_counts_and_its_difference_is_reported_once(cls):
    D = cities(10).D
    with pytest.warns(UserWarning, match="objective") as warned:
        res = minimize(Tour(D, toll=1000.0), small(cls), ("n_gen", 4), seed=1)
    assert len([w for w in warned if "objective" in str(w.message)]) == 1
    assert res.F[0] == length(Tour(D), res.X) + 1000.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimize(Tour(D), small(cls), ("n_gen", 2), seed=1)


@every_directed
def test_asymmetric_matrix_keeps_its_direction(cls):
    # the one-way ring 0 > 1 > .. > 8 > 0 costs 1 an edge, everything else 10
    n = 9
    D = np.full((n, n), 10.0)
    D[np.arange(n), (np.arange(n) + 1) % n] = 1.0
    res = minimize(TSP(matrix=D), small(cls), ("n_gen", 40), seed=1)
    assert res.X.tolist() == list(range(n))
    assert res.F[0] == n


def test_elementwise_runner_of_forked_processes_evaluates():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        problem = Tour(cities(9).D, elementwise_runner=StarmapParallelization(pool.starmap))
        res = minimize(problem, small(GPUMMAS, n_elites=3), ("n_gen", 2), seed=1)
    assert res.F[0] == length(problem, res.X)
