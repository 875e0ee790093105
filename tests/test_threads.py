"""Threads, forks and interrupts: work is whole or not done, and what comes after it runs."""

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from pymoo_gpuaco.runtime import threads as threads_module
from pymoo_gpuaco.runtime.background import BackgroundTask, interruptible
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.threads import parallel_for, processor_share
from tests.fuzz import TIMES
from tests.interrupts import is_interrupted, needs_timer, signals_wake_no_thread

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
@pytest.mark.parametrize("items", [1, 2, 7, 100])
def test_every_item_is_worked_on_once(items, threads):
    seen = np.zeros(items, np.int64)
    numbers = []

    def work(thread, first, last):
        numbers.append(thread)
        seen[first:last] += 1

    parallel_for(work, items, threads)
    assert (seen == 1).all()
    assert sorted(numbers) == list(range(min(items, threads)))


@pytest.mark.parametrize(("waits", "share"), [(3.0, 0.25), (1.0, 0.5), (0.1, 1.0), (0.0, 1.0)])
def test_the_share_of_a_thread_is_what_it_works_of_what_goes_by(waits, share, monkeypatch):
    """Each look at the clock is .5 ms of work, and ``waits`` times as long another process has the core."""
    worked = threading.local()

    def thread_time():
        worked.seconds = getattr(worked, "seconds", 0.0) + 2.0**-11
        return worked.seconds

    monkeypatch.setattr(CLOCK, "thread_time", thread_time)
    monkeypatch.setattr(CLOCK, "monotonic", lambda: (1.0 + waits) * getattr(worked, "seconds", 0.0))
    assert processor_share(2) == pytest.approx(share, rel=0.1)  # of some twenty looks


@pytest.mark.parametrize(("cores", "most"), [(1, 64), (2, 64), (8, 64), (16, 128), (200, 1024)])
def test_threads_are_limited_by_the_cores_and_that_is_said_once(cores, most, monkeypatch):
    monkeypatch.setattr(threads_module.os, "sched_getaffinity", lambda _: range(cores), raising=False)
    threads_module._warn_of_the_limit.cache_clear()
    for wanted in (1, 64, most):
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", str(wanted))
        assert threads_module.thread_count() == wanted
    if most < 1024:
        monkeypatch.setenv("PYMOO_GPUACO_THREADS", "1000")
        with pytest.warns(
            UserWarning, match=f"THREADS is 1000: {most} threads are used, the most for {cores} cores"
        ):
            assert threads_module.thread_count() == most
        assert threads_module.thread_count() == most  # silently
    monkeypatch.delenv("PYMOO_GPUACO_THREADS")
    assert threads_module.thread_count() == cores


def test_an_error_is_raised_when_all_parts_have_ended():
    ended = []

    def work(thread, first, last):
        if thread == 0:
            raise ValueError("part 0")
        time.sleep(0.05)
        ended.append(thread)

    with pytest.raises(ValueError, match="part 0"):
        parallel_for(work, 4, 4)
    assert sorted(ended) == [1, 2, 3]


def test_a_system_without_threads_raises_its_error(monkeypatch):
    def start(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads_module, "_thread", SimpleNamespace(start_new_thread=start))
    monkeypatch.setattr(threads_module, "_started", 0)
    with pytest.raises(RuntimeError, match="new thread"):
        parallel_for(lambda *_: None, 4, 4, np.zeros(1, np.uint8))


def test_the_clock_sets_the_stop_flag():
    stop = np.zeros(1, np.uint8)

    def work(thread, first, last):
        while not stop[0]:
            time.sleep(0.001)

    parallel_for(work, 2, 2, stop, time.monotonic() + 0.05)
    assert stop[0] == 1


def test_work_that_is_spread_may_spread_work_of_its_own():
    parts = 60  # more than there have been: with all threads busy none would be left for theirs
    seen = np.zeros((parts, 5), np.int64)

    def outer(thread, first, last):
        for row in seen[first:last]:

            def inner(thread, first, last, row=row):
                row[first:last] += 1

            parallel_for(inner, 5, 2, np.zeros(1, np.uint8))

    parallel_for(outer, parts, parts, np.zeros(1, np.uint8))
    assert (seen == 1).all()


def test_work_of_a_background_thread_goes_on_while_others_have_the_pool():
    there, seen = threading.Event(), np.zeros(9, np.int64)
    waiting = BackgroundTask(lambda: parallel_for(lambda *_: there.wait(60.0), 50, 50))

    def work(thread, first, last):
        parallel_for(lambda *_: None, 3, 3)  # done here and now as well
        seen[first:last] += 1

    try:
        ended = BackgroundTask(lambda: parallel_for(work, 9, 3))
        assert ended.wait(time.monotonic() + 20.0)
        assert not there.is_set()
    finally:
        there.set()
    ended.result()
    assert (seen == 1).all()
    assert waiting.wait(time.monotonic() + 20.0)


