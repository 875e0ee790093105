"""Progress messages while engines compile, which takes seconds or minutes the first time."""

from __future__ import annotations

import _thread  # threading's own start of a thread takes locks that an interrupt leaves locked
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["announced", "begin", "counted", "counted_whole", "end", "first_alone", "so_far", "timed"]

_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a forked child lacks the thread that would unlock it
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
_watches: list[_Watch] = []
_log = logging.getLogger("pymoo_gpuaco")
CPU = "the CPU engine with numba"
_QUIET = 2.0  # seconds of compiling before the logger warns, where no messages were asked for
_EVERY = 0.5  # seconds between two looks at the clock
_MOMENT = 0.005  # s between two looks whether the first set-up of a kind has ended
_MOST_TO_WAIT = 20.0  # s, for a set-up that may itself wait for the one that waits for it
_first: dict[
    object, list[bool]
] = {}  # by kind: the first set-up in this process; not empty once it has ended
if hasattr(os, "register_at_fork"):  # a child lacks the thread that would end it
    os.register_at_fork(after_in_child=_first.clear)


class _Watch:
    """Measures how long compilers work, and reports it if there is ``say``. Simultaneous work counts once."""

    def __init__(self, say: Callable[[str], object] | None, quiet: float) -> None:
        self.say = say
        self.quiet = quiet  # seconds before the first message
        self.compiled: list[str] = []
        self.reported = 0  # of these
        self.starts = 0  # of compilers
        self.at_work = 0
        self.since = 0.0
        self.seconds = 0.0
        self.ticks = self.counts = self.over = False

    def so_far(self) -> float:
        """Seconds of compiling so far, including a compiler at work now."""
        return self.seconds + (time.perf_counter() - self.since if self.at_work else 0.0)

    def report(self) -> None:
        """Report what has been compiled since the last report."""
        new, self.reported = self.compiled[self.reported :], len(self.compiled)
        if self.say is not None:
            for what in new:
                self.say(f"compiling {what} ..")

    def tick(self) -> None:
        """Report after the quiet seconds; on a terminal, count the seconds."""
        while True:
            time.sleep(_EVERY)
            with _lock:
                if self.over:
                    return
                if self.so_far() < self.quiet:
                    continue
                self.report()
                if self.say is not None and sys.stderr.isatty():
                    self.counts = True
                    sys.stderr.write(f"\r{self.so_far():5.0f} s")
                    sys.stderr.flush()

    def end(self) -> None:
        """Stop reporting."""
        with _lock:
            self.over = True
            _watches.remove(self)
            if self.counts:
                sys.stderr.write("\r" + 7 * " " + "\r")
                sys.stderr.flush()


_all = _Watch(None, math.inf)
_watches.append(_all)


def so_far() -> float:
    """Seconds that compilers of this process have worked so far, those at work now among them."""
    with _lock:
        return _all.so_far()


@contextmanager
def counted(say: Callable[[str], object] | None = None, quiet: float = 0.0) -> Iterator[_Watch]:
    """Count the seconds that compilers work within the block: ``seconds`` of the yielded object. See `announced`."""
    watch = _Watch(say, quiet)
    with _lock:
        _watches.append(watch)
    try:
        yield watch
    finally:
        watch.end()


@contextmanager
def counted_whole() -> Iterator[None]:
    """Count the whole block if a compiler starts in it: linking, loading and caching belong to compiling."""
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
def first_alone(kind: object) -> Iterator[None]:
    """Let the first block of a kind in this process run alone: those of other threads begin when it has ended.

    It reads compiled code from the disk. Side by side, each block would take as long as all that reading.
    """
    own: list[bool] = []
    try:
        first, until = _first.setdefault(kind, own), time.monotonic() + _MOST_TO_WAIT
        while first is not own and not first and time.monotonic() < until:
            time.sleep(_MOMENT)
        yield
    finally:
        own.append(True)


class Timed:
    """How long a block took."""

    seconds = 0.0


@contextmanager
def timed() -> Iterator[Timed]:
    """Measure the block without what compilers work: ``seconds`` of the yielded object, once it is over."""
    took, began = Timed(), time.perf_counter()
    with counted() as compilers:
        yield took
    took.seconds = max(0.0, time.perf_counter() - began - compilers.seconds)


@contextmanager
def announced(say: Callable[[str], object] | None) -> Iterator[None]:
    """Call `say` with a line when a compiler starts, and with the seconds taken at the end of the block.

    With None the lines are warnings of the logger ``pymoo_gpuaco``, after compilers have worked for two seconds, unless
    an outer block reports already. On a terminal the seconds are counted on stderr.
    """
    with _lock:
        reported = say is None and any(watch.say for watch in _watches)
    if reported:
        yield
        return
    with counted(say or _warn, 0.0 if say else _QUIET) as watch:
        yield
    if watch.compiled and watch.seconds >= watch.quiet:
        watch.report()
        (say or _warn)(f"compiled in {watch.seconds:.1f} s")


def _warn(line: str) -> None:
    _log.warning("pymoo_gpuaco: %s", line)


def begin(what: str) -> None:
    """Note that a compiler starts to compile `what`; call `end` when it ends."""
    with _lock:
        now = time.perf_counter()
        for watch in _watches:
            if what not in watch.compiled:
                watch.compiled.append(what)
            if watch.at_work == 0:
                watch.since = now
            watch.starts += 1
            watch.at_work += 1
            if watch.quiet == 0.0:
                watch.report()
            if watch.say is not None and not watch.ticks:
                watch.ticks = True
                _thread.start_new_thread(watch.tick, ())


def end() -> None:
    """Note that a compiler has ended."""
    with _lock:
        now = time.perf_counter()
        for watch in _watches:
            if watch.at_work == 1:
                watch.seconds += now - watch.since
            watch.at_work = max(0, watch.at_work - 1)
