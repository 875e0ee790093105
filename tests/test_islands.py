"""Islands as a pymoo algorithm, on a cluster of two processes."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, GPUACS, TSP, GPU2OptIHC, Islands, OpenPath, checkpoint
from pymoo_gpuaco import GPUMemetic as GPUMemetic
from pymoo_gpuaco.cli import main
from tests.algorithm_cases import BACKEND, Tour, cities, is_canonical, run_to_end, small
from tests.islands_cases import colony, keys_of, lock_step, wait_until


@pytest.fixture
def client(two_workers):
    return two_workers.client


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


@pytest.mark.parametrize("termination", [("n_gen", 6), ("time", 1.0)], ids=lambda told: told[0])
def test_rounds_are_taken_as_they_come(client, termination):
    problem = cities(60)
    islands = Islands(colony(), client=client, exchange_every=0.1)
    result = minimize(problem, islands, termination, seed=1, save_history=True)
    algorithm = result.algorithm
    assert algorithm.engine.n_islands == 2
    assert is_canonical(result.X)
    assert result.F[0] == problem.tour_length(result.X)
    assert np.all(np.diff([entry.opt[0].F[0] for entry in result.history]) <= 0)
    assert all(value >= result.F[0] for value in algorithm.engine.values)
    rounds = sum(member.round for member in algorithm.engine.members)
    # which ends a generation while ants are on their way, and a run without a report
    if termination[0] == "time":
        assert algorithm.evaluator.n_eval >= rounds
    else:  # 4 ants a generation, and every tour is counted
        assert rounds >= len(result.history) == 6
        assert algorithm.evaluator.n_eval % 4 == 0
        assert algorithm.evaluator.n_eval >= 4 * rounds


def test_lock_step_gives_the_same_for_the_same_seed(client):
    problem = cities(60)
    runs = [
        minimize(problem, lock_step(client=client), ("n_gen", 4), seed=seed, copy_algorithm=False).algorithm
        for seed in (1, 1, 2)
    ]
    assert_equal(outcome(runs[0]), outcome(runs[1]))
    assert not np.array_equal(outcome(runs[0])["tours"], outcome(runs[2])["tours"])
    assert runs[0].evaluator.n_eval == 4 * 2 * 3 * 4  # rounds, islands, generations, ants


class Keep:
    """Callback that keeps the run in a file after a generation."""

    def __init__(self, path, generation):
        self.path, self.generation = path, generation

    def __call__(self, algorithm):
        if algorithm.n_iter == self.generation:
            checkpoint.save(algorithm, self.path)


def test_a_run_from_a_file_goes_on_as_if_it_had_not_stopped(two_workers, client, tmp_path):
    problem, path = cities(60), tmp_path / "run"
    with pytest.warns(UserWarning, match=r"test_islands\.Keep"):
        whole = minimize(
            problem,
            lock_step(client=client),
            ("n_gen", 5),
            seed=3,
            callback=Keep(path, 2),
            copy_algorithm=False,
        )
    resumed = checkpoint.load(path, allow_pickle=True)
    assert resumed.client.address == client.scheduler.address  # a file holds no connection
    resumed.n_iter += 1  # pymoo counts a generation after the callback
    with keys_of(two_workers):
        run_to_end(resumed)
    assert_equal(outcome(resumed), outcome(whole.algorithm))


def test_copies_go_on_alike_and_share_the_client(client):
    algorithm = lock_step(client=client).setup(cities(40), termination=("n_gen", 3), seed=1)
    algorithm.next()
    twin = copy.deepcopy(algorithm)
    assert twin.client.client is client
    assert_equal(outcome(run_to_end(algorithm)), outcome(run_to_end(twin)))


def test_ask_and_tell_and_a_tour_from_outside(client):
    problem = cities(40)
    algorithm = lock_step(client=client).setup(problem, termination=("n_gen", 10), seed=1)
    better = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1).X
    for generation in range(3):
        tours = algorithm.ask()
        algorithm.evaluator.eval(problem, tours)
        if generation == 1:
            assert tours[0].F[0] > problem.tour_length(better)
            tours[0].X = better
            tours[0].F = np.array([problem.tour_length(better)])
        algorithm.tell(infills=tours)
    algorithm.finalize()
    assert algorithm.opt[0].F[0] == problem.tour_length(better)
    # every island has taken it in
    assert algorithm.engine.values == [problem.tour_length(better)] * 2


def test_islands_start_from_given_tours(client):
    problem = cities(40)
    random = np.random.default_rng(0)
    given = np.array([random.permutation(40) for _ in range(3)])
    given[1] = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1).X
    result = minimize(problem, lock_step(client=client, sampling=given), ("n_gen", 2), seed=1)
    assert result.F[0] == problem.tour_length(given[1])
    assert result.algorithm.evaluator.n_eval == 3 + 1 * 2 * 3 * 4


def orders_of_the_second_round(client, topology):
    """Objectives of the migrants in each island's order, its own best before, and that of all."""
    algorithm = Islands(
        colony(n_ants=1), 3, client=client, deterministic=True, exchange_every=1, topology=topology
    )
    algorithm.setup(cities(60), termination=("n_gen", 9), seed=1)
    algorithm.next()
    engine = algorithm.engine
    own, best = engine.values, float(algorithm.opt[0].F[0])
    send, migrants = engine._rounds.send, []

    def note(member, task):
        migrants.append([migrant["value"] for migrant in task["migrants"]])
        send(member, task)

    engine._rounds.send = note
    algorithm.next()
    algorithm.finalize()
    assert len(set(own)) == 3, "three islands of one ant build three tours"
    return migrants, own, best


