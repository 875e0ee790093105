"""Islands as a pymoo algorithm, on a cluster of two processes."""

import asyncio
import copy
import json
import logging
import subprocess
import sys

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import (
    GPU2PPLS,
    TSP,
    GPU2OptIHC,
    GPUMemetic,
    Islands,
    MultiObjectiveTSP,
    OpenPath,
    checkpoint,
    load_tsp,
)
from pymoo_gpuaco.cli import main
from pymoo_gpuaco.islands import archipelago as archipelago_module
from pymoo_gpuaco.islands import cluster as cluster_module
from tests.algorithm_cases import BACKEND, Tour, cities, is_canonical, run_to_end
from tests.interrupts import wait_until
from tests.islands_cases import colony, distributed, keys_of, reproducible


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
    if termination[0] == "n_gen":
        assert rounds >= len(result.history) >= 6
    else:  # the time may end the wait of the last generation before there is a report
        assert rounds >= max(1, len(result.history) - 1)
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


def test_a_run_from_a_file_goes_on_from_the_best_tours(client, two_workers, tmp_path):
    first = reproducible(client=client).setup(cities(150), termination=("n_gen", 4), seed=3)
    first.next()
    first.next()
    checkpoint.save(first, tmp_path / "run")
    first.finalize()
    resumed = checkpoint.load(tmp_path / "run")
    assert resumed.client is None  # a file names no scheduler
    assert_equal(outcome(resumed), outcome(first))
    resumed.client = client
    with keys_of(two_workers):
        run_to_end(resumed)
    assert resumed.n_iter == 5
    assert resumed.opt[0].F[0] <= first.opt[0].F[0]
    assert [member.begun for member in resumed.engine.members] == [1, 1]


def test_copies_go_on_from_the_best_tours_and_share_the_client(client):
    algorithm = reproducible(client=client).setup(cities(40), termination=("n_gen", 3), seed=1)
    algorithm.next()
    twin, best = copy.deepcopy(algorithm), algorithm.opt[0].F[0]
    assert twin.client.client is client
    assert max(run_to_end(one).opt[0].F[0] for one in (algorithm, twin)) <= best


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
    before, make, sent = engine.values, engine._request, []
    engine._request = lambda member: sent.append(make(member)) or sent[-1]
    algorithm.next()
    algorithm.finalize()
    assert [{own.index(row.tobytes()) for row in one.migrants.tours} for one in sent] == givers
    assert [sorted(one.migrants.values.ravel()) for one in sent] == [
        sorted(before[i] for i in one) for one in givers
    ]
    taken_in = [min([before[i], *(before[j] for j in one)]) for i, one in enumerate(givers)]
    assert all(value <= least for value, least in zip(engine.values, taken_in, strict=True))


def test_each_island_knows_how_many_share_its_host(client, monkeypatch):
    starts, set_up = [], archipelago_module._set_up
    monkeypatch.setattr(
        archipelago_module, "_set_up", lambda *given: starts.append(given[-1]) or set_up(*given)
    )
    reproducible(client=client, n_islands=3).setup(cities(20), termination=("n_gen", 1), seed=1).finalize()
    assert [start.neighbours for start in starts] == [3] * 3


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
        engine._ask(member)
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


# ---- fronts


def problem_of(n=25, k=2):
    return MultiObjectiveTSP(list(np.random.default_rng(0).random((k, n, 2))))


def begun_front(n_gen=5, seed=1, n=60, **arguments):
    islands = reproducible(GPU2PPLS(backend=BACKEND), **{"exchange_every": 2, **arguments})
    return islands.setup(problem_of(n), termination=("n_gen", n_gen), seed=seed)


def assert_same_front(first, second):
    assert np.array_equal(first.result().F, second.result().F)
    assert np.array_equal(first.result().X, second.result().X)
    assert first.evaluator.n_eval == second.evaluator.n_eval


def undominated(F):
    worse = (F[None] <= F[:, None]).all(axis=2) & (F[None] < F[:, None]).any(axis=2)
    return not worse.any()


@pytest.mark.parametrize("termination", [("n_gen", 6), ("time", 1.5)], ids=lambda given: given[0])
def test_the_result_is_one_front_of_all_that_islands_report(client, termination):
    problem = problem_of(k=3)
    islands = Islands(GPU2PPLS(backend=BACKEND), client=client, exchange_every=0.1)
    result = minimize(problem, islands, termination, seed=1)
    engine = result.algorithm.engine
    assert (problem.tour_lengths(result.X) == result.F).all()
    assert undominated(result.F)
    assert (np.diff(result.F[:, 0]) >= 0).all()
    assert engine.n_islands == 2
    assert max(engine.values) > 0
    assert result.algorithm.evaluator.n_eval >= len(result.F)


def test_the_same_seed_gives_the_same_front(client):
    first, second, other = (run_to_end(begun_front(client=client, seed=seed)) for seed in (1, 1, 2))
    assert_same_front(first, second)
    assert not np.array_equal(first.result().F, other.result().F)


