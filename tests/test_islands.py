"""Islands as a pymoo algorithm, on a cluster of two processes."""

import copy
import logging
import subprocess
import sys

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, TSP, GPU2OptIHC, GPUMemetic, Islands, OpenPath, checkpoint
from pymoo_gpuaco.cli import main
from tests.algorithm_cases import BACKEND, Tour, cities, is_canonical, run_to_end
from tests.interrupts import wait_until
from tests.islands_cases import colony, keys_of, reproducible


def outcome(algorithm):
    """Everything by which two runs agree."""
    state = algorithm.engine.export_state()
    return {
        "X": algorithm.opt.get("X"),
        "F": algorithm.opt.get("F"),
        "n_eval": np.array(algorithm.evaluator.n_eval),
        "n_iter": np.array(algorithm.n_iter),
        **{name: state[name] for name in ("tours", "values", "counts")},
    }


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name]), name


@pytest.mark.parametrize("termination", [("n_gen", 6), ("time", 1.0)], ids=lambda given: given[0])
def test_reports_are_taken_as_they_come(client, termination):
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
    assert rounds >= len(result.history) >= (6 if termination[0] == "n_gen" else 1)
    assert algorithm.evaluator.n_eval >= (4 * rounds if termination[0] == "n_gen" else rounds)


def test_the_same_seed_gives_the_same_tours_in_the_reproducible_mode(client):
    problem = cities(60)
    runs = [
        minimize(
            problem, reproducible(client=client), ("n_gen", 4), seed=seed, copy_algorithm=False
        ).algorithm
        for seed in (1, 1, 2)
    ]
    assert_equal(outcome(runs[0]), outcome(runs[1]))
    assert not np.array_equal(outcome(runs[0])["tours"], outcome(runs[2])["tours"])
    assert runs[0].evaluator.n_eval == 4 * 2 * 3 * 4  # rounds, islands, generations, ants


@pytest.mark.parametrize("focused", [False, True])
def test_a_run_from_a_file_goes_on_as_if_it_had_not_stopped(client, two_workers, tmp_path, focused):
    algorithm = GPUMemetic(population_size=8, backend=BACKEND) if focused else colony()
    whole = reproducible(algorithm, client=client, exchange_every=1)
    whole.setup(cities(150), termination=("n_gen", 12), seed=3)
    kept = []
    while whole.has_next():
        whole.next()
        kept.append(tmp_path / str(len(kept)))
        checkpoint.save(whole, kept[-1])
    for path in kept[1:-1:3]:  # before, during and after annealing
        resumed = checkpoint.load(path)
        assert resumed.client is None  # a file names no scheduler
        resumed.client = client
        with keys_of(two_workers):
            assert_equal(outcome(run_to_end(resumed)), outcome(whole))


def test_copies_go_on_alike_and_share_the_client(client):
    algorithm = reproducible(client=client).setup(cities(40), termination=("n_gen", 3), seed=1)
    algorithm.next()
    twin = copy.deepcopy(algorithm)
    assert twin.client.client is client
    assert_equal(outcome(run_to_end(algorithm)), outcome(run_to_end(twin)))


def test_two_runs_share_a_cluster(client):
    problem = cities(60)
    alone = [run_to_end(begun) for begun in (begin(client, problem, seed) for seed in (1, 2))]
    both = [begin(client, problem, seed) for seed in (1, 2)]
    while any(run.has_next() for run in both):
        for run in both:
            run.next()
    for one, other in zip(alone, both, strict=True):
        assert_equal(outcome(one), outcome(other))


def begin(client, problem, seed):
    return reproducible(client=client).setup(problem, termination=("n_gen", 3), seed=seed)


def test_ask_and_tell_and_a_tour_from_outside(client):
    problem = cities(40)
    algorithm = reproducible(client=client).setup(problem, termination=("n_gen", 10), seed=1)
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
    assert algorithm.engine.values == [problem.tour_length(better)] * 2  # every island has taken it in


