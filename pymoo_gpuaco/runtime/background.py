"""Work in background threads, which an interrupt from the keyboard does not reach, and which forks wait for."""

from __future__ import annotations

import _thread  # threading.Thread.start acquires locks that an interrupt can leave locked
import atexit
import contextlib
import contextvars
import ctypes
import os
import queue
import signal
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from pymoo_gpuaco.runtime.clock import CLOCK

T = TypeVar("T")

# s; maximum wait: a signal that arrives just before a thread blocks does not wake it
LONGEST_BLOCK = 0.05

_fork_lock = threading.RLock()

if hasattr(os, "register_at_fork"):
    # the child's only thread is the one that acquired the lock, so it can release it
    os.register_at_fork(
        before=_fork_lock.acquire, after_in_parent=_fork_lock.release, after_in_child=_fork_lock.release
    )


_at_exit: list[Callable[[], object]] = []
_exiting = False


def at_exit(function: Callable[[], T]) -> Callable[[], T]:
    """Call ``function()`` before the interpreter exits, in reverse order; background threads may still run."""
    _at_exit.append(function)
    return function


class ProcessExits(BaseException):
    """The interpreter exits: background work must end. A BaseException, so that error handlers do not catch it."""


def check_not_exiting() -> None:
    """Raise ProcessExits if the interpreter exits; background work calls it between two calls of native libraries."""
    if _exiting:
        raise ProcessExits


@atexit.register
def _exit() -> None:
    global _exiting
    _exiting = True
    with contextlib.suppress(ValueError):  # the main thread has ended before
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has ended; what follows is short
    for function in reversed(_at_exit):
        function()
    _end_tasks()


_running: set[int] = set()  # threads of tasks
_LONGEST_EXIT = 2.0  # s; at exit, maximum wait for tasks

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)


def _end_tasks() -> None:
    """Raise ProcessExits in the threads of all tasks, and wait for their end.

    A thread that returns from C++ to Python after that is ended by the system; where it unwinds frames of C++, such as
    PyCUDA's, the process is aborted ("terminate called without an active exception").
    """
    for thread in tuple(_running):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(ProcessExits))
    until = CLOCK.monotonic() + _LONGEST_EXIT
    while _running and CLOCK.monotonic() < until:
        CLOCK.sleep(0.001)


class BackgroundTask(Generic[T]):
    """Call of ``work()`` in a background thread, and its result. At exit the work is ended, see `_end_tasks`.

    An interrupt from the keyboard is raised in the waiting thread and does not affect the work.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._completions: queue.SimpleQueue[None] = queue.SimpleQueue()
        _thread.start_new_thread(contextvars.copy_context().run, (self._do, work))  # with the run in progress

    def _do(self, work: Callable[[], T]) -> None:
        thread = _thread.get_ident()
        try:
            _running.add(thread)
            check_not_exiting()
            self._results.append(work())
        except BaseException as error:
            self._errors.append(error)
        finally:
            _running.discard(thread)
        self._completions.put(None)

    def wait(self, until: float | None = None) -> bool:
        """Wait for the end of the work, or until ``CLOCK.monotonic()`` is ``until``; return True if it has ended."""
        while not self._ended:
            left = LONGEST_BLOCK if until is None else until - CLOCK.monotonic()
            if left <= 0.0:
                break
            with contextlib.suppress(queue.Empty):
                self._completions.get(timeout=min(left, LONGEST_BLOCK))
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
    """Return ``work()``, run in a background thread. An interrupt is raised at once, and the work continues.

    A background thread runs it itself.

    Use it for work that must not be interrupted: imports, the start of CUDA. After an interrupt the caller
    continues while the work still runs, so the work must not change the caller's objects.
    """
    if _thread.get_ident() in _running:
        return work()
    task = BackgroundTask(work)
    task.wait()
    return task.result()


def fork_safe(work: Callable[[], T]) -> T:
    """Return ``work()`` by `interruptible`. A fork waits for its end.

    A forked child has only the thread that forked. A lock held by another thread, as by the start of CUDA,
    is never released in the child. One thread at a time runs such work: it must not wait for another thread that calls
    this function.
    """

    def locked() -> T:
        with _fork_lock:
            return work()

    is_locked = _fork_lock._is_owned()  # type: ignore[attr-defined]  # by this thread
    return work() if is_locked else interruptible(locked)
