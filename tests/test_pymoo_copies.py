"""Promises of pymoo about every algorithm: history, copies, used objects, seeds, threads, tuning."""

import multiprocessing
import threading

import numpy as np
import pytest
from pymoo.core.evaluator import Evaluator
from pymoo.core.parameters import flatten, get_params, hierarchical, set_params
from pymoo.core.variable import Integer, Real
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUFACO, GPU2OptIHC, load_tsp
from tests.algorithm_cases import (
    BACKEND,
    assert_same,
    cities,
    every_algorithm,
    every_base,
    every_builder,
    every_colony,
    run_to_end,
    small,
    snapshot,
)

pytestmark = pytest.mark.usefixtures("short_climbs")


# ---- history and copies ---------------------------------------------------------------------------------------------


@every_builder
def test_history_holds_the_state_of_each_generation(cls):
    problem = cities(14)
    plain = minimize(problem, small(cls), ("n_gen", 4), seed=1)
    res = minimize(problem, small(cls), ("n_gen", 4), seed=1, save_history=True)
    assert_same(snapshot(plain.algorithm), snapshot(res.algorithm))
    assert [entry.n_gen for entry in res.history] == [1, 2, 3, 4]
    for generation, entry in enumerate(res.history, start=1):
        short = minimize(problem, small(cls), ("n_gen", generation), seed=1).algorithm
        short.n_gen -= 1  # pymoo copies before it counts on
        assert_same(snapshot(entry), snapshot(short))


# ---- a used object --------------------------------------------------------------------------------------------------


@every_base
def test_setup_of_a_used_object_starts_again(cls):
    algorithm = small(cls).setup(cities(9, seed=8), termination=("n_gen", 3), seed=4)
    run_to_end(algorithm)
    fresh = minimize(cities(14), small(cls), ("n_gen", 5), seed=1).algorithm
    run_to_end(algorithm.setup(cities(14), termination=("n_gen", 5), seed=1))
    assert_same(snapshot(algorithm), snapshot(fresh))
    assert algorithm.result().X.shape == (14,)


@every_base
def test_setup_again_keeps_what_it_was_given_before(cls):
    algorithm = small(cls).setup(cities(14), termination=("n_gen", 3), seed=4)
    first = snapshot(run_to_end(algorithm))
    assert_same(first, snapshot(run_to_end(algorithm.setup(cities(14)))))


def test_setup_again_leaves_the_count_of_a_given_evaluator():
    evaluator = Evaluator()
    evaluator.n_eval = 100
    algorithm = small(GPU2OptIHC)
    for _ in range(2):
        algorithm.setup(cities(9), termination=("n_gen", 1), seed=1, evaluator=evaluator)
        assert algorithm.evaluator.n_eval == 100


@every_base
def test_minimize_with_a_finished_object_gives_its_result_again(cls):
    problem = cities(9)
    algorithm = small(cls).setup(problem, termination=("n_gen", 3), seed=4)
    run_to_end(algorithm)
    res = minimize(problem, algorithm, copy_algorithm=False)
    assert res.algorithm is algorithm
    assert np.array_equal(res.X, algorithm.opt[0].X)
    assert np.array_equal(minimize(problem, algorithm).X, res.X)  # and so does its copy


@every_base
def test_setup_that_raises_leaves_the_object_as_it_was(cls):
    problem = cities(14)
    algorithm = small(cls)
    before = dict(vars(algorithm))
    for wrong in ({"backend": "tpu"}, {"seed": -1}, {"sampling": 5}):
        with pytest.raises((TypeError, ValueError)):
            algorithm.setup(problem, **wrong)
        assert vars(algorithm) == before
    algorithm.setup(problem, termination=("n_gen", 4), seed=1)
    algorithm.next()
    with pytest.raises(ValueError, match="backend"):
        algorithm.setup(cities(9), backend="tpu", seed=9)
    run_to_end(algorithm)  # the run that was under way
    assert_same(snapshot(algorithm), snapshot(minimize(problem, small(cls), ("n_gen", 4), seed=1).algorithm))


# ---- seeds and threads ----------------------------------------------------------------------------------------------


