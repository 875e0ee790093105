"""Compile the CPU engine by numba into a shared library; the only file that knows numba.

    python -m pymoo_gpuaco.runtime.build            # pymoo_gpuaco/_compiled.so
    python -m pymoo_gpuaco.runtime.build tests      # tests/_compiled.so: callees that tests call

Each function that Python calls becomes an object file, together with the functions that it calls. Object files are kept
in ``build/`` under a digest of these functions, so that after an edit only changed ones are compiled, in one process a
core. The code runs on every x86-64-v2 or aarch64 processor and needs no library but libc and libm.

No function creates an array or returns one to Python. So numba's runtime, which counts references, is not used.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

os.environ["NUMBA_CPU_NAME"] = "x86-64-v2" if platform.machine() in ("x86_64", "AMD64") else "generic"
os.environ["NUMBA_CPU_FEATURES"] = ""

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.registry import CPUDispatcher, cpu_target
from numba.extending import intrinsic, typeof_impl
from numba.np.arrayobj import populate_array

from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.compiled import (
    DIGEST_MARK,
    PACKAGE,
    Callee,
    Compiled,
    array_type,
    digest,
    library_path,
    parameter_types,
    sources,
)
from pymoo_gpuaco.runtime.intrinsics import INTRINSICS

_OPTIONS = {
    "nopython": True,
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
_NUMBERS: dict[Any, Any] = {int: types.int64, float: types.float64, bool: types.boolean}
_NUMBERS |= {np.uint64: types.uint64, type(None): types.none}


# Functions as numba's dispatchers


class _Library(JITCodeLibrary):
    """Code of one function: linked with that of called functions; optimised and emitted only for `Compiled` ones."""

    def finalize(self) -> None:
        """Link the called functions."""
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def optimised(self, entry: str, name: str) -> Any:
        """Return the optimised module, in which only function ``entry`` is visible, with the C function ``name``."""
        module = self._final_module
        # those of numba's error reports: their names were a third of the library
        for variable in module.global_variables:
            if not variable.is_declaration:
                variable.linkage = llvm.Linkage.internal
        for function in module.functions:
            if not function.is_declaration and function.name != name:
                function.linkage = llvm.Linkage.internal
        self._optimize_final_module()
        return module


class _Dispatcher(CPUDispatcher):
    """Dispatcher without machine code, of which all callers share one version for all widths of integers."""

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Make callers pass every signed integer in 64 bits, constants included."""
        return super().get_call_template(
            tuple(map(_wide, args)), {name: _wide(t) for name, t in dict(kws).items()}
        )


def _add_overload(self: Any, version: Any) -> None:
    """Add a version without machine code to a dispatcher."""
    self.targetctx.insert_user_function(version.entry_point, version.fndesc, [version.library])
    self.overloads[tuple(version.signature.args)] = version


def _wide(kind: Any) -> Any:
    kind = types.unliteral(kind)
    return types.int64 if kind == types.int32 else kind


JITCPUCodegen._library_class = _Library
CPUDispatcher.add_overload = _add_overload  # type: ignore[method-assign, assignment]
# the key by which callers find a version, instead of the address of its machine code
cpu_target.target_context.get_executable = lambda *_: object()


@functools.cache
def _dispatcher(function: Compiled | Callee) -> Any:
    inline = {"forceinline": True} if isinstance(function, Callee) and function.is_inlined else {}
    return _Dispatcher(function.function, targetoptions={**_OPTIONS, **inline})


@typeof_impl.register(Compiled)
@typeof_impl.register(Callee)
def _type_of(value: Any, _: Any) -> Any:
    """Tell numba what a name stands for that a compiled function finds among its globals."""
    return cpu_target.typing_context.resolve_value_type(_INTRINSICS.get(value) or _dispatcher(value))


# Machine instructions


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
def _as_matrix(_, vector, rows, columns):  # type: ignore[no-untyped-def]
    kind = types.Array(vector.dtype, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        given = context.make_array(signature.args[0])(context, builder, arguments[0])
        made = context.make_array(kind)(context, builder)
        strides = builder.mul(arguments[2], given.itemsize), given.itemsize
        populate_array(made, given.data, arguments[1:], strides, given.itemsize, meminfo=None)
        return made._getvalue()

    return kind(vector, types.intp, types.intp), generate


def _call_of_nothing(name: str | None, result: Any) -> Any:
    """Return an intrinsic that calls an external function without arguments, or does nothing."""

    @intrinsic
    def call(_):  # type: ignore[no-untyped-def]
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if name is not None:
                builder.call(
                    cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, ()), name), ()
                )
            return context.get_dummy_value()

        return types.none(), generate

    return call


_PAUSE = "llvm.x86.sse2.pause" if platform.machine() in ("x86_64", "AMD64") else None
_YIELD = _call_of_nothing("sched_yield", ir.IntType(32))
_INTRINSICS = dict(
    zip(INTRINSICS, (_add, _load, _call_of_nothing(_PAUSE, ir.VoidType()), _YIELD, _as_matrix), strict=True)
)


