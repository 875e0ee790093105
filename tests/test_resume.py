"""Interrupted, saved and resumed runs equal uninterrupted ones, here and in another process."""

import copy
import pickle

import dill
import numpy as np
import pytest
from pymoo.optimize import minimize
from pymoo.termination.max_gen import MaximumGenerationTermination

from pymoo_gpuaco import GPUAS, GPUMMAS
from tests.algorithm_cases import (
    assert_same,
    cities,
    every_algorithm,
    every_builder,
    run_to_end,
    shorten_climbs,
    small,
    snapshot,
)

ALL_GENERATIONS, CUT = 7, 3


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    shorten_climbs(monkeypatch)


def started(cls, generations=CUT, **arguments):
    algorithm = small(cls, **arguments).setup(cities(16), termination=("n_gen", ALL_GENERATIONS), seed=5)
    for _ in range(generations):
        algorithm.next()
    return algorithm


def uninterrupted(cls, **arguments):
    return snapshot(
        minimize(cities(16), small(cls, **arguments), ("n_gen", ALL_GENERATIONS), seed=5).algorithm
    )


@every_algorithm
@pytest.mark.parametrize(("library", "cut"), [(pickle, 0), (dill, 1), (pickle, CUT)], ids=["0", "dill", "3"])
def test_saved_and_loaded_run_goes_on_as_if_nothing_had_happened(cls, library, cut):
    loaded = library.loads(library.dumps(started(cls, cut)))
    assert loaded.n_gen == (cut + 1 if cut else None)
    assert_same(snapshot(run_to_end(loaded)), uninterrupted(cls))
    assert loaded._engine_state is None  # not kept beside the engine that has taken it in


@every_builder
def test_documented_checkpoint_with_a_new_termination(cls, tmp_path):
    algorithm = small(cls)
    minimize(cities(16), algorithm, ("n_gen", CUT), seed=5, copy_algorithm=False)
    assert not algorithm.has_next()
    with open(tmp_path / "checkpoint", "wb") as file:
        dill.dump(algorithm, file)
    with open(tmp_path / "checkpoint", "rb") as file:
        checkpoint = dill.load(file)
    checkpoint.termination = MaximumGenerationTermination(ALL_GENERATIONS)
    res = minimize(cities(16), checkpoint, copy_algorithm=False)
    assert res.algorithm is checkpoint
    assert_same(snapshot(checkpoint), uninterrupted(cls))


@every_algorithm
def test_copies_taken_between_ask_and_tell_go_on(cls):
    problem = cities(16)
    algorithm = small(cls).setup(problem, termination=("n_gen", ALL_GENERATIONS), seed=5)
    while algorithm.has_next():
        pop = algorithm.ask()
        algorithm = copy.deepcopy(algorithm)
        algorithm.evaluator.eval(problem, pop)
        algorithm.tell(infills=pop)
    assert_same(snapshot(algorithm), uninterrupted(cls))


@every_algorithm
def test_warm_started_run_resumes_too(cls):
    tours = np.array([np.arange(16), np.random.default_rng(1).permutation(16)])
    loaded = pickle.loads(pickle.dumps(started(cls, 1, sampling=tours)))
    assert_same(snapshot(run_to_end(loaded)), uninterrupted(cls, sampling=tours))


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (GPUMMAS, {"restart_after": 1, "local_search": False}),
        (GPUMMAS, {"pheromone": "candidate", "candidate_list_size": 4}),
        (GPUAS, {"selection": "acceptance_tournament"}),
        (GPUAS, {"candidate_list_size": 5, "pheromone": "candidate"}),
    ],
)
def test_every_kind_of_trail_memory_resumes(cls, arguments):
    loaded = pickle.loads(pickle.dumps(started(cls, **arguments)))
    assert_same(snapshot(run_to_end(loaded)), uninterrupted(cls, **arguments))


@every_algorithm
def test_result_and_pop_survive_a_pickle(cls):
    res = minimize(cities(16), small(cls), ("n_gen", 2), seed=5, save_history=True)
    again = pickle.loads(pickle.dumps(res))
    assert np.array_equal(again.X, res.X)
    assert len(again.history) == 2
    assert again.pop[0].F[0] == res.pop[0].F[0]
