"""What the options' texts mean; an error names the option, the value and what is allowed."""

from __future__ import annotations

import ast
import math
import re
import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS
from pymoo_gpuaco.algorithms.arguments import PYMOO_ARGUMENTS
from pymoo_gpuaco.colony.parameters import LocalSearch
from pymoo_gpuaco.problems.table import READING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_SIGNS = {"tab": "\t", "\\t": "\t", "blank": " "}
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Read "30", "30s", "5m" or "1h" as seconds."""
    match = re.fullmatch(r"(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)\s*([smh]?)", text.strip())
    value = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not 0.0 < value < math.inf:
        raise ArgumentTypeError(f"must be a positive time such as 30, 30s, 5m or 1h, got {text!r}")
    return value


def reading(arguments: Any) -> dict[str, Any]:
    """Return the options that say how data are read, as `read_cities` takes them."""
    return {name: getattr(arguments, name) for name in READING}


def yes_or_no(text: str) -> bool:
    """Read "yes" or "no"."""
    if text.lower() not in ("yes", "no"):
        raise ArgumentTypeError(f"must be yes or no, got {text!r}")
    return text.lower() == "yes"


def titles(text: str) -> list[str]:
    """Read "id,x,y" as a list."""
    return [title.strip() for title in text.split(",")]


def sign(text: str) -> str:
    """Read a character, or its name."""
    return _SIGNS.get(text.lower(), text)


def any_algorithm(text: str) -> str:
    """Read the name of an algorithm."""
    names = sorted([*ALL_ALGORITHMS, GPU2PPLS.__name__])
    if text not in names:
        raise ArgumentTypeError(f"must be one of {', '.join(names)}, got {text!r}")
    return text


def natural(text: str) -> int:
    """Read an integer >= 0."""
    return _integer(text, 0)


def positive(text: str) -> int:
    """Read an integer >= 1."""
    return _integer(text, 1)


def _integer(text: str, low: int) -> int:
    if not re.fullmatch(r"\d+", text.strip()) or int(text) < low:
        raise ArgumentTypeError(f"must be an integer >= {low}, got {text!r}")
    return int(text)


def length(text: str) -> float:
    """Read a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError(f"must be a number, got {text!r}")
    return value


def assignment(text: str) -> tuple[str, Any]:
    """Read "name=value"; the value is Python's (0.2, True, None, "2opt"), or a word without quotation marks."""
    name, sign, value = text.partition("=")
    if not sign or not re.fullmatch(r"\w+(\.\w+)?", name.strip()):
        raise ArgumentTypeError(f"must be NAME=VALUE, as in rho=0.2, got {text!r}")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        words = {"true": True, "false": False, "none": None}
        return name.strip(), words.get(value.strip().lower(), value.strip())


def parameters(file: str, assignments: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an algorithm's arguments from a TOML file ("" for none) and, before it, from assignments.

    A table, or names with a dot, make a ``LocalSearch``: ``local_search.kicks=1``. Raises ValueError naming the file.
    """
    given: dict[str, Any] = {}
    if file:
        try:
            given = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"--parameters {file}: {error.strerror or error}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"--parameters {file}: {error}") from error
    for name, value in assignments:
        table, dot, field = name.partition(".")
        if dot:
            inner = given.setdefault(table, {})
            given[table] = {**(inner if isinstance(inner, dict) else {}), field: value}
        else:
            given[name] = value
    if isinstance(given.get("local_search"), dict):
        given["local_search"] = _local_search(given["local_search"])
    for name in ("backend", "device", "seed"):
        if name in given:
            raise ValueError(f"{name} has an option of its own: --{name}")
    for name in PYMOO_ARGUMENTS:
        if name in given:
            raise ValueError(
                f"{name} is for Python; what the command line can set are the options of solve --help"
            )
    return given


def _local_search(table: dict[str, Any]) -> LocalSearch:
    known = LocalSearch.__dataclass_fields__
    for name in table:
        if name not in known:
            raise ValueError(f"local_search has no field {name!r}; it has {', '.join(known)}")
    return LocalSearch(**table)
