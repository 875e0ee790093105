"""A cache of compiled functions on the disk that never makes a run fail.

numba's key of a function holds its own code, but not that of functions in other files, which are compiled into it, nor
constants. So a digest of the sources is a part of the key. All functions share one folder: the first of
``NUMBA_CACHE_DIR``, the package's own and the user's cache that can be written to. An application frozen by PyInstaller
has no sources and no folder beside them: its executable is the source, and its code is in the user's cache. Where the
cache cannot be read or written, functions are compiled in every process, with one warning.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.misc.appdirs import AppDirs

_PACKAGE = Path(__file__).parents[1]
_HOW = "set NUMBA_CACHE_DIR to a folder that can be written, and it is compiled only once"
# Parts of the package that no compiled function imports.
_ABOVE = ("algorithms", "backends/cuda", "checkpoint", "cli", "islands", "operators", "visualization")
_warned = False


class _Locator(_CacheLocator):
    """Tells numba where a function is kept."""

    def __init__(self, line: int) -> None:
        self._line = line

    def get_cache_path(self) -> str:
        return str(_folder())

    def get_source_stamp(self) -> str:
        return ""  # the key has the digest

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        return cls(function.__code__.co_firstlineno) if _folder() else None


class _Located(CompileResultCacheImpl):
    _locator_classes: list[type[object]] = [_Locator]  # noqa: RUF012


class _Cache(FunctionCache):
    """numba's cache of one function. Where it cannot be read or written, the function is compiled again."""

    _impl_class = _Located

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a pickle that is cut off or of another version may raise anything
            _warn(f"compiled code could not be read from {self.cache_path} ({error!r}) and is compiled again")
            with contextlib.suppress(OSError):
                self.flush()  # so that the new code can be kept
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"compiled code could not be kept in {self.cache_path} ({error}); {_HOW}")

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), _digest())


def cache_on_disk(function: Any) -> None:
    """Keep the machine code of a compiled function on the disk, where there is a folder."""
    with contextlib.suppress(RuntimeError):  # numba's "no locator available"
        function._cache = _Cache(function.py_func)


def is_cached(function: Any) -> bool:
    """Return True if the disk has a version of the function from the present sources, or cannot have one."""
    if not isinstance(function._cache, _Cache):
        return True
    try:
        kept = function._cache._cache_file._load_index()
    except Exception:  # as when it is loaded: a pickle that was cut off or made by another version
        return False
    return any(key[-1] == _digest() for key in kept)


@functools.cache
def _folder() -> Path | None:
    """Return the first folder that can be written to, or None."""
    wanted, own = numba.config.CACHE_DIR, "pymoo_gpuaco"  # type: ignore[attr-defined]
    folders = [Path(wanted, own)] if wanted else []
    if not getattr(sys, "frozen", False):
        folders.append(_PACKAGE / "__pycache__")
    folders.append(Path(AppDirs(own, appauthor=False).user_cache_dir))
    for folder in folders:
        if _is_writable(folder):
            return folder
    _warn(f"compiled code finds no folder of its own and is compiled in every process; {_HOW}")
    return None


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@functools.cache
def _digest() -> str:
    """Return a digest of every source that compiled code depends on, or of a frozen application's executable."""
    digest = hashlib.sha256()
    for name, text in compiled_from():
        digest.update(name.encode() + b"\0" + text)
    if getattr(sys, "frozen", False):
        found = os.stat(sys.executable)
        digest.update(f"{found.st_mtime_ns} {found.st_size}".encode())
    return digest.hexdigest()


def compiled_from() -> Iterator[tuple[str, bytes]]:
    """Name and text of every file that compiled code may depend on: all but what lies above it."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        name = path.relative_to(_PACKAGE).as_posix()
        if not name.startswith(tuple(f"{part}/" for part in _ABOVE)):
            yield name, path.read_bytes()


def _warn(what: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"pymoo_gpuaco: {what}", RuntimeWarning, stacklevel=3)