# Types and the C function of an entry


def _numba_type(kind: Any) -> Any:
    """Return numba's type of an annotation."""
    array = array_type(kind)
    if array is not None:
        return types.Array(numba.from_dtype(array[0]), array[1], "C")
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    return types.NamedTuple([_numba_type(field) for field in parameter_types(kind).values()], kind)


class _CFunction:
    """Text of the C function around a compiled one: it loads structs and completes arrays."""

    def __init__(self, name: str, callee: str, kinds: list[Any]) -> None:
        self.lines: list[str] = []
        self.parameters = ["ptr %result"]
        self.arguments = ["ptr %result", "ptr %error"]
        self._count = 0
        for kind in kinds:
            array = array_type(kind)
            if array is not None:
                fields = self._parameter("ptr")  # address, number of dimensions, address of the shape
                shape = self._load("ptr", fields, 2)
                self._add_array(
                    array,
                    self._load("ptr", fields, 0),
                    [self._load("i64", shape, d) for d in range(array[1])],
                )
            elif kind in _NUMBERS:
                self._add_number(kind, self._parameter({float: "double", bool: "i8"}.get(kind, "i64")))
            else:
                self._pointer, self._word = self._parameter("ptr"), 0
                self._add_struct(kind)
        arguments = ", ".join(self.arguments)
        self.text = "\n".join(
            [
                f"declare i32 @{callee}({', '.join(each.split()[0] for each in self.arguments)})",
                f"define i32 @{name}({', '.join(self.parameters)}) {{",
                "  %error = alloca ptr",
                *self.lines,
                f"  %status = call i32 @{callee}({arguments})",
                "  ret i32 %status",
                "}",
            ]
        )

    def _new(self, code: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {code}")
        return f"%v{self._count}"

    def _parameter(self, kind: str) -> str:
        name = f"%p{len(self.parameters)}"
        self.parameters.append(f"{kind} {name}")
        return name

    def _load(self, kind: str, pointer: str, index: int) -> str:
        """Load a word of memory."""
        place = self._new(f"getelementptr i64, ptr {pointer}, i64 {index}")
        return self._new(f"load {kind}, ptr {place}")

    def _next_word(self, kind: str) -> str:
        """Load the next word of the current struct."""
        self._word += 1
        return self._load(kind, self._pointer, self._word - 1)

    def _add_number(self, kind: Any, value: str) -> None:
        self.arguments.append({float: "double ", bool: "i8 "}.get(kind, "i64 ") + value)

    def _add_array(self, array: tuple[Any, int], address: str, shape: list[str]) -> None:
        """Add owner, parent, number of entries, bytes of an entry, address, shape and strides in bytes."""
        strides = [str(array[0].itemsize)]
        for length in reversed(shape[1:]):
            strides.insert(0, self._new(f"mul i64 {strides[0]}, {length}"))
        count = shape[0]
        for length in shape[1:]:
            count = self._new(f"mul i64 {count}, {length}")
        self.arguments += [
            "ptr null",
            "ptr null",
            f"i64 {count}",
            f"i64 {array[0].itemsize}",
            f"ptr {address}",
        ]
        self.arguments += [f"i64 {each}" for each in (*shape, *strides)]

    def _add_struct(self, kind: Any) -> None:
        for field in parameter_types(kind).values():
            array = array_type(field)
            if array is not None:
                self._add_array(
                    array, self._next_word("ptr"), [self._next_word("i64") for _ in range(array[1])]
                )
            elif field in _NUMBERS:
                self._add_number(field, self._next_word({float: "double", bool: "i8"}.get(field, "i64")))
            else:
                self._add_struct(field)


def _object(function: Compiled) -> bytes:
    """Compile a function and what it calls; return the object file, with ``function.symbol`` as its only symbol."""
    *kinds, returned = parameter_types(function.function).values()
    dispatcher = _dispatcher(function)
    dispatcher.compile(tuple(map(_numba_type, kinds)))
    (version,) = dispatcher.overloads.values()
    found = types.unliteral(version.signature.return_type)
    if found != _numba_type(returned):
        raise TypeError(f"{function.__module__}.{function.__qualname__} returns {found}, not {returned}")
    text = _CFunction(function.symbol, version.fndesc.mangled_name, kinds).text
    version.library._ensure_finalized()
    version.library._final_module.link_in(llvm.parse_assembly(text))
    module = version.library.optimised(version.fndesc.mangled_name, function.symbol)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=os.environ["NUMBA_CPU_NAME"], opt=3, reloc="pic", codemodel="default"
    )
    return bytes(machine.emit_object(module))


# What an object file depends on


