"""Work in a background thread: while a device is busy, or where an interrupt from the keyboard would do harm."""

from __future__ import annotations

import _thread  # threading's own start of a thread takes locks that an interrupt leaves locked
import atexit
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

# s; a signal that arrives just before a thread blocks does not wake it, so no wait is longer than this
LONGEST_BLOCK = 0.05

_fork_lock = threading.RLock()

if hasattr(os, "register_at_fork"):
    # the child's only thread is the one that took the lock, so it may give it back
    os.register_at_fork(
        before=_fork_lock.acquire, after_in_parent=_fork_lock.release, after_in_child=_fork_lock.release
    )


class _Here(threading.local):
    holds = False  # whether this thread is in ``fork_safe``


_here = _Here()


_at_exit: list[Callable[[], object]] = []
_exiting = False


def at_exit(end: Callable[[], T]) -> Callable[[], T]:
    """Call ``end()`` before the interpreter exits, those registered last first; background work may still go on."""
    _at_exit.append(end)
    return end


class ProcessEnds(BaseException):
    """Ends background work as the interpreter exits; nothing that handles errors goes on in another way."""


def check_goes_on() -> None:
    """Raise ProcessEnds if the interpreter exits; work that calls native libraries asks between two steps."""
    if _exiting:
        raise ProcessEnds


@atexit.register
def _exit() -> None:
    global _exiting
    _exiting = True
    for end in reversed(_at_exit):
        end()


class BackgroundTask(Generic[T]):
    """Runs ``work()`` in a background thread and keeps its result. The process ends without waiting for it.

    An interrupt from the keyboard reaches the waiting thread and leaves the work alone.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._news: queue.SimpleQueue[None] = queue.SimpleQueue()
        _thread.start_new_thread(self._do, (work,))

    def _do(self, work: Callable[[], T]) -> None:
        try:
            self._results.append(work())
        except BaseException as error:
            self._errors.append(error)
        self._news.put(None)

    def wait(self, until: float | None = None) -> bool:
        """Wait for the end of the work, or until ``time.monotonic()`` passes ``until``; whether it has ended."""
        while not self._ended:
            left = LONGEST_BLOCK if until is None else until - time.monotonic()
            if left <= 0.0:
                break
            with contextlib.suppress(queue.Empty):
                self._news.get(timeout=min(left, LONGEST_BLOCK))
        return self._ended

    @property
    def _ended(self) -> bool:
        return bool(self._results or self._errors)

    def result(self) -> T:
        """Return the result after `wait`, or raise the error of the work."""
        if self._errors:
            raise self._errors[0]
        return self._results[0]


def interruptible(work: Callable[[], T]) -> T:
    """Return ``work()``, run in a background thread. An interrupt is raised at once, and the work goes on.

    For work that an interrupt would leave half done: imports, LLVM, numba, the start of CUDA. After an interrupt the
    caller continues while the work still runs, so the work must not change the caller's objects.
    """
    task = BackgroundTask(work)
    task.wait()
    return task.result()


def fork_safe(work: Callable[[], T]) -> T:
    """Return ``work()``, `interruptible`. A fork waits for its end.

    A forked child has one thread, the one that forked. A lock that another thread held at that moment stays locked in
    the child for ever, and numba and the start of CUDA hold such locks. Only one thread of the process does such work
    at a time, so the work must not wait for another thread that wants to.
    """

    def locked() -> T:
        with _fork_lock:
            _here.holds = True
            try:
                return work()
            finally:
                _here.holds = False

    return work() if _here.holds else interruptible(locked)
