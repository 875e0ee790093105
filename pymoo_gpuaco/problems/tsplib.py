"""Reader of TSPLIB's `.tsp`, `.atsp`, `.sop` and `.tour` files: keywords, sections and numbers."""

from __future__ import annotations

import json
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise, takewhile
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.cells import vanishes
from pymoo_gpuaco.problems.matrix import refuse_rounded
from pymoo_gpuaco.problems.metrics import METRICS, MOST_TABULATED
from pymoo_gpuaco.problems.table import ParsedInstance, decoded, lines_of, naming, short, split, unpacked
from pymoo_gpuaco.problems.tsp import TSP

SUFFIXES = (".tsp", ".atsp", ".sop", ".tsp.gz", ".atsp.gz", ".sop.gz")

_KEYWORD = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*(?:(:)\s*(.*))?$")
_WITHOUT_COLON = re.compile(r"(NAME|TYPE|COMMENT|DIMENSION|EDGE_WEIGHT_TYPE|EDGE_WEIGHT_FORMAT)(\s)\s*(.*)$")
# keywords of the header that are read
_HEADER_KEYWORDS = (
    "NAME", "TYPE", "DIMENSION", "EDGE_WEIGHT_TYPE", "EDGE_WEIGHT_FORMAT", "EDGE_DATA_FORMAT"
)  # fmt: skip
# keywords that only describe the problem
_DESCRIPTIVE = ("COMMENT", "AUTHOR", "SOURCE", "DATE", "NODE_COORD_TYPE", "DISPLAY_DATA_TYPE")
# sections that are read, or that may place the cities in pictures only
_SECTIONS = (
    "NODE_COORD_SECTION", "DISPLAY_DATA_SECTION", "EDGE_WEIGHT_SECTION", "EDGE_DATA_SECTION", "FIXED_EDGES_SECTION"
)  # fmt: skip
# Keywords and sections of LKH-3 and VRPLIB that define another problem, and what serves them.
_ROUTING = "PyVRP and OR-tools serve several vehicles, capacities, time windows, pickups and deliveries"
_OTHER_PROBLEMS = dict.fromkeys(
    (
        "DEPOT_SECTION", "DEMAND_SECTION", "DEMAND_DIMENSION", "CAPACITY", "VEHICLES", "SALESMEN", "DISTANCE",
        "TIME_WINDOW_SECTION", "SERVICE_TIME", "SERVICE_TIME_SECTION", "PICKUP_AND_DELIVERY_SECTION",
        "BACKHAUL_SECTION",
    ),
    _ROUTING,
) | dict.fromkeys(
    (
        "GTSP_SETS", "GTSP_SET_SECTION", "GVRP_SETS", "GVRP_SET_SECTION", "CTSP_SET_SECTION", "GCTSP_SECTION",
        "GCTSP_SET_SECTION", "GROUPS", "GROUP_SECTION", "RELAXATION_LEVEL", "DRAFT_LIMIT_SECTION", "GRID_SIZE",
        "REQUIRED_NODES_SECTION", "NODE_SCORE_SECTION", "NODE_PENALTY_SECTION", "COST_LIMIT", "RISK_THRESHOLD",
        "DRONES", "ENDURANCE",
    ),
    "LKH-3 serves it",
) | {"SCALE": "multiply the coordinates or the weights by it and delete the line"}  # fmt: skip
_HARMLESS_AT_1 = ("SCALE", "SALESMEN", "VEHICLES")
_MAX_CITIES = 2**31 - 1  # cities are 32-bit integers

_LAYOUTS = (
    "FULL_MATRIX", "UPPER_ROW", "LOWER_COL", "UPPER_DIAG_ROW", "LOWER_DIAG_COL",
    "LOWER_ROW", "UPPER_COL", "LOWER_DIAG_ROW", "UPPER_DIAG_COL",
)  # fmt: skip

Lines: TypeAlias = list[tuple[int, str]]
"""Lines of a section: number in the file, and stripped text."""


