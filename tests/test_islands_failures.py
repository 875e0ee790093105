"""Workers and schedulers that die, are stopped or not there: no best tour is lost, and every run ends.

A minute of silence is some seconds here, once workers have imported what they need.
"""

import contextlib
import itertools
import json
import logging
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from pymoo.termination import get_termination

from pymoo_gpuaco import GPUMemetic, Islands, load_tsp
from pymoo_gpuaco.islands import archipelago as archipelago_module
from pymoo_gpuaco.islands import cluster as cluster_module
from pymoo_gpuaco.islands import island
from pymoo_gpuaco.islands.archipelago import MOST_FAILURES
from pymoo_gpuaco.problems import read_tour
from tests.algorithm_cases import cities, run_to_end
from tests.interrupts import wait_until
from tests.islands_cases import colony, distributed, posix, process_of, reproducible, stopped


@pytest.fixture
def hasten(monkeypatch):
    """Called by a test from when on a silence is short."""

    def hasten(seconds=2.0):
        monkeypatch.setattr(cluster_module, "SILENCE_LIMIT", seconds)

    return hasten


def free_running(client, n=60, termination=("n_gen", 10**6), **arguments):
    islands = Islands(colony(), client=client, **{"exchange_every": 0.1, **arguments})
    return islands.setup(cities(n), termination=termination, seed=1)


# ---- workers


@posix
@pytest.mark.parametrize("by", ["SIGKILL", "SIGSTOP"])
def test_an_island_that_is_lost_begins_again_from_the_best_tours(client, caplog, hasten, by):
    algorithm = free_running(client, n=100)
    member, other = algorithm.engine.members
    while min(member.round, other.round) < 1:
        algorithm.next()
    before, address, pid = min(algorithm.engine.values), member.worker, process_of(algorithm, 0)
    if by == "SIGSTOP":
        hasten(4.0)
    os.kill(pid, getattr(signal, by))
    try:
        with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
            while not member.begun or member.actor is None:
                algorithm.next()
        rounds = member.round
        while member.round == rounds:
            algorithm.next()
    finally:
        if by == "SIGSTOP":
            os.kill(pid, signal.SIGCONT)
    assert "island 0 restarts after round" in caplog.text
    assert member.worker != address
    assert member.value <= before
    algorithm.finalize()


@posix
def test_no_island_waits_for_a_worker_that_is_stopped(client):
    algorithm = free_running(client)
    slow, quick = algorithm.engine.members
    with stopped(process_of(algorithm, 0)):
        while quick.round < 3:
            algorithm.next()
        assert slow.round == 0
    while slow.round < 1:
        algorithm.next()
    algorithm.finalize()


@posix
def test_a_run_whose_worker_stays_stopped_ends_with_its_time_and_its_best_tour(client):
    algorithm = free_running(client, n_islands=1, termination=("time", 3.0))
    algorithm.next()
    best = algorithm.opt[0].F[0]
    with stopped(process_of(algorithm, 0)):
        run_to_end(algorithm)
    assert algorithm.opt[0].F[0] == cities(60).tour_length(algorithm.opt[0].X) <= best


# ---- no workers


def test_a_scheduler_without_workers_is_an_error_within_the_limit_of_time(monkeypatch):
    with distributed.LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0") as empty:
        for termination, limit in ((("time", 0.3), "0.3"), (("n_gen", 1), "0.5")):
            monkeypatch.setattr(cluster_module, "JOIN_TIMEOUT", 0.5)
            words = f"0 of 1 workers have joined the scheduler {empty.scheduler_address} within {limit} s"
            with pytest.raises(TimeoutError, match=words):
                Islands(colony(), client=empty.scheduler_address).setup(cities(20), termination=termination)


@posix
@pytest.mark.parametrize("termination", [("n_gen", 5), ("time", 4.0)], ids=lambda given: given[0])
def test_workers_that_are_stopped_before_the_first_tour(client, hasten, monkeypatch, termination):
    algorithm = free_running(client, termination=termination)
    monkeypatch.setattr(archipelago_module, "JOIN_TIMEOUT", 1)
    hasten()
    words = "no worker for"
    with stopped(*client.run(os.getpid).values()), pytest.raises(ConnectionError, match=words):
        algorithm.run()


def test_a_local_cluster_that_is_killed_ends_the_run_with_its_best_tour(caplog):
    problem = cities(60)
    algorithm = Islands(colony(), 1, exchange_every=0.1).setup(problem, termination=("time", 60), seed=1)
    algorithm.next()
    best = algorithm.opt[0].F[0]
    cluster_module.end_local(algorithm.engine.cluster.process)
    with caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
        result = algorithm.run()
    assert result.F[0] == problem.tour_length(result.X) <= best
    # it "is gone" or "does not answer", by which is noticed first
    assert "; the run ends with the best tour so far" in caplog.text


def test_a_local_cluster_that_does_not_start(monkeypatch):
    monkeypatch.setattr(cluster_module, "_LOCAL_CLUSTER", "raise SystemExit(3)")
    algorithm = Islands(colony(), 1)
    with pytest.raises(ConnectionError, match="the local cluster did not start: exit code 3"):
        algorithm.setup(cities(20), termination=("n_gen", 1))
    algorithm.finalize()
    Islands(GPUMemetic()).finalize()  # nor before


