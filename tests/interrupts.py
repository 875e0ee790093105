"""Interrupts from the keyboard at a chosen moment, by an interval timer, and waiting for other processes."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers on this system")


@contextmanager
def timed_interrupts() -> Iterator[Callable[[float], object]]:
    """Yield a function that raises ``KeyboardInterrupt`` after the given seconds; 0.0 cancels it.

    An interrupt within a callback of the garbage collector, such as hypothesis adds, would be lost: there are none.
    """
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    callbacks = gc.callbacks[:]
    gc.callbacks.clear()
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        gc.callbacks[:] = callbacks


@contextmanager
def signals_wake_no_thread() -> Iterator[None]:
    """Deliver signals of the timer to another thread, as if each came just before the main thread blocks.

    Python runs their handlers in the main thread, which they do not wake.
    """
    end = threading.Event()
    other = threading.Thread(target=end.wait)
    other.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
        end.set()
        other.join()


def is_interrupted(seconds: float, work: Callable[[], object]) -> None:
    """Do ``work``, which an interrupt must end after the given seconds."""
    with timed_interrupts() as strike_after:
        strike_after(seconds)
        with pytest.raises(KeyboardInterrupt):
            work()


def wait_until(holds: Callable[[], object], seconds: float = 300.0) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
