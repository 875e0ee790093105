"""Workers and schedulers that die, are slow or not there: no best tour is lost, and the run goes on."""

import contextlib
import itertools
import logging
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, Islands, load_tsp
from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.islands import cluster as cluster_module
from pymoo_gpuaco.islands import island, local_workers, worker
from pymoo_gpuaco.islands.cluster import Cluster
from pymoo_gpuaco.islands.connection import Connection, dask, pickled
from pymoo_gpuaco.islands.rounds import MOST_FAILURES
from pymoo_gpuaco.problems import read_tour
from tests.algorithm_cases import cities, run_to_end
from tests.islands_cases import colony, keys_of, lock_step, wait_until

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.fixture
def client(two_workers):
    """Two workers that are well: nannies have started those again that a test has killed."""
    wait_until(lambda: len(two_workers.client.nthreads()) == 2)
    return two_workers.client


def process_of(algorithm, number):
    """The process of an island's worker."""
    address = algorithm.engine.members[number].worker
    return algorithm.engine._rounds.cluster.client.run(os.getpid, workers=[address])[address]


@posix
def test_a_worker_that_is_killed_in_a_round_changes_no_tour_in_lock_step(client, caplog):
    problem = cities(200)
    rules = {"client": client, "exchange_every": 100}

    def begun():
        return lock_step(**rules).setup(problem, termination=("n_gen", 3), seed=1)

    undisturbed = run_to_end(begun())
    algorithm = begun()
    algorithm.next()
    engine, pid = algorithm.engine, process_of(algorithm, 0)
    rounds = engine._rounds
    send = rounds.send

    def send_and_kill(member, task):
        send(member, task)
        if member.number == 0 and member.round == 1:
            rounds.send = send
            os.kill(pid, signal.SIGKILL)

    rounds.send = send_and_kill
    with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
        run_to_end(algorithm)
    assert "island 0 goes on from round 1" in caplog.text
    first, second = (run.engine.export_state() for run in (undisturbed, algorithm))
    for name in ("tours", "values", "best", "rounds"):
        assert np.array_equal(first[name], second[name]), name
    assert algorithm.evaluator.n_eval == undisturbed.evaluator.n_eval


@posix
def test_an_island_whose_worker_is_killed_goes_on_elsewhere_from_its_best_tour(client, caplog):
    problem = cities(100)
    algorithm = Islands(colony(), client=client, exchange_every=0.5, topology="none")
    algorithm.setup(problem, termination=("n_gen", 1000), seed=1)
    while algorithm.engine.members[0].round < 1:
        algorithm.next()
    member = algorithm.engine.members[0]
    before, address = member.value, member.worker
    os.kill(process_of(algorithm, 0), signal.SIGKILL)
    with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
        while member.worker == address or member.needs_stream:  # until a round of its new life is over
            algorithm.next()
    assert f"worker {address} is gone; island 0 goes on from round" in caplog.text
    assert member.value <= before  # without a topology it had it from nobody else
    assert member.streams == 2
    algorithm.finalize()


@posix
def test_nobody_waits_for_a_worker_that_stands_still(client):
    algorithm = Islands(colony(), client=client, exchange_every=0.1)
    algorithm.setup(cities(60), termination=("n_gen", 1000), seed=1)
    slow, quick = algorithm.engine.members
    pid = process_of(algorithm, 0)
    os.kill(pid, signal.SIGSTOP)
    try:
        while quick.round < 3:
            algorithm.next()
        assert slow.round == 0
    finally:
        os.kill(pid, signal.SIGCONT)
    while slow.round < 1:
        algorithm.next()
    algorithm.finalize()


def test_local_processes_listen_to_this_machine_alone(two_workers, client):
    import psutil

    own = psutil.Process()
    workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
    nannies = [psutil.Process(process.pid) for process in two_workers._processes]
    listening = [
        connection.laddr.ip
        for process in (own, *workers, *nannies)
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 5  # scheduler, workers, nannies
    assert set(listening) == {"127.0.0.1"}


@posix
def test_without_any_worker_the_run_ends_with_its_time_and_its_best_tour(caplog):
    islands = Islands(colony(), 1, exchange_every=0.1)
    problem = cities(60)
    algorithm = islands.setup(problem, termination=("time", 3.0), seed=1)
    algorithm.next()
    best = algorithm.opt[0].F[0]
    for process in algorithm.engine._rounds.cluster._processes:
        local_workers.kill(process)
    with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
        run_to_end(algorithm)
    assert algorithm.opt[0].F[0] <= best
    assert algorithm.opt[0].F[0] == problem.tour_length(algorithm.opt[0].X)
    assert "there is no worker; the run waits for one" in caplog.text


def test_a_scheduler_without_workers_is_told(monkeypatch):
    distributed = dask()
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.3)
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as empty:
        address = empty.scheduler_address
        with pytest.raises(
            TimeoutError, match=f"0 of 1 workers have joined the scheduler {address} within 0.3 s"
        ):
            Islands(colony(), client=address).setup(cities(20), termination=("n_gen", 1))


