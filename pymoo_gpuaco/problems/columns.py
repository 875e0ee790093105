"""Last steps of the table pipeline: roles of columns, or a matrix, and the resulting cities."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.cells import (
    Marks,
    as_shown,
    axis_of,
    columns_by_rows,
    columns_of_axes,
    counts_from,
    decide_marks,
    ids_of,
    is_blank,
    is_gap,
    is_number,
    is_time,
    matching,
    names_axes,
    number_of,
    plain_title,
    without_marks,
)
from pymoo_gpuaco.problems.matrix import refuse_rounded
from pymoo_gpuaco.problems.metrics import METRICS, looks_like_degrees, on_the_globe
from pymoo_gpuaco.problems.table import (
    SEPARATORS,
    ParsedInstance,
    Reading,
    Table,
    is_numeric,
    is_value,
    refuse_triangle,
)

NAMES = (
    "name", "label", "title", "city", "address", "place", "station",
    "nom", "nombre", "nome", "naam", "nazwa", "ort", "stadt", "ville", "ciudad", "citta", "cidade", "miasto",
)  # fmt: skip
"""Titles of a column of names, in order of preference; also with a word before, as in stop_name."""
_IDS = ("id", "code", "nr", "no", "num", "number", "node", "stop", "fid", "index", "key", "#")
_ID = re.compile(
    r"(?:^|[^a-z])id$|[a-z](?:ID|Id)$|^(?:city|node|stop|point|place|site|store|customer|location|object|uu|[ogptuv])id$"
)
_TOTALS = ("total", "totals", "grand_total", "subtotal", "sum", "average", "mean")
_ROUTE = {"stop", "city", "name", "to_next"}  # titles of the files of `write_route`
_EXPECTED_TITLES = (
    "expected columns x and y, or lat and lon, or a matrix with as many columns of numbers as rows; columns= "
    "(--columns id,x,y) sets titles"
)
_IN_DEGREES = "; degrees may be 48.1372, 48°08'14\"N or 48 08 14 N, with minutes and seconds below 60"
# titles of tables with one row a pair, without an ending such as _id
_PAIRS = (("from", "to"), ("origin", "destination"), ("source", "target"), ("start", "end"))
_PAIR_OF = re.compile("_(id|name|city|stop|node|stop_id)$")
_DISTANCES = (
    "distance",
    "dist",
    "duration",
    "time",
    "travel_time",
    "cost",
    "weight",
    "length",
    "km",
    "minutes",
)
_THREE_BY_THREE = (
    "3 x 3 numbers are three cities in space or a matrix: matrix=True (--matrix on the command line) says that they "
    "are a matrix, titles x, y, z that they are cities"
)


def _is_id(title: Any) -> bool:
    plain = plain_title(title)
    return plain in _IDS or any(_ID.search(text) for text in (str(title).strip(), plain))


def cities_of(table: Table, reading: Reading) -> ParsedInstance:
    """Return the cities of a table; titles determine the roles of columns, else the number of columns.

    If rows and columns of a matrix have labels, its columns follow the order of its rows. Raises ValueError naming what
    is missing, which cell is not a number, or which argument decides between two meanings.
    """
    if not table.rows:
        raise ValueError("no coordinates found")
    width = len(table.titles if table.titles is not None else table.rows[0])
    refuse_triangle(table.rows)
    refuse_triangle([*([table.titles] if table.titles else []), *table.rows])
    for row, cells in enumerate(table.rows):
        if len(cells) != width:
            raise ValueError(
                f"{table.place(row)}: expected {width} cells as in the first line, got {len(cells)}: "
                f"{', '.join(map(str, cells))[:60]!r}"
            )
    if reading.columns is not None:
        if len(reading.columns) != width:
            raise ValueError(f"columns must be {width} titles, one a column, got {len(reading.columns)}")
        table = replace(table, titles=list(reading.columns))
    table = table.in_degrees()
    if reading.matrix is not False and (pairs := _columns_of_pairs(table)) is not None:
        return _of_pairs(table, pairs, reading)
    square = _square(table)
    if reading.matrix or (
        reading.matrix is None
        and reading.metric is None
        and (square.labelled or (not names_axes(table.titles or ()) and _looks_square(table, square)))
    ):
        cities = _matrix(table, square, reading)
    else:
        cities = _coordinates(table, reading)
    for last in {str(labels[-1]) for labels in (cities.ids, cities.names) if labels}:
        if plain_title(last) in _TOTALS:
            cities.notes.append(
                f"the last row, {last}, is read as a city: delete it if it sums up the others"
            )
    return cities


def _columns_of_pairs(table: Table) -> tuple[int, int, int] | None:
    """Return the columns from, to and distance of a table with one row a pair, or None for another table."""
    plain = [_PAIR_OF.sub("", plain_title(title)) for title in table.titles or ()]
    ends = next((pair for pair in _PAIRS if set(pair) <= set(plain)), None)
    if ends is None or names_axes(table.titles or ()):
        return None
    first, second = map(plain.index, ends)
    others = [c for c, column in enumerate(table.columns) if c not in (first, second) and is_numeric(column)]
    others = [c for c in others if plain[c] in _DISTANCES] or others
    if len(others) != 1:
        found = " and ".join(repr(str(table.titles[c])) for c in others) if table.titles else ""
        raise ValueError(
            f"a table of pairs needs one column of distances, got {found or 'none'}: columns= "
            "(--columns from,to,-,distance) decides"
        )
    return first, second, others[0]


def _of_pairs(table: Table, columns: tuple[int, int, int], reading: Reading) -> ParsedInstance:
    """Return the matrix of a table with one row a pair; raise ValueError naming a pair that is missing or twice."""
    first, second, third = (table.columns[c] for c in columns)
    names: dict[str, Any] = {}
    for label in (*first, *second):
        names.setdefault(str(label).strip(), label)
    number, n = {text: city for city, text in enumerate(names)}, len(names)
    marks = decide_marks(table.columns, columns[2:], columns[2:], reading.decimal, reading.thousands)
    given: dict[tuple[int, int], float] = {}
    for row, (start, end, cell) in enumerate(zip(first, second, third, strict=True)):
        value = np.inf if is_gap(cell) else number_of(without_marks(cell, marks))
        if value is None:
            raise ValueError(f"{table.place(row)}: expected a distance, got {as_shown(cell)}")
        known = given.setdefault((number[str(start).strip()], number[str(end).strip()]), value)
        if known != value:
            raise ValueError(
                f"{table.place(row)}: a second distance from {start!r} to {end!r}, {cell} after {known:g}"
            )
    given |= {(city, city): 0.0 for city in range(n)}
    once = not any(i != j and (j, i) in given for i, j in given)
    if reading.symmetric or (reading.symmetric is None and once):
        given = {(j, i): value for (i, j), value in given.items()} | given
    for i, j in (
        product(range(n), repeat=2) if len(given) < n * n else ()
    ):  # n x n numbers may not fit the memory
        if (i, j) not in given:
            start, end = ([*names.values()][city] for city in (i, j))
            raise ValueError(
                f"there is no distance from {start!r} to {end!r}, one of {n * n - len(given)} that are missing: inf "
                "forbids an edge, symmetric=True (--symmetric yes) takes the way back"
            )
    full = np.empty((n, n))
    full[tuple(zip(*given, strict=True))] = list(given.values())
    labels = list(names.values())
    ids = ids_of(labels) if all(number_of(label) is not None for label in labels) else None
    words = "from, to, distance" + ", each pair once for both directions" * once
    return ParsedInstance(labels, None, full, None, ids, f"{words}; {n} cities")


def _coordinates(table: Table, reading: Reading) -> ParsedInstance:
    columns = table.columns
    numeric = [c for c, column in enumerate(columns) if all(map(is_number, column))]
    if table.titles is None and len(numeric) < 2:  # some cell is not a number; an error names its row
        numeric = [c for c, cell in enumerate(table.rows[0]) if is_number(cell)]
        for row, cells in enumerate(table.rows if len(numeric) < 2 else ()):
            for cell in filter(is_time, cells):
                raise ValueError(f"{table.place(row)}: expected a number, got {as_shown(cell)}")
    where, globe = _axes(table, numeric, reading.metric)
    blank = [row for row, cells in enumerate(table.rows) if any(is_blank(cells[c]) for c in where)]
    if blank and reading.skip_blank:
        return _coordinates(table.without(blank), reading)
    cities_ids, cities_names, labels = _labels(table, where, numeric)
    marks = decide_marks(columns, set(numeric) - set(labels), where, reading.decimal, reading.thousands)
    coords = np.empty((len(table.rows), len(where)))
    for row, cells in enumerate(table.rows):
        for axis, c in enumerate(where):
            value = number_of(without_marks(cells[c], marks))
            if value is None:
                shown = as_shown(cells[c]) if is_time(cells[c]) else f"{', '.join(map(str, cells))[:60]!r}"
                hint = _of_blanks(table, blank) if row in blank else _IN_DEGREES * globe
                raise ValueError(
                    f"{table.place(row)}: expected {len(where)} finite numbers, got {shown}{hint}"
                )
            coords[row, axis] = value
    roles = {**labels, **{c: ("lat", "lon")[axis] if globe else "xyz"[axis] for axis, c in enumerate(where)}}
    notes = [*table.notes, *([] if reading.metric or globe else _doubts(table, coords))]
    if (
        table.titles is None
        and len(coords) > 2
        and coords[0].tolist() in ([len(coords) - 1, n] for n in (len(where), len(coords) - 1))
    ):
        shown = ", ".join(map(str, table.rows[0]))
        notes.append(
            f"the first row, {shown}, is read as a city: delete it if it counts the rows; titles confirm it"
        )
    if cities_names and all(map(is_time, cities_names)):
        notes.append(
            f"times such as {cities_names[0]} are read as names of the cities: times of visits are not served"
        )
    metric = reading.metric or ("HAVERSINE" if globe else "EXACT")
    return ParsedInstance(
        cities_names, coords, None, metric, cities_ids, _in_words(table, roles, marks), notes
    )


def _of_blanks(table: Table, rows: Sequence[int]) -> str:
    """Return the end of a message about rows without coordinates."""
    places = ", ".join(table.place(row) for row in rows[:3]) + (", .." if len(rows) > 3 else "")
    return (
        f"; rows without coordinates: {len(rows)} ({places}); skip_blank=True (--skip-blank) leaves them out"
    )


def _axes(table: Table, numeric: list[int], metric: str | None) -> tuple[list[int], bool]:
    """Return the columns of coordinates in the metric's order, and whether they are latitude and longitude."""
    row = METRICS.get((metric or "EXACT").upper())
    dimension = 2 if row is None else row.dimensions[0]
    if table.titles is None:
        if len(numeric) == dimension:
            return numeric, on_the_globe(metric)
        if len(table.rows) == 3 and len(numeric) == 3:
            raise ValueError(_THREE_BY_THREE)
        raise ValueError(
            f"{len(numeric)} columns of numbers and no line of titles: expected {dimension}, titles x and y or lat and "
            "lon (columns=, --columns id,x,y), or as many columns as rows"
        )
    at = columns_of_axes(table.titles)
    globe, plane = {"lat", "lon"} <= set(at), {"x", "y"} <= set(at)
    on_globe = metric is None or on_the_globe(metric)
    if globe and plane and metric is None:
        raise ValueError("there are columns x and y, and columns of latitude and longitude: give a metric")
    if globe and (on_globe or not plane):
        wanted = ["lat", "lon"] if on_globe else ["lon", "lat"]
    elif plane and (metric or "").upper() in ("HAVERSINE", "GEOM"):
        wanted = ["y", "x"]
    elif plane:
        wanted = list("xyz")[: 2 + ("z" in at)]
        if metric is not None and not metric.upper().startswith("EXACT"):
            wanted = wanted[:dimension]
    else:
        of_three = f"; {_THREE_BY_THREE}" if len(table.rows) == 3 and len(numeric) > 2 else ""
        raise ValueError(
            f"{_EXPECTED_TITLES}{of_three}; the titles are {', '.join(map(str, table.titles))[:60]!r}"
        )
    for axis in wanted:
        if len(at[axis]) > 1:
            twice = " and ".join(repr(str(table.titles[c])) for c in at[axis])
            raise ValueError(f"columns {twice} may both be {axis}: columns= (--columns name,x,y,-) decides")
    return [at[axis][0] for axis in wanted], wanted == ["lat", "lon"]


