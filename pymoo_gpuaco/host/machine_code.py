"""A cache of compiled functions on the disk that never makes a run fail.

numba looks for a folder it can write to: NUMBA_CACHE_DIR, the package's own, the user's cache. Without one it refuses
to import the function, and where writing fails it raises. Here functions are then kept in a temporary folder, or
compiled anew in every process, with one warning.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

from pymoo_gpuaco.host import folders

_config: Any = numba.config

_HOW = "set NUMBA_CACHE_DIR to a folder that can be written, and it is compiled only once"
# How functions are compiled, and tables whose numbers they hold as constants.
_READ_BY_COMPILED_CODE = ("host/compiled.py", "colony/selection.py", "colony/moves.py")
_warned = False


class _Cache(FunctionCache):
    """numba's cache of one function. Where it cannot be read or written, the function is compiled anew."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a pickle that is cut off or of another version may raise anything
            _warn(f"compiled code could not be read from {self.cache_path} ({error!r}) and is compiled anew")
            with contextlib.suppress(OSError):
                self.flush()  # so that the new code can be kept
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn(f"compiled code could not be kept in {self.cache_path} ({error}); {_HOW}")

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        # numba's own key knows the function, but not the functions of other files that are compiled into it
        return (*super()._index_key(sig, codegen), _all_sources())


def cache_on_disk(function: Any) -> Any:
    """Keep the machine code of a compiled function on the disk, where there is a folder; return the function."""
    cache = _cache_of(function.py_func)
    if cache is not None:
        function._cache = cache
    return function


def must_be_compiled(function: Any) -> bool:
    """Whether a function can be kept on the disk, and the disk has no version of it from the present sources."""
    cache = getattr(function, "_cache", None)  # plain Python under NUMBA_DISABLE_JIT has none
    if not isinstance(cache, _Cache) or Path(cache.cache_path).is_relative_to(folders.temporary_path()):
        return False
    try:
        kept = cache._cache_file._load_index()
    except Exception:  # as when it is loaded: a pickle that was cut off or made by another version
        return True
    return all(key[-1] != _all_sources() for key in kept)


def environment() -> dict[str, str]:
    """Environment for another process that shares this one's cache."""
    return {**os.environ, **({"NUMBA_CACHE_DIR": _config.CACHE_DIR} if _config.CACHE_DIR else {})}


def _cache_of(function: Any) -> _Cache | None:
    try:
        return _Cache(function)
    except RuntimeError as error:  # numba's "no locator available"
        folder = folders.private_folder()
        instead = "and is compiled in every process" if folder is None else f"and is kept in {folder}"
        _warn(f"compiled code finds no folder of its own ({error}), {instead}; {_HOW}")
        if folder is None:
            return None
        before = _config.CACHE_DIR
        _config.CACHE_DIR = str(folder)
        try:
            return _Cache(function)
        except RuntimeError:
            return None
        finally:
            _config.CACHE_DIR = before


@functools.cache
def _all_sources() -> str:
    """A digest of every file of the package that compiled functions are defined in, and of how they are compiled."""
    digest = hashlib.sha256()
    for name, text in compiled_in():
        digest.update(name.encode() + b"\0" + text)
    return digest.hexdigest()


def compiled_in() -> Iterator[tuple[str, bytes]]:
    """Name and text of every file that compiled code depends on."""
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py")):
        name, text = path.relative_to(package).as_posix(), path.read_bytes()
        if b"compiled import" in text or name in _READ_BY_COMPILED_CODE:
            yield name, text


def _warn(what: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"pymoo_gpuaco: {what}", RuntimeWarning, stacklevel=3)
