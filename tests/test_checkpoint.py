"""What a file of a run holds, what it may name, and what somebody else's file cannot do."""

import json
import os
import pickle
import random
import stat
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from pymoo.core.callback import Callback
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny
from pymoo.core.variable import Integer, Real
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.problems.single.traveling_salesman import create_random_tsp_problem
from pymoo.termination import get_termination
from pymoo.termination.robust import RobustTermination
from pymoo.termination.xtol import DesignSpaceTermination
from pymoo.util.archive import SingleObjectiveArchive
from pymoo.util.display.single import SingleObjectiveOutput

from pymoo_gpuaco import (
    GPUMMAS,
    TSP,
    ColonyTermination,
    Islands,
    LocalSearch,
    OpenPath,
    Recorder,
    checkpoint,
    operators,
)
from pymoo_gpuaco.checkpoint import known
from pymoo_gpuaco.checkpoint.container import Tree, packed, unpacked
from pymoo_gpuaco.checkpoint.reading import NeedsPickle, tree_read
from tests.algorithm_cases import (
    BACKEND,
    assert_same,
    cities,
    every_algorithm,
    every_colony,
    run_to_end,
    shorten_climbs,
    small,
    snapshot,
)

TIMES = int(os.environ.get("PYMOO_GPUACO_FUZZ", "1"))
SEED = int(os.environ.get("PYMOO_GPUACO_FUZZ_SEED", "1"))


def begun(problem=None, termination=("n_gen", 5), generations=2, seed=3, **arguments):
    """A run of some generations that has not ended."""
    colony = GPUMMAS(**{"n_ants": 6, "backend": BACKEND, **arguments})
    algorithm = colony.setup(problem or cities(16), termination=termination, seed=seed)
    for _ in range(generations):
        algorithm.next()
    return algorithm


def kept(algorithm, path, **how):
    """The algorithm as it comes back from a file."""
    checkpoint.save(algorithm, path)
    return checkpoint.load(path, **how)


def goes_on_exactly(algorithm, path):
    loaded = kept(algorithm, path)
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))
    return loaded


@every_algorithm
def test_a_run_with_default_arguments_needs_no_pickle(cls, tmp_path, monkeypatch):
    shorten_climbs(monkeypatch)
    algorithm = cls().setup(cities(20), seed=1)
    algorithm.next()
    checkpoint.save(algorithm, tmp_path / "run")
    assert not unpacked((tmp_path / "run").read_bytes()).pickle
    # how far a run is by its time differs from run to run
    algorithm = cls().setup(cities(20), seed=1, termination=ColonyTermination(seconds=None))
    algorithm.next()
    loaded = kept(algorithm, tmp_path / "run")
    for each in (algorithm, loaded):
        each.next()
    assert_same(snapshot(loaded), snapshot(algorithm))


TERMINATIONS = {
    "colony": lambda: ColonyTermination(stagnation=3, n_max_gen=6, seconds=None),
    "tuple": lambda: ("n_gen", 5),
    "evaluations": lambda: get_termination("n_eval", 40),
    "time": lambda: get_termination("time", 1000),
    "fmin": lambda: get_termination("fmin", 1.0),
    "default": lambda: get_termination("soo"),
    "multi": lambda: get_termination("moo"),
    "robust": lambda: RobustTermination(DesignSpaceTermination(1e-3), period=3),
    "any": lambda: TerminateIfAny(get_termination("n_gen", 5), get_termination("n_eval", 10**6)),
    "all": lambda: TerminateIfAll(get_termination("n_gen", 4), ColonyTermination(n_max_gen=5)),
    "none": NoTermination,
}


