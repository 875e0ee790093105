"""All cores, by plain threads: the compiled functions release the GIL.

numba's own parallel layers die in forked children (OpenMP) or under two calling threads (workqueue), and compile
several times slower; a pool of Python threads does neither. The pool belongs to the process, never to an object
that is copied, and a forked child makes its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pymoo_gpuaco.colony import checks

_pool: ThreadPoolExecutor | None = None
_pool_pid = -1
_pool_lock = threading.Lock()


def thread_count() -> int:
    """Threads that an engine uses: PYMOO_GPUACO_THREADS, else the cores this process may run on."""
    wanted = os.environ.get("PYMOO_GPUACO_THREADS", "")
    if wanted:
        if not wanted.isdigit():
            raise ValueError(f"PYMOO_GPUACO_THREADS must be an integer in [1, 1024], got {wanted!r}")
        return checks.integer("PYMOO_GPUACO_THREADS", int(wanted), 1, 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _executor() -> ThreadPoolExecutor:
    global _pool, _pool_pid
    with _pool_lock:
        if _pool is None or _pool_pid != os.getpid():
            _pool = ThreadPoolExecutor(1024, thread_name_prefix="pymoo_gpuaco")
            _pool_pid = os.getpid()
        return _pool


def spread(work: Callable[[int, int, int], None], items: int, threads: int) -> None:
    """Call ``work(thread, first, last)`` for equal ranges of 0 .. items-1, side by side; wait for all.

    Results must not depend on the split; an error of any range is raised after all have ended.
    """
    threads = max(1, min(threads, items))
    if threads == 1:
        work(0, 0, items)
        return
    bounds = [items * t // threads for t in range(threads + 1)]
    pool = _executor()
    others = [pool.submit(work, t, bounds[t], bounds[t + 1]) for t in range(1, threads)]
    try:
        work(0, bounds[0], bounds[1])
    finally:
        errors = [future.exception() for future in others]
    for error in errors:
        if error is not None:
            raise error
