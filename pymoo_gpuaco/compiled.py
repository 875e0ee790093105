"""How functions for the CPU are compiled: cached on disk, without the GIL, so that threads run side by side.

``compiled`` and ``inlined`` count no references: a tuple of arrays would otherwise cost an atomic operation an array
and call, which is most of the time of a small function. Such a function must neither make nor return an array; one
that does is ``allocating``. ``benchmarks/cpu_vs_c.py`` measures what that buys.
"""

from typing import Any

from numba import njit
from numba.core import event

from pymoo_gpuaco.backends import compiling
from pymoo_gpuaco.machine_code import keeps_code

_njit: Any = njit  # its type hints leave _nrt out


def compiled(function: Any) -> Any:
    """Compile; no array is made or returned."""
    return keeps_code(_njit(nogil=True, _nrt=False)(function))


def inlined(function: Any) -> Any:
    """Compile into whoever calls; no array is made or returned."""
    return keeps_code(_njit(nogil=True, _nrt=False, forceinline=True)(function))


def allocating(function: Any) -> Any:
    """Compile what makes or returns arrays."""
    return keeps_code(_njit(nogil=True)(function))


class _Announcer(event.Listener):
    """Tells `compiling` when numba compiles; what it reads from its cache it does not compile."""

    def on_start(self, event: Any) -> None:
        compiling.begin("the CPU engine with numba")

    def on_end(self, event: Any) -> None:
        compiling.end()


event.register("numba:compile", _Announcer())
