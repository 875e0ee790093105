"""A pool of Python threads, one per core, for compiled functions, which release the GIL.

The pool belongs to the process; no object refers to it. A forked child starts a new pool.

A KeyboardInterrupt can be raised in the main thread between any two bytecodes, and could leave a Python lock locked.
Therefore this module uses no Python locks: threads are started and queues are used by single calls into C. The main
thread does not execute parts of divided work. Other calling threads do: otherwise background work would wait while
long work of the main thread occupies the pool.
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
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.runtime.background import LONGEST_BLOCK
from pymoo_gpuaco.runtime.clock import CLOCK

_SLICE = 50_000  # array entries between two checks of the deadline: some milliseconds
_APART = 128  # bytes: two cache lines, since processors fetch them in pairs
_MEASURED = 0.01  # s of work of each thread, to measure its share of a core
# Limits of threads: on two cores 128 ended a second's limit 0.1 s late, 256 2.8 s, and 1,000 9 s.
_MOST_ON_ANY, _MOST_A_CORE = 64, 8
_QUIET = 0.8  # a larger share counts as 1: threads are woken late, and clocks are coarse


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
            left = LONGEST_BLOCK  # an interrupt may lose the message
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
    """Reset the pool in a forked child, which has none of its threads."""
    global _calls, _started
    _calls = queue.SimpleQueue()
    _started = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


def thread_array(length: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Allocate zeros (length,) whose cache lines no other array shares, since threads would contend for them."""
    apart = _APART // np.dtype(dtype).itemsize
    return np.zeros(length + 2 * apart, dtype)[apart : apart + length]


def thread_count() -> int:
    """Return the number of threads of an engine: PYMOO_GPUACO_THREADS, else the cores this process may run on.

    More than 64 threads, and more than 8 a core, are not used, with a warning: they would wait for each other beyond
    any time limit.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("PYMOO_GPUACO_THREADS", "")
    if not wanted:
        return cores
    if not wanted.isdecimal():
        raise ValueError(f"PYMOO_GPUACO_THREADS must be an integer in [1, 1024], got {wanted!r}")
    threads = checks.integer("PYMOO_GPUACO_THREADS", int(wanted), 1, 1024)
    most = max(_MOST_ON_ANY, _MOST_A_CORE * cores)
    if threads > most:
        _warn_of_the_limit(threads, most, cores)
    return min(threads, most)


@cache
def _warn_of_the_limit(threads: int, most: int, cores: int) -> None:
    """Warn once in a process."""
    warnings.warn(
        f"PYMOO_GPUACO_THREADS is {threads}: {most} threads are used, the most for {cores} cores",
        stacklevel=3,
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
    if _pool_member.serves or (threads == 1 and stop is None):
        work(0, 0, items)
        return
    call = _Call(work, [items * t // threads for t in range(threads + 1)])
    try:
        _start(threads)
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


def processor_share(threads: int) -> float:
    """Measure the share of a core that each thread gets, in (0, 1]: below 1 if other processes run."""
    block, shares = bytes(1 << 18), [1.0] * threads

    def work(thread: int, *_: int) -> None:
        began, busy = CLOCK.monotonic(), CLOCK.thread_time()
        while (worked := CLOCK.thread_time() - busy) < _MEASURED:
            hashlib.blake2b(block)  # releases the GIL
        shares[thread] = worked / max(worked, CLOCK.monotonic() - began)

    parallel_for(work, threads, threads)
    share = sum(shares) / threads
    return 1.0 if share >= _QUIET else share


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
