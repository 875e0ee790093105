"""All cores, by plain threads: the compiled functions release the GIL.

numba's own parallel layers die in forked children (OpenMP) or under two calling threads (workqueue), and compile
several times slower; a pool of Python threads does neither. The pool belongs to the process, never to an object
that is copied, and a forked child makes its own.

A KeyboardInterrupt strikes the main thread between any two steps of Python. So nothing here is a lock that it could
leave locked: threads are started and queues used by single calls into C, and the main thread works on no part itself
where there is more than one.
"""

from __future__ import annotations

import _thread  # threading's own start of a thread takes locks that an interrupt leaves locked
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable

from numpy.typing import NDArray

from pymoo_gpuaco import checks

_LOOK_AGAIN = 0.05  # s; only where an interrupt has swallowed the news of an end
# Entries of the rows that a thread takes on at once: some milliseconds, after which it asks whether to stop.
_SLICE = 50_000


class _Call:
    """One call of ``spread``: parts that nobody has begun, and how those that ended did so."""

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

    def wait(self, stop: NDArray | None, until: float | None) -> None:
        """Until all parts have ended; ``stop[0]`` becomes 1 when the clock shows ``until``."""
        while len(self.ended) < self.size:
            left = None
            if until is not None and stop is not None and not stop[0]:
                left = max(until - time.monotonic(), 0.0)
            try:
                self.news.get(timeout=left)
            except queue.Empty:
                assert stop is not None
                stop[0] = 1

    def finish(self) -> None:
        """Wait whatever happens: nobody may work on arrays that the caller has taken back."""
        while len(self.ended) < self.size:
            try:
                for _ in range(len(self.parts)):  # the interrupt may have come before they were told of
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
    """See to it that so many threads serve. Started twice by a race or an interrupt, one more does no harm."""
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
    """In a forked child, which has none of the threads."""
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
    """Call ``work(thread, first, last)`` for equal ranges of 0 .. items-1, side by side; wait for all.

    Results must not depend on the split; an error of any range is raised after all have ended. Called from work that is
    itself spread, it does all in the thread that calls: where all threads are at work, nobody is left to wait for.

    Long work reads ``stop`` (1,) uint8 and ends soon after it has become 1: on an interrupt from the keyboard, which is
    raised when all have ended, and when ``time.monotonic()`` passes ``until``, which is no error.
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
        call.wait(stop, until)
    except BaseException:
        if stop is not None:
            stop[0] = 1
        call.finish()
        raise
    for error in call.ended:
        if error is not None:
            raise error


def in_slices(
    work: Callable[[int, int, int], None], columns: int, ended: Callable[[], bool]
) -> Callable[[int, int, int], None]:
    """Return ``work`` on rows of so many columns, for `spread`, a few rows at a time until ``ended()``."""
    together = max(1, _SLICE // columns)

    def part(thread: int, first: int, last: int) -> None:
        for row in range(first, last, together):
            if ended():
                break
            work(thread, row, min(row + together, last))

    return part
