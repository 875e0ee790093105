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
_POINTER = "P"
# Format characters of Python's ``struct``, by which PyCUDA packs arguments.
_LETTERS = {"int": "i", "unsigned": "I", "size_t": "Q", "long long": "q", "float": "f", "double": "d"}
_KINDS = {_POINTER: "an address", **{letter: f"a number of type {kind}" for kind, letter in _LETTERS.items()}}


@dataclass(frozen=True)
class Argument:
    """Argument for one parameter of a kernel: a number or address, or ``count`` of them."""

    name: str
    letter: str
    count: int = 1

    def names(self) -> list[str]:
        """Return the names of the values."""
        return [self.name] if self.count == 1 else [f"{self.name}[{i}]" for i in range(self.count)]


@dataclass(frozen=True)
class Signature:
    """The arguments of one kernel, in order."""

    kernel: str
    arguments: tuple[Argument, ...]

    @property
    def letters(self) -> str:
        """Format of Python's ``struct`` by which they are packed."""
        return "".join(argument.letter * argument.count for argument in self.arguments)

    def check(self, given: Sequence[object]) -> None:
        """Raise TypeError with the first wrong argument of a launch, if any."""
        wrong = ""
        names = [name for argument in self.arguments for name in argument.names()]
        for name, letter, value in zip(names, self.letters, given, strict=False):
            try:
                struct.pack(letter, value)
            except (struct.error, TypeError, ValueError, OverflowError):
                wrong = f"takes {_KINDS[letter]} as {name}, got {value!r}"
                break
        if len(given) != len(names):
            several = [a.name if a.count == 1 else f"{a.name}[{a.count}]" for a in self.arguments]
            number = f"takes {len(names)} arguments ({', '.join(several)}), got {len(given)}"
            wrong = f"{number}; it {wrong}" if wrong else number
        if wrong:
            raise TypeError(f"kernel {self.kernel} {wrong}")


def read(file: str, kernels: Sequence[str], definitions: Mapping[str, object]) -> dict[str, Signature]:
    """Return the signatures of kernels of a file that is compiled with these definitions.

    Parameters are pointers, the numbers of ``_LETTERS``, macros that expand to these, and structs with one array of
    numbers. #if NAME, #else and #endif are allowed among them, if NAME is a definition.

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
        try:
            parameters = _each(_chosen(own[0], definitions), macros)
            found[kernel] = Signature(kernel, tuple(_argument(p, text) for p in parameters))
        except ValueError as error:
            raise ValueError(f"kernel {kernel} of {file}: {error}") from error
    return found


def _chosen(parameters: str, definitions: Mapping[str, object]) -> str:
    """Return the parameters after #if and #else."""
    kept, conditions = [], []
    for line in parameters.splitlines():
        words = line.split()
        if words[:1] == ["#if"]:
            if len(words) != 2 or words[1] not in definitions:
                raise ValueError(f"{line.strip()!r} among the parameters asks for what is not defined")
            conditions.append(bool(int(str(definitions[words[1]]))))
        elif words[:1] == ["#else"]:
            conditions[-1] = not conditions[-1]
        elif words[:1] == ["#endif"]:
            conditions.pop()
        elif all(conditions):
            kept.append(line)
    return "\n".join(kept)


def _each(parameters: str, macros: Mapping[str, str]) -> Iterator[str]:
    """Iterate over the parameters, with macros expanded."""
    for parameter in parameters.split(","):
        name = parameter.strip()
        if name in macros:
            yield from _each(macros[name].replace("\\\n", " "), macros)
        else:
            yield name


def _argument(parameter: str, text: str) -> Argument:
    """Return the argument for a parameter; ``text`` contains the structs."""
    words = _PARAMETER.fullmatch(_QUALIFIER.sub("", parameter).strip())
    kind, name = words.groups() if words else ("", "")
    if kind.endswith("*"):
        return Argument(name, _POINTER)
    if kind in _LETTERS:
        return Argument(name, _LETTERS[kind])
    structure = re.search(_ONE_ARRAY.format(kind), text) if kind.isidentifier() else None
    if structure is None or structure[1] not in _LETTERS:
        raise ValueError(f"no launch can give a parameter {parameter!r}")
    return Argument(f"{name}.{structure[2]}", _LETTERS[structure[1]], int(structure[3]))
