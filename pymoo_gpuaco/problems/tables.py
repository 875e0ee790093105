"""Tables of cities: what spreadsheets, databases and pandas write, as rows of cells."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.cells import distance_of, number_of
from pymoo_gpuaco.problems.columns import Columns, columns_of
from pymoo_gpuaco.problems.tsplib_sections import decoded

__all__ = ["Table", "parse_table", "read_coordinates", "table_columns"]

_SEPARATORS = (";", "\t", "|", ",", ":", " ")  # " " stands for any run of blanks
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Table:
    """Rows of cells, all of one width.

    Attributes
    ----------
    source : what it was read from, for messages.
    titles : the first line's, or None.
    rows : (n, columns) cells as text.
    lines : (n,) number of each row's line in the file, from 1 on.
    """

    source: str
    titles: list[str] | None
    rows: list[list[str]]
    lines: list[int]


def read_coordinates(path: str | PathLike[str]) -> NDArray[np.float64]:
    """Read a CSV file of coordinates as an (n, 2) or (n, 3) array, one city a line, in the order of x, y (and z).

    Of columns of latitude and longitude the latitude comes first. `read_cities` takes the same files and makes a
    problem of them, with names. Raises FileNotFoundError for a missing file, and ValueError naming file and line
    where it holds no coordinates.
    """
    path = Path(path)
    columns = table_columns(parse_table(str(path), decoded(path.read_bytes())), matrix=False)
    assert columns.coords is not None
    return columns.coords


def parse_table(source: str, text: str) -> Table:
    """Split a text into cells, by the first separator that makes columns of numbers.

    Separators are semicolon, tab, bar, comma, colon and blanks; cells may be quoted. Empty lines and lines that begin
    with # are left out. Numbers may have a decimal comma; it becomes a point. The first line is one of titles where it
    has words and fewer than two numbers, or begins with an empty cell. Raises ValueError naming `source` and the line.
    """
    if "\0" in text:
        raise ValueError(f"{source}: it is a binary file; of a spreadsheet save the table as CSV")
    first = next(
        (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), None
    )
    if first is None:
        raise ValueError(f"{source}: it lists no city")
    tried = None
    for separator in _SEPARATORS:
        if separator not in (first.replace("\t", " ").strip() if separator == " " else first):
            continue
        lines, rows = _split(source, text, separator)
        rows = _with_points(source, lines, rows)
        titles = rows[0] if _have_titles(rows) else None
        table = Table(source, titles, rows[titles is not None :], lines[titles is not None :])
        if _has_numbers(table):
            return table
        tried = tried or table
    if tried is None:  # one column
        raise ValueError(
            f"{source}: needed are two columns at least, the first line is {first.strip()[:60]!r}"
        )
    return tried


def table_columns(table: Table, metric: str | None = None, matrix: bool | None = None) -> Columns:
    """Return what the columns of a table are, see `columns_of`.

    Raises ValueError naming source and line. Warns where the first city may be a line of titles.
    """
    width = len(table.titles or table.rows[0])
    for line, row in zip(table.lines, table.rows, strict=True):
        if len(row) != width:
            raise ValueError(
                f"{table.source}: line {line}: expected {width} cells as in the first line, got {len(row)}: "
                f"{', '.join(row)[:60]!r}"
            )
    try:
        columns = columns_of(table.titles, table.rows, metric, matrix, lines=table.lines)
    except ValueError as error:
        raise ValueError(f"{table.source}: {error}") from error
    if columns.coords is not None and columns.metric is None:
        _notice_numbering(table)
    return columns


def _notice_numbering(table: Table) -> None:
    """Warn where the first city is 0, 1 (0, 1, 2 ..), which may be titles of columns to which nobody gave any."""
    first = table.rows[0]
    if table.titles is None and first == [str(column) for column in range(len(first))]:
        warnings.warn(
            f"{table.source}: the first line, {', '.join(first)}, is taken as a city. If it only numbers the columns, "
            "as pandas writes titles that nobody gave, delete it (to_csv(.., header=False) writes none); titles x, y "
            'above it, or the metric "EXACT", say that it is a city',
            stacklevel=5,
        )


def _split(source: str, text: str, separator: str) -> tuple[list[int], list[list[str]]]:
    if separator == " ":
        text = "\n".join(" ".join(line.split()) for line in text.splitlines())
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True)
    lines, rows = [], []
    try:
        for cells in reader:
            row = [cell.strip() for cell in cells]
            if any(row) and not row[0].startswith("#"):
                lines.append(reader.line_num)
                rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{source}: line {reader.line_num}: {error}") from error
    return lines, rows


def _with_points(source: str, lines: list[int], rows: list[list[str]]) -> list[list[str]]:
    """Return the rows with decimal points where the file has decimal commas; it must not have both."""
    commas = [
        (line, cell)
        for line, row in zip(lines, rows, strict=True)
        for cell in row
        if _DECIMAL_COMMA.fullmatch(cell)
    ]
    if not commas:
        return rows
    points = [cell for row in rows for cell in row if _DECIMAL_POINT.fullmatch(cell)]
    if points:
        line, cell = commas[0]
        raise ValueError(
            f"{source}: line {line}: {cell!r} has a decimal comma and {points[0]!r} a decimal point; write all numbers "
            "one way"
        )
    return [
        [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in row] for row in rows
    ]


def _have_titles(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first line is one of titles: it holds words, or an empty corner before numbers, as pandas writes."""
    first = rows[0]
    if any(distance_of(cell) is None for cell in first):
        return sum(number_of(cell) is not None for cell in first) < 2
    if first[0] != "":
        return len(first) == 1
    # or it is the first line of a matrix without its diagonal: numbers in rising order from 0 or 1 on are titles
    bare = len(rows) == len(first) and not any(row[i : i + 1] != [""] for i, row in enumerate(rows))
    return not bare or list(first[1:]) in ([str(i + k) for i in range(len(first) - 1)] for k in (0, 1))


def _has_numbers(table: Table) -> bool:
    """Whether two columns at least are numbers, and all rows are as wide as the first."""
    width = len(table.titles or table.rows[0])
    if not table.rows or any(len(row) != width for row in table.rows):
        return False
    numeric = [all(distance_of(row[c]) is not None for row in table.rows) for c in range(width)]
    return sum(numeric) >= 2
