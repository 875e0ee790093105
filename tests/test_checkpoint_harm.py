"""Actions that a foreign file of a run cannot cause: run code, name what is not known, ask for all memory."""

import json
import os
import pickle
import random
import sys
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
from pymoo.operators.sampling.rnd import PermutationRandomSampling

from pymoo_gpuaco import (
    GPUAS,
    GPUMMAS,
    TSP,
    Recorder,
    checkpoint,
)
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.checkpoint import objects_of, records_of
from tests.algorithm_cases import (
    cities,
    every_colony,
    small,
)
from tests.checkpoint_cases import begun, islands, kept
from tests.engine_cases import asymmetric
from tests.fuzz import SEED, TIMES

_events: list[tuple[str, object]] = []
_watched = False
_HARMFUL = ("pickle.find_class", "os.system", "subprocess.Popen", "exec", "socket.connect", "os.exec")


def _note(event, arguments):
    if _watched and event in _HARMFUL:
        _events.append((event, arguments))


sys.addaudithook(_note)


@contextmanager
def nothing_runs():
    """Fail where code is looked up or run."""
    global _watched
    _events.clear()
    _watched = True
    try:
        yield
    finally:
        _watched = False
    assert not _events


class Harm:
    """Its pickle runs code when it is read."""

    def __reduce__(self):
        return os.system, ("true",)


def read(records, root=(0,), arrays=None):
    """Read what somebody has made."""
    with nothing_runs():
        return objects_of({"needs": {}, "root": root, "objects": records}, arrays or {}, {})


def test_the_watch_sees_a_pickle_that_runs_code():
    with pytest.raises(AssertionError), nothing_runs():
        pickle.loads(pickle.dumps(Harm()))


def test_compressed_members_are_refused_as_a_few_bytes_could_ask_for_all_memory(tmp_path):
    checkpoint.save(small(GPUMMAS), tmp_path / "run")
    with (
        zipfile.ZipFile(tmp_path / "run") as file,
        zipfile.ZipFile(tmp_path / "small", "w", zipfile.ZIP_DEFLATED) as packed,
    ):
        for name in file.namelist():
            packed.writestr(name, file.read(name))
    with pytest.raises(ValueError, match="a member is compressed"):
        checkpoint.load(tmp_path / "small")


def test_a_pickle_is_not_looked_at(tmp_path):
    path = tmp_path / "run"
    np.savez(path.with_suffix(".npz"), evil=np.array([Harm()], dtype=object))
    data = path.with_suffix(".npz").read_bytes()
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("run.json", '{"format": 4, "needs": {}, "root": [0], "objects": [["array", "evil"]]}')
    with (
        nothing_runs(),
        pytest.raises(ValueError, match="Object arrays cannot be loaded when allow_pickle=False"),
    ):
        checkpoint.load(path)
    path.write_bytes(pickle.dumps(Harm()))
    with nothing_runs(), pytest.raises(ValueError, match="the file is damaged, or not written by"):
        checkpoint.load(path)


NOT_KNOWN = [
    ["new", "os.system", None, None],
    ["new", "builtins.eval", None, None],
    ["new", "pymoo_gpuaco.checkpoint.save", None, None],
    ["new", "pymoo.Population", None, None],  # of another kind
    ["new", ["pymoo_gpuaco.TSP"], None, None],
    ["known", "os.system"],
    ["known", "builtins.eval"],
    ["made", "subprocess.Popen", ["args"], ["true"]],
    ["made", "pymoo_gpuaco.TSP", [], []],
    ["new", "pymoo_gpuaco.LocalSearch", None, None],
    ["pickle", 0, "builtins.dict"],
    ["objects", "pymoo_gpuaco.TSP", [0], [], None],
    ["generator", "MT19937", {}, None],
    ["reduce", "os.system", ["true"]],
]


