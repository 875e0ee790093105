"""End of an engine's work: at a deadline, or on an interrupt from the keyboard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, TypeVar

import numpy as np

from pymoo_gpuaco.runtime import compiling, threads
from pymoo_gpuaco.runtime.clock import CLOCK

T = TypeVar("T")

# Signal handlers that are deferred to the end of an engine's call, and the signals that may have them.
DEFERRED: list[Callable[[int, Any], object]] = [signal.default_int_handler]
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)]


class Stop:
    """A flag that compiled loops read at every step, and the deadline ``until`` at which it is set."""

    def __init__(self, until: float | None = None) -> None:
        self.flag = np.zeros(1, np.uint8)
        self.until = until  # by CLOCK.monotonic()
        self.interrupted = False

    def reset(self) -> None:
        """Clear the flag at the start of a call, except while interrupted."""
        self.flag[0] = 0
        if self.interrupted:  # afterwards: another thread may interrupt in between
            self.flag[0] = 1

    def interrupt(self) -> None:
        """End the current work soon; may be called from any thread."""
        self.interrupted = True
        self.flag[0] = 1

    def is_set(self) -> bool:
        """Return True if the flag is set."""
        return bool(self.flag[0])

    def passed(self) -> bool:
        """Return True after the deadline or an interrupt."""
        return self.interrupted or (self.until is not None and CLOCK.monotonic() >= self.until)

    def ended(self) -> bool:
        """Return True if work must end now, and set the flag then."""
        if self.passed():
            self.flag[0] = 1
        return self.is_set()

    def parallel_for(self, work: Callable[[int, int, int], None], items: int, n_threads: int) -> None:
        """Call ``threads.parallel_for`` for work that reads the flag."""
        threads.parallel_for(work, items, n_threads, self.flag, self.until)

    def parallel_dynamic(
        self, work: Callable[[int, Iterator[int]], None], items: int, n_threads: int
    ) -> None:
        """Call ``work(thread, numbers)`` on threads, which share the numbers 0 .. items-1 dynamically.

        A thread gets its next number when it has finished the last one. After the flag is set there are no more.
        """
        queue = count()

        def numbers() -> Iterator[int]:
            while (i := next(queue)) < items and not self.is_set():
                yield i

        self.parallel_for(lambda thread, *_: work(thread, numbers()), min(items, n_threads), n_threads)


class StoppableEngine:
    """Base of engines whose calls end by ``stop``, see ``backends.protocol.Stoppable``."""

    stop: Stop

    def stop_at(self, moment: float | None) -> None:
        """End the following calls soon after ``CLOCK.monotonic()`` shows ``moment``."""
        self.stop.until = moment


class SetUpStop(Stop):
    """Deadline of optional set-up work. The time of compilers does not count."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__()
        self.end = None if seconds is None else self._now() + seconds

    @staticmethod
    def _now() -> float:
        return CLOCK.monotonic() - compiling.so_far()

    def passed(self) -> bool:
        """Return True after the deadline."""
        return self.end is not None and self._now() >= self.end


def end_on_interrupt(work: Callable[[], T], *stops: Stop) -> T:
    """Return ``work()``. In the main thread an interrupt ends it early by the stops, and is raised after its end.

    An interrupt is a signal whose handler is in ``DEFERRED``: Ctrl-C, unless the user has set another handler.
    """
    # without their frames, which would keep local variables, such as a kernel of an engine
    received: list[int] = []

    def defer(number: int, _: Any) -> None:
        received.append(number)
        for stop in stops:
            stop.interrupt()

    before: dict[int, Any] = {}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        for stop in stops:
            stop.interrupted = False

    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        before = {number: one for number, one in handlers.items() if any(one is other for other in DEFERRED)}
    try:
        for number in before:
            signal.signal(number, defer)
        return work()
    finally:
        try:
            restore()
        except BaseException:  # raised by a handler that is already restored
            restore()
            raise
        if received:
            before[received[0]](received[0], None)
