"""A TSPLIB file as text: bounded in size, split into the values of its header and the lines of its sections.

A keyword counts where a line begins with it, not inside a COMMENT; files may end without a newline, in DOS's way or
with bytes that are no UTF-8; a section has as many lines as its DIMENSION allows, whatever the file holds.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from pathlib import Path
from typing import IO, NoReturn

from pymoo_gpuaco.problems.table import decoded, lines_of, short

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

# What a file of n cities holds at most, in bytes: a bomb of a few kilobytes must not unpack to gigabytes.
_HEADER = 1 << 20
_A_CITY = 256
_A_WEIGHT = 40
_UNKNOWN = 1 << 26  # of a file that does not tell its DIMENSION in the header
# Times the packed size, beyond what is always allowed: TSPLIB's own files unpack to 6 times theirs.
_MOST_UNPACKED = 200
_DIMENSION = re.compile(rb"^[ \t]*DIMENSION[ \t]*:[ \t]*([0-9]{1,10})", re.MULTILINE | re.IGNORECASE)
_EXPLICIT = re.compile(rb"^[ \t]*EDGE_WEIGHT_TYPE[ \t]*:[ \t]*EXPLICIT", re.MULTILINE | re.IGNORECASE)


class Lines:
    """The lines of a section. What no problem of its size can need is counted and forgotten."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        # (line number in the file, its text without blanks at the ends)
        self.kept: list[tuple[int, str]] = []
        self.count = 0  # of all lines
        self.n_words = 0  # on all lines

    def add(self, number: int, line: str) -> None:
        """Take the line of that number in the file."""
        self.count += 1
        self.n_words += len(line.split())
        if self.most is None or self.count <= self.most:
            self.kept.append((number, line))


def read_text(path: Path) -> str:
    """Return the file's text. Raises ValueError for a directory, for what is not text, and for far too much of it."""
    if path.exists() and not path.is_file():
        fail(path, "it is a directory" if path.is_dir() else "it is not a regular file")
    size = path.stat().st_size
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        try:
            if packed:
                with gzip.open(file) as unpacked:
                    data = _read_bounded(path, unpacked, _UNKNOWN + _MOST_UNPACKED * size)
            else:
                data = _read_bounded(path, file, size)
        except (OSError, EOFError, zlib.error) as error:
            fail(path, f"broken gzip data ({error})" if packed else f"it cannot be read ({error})", error)
    try:
        text = decoded(data)
    except ValueError as error:
        fail(path, str(error), error)
    text = text.rstrip("\x1a \t\r\n")  # DOS files end with Ctrl-Z
    if not text:
        fail(path, "it is empty")
    return text


def _read_bounded(path: Path, file: IO[bytes] | gzip.GzipFile, most: int) -> bytes:
    """Return what the file holds, which may be ``most`` bytes, and no more than its DIMENSION can need."""
    head = file.read(min(_HEADER, most + 1))
    dimension = _DIMENSION.search(head)
    if dimension is None:
        bound, cities = _UNKNOWN, "without a DIMENSION in its first MB"
    else:
        n = int(dimension[1])
        bound = _HEADER + _A_CITY * n + (_A_WEIGHT * n * n if _EXPLICIT.search(head) else 0)
        cities = f"with DIMENSION {n}"
    bound = min(bound, most)
    rest = file.read(bound + 1 - len(head))
    if len(head) + len(rest) > bound:
        fail(path, f"a file {cities} cannot hold more than {bound / 1e6:.1f} MB, and this one does")
    return head + rest


def _most_lines(header: dict[str, str], section: str) -> int | None:
    """Lines that a section can need, where the header has told it before."""
    if "DIMENSION" not in header:
        return None
    n = max(integer(header["DIMENSION"]), 0)
    return (
        n * n if section in ("EDGE_WEIGHT_SECTION", "EDGE_DATA_SECTION") else n + 1
    )  # a tour has -1 at its end


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
            section.add(line_number, line)
            continue
        keyword, value = match[1].upper(), (match[3] or "").strip()
        if keyword == "EOF":
            break
        if keyword.endswith("_SECTION"):
            if keyword in sections:
                fail(path, f"line {line_number}: a second {keyword}")
            section = sections[keyword] = Lines(_most_lines(header, keyword))
            if value:
                section.add(line_number, value)
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
