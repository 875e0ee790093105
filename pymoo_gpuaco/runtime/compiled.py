"""Compilation of functions for the CPU by numba: cached on disk, without the GIL, so that threads run in parallel.

Compilation takes most of the time of a first run. Each measure below reduces it by a factor: processor time of the
first ``solve("pcb442")`` without the measure over that with it (two cores, numba 0.68, Python 3.11).

========================================================================  =========================================
no reference counts (``compiled``, ``compiled_callee``, ``inlined``)      1.2; functions run up to three times as
                                                                          fast (``benchmarks/cpu_vs_c.py``)
no Python wrapper of functions that only compiled functions call          1.3
no machine code of these functions outside their callers                  1.2
one version for 32-bit and 64-bit integers and for constants              1.2
no C wrapper (``no_cfunc_wrapper``)                                       1.1
loops instead of ``a[i:j] = x`` in compiled functions, for which numba    1.1
compiles an error message about shapes, 25 functions
recombination compiled in a second process at the same time               1; a first run takes half the time on two
(``memetic/warm_up.py``)                                                   cores
========================================================================  =========================================

Without reference counts a function must neither create nor return an array, because its memory would be freed twice;
such a function is ``allocating``. These measures use undocumented parts of numba; pyproject.toml limits its versions.

numba's cache key covers the file of a function, but not the functions and constants of other files that are compiled
into it. Therefore the key includes a digest of the sources. If the cache cannot be read or written, functions are
compiled in every process, with one warning.
"""

import contextlib
import functools
import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba import njit, types
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.misc.appdirs import AppDirs

from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.background import fork_safe

_njit: Any = njit  # its type hints lack _nrt
_config: Any = numba.config
_PACKAGE = Path(__file__).parents[1]
_ADVICE = "set NUMBA_CACHE_DIR to a writable folder, and it is compiled only once"
# Parts of the package that no compiled function imports.
_ABOVE = (
    "algorithms/",
    "backends/cuda/",
    "checkpoint.py",
    "cli/",
    "islands/",
    "operators.py",
    "visualization.py",
)
_warned: list[str] = []

_FROZEN = getattr(sys, "frozen", False)  # an application by PyInstaller: its sources are in an archive
if _FROZEN and not _config.CACHE_DIR:  # else numba would use the working directory
    _config.CACHE_DIR = AppDirs("pymoo_gpuaco", appauthor=False).user_cache_dir


def compiled(function: Any) -> Any:
    """Compile a function that neither creates nor returns an array."""
    return _compile(function, _nrt=False)


def compiled_callee(function: Any) -> Any:
    """Compile, as `compiled`, a function that only compiled functions call; a call from Python compiles it again."""
    return _compile_for_compiled(function, _nrt=False)


def inlined(function: Any) -> Any:
    """Compile like `compiled_callee`, inlined into callers."""
    return _compile_for_compiled(function, _nrt=False, forceinline=True)


def allocating(function: Any) -> Any:
    """Compile a function that creates or returns arrays."""
    return _compile(function)


def must_be_compiled(function: Any) -> bool:
    """Return True if a function can be cached on disk, and the cache has no version of the current sources."""
    if _config.DISABLE_JIT or function._cache.cache_path is None:
        return False
    try:
        return all(key[-1] != _digest() for key in function._cache._cache_file._load_index())
    except Exception:  # the pickle is truncated or of another version
        return True


def _compile(function: Any, cached: bool = True, **options: Any) -> Any:
    if _config.DISABLE_JIT:
        return _njit(nogil=True)(function)
    # no caller takes the address of a function, which needs the C wrapper
    dispatcher = _njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if cached:
        try:
            dispatcher._cache = _Cache(dispatcher.py_func)
        except RuntimeError:  # numba's "no locator available"
            _warn(f"no folder for compiled code is writable: it is compiled in every process; {_ADVICE}")
    _share_one_version(dispatcher)
    _compile_fork_safe(dispatcher)
    return dispatcher


