"""Time spent in compilers, and progress messages: a first run on a GPU compiles kernels for seconds."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from pymoo_gpuaco.runtime.clock import CLOCK

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a forked child lacks the thread that would release the lock
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_log = logging.getLogger("pymoo_gpuaco")


class _Clock:
    """Time during which at least one compiler runs."""

    running = 0  # compilers that run now
    since = 0.0  # start of the current period
    seconds = 0.0  # sum of the earlier periods


_clock = _Clock()
_listeners: list[Callable[[str], None]] = []  # one per block of `announced`


def so_far() -> float:
    """Return the seconds for which compilers of this process have run so far."""
    with _lock:
        return _clock.seconds + (CLOCK.monotonic() - _clock.since if _clock.running else 0.0)


def begin(what: str) -> None:
    """Record the start of a compiler for `what`; call `end` when it ends."""
    with _lock:
        if _clock.running == 0:
            _clock.since = CLOCK.monotonic()
        _clock.running += 1
        for listener in _listeners:
            listener(what)


def end() -> None:
    """Record the end of a compiler."""
    with _lock:
        if _clock.running == 1:
            _clock.seconds += CLOCK.monotonic() - _clock.since
        _clock.running = max(0, _clock.running - 1)


@contextmanager
def timed() -> Iterator[SimpleNamespace]:
    """Measure the block without the time of compilers; afterwards ``seconds`` of the yielded object has the result."""
    took, began, before = SimpleNamespace(seconds=0.0), CLOCK.monotonic(), so_far()
    yield took
    took.seconds = max(0.0, CLOCK.monotonic() - began - (so_far() - before))


@contextmanager
def announced(say: Callable[[str], object] | None) -> Iterator[None]:
    """Call `say` with a line when a compiler starts, and with the seconds of compilation at the end of the block.

    With None the lines are warnings of the logger ``pymoo_gpuaco``, unless an outer block already reports.
    """
    report, before, said = say or _warn, so_far(), list[str]()

    def listen(what: str) -> None:
        """Report once that `what` is compiled."""
        if what not in said:
            said.append(what)
            report(f"compiling {what} ..")

    with _lock:
        reported = say is None and bool(_listeners)
        if not reported:
            _listeners.append(listen)
    try:
        yield
    finally:
        with _lock:
            if not reported:
                _listeners.remove(listen)
    if said:
        report(f"compiled in {so_far() - before:.1f} s")


def _warn(line: str) -> None:
    _log.warning("pymoo_gpuaco: %s", line)
