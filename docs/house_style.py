"""Griffe extension: reads the one-line docstring entries of this package.

The code writes ``name : text, continued on indented lines``; numpydoc, which mkdocstrings reads, expects
``name : type`` and the text below. Here the entry is split after its colon. Prose that follows a section (exceptions,
sources) becomes its last one, "Notes". Entries for the parameters of a function need no heading.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Container
from typing import Any

import griffe

_ENTRY = re.compile(r"^(?P<names>[*\w]+(?:, [*\w]+)*) : (?P<text>.+)$")
# Types of arguments that pymoo may tune, as a reader knows them.
_TYPES = {
    "Count": "int",
    "Number": "float",
    "Word": "str",
    "Flag": "bool",
    "Devices": "int | list[int] | str",
}


def numpydoc(docstring: str, parameters: Container[str] = ()) -> str:
    """Return the docstring with each ``name : text`` of a section as numpydoc has it, and later prose as notes."""
    prose: list[str] = []
    sections: list[str] = []
    notes: list[str] = []
    lines = docstring.split("\n")
    in_section = False
    names: list[str] = []  # of the entry under way
    text: list[str] = []

    def end_entry() -> None:
        if text:  # the list shows the default of a parameter beside its type
            text[-1] = re.sub(r"(?<=[.)\]]) Default [\w.]+\.$", "", text[-1])
        for name in names:  # one entry each: griffe would give all of them the default of the first
            sections.extend([name, *text])
        names.clear()
        text.clear()

    for number, line in enumerate(lines):
        entry = _ENTRY.match(line)
        if number + 1 < len(lines) and re.fullmatch("-{3,}", lines[number + 1]):
            in_section = True
            end_entry()
            sections.append("")
        elif in_section and not line.strip():
            in_section = False  # what follows the blank line is prose again
        elif not in_section and entry is not None and entry["names"].lstrip("*").split(", ")[0] in parameters:
            in_section = True
            sections.extend(["", "Parameters", "----------"])
        if in_section and entry is not None:
            end_entry()
            names.extend(entry["names"].replace("*", "").split(", "))
            text.append(f"    {entry['text']}")
        elif in_section and names:
            text.append(line)
        elif in_section:
            sections.append(line)
        else:
            (notes if sections else prose).append(line)
    end_entry()
    if any(notes):
        sections.extend(["", "Notes", "-----", *"\n".join(notes).strip().split("\n")])
    return "\n".join(prose + sections)


class HouseStyle(griffe.Extension):
    """Rewrites docstrings as they are collected, and says types and defaults in words of Python."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each object that has just been read."""
        parameters = {p.name for p in obj.parameters} if isinstance(obj, griffe.Function) else set()
        if obj.docstring is not None:
            obj.docstring.value = numpydoc(obj.docstring.value, parameters)
        if isinstance(obj, griffe.Function):
            for parameter in obj.parameters:
                if str(parameter.annotation) == "Any":
                    parameter.annotation = None
        elif isinstance(obj, griffe.Attribute):
            self.explain(obj)

    def explain(self, field: griffe.Attribute) -> None:
        """Replace names that only the code knows in the type and the default of a field."""
        annotation, value = str(field.annotation), str(field.value)
        if any(alias in annotation.split(" | ") for alias in _TYPES):
            field.annotation = " | ".join(_TYPES.get(part, part) for part in annotation.split(" | "))
        if re.fullmatch(r"[A-Z]\w+\.[a-z]\w+", value):  # the default of another class
            module = importlib.import_module(field.module.path)
            owner, name = value.split(".")
            field.value = repr(getattr(getattr(module, owner), name))
