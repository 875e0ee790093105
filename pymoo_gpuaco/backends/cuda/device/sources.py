"""The CUDA sources, in the installed package or at the top of the checkout, and the parameters of their kernels."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_KNOWN = "walks/construct.cu"  # a file by which the folder is recognised
_PACKAGE = Path(__file__).resolve().parents[3]
# A kernel's name and its parameters.
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\(([^)]*)\)")
_COMMENT = re.compile(r"//[^\n]*")
_MACRO = re.compile(r"^#define (\w+_PARAMETERS)[ \t]+((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_QUALIFIER = re.compile(r"\b(?:const|volatile|__restrict__|__grid_constant__)\b")
_PARAMETER = re.compile(r"(.*?)\s*(\w+)", re.DOTALL)
# Format characters of Python's ``struct``; a pointer is "P".
_LETTERS = {"int": "i", "unsigned": "I", "size_t": "Q", "long long": "q", "float": "f", "double": "d"}
_LETTERS |= {"Key": 2 * "I", "RoundKeys": 20 * "I"}  # structs of philox.cuh, with an array
_STRUCT = re.compile(r"\bstruct (\w+) \{([^{}]*)\};")  # of numbers and pointers, without functions


def folder() -> Path:
    """Return the folder of the kernels. Raises FileNotFoundError if the installation lacks it."""
    places = (_PACKAGE / "cuda_src", _PACKAGE.parent / "cuda_src")
    for place in places:
        if (place / _KNOWN).is_file():
            return place
    raise FileNotFoundError(
        f"the CUDA sources are missing: looked for {_KNOWN} in {' and '.join(map(str, places))}; "
        "reinstall pymoo-gpuaco"
    )


def read(name: str) -> str:
    """Return one source file as text."""
    return (folder() / name).read_text(encoding="utf-8")


def with_includes(name: str) -> bytes:
    """Return the text of a file and of its direct and indirect includes."""
    wanted, texts = [name], {}
    while wanted:
        file = wanted.pop()
        if file not in texts:
            texts[file] = read(file)
            wanted += _INCLUDE.findall(texts[file])
    return b"\0".join(f"{file}\0{texts[file]}".encode() for file in sorted(texts))


def parameters(file: str, kernels: Sequence[str]) -> dict[str, str]:
    """Return the parameters of kernels of a file, as formats of Python's ``struct``.

    Supported parameters are pointers, the types of ``_LETTERS``, structs of these, and macros named ``.._PARAMETERS``
    of such parameters.

    Raises ValueError for a kernel that is missing or declared twice, and for any other parameter.
    """
    text = _COMMENT.sub("", with_includes(file).decode())
    for macro, content in _MACRO.findall(text):
        text = text.replace(macro, content.replace("\\\n", " "))
    declared, structs = KERNEL.findall(text), dict(_STRUCT.findall(text))
    found = {}
    for kernel in kernels:
        own = [content for name, content in declared if name == kernel]
        if len(own) != 1:
            raise ValueError(f"{file} must have one kernel {kernel}, it has {len(own)}")
        found[kernel] = "".join(_letters(parameter, structs) for parameter in own[0].split(","))
    return found


def _letters(parameter: str, structs: Mapping[str, str]) -> str:
    """Return the format of a parameter; ``structs``: their members by name."""
    words = _PARAMETER.fullmatch(_QUALIFIER.sub("", parameter).strip())
    kind = words[1] if words else ""
    if kind in structs and kind not in _LETTERS:
        return _letters_of_struct(kind, structs)
    if not kind.endswith("*") and kind not in _LETTERS:
        raise ValueError(f"unsupported kernel parameter {parameter!r}")
    return _LETTERS.get(kind, "P")


def _letters_of_struct(name: str, structs: Mapping[str, str]) -> str:
    """Return the formats of the members of a struct."""
    found = ""
    for declaration in filter(str.strip, _QUALIFIER.sub("", structs[name]).split(";")):
        members = declaration.split(",")
        kind = members[0].replace("*", " ").rsplit(None, 1)[0].strip()
        found += "".join("P" if "*" in member else _letters(f"{kind} number", {}) for member in members)
    sizes = [struct.calcsize(letter) for letter in found]
    if sizes[0] < max(sizes) or struct.calcsize(found) % sizes[0]:  # it would be passed with gaps
        raise ValueError(f"struct {name} must begin with its largest member and fill a multiple of its size")
    return found