@pytest.mark.parametrize("make", TERMINATIONS.values(), ids=TERMINATIONS)
def test_terminations_need_no_pickle(make, tmp_path):
    algorithm = begun(termination=make())
    loaded = kept(algorithm, tmp_path / "run")
    for _ in range(3):
        if algorithm.has_next():
            algorithm.next()
            loaded.next()
    assert_same(snapshot(loaded), snapshot(algorithm))
    assert loaded.termination.perc == pytest.approx(algorithm.termination.perc, abs=1e-3)  # clocks go on


PROBLEMS = {
    "coordinates": lambda: TSP(np.random.default_rng(1).random((16, 2)), name="a map"),
    "symmetric matrix": lambda: TSP(matrix=cities(16).D, optimal_tour=np.arange(16)),
    "asymmetric matrix": lambda: TSP(matrix=np.random.default_rng(1).random((16, 16))),
    "open path": lambda: OpenPath(cities(16)),
    "open path with a start": lambda: OpenPath(cities(16), start=3),
    "fixed edges": lambda: TSP(cities(16).coords, fixed_edges=[(0, 1), (4, 2)]),
    "forbidden edges": lambda: TSP(matrix=cities(16).D, forbidden_edges=[(0, 1), (4, 2)]),
    "pymoo's": lambda: create_random_tsp_problem(16, seed=1),
}


@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_problems_need_no_pickle(make, tmp_path):
    loaded = goes_on_exactly(begun(make()), tmp_path / "run")
    assert repr(loaded.problem) == repr(make()) or type(make()) is type(loaded.problem)


ARGUMENTS = {
    "samplings": {"sampling": operators.NearestNeighbourSampling()},
    "ants as a sampling": {
        "sampling": operators.AntColonySampling(backend=BACKEND, local_search=LocalSearch())
    },
    "pymoo's sampling": {"sampling": PermutationRandomSampling()},
    "tours": {"sampling": np.array([np.arange(16), np.arange(16)[::-1]])},
    "a list of tours": {"sampling": [list(range(16))]},
    "variables": {"rho": Real(0.2, bounds=(0.0, 1.0)), "n_ants": Integer(5, bounds=(1, 9))},
    "numpy's numbers": {"rho": np.float32(0.5), "n_ants": np.int64(5)},
    "a local search": {"local_search": LocalSearch(kicks=0.5), "construction": "full"},
    "candidate trails": {"pheromone": "candidate", "construction": "full"},
    "pymoo's output": {"output": SingleObjectiveOutput(), "verbose": True},
    "a recorder": {"callback": Recorder(branching=1)},
    "pymoo's callback": {"callback": Callback()},
    "an archive": {"archive": SingleObjectiveArchive()},
    "a history": {"save_history": True},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_need_no_pickle(arguments, tmp_path, capsys):
    loaded = goes_on_exactly(begun(**arguments), tmp_path / "run")
    if "callback" in arguments and isinstance(arguments["callback"], Recorder):
        assert list(loaded.callback.records["generation"]) == [1, 2, 3, 4, 5]
    if "archive" in arguments:
        assert len(loaded.archive) >= 1
        assert loaded.archive.max_size == 10
    if "save_history" in arguments:
        assert [entry.n_gen for entry in loaded.history] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "seed",
    [
        np.random.default_rng(7),
        np.random.Generator(np.random.PCG64DXSM(7)),
        np.random.default_rng(np.random.SeedSequence([1, 2, 3], spawn_key=(4,))),
        None,
    ],
    ids=["generator", "another", "a sequence of seeds", "no seed"],
)
def test_random_numbers_go_on(seed, tmp_path):
    algorithm = begun(seed=seed)
    loaded = kept(algorithm, tmp_path / "run")
    assert loaded.random_state.spawn(1)[0].random() == algorithm.random_state.spawn(1)[0].random()
    assert (loaded.seed is loaded.random_state) == (algorithm.seed is algorithm.random_state)
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))


