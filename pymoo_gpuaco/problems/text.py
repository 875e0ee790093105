"""The first two steps of the table pipeline: bytes to text, text to rows of cells."""

from __future__ import annotations

import codecs
import csv
import re
import zlib
from collections.abc import Iterator

__all__ = [
    "BLANKS",
    "SEPARATORS",
    "decoded",
    "first_line",
    "lines_of",
    "separator_line",
    "short",
    "split",
    "unpacked",
]

BLANKS = " "
"""The separator that stands for any run of blanks and tabs."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", ":": "colons", BLANKS: "blanks"}
"""Separators of columns in the order in which they are tried, and what they are called."""

# Unpacked bytes of a table that is packed: so many always, beyond them as many times its size.
_ALWAYS, _MOST_UNPACKED = 1 << 26, 200
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 1024  # bytes that tell the encoding of a text without a mark
_RUN = re.compile(r"[^ \t\f\v]+")  # not what str.split takes for blanks: a no-break space groups thousands
_SEPARATOR_LINE = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE | re.DOTALL)


def unpacked(data: bytes) -> bytes:
    """Return the contents of gzip data, other data as they are. Raises ValueError for broken and for excessive ones."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    most, parts, size = _ALWAYS + _MOST_UNPACKED * len(data), [], 0
    while data:
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            parts.append(member.decompress(data, most + 1 - size))
        except zlib.error as error:
            raise ValueError(f"broken gzip data ({error})") from error
        size += len(parts[-1])
        if size > most:
            raise ValueError(
                f"packed data of this size may hold {most / 1e6:.0f} MB at most, and these do not end there"
            )
        if not member.eof:
            raise ValueError("broken gzip data (they end too early)")
        data = member.unused_data if member.unused_data.startswith(b"\x1f\x8b") else b""
    return b"".join(parts)


def decoded(data: bytes) -> str:
    """Return bytes as text: UTF-8, UTF-16 with a mark or without, else Windows-1252, which holds all of Latin-1.

    Raises ValueError for binary data.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding)
    head = data[:_HEAD]
    if b"\0" in head:  # text of western letters has a zero in every second byte, and only there
        for start, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
            if set(head[start::2]) == {0} and 0 not in head[1 - start :: 2]:
                return data.decode(encoding)
    if b"\0" in data:
        raise ValueError("it is a binary file; of a spreadsheet save the table as CSV")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines, ended as files end them: str.splitlines also ends them at a form feed or U+0085."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def separator_line(text: str) -> str | None:
    """Return the separator that a spreadsheet names in a first line of its own, as in "sep=;", or None."""
    named = _SEPARATOR_LINE.fullmatch(text.partition("\n")[0])
    return named[1] if named else None


def first_line(text: str) -> str:
    """Return the first line of a table. Raises ValueError where there is none."""
    for number, line in enumerate(lines_of(text)):
        if not _is_left_out(line) and not (number == 0 and separator_line(text)):
            return line
    raise ValueError("it lists no city")


def split(text: str, separator: str) -> tuple[list[int], list[list[str]]]:
    """Return line numbers, from 1 on, and cells of the rows, without blanks around them.

    Empty lines and lines that begin with # are left out; cells may be in double quotation marks, which keep all that
    is in them. Raises ValueError for a quotation mark that is not closed.
    """
    lines = list(lines_of(text))
    numbers, rows = [], []
    at = 1 if separator_line(text) else 0
    while at < len(lines):
        line, number = lines[at], at + 1
        at += 1
        if _is_left_out(line):
            continue
        if '"' in line:
            row, at = _quoted(lines, number - 1, separator)
        else:
            cells = _RUN.findall(line) if separator == BLANKS else line.split(separator)
            row = [cell.strip() for cell in cells]
        if any(row):
            numbers.append(number)
            rows.append(row)
    return numbers, rows


def short(text: str) -> str:
    """Return a piece of a file fit for a message: hostile files have lines of megabytes."""
    return text if len(text) <= 40 else text[:37] + "..."


def _is_left_out(line: str) -> bool:
    beginning = line.lstrip()
    return not beginning or beginning.startswith("#")


def _quoted(lines: list[str], first: int, separator: str) -> tuple[list[str], int]:
    """Return the cells of a row with quotation marks, and the line after it."""
    rest = (lines[k] + "\n" for k in range(first, len(lines)))
    if separator == BLANKS:
        rest = (" ".join(_RUN.findall(line)) for line in rest)
    reader = csv.reader(rest, delimiter=separator, skipinitialspace=True)
    try:
        row = [cell.strip() for cell in next(reader)]
    except csv.Error as error:
        raise ValueError(f"line {first + 1}: {error}") from error
    after = first + reader.line_num
    raw = lines[first:after]
    # a cell of several lines that are rows themselves, or that never ends
    rows = [line for line in raw[:-1] if line.count(separator) + 1 >= len(row) > 1]
    rows = [line for line in rows if line.rpartition(separator)[2].strip()[-1:].isdigit()]
    unclosed = after == len(lines) and len(raw) > 1 and sum(line.count('"') for line in raw) % 2
    if unclosed or rows:
        raise ValueError(f"line {first + 1}: a quotation mark is not closed: {short(lines[first])!r}")
    return row, after
