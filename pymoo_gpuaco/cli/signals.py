"""SIGTERM, which job schedulers send before they kill, ends a run as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM has come."""


@contextmanager
def sigterm_as_ctrl_c() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM, for the length of a with block; outside the main thread it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no Ctrl-C and no SIGTERM break a with block that takes milliseconds, such as writing a tour."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