@pytest.mark.parametrize("record", NOT_KNOWN, ids=str)
def test_a_name_that_is_not_known_is_refused(record):
    with pytest.raises(ValueError, match=r"know|kind"):
        read([record])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coords": None}, "for 16 cities"),
        ({"coords": np.zeros((16, 2))}, "for 16 cities"),
        ({"n_cities": 10**6}, "for 1000000 cities"),
        ({"coords": np.full((16, 3), np.nan)}, "out of range"),
        ({"metric_name": "EXPLICIT"}, "matrix of this TSP must be"),
        ({"metric_name": "none"}, "matrix of this TSP must be"),
    ],
    ids=str,
)
def test_a_problem_that_compiled_code_could_not_read_is_refused(change, words):
    state = {**cities(16).__getstate__(), **change}
    with pytest.raises(ValueError, match=words):
        TSP.__new__(TSP).__setstate__(state)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (["objects", "pymoo.Population", [10**12], [], None], "the shape of an array of objects is wrong"),
        (
            ["objects", "pymoo.Population", [10**6, 10**6], [None], None],
            "the shape of an array of objects is wrong",
        ),
    ],
)
def test_a_few_bytes_do_not_ask_for_all_memory(record, words):
    with pytest.raises(ValueError, match=words):
        read([record])


@every_colony
@pytest.mark.parametrize("city", [10**6, -1])
def test_a_tour_of_cities_that_are_not_there_is_refused(cls, city, tmp_path):
    """Trails would be laid in memory that is not theirs."""
    algorithm = small(cls).setup(cities(16), termination=("n_gen", 5), seed=1)
    algorithm.next()
    assert isinstance(kept(algorithm, tmp_path / "run").engine.kind, str)
    algorithm._best_tour[3] = city
    with pytest.raises(ValueError, match="_best_tour: row 0 is not a permutation"):
        kept(algorithm, tmp_path / "run")


@every_colony
def test_a_unit_of_trails_of_zero_is_refused(cls, tmp_path):
    algorithm = small(cls).setup(cities(16), termination=("n_gen", 5), seed=1)
    algorithm.next()
    algorithm._unit = 0.0
    with pytest.raises(ValueError, match="unit of the trails must be in"):
        kept(algorithm, tmp_path / "run")


@pytest.mark.parametrize("part", ["pop", "opt", "history"])
def test_a_stored_individual_is_a_tour(part, tmp_path):
    algorithm = begun(save_history=True)
    kept(algorithm, tmp_path / "run")
    one = algorithm.history[0].pop[0] if part == "history" else getattr(algorithm, part)[0]
    one.X = np.r_[one.X[:-1], 10**6]
    with pytest.raises(ValueError, match="X of an individual: row 0 is not a permutation"):
        kept(algorithm, tmp_path / "run")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda rows, lengths: (rows * 10**6, lengths), "tours of the last ask"),
        (lambda rows, lengths: (rows, lengths * np.nan), "lengths of the last ask"),
        (lambda rows, lengths: (rows, lengths[:0]), "must have 1 lengths, got 0"),
    ],
    ids=["tours", "lengths", "number"],
)
def test_tours_that_were_asked_for_are_tours(spoil, words, tmp_path):
    """`tell` takes them for those that the engine built, without another look."""
    algorithm = begun()
    algorithm.ask()
    kept(algorithm, tmp_path / "run")
    algorithm._asked_permutations = Permutations(*spoil(*algorithm._asked_permutations))
    with pytest.raises(ValueError, match=words):
        kept(algorithm, tmp_path / "run")


