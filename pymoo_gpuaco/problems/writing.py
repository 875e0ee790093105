"""Writers of tours: TSPLIB's format, CSV, GeoJSON, GPX and JSON; a file is replaced when the new one is complete."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.metrics import Metric, on_the_globe
from pymoo_gpuaco.problems.table import naming
from pymoo_gpuaco.problems.tsp import TSP

_FORMATS = (".csv", ".geojson", ".gpx", ".json")
_TSPLIB = (".tour", ".txt", "")
_OTHERS = (".xlsx", ".html", ".kml", ".pdf", ".tsp")  # formats that tours are not written in


def write_route(path: str | PathLike[str], problem: TSP, tour: ArrayLike, suffix: str | None = None) -> None:
    """Write a tour of a problem in visiting order, in the format of the file's suffix, or of `suffix`.

    * ``.csv``: one line per city, with its id in the file that it was read from (else 1 to n), name, position, and the
      distance to the next one.
    * ``.geojson``, ``.gpx``: the places and a line through them; for cities on the globe.
    * ``.json``: an object with `tour` (cities from 0 on), `names`, `ids` (if they are not 1 to n), `length`,
      `metric` and `closed`.
    * ``.tour``, ``.txt`` or none: TSPLIB's tour file, with ids that are whole numbers, else 1 to n.

    `tour` is an (n,) permutation of the problem's cities. Raises ValueError for an invalid tour, another suffix, and
    cities that are not on the globe if the format needs it; TypeError for other arguments than a problem and a tour;
    OSError if the file cannot be written.
    """
    if not isinstance(problem, TSP):
        raise TypeError(
            f"problem must be a TSP, got {type(problem).__name__}: write_route(path, problem, tour)"
        )
    path = Path(path)
    kind = path.suffix if suffix is None or path.suffix.lower() in _OTHERS else suffix
    with naming(path):
        text = route_text(problem, tour, kind, problem.label or path.stem)
    write_whole(path, text.encode("utf-8"))


def check_route(problem: TSP, suffix: str) -> None:
    """Raise ValueError if a tour of the problem cannot be written in the format of a suffix."""
    kind = suffix.lower()
    if kind not in (*_FORMATS, *_TSPLIB):
        raise ValueError(f"the suffix must be one of {', '.join((*_FORMATS, *_TSPLIB[:2]))}, got {suffix!r}")
    if kind in _TSPLIB and -1 in _whole_ids(problem):
        raise ValueError(
            "TSPLIB's tours end at -1, which is the id of a city here; use .csv, .geojson or .json"
        )
    if kind in (".geojson", ".gpx") and _globe(problem) is None:
        raise ValueError(
            f"{'GPX' if kind == '.gpx' else 'GeoJSON'} needs latitudes and longitudes, and "
            f"{problem.label or 'the problem'} has {problem.distances_in_words}"
        )


def ids_in_files(problem: Any) -> NDArray[Any]:
    """Return the (n,) ids of the cities in files: those of the problem, else 1 to n."""
    return np.arange(1, problem.n_cities + 1) if problem.ids is None else problem.ids


def _whole_ids(problem: TSP) -> NDArray[Any]:
    """Return ids for a TSPLIB file: those of the problem if they are whole numbers, else 1 to n."""
    whole = problem.ids is not None and all(isinstance(own, (int, np.integer)) for own in problem.ids)
    return ids_in_files(problem) if whole else np.arange(1, problem.n_cities + 1)


def route_text(problem: TSP, tour: ArrayLike, suffix: str, name: str) -> str:
    """Return the contents of a file of `write_route`."""
    check_route(problem, suffix)
    length, kind = problem.tour_length(tour), suffix.lower()
    order = np.asarray(tour, dtype=np.int64)
    if kind in _TSPLIB:
        return tour_text(order, name, f"length {length:.10g}", _whole_ids(problem))
    ids = ids_in_files(problem)[order].tolist()
    names = ids if problem.names is None else problem.names[order].tolist()
    if kind == ".csv":
        return _csv(problem, order, ids, names)
    about = {"name": name, "length": length, "metric": problem.metric_name, "closed": problem.closed}
    if kind == ".json":
        return json.dumps({**about, **tour_in_json(problem, order)}, default=str) + "\n"
    places = _globe(problem)
    assert places is not None
    if kind == ".gpx":
        return _gpx(places[order].tolist(), names, about)
    return json.dumps(_geojson(places[order, ::-1].tolist(), ids, names, about), default=str) + "\n"


def tour_in_json(problem: TSP, order: NDArray[np.int64]) -> dict[str, Any]:
    """Return the cities in visiting order, and their names and ids if they have some."""
    known = {"names": problem.names, "ids": problem.ids}
    return {"tour": order.tolist()} | {key: of[order].tolist() for key, of in known.items() if of is not None}


def _globe(problem: TSP) -> NDArray[np.float64] | None:
    """Return (n, 2) latitudes and longitudes in decimal degrees, or None for cities that have none."""
    if problem.positions is None or not on_the_globe(problem.metric_name):
        return None
    if problem.metric != Metric.GEO:
        return problem.positions
    degrees = np.trunc(problem.positions)  # TSPLIB writes DDD.MM
    return degrees + (problem.positions - degrees) * 5.0 / 3.0


def _csv(problem: TSP, order: NDArray[np.int64], ids: list[Any], names: list[Any]) -> str:
    """Return one CSV line per city; the last distance leads back to the first city, and is empty for a path."""
    lengths = [f"{leg:.10g}" for leg in problem.instance.distance(order, np.roll(order, -1))]
    if not problem.closed:
        lengths[-1] = ""
    axes, places = [], []
    if problem.metric_name != "EXPLICIT" and problem.positions is not None:
        axes = ["lat", "lon"] if on_the_globe(problem.metric_name) else ["x", "y"]
        places = [map(repr, column) for column in problem.positions[order].T.tolist()]
    lines = zip(range(1, len(order) + 1), ids, names, *places, lengths, strict=True)
    return csv_text([["stop", "city", "name", *axes, "to_next"], *lines])


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _geojson(
    line: list[list[float]], ids: list[Any], names: list[Any], about: dict[str, Any]
) -> dict[str, Any]:
    """Return a tour as a FeatureCollection: a line, and a point for each city in the order of the tour.

    line : n places (longitude, latitude) in decimal degrees. about : properties of the line.
    """
    points = [
        {
            "type": "Feature",
            "properties": {"stop": stop, "city": own, "name": name},
            "geometry": {"type": "Point", "coordinates": place},
        }
        for stop, (place, own, name) in enumerate(zip(line, ids, names, strict=True), start=1)
    ]
    route = {
        "type": "Feature",
        "properties": about,
        "geometry": {"type": "LineString", "coordinates": [*line, line[0]] if about["closed"] else line},
    }
    return {"type": "FeatureCollection", "features": [route, *points]}


def _gpx(places: list[list[float]], names: list[Any], about: dict[str, Any]) -> str:
    """Return a tour as a route of GPX 1.1, which is closed if the tour is."""
    root = ElementTree.Element(
        "gpx", version="1.1", creator="pymoo_gpuaco", xmlns="http://www.topografix.com/GPX/1/1"
    )
    route = ElementTree.SubElement(root, "rte")
    ElementTree.SubElement(route, "name").text = f"{about['name']} {about['length']:.10g}"
    stops = list(zip(places, names, strict=True))
    for (lat, lon), name in [*stops, stops[0]] if about["closed"] else stops:
        point = ElementTree.SubElement(route, "rtept", lat=repr(lat), lon=repr(lon))
        ElementTree.SubElement(point, "name").text = str(name)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def write_tour(
    path: str | PathLike[str], tour: ArrayLike, name: str | None = None, comment: str | None = None
) -> None:
    """Write a tour as a TSPLIB tour file, which `read_tour`, LKH and Concorde's tools read.

    `tour` is an (n,) permutation of 0..n-1; the file counts cities from 1. An older file is replaced only when the new
    one is complete. `name` becomes NAME (default: the file's own name), `comment` one line of COMMENT.

    Raises ValueError if `tour` is no permutation and for the suffix of another format, TypeError for a result that
    holds one, OSError if the file cannot be written.
    """
    if Path(path).suffix.lower() in (*_FORMATS, *_OTHERS):
        raise ValueError(
            f"{path}: the suffix must be .tour or .txt; write_route writes {', '.join(_FORMATS)}"
        )
    text = tour_text(tour, Path(path).name.split(".")[0] if name is None else name, comment)
    write_whole(path, text.encode("utf-8"))


def tour_text(tour: ArrayLike, name: str, comment: str | None = None, ids: NDArray[Any] | None = None) -> str:
    """Return the text of a TSPLIB tour file, see `write_tour`; `ids` (n,) of the cities, None: 1 to n."""
    row = checks.tours_given("tour", tour)
    if row.ndim != 1:
        raise ValueError(f"tour must have shape (n,), got {row.shape}")
    cities = checks.permutations("tour", row[None], len(row))[0]
    lines = [f"NAME : {_one_line(name)}"]
    if comment is not None:
        lines.append(f"COMMENT : {_one_line(comment)}")
    lines += ["TYPE : TOUR", f"DIMENSION : {len(cities)}", "TOUR_SECTION"]
    lines += map(str, (cities + 1 if ids is None else ids[cities]).tolist())
    return "\n".join([*lines, "-1", "EOF", ""])


def write_whole(path: str | PathLike[str], data: bytes) -> None:
    """Write a file completely or leave it unchanged, even if the disk is full or the process is killed.

    A target that is not a regular file (a pipe, /dev/stdout) is written directly. Raises OSError.
    """
    target = Path(path).resolve()  # replaces the target of a link, not the link
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            part.chmod(target.stat().st_mode)
        os.replace(part, target)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):  # name the file as the caller did
            error.filename = str(path)
        raise


def _one_line(text: str) -> str:
    return " ".join(text.split())
