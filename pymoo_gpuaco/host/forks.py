"""What must be whole when the process forks: the start of CUDA, imports, compilation.

A child has one thread, the one that forked. A lock that another thread of its parent held at that moment stays
locked in the child for ever: Python's lock of a module under import, numba's of its compiler. So whoever takes such
locks holds ``undivided``, and a fork waits for it.
"""

from __future__ import annotations

import os
import threading

undivided = threading.RLock()

if hasattr(os, "register_at_fork"):
    # the child's only thread is the one that took the lock, so it may give it back
    os.register_at_fork(
        before=undivided.acquire, after_in_parent=undivided.release, after_in_child=undivided.release
    )
