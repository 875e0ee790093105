"""Formats other than text tables: GeoJSON, JSON of routing services, GPX, KML and Excel workbooks.

GeoJSON (RFC 7946) and KML write longitude before latitude.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import numpy as np

from pymoo_gpuaco.problems.cells import is_blank, number_of
from pymoo_gpuaco.problems.columns import NAMES
from pymoo_gpuaco.problems.matrix import refuse_rounded
from pymoo_gpuaco.problems.table import OF_CELLS, Cities, Reading, Table, lines_of, table_of

_MATRICES = ("durations", "distances", "times", "costs", "matrix", "weights")  # of OSRM, ORS, Valhalla, VROOM


def parse_json(text: str, reading: Reading) -> Cities | Table:
    """Return the table or the matrix of a JSON text.

    Points of GeoJSON may be alone, in Features or collections, or one Feature per line. A list of lists is a matrix, in
    which null forbids an edge, or coordinates. A list of objects is a table. If the answer of a routing service has
    several matrices, ``reading.weight`` names one. Raises ValueError for other contents.
    """
    try:
        content = json.loads(text.lstrip("\x1e"))
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    except ValueError as error:
        lines = [line.strip("\x1e \t") for line in lines_of(text)]
        try:
            features = [json.loads(line) for line in lines if line]
        except ValueError:
            raise ValueError(f"it is not JSON ({error})") from error
        content = {"type": "FeatureCollection", "features": features}
    if isinstance(content, dict) and "type" in content:
        reading.allow("GeoJSON", "metric")
        return _geojson(content)
    rows = content if isinstance(content, list) else []
    is_matrix = {len(row) if isinstance(row, list) else 0 for row in rows} == {len(rows)}
    if is_matrix and (len(rows) > 3 or any(None in row for row in rows)):
        reading.allow("a matrix in JSON", "matrix", "symmetric")
        return _matrix(rows, "list of lists")
    for kind in (dict, list):
        if rows and all(isinstance(row, kind) for row in rows):
            reading.allow("a table in JSON", *OF_CELLS)
            if kind is list:
                return Table(None, rows)
            titles = list(dict.fromkeys(key for row in rows for key in row))
            return Table(titles, [[row.get(title) for title in titles] for row in rows])
    reading.allow("a matrix in JSON", "matrix", "symmetric", "weight")
    return _routing(content, reading.weight)


def _points(kind: str, places: list[list[Any]], others: list[str]) -> Table:
    """Return a table of places (id, name, lat, lon); a note lists ``others``, objects that are left out."""
    found = ", ".join(sorted(set(others)))[:60]
    if not places:
        raise ValueError(f"this {kind} holds no point{f', only {found}' if others else ''}")
    notes = [f"objects other than points are left out: {len(others)} of {found}"] if others else []
    rows = [["" if cell is None else cell for cell in place] for place in places]
    return Table(["id", "name", "lat", "lon"], rows, notes=notes)


def _geojson(content: dict[str, Any]) -> Table:
    """Return points, with names from their properties; heights are ignored."""
    places: list[list[Any]] = []
    others: list[str] = []
    pending: list[tuple[Any, Any, Any]] = [(content, None, None)]
    while pending:
        item, name, own = pending.pop()
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "FeatureCollection":
            pending += [(feature, None, None) for feature in reversed(_list(item, "features"))]
        elif kind == "GeometryCollection":
            pending += [(geometry, name, own) for geometry in reversed(_list(item, "geometries"))]
        elif kind == "Feature":
            pending.append((item.get("geometry"), _name(item), item.get("id")))
        elif kind in ("Point", "MultiPoint"):
            points = _list(item, "coordinates")
            for point in [points] if kind == "Point" else points:
                numbers = point[:2] if isinstance(point, list) else []
                if len(numbers) != 2 or any(isinstance(x, str) or number_of(x) is None for x in numbers):
                    raise ValueError(f"a Point needs [longitude, latitude], got {str(point)[:60]}")
                places.append([own, name, *numbers[::-1]])
        else:
            others.append(kind if isinstance(kind, str) else "something without a type")
    return _points("GeoJSON", places, others)


def _list(item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    if not isinstance(value, list):
        raise ValueError(f"a {item['type']} without a list of {key}")
    return value


def _name(feature: dict[str, Any]) -> Any:
    properties = feature.get("properties")
    if isinstance(properties, dict):
        lower = {str(key).lower(): value for key, value in properties.items()}
        for title in (*NAMES, "stop", "id", "code"):
            if lower.get(title) is not None:
                return lower[title]
    return feature.get("id")


def _routing(content: Any, weight: str | None) -> Cities:
    """Return the matrix in an answer of OSRM, openrouteservice, Valhalla, VROOM or Google."""
    known = content if isinstance(content, dict) else {}
    for key in ("matrices", "sources_to_targets"):  # one per vehicle; Valhalla's
        if isinstance(known.get(key), dict):
            inner = known[key]
            known = inner if any(k in inner for k in _MATRICES) else next(iter(inner.values()), {})
    names = known.get("origin_addresses")
    if isinstance(known.get("rows"), list):
        elements = [row.get("elements", []) for row in known["rows"]]
        kinds = sorted({key for row in elements for e in row for key in ("distance", "duration") if key in e})
        kind = _chosen(kinds, weight)
        rows = [[e.get(kind, {}).get("value") for e in row] for row in elements]
        return _matrix(rows, f"{kind} of rows and elements", names)
    kinds = [key for key in _MATRICES if isinstance(known.get(key), list)]
    if weight is not None and isinstance(known.get(weight), list):
        kinds = [weight]
    if not kinds:
        raise ValueError(
            "it is JSON, but neither GeoJSON nor a matrix (durations, distances, rows): json.load reads it in Python, "
            "and solve takes arrays"
        )
    kind = _chosen(kinds, weight)
    sources = known.get("sources")
    if isinstance(sources, list) and all(isinstance(s, dict) for s in sources):
        given_names = [s.get("name") for s in sources]
        names = given_names if all(given_names) else None
    return _matrix(known[kind], kind, names)


def _chosen(kinds: list[str], weight: str | None) -> str:
    """Return the key of the requested matrix."""
    if weight is not None and weight not in kinds:
        raise ValueError(f"weight must be one of {', '.join(kinds)}, got {weight!r}")
    if len(kinds) != 1 and weight is None:
        raise ValueError(
            f"there are {' and '.join(kinds)}: weight={kinds[0]!r} (--weight {kinds[0]}) decides"
        )
    return weight or kinds[0]


def _matrix(rows: list[Any], what: str, names: list[Any] | None = None) -> Cities:
    """Return rows of numbers as a matrix; null forbids an edge."""
    n = len(rows)
    if any(not isinstance(row, list) or len(row) != n for row in rows):
        raise ValueError(
            f"{what} must be a square of numbers, {n} in each of {n} rows; json.load reads it in Python"
        )
    full = np.empty((n, n))
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            value = np.inf if is_blank(cell) and not isinstance(cell, str) else number_of(cell)
            if value is None or isinstance(cell, str):
                raise ValueError(
                    f"{what}, row {i}, column {j} (from 0): expected a distance or null, got {cell!r:.40}"
                )
            full[i, j] = value
    refuse_rounded(what, full.ravel(), [cell for row in rows for cell in row])
    gaps = int(np.isinf(full).sum())
    words = f"matrix ({what}), row = from; {n} cities" + f"; {gaps} null, which forbid" * bool(gaps)
    return Cities(names if names and len(names) == n else None, None, full, None, None, words)


def parse_xml(text: str, reading: Reading) -> Table:
    """Return the waypoints of GPX, its route points if it has no waypoints, or the points of KML.

    Raises ValueError for other XML, and for entity declarations, which can expand without limit.
    """
    reading.allow("XML", "metric")
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ValueError("XML with a DOCTYPE or entities is not read")
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML ({error})") from error
    kind = _tag(root)
    tags = {_tag(element) for element in root.iter()}
    if kind == "gpx":
        wanted = next((tag for tag in ("wpt", "rtept") if tag in tags), "")
        others = sorted(tags & ({"trk", "rte"} if wanted == "wpt" else {"trk"}))
        places = [
            _place(element.get("lat"), element.get("lon"), element)
            for element in root.iter()
            if _tag(element) == wanted
        ]
    elif kind == "kml":
        places, others = [], []
        for mark in (element for element in root.iter() if _tag(element) == "Placemark"):
            point = next((element for element in mark.iter() if _tag(element) == "Point"), None)
            if point is None:
                others.append("Placemark without a Point")
                continue
            lon, lat, *_ = [*(_child(point, "coordinates") or "").split(","), None, None]
            places.append(_place(lat, lon, mark))
    else:
        raise ValueError(f"it is XML, but neither GPX nor KML: {kind[:40]!r}")
    return _points(kind.upper(), places, others)


def _tag(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _child(element: ElementTree.Element, tag: str) -> str | None:
    texts: Iterator[str] = ((child.text or "").strip() for child in element if _tag(child) == tag)
    return next(texts, None) or None


def _place(lat: str | None, lon: str | None, named: ElementTree.Element) -> list[Any]:
    latitude, longitude = (number_of((text or "").strip()) for text in (lat, lon))
    if latitude is None or longitude is None:
        raise ValueError(f"a point needs numbers as latitude and longitude, got {lat!r:.30} and {lon!r:.30}")
    return [None, _child(named, "name"), latitude, longitude]


def parse_sheet(data: bytes, reading: Reading) -> Table:
    """Return the first non-empty sheet of an Excel workbook.

    Raises ValueError without openpyxl, and for another kind of archive.
    """
    reading.allow("a workbook", *OF_CELLS)
    if b"xl/" not in data:
        raise ValueError("it is a ZIP archive: unpack it first")
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ValueError("it is an Excel workbook: save the sheet as CSV, or pip install openpyxl") from error
    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        pages = [[list(row) for row in page.iter_rows(values_only=True)] for page in book.worksheets]
    except Exception as error:  # openpyxl raises errors of any type for broken files
        raise ValueError(f"openpyxl cannot read this workbook ({error})") from error
    for rows in pages:
        used = [number for number, row in enumerate(rows) if not all(map(is_blank, row))]
        if used:
            width = max(c for number in used for c, cell in enumerate(rows[number]) if not is_blank(cell)) + 1
            return table_of([number + 1 for number in used], [rows[number][:width] for number in used])
    raise ValueError("this workbook has no cells")