def test_other_random_numbers_need_a_pickle(tmp_path):
    """Those of numpy whose state holds a place in a table, which is read as it is told."""
    with pytest.warns(UserWarning, match="Generator as a pickle"):
        checkpoint.save(begun(seed=np.random.Generator(np.random.MT19937(7))), tmp_path / "run")
    with pytest.raises(ValueError, match="Generator"):
        checkpoint.load(tmp_path / "run")


def test_every_kind_of_value_comes_back(tmp_path):
    shared = [1]
    values = {
        "plain": [None, True, 3, -(2**200), 0.1, -0.0, float("inf"), "ä\n\ud800", b"\0\xff", ()],
        (1, ("a", 2.5)): frozenset({1, (2, 3)}),
        "set": {"F", "G"},
        "numpy": [np.float32(0.1), np.int8(3), np.bool_(True), np.float64("nan"), np.str_("x")],
        "arrays": [np.zeros((0, 3)), np.array(5), np.asfortranarray(np.eye(3)), np.array(["ab", "c"])],
        "objects": np.array([None, "x", shared], dtype=object),
        "shared": (shared, shared),
        "types": [int, float, np.sum],
    }
    values["itself"] = values
    algorithm = begun()
    algorithm.data = values
    read = kept(algorithm, tmp_path / "run").data
    assert read["itself"] is read
    assert read["shared"][0] is read["shared"][1] is read["objects"][2]
    assert str(read["plain"]) == str(values["plain"])
    for name in ((1, ("a", 2.5)), "set", "types"):
        assert read[name] == values[name]
    for name in ("numpy", "arrays"):
        for one, other in zip(read[name], values[name], strict=True):
            assert type(one) is type(other)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_what_is_shared_stays_shared(tmp_path):
    algorithm = begun()
    loaded = kept(algorithm, tmp_path / "run")
    assert loaded.display.output is loaded.output
    assert (loaded.opt[0] is loaded.pop[0]) == (algorithm.opt[0] is algorithm.pop[0])


def test_the_lower_bound_of_a_run_from_a_file_is_computed_too(tmp_path):
    algorithm = begun()
    for loaded in (kept(algorithm, tmp_path / "run"), pickle.loads(pickle.dumps(algorithm))):
        assert loaded.lower_bound == algorithm.lower_bound > 0.0


def test_a_file_is_a_zip_of_arrays_that_numpy_reads(tmp_path):
    algorithm = begun(cities(16))
    checkpoint.save(algorithm, tmp_path / "run")
    with np.load(tmp_path / "run") as arrays:
        assert any(
            np.array_equal(arrays[name], algorithm.problem.coords) for name in arrays if name != "run.json"
        )


@pytest.mark.skipif(os.name != "posix", reason="rights are POSIX's")
def test_rights_are_those_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        checkpoint.save(begun(), tmp_path / "run")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o640


# ---- objects of the user's own


class Watch(Callback):
    """A callback that holds the run that it belongs to."""

    def __init__(self):
        super().__init__()
        self.run = None

    def update(self, algorithm):
        self.run = algorithm


class OwnColony(GPUMMAS):
    """A user's own algorithm."""


class OwnMap(TSP):
    """A user's own problem."""


def test_objects_of_the_user_are_named_and_read_only_where_that_is_allowed(tmp_path):
    algorithm = begun(callback=Watch())
    path = tmp_path / "run"
    with pytest.warns(UserWarning, match=r"tests\.test_checkpoint\.Watch as a pickle: .* allow_pickle=True"):
        checkpoint.save(algorithm, path)
    with pytest.raises(ValueError, match=r"run: .*Watch as a pickle.*allow_pickle=True.*--allow-pickle"):
        checkpoint.load(path)
    loaded = checkpoint.load(path, allow_pickle=True)
    assert loaded.callback.run is loaded  # what the pickle refers to is the run itself
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))


