"""Schedulers and workers that stand still or are gone before there is a tour: a run ends, and says why.

A minute of silence is two seconds here, once workers have imported what they need.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from pymoo_gpuaco import GPUMemetic, Islands, load_tsp
from pymoo_gpuaco.islands import cluster as cluster_module
from pymoo_gpuaco.islands import leader, local_workers, watch
from pymoo_gpuaco.islands.cluster import Cluster
from pymoo_gpuaco.islands.watch import Watch
from tests.islands_cases import colony, distributed, wait_until

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.fixture
def hasten(monkeypatch):
    """Called by a test from when on a silence is short."""

    def hasten(seconds=2.0):
        monkeypatch.setattr(watch, "SILENCE", seconds)

    return hasten


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A scheduler in a process of its own, with a worker in another."""
    import json

    told = tmp_path_factory.mktemp("dask") / "scheduler.json"
    here = ["--host", "127.0.0.1", "--scheduler-file", str(told)]
    dashboards = ["--dashboard-address", "127.0.0.1:0"]
    run = [sys.executable, "-m"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place or "." for place in sys.path)}
    with contextlib.ExitStack() as stack:

        def start(*command):
            process = subprocess.Popen([*run, *command, *dashboards], env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("distributed.cli.dask_scheduler", "--port", "0", *here)
        wait_until(lambda: told.exists() and told.read_text())
        start("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *here)
        yield SimpleNamespace(process=scheduler, address=json.loads(told.read_text())["address"])


@pytest.fixture
def client(scheduler):
    with distributed.Client(scheduler.address, set_as_default=False) as client:
        client.wait_for_workers(1)
        yield client


@contextlib.contextmanager
def stopped(*processes):
    """Let processes stand still."""
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)


def family(cluster):
    """The local processes of a cluster, nannies first."""
    import psutil

    nannies = [psutil.Process(process.pid) for process in cluster._processes]
    return nannies + [child for one in nannies for child in one.children(recursive=True)]


def is_alive(process):
    import psutil

    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def kill(cluster):
    for process in cluster._processes:
        local_workers.kill(process)


@posix
@pytest.mark.parametrize("termination", [("n_gen", 5), ("time", 1.0)], ids=lambda told: told[0])
def test_a_scheduler_that_stands_still_before_the_first_tour(scheduler, client, hasten, termination):
    algorithm = Islands(GPUMemetic(backend="cpu"), client=client)
    algorithm.setup(load_tsp("gr17"), termination=termination, seed=1)
    hasten()
    with (
        stopped(scheduler.process),
        pytest.raises(ConnectionError, match=f"scheduler {scheduler.address} has not answered for 2 s"),
    ):
        algorithm.run()
    algorithm.finalize()


@posix
@pytest.mark.parametrize("by_address", [False, True])
def test_a_scheduler_that_stands_still_before_the_set_up(scheduler, client, hasten, by_address):
    hasten()
    islands = Islands(GPUMemetic(backend="cpu"), client=scheduler.address if by_address else client)
    with (
        stopped(scheduler.process),
        pytest.raises(ConnectionError, match=f"scheduler {scheduler.address} has not answered for 2 s"),
    ):
        islands.setup(load_tsp("gr17"), termination=("n_gen", 1))


@posix
def test_a_scheduler_that_stands_still_after_the_first_tour_ends_a_run_without_a_limit_of_time(
    scheduler, client, hasten
):
    algorithm = Islands(colony(), client=client, exchange_every=0.1)
    algorithm.setup(load_tsp("gr17"), termination=("n_gen", 10**6), seed=1)
    algorithm.next()
    hasten()
    with stopped(scheduler.process), pytest.raises(ConnectionError, match="has not answered for 2 s"):
        algorithm.run()
    assert algorithm.opt[0].F[0] > 0  # the tour is kept


@posix
def test_a_scheduler_that_stands_still_after_the_first_tour_changes_no_limit_of_time(
    scheduler, client, hasten
):
    algorithm = Islands(colony(), client=client, exchange_every=0.1)
    algorithm.setup(load_tsp("gr17"), termination=("time", 5.0), seed=1)
    algorithm.next()
    hasten()
    with stopped(scheduler.process):
        result = algorithm.run()
    assert result.F[0] == load_tsp("gr17").tour_length(result.X)


@pytest.fixture
def local():
    cluster = Cluster(None, 2)
    yield cluster
    cluster.close()


def test_the_own_scheduler_is_closed_even_where_the_client_is_not(monkeypatch):
    cluster = Cluster(None, 1)
    scheduler, close = cluster._local, cluster.client.close

    def close_late(timeout):
        close(timeout)
        raise TimeoutError

    monkeypatch.setattr(cluster.client, "close", close_late)
    cluster.close()
    assert scheduler.status == distributed.Status.closed


@posix
def test_all_workers_that_stand_still_before_the_first_tour(hasten):
    algorithm = Islands(GPUMemetic(backend="cpu"), 1)
    algorithm.setup(load_tsp("gr17"), termination=("time", 1.0), seed=1)
    processes = family(algorithm.engine._rounds.cluster)
    for process in processes:
        process.suspend()
    hasten()
    with pytest.raises(ConnectionError, match="the time is over, and there was no worker to build a tour"):
        algorithm.run()
    wait_until(lambda: not any(is_alive(process) for process in processes))


@posix
def test_without_a_limit_of_time_workers_are_waited_for_a_minute(local, hasten, monkeypatch):
    algorithm = Islands(GPUMemetic(backend="cpu"), client=local.client)
    algorithm.setup(load_tsp("gr17"), termination=("n_gen", 1), seed=1)
    monkeypatch.setattr(leader, "PATIENCE", 1)
    hasten()
    with (
        stopped(*family(local)),
        pytest.raises(ConnectionError, match="there has been no worker for 1 s, and there is no tour yet"),
    ):
        algorithm.run()


@posix
def test_a_worker_that_stands_still_in_the_set_up_is_left_out(local, hasten):
    workers = local.client.run(os.getpid)
    still = next(iter(workers))
    hasten(5.0)
    with stopped(SimpleNamespace(pid=workers[still])):
        algorithm = Islands(GPUMemetic(backend="cpu"), 2, client=local.client)
        algorithm.setup(load_tsp("gr17"), termination=("n_gen", 2), seed=1)
        assert still not in {member.worker for member in algorithm.engine.members}
        algorithm.run()
    wait_until(lambda: still in local.live_workers())  # and taken when it goes on


@posix
def test_local_workers_that_are_killed_before_they_join(monkeypatch):
    start = local_workers.start

    def start_and_kill(*arguments):
        process = start(*arguments)
        process.kill()
        return process

    monkeypatch.setattr(local_workers, "start", start_and_kill)
    begun = time.monotonic()
    with pytest.raises(
        ConnectionError, match="local workers have ended before they joined, with exit code -9"
    ):
        Islands(GPUMemetic(backend="cpu")).setup(load_tsp("gr17"), termination=("n_gen", 1))
    assert time.monotonic() - begun < cluster_module.PATIENCE / 2


@pytest.fixture
def for_ever(monkeypatch):
    """Neither a silence nor patience ends before the test does."""
    monkeypatch.setattr(watch, "SILENCE", 1e9)
    monkeypatch.setattr(leader, "PATIENCE", 10**9)


@posix
def test_local_workers_that_are_killed_in_the_set_up_end_it_at_once(monkeypatch, for_ever):
    open_cluster = leader.Leader.open

    def kill_and_open(self, cluster):
        kill(cluster)
        open_cluster(self, cluster)

    monkeypatch.setattr(leader.Leader, "open", kill_and_open)
    with pytest.raises(ConnectionError, match="all local workers have ended"):
        Islands(GPUMemetic(backend="cpu"), 1).setup(load_tsp("gr17"), termination=("n_gen", 1))


@posix
@pytest.mark.parametrize("termination", [("n_gen", 5), ("time", 3600.0)], ids=lambda told: told[0])
def test_local_workers_that_are_killed_before_the_first_tour_end_the_run_at_once(for_ever, termination):
    algorithm = Islands(GPUMemetic(backend="cpu"), 1)
    algorithm.setup(load_tsp("gr17"), termination=termination, seed=1)
    kill(algorithm.engine._rounds.cluster)
    with pytest.raises(ConnectionError, match="all local workers have ended"):
        algorithm.run()
    algorithm.finalize()


def test_after_a_set_up_that_failed_there_is_nothing_to_finalize(monkeypatch):
    monkeypatch.setattr(cluster_module, "PATIENCE", 0)
    monkeypatch.setattr(local_workers, "start", lambda *arguments: SimpleNamespace(poll=lambda: None))
    monkeypatch.setattr(local_workers, "kill", lambda process: None)
    algorithm = Islands(GPUMemetic(backend="cpu"))
    with pytest.raises(TimeoutError, match="workers have joined"):
        algorithm.setup(load_tsp("gr17"), termination=("n_gen", 1))
    algorithm.finalize()
    Islands(GPUMemetic()).finalize()  # nor before


def test_a_closed_client_is_called_one(scheduler):
    closed = distributed.Client(scheduler.address, set_as_default=False)
    islands = Islands(GPUMemetic(backend="cpu"), client=closed)
    begun = Islands(GPUMemetic(backend="cpu"), client=closed)
    begun.setup(load_tsp("gr17"), termination=("n_gen", 2), seed=1)
    closed.close()
    with pytest.raises(ConnectionError, match=r"client that Islands were given, <Client.*>, is closed"):
        islands.setup(load_tsp("gr17"), termination=("n_gen", 1))
    with pytest.raises(ConnectionError, match=f"the scheduler {scheduler.address} is gone, or the client of"):
        begun.run()
    with pytest.raises(ValueError, match=r"client must be open, got <Client.*>, which was closed"):
        Islands(GPUMemetic(), client=closed)


class TestWatch:
    """What is made of a scheduler's answers, by a false clock."""

    @pytest.fixture
    def told(self, monkeypatch, hasten):
        """A scheduler that answers what a test sets; ``at`` looks at a moment."""
        told = SimpleNamespace(now=0.0, seen={"a": 0.0, "b": 0.0}, answers=True)

        def answer(client, call):
            future = Future()
            if told.answers:
                workers = {name: {"last_seen": seen, "nthreads": 3} for name, seen in told.seen.items()}
                future.set_result({"workers": workers})
            return future

        hasten()
        monkeypatch.setattr(watch.time, "monotonic", lambda: told.now)
        monkeypatch.setattr(watch, "call_async", answer)
        scheduler = SimpleNamespace(address="tcp://one:1", identity=None)
        told.client = SimpleNamespace(status="running", scheduler=scheduler)
        told.watch = Watch(told.client)

        def at(moment):
            told.now = moment
            return told.watch.live_workers()

        told.at = at
        return told

    def test_a_worker_without_heartbeats_is_left_out_until_it_has_one(self, told):
        for tick in range(1, 9):
            told.seen["a"] = told.now  # "b" stands still
            told.at(0.5 * tick)
        assert "b" not in told.at(4.5)
        assert told.watch.workers == {"a": 3}
        told.seen["b"] = 99.0
        told.at(5.0)
        assert told.at(5.5) == {"a": 3, "b": 3}

    def test_two_seconds_of_silence_are_allowed(self, told):
        for tick in range(1, 6):
            assert set(told.at(0.5 * tick)) in ({"a", "b"}, set())
        assert told.watch.workers == {"a": 3, "b": 3}

    def test_a_scheduler_that_does_not_answer_is_silent_and_its_workers_stay(self, told):
        told.at(0.5)
        told.at(1.0)
        told.answers = False
        told.at(1.5)
        for tick in range(1, 4):
            told.at(1.5 + 0.5 * tick)
        assert not told.watch.is_silent
        for tick in range(4, 8):
            told.at(1.5 + 0.5 * tick)
        assert told.watch.is_silent
        assert told.watch.workers == {"a": 3, "b": 3}

    def test_a_process_that_stood_still_itself_blames_nobody(self, told):
        """It may have been stopped, or been busy: what others did meanwhile it could not hear."""
        told.at(0.5)
        assert told.at(3600.0) == {"a": 3, "b": 3}
        assert not told.watch.is_silent
