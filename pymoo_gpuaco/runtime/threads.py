"""A pool of Python threads, one per core, for compiled functions, which release the GIL.

The pool belongs to the process; no object refers to it. A forked child starts a new pool.

A KeyboardInterrupt can be raised in the main thread between any two bytecodes, and could leave a Python lock locked.
Therefore this module uses no Python locks: threads are started and queues are used by single calls into C. The main
thread does not execute parts of divided work. Background callers do, unless the call has a deadline to watch; otherwise
they would wait for the main thread's work.
"""

from __future__ import annotations

import _thread  # threading.Thread.start acquires locks that an interrupt can leave locked
import contextlib
import hashlib
import os
import queue
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.runtime.background import LONGEST_BLOCK
from pymoo_gpuaco.runtime.clock import CLOCK

_SLICE = 50_000  # array entries between two checks of the deadline: some milliseconds
_APART = 128  # bytes: two cache lines, since processors fetch them in pairs
_MEASURING_SECONDS = 0.01  # maximum s of work of each thread, to measure its share of a core
# Limits of threads: with many more threads than cores, runs end later and later after their time limit.
_MOST_ON_ANY, _MOST_A_CORE = 64, 8
MOST_THREADS = 1024
_FULL_SHARE = 0.8  # a larger share counts as 1: threads are woken late, and clocks are coarse


class _Call:
    """One call of `parallel_for`: the parts not started yet, and the errors (or None) of completed parts."""

    def __init__(self, work: Callable[[int, int, int], None], bounds: list[int]) -> None:
        self.work = work
        self.size = len(bounds) - 1
        self.parts = deque(zip(range(self.size), bounds[:-1], bounds[1:], strict=True))
        self.ended: list[BaseException | None] = []
        self.completions: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run_part(self) -> None:
        """Execute one part, if any is left."""
        try:
            part = self.parts.popleft()
        except IndexError:
            return
        try:
            self.work(*part)
            error = None
        except BaseException as caught:
            error = caught
        self.ended.append(error)
        if len(self.ended) == self.size:  # the caller wakes once, not for every part
            self.completions.put(None)

    def run_parts(self) -> None:
        """Execute parts until none is left."""
        _pool_member.serves = True
        try:
            while self.parts:
                self.run_part()
        finally:
            _pool_member.serves = False

    def wait(self, stop: NDArray | None, until: float | None) -> None:
        """Wait until all parts have ended; set ``stop[0]`` to 1 at time ``until``."""
        while len(self.ended) < self.size:
            left = LONGEST_BLOCK  # not longer: an interrupt may lose the message of completion
            if until is not None and stop is not None and not stop[0]:
                left = min(max(until - CLOCK.monotonic(), 0.0), left)
                if left == 0.0:
                    stop[0] = 1
                    continue
            with contextlib.suppress(queue.Empty):
                self.completions.get(timeout=left)

    def finish(self) -> None:
        """Wait for the end of all parts, ignoring interrupts; afterwards no thread uses the caller's arrays."""
        if _started == 0:  # no thread could be started, so none has a part
            return
        while len(self.ended) < self.size:
            try:
                for _ in range(len(self.parts)):  # the interrupt may have prevented their queueing
                    _calls.put(self)
                self.completions.get(timeout=LONGEST_BLOCK)
            except (queue.Empty, KeyboardInterrupt):
                pass


_calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
_started = 0


class _PoolMember(threading.local):
    serves = False  # True while this thread executes parts


_pool_member = _PoolMember()


def _serve(calls: queue.SimpleQueue[_Call]) -> None:
    _pool_member.serves = True
    while True:
        calls.get().run_part()


def _start(threads: int) -> None:
    """Start threads until the pool has this number. A race or an interrupt may start one more, which is harmless."""
    global _started
    while _started < threads:
        try:
            _thread.start_new_thread(_serve, (_calls,))
        except RuntimeError:  # the system limits the number of threads
            if _started == 0:
                raise
            return
        _started += 1


