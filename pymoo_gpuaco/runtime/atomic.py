"""Atomic addition for threads inside compiled functions: they share tasks, and wait for each other, without the GIL.

Taking a task in Python needs the GIL, for which threads wait for each other: on 32 cores about 60 microseconds a task.
"""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

_POLLS = 1 << 10  # up to 50 microseconds, after which a waiting thread lets another one run on its core
_IS_X86 = platform.machine() in ("x86_64", "AMD64")


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Return the address of an entry of an array."""
    entries = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, entries, [index])


@intrinsic
def _add(_, array, index, value):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments[:2])
        return builder.atomic_rmw("add", place, arguments[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def _load(_, array, index):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature.args[0], *arguments)
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def _pause(_):  # type: ignore[no-untyped-def]
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _IS_X86:  # else a thread waits at full speed, which slows the other thread of its core
            kind = ir.FunctionType(ir.VoidType(), ())
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), ())
        return context.get_dummy_value()

    return types.none(), generate


def _add_in_python(array, index, value):  # type: ignore[no-untyped-def]
    before = array[index]
    array[index] += value
    return before


def _load_in_python(array, index):  # type: ignore[no-untyped-def]
    return array[index]


def _pause_in_python() -> None:
    pass


_IN_PYTHON: bool = numba.config.DISABLE_JIT  # type: ignore[attr-defined]
_add_one = _add_in_python if _IN_PYTHON else _add
_load_one = _load_in_python if _IN_PYTHON else _load
_pause_thread = _pause_in_python if _IN_PYTHON else _pause
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


@inlined
def atomic_load(array, index):  # type: ignore[no-untyped-def]
    """Return an entry of an int64 array, and see all that the threads wrote before they added to it."""
    return _load_one(array, index)


@compiled_callee
def await_count(array, index, wanted):  # type: ignore[no-untyped-def]
    """Wait until an entry, which other threads increase by `atomic_add`, is at least ``wanted``."""
    polls = 0
    while atomic_load(array, index) < wanted:
        _pause_thread()
        polls += 1
        if polls % _POLLS == 0:
            _yield_core()
