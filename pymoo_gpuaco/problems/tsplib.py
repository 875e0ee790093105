"""Reader of TSPLIB's `.tsp`, `.atsp`, `.sop` and `.tour` files: what their keywords and numbers mean."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.matrix import refuse_rounded
from pymoo_gpuaco.problems.metrics import METRIC_NAMES
from pymoo_gpuaco.problems.open_path import OpenPath
from pymoo_gpuaco.problems.table import lines_of, short
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.problems.tsplib_sections import (
    Lines,
    dimension,
    fail,
    integer,
    number,
    read_text,
    split,
)

__all__ = [
    "SUFFIXES",
    "TspFile",
    "parse_tsp",
    "parse_tsp_text",
    "read_tour",
    "read_tsp",
    "stem",
]

SUFFIXES = (".tsp", ".atsp", ".sop", ".tsp.gz", ".atsp.gz", ".sop.gz")

# What the sections of other problem classes are called: to pass over them would be to solve another problem.
_UNSUPPORTED = ("DEPOT_SECTION", "DEMAND_SECTION")
_ROUTING = ": PyVRP and OR-tools find routes of several vehicles"

_DIMENSIONS = {name: dimension for name, (_, dimension) in METRIC_NAMES.items()}
_DIMENSIONS |= {"EXACT_2D": 2, "EXACT_3D": 3, "GEOM": 2}

# A triangle listed by columns is the other triangle listed by rows.
_UPPER_BY_ROWS = {"UPPER_ROW": 1, "LOWER_COL": 1, "UPPER_DIAG_ROW": 0, "LOWER_DIAG_COL": 0}
_LOWER_BY_ROWS = {"LOWER_ROW": -1, "UPPER_COL": -1, "LOWER_DIAG_ROW": 0, "UPPER_DIAG_COL": 0}


@dataclass(frozen=True, eq=False)
class TspFile:
    """The contents of a `.tsp`, `.atsp` or `.sop` file.

    `ids` are the file's own numbers of the cities, ascending: city c of the problem is ids[c]; None for a
    matrix, whose cities have none. Of `coords` (n, 2 or 3) and `matrix` (n, n) one is None. `positions`
    (n, 2) are display data for a matrix, or None. `fixed_edges` (e, 2) are cities of the problem. `precedence` (p, 2)
    is that of a sequential ordering problem, a path from the first city to the last; None for other files.
    """

    path: Path
    name: str
    metric: str
    ids: list[int] | None = None
    coords: NDArray[np.float64] | None = None
    matrix: NDArray[np.float64] | None = None
    positions: NDArray[np.float64] | None = None
    fixed_edges: NDArray[np.int64] | None = None
    precedence: NDArray[np.int64] | None = None

    def problem(
        self,
        best_known: float | None = None,
        optimal_tour: NDArray[np.int64] | None = None,
        symmetric: bool | None = None,
    ) -> TSP:
        """Return the `TSP`. Raises ValueError naming the file where the numbers make no valid one."""
        arguments: dict[str, Any] = {
            "name": self.name,
            "best_known": best_known,
            "optimal_tour": optimal_tour,
            "fixed_edges": self.fixed_edges,
        }
        try:
            if self.matrix is None:
                own = None if self.ids == list(range(1, len(self.ids or ()) + 1)) else self.ids
                return TSP(self.coords, self.metric, ids=own, symmetric=symmetric, **arguments)
            if self.precedence is not None:
                arguments |= {"start": 0, "end": len(self.matrix) - 1, "precedence": self.precedence}
                return OpenPath(matrix=self.matrix, symmetric=bool(symmetric), **arguments)
            return TSP(matrix=self.matrix, positions=self.positions, symmetric=symmetric, **arguments)
        except ValueError as error:
            counted = " (cities count from 0 here)" if str(error).startswith("fixed_edges") else ""
            raise ValueError(f"{self.path}: {error}{counted}") from error


def read_tsp(path: str | PathLike[str]) -> TSP:
    """Read a TSPLIB file of TYPE TSP, ATSP or SOP, plain or gzip-compressed, or a SOP's bare matrix (`.sop`).

    A SOP is an `OpenPath` with precedence from the first city to the last. Cities are numbered 0..n-1 by ascending id.
    Raises FileNotFoundError for a missing file, and ValueError naming the file and the reason for any other type of
    problem and for broken or truncated contents.
    """
    return parse_tsp(path).problem()


def read_tour(
    path: str | PathLike[str], n: int | None = None, ids: Sequence[Any] | NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Read a tour as an (n,) permutation of 0..n-1: the first of a TSPLIB tour file, a route that `write_route` wrote
    as CSV or JSON, or Concorde's `.sol` and `.cyc`, which count from 0.

    `ids` are those of the cities in the file, such as the problem's `ids`; None: any consecutive integers,
    commonly from 1. `n` is the expected number of cities; left out, DIMENSION is, where the file has one. A missing -1
    or EOF at the end is accepted.

    Raises FileNotFoundError for a missing file, ValueError naming file and reason for any other fault.
    """
    path = Path(path)
    text = read_text(path)
    other = _other_tour(path, text)
    ids = None if ids is None else list(ids)
    what = "TOUR_SECTION" if other is None else "it"
    if other is not None:
        tour, from_0 = other
        expected, source = n, "the problem has"
        ids = list(range(len(tour))) if from_0 else ids
    else:
        header, sections = split(path, text)
        if "TOUR_SECTION" not in sections:
            fail(path, "there is no TOUR_SECTION")
        lines = sections["TOUR_SECTION"]
        tour = _until_minus_1(path, lines)
        expected, source = (dimension(path, header), "DIMENSION is") if n is None else (n, "the problem has")
        ids = ids if ids is None or all(isinstance(own, (int, np.integer)) for own in ids) else None
    if expected is not None and len(tour) != expected:
        fail(path, f"{source} {expected}, but {what} lists {len(tour)} cities")
    if not tour:
        fail(path, f"{what} has no cities")
    if ids is None:
        least = (
            min(tour) if other is None else min((int(own) for own in tour if str(own).isdecimal()), default=1)
        )
        ids = list(range(least, least + len(tour)))
    city_of = {str(number): city for city, number in enumerate(ids)}
    if len(set(tour)) != len(tour):
        fail(path, f"{what} lists a city twice")
    unknown = next((number for number in tour if str(number) not in city_of), None)
    if unknown is not None:
        fail(path, f"{what} lists {short(str(unknown))}, which is none of the {len(ids)} cities")
    return np.array([city_of[str(number)] for number in tour], dtype=np.int64)


