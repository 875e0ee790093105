"""GPUMMAS(construction=...): which ants build, and that a run of focused ones is a run like others."""

from __future__ import annotations

import copy
import itertools
import pickle

import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, LocalSearch
from pymoo_gpuaco.backends.cpu.colony import CpuColony
from pymoo_gpuaco.search.exact import ExactSearch
from pymoo_gpuaco.search.focused import FocusedSearch
from pymoo_gpuaco.search.translated import TranslatedSearch
from tests.algorithm_cases import Tour, assert_same, run_to_end, snapshot
from tests.engine_cases import BACKENDS, asymmetric, cloud
from tests.focused_cases import short

__all__ = ["short"]  # a fixture

on_both = pytest.mark.parametrize("backend", BACKENDS)


def built_by(problem, **arguments) -> type:
    algorithm = GPUMMAS(backend="cpu", **arguments).setup(problem, termination=("n_gen", 1), seed=1)
    return type(algorithm.engine)


class TestAuto:
    def test_what_is_found_at_once_and_what_is_searched(self):
        assert built_by(cloud(4)) is ExactSearch
        assert built_by(cloud(12)) is ExactSearch
        assert built_by(cloud(13)) is FocusedSearch
        assert built_by(asymmetric(12)) is ExactSearch
        assert built_by(asymmetric(13)) is TranslatedSearch
        assert built_by(asymmetric(12), candidates="alpha") is ExactSearch  # which looks at no candidates

    def test_a_problem_of_ones_own_is_built_whole(self):
        assert built_by(Tour(cloud(12).D)) is CpuColony

    @pytest.mark.parametrize(
        "argument",
        [
            {"n_ants": 6},
            {"candidate_list_size": 10},
            {"candidate_list_size": None},
            {"local_search": False},
            {"local_search": "2opt"},
            {"local_search": LocalSearch()},
            {"pheromone": "dense"},
            {"selection": "wrs"},
            {"tabu": "list"},
        ],
        ids=str,
    )
    def test_what_only_whole_tours_know(self, argument):
        assert built_by(cloud(12), **argument) is CpuColony

    @pytest.mark.parametrize(
        "argument",
        [
            {"alpha": 2.0},
            {"beta": 3.0},
            {"rho": 0.1},
            {"p_best": 0.1},
            {"deposit": "global_best"},
            {"restart_after": 9},
        ],
        ids=str,
    )
    def test_what_both_know(self, argument):
        assert built_by(cloud(13), **argument) is FocusedSearch

    def test_a_choice_that_is_made(self):
        assert built_by(cloud(12), construction="full") is CpuColony
        assert built_by(cloud(13), construction="focused", n_ants=3) is FocusedSearch


class TestErrors:
    def test_unknown_names(self):
        with pytest.raises(ValueError, match="construction must be one of"):
            GPUMMAS(construction="windows")


@on_both
def test_of_a_few_cities_the_best_tour_is_found(backend):
    problem = cloud(7)
    res = minimize(problem, GPUMMAS(construction="focused", backend=backend), ("n_gen", 1), seed=1)
    every = [problem.tour_length([0, *order]) for order in itertools.permutations(range(1, 7))]
    assert res.F[0] == pytest.approx(min(every), rel=1e-12)


def started(problem, backend, generations=2, **arguments):
    algorithm = GPUMMAS(construction="focused", n_ants=4, backend=backend, **arguments)
    algorithm.setup(problem, termination=("n_gen", 5), seed=3)
    for _ in range(generations):
        algorithm.next()
    return algorithm


@on_both
class TestRuns:
    def test_the_same_seed_gives_the_same_tours(self, backend):
        problem = cloud(100, 1)
        one, two = (run_to_end(started(problem, backend, 0)) for _ in range(2))
        assert_same(snapshot(one), snapshot(two))
        res = one.result()
        assert problem.tour_length(res.X) == res.F[0]

    def test_all_windows_count(self, backend):
        problem, count = cloud(100, 1), 0
        algorithm = started(problem, backend, 0)
        for _ in range(3):
            algorithm.next()
            count += algorithm.engine.n_searched
            assert algorithm.evaluator.n_eval == count
        assert count >= 3

    @pytest.mark.parametrize(
        "way", [copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))], ids=["copy", "pickle"]
    )
    @pytest.mark.parametrize("metric", ["EUC_2D", "EXACT"])
    def test_a_copy_goes_on_as_the_original(self, metric, way, backend):
        problem = cloud(60, 1, metric)
        for generations in (0, 2):
            original = started(problem, backend, generations)
            other = way(original)
            assert_same(snapshot(run_to_end(other)), snapshot(run_to_end(original)))

    def test_a_time_limit_is_kept(self, backend):
        problem = cloud(400, 1)
        res = minimize(problem, GPUMMAS(construction="focused", backend=backend), ("time", 0.5), seed=1)
        assert problem.tour_length(res.X) == res.F[0]
        assert res.algorithm.n_gen > 1

    def test_a_told_tour_is_merged_into_the_best(self, backend):
        problem = cloud(100, 4)
        good = minimize(problem, GPUMMAS(construction="focused", backend="cpu"), ("n_gen", 20), seed=1)
        algorithm = started(problem, backend, 1)
        infills = Population.merge(algorithm.ask(), Population.new("X", good.X[None]))
        Evaluator().eval(problem, infills)
        algorithm.tell(infills=infills)
        assert algorithm.opt.get("F").min() <= good.F[0]
        assert problem.tour_length(algorithm.engine.export_state()["best"][0]) <= good.F[0]
        algorithm.next()
        assert algorithm.pop.get("F").min() >= algorithm.opt.get("F").min()

    def test_given_tours_are_where_a_run_begins(self, backend):
        problem = cloud(100, 4)
        good = minimize(problem, GPUMMAS(construction="focused", backend="cpu"), ("n_gen", 20), seed=1)
        algorithm = started(problem, backend, 2, sampling=good.X)
        assert problem.tour_length(algorithm.engine.export_state()["best"][0]) <= good.F[0]
        assert algorithm.opt.get("F").min() <= good.F[0]

    def test_ask_and_tell_is_the_same_as_next(self, backend):
        problem = cloud(60, 2)
        one, two = (started(problem, backend, 0) for _ in range(2))
        for _ in range(3):
            one.next()
            infills = two.ask()
            two.evaluator.eval(problem, infills)
            two.tell(infills=infills)
        assert_same(snapshot(one), snapshot(two))

    def test_an_objective_that_is_not_the_length_decides(self, backend):
        problem = cloud(30, 2)
        toll = Tour(problem.D, toll=1000.0)
        with pytest.warns(UserWarning, match="objective"):
            res = minimize(
                toll, GPUMMAS(construction="focused", n_ants=4, backend=backend), ("n_gen", 3), seed=1
            )
        assert res.F[0] == problem.tour_length(res.X) + 1000.0
