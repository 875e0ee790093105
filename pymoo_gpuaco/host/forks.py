"""What must be whole when the process forks: the start of CUDA, imports, compilation.

A child has one thread, the one that forked. A lock that another thread of its parent held at that moment stays
locked in the child for ever: Python's lock of a module under import, numba's of its compiler. So whoever takes such
locks does so by ``whole``, and a fork waits for it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from pymoo_gpuaco.host.background import interruptible

T = TypeVar("T")

_undivided = threading.RLock()

if hasattr(os, "register_at_fork"):
    # the child's only thread is the one that took the lock, so it may give it back
    os.register_at_fork(
        before=_undivided.acquire, after_in_parent=_undivided.release, after_in_child=_undivided.release
    )


class _Here(threading.local):
    holds = False  # whether this thread is in ``whole``


_here = _Here()


def whole(work: Callable[[], T]) -> T:
    """Return ``work()``, which no fork and no interrupt from the keyboard cuts in two, see ``apart``.

    One such work is done at a time in the process. It must not wait for other threads that do the like.
    """

    def alone() -> T:
        with _undivided:
            _here.holds = True
            try:
                return work()
            finally:
                _here.holds = False

    return work() if _here.holds else interruptible(alone)
