"""Islands as a pymoo algorithm, on a cluster of two processes."""

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import Islands
from pymoo_gpuaco.islands.cluster import Cluster
from tests.algorithm_cases import cities, is_canonical
from tests.islands_cases import colony, lock_step


@pytest.fixture(scope="module")
def client():
    cluster = Cluster(None, 2)
    yield cluster.client
    cluster.close()


def outcome(algorithm):
    state = algorithm.engine.export_state()
    return {
        "X": algorithm.opt.get("X"),
        "F": algorithm.opt.get("F"),
        "n_eval": np.array(algorithm.evaluator.n_eval),
        "n_iter": np.array(algorithm.n_iter),
        **{name: state[name] for name in ("tours", "values", "rounds", "best")},
    }


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name


def test_a_run_with_the_time_as_its_limit(client):
    problem = cities(60)
    islands = Islands(colony(), client=client, exchange_every=0.2)
    result = minimize(problem, islands, ("time", 1.5), seed=1, save_history=True)
    algorithm = result.algorithm
    assert algorithm.engine.n_islands == 2
    assert is_canonical(result.X)
    assert result.F[0] == problem.tour_length(result.X)
    assert np.all(np.diff([entry.opt[0].F[0] for entry in result.history]) <= 0)
    assert all(value >= result.F[0] for value in algorithm.engine.values)
    # both islands have built: 4 ants a generation, and every tour is counted
    assert algorithm.evaluator.n_eval % 4 == 0
    assert all(place.round >= 2 for place in algorithm.engine.places)


def test_lock_step_gives_the_same_for_the_same_seed(client):
    problem = cities(60)
    runs = [
        minimize(problem, lock_step(client=client), ("n_gen", 4), seed=seed, copy_algorithm=False).algorithm
        for seed in (1, 1, 2)
    ]
    assert_equal(outcome(runs[0]), outcome(runs[1]))
    assert not np.array_equal(outcome(runs[0])["tours"], outcome(runs[2])["tours"])
    assert runs[0].evaluator.n_eval == 4 * 2 * 3 * 4  # rounds, islands, generations, ants