def _labels(
    table: Table, taken: Sequence[int], numeric: Sequence[int]
) -> tuple[list[Any] | None, list[Any] | None, dict[int, str]]:
    """Return ids and names of the cities, and the roles of the columns that hold them."""
    columns = table.columns
    titles = [str(title).strip() for title in table.titles or [""] * len(columns)]
    free = [c for c in range(len(columns)) if c not in taken and titles[c] != "-"]
    free = [c for c in free if not all(map(is_blank, columns[c]))]
    plain, numbers = [plain_title(title) for title in titles], set(numeric)
    titled = [c for c in free if _is_id(titles[c])]
    titled.sort(key=lambda c: _IDS.index(plain[c]) if plain[c] in _IDS else 0)
    if set(plain) >= _ROUTE:
        titled = [plain.index("city")]
    for c in titled[1:]:
        if plain[c] == plain[titled[0]]:
            raise ValueError(f"two columns have the title {titles[c]!r}: columns= decides")
    untitled = [c for c in free if table.titles and plain[c] in ("", "unnamed:_0")]
    id_column = next(iter([*titled, *untitled]), None)
    named = [c for title in NAMES for c in free if plain[c] == title and c != id_column]
    named += [c for c in free if plain[c].endswith("_name") and c != id_column]
    is_said = bool(named or titled)
    if not is_said:
        named = [c for c in free if c not in numbers and c != id_column][:1]
    index = [] if counts_from(table.index) == 0 else list(table.index)
    if id_column is None and not is_said and not index:
        # distinct whole numbers under another title: in the first column, or if no texts tell the cities apart
        whole = [c for c in free if c in numbers and all(str(cell).isdecimal() for cell in columns[c])]
        apart = [c for c in named if ids_of(columns[c])]
        id_column = next((c for c in whole if ids_of(columns[c]) and (c == 0 or not apart)), None)
    labels = list(columns[id_column]) if id_column is not None else index
    ids = ids_of(labels)
    name_column = next(iter(named), None)
    names = list(columns[name_column]) if name_column is not None else labels or None
    roles = {id_column: "id" if ids else "name", name_column: "name"}
    return ids, names, {c: role for c, role in roles.items() if c is not None}


