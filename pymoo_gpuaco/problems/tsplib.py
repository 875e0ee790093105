"""Reader of TSPLIB's `.tsp`, `.atsp` and `.tour` files.

tsplib95 supplies the table of keywords and parses their values. Splitting the file and reading its tables are
done here, since tsplib95 0.7.1

* finds keywords anywhere, also inside a COMMENT ("see TYPE: other" sets TYPE);
* fails on a last line EOF without a newline, and on comments that are not UTF-8;
* takes any count of cities for any DIMENSION, and keeps the last of two cities with one id;
* numbers the cities of explicit matrices from 0, while tours count from 1 (lengths come out wrong);
* gives every edge weight 1 where EDGE_WEIGHT_TYPE is missing;
* uses another pi for GEO than TSPLIB, takes d(i, i) = 1 there, and requires -1 at the end of a tour.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, NoReturn

import numpy as np
from numpy.typing import NDArray
from tsplib95.exceptions import ParsingError
from tsplib95.models import StandardProblem

from pymoo_gpuaco.problems.metrics import METRIC_NAMES
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["SUFFIXES", "TspFile", "parse_tour", "parse_tsp", "read_tour", "read_tsp", "stem"]

SUFFIXES = (".tsp", ".atsp", ".tsp.gz", ".atsp.gz")

_KEYWORD = re.compile(r"([A-Za-z][A-Za-z0-9_]*)\s*(?:(:)\s*(.*))?$")

# What the sections of other problem classes are called: to pass over them would be to solve another problem.
_UNSUPPORTED = ("EDGE_DATA_SECTION", "FIXED_EDGES_SECTION", "DEPOT_SECTION", "DEMAND_SECTION")

# A triangle listed by columns is the other triangle listed by rows.
_UPPER_BY_ROWS = {"UPPER_ROW": 1, "LOWER_COL": 1, "UPPER_DIAG_ROW": 0, "LOWER_DIAG_COL": 0}
_LOWER_BY_ROWS = {"LOWER_ROW": -1, "UPPER_COL": -1, "LOWER_DIAG_ROW": 0, "UPPER_DIAG_COL": 0}

_MAX_CITIES = 2**31 - 1  # cities are 32-bit integers

# What a file of n cities holds at most, in bytes: a bomb of a few kilobytes must not unpack to gigabytes.
_HEADER = 1 << 20
_A_CITY = 256
_A_WEIGHT = 40
_UNKNOWN = 1 << 26  # of a file that does not tell its DIMENSION in the header
_MOST_UNPACKED = (
    200  # times the packed size, beyond what is always allowed: TSPLIB's own files unpack to 6 times theirs
)
_DIMENSION = re.compile(rb"^[ \t]*DIMENSION[ \t]*:[ \t]*([0-9]{1,10})", re.MULTILINE | re.IGNORECASE)
_EXPLICIT = re.compile(rb"^[ \t]*EDGE_WEIGHT_TYPE[ \t]*:[ \t]*EXPLICIT", re.MULTILINE | re.IGNORECASE)


class Lines:
    """The lines of a section. What no problem of its size can need is counted and forgotten."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.kept: list[
            tuple[int, str]
        ] = []  # (line number in the file, its text without blanks at the ends)
        self.count = 0  # of all lines
        self.n_words = 0  # on all lines

    def add(self, number: int, line: str) -> None:
        self.count += 1
        self.n_words += len(line.split())
        if self.most is None or self.count <= self.most:
            self.kept.append((number, line))


@dataclass(frozen=True, eq=False)
class TspFile:
    """The contents of a `.tsp` or `.atsp` file.

    `ids` are the file's own numbers of the cities, ascending: city c of the problem is ids[c]; None for a
    matrix, whose cities have none. Of `coords` (n, 2 or 3) and `matrix` (n, n) one is None. `positions`
    (n, 2) are display data for a matrix, or None.
    """

    path: Path
    name: str
    metric: str
    ids: list[int] | None = None
    coords: NDArray[np.float64] | None = None
    matrix: NDArray[np.float64] | None = None
    positions: NDArray[np.float64] | None = None

    def problem(self, best_known: float | None = None, optimal_tour: NDArray[np.int64] | None = None) -> TSP:
        """Return the `TSP`. Raises ValueError naming the file where the numbers make no valid one."""
        try:
            if self.matrix is None:
                return TSP(
                    self.coords, self.metric, name=self.name, best_known=best_known, optimal_tour=optimal_tour
                )
            return TSP(
                matrix=self.matrix,
                name=self.name,
                best_known=best_known,
                optimal_tour=optimal_tour,
                positions=self.positions,
            )
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error