def _reset_after_fork() -> None:
    """Reset the pool in a forked child, which has none of its threads and runs."""
    global _calls, _started
    _calls = queue.SimpleQueue()
    _started = 0
    _in_progress.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def thread_array(length: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Allocate zeros (length,) whose cache lines no other array shares, since threads would contend for them."""
    apart = _APART // np.dtype(dtype).itemsize
    return np.zeros(length + 2 * apart, dtype)[apart : apart + length]


class _Run:
    def __init__(self, threads: int | None) -> None:
        self.threads = threads


_run: ContextVar[_Run | None] = ContextVar("run", default=None)  # of this thread
_in_progress: dict[_Run, None] = {}  # runs of this process


@contextlib.contextmanager
def run_in_progress(threads: int | None) -> Iterator[None]:
    """Count a run, whose parallel sections use a share of the cores; a block within a block counts once.

    threads : of this run; None: those of the process.
    """
    run, outer = _Run(threads), _run.get()
    token = _run.set(run)
    try:
        if outer is None:
            _in_progress[run] = None
        yield
    finally:
        _in_progress.pop(run, None)
        _run.reset(token)


def runs_in_progress() -> int:
    """Return the number of runs of this process, at least 1."""
    return max(1, len(_in_progress))


def thread_count() -> int:
    """Return the number of threads of a run: ``threads`` of `run_in_progress`, else those of the process.

    What shapes a result depends on this number. A parallel section may use fewer threads, see `thread_share`.
    """
    run = _run.get()
    if run is None or run.threads is None:
        return _process_threads()
    return _limited("threads", run.threads)


def thread_share() -> int:
    """Return the threads that a parallel section may use: those of the process, divided by its runs in progress."""
    return max(1, max(_process_threads(), thread_count()) // runs_in_progress())


def _cores() -> int:
    """Return the cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _process_threads() -> int:
    """Return the threads of this process: PYMOO_GPUACO_THREADS, else its cores."""
    wanted = os.environ.get("PYMOO_GPUACO_THREADS", "")
    if not wanted:
        return _cores()
    if not wanted.isdecimal():
        raise ValueError(f"PYMOO_GPUACO_THREADS must be an integer in [1, {MOST_THREADS}], got {wanted!r}")
    return _limited(
        "PYMOO_GPUACO_THREADS", checks.integer("PYMOO_GPUACO_THREADS", int(wanted), 1, MOST_THREADS)
    )


def _limited(name: str, threads: int) -> int:
    """Return at most 64 threads, or 8 a core, with a warning: more would wait for each other beyond any time limit."""
    cores = _cores()
    most = max(_MOST_ON_ANY, _MOST_A_CORE * cores)
    if threads > most:
        _warn_of_the_limit(name, threads, most, cores)
    return min(threads, most)


@cache
def _warn_of_the_limit(name: str, threads: int, most: int, cores: int) -> None:
    """Warn once in a process."""
    warnings.warn(
        f"{name} is {threads}: {most} threads are used, the most for {cores} cores",
        stacklevel=4,
    )


def parallel_for(
    work: Callable[[int, int, int], None],
    items: int,
    threads: int,
    stop: NDArray | None = None,
    until: float | None = None,
) -> None:
    """Call ``work(thread, first, last)`` for equal ranges of 0 .. items-1 in parallel, and wait for all of them.

    Results must not depend on the division. An error in a range is raised after all ranges have ended. A call from
    within such work executes everything in the calling thread, because all threads of the pool may be busy.

    Long work reads ``stop`` (1,) uint8 and ends soon after it becomes 1: when ``CLOCK.monotonic()`` passes ``until``,
    and on an interrupt from the keyboard, which is raised after all ranges have ended.
    """
    threads = max(1, min(threads, items))
    if len(_in_progress) > 1:
        threads = min(threads, thread_share())
    if _pool_member.serves or (threads == 1 and stop is None):
        work(0, 0, items)
        return
    call = _Call(work, [items * t // threads for t in range(threads + 1)])
    try:
        _start(threads * runs_in_progress())  # no call waits for threads of another run
        for _ in range(threads):
            _calls.put(call)
        if until is None and threading.current_thread() is not threading.main_thread():
            call.run_parts()
        call.wait(stop, until)
    except BaseException:
        if stop is not None:
            stop[0] = 1
        call.finish()
        raise
    for error in call.ended:
        if error is not None:
            raise error


def processor_share(threads: int, longest: float = _MEASURING_SECONDS) -> float:
    """Measure the share of ``threads`` cores that this run gets, in (0, 1]: below 1 beside other runs or processes.

    It takes ``longest`` seconds of work, at most 10 ms.
    """
    block, shares = bytes(1 << 16), [0.0] * threads

    def work(thread: int, *_: int) -> None:
        began, busy = CLOCK.monotonic(), CLOCK.thread_time()
        while (worked := CLOCK.thread_time() - busy) < min(longest, _MEASURING_SECONDS):
            hashlib.blake2b(block)  # releases the GIL
        shares[thread] = worked / max(worked, CLOCK.monotonic() - began)

    parallel_for(work, threads, threads)
    share = min(sum(shares) / threads, thread_share() / threads, 1.0 / runs_in_progress())
    return 1.0 if share >= _FULL_SHARE else share


def in_slices(
    work: Callable[[int, int, int], None], columns: int, ended: Callable[[], bool]
) -> Callable[[int, int, int], None]:
    """Return ``work`` on rows of ``columns`` columns for `parallel_for`: a few rows at a time until ``ended()``."""
    rows = max(1, _SLICE // columns)

    def part(thread: int, first: int, last: int) -> None:
        for row in range(first, last, rows):
            if ended():
                break
            work(thread, row, min(row + rows, last))

    return part
