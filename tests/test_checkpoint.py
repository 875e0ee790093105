"""Saved and resumed runs equal uninterrupted ones; contents of a file of a run, and names that it may contain."""

from __future__ import annotations

import copy
import pickle

import dill
import numpy as np
import pytest
from pymoo.core.callback import Callback
from pymoo.core.termination import NoTermination, TerminateIfAll, TerminateIfAny
from pymoo.core.variable import Integer, Real
from pymoo.operators.sampling.rnd import PermutationRandomSampling
from pymoo.optimize import minimize
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
    LocalSearch,
    OpenPath,
    Recorder,
    checkpoint,
    operators,
)
from tests.algorithm_cases import (
    BACKEND,
    assert_same,
    cities,
    every_algorithm,
    run_to_end,
    shorten_climbs,
    small,
    snapshot,
)
from tests.checkpoint_cases import begun, kept


def goes_on_exactly(algorithm, path):
    loaded = kept(algorithm, path)
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))
    return loaded


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
def test_terminations_come_back(make, tmp_path, clock):
    algorithm = begun(termination=make())
    loaded = kept(algorithm, tmp_path / "run")
    for _ in range(3):
        if algorithm.has_next():
            algorithm.next()
            loaded.next()
    assert_same(snapshot(loaded), snapshot(algorithm))
    assert loaded.termination.perc == algorithm.termination.perc


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
def test_problems_come_back(make, tmp_path):
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
    "a local search": {"local_search": LocalSearch(kicks=0.5)},
    "candidate trails": {"pheromone": "candidate"},
    "pymoo's output": {"output": SingleObjectiveOutput(), "verbose": True},
    "a recorder": {"callback": Recorder(branching=1)},
    "pymoo's callback": {"callback": Callback()},
    "an archive": {"archive": SingleObjectiveArchive()},
    "a history": {"save_history": True},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_come_back(arguments, tmp_path, capsys):
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


def test_other_random_numbers_are_refused(tmp_path):
    """Those of numpy whose state holds an index into a table, which numpy does not check."""
    with pytest.raises(TypeError, match="requires the bit generator PCG64 or PCG64DXSM, got MT19937"):
        checkpoint.save(begun(seed=np.random.Generator(np.random.MT19937(7))), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def test_every_kind_of_value_comes_back(tmp_path):
    shared = [1]
    values = {
        "plain": [None, True, 3, -(2**200), 0.1, -0.0, float("inf"), "ä\n\ud800", ()],
        (1, ("a", 2.5)): {1, (2, 3)},
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


OWN_MAP = OwnMap(np.random.default_rng(1).random((16, 2)))


def test_a_callback_of_the_user_is_passed_again(tmp_path):
    algorithm, path, again = begun(callback=Watch()), tmp_path / "run", Watch()
    checkpoint.save(algorithm, path)
    with pytest.raises(
        ValueError, match=r"run: the callback has the class tests\.test_checkpoint\.Watch: pass it, load\("
    ):
        checkpoint.load(path)
    loaded = checkpoint.load(path, callback=again)
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))
    assert again.run is loaded


@pytest.mark.parametrize("save_history", [False, True])
def test_a_problem_of_the_user_is_passed_again(save_history, tmp_path):
    algorithm, path = begun(OWN_MAP, save_history=save_history), tmp_path / "run"
    checkpoint.save(algorithm, path)
    with pytest.raises(
        ValueError, match=r"the problem has the class .*OwnMap: pass it, load\(path, problem=\.\.\)"
    ):
        checkpoint.load(path)
    loaded = checkpoint.load(path, problem=OWN_MAP)
    assert loaded.problem is OWN_MAP
    assert_same(snapshot(run_to_end(loaded)), snapshot(run_to_end(algorithm)))
    with pytest.raises(
        ValueError, match=r"tours of the last ask\(\) must have 9 cities a row, got shape \(1, 16\)"
    ):
        checkpoint.load(path, problem=cities(9))


