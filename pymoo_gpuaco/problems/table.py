"""First steps of the table pipeline: bytes to text, text to rows of cells, and the choices of the user."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.cells import (
    axis_of,
    counts_from,
    degrees_of,
    is_blank,
    is_gap,
    is_list,
    is_number,
    is_time,
    names_axes,
)
from pymoo_gpuaco.problems.tsp import TSP, OpenPath

BLANKS = " "
"""The separator that means one or more blanks and tabs."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas", ":": "colons", BLANKS: "blanks"}
"""Separators of columns, in the order in which they are tried, and their names in messages."""

# Limit of unpacked bytes: _MIN_UNPACK_LIMIT, and _MAX_UNPACK_RATIO times the packed size.
_MIN_UNPACK_LIMIT, _MAX_UNPACK_RATIO = 1 << 26, 200
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_HEAD = 1024  # bytes that show the encoding of a text without a mark
_RUN = re.compile(r"[^ \t\f\v]+")  # unlike str.split, keeps no-break spaces, which group thousands
_SEPARATOR_LINE = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE | re.DOTALL)
_ALIASES = {"sep": "separator", "delimiter": "separator", "names": "columns"}  # names of these in pandas


class ReadingOptions(TypedDict, total=False):
    """Keywords of functions that read data."""

    metric: str | None
    matrix: bool | None
    symmetric: bool | None
    columns: Sequence[str] | None
    separator: str | None
    decimal: str | None
    thousands: str | None
    weight: str | None
    skip_blank: bool | None
    points: bool | None


READING = tuple(ReadingOptions.__annotations__)
"""Names of the arguments that control how data are read."""


class Reading(SimpleNamespace):
    """Choices of the user for ambiguous data, see `ReadingOptions`; None leaves the decision to the data."""

    def __init__(self, what: str, given: Mapping[str, Any], *others: str) -> None:
        """Store and check the choices ``given`` to a function; it has ``others`` as well.

        Raises TypeError for unknown ones, ValueError or TypeError for choices that are invalid for any data.
        """
        checks.refuse_unknown(what, given, [*others, *READING], _ALIASES)
        super().__init__(**dict.fromkeys(READING) | dict(given))
        for name in ("matrix", "symmetric", "skip_blank", "points"):
            if not isinstance(getattr(self, name), (bool, type(None))):
                raise TypeError(f"{name} must be True, False or None, got {getattr(self, name)!r}")
        for name, allowed in (("decimal", ".,"), ("thousands", "., '\u2019\u00a0\u202f"), ("separator", "")):
            sign = getattr(self, name)
            if sign is not None and (
                not isinstance(sign, str) or len(sign) != 1 or sign not in (allowed or sign)
            ):
                known = " or ".join(map(repr, allowed[:4])) if allowed else "one character"
                raise ValueError(f"{name} must be {known}, got {sign!r}")
        if isinstance(self.columns, str) or not all(isinstance(title, str) for title in self.columns or ()):
            raise TypeError(
                f"columns must be a list of titles, such as ['id', 'x', 'y'], got {self.columns!r}"
            )

    def allow(self, what: str, *taken: str) -> None:
        """Raise ValueError for a choice that has no effect on the source ``what``; those in ``taken`` have one."""
        for name in READING:
            if getattr(self, name) is not None and name not in taken:
                raise ValueError(f"{name} has no effect on {what}: leave it out")


OF_CELLS = ("metric", "matrix", "symmetric", "columns", "decimal", "thousands", "skip_blank")
"""Arguments that apply to a table of cells from any source."""


