"""Compiled functions of the CPU engine: machine code in a shared library, called by ctypes without the GIL.

`build` compiles the library when the package is built; no compiler runs on a user's machine. A function that Python
calls is `compiled`. Its annotations are the types of its arguments: int, float, bool, `UInt64`, arrays such as
``Int32_1d``, and `struct` classes of these. A function that only compiled functions call is a `compiled_callee`, or
`inlined` into them.

With ``PYMOO_GPUACO_PYTHON=1`` in the environment the Python source runs instead, slowly, for debuggers.

In a checkout the library holds a digest of the sources. After an edit of these, the first call of a compiled function
builds the library again in another process. The library of an installed package is never built again.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime import compiling

UInt64 = Annotated[int, np.uint64]
# Arrays by dtype and number of dimensions: in C order, aligned and writable.
Bool_1d = Annotated[NDArray[np.bool_], np.bool_, 1]
UInt8_1d = Annotated[NDArray[np.uint8], np.uint8, 1]
UInt8_2d = Annotated[NDArray[np.uint8], np.uint8, 2]
Int32_1d = Annotated[NDArray[np.int32], np.int32, 1]
Int32_2d = Annotated[NDArray[np.int32], np.int32, 2]
Int32_3d = Annotated[NDArray[np.int32], np.int32, 3]
Int64_1d = Annotated[NDArray[np.int64], np.int64, 1]
Int64_2d = Annotated[NDArray[np.int64], np.int64, 2]
UInt64_1d = Annotated[NDArray[np.uint64], np.uint64, 1]
UInt64_2d = Annotated[NDArray[np.uint64], np.uint64, 2]
UInt64_3d = Annotated[NDArray[np.uint64], np.uint64, 3]
Float32_1d = Annotated[NDArray[np.float32], np.float32, 1]
Float32_2d = Annotated[NDArray[np.float32], np.float32, 2]
Float64_1d = Annotated[NDArray[np.float64], np.float64, 1]
Float64_2d = Annotated[NDArray[np.float64], np.float64, 2]
Float64_3d = Annotated[NDArray[np.float64], np.float64, 3]

PACKAGE = Path(__file__).parents[1]
_PROCESSOR_INFO = Path("/proc/cpuinfo")
IN_PYTHON = os.environ.get("PYMOO_GPUACO_PYTHON", "") not in ("", "0")
_NUMBERS: dict[Any, Any] = {int: ctypes.c_int64, float: ctypes.c_double, bool: ctypes.c_bool}
_NUMBERS |= {np.uint64: ctypes.c_uint64, type(None): ctypes.c_int64}
_RANGES = {int: (-(2**63), 2**63 - 1), np.uint64: (0, 2**64 - 1)}
DIGEST_MARK = "digest of the sources: "
# Offset in an array object of the fields that compiled code reads: address, number of dimensions, shape (``struct
# PyArrayObject`` of NumPy, which follows the head of an object).
_ARRAY_FIELDS = object.__basicsize__
_RETURNED = (0, -2)  # status of a function that has returned a value, or None
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

Function = TypeVar("Function", bound=Callable[..., Any])
Class = TypeVar("Class", bound=type)


@functools.cache
def parameter_types(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved annotations of a function by name, the last one ``return``, or of a `struct` class."""
    hints = get_type_hints(function, include_extras=True)
    return {name: np.uint64 if kind == UInt64 else kind for name, kind in hints.items()}


def array_type(annotation: Any) -> tuple[np.dtype[Any], int] | None:
    """Return dtype and number of dimensions of an annotation such as ``Int32_1d``; None if it is no array."""
    if get_origin(annotation) is not Annotated:
        return None
    _, dtype, ndim = get_args(annotation)
    return np.dtype(dtype), ndim


def struct(cls: Class) -> Class:
    """Return a NamedTuple class whose instances keep the words that compiled code reads."""
    made = type(
        cls.__name__,
        (cls,),
        {"__module__": cls.__module__, "__doc__": cls.__doc__, "__getstate__": _no_state},
    )
    made.__qualname__ = cls.__qualname__
    return made  # type: ignore[return-value]


def _no_state(_: Any) -> None:
    """Leave the words out of copies and pickles."""


