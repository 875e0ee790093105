"""GPUMMAS and GPUMemetic: the class alone decides which algorithm runs, and every argument has an effect."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.population import Population
from pymoo.optimize import minimize
from pymoo.problems.single.traveling_salesman import TravelingSalesman

from pymoo_gpuaco import (
    GPUMMAS,
    ColonyTermination,
    GPUMemetic,
    solve,
)
from pymoo_gpuaco.memetic.exact import ExactSearch
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.memetic.translated import TranslatedSearch
from tests.algorithm_cases import Tour, assert_same, run_to_end, snapshot
from tests.engine_cases import BACKENDS, asymmetric, cloud
from tests.memetic_cases import short

__all__ = ["short"]  # a fixture

on_both = pytest.mark.parametrize("backend", BACKENDS)


def engine_of(problem, **arguments) -> type:
    algorithm = GPUMemetic(backend="cpu", **arguments).setup(problem, termination=("n_gen", 1), seed=1)
    return type(algorithm.engine)


def test_the_kind_of_problem_decides_the_engine():
    assert engine_of(cloud(4)) is ExactSearch
    assert engine_of(cloud(12)) is ExactSearch
    assert engine_of(cloud(13)) is MemeticSearch
    assert engine_of(asymmetric(12)) is ExactSearch
    assert engine_of(asymmetric(13)) is TranslatedSearch
    assert engine_of(asymmetric(12), candidates="alpha") is ExactSearch  # which reads no candidates
    assert engine_of(TravelingSalesman(np.random.default_rng(0).random((20, 2)))) is MemeticSearch


@pytest.mark.parametrize("value", ["full", "focused", "auto"])
def test_construction_is_refused_and_the_other_class_named(value):
    with pytest.raises(TypeError, match=r"no argument 'construction'.*GPUMemetic"):
        GPUMMAS(construction=value)
    with pytest.raises(TypeError, match=r"no argument 'construction'.*GPUMemetic"):
        minimize(cloud(20), GPUMMAS(), ("n_gen", 1), construction=value)


@pytest.mark.parametrize(
    "arguments",
    [
        {"population_size": 5},
        {"n_offspring": 2},
        {"candidate_list_size": 4},
        {"candidates": "nearest"},
        {"initial_temperature": 9.0},
        {"annealing_share": 0.3},
    ],
    ids=str,
)
def test_every_argument_changes_the_search(arguments, monkeypatch):
    """On a map on which six generations do not end at the optimum."""
    monkeypatch.undo()  # generations as long as a user's
    problem, usual = cloud(500, 3), {"population_size": 9 if "n_offspring" in arguments else 2}
    one, two = (
        minimize(problem, GPUMemetic(backend="cpu", **{**usual, **given}), ("n_gen", 6), seed=1).algorithm
        for given in ({}, arguments)
    )
    assert (one.evaluator.n_eval, one.engine.lengths.tolist()) != (
        two.evaluator.n_eval,
        two.engine.lengths.tolist(),
    )


@pytest.mark.filterwarnings("ignore:the problem's objective")
def test_a_custom_objective_names_the_colony():
    problem = Tour(cloud(20).D, toll=1000.0)
    with pytest.raises(ValueError, match=r"objective of Tour is not the tour length.*GPUMMAS\(\)"):
        minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 1), seed=1)
    assert isinstance(solve(problem, seconds=0.5), tuple)


def test_stagnation_waits_for_a_whole_cycle_of_annealing():
    problem = cloud(30, 5)
    termination = ColonyTermination(stagnation=1, n_max_gen=None, seconds=None, stagnation_tours=1)
    algorithm = minimize(problem, GPUMemetic(backend="cpu"), termination, seed=1).algorithm
    assert algorithm.termination.reason.startswith("stagnation")
    schedule = algorithm.engine._schedule
    assert schedule.finished or schedule.cycle >= schedule.improved + 2


@pytest.mark.parametrize(
    ("population_size", "crossover"),
    [(3, "3 tours, partition crossover"), (8, "8 tours, edge assembly crossover")],
)
def test_the_header_says_how_tours_are_recombined(population_size, crossover, capsys):
    algorithm = GPUMemetic(population_size=population_size, backend="cpu")
    for _ in range(2):  # the first run may say that it compiles
        capsys.readouterr()
        minimize(cloud(30), algorithm, ("n_gen", 1), seed=1, verbose=True)
    assert capsys.readouterr().out.startswith(f"GPUMemetic: {crossover}\n")


def started(problem, backend, generations=2, **arguments):
    algorithm = GPUMemetic(population_size=4, backend=backend, **arguments)
    algorithm.setup(problem, termination=("n_gen", 5), seed=3)
    for _ in range(generations):
        algorithm.next()
    return algorithm


@on_both
class TestRuns:
    def test_all_tours_count(self, backend):
        problem, count = cloud(100, 1), 0
        algorithm = started(problem, backend, 0)
        for _ in range(3):
            algorithm.next()
            count += algorithm.engine.n_built
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
        res = minimize(problem, GPUMemetic(backend=backend), ("time", 0.5), seed=1)
        assert problem.tour_length(res.X) == res.F[0]
        assert res.algorithm.n_gen > 1

    def test_a_told_tour_is_merged_into_the_best(self, backend):
        problem = cloud(100, 4)
        good = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 20), seed=1)
        algorithm = started(problem, backend, 1)
        infills = Population.merge(algorithm.ask(), Population.new("X", good.X[None]))
        Evaluator().eval(problem, infills)
        algorithm.tell(infills=infills)
        assert algorithm.opt.get("F").min() <= good.F[0]
        assert problem.tour_length(algorithm.engine.export_state()["best"][0]) <= good.F[0]
        algorithm.next()
        assert algorithm.pop.get("F").min() >= algorithm.opt.get("F").min()
