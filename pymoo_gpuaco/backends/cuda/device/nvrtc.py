"""NVRTC, NVIDIA's compiler library, for machines without nvcc: ``pip install nvidia-cuda-nvrtc-cu12``.

This file is also a program: ``python nvrtc.py LIBRARY -o TARGET [options] SOURCE``. It runs in a separate process,
because a call of the library cannot be aborted, and imports nothing from this package.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from pathlib import Path
from typing import Any

_PATTERNS = ("libnvrtc.so.*", "nvrtc64_*_0.dll", "libnvrtc.so")


def library() -> str | None:
    """Return the path of NVRTC in NVIDIA's wheels for CUDA 12 and 13, or None."""
    try:
        found = importlib.util.find_spec("nvidia")
    except ValueError:
        return None
    for folder in found.submodule_search_locations or () if found else ():
        for pattern in _PATTERNS:
            for place in ("cuda_nvrtc/lib", "cuda_nvrtc/bin", "cu13/lib", "cu13/bin", "cu13/bin/x86_64"):
                files = sorted(p for p in Path(folder, place).glob(pattern) if "builtins" not in p.name)
                if files:
                    return str(files[-1])
    return None


def main(arguments: list[str]) -> int:
    """Compile one file, or print the version; return the exit status."""
    path, *options = arguments
    nvrtc = ctypes.CDLL(path)
    if options == ["--version"]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        print(f"release {major.value}.{minor.value}")
        return 0
    _, target, *options, source = options
    program = ctypes.c_void_p()
    content = Path(source).read_bytes()
    # NVRTC has no C++ standard headers, and no kernel needs one
    status: int = nvrtc.nvrtcCreateProgram(ctypes.byref(program), content, source.encode(), 0, None, None)
    if status == 0:
        array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = nvrtc.nvrtcCompileProgram(program, len(options), array)
        log = _fetched(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        print(log.rstrip(b"\0").decode(errors="replace"), end="")
    if status == 0:
        code = _fetched(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        Path(target).write_bytes(code)
    return 0 if status == 0 else 1


def _fetched(size_of: Any, fetch: Any, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    fetch(program, buffer)
    return buffer.raw


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