def read_tsp(path: str | PathLike[str]) -> TSP:
    """Read a TSPLIB file of TYPE TSP or ATSP, plain or gzip-compressed.

    Cities are numbered 0..n-1 by ascending id. Raises FileNotFoundError for a missing file, and ValueError
    naming the file and the reason for any other type of problem and for broken or truncated contents.
    """
    return parse_tsp(path).problem()


def read_tour(path: str | PathLike[str], n: int | None = None) -> NDArray[np.int64]:
    """Read the first tour of a TSPLIB tour file as an (n,) permutation of 0..n-1.

    The file must number its cities by consecutive integers, commonly from 1. `n` is the expected number of
    cities; left out, DIMENSION is, where the file has one. A missing -1 or EOF at the end is accepted.

    Raises FileNotFoundError for a missing file, ValueError naming file and reason for any other fault.
    """
    return parse_tour(path, n=n)


def parse_tsp(path: str | PathLike[str]) -> TspFile:
    """Read a file as `read_tsp` does, without making a problem of it: same errors."""
    path = Path(path)
    header, sections = _split(path, _read_text(path))
    kind = header.get("TYPE", "").split()[:1]  # si535.tsp: "TSP (M.~Hofmeister)"
    if not kind:
        _fail(path, "there is no TYPE")
    if kind[0].upper() not in ("TSP", "ATSP"):
        _fail(path, f"TYPE is {_short(kind[0])}, only TSP and ATSP are read")
    for section in _UNSUPPORTED:
        if section in sections:
            _fail(path, f"a {section} is not supported")
    n = _dimension(path, header)
    if n is None:
        _fail(path, "there is no DIMENSION")
    if n < 3:
        _fail(path, f"DIMENSION is {n}, a TSP needs at least 3 cities")
    name = stem(header.get("NAME") or path.name)

    metric = header.get("EDGE_WEIGHT_TYPE", "").upper()
    if not metric:
        _fail(path, "there is no EDGE_WEIGHT_TYPE")
    if metric == "EXPLICIT":
        matrix = _matrix(path, header, sections, n)
        positions = None
        if "DISPLAY_DATA_SECTION" in sections:
            _, positions = _table(path, sections, "DISPLAY_DATA_SECTION", n, 2)
        return TspFile(path, name, metric, matrix=matrix, positions=positions)
    if metric not in METRIC_NAMES:
        known = ", ".join(["EXPLICIT", *METRIC_NAMES])
        _fail(path, f"EDGE_WEIGHT_TYPE is {_short(metric)}, known are {known}")
    ids, coords = _table(path, sections, "NODE_COORD_SECTION", n, METRIC_NAMES[metric][1])
    return TspFile(path, name, metric, ids, coords=coords)


def parse_tour(
    path: str | PathLike[str], n: int | None = None, ids: list[int] | None = None
) -> NDArray[np.int64]:
    """Read a tour as `read_tour` does; `ids` are the (ascending) numbers that the cities have in the file.

    Without `ids`, any n consecutive numbers.
    """
    path = Path(path)
    header, sections = _split(path, _read_text(path))
    if "TOUR_SECTION" not in sections:
        _fail(path, "there is no TOUR_SECTION")
    tour: list[int] = []
    for number, line in sections["TOUR_SECTION"].kept:
        try:
            numbers = [_integer(token) for token in line.split()]
        except ValueError as error:
            _fail(path, f"line {number}: expected city numbers, got {_short(line)}", error)
        if -1 in numbers:
            tour.extend(numbers[: numbers.index(-1)])
            break
        tour.extend(numbers)
    expected = n if n is not None else _dimension(path, header)
    if expected is not None and len(tour) != expected:
        source = "DIMENSION is" if n is None else "the problem has"
        lines = sections["TOUR_SECTION"]
        listed = len(tour) if lines.count == len(lines.kept) else f"more than {expected}"
        _fail(path, f"{source} {expected}, but TOUR_SECTION lists {listed} cities")
    if not tour:
        _fail(path, "TOUR_SECTION lists no city")
    if ids is None:
        ids = list(range(min(tour), min(tour) + len(tour)))
    city_of = {number: city for city, number in enumerate(ids)}
    if len(set(tour)) != len(tour):
        _fail(path, "TOUR_SECTION lists a city twice")
    unknown = next((number for number in tour if number not in city_of), None)
    if unknown is not None:
        _fail(path, f"TOUR_SECTION lists {_short(str(unknown))}, which is none of the {len(ids)} cities")
    return np.array([city_of[number] for number in tour], dtype=np.int64)