@pytest.mark.parametrize(("topology", "expected"), [("all", True), ("ring", True), ("none", False)])
def test_islands_are_sent_what_is_new_to_the_front_of_the_others(client, topology, expected):
    algorithm = begun_front(client=client, topology=topology)
    algorithm.next()
    algorithm.next()
    engine, sent = algorithm.engine, []
    make = engine._request
    engine._request = lambda member: sent.append(make(member)) or sent[-1]
    before = {row.tobytes() for row in engine.archive.points}
    algorithm.next()
    algorithm.finalize()
    given = [{row.tobytes() for row in order.migrants.values} for order in sent]
    assert any(given) == expected
    assert all(one <= before for one in given)
    assert not (given[0] & given[1])  # what one is sent comes from the other
    assert {order.parts for order in sent} == {2 if topology == "all" else 1}


def test_the_command_line_goes_on_with_a_front(client, two_workers, tmp_path, capsys):
    common = ["--generations", "2", "--scheduler", client.scheduler.address, "--picture", "", "--json"]
    state = str(tmp_path / "state")
    with keys_of(two_workers):
        assert main(["solve", "random:20+random:20:2", *common, "--save", state]) == 0
        printed = capsys.readouterr()
        assert main(["solve", "--resume", state, *common]) == 0
    first, second = json.loads(printed.out), json.loads(capsys.readouterr().out)
    before, after = (np.array([tour["lengths"] for tour in one["front"]]) for one in (first, second))
    assert all((after <= point).all(axis=1).any() for point in before)  # nothing is lost


# ---- access: only processes with the keys of a run


@pytest.fixture
def places(two_workers):
    """Where scheduler, workers and nannies of a run listen: (host, port) of each."""
    wait_until(lambda: len(two_workers.client.nthreads()) == 2)
    addresses = [two_workers.address]
    for address, one in two_workers.client.sync(two_workers.client.scheduler.identity)["workers"].items():
        addresses += [address, one["nanny"]]
    assert len(addresses) == 5
    return [address.partition("://")[2].rsplit(":", 1) for address in addresses]


def family(two_workers):
    """The processes of a local cluster."""
    import psutil

    own = psutil.Process(two_workers.process.pid)
    return [own, *own.children(recursive=True)]


def answers(host, port, security):
    """Return the answer to a stranger who asks to run code there, as Dask does."""

    async def ask():
        arguments = {} if security is None else security.get_connection_args("client")
        scheme = "tcp" if security is None else "tls"
        comm = await distributed.comm.connect(f"{scheme}://{host}:{port}", timeout=2, **arguments)
        await comm.write({"op": "identity", "reply": True})
        answer = await asyncio.wait_for(comm.read(), 2)
        await comm.close()
        return answer

    return asyncio.run(ask())


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_stranger_is_refused(places, has_keys):
    """Another user of this machine, without keys and with keys of their own."""
    security = distributed.Security.temporary() if has_keys else None
    for host, port in places:
        with pytest.raises((OSError, asyncio.TimeoutError)):
            answers(host, port, security)


def test_local_processes_listen_to_this_machine_alone(two_workers, places):
    import psutil

    listening = [
        connection.laddr.ip
        for process in (psutil.Process(), *family(two_workers))
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= len(places)
    assert set(listening) == {"127.0.0.1"}


def test_no_key_is_on_a_command_line_or_in_an_environment(two_workers):
    import psutil

    secret = two_workers.client.security.tls_client_key
    lines = {line for line in secret.splitlines() if "PRIVATE KEY" not in line}
    assert len(lines) > 10
    processes = family(two_workers)
    assert len(processes) >= 3
    for process in (psutil.Process(), *processes):
        visible = " ".join([*process.cmdline(), *process.environ().values()])
        assert not any(line in visible for line in lines)


def test_no_key_is_in_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    algorithm = Islands(colony(), 1).setup(load_tsp("gr17"), termination=("n_gen", 1), seed=1)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in files)
    algorithm.finalize()


# ---- what is started


@pytest.mark.parametrize(
    ("cores", "gpus", "wanted", "backend", "expected"),
    [
        (1, 0, None, "auto", (1, 1, 0)),
        (2, 0, None, "auto", (2, 2, 0)),
        (16, 0, None, "cpu", (4, 4, 0)),
        (16, 4, None, "auto", (4, 4, 4)),
        (16, 4, None, "cpu", (4, 4, 0)),
        (16, 4, 2, "auto", (2, 2, 4)),
        (16, 4, 6, "cuda", (6, 4, 4)),  # islands share GPUs
        (16, 0, 6, "auto", (6, 6, 0)),
    ],
)
def test_islands_workers_and_gpus_of_a_machine(monkeypatch, cores, gpus, wanted, backend, expected):
    monkeypatch.setattr(cluster_module, "thread_count", lambda: cores)
    monkeypatch.setattr(cluster_module, "why_no_cuda", lambda: None if gpus else "there is none")
    monkeypatch.setattr(cluster_module, "cuda_devices", lambda: ["a GPU"] * gpus)
    assert cluster_module.layout(wanted, backend) == expected


def test_every_local_worker_has_its_own_gpu(client):
    names = client.run(lambda dask_worker: dask_worker.name)
    assert {int(name) % 2 for name in names.values()} == {0, 1}
