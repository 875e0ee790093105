"""Atomic addition for threads inside compiled functions: they share tasks without the GIL.

Taking a task in Python needs the GIL, for which threads wait for each other: on 32 cores about 60 microseconds a task.
"""

from __future__ import annotations

from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from pymoo_gpuaco.runtime.compiled import inlined


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


_add_one = _add_in_python if numba.config.DISABLE_JIT else _add  # type: ignore[attr-defined]


@inlined
def atomic_add(array, index, value):  # type: ignore[no-untyped-def]
    """Add to an entry of an int64 array and return its value before.

    A thread that reads the new value in this way also sees all that the adding thread wrote earlier.
    """
    return _add_one(array, index, value)