@pytest.mark.parametrize("own", ["problem", "algorithm", "function"])
def test_a_users_problem_algorithm_or_function_is_kept_too(own, tmp_path):
    problem = OwnMap(np.random.default_rng(1).random((16, 2))) if own == "problem" else cities(16)
    cls = OwnColony if own == "algorithm" else GPUMMAS
    callback = shorten_climbs if own == "function" else None  # any function that a module has
    algorithm = cls(n_ants=6, backend=BACKEND).setup(problem, termination=("n_gen", 4), seed=1)
    algorithm.next()
    algorithm.data["own"] = callback
    name = {"problem": "OwnMap", "algorithm": "OwnColony", "function": "shorten_climbs"}[own]
    with pytest.warns(UserWarning, match=name):
        checkpoint.save(algorithm, tmp_path / "run")
    loaded = checkpoint.load(tmp_path / "run", allow_pickle=True)
    assert loaded.data["own"] is callback
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))


def test_a_class_that_is_gone_is_named(tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="Watch"):
        checkpoint.save(begun(callback=Watch()), tmp_path / "run")
    monkeypatch.delattr(sys.modules[__name__], "Watch")
    with pytest.raises(ValueError, match=r"objects of .*Watch cannot be read here \(AttributeError"):
        checkpoint.load(tmp_path / "run", allow_pickle=True)


# ---- files of somebody else, who can seal what he likes

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


def read(tree, allow_pickle=False):
    """Read what somebody has made."""
    with nothing_runs():
        return tree_read(unpacked(packed(tree)), allow_pickle)


def test_the_watch_sees_a_pickle_that_runs_code():
    with pytest.raises(AssertionError), nothing_runs():
        pickle.loads(pickle.dumps(Harm()))


def test_a_pickle_is_not_looked_at(tmp_path):
    path = tmp_path / "run"
    checkpoint.save(begun(), path)
    tree = unpacked(path.read_bytes())
    tree.pickle = pickle.dumps(Harm())
    assert isinstance(read(tree), GPUMMAS)  # nothing refers to it
    tree.records[0] = ["pickle", 0, "builtins.dict\x1b[2J"]
    path.write_bytes(packed(tree))
    with nothing_runs(), pytest.raises(ValueError, match=r"objects of builtins.dict\?\[2J as a pickle"):
        checkpoint.load(path)


NOT_KNOWN = [
    ["new", "os.system", None, None],
    ["new", "builtins.eval", None, None],
    ["new", "pymoo_gpuaco.checkpoint.save", None, None],
    ["new", "pymoo.Population", None, None],  # of another kind
    ["new", ["pymoo_gpuaco.TSP"], None, None],
    ["known", "os.system"],
    ["known", "builtins.eval"],
    ["fields", "subprocess.Popen", [["args", "true"]]],
    ["fields", "pymoo_gpuaco.TSP", []],
    ["named", "pymoo_gpuaco.GPUMMAS", []],
    ["objects", "pymoo_gpuaco.TSP", [0], [], None],
    ["generator", "MT19937", {}, None],
    ["reduce", "os.system", ["true"]],
]


@pytest.mark.parametrize("record", NOT_KNOWN, ids=str)
def test_a_name_that_is_not_known_is_refused(record):
    for allow_pickle in (False, True):
        with pytest.raises(ValueError, match=r"know|kind"):
            read(Tree([0], [record]), allow_pickle=allow_pickle)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"coords": None}, "number of cities"),
        ({"coords": np.zeros((16, 2))}, "number of cities"),
        ({"n_cities": 10**6}, "number of cities"),
        ({"coords": np.full((16, 3), np.nan)}, "out of range"),
        ({"_metric": 99}, "99 is not a valid Metric"),
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
        (["objects", "pymoo.Population", [10**12], [], None], "not as large as it says"),
        (["objects", "pymoo.Population", [10**6, 10**6], [None], None], "not as large as it says"),
        (["generator", "PCG64", {}, {"entropy": 1, "pool_size": 10**10}], "a size of its own"),
    ],
)
def test_a_few_bytes_do_not_ask_for_all_memory(record, words):
    with pytest.raises(ValueError, match=words):
        read(Tree([0], [record]))


