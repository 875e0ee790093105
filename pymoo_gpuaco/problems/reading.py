"""Entry point of the table pipeline: cities from files, open files, tables, graphs and problems of other packages."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.cells import counts_from, frame_parts, is_frame, matching, number_of
from pymoo_gpuaco.problems.columns import cities_of
from pymoo_gpuaco.problems.formats import parse_json, parse_npy, parse_sheet, parse_xml, table_of_objects
from pymoo_gpuaco.problems.matrix import is_matrix, refuse_rounded
from pymoo_gpuaco.problems.table import (
    OF_CELLS,
    ParsedInstance,
    Reading,
    ReadingOptions,
    Table,
    decoded,
    naming,
    parse_table,
    table_of,
    unpacked,
)
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.problems.tsplib import SUFFIXES, parse_tsp

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TSPLIB = re.compile(
    r"\s*(NAME|TYPE|COMMENT|DIMENSION|EDGE_WEIGHT_TYPE)(\s*:|\s(?=(?s:.*)^[A-Z_]+_SECTION\s*$))",
    re.IGNORECASE | re.MULTILINE,
)


def read_cities(source: Any, *, name: str | None = None, **reading: Unpack[ReadingOptions]) -> TSP:
    """Make a `TSP` of the cities in a file, an open file, a table or a graph.

    Sources are

    * the path of a file or a pipe, or an open file (text or bytes), also packed by gzip: TSPLIB's formats, a table
      (CSV), GeoJSON, JSON of routing services or Overpass, lists in JSON, also an object a line, GPX, KML,
      OpenStreetMap, an Excel workbook (openpyxl), .npy, or .parquet (pandas and pyarrow);
    * a DataFrame of pandas or polars, a GeoDataFrame of points, or an array of xarray with labels;
    * a list of dicts, or of rows such as (name, x, y); a dict of distances {(from, to): distance}, or a Series with
      such an index;
    * a graph of networkx: no tour may use an edge that it lacks; edges without a weight weigh 1;
    * a problem of tsplib95.

    A table has columns `x`, `y` (and `z`), or `lat`/`latitude` and `lon`/`lng`/`long`/`longitude` in degrees (48.1372,
    48°08'14"N, 48 08 14 N), also with a word before (`stop_lat`) or in another language, and perhaps ids (`id`,
    `CityId`, `nr`, `stop` .., or a first column without a title) and names (`name`, `city`, `label` .., else the first
    column that is not numeric); without both, different whole numbers under any title are ids. A table without titles
    has two columns of coordinates, and perhaps one of names. A table with equal numbers of rows and numeric columns
    (more than 3, or with the same labels) is a matrix, row = from. There an empty cell or `inf` is an edge that no tour
    may use, a blank half is mirrored, and columns follow the order of the row labels. Columns `from`, `to` and
    `distance` are a matrix, too, with a row for each pair, or each pair once for both directions.

    Latitude and longitude get great-circle distances in kilometres ("HAVERSINE"), other coordinates Euclidean ones
    ("EXACT"). `read_as` of the problem names the roles of the columns.

    source : one of these.
    metric : another metric of coordinates, see `TSP`. With "HAVERSINE", columns x and y are longitude and latitude,
        and two columns without titles latitude and longitude.
    matrix : True if the numbers are a matrix, False if they are not; default: by the table.
    name : title of the problem; default: the name of the file.
    symmetric : of a matrix, see `TSP`.
    columns : titles of the columns, for a table without titles or in place of its titles; - ignores a column.
    separator : the character between columns; default: the first of ; tab | , : and blanks that separates numbers.
    decimal, thousands : "." or ",", the marks of ambiguous numbers.
    weight : the attribute of edges (default "weight"), or the name of a matrix in a JSON file.
    skip_blank : True leaves out the rows of a table that have no coordinates.
    points : True reads the points of a GPX track or route, which have an order, as cities.

    Raises FileNotFoundError for a missing file, and TypeError for another kind of source. Raises ValueError, naming the
    file and its mistake, or the argument that decides an ambiguous case. Warns if columns x and y look like degrees.
    """
    choices, where = Reading("read_cities", reading, "name"), ""
    if is_frame(source):
        choices.allow("a DataFrame", *OF_CELLS)
        cities = cities_of(_frame_table(source), choices)
    elif (table := _python_table(source)) is not None:
        choices.allow("a list or a dict", *OF_CELLS)
        cities = cities_of(table, choices)
    elif is_graph(source):
        choices.allow("a graph", "symmetric", "weight")
        cities = _graph_cities(source, choices.weight)
    elif hasattr(source, "read") or is_tsplib95(source):
        if is_tsplib95(source):
            source, name = io.StringIO(source.render()), name or source.name
        content = source.read()
        where = name = name or str(getattr(source, "name", "stdin")).strip("<>")
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        cities = _parsed(where, data, choices)
    elif isinstance(source, (str, os.PathLike)):
        cities, where = read_file(Path(source), choices, name), str(source)
    else:
        raise TypeError(
            "source must be a path, an open file, a DataFrame or a graph with weights, "
            f"got {type(source).__name__}"
        )
    return replace(cities, label=cities.label or name).problem(where, choices.symmetric)


def read_file(path: Path, reading: Reading, name: str | None = None) -> ParsedInstance:
    """Return the cities in a file or a pipe, named after the file by default. Raises as `read_cities`."""
    if path.is_dir():
        raise ValueError(f"{path}: it is a directory")
    suffixed = "" if path.is_fifo() else path.name  # the name of a pipe says nothing about its contents
    cities = _parsed(str(path), path.read_bytes(), reading, suffixed)
    return replace(cities, label=cities.label or name or path.name.removesuffix(".gz").partition(".")[0])


def is_source(what: Any) -> bool:
    """Return True if `read_cities` takes an object; paths are not considered."""
    known = is_frame(what) or is_graph(what) or is_tsplib95(what) or hasattr(what, "read")
    return known or _python_table(what) is not None


def tsp_of(
    what: Any,
    *,
    matrix: bool | None = None,
    metric: str | None = None,
    symmetric: bool | None = None,
) -> TSP:
    """Return a `TSP` unchanged; make one of a source of `read_cities`, a matrix (n, n) with n > 3, or coordinates.

    Raises ValueError for 3 x 3 and 2 x 2 numbers that may be either, unless ``matrix`` or ``metric`` says what they
    are, and what `TSP` raises.
    """
    if isinstance(what, TSP):
        return what
    if is_source(what):
        return read_cities(what, matrix=matrix, metric=metric, symmetric=symmetric)
    if is_matrix(checks.unmasked("coords", what), matrix, metric):
        return TSP(matrix=what, symmetric=symmetric)
    return TSP(what, metric, symmetric=symmetric)


def _parsed(source: str, data: bytes, reading: Reading, file_name: str = "") -> ParsedInstance:
    """Return the cities in the contents of a file; its suffix or its first characters determine the format."""
    with naming(source):
        data = unpacked(data)
        if data.startswith(b"PK\x03\x04"):
            read: ParsedInstance | Table = parse_sheet(data, reading)
        elif data.startswith(b"\x93NUMPY"):
            read = parse_npy(data, reading)
        elif data.startswith(b"PAR1"):
            reading.allow("a parquet file", *OF_CELLS)
            read = _parquet(data)
        elif _TSPLIB.match(text := decoded(data)) or file_name.lower().endswith(SUFFIXES):
            reading.allow("a TSPLIB instance", "symmetric")
            read = parse_tsp(Path(source).name, text)
        elif text.lstrip("\x1e \t\r\n")[:1] in ("{", "["):
            read = parse_json(text, reading)
        elif text.lstrip().startswith("<"):
            read = parse_xml(text, reading)
        else:
            read = parse_table(text, reading)
        return cities_of(read, reading) if isinstance(read, Table) else read


def is_graph(source: Any) -> bool:
    """Return True if an object is a graph of networkx."""
    return all(hasattr(source, name) for name in ("nodes", "edges", "is_directed"))


def is_tsplib95(source: Any) -> bool:
    """Return True if an object is a problem of tsplib95."""
    return hasattr(source, "render") and hasattr(source, "get_weight")


def _parquet(data: bytes) -> Table:
    """Return the table of a .parquet file."""
    try:
        from pandas import read_parquet

        frame = read_parquet(io.BytesIO(data))
    except ImportError as error:
        raise ValueError("it is a parquet file: pip install pandas pyarrow, or save it as CSV") from error
    except Exception as error:  # pyarrow raises errors of any type for broken files
        raise ValueError(f"pandas cannot read this parquet file ({error})") from error
    return _frame_table(frame)


def _python_table(source: Any) -> Table | None:
    """Return the table of a list of dicts, of rows with a text, or of distances by pairs of cities; else None."""
    has_pairs = isinstance(source, Mapping) or getattr(getattr(source, "index", None), "nlevels", 1) == 2
    pairs = list(source.items()) if has_pairs else []
    if pairs and all(isinstance(key, tuple) and len(key) == 2 for key, _ in pairs):
        return Table(["from", "to", "distance"], [[*key, value] for key, value in pairs])
    rows: Sequence[Any] = source if isinstance(source, (list, tuple)) and len(source) else [None]
    if all(isinstance(row, Mapping) for row in rows):
        return table_of_objects(rows)
    if all(isinstance(row, (list, tuple)) for row in rows) and any(isinstance(c, str) for c in rows[0]):
        return table_of([*range(len(rows))], [list(row) for row in rows])
    return None


def _frame_table(frame: Any) -> Table:
    """Return the cells of a DataFrame; points of a GeoDataFrame become columns of coordinates.

    Default titles, which only number the columns, are ignored.
    """
    titles, index, values = frame_parts(frame)
    if getattr(values.dtype, "kind", "O") in "mM":
        raise ValueError("the cells are times: give numbers, such as frame / pandas.Timedelta(minutes=1)")
    rows = values.tolist()
    if getattr(getattr(frame, "index", None), "nlevels", 1) == 2 and len(titles) == 1:
        return Table(
            ["from", "to", "distance"], [[*pair, *row] for pair, row in zip(index, rows, strict=True)]
        )
    at = next((c for row in rows for c, cell in enumerate(row) if hasattr(cell, "geom_type")), None)
    if at is not None:
        crs = getattr(frame, "crs", None)
        for number, row in enumerate(rows):
            if getattr(row[at], "geom_type", "") == "MultiPoint" and len(row[at].geoms) == 1:
                row[at] = row[at].geoms[0]
            if getattr(row[at], "geom_type", "") != "Point" or getattr(row[at], "is_empty", False):
                raise ValueError(f"row {number}: expected a Point, got {row[at]!s:.40}")
        titles = (
            titles[:at] + titles[at + 1 :] + (["lon", "lat"] if crs and crs.is_geographic else ["x", "y"])
        )
        rows = [[*row[:at], *row[at + 1 :], row[at].x, row[at].y] for row in rows]
    same = matching(index, titles)
    untitled = titles in (list(range(len(titles))), [f"column_{c}" for c in range(len(titles))])
    if untitled and same in (None, sorted(same or ())):
        return Table(None, rows, None, () if counts_from(index) == 0 else index)
    return Table(titles, rows, None, index)


def _graph_cities(graph: Any, weight: str | None) -> ParsedInstance:
    """Return a graph's matrix: the shortest of parallel edges, inf for missing edges; loops are ignored.

    If no edge has any data, all edges weigh 1. Otherwise raises ValueError for an edge without its weight.
    """
    nodes, key = list(graph.nodes), weight or "weight"
    edges = list(graph.edges(data=True))
    plain = weight is None and not any(data for _, _, data in edges)
    weights = [1 if plain else data.get(key) for _, _, data in edges]
    number = {node: city for city, node in enumerate(nodes)}
    matrix = np.full((len(nodes), len(nodes)), np.inf)
    for (start, end, data), given in zip(edges, weights, strict=True):
        length = number_of(given)
        if length is None:
            has = ", ".join(repr(name) for name in data) or "nothing"
            raise ValueError(
                f"the edge from {start!r} to {end!r} has no number as its {key}, got {given!r}; it has {has}: weight= "
                "names the attribute"
            )
        i, j = number[start], number[end]
        matrix[i, j] = min(matrix[i, j], length)
        if not graph.is_directed():
            matrix[j, i] = matrix[i, j]
    np.fill_diagonal(matrix, 0.0)
    refuse_rounded("weights of edges", np.array(weights, np.float64), weights)
    kind = "directed" if graph.is_directed() else "undirected"
    words = f"{kind} graph, {'1' if plain else key} of its edges; {len(nodes)} cities"
    return ParsedInstance(nodes, None, matrix, None, None, words)
