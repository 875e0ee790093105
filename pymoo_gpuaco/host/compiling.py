"""Compiling takes seconds, once for each kind of engine: whoever waits for it is told what and how long."""

from __future__ import annotations

import _thread  # threading's own start of a thread takes locks that an interrupt leaves locked
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["announced", "begin", "counted", "counted_whole", "end"]

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child must not find it locked by a thread that it has not got
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_watches: list[_Watch] = []
_log = logging.getLogger("pymoo_gpuaco")
CPU = "the CPU engine with numba"
_UNTOLD = 2.0  # seconds of compiling that nobody is told of who has not asked
_EVERY = 0.5  # seconds between two looks at the clock


class _Watch:
    """Somebody who is told, or nobody, and how long compilers have worked: simultaneous work counts once."""

    def __init__(self, say: Callable[[str], object] | None, untold: float) -> None:
        self.say = say
        self.untold = untold
        self.compiled: list[str] = []
        self.told = 0  # of these
        self.starts = 0  # of compilers
        self.at_work = 0
        self.since = 0.0
        self.seconds = 0.0
        self.ticks = self.counts = self.over = False

    def so_far(self) -> float:
        """Seconds of compiling, the present among them."""
        return self.seconds + (time.perf_counter() - self.since if self.at_work else 0.0)

    def tell(self) -> None:
        """Say what is new."""
        new, self.told = self.compiled[self.told :], len(self.compiled)
        if self.say is not None:
            for what in new:
                self.say(f"compiling {what} ..")

    def tick(self) -> None:
        """Tell late who is told late; count seconds where somebody sits before a terminal."""
        while True:
            time.sleep(_EVERY)
            with _lock:
                if self.over:
                    return
                if self.so_far() < self.untold:
                    continue
                self.tell()
                if self.say is not None and sys.stderr.isatty():
                    self.counts = True
                    sys.stderr.write(f"\r{self.so_far():5.0f} s")
                    sys.stderr.flush()

    def end(self) -> None:
        """Be told no more."""
        with _lock:
            self.over = True
            _watches.remove(self)
            if self.counts:
                sys.stderr.write("\r" + 7 * " " + "\r")
                sys.stderr.flush()


@contextmanager
def counted(say: Callable[[str], object] | None = None, untold: float = 0.0) -> Iterator[_Watch]:
    """Count the seconds that compilers work within the block, as ``seconds`` of what it gives; see `announced`."""
    watch = _Watch(say, untold)
    with _lock:
        _watches.append(watch)
    try:
        yield watch
    finally:
        watch.end()


@contextmanager
def counted_whole() -> Iterator[None]:
    """Count all of a block if a compiler starts in it: what it has made is linked, loaded and kept besides."""
    began = time.perf_counter()
    with _lock:
        before = [(watch, watch.starts, watch.seconds) for watch in _watches if watch.at_work == 0]
    try:
        yield
    finally:
        with _lock:
            for watch, starts, seconds in before:
                if watch.starts > starts and watch.at_work == 0:
                    watch.seconds = seconds + time.perf_counter() - began


@contextmanager
def announced(say: Callable[[str], object] | None) -> Iterator[None]:
    """Give `say` a line when a compiler starts, and one with the seconds at the end.

    With None the logger ``pymoo_gpuaco`` gets the same as warnings, when compilers have worked for two seconds, unless
    somebody is told already. Where stderr is a terminal the seconds are counted there meanwhile.
    """
    with _lock:
        told = say is None and any(watch.say for watch in _watches)
    if told:
        yield
        return
    with counted(say or _warn, 0.0 if say else _UNTOLD) as watch:
        yield
    if watch.compiled and watch.seconds >= watch.untold:
        watch.tell()
        (say or _warn)(f"compiled in {watch.seconds:.1f} s")


def _warn(line: str) -> None:
    _log.warning("pymoo_gpuaco: %s", line)


def begin(what: str) -> None:
    """Call this where a compiler starts on `what`, and `end` where it ends."""
    with _lock:
        for watch in _watches:
            if what not in watch.compiled:
                watch.compiled.append(what)
            if watch.at_work == 0:
                watch.since = time.perf_counter()
            watch.starts += 1
            watch.at_work += 1
            if watch.untold == 0.0:
                watch.tell()
            if watch.say is not None and not watch.ticks:
                watch.ticks = True
                _thread.start_new_thread(watch.tick, ())


def end() -> None:
    """The counterpart of `begin`."""
    with _lock:
        for watch in _watches:
            if watch.at_work == 1:
                watch.seconds += time.perf_counter() - watch.since
            watch.at_work = max(0, watch.at_work - 1)