def stem(file_name: str) -> str:
    """Return a file name without the suffix of a problem file."""
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if file_name.endswith(suffix):
            return file_name[: -len(suffix)]
    return file_name


def _read_text(path: Path) -> str:
    """Return the file's text. Raises ValueError for a directory, for what is not text, and for far too much of it."""
    if path.exists() and not path.is_file():
        _fail(path, "it is a directory" if path.is_dir() else "it is not a regular file")
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
            _fail(path, f"broken gzip data ({error})" if packed else f"it cannot be read ({error})", error)
    if b"\0" in data:
        _fail(path, "it is a binary file")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # umlauts in the comments of older files
    text = text.rstrip("\x1a \t\r\n")  # DOS files end with Ctrl-Z
    if not text:
        _fail(path, "it is empty")
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
        _fail(path, f"a file {cities} cannot hold more than {bound / 1e6:.1f} MB, and this one does")
    return head + rest


def _lines_of(text: str) -> Iterator[str]:
    """The lines, ended as files end them: str.splitlines also ends them at a form feed or U+0085 in a comment."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _most_lines(header: dict[str, str], section: str) -> int | None:
    """Lines that a section can need, where the header has told it before."""
    if "DIMENSION" not in header:
        return None
    n = max(int(StandardProblem.fields_by_keyword["DIMENSION"].parse(header["DIMENSION"])), 0)
    return n * n if section == "EDGE_WEIGHT_SECTION" else n + 1  # a tour has -1 at its end


def _split(path: Path, text: str) -> tuple[dict[str, str], dict[str, Lines]]:
    """Return the header's values by keyword, checked by tsplib95's fields, and each section's lines."""
    header: dict[str, str] = {}
    sections: dict[str, Lines] = {}
    section: Lines | None = None
    for number, raw in enumerate(_lines_of(text), start=1):
        line = raw.strip()
        if not line:
            continue
        match = _KEYWORD.match(line)
        if match is None:
            if section is None:
                _fail(path, f"line {number}: expected a keyword, got {_short(line)}")
            section.add(number, line)
            continue
        keyword, value = match[1].upper(), (match[3] or "").strip()
        if keyword == "EOF":
            break
        if keyword.endswith("_SECTION"):
            if keyword in sections:
                _fail(path, f"line {number}: a second {keyword}")
            section = sections[keyword] = Lines(_most_lines(header, keyword))
            if value:
                section.add(number, value)
        elif match[2] is None:
            what = "a keyword" if section is None else "numbers"
            _fail(path, f"line {number}: expected {what}, got {_short(line)}")
        else:
            section = None
            if keyword not in StandardProblem.fields_by_keyword or keyword == "COMMENT":
                continue
            if keyword in header:
                _fail(path, f"line {number}: a second {keyword}")
            try:
                StandardProblem.fields_by_keyword[keyword].parse(value)
            except ParsingError as error:
                _fail(path, f"line {number}: {keyword} cannot be {_short(value)}", error)
            header[keyword] = value
    return header, sections


def _dimension(path: Path, header: dict[str, str]) -> int | None:
    if "DIMENSION" not in header:
        return None
    n: int = StandardProblem.fields_by_keyword["DIMENSION"].parse(header["DIMENSION"])
    if abs(n) > _MAX_CITIES:
        _fail(path, f"DIMENSION is {_short(str(n))}, the most that fits is {_MAX_CITIES}")
    return n