@every_colony
@pytest.mark.parametrize("city", [10**6, -1])
def test_a_tour_of_cities_that_are_not_there_is_refused(cls, city, tmp_path):
    """Trails would be laid in memory that is not theirs."""
    algorithm = small(cls).setup(cities(16), termination=("n_gen", 5), seed=1)
    algorithm.next()
    assert isinstance(kept(algorithm, tmp_path / "run").engine.kind, str)
    algorithm._best_tour[3] = city
    loaded = kept(algorithm, tmp_path / "run")
    with pytest.raises(ValueError, match=r"_best_tour|row 0"):
        loaded.next()


def test_a_choice_out_of_range_is_refused():
    record = [
        "fields",
        "pymoo_gpuaco.LocalSearch",
        [["moves", "all"], ["kicks", None], ["kick_length", None]],
    ]
    with pytest.raises(ValueError, match=r"local_search\.moves"):
        read(Tree([0], [record]))


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


def mutated(told, rng):
    """Records of which some part is another."""
    told = json.loads(json.dumps(told))
    records = told["objects"]
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
    return told


def islands(**engine_state):
    """Islands of a cluster between two rounds, as a run that nobody has begun to make here."""
    run = Islands(GPUMMAS(n_ants=2, backend="cpu"), 2, deterministic=True, client="tcp://127.0.0.1:1")
    run.problem = cities(16)
    run._engine_state = engine_state or None
    return run


def test_the_colonies_of_islands_are_in_a_file_without_a_pickle(tmp_path):
    colony = begun()
    whole = np.frombuffer(pickle.dumps(colony), np.uint8)
    state = kept(islands(**{"key": np.array([1]), "island 0": whole}), tmp_path / "run")._engine_state
    assert state["key"] == [1]
    back = pickle.loads(state["island 0"].tobytes())
    assert_same(snapshot(run_to_end(back)), snapshot(run_to_end(colony)))


def test_an_island_that_is_a_pickle_is_refused(tmp_path, monkeypatch):
    """A worker would read it."""
    run = islands(**{"island 0": np.frombuffer(pickle.dumps(Harm()), np.uint8)})
    monkeypatch.setitem(
        known.STATE_TO_FILE, Islands, lambda state: {**state, "client": None, known._COLONIES: {}}
    )
    checkpoint.save(run, tmp_path / "run")
    with nothing_runs(), pytest.raises(ValueError, match="an island is not as it is kept in a file"):
        checkpoint.load(tmp_path / "run")


def test_a_scheduler_that_a_file_names_is_not_asked(tmp_path):
    loaded = kept(islands(), tmp_path / "run")
    assert loaded.client.address == "tcp://127.0.0.1:1"
    for run in (loaded, pickle.loads(pickle.dumps(loaded))):
        with pytest.raises(
            ValueError, match=r"client is tcp://127\.0\.0\.1:1, the scheduler that the file names"
        ):
            run.prepare()
    assert checkpoint.load(tmp_path / "run", allow_pickle=True).client.trusted


def test_mutated_records_are_a_run_or_one_clear_error(tmp_path):
    rng = random.Random(SEED)
    path = tmp_path / "run"
    checkpoint.save(begun(callback=Recorder(), sampling=PermutationRandomSampling(), save_history=True), path)
    whole = unpacked(path.read_bytes())
    refused = 0
    for turn in range(150 * TIMES):
        told = mutated({"root": whole.root, "objects": whole.records}, rng)
        tree = Tree(told["root"], told["objects"], dict(whole.arrays), pickle=pickle.dumps(Harm()))
        if turn % 4 == 0:
            del tree.arrays[rng.choice(sorted(tree.arrays))]
        try:
            read(tree)
        except (ValueError, NeedsPickle):
            refused += 1
    assert 15 * TIMES < refused < 150 * TIMES