@pytest.fixture(scope="module")
def another():
    """A cluster of one worker at first, which a test may add to or close."""
    cluster = Cluster(None, 1)
    yield cluster
    cluster.close()


def test_an_island_moves_with_all_it_is_to_a_worker_that_joins(another):
    algorithm = Islands(colony(), 2, client=another.client, exchange_every=0.1)
    algorithm.setup(cities(60), termination=("n_gen", 1000), seed=1)
    members = algorithm.engine.members
    algorithm.next()
    assert members[0].worker == members[1].worker
    another.add(1, 2, False)
    another.client.wait_for_workers(2)
    while members[0].worker == members[1].worker:
        algorithm.next()
    rounds = [member.round for member in members]
    while any(member.round < before + 2 for member, before in zip(members, rounds, strict=True)):
        algorithm.next()
    assert [member.streams for member in members] == [1, 1]  # the streams of random numbers went on
    algorithm.finalize()


def test_a_run_goes_on_when_its_scheduler_has_died(client, another):
    problem = cities(60)
    undisturbed = lock_step(client=client).setup(problem, termination=("n_gen", 4), seed=1)
    run_to_end(undisturbed)
    algorithm = lock_step(client=another.client.scheduler.address)
    with keys_of(another):
        algorithm.setup(problem, termination=("n_gen", 4), seed=1)
    algorithm.next()
    best = algorithm.opt[0].F[0]
    another.close()
    with pytest.raises(ConnectionError, match=r"the scheduler .* is gone"):
        run_to_end(algorithm)
    assert algorithm.opt[0].F[0] <= best
    algorithm.client = client
    run_to_end(algorithm)
    assert np.array_equal(algorithm.opt[0].X, undisturbed.opt[0].X)


def test_an_island_whose_new_worker_has_just_died_goes_to_another(client):
    algorithm = lock_step(client=client).setup(cities(30), termination=("n_gen", 2), seed=1)
    member = algorithm.engine.members[0]
    member.worker, member.is_on_worker = "tcp://127.0.0.1:1", False
    run_to_end(algorithm)
    assert [one.round for one in algorithm.engine.members] == [2, 2]


def test_a_worker_of_another_version_is_told(client, monkeypatch):
    monkeypatch.setattr(cluster_module, "__version__", "0.0")
    words = f"worker tls://.* has pymoo_gpuaco {__version__}, and this process has 0.0"
    with pytest.raises(worker.VersionMismatch, match=words):
        Cluster(Connection(client))


def test_an_error_in_setting_up_an_island_is_raised_as_it_is(client):
    islands = Islands(colony(backend="cuda", local_search=False), client=client)
    with pytest.raises(Exception, match="backend='cuda' cannot run this"):
        islands.setup(cities(20), termination=("n_gen", 1))


def fail(self, order, stopped):
    raise MemoryError("no room for another tour")


def let_fail(broken):
    """Run on a worker: let its islands fail, or be whole again."""
    if broken:
        island.Island.whole = island.Island.search
        island.Island.search = fail
    else:
        island.Island.search = island.Island.whole


def test_an_island_that_fails_again_and_again_ends_the_run_with_its_error(client, caplog):
    algorithm = lock_step(client=client).setup(cities(30), termination=("n_gen", 9), seed=1)
    algorithm.next()
    client.run(let_fail, True)
    try:
        with pytest.raises(MemoryError, match="no room"), caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
            run_to_end(algorithm)
    finally:
        client.run(let_fail, False)
    assert MOST_FAILURES <= caplog.text.count("MemoryError: no room") <= 2 * MOST_FAILURES
    run_to_end(algorithm)  # from the last round


