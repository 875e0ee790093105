"""A pool of Python threads, one a core: compiled functions release the GIL.

numba's own parallel layers die in forked children (OpenMP) or under two calling threads (workqueue), and they compile
several times slower. The pool belongs to the process, so no object that is copied holds it. A forked child makes a pool
of its own.

A KeyboardInterrupt can strike the main thread between any two steps of Python, and could leave a Python lock locked. So
there is none here: threads are started and queues are used by single calls into C. Of work in several parts the main
thread does none itself. Any other takes its share: else what goes on in the background would wait where long work
of the main thread has taken the pool.
"""

from __future__ import annotations

import _thread  # threading's own start of a thread takes locks that an interrupt leaves locked
import contextlib
import hashlib
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable

from numpy.typing import NDArray

from pymoo_gpuaco import checks

# s; an interrupt may lose the message of a part that ended, and one that comes just before a thread blocks does not
# wake it
_LOOK_AGAIN = 0.05
# Entries of the rows that a thread takes on at once: some milliseconds, after which it asks whether to stop.
_SLICE = 50_000
_MEASURED = 0.01  # s of work of each thread, by which its share of the processor is measured
_QUIET = 0.8  # a larger share counts as all: threads are woken late, and clocks are coarse


class _Call:
    """One call of ``spread``: the parts not started yet, and the errors, or None, of those that have ended."""

    def __init__(self, work: Callable[[int, int, int], None], bounds: list[int]) -> None:
        self.work = work
        self.size = len(bounds) - 1
        self.parts = deque(zip(range(self.size), bounds[:-1], bounds[1:], strict=True))
        self.ended: list[BaseException | None] = []
        self.news: queue.SimpleQueue[None] = queue.SimpleQueue()

    def take(self) -> None:
        """Work on one part, if any is left."""
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
        self.news.put(None)

    def help(self) -> None:
        """Work on parts until none is left."""
        _here.serves = True
        try:
            while self.parts:
                self.take()
        finally:
            _here.serves = False

    def wait(self, stop: NDArray | None, until: float | None) -> None:
        """Wait until all parts have ended; set ``stop[0]`` to 1 when the clock shows ``until``."""
        while len(self.ended) < self.size:
            left = _LOOK_AGAIN
            if until is not None and stop is not None and not stop[0]:
                left = min(max(until - time.monotonic(), 0.0), left)
                if left == 0.0:
                    stop[0] = 1
                    continue
            with contextlib.suppress(queue.Empty):
                self.news.get(timeout=left)

    def finish(self) -> None:
        """Wait for the end of all parts in spite of interrupts: after it the caller's arrays are not used any more."""
        while len(self.ended) < self.size:
            try:
                for _ in range(len(self.parts)):  # the interrupt may have come before they were queued
                    _calls.put(self)
                self.news.get(timeout=_LOOK_AGAIN)
            except (queue.Empty, KeyboardInterrupt):
                pass


_calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
_started = 0


class _Here(threading.local):
    serves = False  # whether this thread is one of the pool


_here = _Here()


def _serve(calls: queue.SimpleQueue[_Call]) -> None:
    _here.serves = True
    while True:
        calls.get().take()


def _start(threads: int) -> None:
    """Start threads until this number serves. A race or an interrupt may start one more, which does no harm."""
    global _started
    while _started < threads:
        try:
            _thread.start_new_thread(_serve, (_calls,))
        except RuntimeError:  # the system gives no more of them
            if _started == 0:
                raise
            return
        _started += 1


def _begin_anew() -> None:
    """Forget the threads, which a forked child does not have."""
    global _calls, _started
    _calls = queue.SimpleQueue()
    _started = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def thread_count() -> int:
    """Threads that an engine uses: PYMOO_GPUACO_THREADS, else the cores this process may run on."""
    wanted = os.environ.get("PYMOO_GPUACO_THREADS", "")
    if wanted:
        if not wanted.isdecimal():
            raise ValueError(f"PYMOO_GPUACO_THREADS must be an integer in [1, 1024], got {wanted!r}")
        return checks.integer("PYMOO_GPUACO_THREADS", int(wanted), 1, 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(
    work: Callable[[int, int, int], None],
    items: int,
    threads: int,
    stop: NDArray | None = None,
    until: float | None = None,
) -> None:
    """Call ``work(thread, first, last)`` for equal ranges of 0 .. items-1 in parallel, and wait for all of them.

    Results must not depend on the split. An error in a range is raised after all ranges have ended. A call from within
    spread work does everything in the calling thread, as all threads of the pool may be busy.

    Long work reads ``stop`` (1,) uint8 and ends soon after it has become 1. It becomes 1 when ``time.monotonic()``
    passes ``until``, and on an interrupt from the keyboard, which is raised after all ranges have ended.
    """
    threads = max(1, min(threads, items))
    if _here.serves or (threads == 1 and stop is None):
        work(0, 0, items)
        return
    call = _Call(work, [items * t // threads for t in range(threads + 1)])
    try:
        _start(threads)
        for _ in range(threads):
            _calls.put(call)
        if until is None and threading.current_thread() is not threading.main_thread():
            call.help()
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
    """Measure the share of a core that each thread gets now, in (0, 1]: less where other processes work."""
    block, shares = bytes(1 << 18), [1.0] * threads

    def work(thread: int, *_: int) -> None:
        began, busy = time.monotonic(), time.thread_time()
        while (worked := time.thread_time() - busy) < _MEASURED:
            hashlib.blake2b(block)  # which lets other threads go on
        shares[thread] = worked / max(worked, time.monotonic() - began)

    spread(work, threads, threads)
    share = sum(shares) / threads
    return 1.0 if share >= _QUIET else share


def in_slices(
    work: Callable[[int, int, int], None], columns: int, ended: Callable[[], bool]
) -> Callable[[int, int, int], None]:
    """Return ``work`` on rows of this many columns, for `spread`, a few rows at a time until ``ended()``."""
    together = max(1, _SLICE // columns)

    def part(thread: int, first: int, last: int) -> None:
        for row in range(first, last, together):
            if ended():
                break
            work(thread, row, min(row + together, last))

    return part