@pytest.mark.parametrize(
    ("topology", "givers"),
    [("all", [{1, 2}, {0, 2}, {0, 1}]), ("ring", [{2}, {0}, {1}]), ("none", [set()] * 3)],
)
def test_an_island_is_sent_the_best_tours_of_its_givers(client, topology, givers):
    islands = reproducible(colony(n_ants=1), n_islands=3, client=client, exchange_every=1, topology=topology)
    algorithm = islands.setup(cities(60), termination=("n_gen", 9), seed=1)
    algorithm.next()
    engine = algorithm.engine
    own = [member.best.tobytes() for member in engine.members]
    assert len(set(own)) == 3, "three islands of one ant build three tours"
    assert [{own.index(row.tobytes()) for row in one.inbox.tours} for one in engine.members] == givers
    before, ask, sent = engine.values, engine._ask, []
    engine._ask = lambda member, order: (sent.append(order.migrants), ask(member, order))
    algorithm.next()
    algorithm.finalize()
    assert [{own.index(row.tobytes()) for row in one.tours} for one in sent] == givers
    assert [sorted(one.values.ravel()) for one in sent] == [sorted(before[i] for i in one) for one in givers]
    taken_in = [min([before[i], *(before[j] for j in one)]) for i, one in enumerate(givers)]
    assert all(value <= least for value, least in zip(engine.values, taken_in, strict=True))


def test_a_custom_objective_decides_which_tours_are_best(client):
    problem = Tour(cities(20).D, toll=7.0)
    with pytest.warns(UserWarning, match="exchange the tours that the objective calls best"):
        result = minimize(problem, reproducible(client=client), ("n_gen", 3), seed=1)
    engine = result.algorithm.engine
    assert result.F[0] == problem.evaluate(result.X[None])[0, 0] == min(engine.values)


@pytest.mark.parametrize("directed", [False, True], ids=["symmetric", "asymmetric"])
@pytest.mark.parametrize("path", [False, True], ids=["fixed edges", "a path"])
def test_islands_keep_to_constraints(client, path, directed):
    matrix = np.random.default_rng(3).integers(1, 100, (24, 24)).astype(float)
    if not directed:
        matrix = np.triu(matrix, 1) + np.triu(matrix, 1).T
    fixed = [(3, 9), (9, 4), (20, 1)]
    problem = (
        OpenPath(matrix=matrix, start=7, end=2, fixed_edges=fixed)
        if path
        else TSP(matrix=matrix, fixed_edges=fixed)
    )
    islands = reproducible(GPUMemetic(backend=BACKEND), client=client, exchange_every=1)
    result = minimize(problem, islands, ("n_gen", 3), seed=1)
    x = result.X
    following = {(int(i), int(j)) for i, j in zip(x, np.roll(x, -1), strict=True)}
    if path:
        assert (x[0], x[-1]) == (7, 2)
        following.discard((2, 7))
    for i, j in fixed:
        assert (i, j) in following or (not directed and (j, i) in following)
    assert result.G[0] == 0
    assert result.F[0] == sum(matrix[i, j] for i, j in following)
    for member in result.algorithm.engine.members:
        assert problem.violations(member.best[None])[0] == 0


def count_actors(dask_worker):
    """Count the islands of a worker; Dask fills the argument."""
    return len(dask_worker.state.actors)


def test_a_round_ends_and_the_island_is_dropped_when_the_run_ends(client):
    algorithm = Islands(colony(), client=client, exchange_every=3600)
    algorithm.setup(cities(20), termination=("time", 60), seed=1)
    engine = algorithm.engine
    for member in engine.members:
        member.order = engine._order(member)
        engine._ask(member, member.order)
    wait_until(lambda: sum(client.run(count_actors).values()) == 2)
    algorithm.finalize()
    wait_until(lambda: not any(client.run(count_actors).values()))
    assert minimize(cities(20), reproducible(client=client), ("n_gen", 1), seed=1).F[0] > 0


