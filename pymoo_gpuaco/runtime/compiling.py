"""Time that compilers take, and messages while they do: the first run of a kind compiles for seconds or minutes."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["announced", "begin", "counted_whole", "end", "so_far", "timed"]

CPU = "the CPU engine with numba"
_QUIET = 2.0  # seconds of compiling with numba before the logger warns, where no messages were asked for
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a forked child lacks the thread that would unlock it
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_log = logging.getLogger("pymoo_gpuaco")


class _Clock:
    """Time during which at least one compiler works."""

    starts = 0  # of compilers
    at_work = 0
    since = 0.0
    seconds = 0.0  # before those at work now


_clock = _Clock()
_listeners: list[Callable[[str], None]] = []  # of the blocks of `announced`


def so_far() -> float:
    """Seconds that compilers of this process have worked so far, those at work now among them."""
    with _lock:
        return _clock.seconds + (time.perf_counter() - _clock.since if _clock.at_work else 0.0)


def begin(what: str) -> None:
    """Note that a compiler starts to compile `what`; call `end` when it ends."""
    with _lock:
        if _clock.at_work == 0:
            _clock.since = time.perf_counter()
        _clock.starts += 1
        _clock.at_work += 1
        for listener in _listeners:
            listener(what)


def end() -> None:
    """Note that a compiler has ended."""
    with _lock:
        if _clock.at_work == 1:
            _clock.seconds += time.perf_counter() - _clock.since
        _clock.at_work = max(0, _clock.at_work - 1)


@contextmanager
def counted_whole() -> Iterator[None]:
    """Count the whole block if a compiler starts in it: linking, loading and caching belong to compiling."""
    began = time.perf_counter()
    with _lock:
        alone, starts, seconds = _clock.at_work == 0, _clock.starts, _clock.seconds
    try:
        yield
    finally:
        with _lock:
            if alone and _clock.starts > starts and _clock.at_work == 0:
                _clock.seconds = seconds + time.perf_counter() - began


class Timed:
    """Seconds that a block took."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Timed]:
    """Measure the block without what compilers work: ``seconds`` of the yielded object, once it is over."""
    took, began, before = Timed(), time.perf_counter(), so_far()
    yield took
    took.seconds = max(0.0, time.perf_counter() - began - (so_far() - before))


@contextmanager
def announced(say: Callable[[str], object] | None) -> Iterator[None]:
    """Call `say` with a line when a compiler starts, and with the seconds taken at the end of the block.

    With None the lines are warnings of the logger ``pymoo_gpuaco``, unless an outer block reports already.
    """
    report, before, said = say or _warn, so_far(), list[str]()

    def listen(what: str) -> None:
        """Report once that `what` is compiled; the logger reports numba only after `_QUIET` seconds."""
        soon = say is not None or what != CPU or so_far() - before >= _QUIET
        if soon and what not in said:
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