def script(source, seconds=600):
    """Run it in a process of its own; its output. A deadlock ends it, and the test."""
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=seconds)
    assert run.returncode == 0, run.stderr
    return run.stdout


# A timer strikes at moments that differ from call to call; afterwards the next call must come back, whole.
INTERRUPTS = """
import random, signal, time
import numpy as np
from pymoo_gpuaco.runtime.threads import parallel_for

def strike(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, strike)
random.seed(1)
struck, longest = 0, 1.5e-3  # s until a strike: adapted until half of the calls are struck
def work(thread, first, last):
    for _ in range(200):
        seen[first:last] += 1
for turn in range({turns}):
    seen = np.zeros(8, np.int64)
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, longest))
        parallel_for(work, 8, 1 + turn % 4)
        signal.setitimer(signal.ITIMER_REAL, 0)
        longest = max(2e-6, 0.9 * longest)
    except KeyboardInterrupt:
        struck, longest = struck + 1, 1.1 * longest
        left = seen.copy()
        time.sleep(0.001)
        assert (seen == left).all()  # no thread works any more
    signal.setitimer(signal.ITIMER_REAL, 0)
    seen = np.zeros(8, np.int64)
    parallel_for(work, 8, 4)
    assert (seen == 200).all()
print(struck)
"""


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="no interval timers")
def test_an_interrupt_at_any_moment_leaves_the_pool_usable():
    turns = 800 * TIMES
    assert int(script(INTERRUPTS.format(turns=turns), 600 + turns / 5)) > turns / 10


# Children are forked while other threads of the parent look for CUDA and import: each must come to its end.
FORKS = """
import os, signal, sys, threading, time
from pymoo_gpuaco.backends import why_no_cuda
over = False
def look():
    while not over:
        why_no_cuda()
        time.sleep(0)
threads = [threading.Thread(target=look) for _ in range(3)]
for thread in threads:
    thread.start()
lost = 0
for _ in range({forks}):
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        why_no_cuda()
        os._exit(0)
    lost += os.waitpid(child, 0)[1] != 0
over = True
for thread in threads:
    thread.join()
print(lost)
"""


@needs_fork
def test_a_child_forked_while_threads_look_for_cuda_looks_too():
    forks = 60 * TIMES
    assert int(script(FORKS.format(forks=forks), 600 + 5 * forks)) == 0


# The child of a process that is compiling builds an engine and a tour.
FORK_WHILE_COMPILING = """
import os, signal, sys, threading, time
import numpy as np
from pymoo_gpuaco import TSP, GPUMMAS
from pymoo.optimize import minimize
problem = TSP(np.random.default_rng(0).random((30, 2)), metric="EXACT")
def solve():
    return minimize(problem, GPUMMAS(n_ants=2, backend="cpu"), ("n_gen", 2), seed=1).F[0]
lengths = []
thread = threading.Thread(target=lambda: lengths.append(solve()))
thread.start()
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0.3)
child = os.fork()
if child == 0:
    signal.alarm(600)
    os._exit(0 if np.isfinite(solve()) else 1)
thread.join()
assert os.waitpid(child, 0)[1] == 0
assert lengths[0] == solve()
"""


@needs_fork
def test_a_child_forked_while_a_thread_compiles_builds_tours():
    script(FORK_WHILE_COMPILING, 900)


def test_waiting_ends_at_a_moment_and_can_go_on():
    goes_on = threading.Event()
    work = BackgroundTask(goes_on.wait)
    assert not work.wait(time.monotonic() - 1.0)
    assert not work.wait(time.monotonic() + 0.01)
    goes_on.set()
    assert work.wait()
    assert work.result() is True


def test_an_error_of_the_work_is_raised_where_its_result_is_wanted():
    def fail() -> None:
        raise ZeroDivisionError("of the work")

    work = BackgroundTask(fail)
    assert work.wait()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of the work"):
            work.result()


@needs_timer
def test_an_interrupt_that_does_not_wake_the_waiting_thread_is_raised():
    goes_on, ended = threading.Event(), []
    with signals_wake_no_thread():
        is_interrupted(0.1, lambda: interruptible(lambda: ended.append(goes_on.wait(10.0))))
    assert not ended  # the work goes on
    goes_on.set()


@needs_timer
def test_an_interrupt_that_does_not_wake_the_thread_stops_work_of_several_threads():
    stop, waited = np.zeros(1, np.uint8), []

    def work(thread: int, first: int, last: int) -> None:
        until = time.monotonic() + 10.0
        while not stop[0] and time.monotonic() < until:
            time.sleep(0.001)
        waited.append(time.monotonic() < until)

    with signals_wake_no_thread():
        is_interrupted(0.1, lambda: parallel_for(work, 2, 2, stop))
    assert waited == [True, True]