def read_tour(
    path: str | PathLike[str], n: int | None = None, ids: Sequence[Any] | NDArray[Any] | None = None
) -> NDArray[np.int64]:
    """Read a tour as an (n,) permutation of 0..n-1: the first of a TSPLIB tour file, a route that `write_route` wrote
    as CSV or JSON, or Concorde's `.sol` and `.cyc`, which count from 0.

    `ids` are those of the cities in the file, such as the problem's `ids`; None: any consecutive integers,
    commonly from 1. `n` is the expected number of cities; None: DIMENSION, if the file has one. A missing -1
    or EOF at the end is accepted.

    Raises FileNotFoundError for a missing file, ValueError naming file and reason for any other fault.
    """
    path = Path(path)
    with naming(path):
        if path.exists() and not path.is_file():
            raise ValueError("it is a directory" if path.is_dir() else "it is not a regular file")
        text = _stripped(decoded(unpacked(path.read_bytes())))
        found, expected, source, what = _other_tour(text), n, "the problem has", "it"
        if found is not None:
            tour, from_0 = found
            ids = range(len(tour)) if from_0 else ids
        else:
            header, sections = _split(text)
            what = "TOUR_SECTION"
            numbers = chain.from_iterable(_rows(_section(sections, what), _integer, "city numbers"))
            tour = list(takewhile(lambda city: city != -1, numbers))
            if any(city != -1 for city in numbers):
                warnings.warn(f"{path}: {what} has another tour, which is ignored", stacklevel=2)
            if n is None:
                expected, source = _dimension(header), "DIMENSION is"
            ids = ids if ids is None or all(isinstance(own, (int, np.integer)) for own in ids) else None
        if expected not in (None, len(tour)):
            raise ValueError(f"{source} {expected}, but {what} lists {len(tour)} cities")
        if not tour:
            raise ValueError(f"{what} has no cities")
        labels = list(map(str, tour))
        if ids is None:
            least = min((int(own) for own in labels if own.lstrip("-").isdecimal()), default=1)
            ids = range(least, least + len(tour))
        city_of = {str(own): city for city, own in enumerate(ids)}
        if len(set(labels)) != len(tour):
            raise ValueError(f"{what} lists a city twice")
        for own in labels:
            if own not in city_of:
                raise ValueError(f"{what} lists {short(own)}, which is none of the {len(city_of)} cities")
        return np.array([city_of[own] for own in labels], dtype=np.int64)


def parse_tsp(file_name: str, text: str) -> ParsedInstance:
    """Read a TSPLIB file of TYPE TSP, ATSP, SOP or HCP, or a SOP's bare matrix (`.sop`).

    A SOP is a path with precedence from the first city to the last. Cities are numbered 0..n-1 by ascending id.
    Raises ValueError naming the reason for any other type of problem and for broken or truncated contents.
    """
    text = _stripped(text)
    if file_name.lower().endswith((".sop", ".sop.gz")) and not text.lstrip()[:1].isalpha():
        return _sop(stem(file_name), _bare(text))
    return _parse(file_name, *_split(text))


def stem(file_name: str) -> str:
    """Return a file name without the suffix of a problem file."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if file_name.endswith(suffix):
            return file_name[: -len(suffix)]
    return file_name


def _stripped(text: str) -> str:
    text = text.rstrip("\x1a \t\r\n")  # DOS files end with Ctrl-Z
    if not text:
        raise ValueError("it is empty")
    return text


def _split(text: str) -> tuple[dict[str, str], dict[str, Lines]]:
    """Return the header's values by keyword and each section's lines."""
    header: dict[str, str] = {}
    sections: dict[str, Lines] = {}
    section: Lines | None = None
    for line_number, raw in enumerate(lines_of(text), start=1):
        line = raw.strip()
        if not line:
            continue
        match = _KEYWORD.match(line) or _WITHOUT_COLON.match(line)
        if match is None:
            if section is None:
                raise ValueError(f"line {line_number}: expected a keyword, got {short(line)}")
            section.append((line_number, line))
            continue
        keyword, value = match[1].upper(), (match[3] or "").strip()
        if keyword == "EOF":
            break
        is_section = keyword.endswith("_SECTION")
        if match[2] is None and not is_section:
            what = "a keyword" if section is None else "numbers"
            raise ValueError(f"line {line_number}: expected {what}, got {short(line)}")
        if keyword in sections or (keyword in header and keyword in _HEADER_KEYWORDS):
            raise ValueError(f"line {line_number}: a second {keyword}")
        if is_section:
            section = sections[keyword] = [(line_number, value)] if value else []
            continue
        section = None
        if keyword == "DIMENSION":
            try:
                _integer(value)
            except ValueError as error:
                raise ValueError(f"line {line_number}: DIMENSION cannot be {short(value)}") from error
        header[keyword] = value
    return header, sections


def _dimension(header: dict[str, str]) -> int | None:
    """Return DIMENSION, or None if it is missing. Raises ValueError for more cities than 32 bits can number."""
    if "DIMENSION" not in header:
        return None
    n = _integer(header["DIMENSION"])
    if abs(n) > _MAX_CITIES:
        raise ValueError(f"DIMENSION is {short(str(n))}, the most that fits is {_MAX_CITIES}")
    return n


def parse_number(token: str) -> float:
    """Parse a finite number. Python's own float also takes "1_000" and "nan"."""
    value = float(token)
    if "_" in token or not math.isfinite(value) or vanishes(value, token):
        raise ValueError(f"{token!r} is not a finite number of double precision")
    return value


