"""Operations of compiled functions that numba lacks: atomic addition, and a matrix as a view of a vector.

`build` replaces the functions of ``INTRINSICS`` by machine instructions; their Python source is correct in one thread.

With atomic addition threads share tasks, and wait for each other, without the GIL. Taking a task in Python needs the
GIL, for which threads wait for each other: on 32 cores about 60 microseconds a task.
"""

from __future__ import annotations

import os

from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

_POLLS = 1 << 10  # up to 50 microseconds, after which a waiting thread lets another one run on its core


@inlined
def atomic_add(array, index, value):  # type: ignore[no-untyped-def]
    """Add to an entry of an int64 array and return its value before.

    A thread that reads the new value in this way also sees all that the adding thread wrote earlier.
    """
    before = array[index]
    array[index] += value
    return before


@inlined
def atomic_load(array, index):  # type: ignore[no-untyped-def]
    """Return an entry of an int64 array, and see all that the threads wrote before they added to it."""
    return array[index]


@inlined
def pause_thread() -> None:
    """Tell the processor that a thread waits: else it slows the other thread of its core."""


@inlined
def yield_core() -> None:
    """Offer the core of this thread to another one."""
    os.sched_yield()


@inlined
def as_matrix(vector, rows, columns):  # type: ignore[no-untyped-def]
    """Return the beginning of a vector as a matrix (rows, columns), without a copy."""
    return vector[: rows * columns].reshape(rows, columns)


INTRINSICS = (atomic_add, atomic_load, pause_thread, yield_core, as_matrix)


@compiled_callee
def await_count(array, index, wanted):  # type: ignore[no-untyped-def]
    """Wait until an entry, which other threads increase by `atomic_add`, is at least ``wanted``."""
    polls = 0
    while atomic_load(array, index) < wanted:
        pause_thread()
        polls += 1
        if polls % _POLLS == 0:
            yield_core()
