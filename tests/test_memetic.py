"""GPUMMAS and GPUMemetic: the class alone decides which algorithm runs, and every argument has an effect."""

from __future__ import annotations

import numpy as np
import pytest
from pymoo.optimize import minimize
from pymoo.problems.single.traveling_salesman import TravelingSalesman

from pymoo_gpuaco import (
    ColonyTermination,
    GPUMemetic,
    solve,
)
from pymoo_gpuaco.memetic.exact import ExactSearch
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.memetic.translated import TranslatedSearch
from tests.algorithm_cases import Tour
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
    with pytest.raises(ValueError, match=r"objective of Tour is not the tour length.*GPUMMAS, GPUACS"):
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