def _integer(token: str) -> int:
    """Parse a whole number. Python's own int also takes "1_000"."""
    if "_" in token:
        raise ValueError(f"{token!r} is not an integer")
    return int(token)


def _section(sections: dict[str, Lines], name: str) -> Lines:
    if name not in sections:
        raise ValueError(f"there is no {name}")
    return sections[name]


def _rows(
    lines: Lines, parse: Callable[[str], Any], expected: str, first: Callable[[str], Any] | None = None
) -> Iterator[list[Any]]:
    """Yield the parsed tokens of each line. Raises ValueError naming the line and what is ``expected`` there."""
    for line_number, line in lines:
        tokens = line.split()
        try:
            yield [(first or parse)(tokens[0]), *map(parse, tokens[1:])]
        except ValueError as error:
            raise ValueError(f"line {line_number}: expected {expected}, got {short(line)}") from error


def _parse(file_name: str, header: dict[str, str], sections: dict[str, Lines]) -> ParsedInstance:
    kind = (header.get("TYPE", "").split() or [""])[0]  # si535.tsp: "TSP (M.~Hofmeister)"
    if not kind:
        raise ValueError("there is no TYPE")
    kind = kind.upper()
    if kind not in ("TSP", "ATSP", "SOP", "HCP"):
        elsewhere = f": {_ROUTING}" if re.search("VRP|TW|PD|^MTSP", kind) else ""
        raise ValueError(f"TYPE is {short(kind)}, only TSP, ATSP, SOP and HCP are read{elsewhere}")
    for keyword in (*header, *sections):
        if keyword in _OTHER_PROBLEMS and not (keyword in _HARMLESS_AT_1 and header[keyword] == "1"):
            raise ValueError(f"{keyword} is not supported: {_OTHER_PROBLEMS[keyword]}")
    n = _dimension(header)
    if n is None:
        raise ValueError("there is no DIMENSION")
    if n < 2:
        raise ValueError(f"DIMENSION is {n}, a TSP needs at least 2 cities")
    name, metric = stem(header.get("NAME") or file_name), header.get("EDGE_WEIGHT_TYPE", "").upper()
    ids: Sequence[int] = range(1, n + 1)
    if kind == "HCP":
        _section(sections, "EDGE_DATA_SECTION")
        cities = ParsedInstance(label=name, metric="EXPLICIT")
    elif kind == "SOP":
        lines = sections.get("EDGE_WEIGHT_SECTION", [])
        if sum(len(line.split()) for _, line in lines) == n * n + 1 and lines[0][1] == str(n):
            del lines[0]  # TSPLIB repeats the dimension there
        cities = _sop(name, _matrix(header, sections, n))
    elif not metric:
        raise ValueError("there is no EDGE_WEIGHT_TYPE")
    elif metric == "EXPLICIT":
        matrix, positions = _matrix(header, sections, n), None
        if "DISPLAY_DATA_SECTION" in sections:
            _, positions = _table(sections, "DISPLAY_DATA_SECTION", n, 2)
        cities = ParsedInstance(label=name, metric=metric, matrix=matrix, positions=positions)
    elif metric not in METRICS:
        raise ValueError(f"EDGE_WEIGHT_TYPE is {short(metric)}, known are EXPLICIT, {', '.join(METRICS)}")
    else:
        ids, coords = _table(sections, "NODE_COORD_SECTION", n, METRICS[metric].dimensions[0])
        own = None if ids == list(range(1, n + 1)) else ids
        cities = ParsedInstance(label=name, metric=metric, ids=own, coords=coords)
    known = {*_HEADER_KEYWORDS, *_DESCRIPTIVE, *_HARMLESS_AT_1, *_SECTIONS}
    known -= {"EDGE_WEIGHT_SECTION"} if cities.matrix is None else set()
    ignored = ", ".join(keyword for keyword in (*header, *sections) if keyword not in known)
    if "EDGE_DATA_SECTION" in sections:
        cities = _restricted(cities, _allowed(header, sections, n, ids, kind))
    notes = [f"keywords and sections that are ignored: {short(ignored)}"] * bool(ignored)
    return replace(cities, fixed_edges=_fixed_edges(sections, ids), notes=notes)


