"""Interrupts from the keyboard at a chosen moment, by an interval timer."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers on this system")


@contextmanager
def timed_interrupts() -> Iterator[Callable[[float], object]]:
    """Give a function that lets a ``KeyboardInterrupt`` strike after so many seconds; after 0.0, none."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def is_interrupted(seconds: float, work: Callable[[], object]) -> None:
    """Do ``work``, which an interrupt must end after so many seconds."""
    with timed_interrupts() as strike_after:
        strike_after(seconds)
        with pytest.raises(KeyboardInterrupt):
            work()
