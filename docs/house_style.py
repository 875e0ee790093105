"""Griffe extension: reads the one-line docstring entries of this package.

The code writes ``name : text, continued on indented lines``; numpydoc, which mkdocstrings reads, expects
``name : type`` and the text below. Here the entry is split after its colon, and prose that follows a section
(sources, exceptions) moves before it, where numpydoc wants it.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"^(?P<names>[*\w]+(?:, [*\w]+)*) : (?P<text>.+)$")


def numpydoc(docstring: str) -> str:
    """Return the docstring with its prose first, and each ``name : text`` of a section as numpydoc has it."""
    prose: list[str] = []
    sections: list[str] = []
    lines = docstring.split("\n")
    in_section = False
    names: list[str] = []  # of the entry under way
    text: list[str] = []

    def end_entry() -> None:
        for name in names:  # one entry each: griffe would give all of them the default of the first
            sections.extend([name, *text])
        names.clear()
        text.clear()

    for number, line in enumerate(lines):
        if number + 1 < len(lines) and re.fullmatch("-{3,}", lines[number + 1]):
            in_section = True
            end_entry()
            sections.append("")
        elif in_section and not line.strip():
            in_section = False  # what follows the blank line is prose again
        entry = _ENTRY.match(line) if in_section else None
        if entry is not None:
            end_entry()
            names.extend(entry["names"].replace("*", "").split(", "))
            text.append(f"    {entry['text']}")
        elif in_section and names:
            text.append(line)
        else:
            (sections if in_section else prose).append(line)
    end_entry()
    return "\n".join(prose + sections)


class HouseStyle(griffe.Extension):
    """Rewrites docstrings as they are collected, and leaves out annotations that say nothing."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each object that has just been read."""
        if obj.docstring is not None:
            obj.docstring.value = numpydoc(obj.docstring.value)
        if isinstance(obj, griffe.Function):
            for parameter in obj.parameters:
                if str(parameter.annotation) == "Any":
                    parameter.annotation = None