def test_dask_warns_of_nothing(client, recwarn, caplog):
    """With more than the 10 MiB of problem and migrants of which Dask warns in a graph."""
    problem = TSP(np.random.default_rng(0).random((1500, 2)) * 1000, "EUC_2D", name="x" * 12_000_000)
    with caplog.at_level(logging.WARNING, "distributed"):
        minimize(
            problem, reproducible(GPU2OptIHC(n_climbers=2, backend=BACKEND), client=client), ("n_gen", 1)
        )
    assert [str(one.message) for one in recwarn] == []
    assert caplog.text == ""


def test_the_command_line_takes_a_cluster_and_goes_on_with_islands(two_workers, client, tmp_path, capsys):
    address, state = client.scheduler.address, str(tmp_path / "state")
    common = ["--generations", "2", "--target", "1", "--quiet", "--picture", ""]
    whole = ["solve", "gr17", "--scheduler", address, "--islands", "3", "--algorithm", "GPUMMAS"]
    with keys_of(two_workers):
        assert main([*whole, *common, "--save", state]) == 0
    assert checkpoint.load(state).engine.n_islands == 3
    with keys_of(two_workers):
        assert main(["solve", "--resume", state, "--scheduler", address, *common]) == 0
    for wrong, words in (
        (["--islands", "2"], "--islands cannot be given with --resume"),
        (["--backend", "cpu"], "--backend cannot be given with --resume"),
    ):
        assert main(["solve", "--resume", state, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_a_scheduler_is_of_no_use_to_a_run_of_one_colony(tmp_path, capsys):
    state = str(tmp_path / "state")
    assert main(["solve", "gr17", "--generations", "1", "--quiet", "--picture", "", "--save", state]) == 0
    assert main(["solve", "--resume", state, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "--scheduler requires a saved run of islands" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"algorithm": "GPUMMAS"}, TypeError, "algorithm must be one of this package"),
        ({"algorithm": Islands(GPUMemetic())}, TypeError, "algorithm must be one of this package"),
        ({"algorithm": GPU2PPLS(seed=1)}, ValueError, "must not have seed: pass to Islands"),
        ({"algorithm": GPUMemetic(seed=1)}, ValueError, "must not have seed: pass to Islands"),
        (
            {"algorithm": GPUMemetic(termination=("n_gen", 1))},
            ValueError,
            "must not have termination: pass to Islands",
        ),
        ({"algorithm": GPUMemetic(device=1)}, ValueError, "device of algorithm must be 0, got 1"),
        ({"n_islands": 0}, ValueError, "n_islands must be an integer >= 1, got 0"),
        ({"exchange_every": 0.0}, ValueError, r"exchange_every must be in \(0, 3600\], got 0.0"),
        ({"exchange_every": 0.5, "deterministic": True}, TypeError, "exchange_every must be an integer >= 1"),
        ({"topology": "star"}, ValueError, "topology must be one of 'all', 'ring', 'none', got 'star'"),
        ({"deterministic": 1}, TypeError, "deterministic must be True or False, got 1"),
        ({"client": 7}, TypeError, "client must be a dask.distributed.Client"),
        ({"n_island": 2}, TypeError, "did you mean n_islands"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, words):
    with pytest.raises(error, match=words):
        Islands(**{"algorithm": GPUMemetic(), **arguments})


def test_without_dask_the_extra_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"dask\[distributed\].*\.\[islands\]"):
        minimize(cities(20), Islands(GPUMemetic()), ("n_gen", 1))
    assert main(["solve", "gr17", "--islands", "2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("pymoo-gpuaco: Islands require Dask")
    assert "pip install 'dask[distributed]' cryptography" in line


def test_without_cryptography_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(ImportError, match=r"require certificates.*pip install cryptography.*\.\[islands\]"):
        minimize(cities(20), Islands(GPUMemetic()), ("n_gen", 1))


def test_the_package_is_imported_without_dask():
    code = "import sys, pymoo_gpuaco as p; p.Islands(p.GPUMemetic()); print('distributed' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