def parse_tsp(path: str | PathLike[str]) -> TspFile:
    """Read a file as `read_tsp` does, without making a problem of it: same errors."""
    path = Path(path)
    return parse_tsp_text(path, read_text(path))


def parse_tsp_text(path: Path, text: str) -> TspFile:
    """Read the contents of such a file; `path` is what errors call it, and names an instance without a NAME."""
    if path.name.lower().endswith((".sop", ".sop.gz")) and not text.lstrip()[:1].isalpha():
        return _sop(path, stem(path.name), _bare(path, text))
    header, sections = split(path, text)
    kind = header.get("TYPE", "").split()[:1]  # si535.tsp: "TSP (M.~Hofmeister)"
    if not kind:
        fail(path, "there is no TYPE")
    if kind[0].upper() not in ("TSP", "ATSP", "SOP", "HCP"):
        fail(
            path,
            f"TYPE is {short(kind[0])}, only TSP, ATSP, SOP and HCP are read{_ROUTING * ('VRP' in kind[0].upper())}",
        )
    for section in _UNSUPPORTED:
        if section in sections:
            fail(path, f"a {section} is not supported{_ROUTING}")
    n = dimension(path, header)
    if n is None:
        fail(path, "there is no DIMENSION")
    if n < 2:
        fail(path, f"DIMENSION is {n}, a TSP needs at least 2 cities")
    name = stem(header.get("NAME") or path.name)

    if kind[0].upper() == "HCP":
        return TspFile(path, name, "EXPLICIT", matrix=_allowed(path, header, sections, n))
    metric = header.get("EDGE_WEIGHT_TYPE", "").upper()
    if kind[0].upper() == "SOP":
        lines = sections.get("EDGE_WEIGHT_SECTION", [])
        if sum(len(line.split()) for _, line in lines) == n * n + 1 and lines[0][1] == str(n):
            del lines[0]  # TSPLIB repeats the dimension there
        return _sop(path, name, _matrix(path, header, sections, n))
    if not metric:
        fail(path, "there is no EDGE_WEIGHT_TYPE")
    if metric == "EXPLICIT":
        matrix = _matrix(path, header, sections, n)
        positions = None
        if "DISPLAY_DATA_SECTION" in sections:
            _, positions = _table(path, sections, "DISPLAY_DATA_SECTION", n, 2)
        fixed = _fixed_edges(path, sections, list(range(1, n + 1)))
        return TspFile(path, name, metric, matrix=matrix, positions=positions, fixed_edges=fixed)
    if metric not in _DIMENSIONS:
        known = ", ".join(["EXPLICIT", *METRIC_NAMES, "EXACT_2D", "EXACT_3D", "GEOM"])
        fail(path, f"EDGE_WEIGHT_TYPE is {short(metric)}, known are {known}")
    ids, coords = _table(path, sections, "NODE_COORD_SECTION", n, _DIMENSIONS[metric])
    return TspFile(path, name, metric, ids, coords, fixed_edges=_fixed_edges(path, sections, ids))