class Compiled:
    """Function in the library; its machine code is looked up in the first call."""

    __qualname__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._code: Any = None

    def __reduce__(self) -> str:
        """Pickle by name, like a function."""
        return self.__qualname__

    @property
    def symbol(self) -> str:
        """Name of the function in the library."""
        return f"{self.__module__}.{self.__qualname__}".removeprefix("pymoo_gpuaco.").replace(".", "_")

    def __call__(self, *args: Any) -> Any:
        """Call the machine code; raises TypeError if an argument has another type than its annotation."""
        if self._code is None:
            self._prepare()
        words: list[Any] = []
        result = self._result()
        try:
            for pack, value in zip(self._packs, args, strict=True):
                pack(words, value)
            status = self._code(ctypes.byref(result), *words)
        except (ctypes.ArgumentError, AttributeError, TypeError, ValueError) as error:
            raise self._explained(args) from error
        if status not in _RETURNED:
            raise RuntimeError(f"compiled function {self.__qualname__}() failed with status {status}")
        return None if self._result_is_none else result.value

    def _prepare(self) -> None:
        types = dict(parameter_types(self.function))
        returned = types.pop("return")
        self._types = types
        self._packs = [_packer(kind) for kind in types.values()]
        self._result = _NUMBERS[returned]
        self._result_is_none = returned is type(None)
        try:
            code = library(self.__module__.partition(".")[0])[self.symbol]
        except AttributeError:
            raise RuntimeError(
                f"compiled function {self.__qualname__}() is missing in the library; reinstall pymoo-gpuaco"
            ) from None
        # numbers by value; of arrays and structs the address
        code.argtypes = [ctypes.c_void_p, *(_NUMBERS.get(kind, ctypes.c_void_p) for kind in types.values())]
        code.restype = ctypes.c_int32
        self._code = code

    def _explained(self, args: tuple[Any, ...]) -> TypeError:
        """Return the error that names the first argument of another type than its annotation."""
        name = self.__qualname__
        if len(args) != len(self._types):
            return TypeError(f"{name}() takes {len(self._types)} positional arguments, got {len(args)}")
        for (parameter, kind), value in zip(self._types.items(), args, strict=True):
            fault = _fault(parameter, kind, value)
            if fault:
                return TypeError(f"{name}(): {fault}")
        return TypeError(f"{name}(): arguments {', '.join(self._types)} expected")


class Callee:
    """Function without machine code of its own: only compiled functions call it."""

    __qualname__: str

    def __init__(self, function: Callable[..., Any], is_inlined: bool) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.is_inlined = is_inlined

    def __call__(self, *args: Any) -> Any:
        """Raise TypeError."""
        raise TypeError(f"only compiled functions can call {self.__qualname__}()")


def compiled(function: Function) -> Function:
    """Return the compiled version of a function that Python calls."""
    return function if IN_PYTHON else Compiled(function)  # type: ignore[return-value]


def compiled_callee(function: Any) -> Any:
    """Return a function that only compiled functions call."""
    return function if IN_PYTHON else Callee(function, is_inlined=False)


def inlined(function: Any) -> Any:
    """Return a function that is compiled into its callers, which are compiled functions."""
    return function if IN_PYTHON else Callee(function, is_inlined=True)


@functools.cache
def _packer(kind: Any) -> Callable[[list[Any], Any], None]:
    """Return a function that appends the words of a value to a list; wrong values raise any of the caught errors."""
    array = array_type(kind)
    if array is not None:
        dtype, ndim = array

        def pack_array(words: list[Any], value: NDArray) -> None:
            if value.dtype != dtype or value.ndim != ndim or not value.flags.carray:
                raise TypeError
            words.append(id(value) + _ARRAY_FIELDS)

        return pack_array
    if kind in _NUMBERS:

        def pack_number(words: list[Any], value: Any) -> None:
            _check_number(kind, value)
            words.append(value)

        return list.append if kind is float else pack_number

    def pack_struct(words: list[Any], value: Any) -> None:
        if type(value) is not kind:
            raise TypeError
        try:
            words.append(value._address)
        except AttributeError:
            # several threads may come here: all use the words of the first one
            own = value.__dict__.setdefault("_words", _struct_words(kind, value))
            value._address = ctypes.addressof(own)
            words.append(value._address)

    return pack_struct


def _check_number(kind: Any, value: Any) -> None:
    """Raise TypeError for what ctypes would convert in silence: integers out of range, and anything to a bool."""
    if kind is bool:
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError
    elif kind in _RANGES and not _RANGES[kind][0] <= value <= _RANGES[kind][1]:
        raise TypeError


def _struct_words(kind: Any, value: Any) -> Any:
    """Return the words of a struct, as an array of C: numbers, and addresses and shapes of arrays."""
    if type(value) is not kind:
        raise TypeError
    words: list[int] = []
    fields: Any = parameter_types(kind)  # type: ignore[arg-type]
    for field, each in zip(fields.values(), value, strict=True):
        if field in _NUMBERS:
            _check_number(field, each)
            number = _NUMBERS[field](each)
            words.append(int.from_bytes(bytes(number).ljust(8, b"\0"), sys.byteorder, signed=True))
        elif array_type(field) is not None:
            _packer(field)([], each)  # checks it
            words += [each.__array_interface__["data"][0], *each.shape]
        else:
            words.extend(_struct_words(field, each))
    return (ctypes.c_int64 * len(words))(*words)


