"""Interrupted, saved and resumed runs equal uninterrupted ones, here and in another process."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import dill
import numpy as np
import pytest
from pymoo.optimize import minimize
from pymoo.termination.max_gen import MaximumGenerationTermination

from pymoo_gpuaco import GPUAS, GPUMMAS, ColonyTermination, GPU2OptIHC
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
@pytest.mark.parametrize("library", [pickle, dill], ids=["pickle", "dill"])
@pytest.mark.parametrize("cut", [0, 1, CUT])
def test_saved_and_loaded_run_goes_on_as_if_nothing_had_happened(cls, library, cut):
    loaded = library.loads(library.dumps(started(cls, cut)))
    assert loaded.n_gen == (cut + 1 if cut else None)
    assert_same(snapshot(run_to_end(loaded)), uninterrupted(cls))
    assert loaded._engine_state is None  # not kept beside the engine that has taken it in


@every_algorithm
def test_saved_twice_in_a_row_without_running(cls):
    once = pickle.loads(pickle.dumps(started(cls)))
    twice = pickle.loads(pickle.dumps(once))  # its engine has never been built
    assert_same(snapshot(run_to_end(twice)), uninterrupted(cls))


SCRIPT = """
import pickle, sys
import pytest
from tests.algorithm_cases import run_to_end, shorten_climbs, snapshot
shorten_climbs(pytest.MonkeyPatch())
runs = pickle.load(open(sys.argv[1], "rb"))
states = {name: snapshot(run_to_end(run)) for name, run in runs.items()}
pickle.dump(states, open(sys.argv[1], "wb"))
"""


def test_another_process_goes_on_as_if_nothing_had_happened(tmp_path):
    from pymoo_gpuaco import ALL_ALGORITHMS

    saved = tmp_path / "runs.pickle"
    saved.write_bytes(pickle.dumps({name: started(cls) for name, cls in ALL_ALGORITHMS.items()}))
    root = Path(__file__).parents[1]
    subprocess.run([sys.executable, "-c", SCRIPT, str(saved)], check=True, cwd=root)
    states = pickle.loads(saved.read_bytes())
    for name, cls in ALL_ALGORITHMS.items():
        assert_same(states[name], uninterrupted(cls))


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


@every_builder
def test_colony_termination_after_a_resume_counts_anew(cls):
    algorithm = started(cls)
    algorithm.termination = ColonyTermination(stagnation=5, n_max_gen=100)
    last = []
    while algorithm.has_next():
        algorithm.next()
        last.append(algorithm.opt[0].F[0])
    # the generations since the last shorter tour, or since the resume
    assert len(last) >= 6
    assert len(set(last[-6:])) == 1
    assert len(last) == 6 or last[-7] > last[-6]


@every_algorithm
def test_dump_in_a_callback_makes_one_generation_more_as_in_pymoo(cls):
    kept = []

    def save(algorithm):
        if algorithm.n_gen == CUT:
            algorithm.callback = _nothing
            kept.append(pickle.dumps(algorithm))
            algorithm.callback = save

    algorithm = small(cls).setup(cities(16), termination=("n_gen", ALL_GENERATIONS), seed=5, callback=save)
    run_to_end(algorithm)
    loaded = pickle.loads(kept[0])
    assert loaded.n_gen == CUT  # not yet counted on
    loaded.n_gen += 1  # with which it is the uninterrupted run
    assert_same(snapshot(run_to_end(loaded)), snapshot(algorithm))


def _nothing(algorithm):
    pass


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


@pytest.mark.parametrize("variant", ["sync", "relaxed", "selective"])
@pytest.mark.parametrize("period", [1, 3])
def test_every_variant_of_acs_resumes(variant, period):
    from pymoo_gpuaco import GPUACS

    arguments = {"variant": variant, "local_update_period": period, "trails_per_node": 3}
    loaded = pickle.loads(pickle.dumps(started(GPUACS, **arguments)))
    assert_same(snapshot(run_to_end(loaded)), uninterrupted(GPUACS, **arguments))


def test_pickle_holds_no_engine_and_no_neighbour_lists():
    state = started(GPU2OptIHC).__getstate__()
    assert state["_engine"] is None
    assert state["_instance"] is None
    assert set(state["_engine_state"]) == set(started(GPU2OptIHC).engine.export_state())
    assert all(isinstance(array, np.ndarray) for array in state["_engine_state"].values())


@every_algorithm
def test_result_and_pop_survive_a_pickle(cls):
    res = minimize(cities(16), small(cls), ("n_gen", 2), seed=5, save_history=True)
    again = pickle.loads(pickle.dumps(res))
    assert np.array_equal(again.X, res.X)
    assert len(again.history) == 2
    assert again.pop[0].F[0] == res.pop[0].F[0]