class _Square(NamedTuple):
    """Columns that may form a matrix; they do if there are as many rows."""

    numeric: list[int]  # columns of distances
    cities: list[Any] | None  # their titles
    sides: list[Sequence[Any]]  # labels of the rows: an index, and the other columns
    labelled: bool  # rows and columns have the same labels, not just 0, 1, 2 ..


def _square(table: Table) -> _Square:
    n, titles, columns = len(table.rows), table.titles, table.columns
    if titles is not None and 2 <= n <= len(titles):
        places: dict[str, list[int]] = {}
        for c, title in enumerate(titles):
            places.setdefault(str(title).strip(), []).append(c)
        for at, side in [(-1, table.index), *enumerate(columns)]:
            if len(titles) - (at >= 0) == n:
                rest = [c for c in range(len(titles)) if c != at]
            else:
                labels = {str(label).strip() for label in side}
                rest = sorted(c for label in labels for c in places.get(label, ()) if c != at)
            cities = [titles[c] for c in rest]
            order = matching(side, cities) if len(side) == n == len(rest) else None
            if order is not None:
                return _Square(
                    [rest[at] for at in order], [cities[at] for at in order], [side], counts_from(cities) != 0
                )
    numeric = [c for c, column in enumerate(columns) if is_numeric(column)]
    if len(numeric) < n:  # some cells are not numbers; an error names their places later
        mostly = [c for c, column in enumerate(columns) if 2 * sum(map(is_value, column)) >= n > 2]
        numeric = mostly if len(mostly) == n else numeric
    if len(numeric) == n + 1 and numeric[0] == 0 and (titles is not None or ids_of(list(columns[0]))):
        numeric = numeric[1:]  # the first column numbers the cities, as a pandas index does
    distances = set(numeric)
    sides = [table.index, *(column for c, column in enumerate(columns) if c not in distances)]
    return _Square(
        numeric, None if titles is None else [titles[c] for c in numeric], [s for s in sides if len(s)], False
    )