def _fingerprint(function: Compiled | Callee, seen: set[Any]) -> Iterator[bytes]:
    """Yield the bytecode and constants of a function and of all that it calls, and its types."""
    if function in seen:
        return
    seen.add(function)
    source: Any = function.function
    if isinstance(function, Compiled):
        yield repr([str(_numba_type(kind)) for kind in parameter_types(source).values()]).encode()
    yield f"{function.__qualname__} {getattr(function, 'is_inlined', False)}".encode()
    names = dict(
        zip(
            source.__code__.co_freevars,
            (cell.cell_contents for cell in source.__closure__ or ()),
            strict=True,
        )
    )
    yield from _code_fingerprint(source.__code__, {**source.__globals__, **names}, seen)


def _code_fingerprint(code: CodeType, names: dict[str, Any], seen: set[Any]) -> Iterator[bytes]:
    yield code.co_code + repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_fingerprint(constant, names, seen)
        elif not isinstance(constant, str):  # no docstring
            yield repr(constant).encode()
    for name in (*code.co_names, *code.co_freevars):
        value = names.get(name)
        if isinstance(value, ModuleType):
            values = [vars(value).get(each) for each in code.co_names]
        else:
            values = [value]
        for each in values:
            if isinstance(each, (Compiled, Callee)):
                yield from _fingerprint(each, seen)
            elif isinstance(each, np.ndarray):
                yield each.tobytes()
            elif isinstance(each, (bool, int, float, tuple, np.generic)):
                yield f"{name} {each!r}".encode()


def _object_name(function: Compiled) -> str:
    found = hashlib.sha256(Path(__file__).read_bytes())
    versions = (sys.version_info[:2], numba.__version__, llvm.llvm_version_info, os.environ["NUMBA_CPU_NAME"])
    found.update(repr((versions, platform.system(), platform.machine())).encode())
    for part in _fingerprint(function, set()):
        found.update(part + b"\0")
    return f"{function.symbol}-{found.hexdigest()[:24]}.o"


# The library


def _functions(package: str) -> list[Compiled]:
    """Import the modules of a package that have functions that Python calls, and return these."""
    found = []
    for path in sources(package):
        if "\n@compiled\n" in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            if name.partition(".")[0] == package:
                values = vars(importlib.import_module(name)).values()
                found += [each for each in values if isinstance(each, Compiled) and each.__module__ == name]
    return found


def _compile_to(task: tuple[Compiled, Path]) -> None:
    function, path = task
    made = path.with_suffix(f".{os.getpid()}")
    made.write_bytes(_object(function))
    made.replace(path)


def build(package: str) -> None:
    """Compile what has changed, and link the library of a package."""
    began = CLOCK.monotonic()
    link = linker()  # before what takes long
    functions, key = _functions(package), digest(package)
    folder = PACKAGE.parent / "build" / f"compiled-{package}"
    folder.mkdir(parents=True, exist_ok=True)
    objects = {function: folder / _object_name(function) for function in functions}
    missing = [task for task in objects.items() if not task[1].exists()]
    if missing:
        # the longest first, which call most
        missing.sort(key=lambda task: -sum(map(len, _fingerprint(task[0], set()))))
        with multiprocessing.get_context("fork").Pool(
            min(len(missing), len(os.sched_getaffinity(0)))
        ) as pool:
            for _ in pool.imap_unordered(_compile_to, missing):
                pass
    _link(link, list(objects.values()), key, library_path(package))
    for path in set(folder.glob("*.o")) - set(objects.values()):
        path.unlink()
    seconds = CLOCK.monotonic() - began
    print(
        f"{package}: compiled {len(missing)} of {len(functions)} functions in {seconds:.1f} s",
        file=sys.stderr,
    )


def _link(link: list[str], objects: list[Path], key: str, library: Path) -> None:
    """Link object files, and the digest of the sources, to a library that replaces the present one at once."""
    text = f'@pymoo_gpuaco_digest = constant [{len(DIGEST_MARK + key)} x i8] c"{DIGEST_MARK}{key}"'
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(reloc="pic", codemodel="default")
    stamp = objects[0].with_name("digest.o")
    stamp.write_bytes(machine.emit_object(llvm.parse_assembly(text)))
    made = library.with_suffix(f".{os.getpid()}")
    command = [*link, "-shared", "-s", "-o", str(made), *map(str, objects), str(stamp), "-lm"]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 0:
        raise SystemExit(f"the compiled functions could not be linked:\n{ended.stderr}")
    made.replace(library)


def linker() -> list[str]:
    """Return the command of a C compiler: that of the system, else of the package ``ziglang``."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and shutil.which(name.split()[0]):
            return name.split()
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise SystemExit(
        "no C compiler to link the compiled functions: install gcc, clang, or `pip install ziglang`"
    )


if __name__ == "__main__":
    build(sys.argv[1] if len(sys.argv) > 1 else PACKAGE.name)