@every_algorithm
def test_same_seed_same_run_and_other_seeds_others(cls):
    def run(seed):
        return snapshot(minimize(cities(n), small(cls), ("n_gen", 2), seed=seed).algorithm)

    n, key = 150 if cls is GPUFACO else 30, "engine tours"  # ants that copy most of a tour are more alike

    assert_same(run(1), run(1))
    assert_same(run(1), run(np.int64(1)))
    assert_same(run(7), run(np.random.default_rng(7)))
    assert_same(run(2**40), run(2**40))
    different = {run(seed)[key].tobytes() for seed in (1, 2, 2**40, None, None)}
    assert len(different) == 5


@every_base
def test_global_random_state_of_the_user_is_not_touched(cls):
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    minimize(cities(12), small(cls, sampling=PermutationRandomSampling()), ("n_gen", 2), seed=1)
    assert np.array_equal(np.random.random(3), expected)  # noqa: NPY002


def _solve(cls):
    return minimize(load_tsp("gr17"), small(cls), ("n_gen", 3), seed=1).F[0]


@pytest.mark.skipif(BACKEND != "cpu", reason="CUDA does not survive a fork; the engine says so")
@every_algorithm
def test_forked_pool_runs_after_its_parent_did(cls):
    expected = _solve(cls)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_solve, [cls] * 3).get(timeout=300) == [expected] * 3


@every_base
def test_two_threads_run_at_the_same_time_as_they_would_alone(cls):
    alone = [snapshot(minimize(cities(40), small(cls), ("n_gen", 4), seed=s).algorithm) for s in (1, 2)]
    together, start = {}, threading.Barrier(2)

    def run(seed):
        start.wait()
        together[seed] = snapshot(minimize(cities(40), small(cls), ("n_gen", 4), seed=seed).algorithm)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert_same(alone[0], together[1])
    assert_same(alone[1], together[2])


# ---- arguments: misspelt ones, and pymoo's tuning -------------------------------------------------------------------


@every_builder
def test_misspelt_argument_raises_everywhere_and_the_known_ones_are_named(cls):
    own = "n_climbers" if cls is GPU2OptIHC else "n_ants"
    for call in (
        lambda: small(cls, n_antz=3),
        lambda: small(cls).setup(cities(9), n_antz=3),
        lambda: minimize(cities(9), small(cls), ("n_gen", 1), n_antz=3),
    ):
        with pytest.raises(TypeError, match="n_antz") as error:
            call()
        assert cls.__name__ in str(error.value)
        for known in (own, "sampling", "termination", "seed", "save_history"):
            assert known in str(error.value)


@every_builder
def test_arguments_given_to_minimize_are_checked_and_take_effect(cls):
    own = "n_climbers" if cls is GPU2OptIHC else "n_ants"
    with pytest.raises(ValueError, match=rf"{own} must be an integer in \[1, 1048576\], got -3"):
        minimize(cities(9), small(cls), ("n_gen", 1), **{own: -3})
    res = minimize(cities(9), small(cls), ("n_gen", 1), **{own: 3})
    assert getattr(res.algorithm.engine, own) == 3


@every_colony
def test_hyperparameters_are_found_set_and_used(cls):
    algorithm = cls(
        n_ants=Integer(5, bounds=(2, 20)),
        rho=Real(0.3, bounds=(0.01, 0.9)),
        beta=Real(2.0, bounds=(0.0, 5.0)),
        backend=BACKEND,
    )
    found = []
    search = threading.Thread(target=lambda: found.append(flatten(get_params(algorithm))), daemon=True)
    search.start()
    search.join(timeout=20)
    assert set(found[0]) == {"n_ants", "rho", "beta"}
    set_params(algorithm, hierarchical({"n_ants": 9, "rho": 0.5, "beta": 3.0}))
    problem = cities(12)
    tuned = minimize(problem, algorithm, ("n_gen", 3), seed=1)
    assert tuned.algorithm.evaluator.n_eval == 27
    direct = minimize(problem, cls(n_ants=9, rho=0.5, beta=3.0, backend=BACKEND), ("n_gen", 3), seed=1)
    assert_same(snapshot(tuned.algorithm), snapshot(direct.algorithm))
    set_params(algorithm, {"rho": 1.5})
    with pytest.raises(ValueError, match=r"rho must be in \(0, 1\], got 1.5"):
        minimize(problem, algorithm, ("n_gen", 1), seed=1)
