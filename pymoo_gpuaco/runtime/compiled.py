"""Compilation of functions for the CPU: cached on disk, without the GIL, so that threads run side by side.

Compiling takes most of the time of a first run. What is done about it, and what it saves: processor time of the first
``solve("pcb442")`` without it over that with it, two cores, numba 0.68, Python 3.11.

========================================================================  =========================================
no reference counts (``compiled``, ``compiled_callee``, ``inlined``)      1.2; and functions run up to three times
                                                                          as fast (``benchmarks/cpu_vs_c.py``)
no wrapper for Python of what only compiled functions call                1.3
no machine code of its own of that, only within its callers               1.1
one version for integers of 32 and 64 bits and for constants              1.2
no wrapper for C (``no_cfunc_wrapper``)                                   1.1
no garbage collection while numba compiles                                1.1
no ``a[i:j] = x`` in compiled functions, but a loop: numba compiles the   1.1
words of an error about shapes into it, 25 functions
a second process compiles the recombination of tours meanwhile            nothing, but a first run takes half the
(``memetic/warm_up.py``)                                                   time on two cores
========================================================================  =========================================

Without reference counts a function must neither make nor return an array, else memory is freed twice; one that does is
``allocating``.

Most of this uses undocumented parts of numba. Where a version of numba lacks one of them, functions are compiled by
plain numba, in every process: slower, with the same results.
"""

import gc
from collections.abc import Callable
from typing import Any

import numba
from numba import njit, types

from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.background import fork_safe

try:
    from numba.core import event
    from numba.core.caching import FunctionCache
    from numba.core.codegen import JITCodeLibrary
    from numba.core.dispatcher import Dispatcher, _FunctionCompiler  # type: ignore[attr-defined]
    from numba.core.options import DefaultOptions

    from pymoo_gpuaco.runtime.machine_code import cache_on_disk, is_cached

    _UNDOCUMENTED = (
        (DefaultOptions, ("_nrt", "no_cpython_wrapper", "no_cfunc_wrapper", "forceinline")),
        (_FunctionCompiler, ("_customize_flags",)),
        (JITCodeLibrary, ("finalize", "_get_module_for_linking", "_ensure_finalized")),
        (Dispatcher, ("_compile_for_args", "add_overload", "get_call_template")),
        (FunctionCache, ("_index_key", "load_overload", "save_overload", "flush", "cache_path")),
    )
    _PLAIN = not all(hasattr(owner, name) for owner, names in _UNDOCUMENTED for name in names)
except ImportError:
    _PLAIN = True

_njit: Any = njit  # its type hints leave _nrt out
_config: Any = numba.config


def compiled(function: Any) -> Any:
    """Compile; no array is made or returned."""
    return _compile(function, _nrt=False)


def compiled_callee(function: Any) -> Any:
    """Compile for compiled functions; no array is made or returned. A call from Python compiles once more."""
    return _compile_for_compiled(function, _nrt=False)


def inlined(function: Any) -> Any:
    """The same, inlined into callers."""
    return _compile_for_compiled(function, _nrt=False, forceinline=True)


def allocating(function: Any) -> Any:
    """Compile what makes or returns arrays."""
    return _compile(function)


def must_be_compiled(function: Any) -> bool:
    """Return True if a function can be cached on the disk, which has no version of the present sources."""
    return not (_PLAIN or _config.DISABLE_JIT or is_cached(function))


def _compile(function: Any, kept: bool = True, **options: Any) -> Any:
    if _PLAIN or _config.DISABLE_JIT:
        return _njit(nogil=True)(function)
    # the C wrapper is for callers that take a function's address: there are none
    dispatcher = _njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if kept:
        cache_on_disk(dispatcher)
    _share_one_version(dispatcher)
    _compile_whole(dispatcher)
    return dispatcher


def _compile_for_compiled(function: Any, **options: Any) -> Any:
    """Compile without a wrapper for Python; a call from Python compiles another version that has one."""
    if _PLAIN or _config.DISABLE_JIT:
        return _njit(nogil=True)(function)
    dispatcher = _compile(function, kept=False, no_cpython_wrapper=True, **options)
    from_python = _njit(nogil=True, **options)(function)
    _compile_whole(from_python)

    def keep(version: Any) -> None:
        version = version._replace(entry_point=object())  # what callers find it by
        version.library.__class__ = _PartOfCallers
        dispatcher.targetctx.insert_user_function(version.entry_point, version.fndesc, [version.library])
        dispatcher.overloads[tuple(version.signature.args)] = version

    def without_code(flags: Any) -> Any:
        flags.no_compile = True
        return flags

    dispatcher._compiler._customize_flags = without_code

    # numba's own would hand versions without a wrapper to calls from Python, which crashes the process
    dispatcher.add_overload = keep
    dispatcher._compile_for_args = lambda *_, **__: from_python
    return dispatcher


def _compile_whole(dispatcher: Any) -> None:
    """Make `fork_safe` the compiling, or reading from the disk, of a version that is missing.

    All compiling starts here: numba calls it when Python's call finds no version for the types of its arguments.
    """
    of_arguments = dispatcher._compile_for_args

    def of_arguments_whole(*args: Any, **kws: Any) -> Any:
        def compile_missing() -> Any:
            with compiling.counted_whole():
                return _without_collector(lambda: of_arguments(*args, **kws))

        return fork_safe(compile_missing)

    dispatcher._compile_for_args = of_arguments_whole


def _without_collector(work: Callable[[], Any]) -> Any:
    """Return ``work()`` without garbage collection."""
    if not gc.isenabled():
        return work()
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()


def _share_one_version(dispatcher: Any) -> None:
    """Make compiled callers pass every signed integer in 64 bits, constants included."""
    of_types = dispatcher.get_call_template

    def of_wide_types(args: Any, kws: Any) -> Any:
        return of_types(tuple(_wide(t) for t in args), {name: _wide(t) for name, t in dict(kws).items()})

    dispatcher.get_call_template = of_wide_types


def _wide(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if kind == types.int32 else kind


if not _PLAIN:

    class _PartOfCallers(JITCodeLibrary):
        """Code that is optimised and compiled to machine code only within its callers."""

        def finalize(self) -> None:
            """Link in the code of called functions, and stop there."""
            for library in dict.fromkeys(self._linking_libraries):
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalized = True

    class _Announcer(event.Listener):
        """Tells `compiling` when numba compiles, as opposed to reading its cache."""

        def on_start(self, event: Any) -> None:
            compiling.begin(compiling.CPU)

        def on_end(self, event: Any) -> None:
            compiling.end()

    event.register("numba:compile", _Announcer())