def _compile_for_compiled(function: Any, **options: Any) -> Any:
    """Compile without a Python wrapper; a call from Python compiles another version that has one."""
    if _config.DISABLE_JIT:
        return _njit(nogil=True)(function)
    dispatcher = _compile(function, cached=False, no_cpython_wrapper=True, **options)
    from_python = _njit(nogil=True, **options)(function)
    _compile_fork_safe(from_python)

    def add_version(version: Any) -> None:
        version = version._replace(entry_point=object())  # the key by which callers find it
        version.library.__class__ = _PartOfCallers
        dispatcher.targetctx.insert_user_function(version.entry_point, version.fndesc, [version.library])
        dispatcher.overloads[tuple(version.signature.args)] = version

    def without_code(flags: Any) -> Any:
        flags.no_compile = True
        return flags

    dispatcher._compiler._customize_flags = without_code

    # numba's own method would use versions without a wrapper for calls from Python, which crashes the process
    dispatcher.add_overload = add_version
    dispatcher._compile_for_args = lambda *_, **__: from_python
    return dispatcher


def _compile_fork_safe(dispatcher: Any) -> None:
    """Make the compilation of a missing version, or its loading from disk, `fork_safe`.

    Every compilation starts here: numba calls it when a call from Python finds no version for its argument types.
    """
    of_arguments = dispatcher._compile_for_args

    def of_arguments_fork_safe(*args: Any, **kws: Any) -> Any:
        def compile_missing() -> Any:
            with compiling.counted_block():
                return of_arguments(*args, **kws)

        return fork_safe(compile_missing)

    dispatcher._compile_for_args = of_arguments_fork_safe


def _share_one_version(dispatcher: Any) -> None:
    """Make compiled callers pass every signed integer in 64 bits, constants included."""
    of_types = dispatcher.get_call_template

    def of_wide_types(args: Any, kws: Any) -> Any:
        return of_types(tuple(_wide(t) for t in args), {name: _wide(t) for name, t in dict(kws).items()})

    dispatcher.get_call_template = of_wide_types


def _wide(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if kind == types.int32 else kind


@functools.cache
def _digest() -> str:
    """Return a digest of the sources that compiled code may depend on, or of a frozen application's executable."""
    digest = hashlib.sha256()
    if _FROZEN:
        executable = os.stat(sys.executable)
        digest.update(f"{executable.st_mtime_ns} {executable.st_size}".encode())
    for name, text in compiled_from():
        digest.update(name.encode() + b"\0" + text)
    return digest.hexdigest()


def compiled_from() -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file that compiled code may depend on: all except ``_ABOVE``."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).as_posix()
        if not name.startswith(_ABOVE):
            yield name, path.read_bytes()


def _warn(message: str) -> None:
    """Issue a warning, once per process."""
    if not _warned:
        _warned.append(message)
        warnings.warn(f"pymoo_gpuaco: {message}", RuntimeWarning, stacklevel=3)


class _Cache(FunctionCache):
    """numba's cache of one function. If it cannot be read or written, the function is compiled again."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        # the digest replaces the time stamp of the file, which differs between copies in images of containers
        self._cache_file._source_stamp = ""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a pickle that is truncated or of another version may raise anything
            _warn(f"compiled code could not be read from {self.cache_path} ({error!r}) and is compiled again")
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"compiled code could not be stored in {self.cache_path} ({error}); {_ADVICE}")

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _digest())


class _PartOfCallers(JITCodeLibrary):
    """Library of a function that is compiled to machine code only within its callers."""

    def finalize(self) -> None:
        """Link the code of called functions, without generating machine code."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


class _Announcer(event.Listener):
    """Listener that reports compilations by numba, but not reads of its cache, to `compiling`."""

    def on_start(self, event: Any) -> None:
        compiling.begin(compiling.CPU)

    def on_end(self, event: Any) -> None:
        compiling.end()


event.register("numba:compile", _Announcer())
