"""How functions for the CPU are compiled: cached on disk, without the GIL, so that threads run side by side.

``compiled`` and ``inlined`` count no references: a tuple of arrays would otherwise cost an atomic operation an array
and call, which is most of the time of a small function. Such a function must neither make nor return an array; one
that does is ``allocating``. ``benchmarks/cpu_vs_c.py`` measures what that buys.
"""

from typing import Any

from numba import njit

_njit: Any = njit  # its type hints leave _nrt out
compiled = _njit(cache=True, nogil=True, _nrt=False)
inlined = _njit(cache=True, nogil=True, _nrt=False, forceinline=True)
allocating = _njit(cache=True, nogil=True)