def _bare(path: Path, text: str) -> NDArray[np.float64]:
    """Read a matrix that is the whole text, as SOPLIB has them."""
    try:
        weights = np.array([number(token) for token in text.split()])
    except ValueError as error:
        fail(path, str(error), error)
    n = math.isqrt(len(weights))
    if n < 2 or n * n != len(weights):
        fail(path, f"a matrix has n x n weights, got {len(weights)}")
    return weights.reshape(n, n)


def _sop(path: Path, name: str, matrix: NDArray[np.float64]) -> TspFile:
    """Return a sequential ordering problem: entry (i, j) = -1 says that j comes before i."""
    n = len(matrix)
    later, earlier = np.nonzero((matrix == -1.0) & ~np.eye(n, dtype=bool))
    if (earlier == n - 1).any() or (later == 0).any():
        fail(path, "the first city must come first and the last city last")
    inner = (earlier != 0) & (later != n - 1)
    pairs = np.stack([earlier[inner], later[inner]], axis=1).astype(np.int64)
    return TspFile(path, name, "EXPLICIT", matrix=np.where(matrix == -1.0, 0.0, matrix), precedence=pairs)


def _until_minus_1(path: Path, lines: Lines) -> list[Any]:
    """Return the integers in a section up to -1."""
    tour: list[Any] = []
    for line_number, line in lines:
        try:
            numbers = [integer(token) for token in line.split()]
        except ValueError as error:
            fail(path, f"line {line_number}: expected city numbers, got {short(line)}", error)
        if -1 in numbers:
            return tour + numbers[: numbers.index(-1)]
        tour.extend(numbers)
    return tour


def _other_tour(path: Path, text: str) -> tuple[list[Any], bool] | None:
    """Return the cities of a route in CSV or JSON, or of Concorde, and whether they count from 0; None for TSPLIB."""
    if text.startswith("{"):
        try:
            tour = json.loads(text)["tour"]
            return [int(city) for city in tour], True
        except (ValueError, KeyError, TypeError) as error:
            fail(path, "it is JSON without a tour", error)
    if text.startswith("stop,"):
        rows = list(csv.DictReader(io.StringIO(text)))
        return [row.get("city") for row in rows], False
    try:
        lines = [[number(token) for token in line.split()] for line in lines_of(text)]
    except ValueError:
        return None
    numbers = [int(value) for line in lines for value in line]
    if not numbers:
        return None
    n = numbers[0]
    if len(lines) > n > 0 and len(lines[0]) == 2 and all(len(line) == 3 for line in lines[1 : n + 1]):
        return [int(line[0]) for line in lines[1 : n + 1]], True  # edges of linkern, along the tour
    is_counted = sorted(numbers[1:]) == list(range(n))
    return (numbers[1:], True) if is_counted else (numbers, min(numbers) == 0)


