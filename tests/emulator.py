"""The kernels run on the host, without a GPU: each source is compiled by g++ against ``cuda_on_host.h``.

Slow, and one device of one multiprocessor: for small instances, to see that kernels and engines compute what they
should. What only a GPU shows, such as races in memory, is left to compute-sanitizer there.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from pymoo_gpuaco.backends.cuda import engines
from pymoo_gpuaco.backends.cuda.device import sources
from tests import fake_device

HEADER = Path(__file__).with_name("cuda_on_host.h")
_KERNEL = re.compile(r'extern "C" __global__.*?\n}\n', re.DOTALL)
COMPILER = shutil.which("g++")
_LIMITS = {
    "MULTIPROCESSOR_COUNT": 1,  # so that ants which step together are one block, as blocks run one by one
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 100 << 10,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 1 << 16,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 101 << 10,
}


def _on_host(text: str) -> str:
    """A source without its few instructions in assembler, and with shared memory of the header."""
    text = re.sub(
        r"extern __shared__ (\w+) (\w+)\[\];", r"\1* const \2 = reinterpret_cast<\1*>(dynamic_shared);", text
    )
    pieces = re.split(r"(asm(?: volatile)?\((?:[^()]|\([^()]*\))*\);)", text)
    for number in range(1, len(pieces), 2):
        code = pieces[number]
        if '"exit;"' in code:
            pieces[number] = "leave_kernel();"
            continue
        instruction = re.search(r'"([^"]*)"', code)[1]  # type: ignore[index]
        operands = re.findall(r'"[=+]?\w+"\(((?:[^()]|\([^()]*\))*)\)', code)
        one, two = [*operands, "", ""][:2]
        if instruction.startswith("sqrt.approx"):
            pieces[number] = f"{one} = sqrtf({two});"
        elif "laneid" in instruction:
            pieces[number] = f"{one} = threadIdx.x % 32;"
        elif "globaltimer" in instruction:
            pieces[number] = f"{one} = a_second_later();"
        elif instruction.startswith("ld."):
            pieces[number] = f"{one} = *({two});"
        elif instruction.startswith("st."):
            pieces[number] = f"*({one}) = {two};"
        elif instruction.startswith("red.release"):
            pieces[number] = f"*({one}) += {two};"
        else:
            raise AssertionError(f"no translation of {code}")
    return "".join(pieces)


def skip_without_compiler() -> None:
    """Skip a test, or a module of them, where the kernels cannot be compiled."""
    if COMPILER is None:
        pytest.skip("the emulator is compiled by g++, which is not on the PATH", allow_module_level=True)


def _whole(text: str, seen: set[str]) -> str:
    """A source with what it includes put in its place."""

    def included(match: re.Match[str]) -> str:
        if match[1] in seen:
            return ""
        seen.add(match[1])
        return _whole(sources.read(match[1]), seen)

    return re.sub(r'#include "(.+)"', included, text).replace("#pragma once", "")


def _with_entry(kernel: re.Match[str]) -> str:
    """A kernel, and behind it the function that launches it."""
    name = sources.KERNEL.search(kernel[0])[1]  # type: ignore[index]
    return (
        f'{kernel[0]}extern "C" int run_{name}(unsigned blocks, unsigned threads, const char* arguments) {{\n'
        f"    const auto entry = [](const char* packed) {{ apply_packed({name}, packed); }};\n"
        "    return launch(entry, blocks, threads, arguments);\n}\n"
    )


@functools.cache
def _translated(text: str) -> str:
    """A source as the host compiles it."""
    return _KERNEL.sub(_with_entry, _on_host(_whole(text, set())))


_OPTIONS = ["-O1", "-std=c++17", "-w", "-fPIC", "-ffp-contract=off"]
_OPTIONS += ["-U_FORTIFY_SOURCE"]  # which takes a jump from one fiber to another for a fault
_OPTIONS += ["-fsanitize=alignment", "-fno-sanitize-recover=all", "-static-libubsan"]


def _compile(name: str, text: str, target: Path, *options: str) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:  # other processes look for a whole file
        source, made = Path(scratch, name), Path(scratch, "made")
        source.write_text(text)
        command = [str(COMPILER), *_OPTIONS, *options, "-o", str(made), str(source)]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr[:4000]
        os.replace(made, target)


def _header(folder: Path) -> Path:
    """Precompile the header once for all sources, a quarter of their time; return its folder."""
    text = HEADER.read_text()
    own = folder / f"header-{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    own.mkdir(exist_ok=True)
    if not (own / "cuda_on_host.h.gch").exists():
        (own / "cuda_on_host.h").write_text(text)
        _compile("cuda_on_host.h", text, own / "cuda_on_host.h.gch", "-x", "c++-header")
    return own


def build(
    file: str, definitions: dict[str, object], folder: Path, text_of_file: str | None = None
) -> ctypes.CDLL:
    """Compile one source; the library has ``run_NAME(blocks, threads, arguments)`` for each kernel.

    ``text_of_file`` is the source where it is a test's own.
    """
    lines = ['#include "cuda_on_host.h"']
    lines += [f"#define {name} {value}" for name, value in definitions.items()]
    lines.append(_translated(text_of_file or sources.read(file)))
    text = "\n".join(lines)
    key = hashlib.sha256((text + HEADER.read_text()).encode()).hexdigest()[:24]
    library = folder / f"{Path(file).stem}-{key}.so"
    if not library.exists():
        _compile("kernels.cpp", text, library, f"-I{_header(folder)}", "-shared")
    return ctypes.CDLL(str(library))


class Emulator(fake_device.FakeDriver):
    """A device whose kernels run on the host."""

    limits = _LIMITS

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def load(self, file: str, definitions: dict[str, object], name: str) -> Any:
        return EmulatedKernel(self, file, definitions, name, build(file, definitions, self._folder))


class EmulatedKernel(fake_device.FakeKernel):
    """A kernel that is run, after it has been looked at how it is launched."""

    def __init__(
        self, driver: Emulator, file: str, definitions: dict[str, object], name: str, library: Any
    ) -> None:
        super().__init__(driver, file, definitions, name)
        self._run = getattr(library, f"run_{name}")

    def prepared_call(self, grid: tuple, block: tuple, *arguments: Any, shared_size: int = 0) -> None:
        super().prepared_call(grid, block, *arguments, shared_size=shared_size)
        packed = struct.pack(self._takes, *arguments)
        assert self._run(grid[0], block[0], packed) == 0, f"the threads of {self._name} wait for ever"


def install(monkeypatch: Any, folder: Path) -> Emulator:
    """Make the CUDA engines use the emulator; ``folder`` caches what was compiled."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(engines, "why_unavailable", lambda: None)
    return fake_device.install(monkeypatch, Emulator(folder))
