"""One door for cities, whatever they come in."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.columns import Columns, on_the_globe
from pymoo_gpuaco.problems.frames import frame_columns, graph_columns, is_frame, is_graph, is_tsplib95
from pymoo_gpuaco.problems.geojson import parse_geojson
from pymoo_gpuaco.problems.tables import parse_table, table_columns
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.problems.tsplib import SUFFIXES, parse_tsp, parse_tsp_text
from pymoo_gpuaco.problems.tsplib_sections import decoded

__all__ = ["is_source", "is_tsplib", "read_cities", "refuse_choice"]

_TSPLIB = re.compile(r"\s*(NAME|TYPE|COMMENT|DIMENSION|EDGE_WEIGHT_TYPE)\s*:", re.IGNORECASE)


def read_cities(
    source: Any,
    *,
    metric: str | None = None,
    matrix: bool | None = None,
    name: str | None = None,
) -> TSP:
    """Make a `TSP` of the cities in a file, an open file, a table or a graph.

    Taken are

    * the path of a file or a pipe, or an open file (text or bytes): TSPLIB's formats, GeoJSON, or a table (CSV);
    * a DataFrame of pandas or polars; an index of labels gives names, titles 0, 1, .. are none;
    * a graph of networkx whose edges have a `weight`, or carry nothing and weigh 1; no tour may use an edge that it
      lacks;
    * a problem of tsplib95.

    A table has columns `x`, `y` (and `z`), or `lat`/`latitude` and `lon`/`lng`/`long`/`longitude` in decimal degrees,
    and perhaps one of names (`name`, `city`, `label` .., else the first that is not of numbers); or, without titles,
    two columns of coordinates beside one of names; or as many columns of numbers as rows (more than 3, or of 3 with
    the same labels), which are a matrix, row = from; an empty cell or `inf` is an edge that no tour may use. Columns
    that have the rows' labels in another order are put in theirs. Separators are comma, semicolon, tab, bar, colon or
    blanks; numbers may have a decimal comma.

    Latitude and longitude, and all GeoJSON, get great-circle distances in kilometres ("HAVERSINE"), other coordinates
    Euclidean ones ("EXACT").

    source : one of these.
    metric : another one, as `TSP` takes it, for coordinates. With "HAVERSINE", columns x and y are longitude and
        latitude, and two columns without titles latitude and longitude.
    matrix : True or False says of numbers without doubt whether they are a matrix.
    name : the problem's title; left out, the file's name.

    Raises FileNotFoundError for a missing file, TypeError for another kind of source, and ValueError naming the file
    and what is wrong with it. Warns where coordinates x and y of a file look like degrees.
    """
    if is_frame(source):
        return _problem(frame_columns(source, metric, matrix), name)
    if is_graph(source):
        return _problem(graph_columns(source), name)
    if is_tsplib95(source):
        return parse_tsp_text(Path(name or "problem"), source.render()).problem()
    if hasattr(source, "read"):
        content = source.read()
        title = name or str(getattr(source, "name", "stdin")).strip("<>")
        return _from_text(
            title, content if isinstance(content, str) else decoded(content), metric, matrix, title
        )
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            "source must be a path, an open file, a DataFrame or a graph with weights, "
            f"got {type(source).__name__}"
        )
    path = Path(source)
    if path.is_dir():
        raise ValueError(f"{path}: it is a directory")
    if not path.is_fifo() and is_tsplib(path):  # of a pipe nothing is read twice
        refuse_choice(str(path), metric, matrix)
        return parse_tsp(path).problem()
    return _from_text(str(path), decoded(path.read_bytes()), metric, matrix, name or path.stem)


def is_tsplib(path: Path) -> bool:
    """Whether a file is one of TSPLIB's, by its name, by how it begins, or since it is packed."""
    if path.name.lower().endswith(SUFFIXES):
        return True
    with open(path, "rb") as file:
        head = file.read(4096)
    return head.startswith(b"\x1f\x8b") or _TSPLIB.match(decoded(head)) is not None


def is_source(what: Any) -> bool:
    """Whether `read_cities` takes it, paths apart."""
    return is_frame(what) or is_graph(what) or is_tsplib95(what) or hasattr(what, "read")


def _from_text(source: str, text: str, metric: str | None, matrix: bool | None, name: str) -> TSP:
    """Make a problem of a text: GeoJSON, TSPLIB's format or a table, by how it begins."""
    if text.lstrip().startswith(("{", "[")):
        columns = parse_geojson(source, text)
        if metric is not None:
            coords = columns.coords if on_the_globe(metric) else columns.coords[:, ::-1]  # type: ignore[index]
            columns = Columns(columns.names, coords, None, metric)
    elif _TSPLIB.match(text):
        refuse_choice(source, metric, matrix)
        return parse_tsp_text(Path(source), text).problem()
    else:
        columns = table_columns(parse_table(source, text), metric, matrix)
        if columns.coords is not None and columns.metric is None:
            _notice_degrees(source, columns.coords)
    try:
        return _problem(columns, name)
    except ValueError as error:
        raise ValueError(f"{source}: {error}") from error


def _problem(columns: Columns, name: str | None) -> TSP:
    if columns.matrix is not None:
        return TSP(matrix=columns.matrix, name=name, names=columns.names)
    return TSP(columns.coords, columns.metric, name=name, names=columns.names)


def refuse_choice(source: str, metric: str | None, matrix: bool | None) -> None:
    """Raise ValueError where somebody chooses what an instance tells itself."""
    if metric is not None or matrix is not None:
        raise ValueError(f"{source}: the instance tells itself how its distances are computed")


def _notice_degrees(source: str, coords: NDArray[np.float64]) -> None:
    """Warn where a file's coordinates look like longitudes and latitudes: within a globe's, and with many decimals."""
    most = np.abs(coords).max(axis=0)
    fine = bool(np.any(np.abs(coords - np.round(coords, 2)) > 1e-9))
    if len(most) == 2 and most.max() <= 180 and most.min() <= 90 and most.max() > 1 and fine:
        warnings.warn(
            f"{source}: these coordinates look like degrees, and are taken as places in a plane; name the columns lat "
            'and lon, or choose the metric "HAVERSINE" (which takes x as longitude), for kilometres over the globe; '
            'the metric "EXACT" says that a plane is meant',
            stacklevel=4,
        )