def _looks_square(table: Table, square: _Square) -> bool:
    """Return True if a table without matching labels looks like a matrix: its diagonal is constant or blank.

    Raises ValueError if the diagonal does not decide.
    """
    n, columns = len(table.rows), table.columns
    if n == len(columns) == 2 and table.titles is None and _rough(columns[0][0]) == _rough(columns[1][1]):
        raise ValueError(
            "2 x 2 numbers are two cities or a matrix: matrix=True (--matrix) or titles x, y decide"
        )
    if n < 4 or len(square.numeric) != n or (table.titles is None and len(columns) > n + 1):
        return False
    first = (
        table.titles is None and len(columns) == n + 1 and 0 not in square.numeric and is_numeric(columns[0])
    )
    diagonal = [columns[c][row] for row, c in enumerate(square.numeric)]
    if first or len({_rough(cell) for cell in diagonal if not is_blank(cell)}) > 1:
        if table.titles is not None and any(label is not None for label in map(axis_of, table.titles)):
            return False
        raise ValueError(
            f"{n} rows of {n} numbers are a matrix, or columns such as id, x, y: matrix=True (--matrix) or titles "
            "(columns=, --columns id,x,y,-) decide"
        )
    return True


def _rough(cell: Any) -> Any:
    """Return a cell as a number, for comparisons; points and commas are treated as the same."""
    value = number_of(cell.replace(",", ".") if isinstance(cell, str) else cell)
    return cell if value is None else value