@pytest.mark.parametrize("own", ["algorithm", "function", "data"])
def test_other_objects_of_the_user_are_named_and_nothing_is_written(own, tmp_path):
    cls = OwnColony if own == "algorithm" else GPUMMAS
    algorithm = cls(n_ants=6, backend=BACKEND).setup(cities(16), termination=("n_gen", 4), seed=1)
    algorithm.next()
    algorithm.data["own"] = {"algorithm": None, "function": shorten_climbs, "data": Watch()}[own]
    name = {"algorithm": "OwnColony", "function": "shorten_climbs", "data": "Watch"}[own]
    with pytest.raises(TypeError, match=rf"a checkpoint cannot hold objects of tests\..*{name}: use dill"):
        checkpoint.save(algorithm, tmp_path / "run")
    assert not list(tmp_path.iterdir())


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


def test_a_loaded_run_takes_the_short_form_of_a_termination(tmp_path):
    whole = minimize(cities(30), GPUMMAS(n_ants=3, backend="cpu"), ("n_gen", 5), seed=1)
    part = minimize(cities(30), GPUMMAS(n_ants=3, backend="cpu"), ("n_gen", 2), seed=1)
    checkpoint.save(part.algorithm, tmp_path / "a.run")
    resumed = checkpoint.load(tmp_path / "a.run")
    resumed.termination = ("n_gen", 5)
    assert np.array_equal(resumed.run().X, whole.X)
    resumed.termination = ("generations", 9)
    for go_on in (resumed.run, resumed.next, resumed.has_next):
        with pytest.raises(ValueError, match=r"termination must be one of 'n_gen', .* got 'generations'"):
            go_on()


def raises(error):
    raise error


class TestSaver:
    def test_it_saves_once_a_minute(self, tmp_path, clock):
        path, calls = tmp_path / "run", []
        saver = checkpoint.Saver(path, callback=calls.append)
        algorithm = begun(generations=1, termination=("n_gen", 20))
        algorithm.callback = saver
        algorithm.next()
        assert not path.exists()
        clock.now += 61.0
        algorithm.next()
        assert len(calls) == 2
        written = path.read_bytes()
        algorithm.next()
        assert path.read_bytes() == written
        assert algorithm.callback is saver
        loaded = checkpoint.load(path)
        assert type(loaded.callback) is Callback
        assert loaded.opt[0].F[0] >= algorithm.opt[0].F[0]

    def test_its_file_continues_exactly(self, tmp_path, clock):
        def saves_in_the_third(algorithm):
            clock.now += 100.0 if algorithm.n_iter == 3 else 0.0

        whole = run_to_end(begun(generations=1, termination=("n_gen", 6)))
        saved = begun(generations=1, termination=("n_gen", 6))
        saved.callback = checkpoint.Saver(tmp_path / "run", callback=saves_in_the_third)
        run_to_end(saved)
        loaded = checkpoint.load(tmp_path / "run")
        assert loaded.n_iter == 4
        assert_same(snapshot(run_to_end(loaded)), snapshot(whole))

    def test_the_end_of_a_run_is_not_saved(self, tmp_path, clock):
        saved = begun(generations=1, termination=("n_gen", 2))
        saved.callback = checkpoint.Saver(tmp_path / "run")
        clock.now += 100.0
        run_to_end(saved)
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize("error", [None, MemoryError])
    def test_a_state_that_cannot_be_written_ends_no_run(self, error, tmp_path, clock, caplog, monkeypatch):
        saver = checkpoint.Saver(tmp_path / "missing" / "run", seconds=1.0)
        if error is not None:
            monkeypatch.setattr(checkpoint, "records_of", lambda _: raises(error))
        algorithm = begun(generations=1)
        algorithm.callback = saver
        clock.now += 2.0
        algorithm.next()
        assert "the state could not be saved" in caplog.text
        assert algorithm.callback is saver

    @pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), "1"])
    def test_its_time_is_positive(self, seconds, tmp_path):
        with pytest.raises((TypeError, ValueError), match="seconds"):
            checkpoint.Saver(tmp_path / "run", seconds)