# ---- the scheduler


@pytest.fixture
def scheduler(tmp_path):
    """A scheduler in a process, with a worker in another."""
    file = tmp_path / "scheduler.json"
    here = ["--host", "127.0.0.1", "--scheduler-file", str(file), "--dashboard-address", "127.0.0.1:0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(place or "." for place in sys.path)}
    with contextlib.ExitStack() as stack:

        def start(name, *options):
            command = [sys.executable, "-m", f"distributed.cli.dask_{name}", *options, *here]
            process = subprocess.Popen(command, env=environment)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        process = start("scheduler", "--port", "0")
        wait_until(lambda: file.exists() and file.read_text())
        start("worker", "--nthreads", "1", "--no-nanny")
        address = json.loads(file.read_text())["address"]
        client = stack.enter_context(distributed.Client(address, set_as_default=False))
        client.wait_for_workers(1)
        yield SimpleNamespace(process=process, address=address, client=client)


@posix
@pytest.mark.parametrize("by", ["SIGKILL", "SIGSTOP"])
def test_a_scheduler_that_dies_ends_the_run_with_the_best_tour_and_it_can_go_on(
    client, scheduler, hasten, by
):
    algorithm = reproducible(client=scheduler.address).setup(cities(60), termination=("n_gen", 4), seed=1)
    algorithm.next()
    best, copied = algorithm.opt[0].F[0], pickle.loads(pickle.dumps(algorithm))
    hasten()
    os.kill(scheduler.process.pid, getattr(signal, by))
    assert algorithm.run().F[0] <= best
    assert not algorithm.has_next()
    assert copied.run().F[0] == best  # it has not been connected
    os.kill(scheduler.process.pid, signal.SIGKILL)
    algorithm.client, algorithm.termination = client, get_termination("n_gen", 4)
    assert run_to_end(algorithm).opt[0].F[0] <= best
    assert algorithm.n_iter == 5


@posix
@pytest.mark.parametrize("by_address", [False, True])
def test_a_scheduler_that_is_stopped_before_the_first_tour(scheduler, hasten, by_address):
    hasten()
    words = f"scheduler {scheduler.address} does not answer"
    islands = Islands(GPUMemetic(backend="cpu"), client=scheduler.address if by_address else scheduler.client)
    with stopped(scheduler.process.pid), pytest.raises(ConnectionError, match=words):
        islands.setup(load_tsp("gr17"), termination=("n_gen", 1))
    if by_address:
        # the abandoned client connects now, and would log an error half a minute after the scheduler's end
        wait_until(lambda: [one for one in clients_of(scheduler) if one.status == "running"])
        for one in clients_of(scheduler):
            one.close()


def clients_of(scheduler):
    """Return the clients of a scheduler in this process, except that of the fixture."""
    others = [one for one in distributed.Client._instances if one is not scheduler.client]
    return [one for one in others if one.scheduler and one.scheduler.address == scheduler.address]


# ---- islands that raise


def test_an_error_in_setting_up_an_island_is_raised_as_it_is(client):
    islands = Islands(colony(backend="cuda"), client=client)
    with pytest.raises(Exception, match="backend='cuda' cannot run this"):
        islands.setup(cities(20), termination=("n_gen", 1))


def fail(self, order):
    raise MemoryError("no memory for another tour")


def let_fail(broken):
    """Run on a worker: let its islands fail, or work again."""
    if broken:
        island.Island.whole, island.Island.search = island.Island.search, fail
    else:
        island.Island.search = island.Island.whole


def test_an_island_that_fails_again_and_again_ends_the_run_with_its_error(client, caplog):
    algorithm = reproducible(client=client).setup(cities(30), termination=("n_gen", 9), seed=1)
    algorithm.next()
    client.run(let_fail, True)
    try:
        with pytest.raises(MemoryError, match="no memory"), caplog.at_level(logging.WARNING, "pymoo_gpuaco"):
            run_to_end(algorithm)
    finally:
        client.run(let_fail, False)
    assert MOST_FAILURES <= caplog.text.count("MemoryError: no memory") <= 2 * MOST_FAILURES
    run_to_end(algorithm)  # from the last round


# ---- processes

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

        given = {"--islands": "1", "--time": "1m", "--backend": "cpu", "--algorithm": "GPUMMAS"}
        given |= {"--picture": "", "--tour": str(tour)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", HEARS_CTRL_C, "solve", "random:60", *itertools.chain(*given.items())],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if line.count("|") == 6 and line.split("|")[1].strip().isdigit():  # of a generation
                break
        self.started = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.started) >= 2, self.said  # a cluster and a worker

    def end_by(self, number):
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=300)  # it ends by itself after a minute
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


SCRIPT = """
from pymoo.optimize import minimize
from pymoo_gpuaco import GPUMemetic, Islands, load_tsp
problem = load_tsp("gr17")
problem.__class__ = type("Mine", (type(problem),), {})
print(minimize(problem, Islands(GPUMemetic(backend="cpu"), 1), ("n_gen", 1), seed=1).F[0])
"""


def test_a_script_needs_no_guard_and_may_define_its_problem(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    answer = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert (answer.stdout, answer.returncode) == ("2085.0\n", 0), answer.stderr
    assert "Traceback" not in answer.stderr
