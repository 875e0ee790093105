"""Compiling takes seconds, once for each kind of engine: whoever waits for it is told what and how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["announced", "begin", "counted", "end"]

_lock = threading.Lock()
_watches: list[_Watch] = []


class _Watch:
    """Somebody who is told, and how long compilers have worked since: nested and simultaneous work counts once."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say = say
        self.told: set[str] = set()
        self.at_work = 0
        self.since = 0.0
        self.seconds = 0.0


@contextmanager
def counted() -> Iterator[_Watch]:
    """Count the seconds that compilers work within the block, as ``seconds`` of what it gives."""
    watch = _Watch(lambda _: None)
    with _lock:
        _watches.append(watch)
    try:
        yield watch
    finally:
        with _lock:
            _watches.remove(watch)


@contextmanager
def announced(say: Callable[[str], object] | None) -> Iterator[None]:
    """Give `say` a line when a compiler starts, and one with the seconds at the end; None tells nobody."""
    if say is None:
        yield
        return
    with counted() as watch:
        watch.say = say
        yield
    if watch.told:
        say(f"compiled in {watch.seconds:.1f} s")


def begin(what: str) -> None:
    """Call this where a compiler starts on `what`, and `end` where it ends."""
    with _lock:
        new = [watch for watch in _watches if what not in watch.told]
        for watch in _watches:
            watch.told.add(what)
            if watch.at_work == 0:
                watch.since = time.perf_counter()
            watch.at_work += 1
    for watch in new:
        watch.say(f"compiling {what} ..")


def end() -> None:
    """The counterpart of `begin`."""
    with _lock:
        for watch in _watches:
            if watch.at_work == 1:
                watch.seconds += time.perf_counter() - watch.since
            watch.at_work = max(0, watch.at_work - 1)