def _matrix(table: Table, square: _Square, reading: Reading) -> ParsedInstance:
    n, numeric, columns = len(table.rows), square.numeric, table.columns
    if len(numeric) != n:
        raise ValueError(f"a matrix needs as many columns of numbers as rows, got {len(numeric)} and {n}")
    others = [
        columns[c] for c in sorted({*range(len(columns))} - {*numeric}) if not all(map(is_blank, columns[c]))
    ]
    beside: Sequence[Any] = others[0] if others else ()
    if square.cities is not None:
        beside = next((column for column in others if matching(column, square.cities)), beside)
        order = columns_by_rows(square.sides, square.cities)
        numeric = [numeric[at] for at in order]
        beside = beside or [str(square.cities[at]) for at in order]
    if any(number_of(label) is None for label in table.index):
        beside = table.index
    names = list(beside) or None
    marks = decide_marks(columns, numeric, numeric, reading.decimal, reading.thousands)
    cells = [[row[c] for c in numeric] for row in table.rows]
    texts = [[without_marks(cell, marks) for cell in row] for row in cells]
    full = np.empty((n, n))
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            value = number_of(texts[i][j])
            if value is None and not is_gap(cell):
                of = names or [*range(1, n + 1)]
                raise ValueError(
                    f"{table.place(i)}, from {of[i]!r} to {of[j]!r}: expected a distance, got {as_shown(cell)}"
                )
            full[i, j] = np.inf if value is None else value
    refuse_rounded("a matrix", full.ravel(), [text for row in texts for text in row])
    blank = np.array([[is_blank(cell) for cell in row] for row in cells])
    mirrored = _mirror(full, blank, reading.symmetric)
    ids = ids_of(names) if names and all(number_of(name) is not None for name in names) else None
    words = f"matrix, row = from{', names beside or above' if names else ''}{mirrored}"
    return ParsedInstance(names, None, full, None, ids, _in_words(table, {}, marks, words))