def _bare(text: str) -> NDArray[np.float64]:
    """Read a text that consists of a matrix, as in SOPLIB."""
    tokens = text.split()
    weights = np.array([parse_number(token) for token in tokens])
    refuse_rounded("a matrix", weights, tokens)
    n = math.isqrt(len(weights))
    if n < 2 or n * n != len(weights):
        raise ValueError(f"a matrix has n x n weights, got {len(weights)}")
    return weights.reshape(n, n)


def _sop(name: str, matrix: NDArray[np.float64]) -> ParsedInstance:
    """Return a sequential ordering problem: entry (i, j) = -1 means that j comes before i."""
    n = len(matrix)
    later, earlier = np.nonzero((matrix == -1.0) & ~np.eye(n, dtype=bool))
    if (earlier == n - 1).any() or (later == 0).any():
        raise ValueError("the first city must come first and the last city last")
    inner = (earlier != 0) & (later != n - 1)
    pairs = np.stack([earlier[inner], later[inner]], axis=1).astype(np.int64)
    return ParsedInstance(
        label=name, metric="EXPLICIT", matrix=np.where(matrix == -1.0, 0.0, matrix), precedence=pairs
    )


def _other_tour(text: str) -> tuple[list[Any], bool] | None:
    """Return the cities of a route in CSV or JSON, or of Concorde, and whether they count from 0; None for TSPLIB."""
    if text.startswith("{"):
        try:
            return [operator.index(city) for city in json.loads(text)["tour"]], True
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError("it is JSON without a tour") from error
    if text.startswith("stop,"):
        titles, *rows = split(text, ",")[1]
        return [dict(zip(titles, row, strict=False)).get("city") for row in rows], False
    try:
        lines = [[_integer(token) for token in line.split()] for line in lines_of(text)]
    except ValueError:
        return None
    numbers = [number for line in lines for number in line]
    if not numbers:
        return None
    n = numbers[0]
    if len(lines) > n > 0 and len(lines[0]) == 2 and all(len(line) == 3 for line in lines[1 : n + 1]):
        return [line[0] for line in lines[1 : n + 1]], True  # edges of linkern, along the tour
    is_counted = len(numbers) == n + 1 and sorted(numbers[1:]) == list(range(n))
    return (numbers[1:], True) if is_counted else (numbers, min(numbers) == 0)


def _table(
    sections: dict[str, Lines], section: str, n: int, columns: int
) -> tuple[list[int], NDArray[np.float64]]:
    """Read n lines "id x y [z]"; return the ids ascending and the (n, columns) values in that order."""
    lines = _section(sections, section)
    # Before arrays are allocated: DIMENSION may be wrong.
    if len(lines) != n:
        raise ValueError(f"DIMENSION is {n}, but {section} has {len(lines)} cities")
    for line_number, line in lines:
        if len(line.split()) != columns + 1:
            raise ValueError(
                f"line {line_number}: expected a city number and {columns} coordinates, got {short(line)}"
            )
    rows = sorted(_rows(lines, parse_number, "numbers", _integer))
    ids = [row[0] for row in rows]
    for own, following in pairwise(ids):
        if own == following:
            raise ValueError(f"{section} lists city {short(str(own))} twice")
    return ids, np.array([row[1:] for row in rows])


def _fixed_edges(sections: dict[str, Lines], ids: Sequence[int]) -> NDArray[np.int64] | None:
    """Read lines "i j", ended by -1, as cities (e, 2); a missing -1 is accepted."""
    if "FIXED_EDGES_SECTION" not in sections:
        return None
    edges, city_of = [], {own: city for city, own in enumerate(ids)}
    for line_number, line in sections["FIXED_EDGES_SECTION"]:
        if line == "-1":
            break
        pair = next(_rows([(line_number, line)], _integer, "two city numbers"))
        if len(pair) != 2:
            raise ValueError(f"line {line_number}: expected two city numbers, got {short(line)}")
        for city in pair:
            if city not in city_of:
                raise ValueError(f"line {line_number}: {short(str(city))} is none of the {len(ids)} cities")
        edges.append([city_of[city] for city in pair])
    return np.array(edges, np.int64).reshape(-1, 2)