class TestRunRound:
    """What a worker does, called here."""

    @pytest.fixture
    def order(self):
        return {
            "version": __version__,
            "run": "here",
            "session": "s",
            "island": 0,
            "neighbours": 1,
            "round": 0,
            "key": 1,
            "stream": 2,
            "migrants": [],
            "generations": 2,
            "seconds": None,
            "left": None,
            "progress": float("nan"),
            "pace": 0.0,
            "target": None,
            "export": False,
        }

    @pytest.fixture(autouse=True)
    def nothing_is_held(self, monkeypatch):
        monkeypatch.setattr(worker, "_held", {})
        monkeypatch.setattr(worker, "_threads", None)
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", "2")

    def start(self, **more):
        return {"colony": pickled((colony(), cities(30))), "state": None, **more}

    def test_an_order_of_another_version_is_refused(self, order):
        with pytest.raises(
            worker.VersionMismatch, match=f"this worker has pymoo_gpuaco {__version__}.* run has 0.0"
        ):
            worker.run_round({**order, "version": "0.0"})

    def test_an_island_that_is_not_here_or_at_another_round_is_missing(self, order):
        assert worker.run_round(order) is None
        assert worker.run_round(order, self.start()) is not None
        assert worker.run_round(order) is None  # it has made round 1
        report = worker.run_round({**order, "round": 1, "stream": None})
        assert report is not None
        assert report["built"] == 2 * 4

    @pytest.mark.parametrize(
        ("progress", "pace", "last"), [(0.5, 0.25, 0.75), (0.9, 0.25, 1.0), (np.nan, 0.0, np.nan)]
    )
    def test_the_colony_is_told_how_far_the_run_is(self, order, progress, pace, last):
        worker.run_round({**order, "progress": progress, "pace": pace}, self.start())
        (here,) = worker._held.values()
        np.testing.assert_equal(here.colony.termination.spent, last)  # in the second of two generations

    def test_migrants_are_taken_in_and_the_state_goes_on_elsewhere(self, order):
        problem = cities(30)
        best = minimize(problem, GPUMemetic(backend="cpu"), ("n_gen", 2), seed=1)
        migrant = {"cities": best.X.astype(np.int32), "value": float(best.F[0])}
        first = worker.run_round({**order, "migrants": [migrant], "export": True}, self.start())
        assert first["value"] == best.F[0]
        assert np.array_equal(first["cities"], best.X)
        on = {**order, "round": 1, "stream": None, "export": True}
        here = worker.run_round(on)
        there = worker.run_round(on, self.start(state=first["state"]))
        # the last state holds the colony after the round, trails, tours and random numbers
        states = [pickle.loads(report["state"]) for report in (here, there)]
        assert states[0].random_state.random() == states[1].random_state.random()
        for name, array in states[0]._engine_state.items():
            assert np.array_equal(array, states[1]._engine_state[name]), name

    def test_a_round_ends_at_the_target(self, order):
        report = worker.run_round({**order, "generations": None, "target": 1e9}, self.start())
        assert report["generations"] == 1

    def test_a_round_ends_when_the_run_stops(self, order, monkeypatch):
        monkeypatch.setattr(worker, "_stopped", {"s"})
        assert worker.run_round({**order, "generations": None}, self.start())["generations"] == 1

    def test_islands_that_nobody_asks_for_are_dropped(self, order, monkeypatch):
        worker.run_round(order, self.start())
        monkeypatch.setattr(worker, "IDLE", -1.0)
        worker.run_round({**order, "run": "another"})
        assert worker._held == {}

    def test_islands_of_one_host_share_its_cores(self, order, monkeypatch):
        monkeypatch.delenv("PYMOO_GPUACO_THREADS")
        monkeypatch.setattr(worker, "thread_count", lambda: 8)
        worker.run_round({**order, "neighbours": 3}, self.start())
        assert os.environ["PYMOO_GPUACO_THREADS"] == "2"
        worker.run_round({**order, "neighbours": 2}, self.start())
        assert os.environ["PYMOO_GPUACO_THREADS"] == "4"

    def test_a_number_of_threads_that_is_given_stays(self, order):
        worker.run_round({**order, "neighbours": 2}, self.start())
        assert os.environ["PYMOO_GPUACO_THREADS"] == "2"


# Ctrl-C is ignored in what a shell has started in the background, and in the children of that.
HEARS_CTRL_C = """
import signal, sys
from pymoo_gpuaco.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(sys.argv[1:]))
"""


class Solving:
    """The command line with one island, and the processes that it has started."""

    def __init__(self, tour):
        import psutil

        told = {"--islands": "1", "--time": "1m", "--backend": "cpu", "--set": "local_search=False"}
        told |= {"--picture": "", "--tour": str(tour)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", HEARS_CTRL_C, "solve", "random:60", *itertools.chain(*told.items())],
            env={**os.environ, "TMPDIR": str(tour.parent)},  # the keys of one that is killed stay there
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if len(line.split()) == 6 and line.split()[1].isdigit():
                break
        self.started = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.started) >= 2, self.said  # a nanny and a worker

    def end_by(self, number):
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=90)  # it ends by itself after a minute
        self.said += rest.splitlines(keepends=True)

    def leaves_nothing(self):
        import psutil

        with contextlib.suppress(psutil.NoSuchProcess):
            return not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in self.started)
        return False


@posix
def test_no_process_outlives_a_run_that_is_interrupted_or_killed(tmp_path):
    tour = tmp_path / "best.tour"
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(Solving, (tour, tmp_path / "other.tour"))
    first.end_by(signal.SIGINT)
    second.end_by(signal.SIGKILL)
    assert any("interrupted from the keyboard" in line for line in first.said), first.said
    problem = load_tsp("random:60")
    assert f"best tour   {problem.tour_length(read_tour(tour, 60)):.10g}\n" in first.said
    wait_until(first.leaves_nothing)
    wait_until(second.leaves_nothing)