@dataclass(frozen=True)
class Table:
    """Rows of cells."""

    titles: list[Any] | None
    rows: list[list[Any]]
    lines: list[int] | None = None  # (n,) numbers of the rows in a file; None: rows count from 0
    index: Sequence[Any] = ()  # (n,) labels of the rows besides the cells
    comments: int = 0  # lines left out among the rows that begin with #
    separator: str = ""
    notes: Sequence[str] = ()  # warnings
    left_out: str = ""  # rows that are no cities, in words

    @cached_property
    def columns(self) -> list[tuple[Any, ...]]:
        """Cells of each column; all rows must have the same width."""
        return list(zip(*self.rows, strict=True))

    def without(self, rows: Sequence[int]) -> Table:
        """Return the table without some rows."""
        kept = sorted({*range(len(self.rows))} - {*rows})
        return replace(
            self,
            rows=[self.rows[row] for row in kept],
            lines=None if self.lines is None else [self.lines[row] for row in kept],
            index=[self.index[row] for row in kept] if len(self.index) else (),
            left_out=f"rows without coordinates: {len(rows)}",
        )

    def in_degrees(self) -> Table:
        """Return the table with decimal degrees for texts such as 48°08'14"N; without titles their columns get some."""
        last = self.rows[-1] if self.rows else []
        titles = [""] * len(last) if self.titles is None else self.titles
        axes: dict[int, str] = {}
        for c, (title, cell) in enumerate(zip(titles, last, strict=False)):
            found = degrees_of(cell) if self.titles is None or axis_of(title) in ("lat", "lon") else None
            if found is not None:
                axes[c] = axis_of(title) or found[1]
        if not axes:
            return self
        rows = [list(row) for row in self.rows]
        for row in rows:
            for c, axis in axes.items():
                degrees = degrees_of(row[c]) if c < len(row) else None
                if degrees is not None and (degrees[1] in ("", axis) or not axis):
                    row[c] = degrees[0]  # otherwise the hemisphere is a mistake, which stays a text
        if self.titles is not None or len(axes) != 2:
            return replace(self, rows=rows)
        order = ("lon", "lat") if next(iter(axes.values())) == "lon" else ("lat", "lon")
        named = dict(zip(axes, order, strict=True))
        return replace(self, titles=[named.get(c, "") for c in range(len(titles))], rows=rows)

    def place(self, row: int) -> str:
        """Name a row for a message."""
        return f"row {row}" if self.lines is None else f"line {self.lines[row]}"


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Begin the message of a ValueError with the name of a source, unless the name is "" or is already there."""
    try:
        yield
    except ValueError as error:
        if not source or str(error).startswith(f"{source}: "):
            raise
        raise ValueError(f"{source}: {error}") from error


@dataclass(frozen=True, eq=False)
class ParsedInstance:
    """Cities as they were read: either `coords` (n, 2 or 3), in the order of `metric`, or `matrix` (n, n), row = from.

    names, ids : (n,) of the cities, or None; ids are as they were written, None also where they are 1 to n of TSPLIB.
    metric : as `TSP` takes it, or None if neither the user nor the data give one.
    read_as : description of the role of each column; notes : warnings.
    label : name of the problem, or None.
    positions : (n, 2) places of the cities of a matrix, or None; position_metric : their metric, None: `metric`.
    fixed_edges : (e, 2) cities, or None.
    precedence : (p, 2) cities of a path from the first to the last, or None.
    """

    names: list[Any] | None = None
    coords: NDArray[np.float64] | None = None
    matrix: NDArray[np.float64] | None = None
    metric: str | None = None
    ids: list[Any] | None = None
    read_as: str = ""
    notes: list[str] = field(default_factory=list)
    label: str | None = None
    positions: NDArray[np.float64] | None = None
    position_metric: str | None = None
    fixed_edges: NDArray[np.int64] | None = None
    precedence: NDArray[np.int64] | None = None

    def problem(self, source: object, symmetric: bool | None = None, best_known: float | None = None) -> TSP:
        """Return the `TSP`, and issue the notes as warnings.

        Raises ValueError naming the source if the numbers make no valid problem.
        """
        for note in self.notes:
            warnings.warn(f"{source}: {note}" if source else note, stacklevel=3)
        arguments: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("coords", "matrix", "metric", "names", "ids", "positions", "fixed_edges")
        }
        if self.position_metric is not None:
            arguments["metric"] = self.position_metric
        arguments |= {"name": self.label, "symmetric": symmetric, "best_known": best_known}
        try:
            if self.precedence is None:
                problem = TSP(**arguments)
            else:
                arguments |= {"symmetric": bool(symmetric), "precedence": self.precedence}
                problem = OpenPath(start=0, end=len(arguments["matrix"]) - 1, **arguments)
        except ValueError as error:
            counted = " (cities count from 0 here)" * str(error).startswith("fixed_edges")
            raise ValueError(f"{source}: {error}{counted}" if source else str(error)) from error
        problem.read_as = self.read_as
        return problem


def parse_table(text: str, reading: Reading) -> Table:
    """Split a text into cells, by the first separator that gives columns of numbers and no cell with several values.

    The first line holds titles if it has words and fewer than two numbers, names columns of coordinates, or
    begins with an empty cell. Raises ValueError naming the line.
    """
    reading.allow("a table", *OF_CELLS, "separator")
    lines = (line for n, line in enumerate(lines_of(text)) if not (n == 0 and separator_line(text)))
    first = next((line for line in lines if not _is_left_out(line)), None)
    if first is None:
        raise ValueError("no coordinates found")
    if first.strip().isdecimal() and int(first) == sum(1 for line in lines if not _is_left_out(line)):
        table = parse_table(text.replace(first, "#", 1), reading)
        return replace(table, left_out="the first line, which counts the rows")
    forced = reading.separator or separator_line(text)
    candidates: list[tuple[int, Table]] = []
    timed = False
    for separator in [forced] if forced else SEPARATORS:
        if separator not in (first.replace("\t", " ").strip() if separator == BLANKS else first):
            continue
        table = table_of(*split(text, separator), separator)
        quality = _quality(table)
        timed |= separator == ":" and not forced and any(map(is_time, re.split(r"[\s;,|]+", text)))
        grouped = any(
            isinstance(cell, str) and " " in cell and is_number(cell) for row in table.rows for cell in row
        )
        if quality == 2 and grouped and separator != BLANKS:
            other = table_of(*split(text, BLANKS), BLANKS)  # blanks group thousands or separate columns
            if not forced and _quality(other):
                raise ValueError(_either_sign([table, other]))
        if quality == 2 and not (timed and separator == ":"):
            return table
        candidates.append((quality, table))
    if not candidates:
        for separator in SEPARATORS:
            refuse_triangle(split(text, separator)[1])
        raise ValueError(f"expected at least two columns, the first line is {first.strip()[:60]!r}")
    possible = [table for quality, table in candidates if quality]
    if len(possible) > 1 or (possible and timed and possible[0].separator == ":"):
        raise ValueError(_either_sign(possible, timed))
    return possible[0] if possible else candidates[0][1]


def refuse_triangle(rows: Sequence[Sequence[Any]]) -> None:
    """Raise ValueError if each row has one cell more than the row before it, or each one less."""
    if len(rows) > 2 and {len(b) - len(a) for a, b in pairwise(rows)} in ({1}, {-1}):
        raise ValueError(
            "the rows are a triangle: of half a matrix write all cells, as in 0,, and 3,0, and 4,5,0; the blank ones "
            "are mirrored"
        )


def _either_sign(tables: list[Table], timed: bool = False) -> str:
    signs = " or ".join(SEPARATORS[table.separator] for table in tables)
    times = ", or cells may be times of a clock" if timed else ""
    return f"columns may be separated by {signs}{times}: separator= (--separator) decides"


def table_of(lines: list[int], rows: list[list[Any]], comments: int = 0, separator: str = "") -> Table:
    """Return a table of rows; the first row may hold titles."""
    axes = names_axes(rows[0]) and len(rows) > 1
    table = Table(rows[0] if axes else None, rows[axes:], lines[axes:], (), comments, separator).in_degrees()
    if table.titles is None and _have_titles(table.rows):
        return replace(table, titles=table.rows[0], rows=table.rows[1:], lines=lines[1:])
    return table


def _have_titles(rows: Sequence[Sequence[Any]]) -> bool:
    """Return True if the first row holds titles, such as an empty corner followed by numbers (pandas)."""
    first = rows[0]
    if names_axes(first):
        return True
    if any(not is_value(cell) for cell in first):
        side = {str(row[0]).strip() for row in rows[1:]}
        around = not is_value(first[0]) and {str(cell).strip() for cell in first[1:]} == side
        return around or sum(is_number(cell) or is_time(cell) for cell in first) < 2
    if not is_blank(first[0]):
        return len(first) == 1
    # a row with an empty corner may also begin a matrix without its diagonal; it holds titles if they count from 0 or 1
    bare = len(rows) == len(first) and all(
        map(is_blank, (row[i] for i, row in enumerate(rows) if i < len(row)))
    )
    return not bare or counts_from(first[1:]) is not None


def is_value(cell: Any) -> bool:
    """Return True if a cell is a number, a time or a gap."""
    return is_number(cell) or is_gap(cell) or is_time(cell)


def _quality(table: Table) -> int:
    """Return 2 for rows of equal width with two or more columns of numbers, 1 if a cell may hold several, else 0."""
    width = len(table.titles or table.rows[0]) if table.rows else 0
    if any(len(row) != width for row in table.rows):
        return 0
    others = [column for column in table.columns if not is_numeric(column)]
    if width - len(others) < 2:
        return 0
    return 1 if any(is_list(cell) for column in others for cell in column) else 2


def is_numeric(column: Sequence[Any]) -> bool:
    """Return True if some cells of a column are numbers or times, and all others gaps."""
    return all(map(is_value, column)) and not all(map(is_gap, column))


def most_unpacked(data: bytes) -> int:
    """Return the maximum bytes that packed data may hold."""
    return _MIN_UNPACK_LIMIT + _MAX_UNPACK_RATIO * len(data)


def unpacked(data: bytes) -> bytes:
    """Return the contents of gzip data, other data unchanged. Raises ValueError for broken or too large data."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    most = most_unpacked(data)
    try:
        with gzip.open(io.BytesIO(data)) as file:
            contents = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"broken gzip data ({error})") from error
    if len(contents) > most:
        raise ValueError(
            f"packed data of this size may hold {most / 1e6:.0f} MB at most, and these hold more"
        )
    return contents


