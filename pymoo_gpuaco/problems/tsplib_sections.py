"""A TSPLIB file as text: the values of its header and the lines of its sections."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NoReturn, TypeAlias

from pymoo_gpuaco.problems.table import decoded, lines_of, short, unpacked

_KEYWORD = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*(?:(:)\s*(.*))?$")

# TSPLIB95, section 1.1: what a header may say. Other words are passed over, as later formats have more of them.
_HEADER_KEYWORDS = frozenset(
    {
        "NAME", "TYPE", "DIMENSION", "CAPACITY", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "EDGE_DATA_FORMAT",
        "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE",
    }
)  # fmt: skip
_WHOLE_NUMBERS = ("DIMENSION", "CAPACITY")

_MAX_CITIES = 2**31 - 1  # cities are 32-bit integers

Lines: TypeAlias = list[tuple[int, str]]
"""Lines of a section: number in the file, and text without blanks at the ends."""


def read_text(path: Path) -> str:
    """Return the file's text. Raises ValueError for a directory, and for what is not text."""
    if path.exists() and not path.is_file():
        fail(path, "it is a directory" if path.is_dir() else "it is not a regular file")
    data = path.read_bytes()
    try:
        text = decoded(unpacked(data))
    except ValueError as error:
        fail(path, str(error), error)
    text = text.rstrip("\x1a \t\r\n")  # DOS files end with Ctrl-Z
    if not text:
        fail(path, "it is empty")
    return text


def split(path: Path, text: str) -> tuple[dict[str, str], dict[str, Lines]]:
    """Return the header's values by keyword and each section's lines."""
    header: dict[str, str] = {}
    sections: dict[str, Lines] = {}
    section: Lines | None = None
    for line_number, raw in enumerate(lines_of(text), start=1):
        line = raw.strip()
        if not line:
            continue
        match = _KEYWORD.match(line)
        if match is None:
            if section is None:
                fail(path, f"line {line_number}: expected a keyword, got {short(line)}")
            section.append((line_number, line))
            continue
        keyword, value = match[1].upper(), (match[3] or "").strip()
        if keyword == "EOF":
            break
        if keyword.endswith("_SECTION"):
            if keyword in sections:
                fail(path, f"line {line_number}: a second {keyword}")
            section = sections[keyword] = []
            if value:
                section.append((line_number, value))
        elif match[2] is None:
            what = "a keyword" if section is None else "numbers"
            fail(path, f"line {line_number}: expected {what}, got {short(line)}")
        else:
            section = None
            if keyword not in _HEADER_KEYWORDS:
                continue
            if keyword in header:
                fail(path, f"line {line_number}: a second {keyword}")
            if keyword in _WHOLE_NUMBERS:
                try:
                    integer(value)
                except ValueError as error:
                    fail(path, f"line {line_number}: {keyword} cannot be {short(value)}", error)
            header[keyword] = value
    return header, sections


def dimension(path: Path, header: dict[str, str]) -> int | None:
    """Return DIMENSION, or None where there is none. Raises ValueError for more than 32 bits can number."""
    if "DIMENSION" not in header:
        return None
    n = integer(header["DIMENSION"])
    if abs(n) > _MAX_CITIES:
        fail(path, f"DIMENSION is {short(str(n))}, the most that fits is {_MAX_CITIES}")
    return n


def number(token: str) -> float:
    """Parse a finite number. Python's own float also takes "1_000" and "nan"."""
    value = float(token)
    if "_" in token or not math.isfinite(value):
        raise ValueError(f"{token!r} is not a finite number")
    return value


def integer(token: str) -> int:
    """Parse a whole number. Python's own int also takes "1_000"."""
    if "_" in token:
        raise ValueError(f"{token!r} is not an integer")
    return int(token)


def fail(path: Path, reason: str, cause: Exception | None = None) -> NoReturn:
    """Raise ValueError naming the file."""
    raise ValueError(f"{path}: {reason}") from cause