def test_an_island_is_sent_the_best_of_all_merged(client):
    migrants, own, best = orders_of_the_second_round(client, "all")
    assert best <= min(own)
    assert migrants == [[] if value == best else [best] for value in own]


def test_in_a_ring_an_island_is_sent_the_tour_of_the_one_before(client):
    migrants, own, _ = orders_of_the_second_round(client, "ring")
    assert migrants == [[own[2]], [own[0]], [own[1]]]


def test_without_a_topology_nothing_is_sent(client):
    migrants, _, _ = orders_of_the_second_round(client, "none")
    assert migrants == [[], [], []]


def test_another_objective_is_exchanged_and_not_merged(client):
    problem = Tour(cities(20).D, toll=7.0)
    with pytest.warns(UserWarning, match="do not merge them"):
        result = minimize(problem, lock_step(client=client), ("n_gen", 3), seed=1)
    engine = result.algorithm.engine
    assert result.F[0] == problem.evaluate(result.X[None])[0, 0] == min(engine.values)
    assert engine.best.by_objective


def test_a_run_from_a_file_that_runs_no_code_goes_on_as_if_it_had_not_stopped(client, tmp_path):
    algorithm = lock_step(client=client).setup(cities(60), termination=("n_gen", 4), seed=3)
    for _ in range(2):
        algorithm.next()
    checkpoint.save(algorithm, tmp_path / "run")
    resumed = checkpoint.load(tmp_path / "run")
    resumed.client = client  # the address in the file is trusted only when the user gives it
    assert_equal(outcome(run_to_end(resumed)), outcome(run_to_end(algorithm)))


@pytest.mark.parametrize("cls", [GPUACS, GPU2OptIHC], ids=lambda cls: cls.__name__)
def test_islands_of_other_algorithms(client, cls):
    problem = cities(30)
    islands = Islands(small(cls), client=client, deterministic=True, exchange_every=1)
    result = minimize(problem, islands, ("n_gen", 2), seed=1)
    assert result.F[0] == problem.tour_length(result.X)


def test_islands_of_focused_ants_follow_the_whole_run(client):
    """The colonies cool with the run that they are part of: they were told its progress."""
    algorithm = lock_step(client=client, exchange_every=2)
    algorithm.colony = GPUMemetic(backend=BACKEND)
    algorithm.setup(cities(200), termination=("n_gen", 4), seed=1)
    for _ in range(3):
        algorithm.next()
    (colony_of_one, _) = (pickle.loads(member.state) for member in algorithm.engine.members)
    # after 2 of 4 rounds, and in the second generation of the third: 2/4 + 1/8
    assert colony_of_one.termination.spent == 0.625
    run_to_end(algorithm)


def test_an_asymmetric_instance(client):
    matrix = np.random.default_rng(1).random((20, 20))
    problem = TSP(matrix=matrix)
    result = minimize(problem, lock_step(client=client), ("n_gen", 2), seed=1)
    assert result.F[0] == problem.tour_length(result.X) <= min(result.algorithm.engine.values)