def _fault(parameter: str, kind: Any, value: Any) -> str | None:
    """Say what is wrong with an argument, or return None."""
    array = array_type(kind)
    if array is not None:
        wanted = f"a writable array of {array[0]} in C order with {array[1]} dimensions"
        if not isinstance(value, np.ndarray):
            return f"{parameter} must be {wanted}, got {type(value).__name__}"
        if value.dtype != array[0] or value.ndim != array[1] or not value.flags.carray:
            flags = [
                name for name in ("c_contiguous", "aligned", "writeable") if not getattr(value.flags, name)
            ]
            got = f"{value.dtype} with {value.ndim} dimensions"
            return f"{parameter} must be {wanted}, got {got}" + (
                f", not {' or '.join(flags)}" if flags else ""
            )
    elif kind in _NUMBERS:
        try:
            _check_number(kind, value)
            _NUMBERS[kind](value)
        except TypeError:
            return f"{parameter} must be of type {kind.__name__}, got {value!r}"
    elif type(value) is not kind:
        return f"{parameter} must be of type {kind.__name__}, got {type(value).__name__}"
    else:
        fields: Any = parameter_types(kind)  # type: ignore[arg-type]
        for (name, field), each in zip(fields.items(), value, strict=True):
            fault = _fault(f"{parameter}.{name}", field, each)
            if fault:
                return fault
    return None


def library_path(package: str) -> Path:
    """Return the library of a package: ``pymoo_gpuaco``, or ``tests`` of a checkout."""
    if package == PACKAGE.name:
        return PACKAGE / "_compiled.so"
    found = importlib.util.find_spec(package)
    return Path(str(found and found.origin)).with_name("_compiled.so")


def sources(package: str) -> Iterator[Path]:
    """Yield every file that the library of a package may depend on."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(_ABOVE):
            yield path
    if package != PACKAGE.name:
        yield from sorted(library_path(package).parent.glob("compiled_*.py"))


def digest(package: str) -> str:
    """Return a digest of `sources`."""
    found = hashlib.sha256()
    for path in sources(package):
        found.update(path.relative_to(PACKAGE.parent).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@functools.cache
def library(package: str) -> ctypes.CDLL:
    """Load the library of a package; in a checkout, build it first if its sources have changed.

    Raises
    ------
    RuntimeError : if the library is missing, is of another kind of processor or cannot be built.
    """
    _check_processor()
    if (PACKAGE.parent / "pyproject.toml").is_file() and (PACKAGE.parent / "cuda_src").is_dir():
        _build_if_stale(package)
    try:
        return ctypes.CDLL(str(library_path(package)))
    except OSError as error:
        raise RuntimeError(
            f"the compiled functions could not be loaded: {error}; reinstall pymoo-gpuaco"
        ) from error


def _is_stale(package: str) -> bool:
    try:
        built = library_path(package).read_bytes()
    except OSError:
        return True
    # read, not loaded: a process keeps the first library of a path
    return (DIGEST_MARK + digest(package)).encode() not in built


def _build_if_stale(package: str) -> None:
    """Build the library of edited sources in another process; of several processes, the first one builds."""
    if not _is_stale(package):
        return
    import fcntl

    compiling.begin("the CPU engine")
    try:
        with open(library_path(package).with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_stale(package):
                command = [sys.executable, "-m", f"{PACKAGE.name}.runtime.build", package]
                if subprocess.run(command, cwd=PACKAGE.parent, stdin=subprocess.DEVNULL).returncode != 0:
                    raise RuntimeError(f"the compiled functions could not be built by {' '.join(command)}")
    finally:
        compiling.end()


def _check_processor() -> None:
    """Raise RuntimeError on an x86 processor without the instructions of x86-64-v2."""
    if platform.machine() not in ("x86_64", "AMD64") or not _PROCESSOR_INFO.exists():
        return
    with _PROCESSOR_INFO.open(encoding="ascii", errors="replace") as lines:
        flags = next((line.split() for line in lines if line.startswith("flags")), None)
    if flags is not None and not {"ssse3", "sse4_1", "sse4_2", "popcnt", "cx16"} <= set(flags):
        raise RuntimeError("the compiled functions need a processor with x86-64-v2 (SSE 4.2 and POPCNT)")
