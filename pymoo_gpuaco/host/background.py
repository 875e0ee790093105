"""Work in a thread of its own: while a device is busy, or where no interrupt from the keyboard must strike."""

from __future__ import annotations

import _thread  # threading's own start of a thread takes locks that an interrupt leaves locked
import queue
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundTask(Generic[T]):
    """What ``work()`` returns, from a thread of its own. The end of the process does not wait for it.

    An interrupt from the keyboard strikes the thread that waits, not the work.
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
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0.0:
                break
            try:
                self._news.get(timeout=left)
            except queue.Empty:
                break
        return self._ended

    @property
    def _ended(self) -> bool:
        return bool(self._results or self._errors)

    def result(self) -> T:
        """Return what has been worked out, when it has been waited for; an error of the work is raised here."""
        if self._errors:
            raise self._errors[0]
        return self._results[0]


def interruptible(work: Callable[[], T]) -> T:
    """Return ``work()`` from a thread of its own; an interrupt is raised at once, and the work goes on unheard.

    For what an interrupt would cut in two: imports, LLVM, numba, the start of CUDA. It must change nothing that the
    caller holds, who may go on without its end.
    """
    task = BackgroundTask(work)
    task.wait()
    return task.result()
