"""Types of kernel parameters, read from the sources; PyCUDA packs arguments by them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pymoo_gpuaco.backends.cuda.device import sources

# A kernel's name and its parameters.
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\(([^)]*)\)")
_COMMENT = re.compile(r"//[^\n]*")
_MACRO = re.compile(r"^#define (\w+_PARAMETERS)[ \t]+((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_QUALIFIER = re.compile(r"\b(?:const|volatile|__restrict__|__grid_constant__)\b")
_PARAMETER = re.compile(r"(.*?)\s*(\w+)", re.DOTALL)
# Format characters of Python's ``struct``; a pointer is "P".
_LETTERS = {"int": "i", "unsigned": "I", "size_t": "Q", "long long": "q", "float": "f", "double": "d"}
_LETTERS |= {"Key": 2 * "I", "RoundKeys": 20 * "I"}  # structs of philox.cuh


def read(file: str, kernels: Sequence[str]) -> dict[str, str]:
    """Return the parameters of kernels of a file, as formats of Python's ``struct``.

    Supported parameters are pointers, the types of ``_LETTERS``, and macros named ``.._PARAMETERS`` of such parameters.

    Raises ValueError for a kernel that is missing or declared twice, and for any other parameter.
    """
    text = _COMMENT.sub("", sources.with_includes(file).decode())
    for macro, parameters in _MACRO.findall(text):
        text = text.replace(macro, parameters.replace("\\\n", " "))
    declared = KERNEL.findall(text)
    found = {}
    for kernel in kernels:
        own = [parameters for name, parameters in declared if name == kernel]
        if len(own) != 1:
            raise ValueError(f"{file} must have one kernel {kernel}, it has {len(own)}")
        found[kernel] = "".join(_letters(parameter) for parameter in own[0].split(","))
    return found


def _letters(parameter: str) -> str:
    """Return the format of a parameter."""
    words = _PARAMETER.fullmatch(_QUALIFIER.sub("", parameter).strip())
    kind = words[1] if words else ""
    if not kind.endswith("*") and kind not in _LETTERS:
        raise ValueError(f"unsupported kernel parameter {parameter!r}")
    return _LETTERS.get(kind, "P")