def stem(file_name: str) -> str:
    """Return a file name without the suffix of a problem file."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if file_name.endswith(suffix):
            return file_name[: -len(suffix)]
    return file_name


def _table(
    path: Path, sections: dict[str, Lines], section: str, n: int, columns: int
) -> tuple[list[int], NDArray[np.float64]]:
    """Read n lines "id x y [z]"; return the ids ascending and the (n, columns) values in that order."""
    if section not in sections:
        fail(path, f"there is no {section}")
    lines = sections[section]
    # Before anything is allocated by a DIMENSION that may be wrong.
    if len(lines) != n:
        fail(path, f"DIMENSION is {n}, but {section} has {len(lines)} cities")
    ids: list[int] = []
    rows: list[list[float]] = []
    for line_number, line in lines:
        tokens = line.split()
        if len(tokens) != columns + 1:
            fail(
                path,
                f"line {line_number}: expected a city number and {columns} coordinates, got {short(line)}",
            )
        try:
            ids.append(integer(tokens[0]))
            rows.append([number(token) for token in tokens[1:]])
        except ValueError as error:
            fail(path, f"line {line_number}: expected numbers, got {short(line)}", error)
    if len(set(ids)) != n:
        seen: set[int] = set()
        twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        fail(path, f"{section} lists city {short(str(twice))} twice")
    order = sorted(range(n), key=ids.__getitem__)
    return [ids[row] for row in order], np.array(rows)[order]


def _fixed_edges(path: Path, sections: dict[str, Lines], ids: list[int]) -> NDArray[np.int64] | None:
    """Read lines "i j", ended by -1, as cities (e, 2); a missing -1 is accepted."""
    if "FIXED_EDGES_SECTION" not in sections:
        return None
    city_of = {own: city for city, own in enumerate(ids)}
    edges: list[list[int]] = []
    lines = sections["FIXED_EDGES_SECTION"]
    for line_number, line in lines:
        if line == "-1":
            break
        try:
            i, j = (integer(token) for token in line.split())
        except ValueError as error:
            fail(path, f"line {line_number}: expected two city numbers, got {short(line)}", error)
        for city in (i, j):
            if city not in city_of:
                fail(path, f"line {line_number}: {short(str(city))} is none of the {len(ids)} cities")
        edges.append([city_of[i], city_of[j]])
    return np.array(edges, np.int64).reshape(-1, 2)


def _allowed(path: Path, header: dict[str, str], sections: dict[str, Lines], n: int) -> NDArray[np.float64]:
    """Read the edges of a graph, which weigh 1, as an (n, n) matrix in which all others are infinite."""
    if "EDGE_DATA_SECTION" not in sections:
        fail(path, "there is no EDGE_DATA_SECTION")
    lists = header.get("EDGE_DATA_FORMAT", "EDGE_LIST").upper() == "ADJ_LIST"
    matrix = np.full((n, n), np.inf)
    numbers: list[int] = []
    for line_number, line in sections["EDGE_DATA_SECTION"]:
        try:
            numbers += [integer(token) for token in line.split()]
        except ValueError as error:
            fail(path, f"line {line_number}: expected city numbers, got {short(line)}", error)
    while numbers and numbers[-1] == -1:
        numbers.pop()
    if lists:  # a city and those beside it, ended by -1
        parts = " ".join(map(str, numbers)).split(" -1")
        rows = [[int(token) for token in part.split()] for part in parts]
        pairs = [(row[0], other) for row in rows if row for other in row[1:]]
    else:
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    for i, j in pairs:
        if not (1 <= i <= n and 1 <= j <= n):
            fail(path, f"EDGE_DATA_SECTION lists the edge {i} {j}, cities are 1 to {n}")
        matrix[i - 1, j - 1] = matrix[j - 1, i - 1] = 1.0
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _matrix(path: Path, header: dict[str, str], sections: dict[str, Lines], n: int) -> NDArray[np.float64]:
    """Read EDGE_WEIGHT_SECTION, numbers in any line breaks, as a full (n, n) matrix."""
    layout = header.get("EDGE_WEIGHT_FORMAT", "").upper()
    known = ("FULL_MATRIX", *_UPPER_BY_ROWS, *_LOWER_BY_ROWS)
    if layout not in known:
        fail(path, f"EDGE_WEIGHT_FORMAT is {short(layout) or 'missing'}, known are {', '.join(known)}")
    if "EDGE_WEIGHT_SECTION" not in sections:
        fail(path, "there is no EDGE_WEIGHT_SECTION")
    lines = sections["EDGE_WEIGHT_SECTION"]
    if layout == "FULL_MATRIX":
        expected = n * n
    else:
        expected = n * (n + 1) // 2 if "DIAG" in layout else n * (n - 1) // 2
    found = sum(len(line.split()) for _, line in lines)
    # Before anything is allocated by a DIMENSION that may be wrong.
    if found != expected:
        fail(
            path,
            f"DIMENSION is {n}, so {layout} has {expected} weights, but EDGE_WEIGHT_SECTION lists {found}",
        )
    weights = np.empty(expected)
    filled = 0
    for line_number, line in lines:
        try:
            row = [number(token) for token in line.split()]
        except ValueError as error:
            fail(path, f"line {line_number}: expected numbers, got {short(line)}", error)
        weights[filled : filled + len(row)] = row
        filled += len(row)
    refuse_rounded(f"{path}: a matrix", weights, [token for _, line in lines for token in line.split()])
    if layout == "FULL_MATRIX":
        return weights.reshape(n, n)
    if layout in _UPPER_BY_ROWS:
        i, j = np.triu_indices(n, _UPPER_BY_ROWS[layout])
    else:
        i, j = np.tril_indices(n, _LOWER_BY_ROWS[layout])
    if "DIAG" in layout and len(set(weights[i == j].tolist())) > 1:
        other = ("LOWER" if layout.startswith("UPPER") else "UPPER") + layout[5:]
        fail(path, f"the diagonal of {layout} has different numbers: the weights may be those of {other}")
    matrix = np.zeros((n, n))
    matrix[i, j] = weights
    matrix[j, i] = weights
    return matrix