def decoded(data: bytes) -> str:
    """Return bytes as text: UTF-8, UTF-16 with or without a mark, else Windows-1252, which contains Latin-1.

    Raises ValueError for binary data.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding)
    head = data[:_HEAD]
    if b"\0" in head:  # UTF-16 of western letters has a zero in every second byte, and only there
        for start, encoding in ((0, "utf-16-be"), (1, "utf-16-le")):
            if set(head[start::2]) == {0} and 0 not in head[1 - start :: 2]:
                return data.decode(encoding)
    if b"\0" in data:
        raise ValueError("it is a binary file; of a spreadsheet save the table as CSV")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def lines_of(text: str) -> list[str]:
    """Return the lines, split at line ends of files only: str.splitlines also splits at a form feed or U+0085."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def separator_line(text: str) -> str | None:
    """Return the separator that a spreadsheet names in the first line, as in "sep=;", or None."""
    named = _SEPARATOR_LINE.fullmatch(text.partition("\n")[0])
    return named[1] if named else None


def split(text: str, separator: str) -> tuple[list[int], list[list[str]], int]:
    """Return line numbers, from 1 on, stripped cells of the rows, and the number of comments after the first row.

    Empty lines and lines that begin with # are left out. Cells may be in double quotation marks, which protect the
    separators and line ends between them. Raises ValueError for a quotation mark that is not closed.
    """
    lines = lines_of(text)
    numbers: list[int] = []
    rows: list[list[str]] = []
    comments, above = 0, ("", 0)
    start = 1 if separator_line(text) else 0
    first, last, begins = start, start, True

    def source() -> Iterator[str]:
        """Yield lines; the reader takes one for each row, and more while a quotation is open."""
        nonlocal comments, above, first, last, begins
        for last, line in enumerate(lines[start:], start + 1):
            if begins and _is_left_out(line):
                comments += bool(rows and line.strip())
                above = (line.strip()[1:], last) if line.strip() and not rows else above
                continue
            first = last if begins else first
            begins = False
            yield (" ".join(_RUN.findall(line)) if separator == BLANKS else line) + "\n"

    try:
        for cells in csv.reader(source(), delimiter=separator, skipinitialspace=True):
            row, begins = [cell.strip() for cell in cells], True
            if last > first:
                _refuse_unclosed(lines, first, last, len(row), separator)
            if any(row):
                numbers.append(first)
                rows.append(row)
    except csv.Error as error:
        raise ValueError(f"line {first}: {error}") from error
    cells = _RUN.findall(above[0]) if separator == BLANKS else above[0].split(separator)
    titles = [cell.strip() for cell in cells]
    if rows and len(titles) == len(rows[0]) and names_axes(titles) and not names_axes(rows[0]):
        return [above[1], *numbers], [titles, *rows], comments  # numpy.savetxt writes titles as a comment
    return numbers, rows, comments


def short(text: str) -> str:
    """Return a text shortened for a message: hostile files have lines of megabytes."""
    return text if len(text) <= 40 else text[:37] + "..."


def _is_left_out(line: str) -> bool:
    beginning = line.lstrip()
    return not beginning or beginning.startswith("#")


def _refuse_unclosed(lines: list[str], first: int, last: int, width: int, separator: str) -> None:
    """Raise ValueError if lines inside a quotation look like rows, or if it does not end."""
    raw = lines[first - 1 : last]
    rows = [line for line in raw[:-1] if line.count(separator) + 1 >= width > 1]
    rows = [line for line in rows if line.rpartition(separator)[2].strip()[-1:].isdigit()]
    if rows or (last == len(lines) and sum(line.count('"') for line in raw) % 2):
        raise ValueError(f"line {first}: a quotation mark is not closed: {short(raw[0])!r}")