def _mirror(full: NDArray[np.float64], blank: NDArray[np.bool_], symmetric: bool | None) -> str:
    """Fill blanks with the opposite numbers and describe that; raise ValueError if the blanks may forbid edges."""
    np.fill_diagonal(blank, False)
    open_ = blank & ~blank.T
    np.fill_diagonal(open_, False)
    if symmetric is False or not open_.any():
        return ""
    off = ~np.eye(len(full), dtype=bool)
    both = off & ~blank & ~blank.T
    half = np.tril(blank, -1).sum() == np.tril(off).sum() or np.triu(blank, 1).sum() == np.triu(off).sum()
    if symmetric is None and not half:
        if not np.array_equal(full[both], full.T[both]):
            return ""  # the matrix is asymmetric: a blank forbids one direction
        i, j = np.argwhere(open_)[0].tolist()
        raise ValueError(
            f"the distance from city {i} to city {j} (from 0) is blank, and the reverse is {full[j, i]:g}: "
            "symmetric=True (--symmetric yes) mirrors it, symmetric=False (--symmetric no) forbids the edge"
        )
    full[open_] = full.T[open_]
    return ", its blank half mirrored" if half else ", blanks opposite numbers mirrored"


def _in_words(table: Table, roles: dict[int, str], marks: Marks, words: str = "") -> str:
    """Describe the role of each column."""
    titles = table.titles or [""] * len(table.rows[0])
    described = [
        role + (f" ({titles[c]})" if titles[c] and plain_title(titles[c]) != role else "")
        for c, role in sorted(roles.items())
    ]
    filled = [bool(roles) and not all(map(is_blank, column)) for column in table.columns]
    ignored = [str(title) for c, title in enumerate(titles) if title and filled[c] and c not in roles]
    parts = [words or ", ".join(described), f"{len(table.rows)} cities"]
    parts += [f"left out: {table.left_out}"] * bool(table.left_out)
    parts += [f"lines left out that begin with #: {table.comments}"] * bool(table.comments)
    parts += [f"columns ignored: {', '.join(ignored)[:60]}"] * bool(ignored)
    parts += [f"separated by {SEPARATORS.get(table.separator, repr(table.separator))}"] * bool(
        table.separator
    )
    return "; ".join([*parts, *[str(marks)] * bool(str(marks))])


def _doubts(table: Table, coords: NDArray[np.float64]) -> list[str]:
    """Return warnings for coordinates that look like degrees, and for a first line that may number the columns."""
    doubts = []
    if looks_like_degrees(coords):
        doubts.append(
            "these coordinates look like degrees, and are read as places in a plane: name the columns lat and lon, or "
            'choose the metric "HAVERSINE" (x is the longitude), or "EXACT" for a plane'
        )
    if (
        table.separator
        and table.titles is None
        and table.rows[0] == [str(c) for c in range(len(table.rows[0]))]
    ):
        doubts.append(
            f"the first line, {', '.join(table.rows[0])}, is read as a city: delete it if it only numbers the columns; "
            'titles x, y above it, or the metric "EXACT", confirm that it is a city'
        )
    return doubts