def _allowed(
    header: dict[str, str], sections: dict[str, Lines], n: int, ids: Sequence[int], kind: str
) -> NDArray[np.bool_]:
    """Read the edges of a graph, arcs of an ATSP or SOP, as an (n, n) array that is True for them."""
    if n > MOST_TABULATED:
        raise ValueError(f"DIMENSION is {n}, the graph of an {kind} has at most {MOST_TABULATED} cities")
    rows = list(_rows(sections["EDGE_DATA_SECTION"], _integer, "city numbers"))
    numbers = list(chain.from_iterable(rows))
    while numbers and numbers[-1] == -1:
        numbers.pop()
    layout = header.get("EDGE_DATA_FORMAT", "EDGE_LIST").upper()
    if layout == "ADJ_LIST":
        # a city and those beside it, ended by -1
        lists = [part.split() for part in " ".join(map(str, numbers)).split(" -1")]
        pairs = [(int(beside[0]), int(other)) for beside in lists for other in beside[1:]]
    elif layout == "EDGE_LIST" and len(numbers) % 2 == 0 and {len(row) for row in rows if row != [-1]} != {3}:
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    else:
        raise ValueError(
            f"EDGE_DATA_SECTION lists {len(numbers)} numbers, which are no {short(layout)} of pairs"
        )
    allowed, city_of = np.eye(n, dtype=bool), {own: city for city, own in enumerate(ids)}
    for i, j in pairs:
        if i not in city_of or j not in city_of:
            raise ValueError(f"EDGE_DATA_SECTION lists the edge {i} {j}, cities are {ids[0]} to {ids[-1]}")
        allowed[city_of[i], city_of[j]] = True
    return allowed if kind in ("ATSP", "SOP") else allowed | allowed.T


def _restricted(cities: ParsedInstance, allowed: NDArray[np.bool_]) -> ParsedInstance:
    """Forbid all edges that are not ``allowed`` (n, n); without distances, edges weigh 1."""
    full: Any = 1.0 if cities.matrix is None else cities.matrix
    positions, metric = cities.positions, cities.position_metric
    if cities.coords is not None:
        full, positions, metric = TSP(cities.coords, cities.metric).D, cities.coords[:, :2], cities.metric
    matrix = np.where(allowed, full, np.inf)
    np.fill_diagonal(matrix, 0.0)
    return replace(
        cities,
        metric="EXPLICIT",
        coords=None,
        matrix=matrix,
        positions=positions,
        position_metric=metric,
    )


def _matrix(header: dict[str, str], sections: dict[str, Lines], n: int) -> NDArray[np.float64]:
    """Read EDGE_WEIGHT_SECTION, numbers in any line breaks, as a full (n, n) matrix."""
    layout = header.get("EDGE_WEIGHT_FORMAT", "").upper()
    if layout not in _LAYOUTS:
        raise ValueError(
            f"EDGE_WEIGHT_FORMAT is {short(layout) or 'missing'}, known are {', '.join(_LAYOUTS)}"
        )
    lines = _section(sections, "EDGE_WEIGHT_SECTION")
    expected = n * n if layout == "FULL_MATRIX" else n * (n + 1 if "DIAG" in layout else n - 1) // 2
    tokens = [token for _, line in lines for token in line.split()]
    # Before arrays are allocated: DIMENSION may be wrong.
    if len(tokens) != expected:
        raise ValueError(
            f"DIMENSION is {n}, so {layout} has {expected} weights, but EDGE_WEIGHT_SECTION lists {len(tokens)}"
        )
    weights = np.fromiter(chain.from_iterable(_rows(lines, parse_number, "numbers")), np.float64, expected)
    refuse_rounded("a matrix", weights, tokens)
    if layout == "FULL_MATRIX":
        return weights.reshape(n, n)
    without = "DIAG" not in layout
    if layout.startswith("UPPER") == layout.endswith("ROW"):  # by columns it is the other triangle
        i, j = np.triu_indices(n, without)
    else:
        i, j = np.tril_indices(n, -without)
    if not without and len(set(weights[i == j].tolist())) > 1:
        other = ("LOWER" if layout.startswith("UPPER") else "UPPER") + layout[5:]
        raise ValueError(
            f"the diagonal of {layout} has different numbers: the weights may be those of {other}"
        )
    matrix = np.zeros((n, n))
    matrix[i, j] = weights
    matrix[j, i] = weights
    return matrix
