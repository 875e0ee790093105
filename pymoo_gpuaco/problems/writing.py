"""Writers of tours in TSPLIB's format, CSV, GeoJSON, GPX, KML and JSON; complete files replace old ones."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.metrics import on_the_globe
from pymoo_gpuaco.problems.table import naming
from pymoo_gpuaco.problems.tsp import TSP

_FORMATS = (".csv", ".geojson", ".gpx", ".kml", ".json")
_MAPS = {".geojson": "GeoJSON", ".gpx": "GPX", ".kml": "KML"}
_TSPLIB = (".tour", ".txt", "")
_OTHERS = (".xlsx", ".html", ".pdf", ".tsp")  # formats that tours are not written in


def write_route(path: str | PathLike[str], problem: TSP, tour: ArrayLike, suffix: str | None = None) -> None:
    """Write a tour of a problem in visiting order, in the format of the file's suffix, or of `suffix`.

    * ``.csv``: one line per city, with its id in the file that it was read from (else 1 to n), name, position, and the
      distance to the next one.
    * ``.geojson``, ``.gpx``, ``.kml``: the places, each with the distance to the next one, and straight lines through
      them; for cities on the globe, also those of a matrix with positions.
    * ``.json``: an object with `tour` (cities from 0 on), `names`, `ids` (if they are not 1 to n), `length`,
      `metric` and `closed`.
    * ``.tour``, ``.txt`` or none: TSPLIB's tour file, with ids that are whole numbers, else 1 to n.

    All distances are those of `problem`, and a path does not return. `tour` is an (n,) permutation of its cities.
    Raises ValueError for an invalid tour, another suffix, and cities that are not on the globe if the format needs it;
    TypeError for other arguments than a problem and a tour; OSError if the file cannot be written.
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
    if kind in _MAPS and _globe(problem) is None:
        has = "no positions" if problem.positions is None else "positions in a plane"
        hint = (
            ""
            if problem.matrix is None
            else '; a matrix takes positions=, and metric="HAVERSINE" for degrees'
        )
        raise ValueError(
            f"{_MAPS[kind]} needs latitudes and longitudes, and {problem.label or 'the problem'} has {has}{hint}"
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
    stops = [
        _Stop(*stop) for stop in zip(places[order].tolist(), ids, names, _legs(problem, order), strict=True)
    ]
    if kind == ".geojson":
        return json.dumps(_geojson(stops, about), default=str) + "\n"
    return (_gpx if kind == ".gpx" else _kml)(stops, about, problem.distances_in_words)


def tour_in_json(problem: TSP, order: NDArray[np.int64]) -> dict[str, Any]:
    """Return the cities in visiting order, and their names and ids if they have some."""
    known = {"names": problem.names, "ids": problem.ids}
    return {"tour": order.tolist()} | {key: of[order].tolist() for key, of in known.items() if of is not None}


def _globe(problem: TSP) -> NDArray[np.float64] | None:
    """Return (n, 2) latitudes and longitudes in decimal degrees, or None for cities that have none."""
    if problem.positions is None or not on_the_globe(problem.position_metric):
        return None
    if problem.position_metric != "GEO":
        return problem.positions
    degrees = np.trunc(problem.positions)  # TSPLIB writes DDD.MM
    return degrees + (problem.positions - degrees) * 5.0 / 3.0


def _legs(problem: TSP, order: NDArray[np.int64]) -> list[float | None]:
    """Return the distance from each city of a tour to the next one, None from the last one of a path."""
    legs = problem.instance.distance(order, np.roll(order, -1)).tolist()
    return legs if problem.closed else [*legs[:-1], None]


def _csv(problem: TSP, order: NDArray[np.int64], ids: list[Any], names: list[Any]) -> str:
    """Return one CSV line per city; the last distance leads back to the first city, and is empty for a path."""
    lengths = ["" if leg is None else f"{leg:.10g}" for leg in _legs(problem, order)]
    axes, places, globe = [], [], on_the_globe(problem.position_metric)
    if problem.positions is not None and (globe or problem.metric_name != "EXPLICIT"):
        axes = ["lat", "lon"] if globe else ["x", "y"]
        places = [map(repr, column) for column in problem.positions[order].T.tolist()]
    lines = zip(range(1, len(order) + 1), ids, names, *places, lengths, strict=True)
    return csv_text([["stop", "city", "name", *axes, "to_next"], *lines])


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


class _Stop(NamedTuple):
    """A city of a tour."""

    place: list[float]  # latitude and longitude in decimal degrees
    id: Any
    name: Any
    to_next: float | None


def _geojson(stops: list[_Stop], about: dict[str, Any]) -> dict[str, Any]:
    """Return a tour as a FeatureCollection: a line with properties ``about``, and a point for each city."""
    points = [
        {
            "type": "Feature",
            "properties": {"stop": number, "city": stop.id, "name": stop.name, "to_next": stop.to_next},
            "geometry": {"type": "Point", "coordinates": stop.place[::-1]},
        }
        for number, stop in enumerate(stops, start=1)
    ]
    line = [stop.place[::-1] for stop in _there_and_back(stops, about)]
    route = {
        "type": "Feature",
        "properties": about,
        "geometry": {"type": "LineString", "coordinates": line},
    }
    return {"type": "FeatureCollection", "features": [route, *points]}


def _there_and_back(stops: list[_Stop], about: dict[str, Any]) -> list[_Stop]:
    """Return the stops of a line, which ends at the first one if the tour is closed."""
    return [*stops, stops[0]] if about["closed"] else stops


def _gpx(stops: list[_Stop], about: dict[str, Any], words: str) -> str:
    """Return a tour as a route of GPX 1.1, which is closed if the tour is."""
    root = ElementTree.Element(
        "gpx", version="1.1", creator="pymoo_gpuaco", xmlns="http://www.topografix.com/GPX/1/1"
    )
    route = ElementTree.SubElement(root, "rte")
    ElementTree.SubElement(route, "name").text = f"{about['name']} {about['length']:.10g}"
    ElementTree.SubElement(route, "desc").text = words
    for stop in _there_and_back(stops, about):
        lat, lon = map(repr, stop.place)
        _described(ElementTree.SubElement(route, "rtept", lat=lat, lon=lon), stop, "desc")
    return _xml(root)


def _kml(stops: list[_Stop], about: dict[str, Any], words: str) -> str:
    """Return a tour as KML 2.2: a line, and a placemark for each city."""
    root = ElementTree.Element("kml", xmlns="http://www.opengis.net/kml/2.2")
    document = ElementTree.SubElement(root, "Document")
    route = ElementTree.SubElement(document, "Placemark")
    ElementTree.SubElement(route, "name").text = f"{about['name']} {about['length']:.10g}"
    ElementTree.SubElement(route, "description").text = words
    line = ElementTree.SubElement(route, "LineString")
    places = [f"{stop.place[1]!r},{stop.place[0]!r}" for stop in _there_and_back(stops, about)]
    ElementTree.SubElement(line, "coordinates").text = " ".join(places)
    for stop, place in zip(stops, places, strict=False):
        mark = ElementTree.SubElement(document, "Placemark")
        _described(mark, stop, "description")
        ElementTree.SubElement(ElementTree.SubElement(mark, "Point"), "coordinates").text = place
    return _xml(root)


def _described(element: ElementTree.Element, stop: _Stop, tag: str) -> None:
    """Add the name of a stop and, under ``tag``, the distance to the next one."""
    ElementTree.SubElement(element, "name").text = str(stop.name)
    if stop.to_next is not None:
        ElementTree.SubElement(element, tag).text = f"to next: {stop.to_next:.10g}"


def _xml(root: ElementTree.Element) -> str:
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
