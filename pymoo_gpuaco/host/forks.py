"""Work during which the process must not fork: the start of CUDA, imports, compilation.

A child has one thread, the one that forked. If another thread of the parent held a lock at that moment, the lock stays
locked in the child for ever. Python holds such a lock while it imports a module, and numba while it compiles. So this
work runs in `fork_safe`, and a fork waits for its end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from pymoo_gpuaco.host.background import interruptible

T = TypeVar("T")

_fork_lock = threading.RLock()

if hasattr(os, "register_at_fork"):
    # the child's only thread is the one that took the lock, so it may give it back
    os.register_at_fork(
        before=_fork_lock.acquire, after_in_parent=_fork_lock.release, after_in_child=_fork_lock.release
    )


class _Here(threading.local):
    holds = False  # whether this thread is in ``fork_safe``


_here = _Here()


def fork_safe(work: Callable[[], T]) -> T:
    """Return ``work()``. Forks wait for its end, and an interrupt from the keyboard does not cut it short.

    Only one thread of the process does such work at a time, so the work must not wait for another thread that wants to.
    """

    def locked() -> T:
        with _fork_lock:
            _here.holds = True
            try:
                return work()
            finally:
                _here.holds = False

    return work() if _here.holds else interruptible(locked)
