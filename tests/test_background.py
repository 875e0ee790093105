"""Work that goes on in a thread of its own."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from pymoo_gpuaco.runtime.background import BackgroundTask, interruptible
from pymoo_gpuaco.runtime.threads import spread
from tests.interrupts import is_interrupted, needs_timer, signals_wake_nobody


def test_what_the_work_returns_is_there_after_waiting():
    work = BackgroundTask(lambda: threading.current_thread().ident)
    assert work.wait()
    assert work.result() not in (None, threading.current_thread().ident)
    assert work.wait(0.0)  # once more, and at any time


def test_waiting_ends_at_a_moment_and_can_go_on():
    goes_on = threading.Event()
    work = BackgroundTask(goes_on.wait)
    assert not work.wait(time.monotonic() - 1.0)
    assert not work.wait(time.monotonic() + 0.01)
    goes_on.set()
    assert work.wait()
    assert work.result() is True


def test_an_error_of_the_work_is_raised_where_its_result_is_wanted():
    def fail() -> None:
        raise ZeroDivisionError("of the work")

    work = BackgroundTask(fail)
    assert work.wait()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of the work"):
            work.result()


@needs_timer
def test_an_interrupt_that_does_not_wake_the_waiting_thread_is_raised():
    goes_on, ended = threading.Event(), []
    with signals_wake_nobody():
        is_interrupted(0.1, lambda: interruptible(lambda: ended.append(goes_on.wait(10.0))))
    assert not ended  # the work goes on
    goes_on.set()


@needs_timer
def test_an_interrupt_that_does_not_wake_the_thread_stops_work_of_several_threads():
    stop, waited = np.zeros(1, np.uint8), []

    def work(thread: int, first: int, last: int) -> None:
        until = time.monotonic() + 10.0
        while not stop[0] and time.monotonic() < until:
            time.sleep(0.001)
        waited.append(time.monotonic() < until)

    with signals_wake_nobody():
        is_interrupted(0.1, lambda: spread(work, 2, 2, stop))
    assert waited == [True, True]
