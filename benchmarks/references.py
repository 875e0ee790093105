"""Figures of others, read from benchmarks/references/*.json: no script holds one of its own.

Each file is one source: {"source": str, "figures": {name: figure}}, and each figure has exactly the keys of ``FIELDS``.
What is not known is null.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "references"
#: what must be told of a figure: what it is, in which unit, where it stands in the source, on which device it was
#: measured and when, with which commit, compiler flags and command, and its values
FIELDS = ("what", "unit", "where", "device", "date", "commit", "flags", "command", "values")


@cache
def _read(source: str) -> dict[str, Any]:
    file: dict[str, Any] = json.loads((FOLDER / f"{source}.json").read_text(encoding="utf-8"))
    for name, figure in file["figures"].items():
        if tuple(figure) != FIELDS:
            raise ValueError(f"{source}.json: {name} must have exactly {', '.join(FIELDS)}")
    return file


def values(source: str, name: str) -> Any:
    """Return the values of a figure; keys that are whole numbers are ints."""
    return _with_numbers(_read(source)["figures"][name]["values"])


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {int(key) if key.isdecimal() else key: _with_numbers(entry) for key, entry in value.items()}
    return value