@pytest.mark.parametrize("directed", [False, True], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("path", [False, True], ids=["fixed edges", "a path"])
def test_islands_keep_to_demands_and_merge_only_tours_that_do(client, path, directed):
    """More than 12 cities, which are searched; windows alone know demands, so the colonies are of focused ants."""
    matrix = np.random.default_rng(3).integers(1, 100, (24, 24)).astype(float)
    if not directed:
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    fixed = [(3, 9), (9, 4), (20, 1)]
    problem = (
        OpenPath(matrix=matrix, start=7, end=2, fixed_edges=fixed)
        if path
        else TSP(matrix=matrix, fixed_edges=fixed)
    )
    islands = Islands(
        GPUMemetic(backend=BACKEND), client=client, n_islands=2, deterministic=True, exchange_every=1
    )
    result = minimize(problem, islands, ("n_gen", 3), seed=1)
    x = result.X
    following = {(int(i), int(j)) for i, j in zip(x, np.roll(x, -1), strict=True)}
    if path:
        assert (x[0], x[-1]) == (7, 2)
        following.discard((2, 7))
    for i, j in fixed:
        assert (i, j) in following or (not directed and (j, i) in following)
    assert result.G[0] == 0
    assert result.F[0] == sum(matrix[i, j] for i, j in following) <= min(result.algorithm.engine.values)
    for member in result.algorithm.engine.members:
        assert problem.violations(member.best.cities[None])[0] == 0


def test_a_used_object_starts_anew(client):
    islands, problem = lock_step(client=client), cities(40)
    first, second = (
        outcome(run_to_end(islands.setup(problem, termination=("n_gen", 2), seed=4))) for _ in range(2)
    )
    assert_equal(first, second)


def test_verbose_has_a_column_an_island(client, capsys):
    minimize(cities(20), lock_step(client=client), ("n_gen", 2), seed=1, verbose=True)
    header, *rows = [line.split("|") for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert [column.strip() for column in header[-2:]] == ["island 0", "island 1"]
    assert len(rows) == 2
    assert min(float(gap) for gap in rows[-1][-2:]) >= 0.0


def test_an_address_is_enough_where_dask_is_told_the_keys(two_workers, client):
    with keys_of(two_workers):
        result = minimize(cities(20), lock_step(client=client.scheduler.address), ("n_gen", 1), seed=1)
    assert result.algorithm.engine.n_islands == 2


def test_islands_are_dropped_after_the_run(client):
    minimize(cities(20), lock_step(client=client), ("n_gen", 1), seed=1)
    wait_until(lambda: not any(client.run(count_islands).values()))


def count_islands():
    from pymoo_gpuaco.islands import worker

    return len(worker._held)


def test_the_command_line_takes_a_cluster_and_goes_on_with_islands(two_workers, client, tmp_path, capsys):
    address, state = client.scheduler.address, str(tmp_path / "state")
    common = ["--generations", "2", "--target", "1", "--quiet", "--picture", ""]
    whole = ["solve", "gr17", "--scheduler", address, "--islands", "3", "--set", "local_search=False"]
    with keys_of(two_workers):
        assert main([*whole, *common, "--save", state]) == 0
    assert checkpoint.load(state).engine.n_islands == 3
    assert main(["solve", "--resume", state, *common]) == 2
    assert f"client is {address}, the scheduler that the file names" in capsys.readouterr().err
    with keys_of(two_workers):
        assert main(["solve", "--resume", state, "--allow-pickle", *common]) == 0
        assert main(["solve", "--resume", state, "--scheduler", address, *common]) == 0
    for wrong, words in (
        (["--islands", "2"], "--islands cannot be given with it"),
        (["--backend", "cpu"], "--backend cannot be given with it"),
    ):
        assert main(["solve", "--resume", state, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_a_scheduler_is_of_no_use_to_a_run_of_one_colony(tmp_path, capsys):
    state = str(tmp_path / "state")
    assert main(["solve", "gr17", "--generations", "1", "--quiet", "--picture", "", "--save", state]) == 0
    assert main(["solve", "--resume", state, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "--scheduler needs a run of several islands" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"colony": "GPUMMAS"}, TypeError, "colony must be an algorithm of this package"),
        ({"colony": Islands(GPUMemetic())}, TypeError, "colony must be an algorithm of this package"),
        ({"colony": GPU2PPLS(seed=1)}, ValueError, "must leave seed to Islands"),
        ({"colony": GPUMemetic(seed=1)}, ValueError, "must leave seed to Islands"),
        ({"colony": GPUMemetic(termination=("n_gen", 1))}, ValueError, "must leave termination to Islands"),
        ({"colony": GPUMemetic(device=1)}, ValueError, "must leave device at 0, got 1"),
        ({"n_islands": 0}, ValueError, "n_islands must be an integer >= 1, got 0"),
        ({"exchange_every": 0.0}, ValueError, r"exchange_every must be in \(0, 3600\], got 0.0"),
        ({"exchange_every": 0.5, "deterministic": True}, TypeError, "exchange_every must be an integer >= 1"),
        ({"topology": "star"}, ValueError, "topology must be one of 'all', 'ring', 'none', got 'star'"),
        ({"deterministic": 1}, TypeError, "deterministic must be True or False, got 1"),
        ({"client": 7}, TypeError, "client must be a dask.distributed.Client"),
        ({"n_island": 2}, TypeError, "Did you mean n_islands"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        Islands(**{"colony": GPUMemetic(), **arguments})


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"dask\[distributed\].*\.\[islands\]"):
        minimize(cities(20), Islands(GPUMemetic()), ("n_gen", 1))


def test_without_dask_the_command_line_says_so_in_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["solve", "gr17", "--islands", "2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pymoo-gpuaco: Islands need Dask")
    assert "pip install 'dask[distributed]' cryptography" in line


def test_without_cryptography_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ImportError, match=r"need certificates.*pip install cryptography.*\.\[islands\]"):
        minimize(cities(20), Islands(GPUMemetic()), ("n_gen", 1))


def test_the_package_is_imported_without_dask():
    code = "import sys, pymoo_gpuaco as p; p.Islands(p.GPUMemetic()); print('distributed' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