def test_tours_of_zeros_do_not_deposit(tmp_path):
    """A colony has no tours before its first construction; those of `ask` would not be the engine's."""
    algorithm = small(GPUAS, backend="cpu").setup(cities(16), termination=("n_gen", 5), seed=1)
    algorithm.ask()
    algorithm.engine._tours[:] = 0
    loaded = kept(algorithm, tmp_path / "run")
    with pytest.raises(ValueError, match=r"state\['tours'\]: row 0 is not a permutation"):
        loaded.prepare()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fixed_edges": np.array([[0, 10**6]])}, "fixed_edges must be pairs of different cities in"),
        ({"fixed_edges": np.array([[0.0, 1.0]])}, "fixed_edges must be pairs of city numbers"),
        ({"fixed_edges": np.array([[0, 1], [1, 2], [2, 0]])}, "closes a cycle"),
        ({"precedence": np.array([[3, -1]])}, "precedence must be pairs of different cities"),
        ({"precedence": np.array([[3, 4], [4, 3]])}, "precedence has the cycle"),
        ({"home": 16}, r"home must be an integer in \[0, 15\]"),
        ({"start": -1}, r"start must be an integer in \[0, 15\]"),
        ({"optimal_tour": np.zeros(16, int)}, "optimal_tour: row 0"),
        ({"n_forbidden": 1}, "n_forbidden of this TSP must be 0, got 1"),
        ({"position_metric": None}, "position_metric must be one of .* got None"),
        ({"matrix": True}, "matrix of this TSP must be None, got True"),
        ({"n_var": 17}, "n_var of this TSP must be 16, got 17"),
    ],
    ids=str,
)
def test_constraints_of_a_stored_problem(change, words):
    state = {**cities(16).__getstate__(), **change}
    with pytest.raises((ValueError, TypeError), match=words):
        TSP.__new__(TSP).__setstate__(state)


@pytest.mark.parametrize("claim", ["symmetric", "integral"])
def test_distances_of_a_stored_matrix_are_what_it_says(claim):
    """A local search that believes an asymmetric matrix to be symmetric could go in circles for ever."""
    matrix = np.random.default_rng(1).random((16, 16)) * 9 if claim == "integral" else asymmetric(16).matrix
    problem = TSP(matrix=matrix)
    assert not getattr(problem, claim)
    TSP.__new__(TSP).__setstate__(problem.__getstate__())
    with pytest.raises(ValueError, match=f"{claim} of this TSP must be False"):
        TSP.__new__(TSP).__setstate__({**problem.__getstate__(), claim: True})


_OTHERS = (
    *(
        None,
        True,
        -1,
        0,
        10**6,
        2**70,
        1e300,
        float("nan"),
        "",
        "x",
        [],
        [0],
        [-1],
        [10**9],
        [[0]],
        {},
        {"a": 1},
    ),
    *("list", "tuple", "set", "new", "known", "pymoo_gpuaco.TSP", "pymoo.Individual", "numpy.sum"),
)


def mutated(description, rng):
    """Records of which some part is another."""
    description = json.loads(json.dumps(description))
    records = description["objects"]
    for _ in range(rng.randrange(1, 4)):
        part = records
        while isinstance(part, (list, dict)) and part:
            keys = list(part) if isinstance(part, dict) else range(len(part))
            key = rng.choice(list(keys))
            if not isinstance(part[key], (list, dict)) or rng.random() < 0.2:
                other = rng.choice(records)
                part[key] = rng.choice(
                    [*_OTHERS, other, rng.choice(other) if isinstance(other, list) and other else 0]
                )
                break
            part = part[key]
    return description


def test_no_file_names_a_scheduler(tmp_path):
    assert kept(islands(), tmp_path / "run").client is None
    description, arrays = records_of(islands())
    text = json.dumps(description)
    assert "8786" not in text
    for record in description["objects"]:
        if record[0] == "dict" and "client" in record[1]:
            record[2][record[1].index("client")] = "tcp://10.0.0.1:8786"
    assert "8786" in json.dumps(description)
    assert objects_of(description, arrays, {}).client is None


def test_mutated_records_are_a_run_or_one_clear_error():
    rng = random.Random(SEED)
    run = begun(callback=Recorder(), sampling=PermutationRandomSampling(), save_history=True)
    whole, arrays = records_of(run)
    refused = 0
    for turn in range(150 * TIMES):
        description, some = mutated(whole, rng), dict(arrays)
        if turn % 4 == 0:
            del some[rng.choice(sorted(some))]
        try:
            read(description["objects"], description["root"], some)
        except ValueError:
            refused += 1
    assert 15 * TIMES < refused < 150 * TIMES