def _table(
    path: Path, sections: dict[str, Lines], section: str, n: int, columns: int
) -> tuple[list[int], NDArray[np.float64]]:
    """Read n lines "id x y [z]"; return the ids ascending and the (n, columns) values in that order."""
    if section not in sections:
        _fail(path, f"there is no {section}")
    lines = sections[section]
    # Before anything is allocated by a DIMENSION that may be wrong.
    if lines.count != n:
        _fail(path, f"DIMENSION is {n}, but {section} has {lines.count} cities")
    ids: list[int] = []
    rows: list[list[float]] = []
    for number, line in lines.kept:
        tokens = line.split()
        if len(tokens) != columns + 1:
            _fail(
                path, f"line {number}: expected a city number and {columns} coordinates, got {_short(line)}"
            )
        try:
            ids.append(_integer(tokens[0]))
            rows.append([_number(token) for token in tokens[1:]])
        except ValueError as error:
            _fail(path, f"line {number}: expected numbers, got {_short(line)}", error)
    if len(set(ids)) != n:
        seen: set[int] = set()
        twice = next(i for i in ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        _fail(path, f"{section} lists city {_short(str(twice))} twice")
    order = sorted(range(n), key=ids.__getitem__)
    return [ids[row] for row in order], np.array(rows)[order]


def _matrix(path: Path, header: dict[str, str], sections: dict[str, Lines], n: int) -> NDArray[np.float64]:
    """Read EDGE_WEIGHT_SECTION, numbers in any line breaks, as a full (n, n) matrix."""
    layout = header.get("EDGE_WEIGHT_FORMAT", "").upper()
    known = ("FULL_MATRIX", *_UPPER_BY_ROWS, *_LOWER_BY_ROWS)
    if layout not in known:
        _fail(path, f"EDGE_WEIGHT_FORMAT is {_short(layout) or 'missing'}, known are {', '.join(known)}")
    if "EDGE_WEIGHT_SECTION" not in sections:
        _fail(path, "there is no EDGE_WEIGHT_SECTION")
    lines = sections["EDGE_WEIGHT_SECTION"]
    if layout == "FULL_MATRIX":
        expected = n * n
    else:
        expected = n * (n + 1) // 2 if "DIAG" in layout else n * (n - 1) // 2
    found = lines.n_words
    # Before anything is allocated by a DIMENSION that may be wrong.
    if found != expected:
        _fail(
            path,
            f"DIMENSION is {n}, so {layout} has {expected} weights, but EDGE_WEIGHT_SECTION lists {found}",
        )
    weights = np.empty(expected)
    filled = 0
    for number, line in lines.kept:
        try:
            row = [_number(token) for token in line.split()]
        except ValueError as error:
            _fail(path, f"line {number}: expected numbers, got {_short(line)}", error)
        weights[filled : filled + len(row)] = row
        filled += len(row)
    if layout == "FULL_MATRIX":
        return weights.reshape(n, n)
    if layout in _UPPER_BY_ROWS:
        i, j = np.triu_indices(n, _UPPER_BY_ROWS[layout])
    else:
        i, j = np.tril_indices(n, _LOWER_BY_ROWS[layout])
    matrix = np.zeros((n, n))
    matrix[i, j] = weights
    matrix[j, i] = weights
    return matrix


def _number(token: str) -> float:
    """Parse a finite number. Python's own float also takes "1_000" and "nan"."""
    value = float(token)
    if "_" in token or not math.isfinite(value):
        raise ValueError(f"{token!r} is not a finite number")
    return value


def _integer(token: str) -> int:
    if "_" in token:
        raise ValueError(f"{token!r} is not an integer")
    return int(token)


def _short(text: str) -> str:
    """Return a piece of a file fit for a message: hostile files have lines of megabytes."""
    return text if len(text) <= 40 else text[:37] + "..."


def _fail(path: Path, reason: str, cause: Exception | None = None) -> NoReturn:
    raise ValueError(f"{path}: {reason}") from cause
