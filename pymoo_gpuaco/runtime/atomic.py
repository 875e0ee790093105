"""Atomic addition for threads inside compiled functions: they share tasks, and wait for each other, without the GIL.

Taking a task in Python needs the GIL, for which threads wait for each other: on 32 cores about 60 microseconds a task.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

_YIELDS = 10  # between two polls: some microseconds; more polls would slow other threads


@intrinsic
def _add(_, array, index, value):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        entries = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, entries, [arguments[1]])
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


def _add_in_python(array, index, value):  # type: ignore[no-untyped-def]
    before = array[index]
    array[index] += value
    return before


_IN_PYTHON: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_add_one = _add_in_python if _IN_PYTHON else _add
# function of the operating system by which a thread lets another one run on its core
_yield_core = (
    getattr(os, "sched_yield", lambda: 0)
    if _IN_PYTHON
    else types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())
)


@inlined
def atomic_add(array, index, value):  # type: ignore[no-untyped-def]
    """Add to an entry of an int64 array and return its value before.

    A thread that reads the new value in this way also sees all that the adding thread wrote earlier.
    """
    return _add_one(array, index, value)


@compiled_callee
def await_count(array, index, wanted):  # type: ignore[no-untyped-def]
    """Wait until an entry, which other threads increase by `atomic_add`, is at least ``wanted``."""
    while atomic_add(array, index, 0) < wanted:
        for _ in range(_YIELDS):
            _yield_core()
