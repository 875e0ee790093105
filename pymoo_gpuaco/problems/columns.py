"""What the columns of a table are: names, coordinates, latitude and longitude, or a matrix of distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.cells import are_distances, distance_of, number_of
from pymoo_gpuaco.problems.labels import columns_by_rows, matching
from pymoo_gpuaco.problems.metrics import METRIC_NAMES
from pymoo_gpuaco.problems.no_road import refuse_rounded

__all__ = ["LATITUDE", "NAMES", "Columns", "columns_of", "on_the_globe"]

NAMES = ("name", "city", "label", "title", "address", "place", "stop", "station", "id", "code")
"""Titles of a column of names, the most telling first."""
_AXES = ("x", "y", "z")
LATITUDE = ("lat", "latitude")
"""Titles of a column of latitudes."""
_LONGITUDE = ("lon", "lng", "long", "longitude")
_NEEDED = "needed are columns x and y, or lat and lon, or as many columns as rows for a matrix"
_OF_THREE = "; matrix=True (--matrix on the command line) says that 3 x 3 numbers are one"


@dataclass(frozen=True, eq=False)
class Columns:
    """Cities as columns hold them: either `coords` or `matrix`.

    Attributes
    ----------
    names : (n,) of the cities, or None.
    coords : (n, 2) or (n, 3), as `metric` takes them; latitude first.
    matrix : (n, n), row = from.
    metric : as `TSP` takes it, or None where neither the user nor the columns tell one.
    """

    names: list[Any] | None
    coords: NDArray[np.float64] | None
    matrix: NDArray[np.float64] | None
    metric: str | None


def columns_of(
    titles: Sequence[Any] | None,
    rows: Sequence[Sequence[Any]],
    metric: str | None = None,
    matrix: bool | None = None,
    lines: Sequence[int] | None = None,
    index: Sequence[Any] = (),
) -> Columns:
    """Find out what the columns are, by their titles, else by their number.

    The columns of a matrix come in the order of its rows where both have labels.

    titles : of the columns, or None.
    rows : (n, columns) cells: numbers, or text.
    metric : the user's choice or None; columns of latitude and longitude then mean "HAVERSINE".
    matrix : whether the numbers are a matrix; None: as many columns of numbers as rows are one, of 3 where rows and
        columns have the same labels.
    lines : number of each row for messages; None: rows count from 0.
    index : (n,) labels of the rows besides the cells, or none.

    Raises ValueError saying what is missing or which row holds something else.
    """
    if not rows:
        raise ValueError("it lists no city")
    cells = [list(column) for column in zip(*rows, strict=True)]
    known = [str(title).strip().lower() for title in (titles or [""] * len(cells))]
    numeric = [c for c, column in enumerate(cells) if all(number_of(cell) is not None for cell in column)]
    if titles is None and len(numeric) < 2:  # some cell is broken, and told by its row
        numeric = [c for c, cell in enumerate(rows[0]) if number_of(cell) is not None]
    square = _square(titles, cells, index)
    if matrix is None and metric is None:
        matrix = square.labelled or (
            len(rows) > 3 and len(square.numeric) == len(rows) and not _have_axes(known)
        )
    if matrix:
        return _matrix(square, cells)
    where, globe = _axes(known, numeric, titles, metric, len(rows))
    coords = np.empty((len(rows), len(where)))
    for axis, c in enumerate(where):
        for row, cell in enumerate(cells[c]):
            value = number_of(cell)
            if value is None:
                at = f"row {row}" if lines is None else f"line {lines[row]}"
                raise ValueError(
                    f"{at}: expected {len(where)} finite numbers, got {', '.join(map(str, rows[row]))[:60]!r}"
                )
            coords[row, axis] = value
    return Columns(
        _names(known, cells, set(where), numeric), coords, None, metric or ("HAVERSINE" if globe else None)
    )


def on_the_globe(metric: str | None) -> bool:
    """Whether a metric takes latitude and longitude."""
    return metric is not None and metric.upper() in ("HAVERSINE", "GEO")


class _Square(NamedTuple):
    """What would be a matrix, if its rows are as many.

    numeric : the columns of distances.
    cities : their titles, or None.
    others : the columns beside them.
    sides : what labels the rows: an index, and the other columns.
    labelled : whether rows and columns have the same labels, which do more than count from 0 on.
    """

    numeric: list[int]
    cities: list[Any] | None
    others: list[list[Any]]
    sides: list[Sequence[Any]]
    labelled: bool


def _square(titles: Sequence[Any] | None, cells: list[list[Any]], index: Sequence[Any]) -> _Square:
    numeric = [c for c, column in enumerate(cells) if are_distances(column)]
    if len(numeric) == len(cells[0]) + 1 and titles is not None and numeric[0] == 0:
        numeric = numeric[1:]  # the first column numbers the cities, as pandas writes its index
    others = [column for c, column in enumerate(cells) if c not in numeric]
    sides = [side for side in (index, *others) if len(side)]
    if titles is None:
        return _Square(numeric, None, others, sides, labelled=False)
    cities = [titles[c] for c in numeric]
    labelled = len(cities) > 2 and [number_of(city) for city in cities] != list(range(len(cities)))
    return _Square(
        numeric, cities, others, sides, labelled and any(matching(side, cities) is not None for side in sides)
    )


def _have_axes(known: list[str]) -> bool:
    """Whether titles are those of coordinates."""
    return any(title in known for title in (*_AXES[:2], *LATITUDE))


def _matrix(square: _Square, cells: list[list[Any]]) -> Columns:
    n, numeric, others = len(cells[0]), square.numeric, square.others
    if len(numeric) != n:
        raise ValueError(
            f"a matrix needs as many columns of numbers as rows, there are {len(numeric)} and {n}"
        )
    names: list[Any] | None = others[0] if others else None
    if square.cities is not None:
        names = next((column for column in others if matching(column, square.cities)), names)
        order = columns_by_rows(square.sides, square.cities)
        numeric = [numeric[at] for at in order]
        names = names or [str(square.cities[at]) for at in order]
    full = np.array([[distance_of(cell) for cell in cells[c]] for c in numeric], dtype=np.float64)
    refuse_rounded("a matrix", full.ravel(), [cell for c in numeric for cell in cells[c]])
    return Columns(names, None, np.ascontiguousarray(full.T), None)


def _axes(
    known: list[str], numeric: list[int], titles: Sequence[Any] | None, metric: str | None, n: int
) -> tuple[list[int], bool]:
    """Return the columns of coordinates in the metric's order, and whether they are latitude and longitude."""
    if titles is None:
        dimension = METRIC_NAMES.get((metric or "EXACT").upper(), (None, 2))[1]
        if len(numeric) == dimension:
            return numeric, False
        if n == 3 and len(numeric) == 3:
            raise ValueError(
                "3 x 3 numbers are three cities in space or a matrix: matrix=True (--matrix on the command line) says "
                "that they are a matrix, titles x, y, z that they are cities"
            )
        raise ValueError(
            f"{len(numeric)} columns of numbers and no line of titles; there must be {dimension}, or a first line that "
            "names the columns x and y (and z), or lat and lon; or as many columns as rows, for a matrix"
        )
    latitude = next((known.index(title) for title in LATITUDE if title in known), None)
    longitude = next((known.index(title) for title in _LONGITUDE if title in known), None)
    plane = [known.index(axis) for axis in _AXES if axis in known] if {"x", "y"} <= set(known) else None
    if latitude is not None and longitude is not None:
        if plane is not None and metric is None:
            raise ValueError(
                "there are columns x and y, and columns of latitude and longitude: give a metric"
            )
        if metric is None or on_the_globe(metric):
            return [latitude, longitude], True
        return plane or [longitude, latitude], False
    if plane is None:
        of_three = _OF_THREE if n == 3 and len(numeric) > 2 else ""
        raise ValueError(f"{_NEEDED}{of_three}; the titles are {', '.join(map(str, titles))[:60]!r}")
    if metric is not None and metric.upper() == "HAVERSINE":
        return [plane[1], plane[0]], True  # x is the longitude of a map
    if metric is not None and metric.upper() in METRIC_NAMES and metric.upper() != "EXACT":
        plane = plane[: METRIC_NAMES[metric.upper()][1]]
    return plane, False


def _names(known: list[str], cells: list[list[Any]], taken: set[int], numeric: list[int]) -> list[Any] | None:
    """Return the column of names: one with a telling title, else the first that is not of numbers."""
    for title in NAMES:
        if title in known and known.index(title) not in taken:
            return cells[known.index(title)]
    rest = [c for c in range(len(cells)) if c not in taken and c not in numeric]
    return cells[rest[0]] if rest else None
