"""Signatures of kernels, read from their sources, for packing arguments and naming wrong ones."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pymoo_gpuaco.backends.cuda.device import sources

# A kernel's name and its parameters.
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\(([^)]*)\)")
_COMMENT = re.compile(r"//[^\n]*")
_MACRO = re.compile(r"^#define (\w+)[ \t]+((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_QUALIFIER = re.compile(r"\b(?:const|volatile|__restrict__|__grid_constant__)\b")
_PARAMETER = re.compile(r"(.*?)\s*(\w+)", re.DOTALL)
_ONE_ARRAY = r"struct\s+{}\s*\{{\s*([a-z_ ]+?)\s+(\w+)\[(\d+)\];\s*\}};"
# Format characters of Python's ``struct``, by which PyCUDA packs arguments.
_LETTERS = {"int": "i", "unsigned": "I", "size_t": "Q", "long long": "q", "float": "f", "double": "d"}
_KINDS = {"P": "an address", **{letter: f"a number of type {kind}" for kind, letter in _LETTERS.items()}}


@dataclass(frozen=True)
class Signature:
    """The values that one kernel takes, in order: their names, and the format by which ``struct`` packs them."""

    kernel: str
    names: tuple[str, ...]
    letters: str

    def check(self, given: Sequence[object]) -> None:
        """Raise TypeError with the first wrong argument of a launch, if any."""
        for name, letter, value in zip(self.names, self.letters, given, strict=False):
            try:
                struct.pack(letter, value)
            except (struct.error, TypeError, ValueError, OverflowError):
                kind = _KINDS[letter]
                raise TypeError(f"kernel {self.kernel} takes {kind} as {name}, got {value!r}") from None
        if len(given) != len(self.names):
            named = f"{len(self.names)} arguments ({', '.join(self.names)})"
            raise TypeError(f"kernel {self.kernel} takes {named}, got {len(given)}")


def read(file: str, kernels: Sequence[str]) -> dict[str, Signature]:
    """Return the signatures of kernels of a file.

    Parameters are pointers, the numbers of ``_LETTERS``, macros that expand to these, and structs with one array of
    numbers.

    Raises ValueError for a kernel that is missing or declared twice, and for any other parameter.
    """
    text = _COMMENT.sub("", sources.with_includes(file).decode())
    macros = dict(_MACRO.findall(text))
    declared = KERNEL.findall(text)
    found = {}
    for kernel in kernels:
        own = [parameters for name, parameters in declared if name == kernel]
        if len(own) != 1:
            raise ValueError(f"{file} must have one kernel {kernel}, it has {len(own)}")
        values = [value for parameter in _each(own[0], macros) for value in _values(parameter, text)]
        names, letters = zip(*values, strict=True)
        found[kernel] = Signature(kernel, names, "".join(letters))
    return found


def _each(parameters: str, macros: Mapping[str, str]) -> Iterator[str]:
    """Iterate over the parameters, with macros expanded."""
    for parameter in parameters.split(","):
        name = parameter.strip()
        if name in macros:
            yield from _each(macros[name].replace("\\\n", " "), macros)
        else:
            yield name


def _values(parameter: str, text: str) -> list[tuple[str, str]]:
    """Return name and letter of each value of a parameter; ``text`` contains the structs."""
    words = _PARAMETER.fullmatch(_QUALIFIER.sub("", parameter).strip())
    kind, name = words.groups() if words else ("", "")
    if kind.endswith("*"):
        return [(name, "P")]
    if kind in _LETTERS:
        return [(name, _LETTERS[kind])]
    structure = re.search(_ONE_ARRAY.format(kind), text) if kind.isidentifier() else None
    if structure is None or structure[1] not in _LETTERS:
        raise ValueError(f"no launch can give a kernel a parameter {parameter!r}")
    letter, member, count = _LETTERS[structure[1]], structure[2], int(structure[3])
    return [(f"{name}.{member}[{i}]", letter) for i in range(count)]
