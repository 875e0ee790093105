"""Reader of coordinates from a table in a text file: CSV as spreadsheets and pandas write it."""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_coordinates"]

_AXES = ("x", "y", "z")


def read_coordinates(path: str | PathLike[str]) -> NDArray[np.float64]:
    """Read a CSV file of coordinates as an (n, 2) or (n, 3) array, one city a line.

    Columns are separated by commas, semicolons, tabs or blanks. With a line of titles the columns `x`, `y` and,
    where there is one, `z` are taken (any case); without titles there must be exactly two columns. Empty lines and
    lines that begin with # are left out.

    Raises FileNotFoundError for a missing file, and ValueError naming file and line for other contents.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: it is no text in UTF-8 ({error})") from error
    lines = [
        (number, line.strip())
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise ValueError(f"{path}: it lists no city")
    separator = next((mark for mark in (";", "\t", ",") if mark in lines[0][1]), None)
    rows = [(number, _cells(line, separator)) for number, line in lines]
    first = rows[0][1]
    columns, width = _columns(path, first), len(first)
    if _numbers(first) is None:
        del rows[0]
    coords = np.empty((len(rows), len(columns)))
    for row, (number, cells) in enumerate(rows):
        values = _numbers([cells[c] for c in columns]) if len(cells) == width else None
        if values is None:
            raise ValueError(
                f"{path}: line {number}: expected {len(columns)} numbers, got {', '.join(cells)[:60]!r}"
            )
        coords[row] = values
    return coords


def _cells(line: str, separator: str | None) -> list[str]:
    if separator is None:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]


def _columns(path: Path, first: list[str]) -> list[int]:
    """Return which columns hold the coordinates, by the first line."""
    if _numbers(first) is not None:
        if len(first) != 2:
            raise ValueError(
                f"{path}: {len(first)} columns and no line of titles; there must be two, or a first line that names "
                "the columns x and y (and z)"
            )
        return [0, 1]
    titles = [cell.lower() for cell in first]
    if not {"x", "y"} <= set(titles):
        raise ValueError(f"{path}: needed are columns x and y, the titles are {', '.join(first)[:60]!r}")
    return [titles.index(axis) for axis in _AXES if axis in titles]


def _numbers(cells: list[str]) -> list[float] | None:
    """Return the cells as finite numbers, or None where one is none."""
    try:
        values = [float(cell) for cell in cells]
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None
