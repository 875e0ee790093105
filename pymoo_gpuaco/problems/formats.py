"""Formats other than text tables: JSON, XML, Excel workbooks, and arrays of NumPy.

GeoJSON (RFC 7946) and KML write longitude before latitude.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree

import numpy as np

from pymoo_gpuaco.problems.cells import columns_by_rows, counts_from, ids_of, is_blank, number_of
from pymoo_gpuaco.problems.columns import NAMES
from pymoo_gpuaco.problems.matrix import ALL_EXACT, is_matrix, refuse_rounded
from pymoo_gpuaco.problems.metrics import on_the_globe
from pymoo_gpuaco.problems.table import (
    OF_CELLS,
    ParsedInstance,
    Reading,
    Table,
    lines_of,
    most_unpacked,
    short,
    table_of,
)

# keys of the places of rows and of columns of a matrix: of Google; OSRM and openrouteservice; Valhalla
_PLACES = (("origin_addresses", "sources"), ("destination_addresses", "destinations", "targets"))
_IN_DEGREES = re.compile(r"CRS(84|83|27)$|EPSG:.*?(4\d{3}|6318|6668|7844)$", re.IGNORECASE)
# maximum cells of a sheet, besides those that the size of the file allows
_SPARE_CELLS, _BYTES_A_CELL = 1 << 20, 8
_FEATURES = ("Feature", "FeatureCollection", "GeometryCollection", "Point", "MultiPoint")
_MATRICES = ("durations", "distances", "times", "costs", "matrix", "weights")  # of OSRM, ORS, Valhalla, VROOM


def parse_json(text: str, reading: Reading) -> ParsedInstance | Table:
    """Return the table or the matrix of a JSON text.

    Points of GeoJSON may be alone, in Features or collections, or one Feature per line. A list of lists is a matrix, in
    which null forbids an edge, or coordinates. A list of objects, or an object per line, is a table. If the answer of a
    routing service has several matrices, ``reading.weight`` names one. Raises ValueError for other contents.
    """
    try:
        content = json.loads(text.lstrip("\x1e"), parse_float=_exact)
    except RecursionError as error:
        raise ValueError("its JSON is nested too deeply") from error
    except ValueError as error:
        lines = [line.strip("\x1e \t") for line in lines_of(text)]
        try:
            features = [json.loads(line, parse_float=_exact) for line in lines if line]
        except ValueError:
            raise ValueError(f"it is not JSON ({error})") from error
        of_points = all(isinstance(one, dict) and one.get("type") in _FEATURES for one in features)
        content = {"type": "FeatureCollection", "features": features} if of_points else features
    if isinstance(content, dict) and isinstance(content.get("elements"), list):
        reading.allow("Overpass JSON", "metric")
        return _overpass(content["elements"])
    if isinstance(content, dict) and "type" in content:
        reading.allow("GeoJSON", "metric")
        return _geojson(content, reading)
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
            return table_of_objects(rows)
    reading.allow("a matrix in JSON", "matrix", "symmetric", "weight")
    return _routing(content, reading.weight)


def table_of_objects(rows: Sequence[Mapping[Any, Any]]) -> Table:
    """Return the table of objects with the titles as keys."""
    titles = list(dict.fromkeys(key for row in rows for key in row))
    return Table(titles, [[row.get(title) for title in titles] for row in rows])


def _overpass(elements: list[Any]) -> Table:
    """Return the nodes in an answer of Overpass, and the centres of its ways and relations."""
    places: list[list[Any]] = []
    others: list[str] = []
    for element in elements:
        known = element if isinstance(element, dict) else {}
        tags, at = known.get("tags") or {}, known.get("center") or known
        if at.get("lat") is None or at.get("lon") is None:
            others.append(str(known.get("type")))
        else:
            places.append([known.get("id"), tags.get("name"), at["lat"], at["lon"]])
    return _points("Overpass JSON", places, others)


def _exact(text: str) -> float | Decimal:
    """Return a number of JSON as float, or as Decimal if float may change or lose it."""
    value = number_of(text)
    return Decimal(text) if value is None or abs(value) >= ALL_EXACT else value


def _points(kind: str, places: list[list[Any]], others: list[str], label: str = "id") -> Table:
    """Return a table of places (id, name, lat, lon); a note lists ``others``, objects that are left out."""
    found = ", ".join(sorted(set(others)))[:60]
    if not places:
        raise ValueError(f"this {kind} holds no point{f', only {found}' if others else ''}")
    notes = [f"objects other than points are left out: {len(others)} of {found}"] if others else []
    rows = [["" if cell is None else cell for cell in place] for place in places]
    return Table([label, "name", "lat", "lon"], rows, notes=notes)


def _geojson(content: dict[str, Any], reading: Reading) -> Table:
    """Return points, with names from their properties; heights are ignored.

    If there is neither name nor id, the first property with a different value at each point labels them. Raises
    ValueError for a reference system that may not be in degrees, unless the user names a metric of the plane.
    """
    crs = content.get("crs") or {}
    named = crs.get("properties", crs) if isinstance(crs, dict) else crs
    named = named.get("name", named) if isinstance(named, dict) else named
    on_a_plane = reading.metric is not None and not on_the_globe(reading.metric)
    if named and not _IN_DEGREES.search(str(named)) and not on_a_plane:
        raise ValueError(
            f"its crs is {short(str(named))}, which may not be in degrees: convert it to EPSG:4326 (ogr2ogr, "
            'GeoDataFrame.to_crs), or say metric="EXACT" (--metric EXACT) for places in a plane'
        )
    properties: list[dict[str, Any]] = []
    places: list[list[Any]] = []
    others: list[str] = []
    pending: list[tuple[Any, Any, Any, Any]] = [(content, None, None, None)]
    while pending:
        item, name, own, more = pending.pop()
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "FeatureCollection":
            pending += [(feature, None, None, None) for feature in reversed(_list(item, "features"))]
        elif kind == "GeometryCollection":
            pending += [(geometry, name, own, more) for geometry in reversed(_list(item, "geometries"))]
        elif kind == "Feature":
            pending.append((item.get("geometry"), _name(item), item.get("id"), item.get("properties")))
        elif kind in ("Point", "MultiPoint"):
            points = _list(item, "coordinates")
            for point in [points] if kind == "Point" else points:
                numbers = point[:2] if isinstance(point, list) else []
                if len(numbers) != 2 or any(isinstance(x, str) or number_of(x) is None for x in numbers):
                    raise ValueError(f"a Point needs [longitude, latitude], got {str(point)[:60]}")
                places.append([own, name, *numbers[::-1]])
                properties.append(more if isinstance(more, dict) else {})
        else:
            others.append(kind if isinstance(kind, str) else "something without a type")
    numbers = [place[0] for place in places]
    is_default = counts_from(numbers) == 0 or not any(numbers)  # as geopandas numbers them
    if is_default and all(name in (None, own) for own, name, *_ in places):
        for key in properties[0] if properties else ():
            labels = [more.get(key) for more in properties]
            if all(isinstance(label, (str, int)) for label in labels) and ids_of(labels):
                rows = [[label, None, *place[2:]] for label, place in zip(labels, places, strict=True)]
                return _points("GeoJSON", rows, others, key)
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


def _routing(content: Any, weight: str | None) -> ParsedInstance:
    """Return the matrix in an answer of OSRM, openrouteservice, Valhalla, VROOM or Google."""
    known = answer = content if isinstance(content, dict) else {}
    for key in ("matrices", "sources_to_targets"):  # one per vehicle; Valhalla's
        if isinstance(known.get(key), dict):
            inner = known[key]
            known = inner if any(k in inner for k in _MATRICES) else next(iter(inner.values()), {})
            known = known if isinstance(known, dict) else {}
    if isinstance(known.get("rows"), list):
        try:
            elements = [[dict(e) for e in row["elements"]] for row in known["rows"]]
            kinds = {key for row in elements for e in row for key in ("distance", "duration") if key in e}
            values = {
                kind: [[e.get(kind, {}).get("value") for e in row] for row in elements]
                for kind in sorted(kinds)
            }
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ValueError("its rows have no elements with a distance or a duration") from error
        whole = " of rows and elements"
        answer = {
            **answer,
            "elements": ", ".join(sorted({str(e.get("status")) for row in elements for e in row})),
        }
    else:
        values, whole = {key: known[key] for key in _MATRICES if isinstance(known.get(key), list)}, ""
        if weight is not None and isinstance(known.get(weight), list):
            values = {weight: known[weight]}
    if not values:
        keys = ("status", "elements", "code", "error_message", "message", "error")
        said = [f"{key} {answer[key]}"[:80] for key in keys if answer.get(key, "OK") not in ("OK", "Ok", "")]
        raise ValueError(
            "it is JSON, but neither GeoJSON nor a matrix (durations, distances, rows): json.load reads it in Python, "
            f"and solve takes arrays{'; it says ' * bool(said)}{', '.join(said)}"
        )
    kind = _chosen(list(values), weight)
    return _placed(_matrix(values[kind], f"{kind}{whole}"), answer)


def _placed(cities: ParsedInstance, answer: dict[str, Any]) -> ParsedInstance:
    """Return a matrix with the names of its rows, and its columns in the order of the places of the rows.

    A note counts zeros between different places. Raises ValueError if columns are other places than rows.
    """
    assert cities.matrix is not None
    full, n = cities.matrix, len(cities.matrix)
    rows, columns = ([place for key in keys for place in _listed(answer, key, n)] for keys in _PLACES)
    labels = [str(_label(place)) for place in rows]
    if rows and columns:
        full = full[:, columns_by_rows([labels], [str(_label(place)) for place in columns])]
    names = [place.get("name") if isinstance(place, dict) else place for place in rows]
    places = np.unique(labels or range(n), return_inverse=True)[1]
    zeros = np.argwhere((full == 0.0) & (places[:, None] != places)).tolist()
    spots = [_spot(place) for place in rows]
    if rows and None not in spots:
        cities = replace(cities, positions=np.array(spots, np.float64), position_metric="HAVERSINE")
    notes = [
        f"{len(zeros)} distances between different places are 0, such as from {i} to {j} (from 0): the columns may "
        "have another order than the rows"
        for i, j in zeros[:1]
    ]
    return replace(cities, matrix=full, names=names if names and all(names) else None, notes=notes)


def _listed(answer: dict[str, Any], key: str, n: int) -> list[Any]:
    """Return the n places of a key in the answer of a service, else an empty list."""
    places = answer.get(key)
    if isinstance(places, list) and len(places) == 1 and isinstance(places[0], list):
        places = places[0]  # Valhalla
    return places if isinstance(places, list) and len(places) == n else []


def _label(place: Any) -> Any:
    """Return the location of a place in the answer of a service, else its name."""
    if not isinstance(place, dict):
        return place
    return place.get("location") or [place.get(key) for key in ("lat", "lon", "name")]


def _spot(place: Any) -> tuple[float, float] | None:
    """Return latitude and longitude of a place in the answer of a service, or None."""
    known = place if isinstance(place, dict) else {}
    location = known.get("location")
    pair = location[:2][::-1] if isinstance(location, list) else [known.get("lat"), known.get("lon")]
    numbers = [number_of(value) for value in pair if isinstance(value, (int, float, Decimal))]
    (lat, lon) = numbers if len(numbers) == 2 else (None, None)
    return (lat, lon) if lat is not None and lon is not None and abs(lat) <= 90 and abs(lon) <= 360 else None


def _chosen(kinds: list[str], weight: str | None) -> str:
    """Return the key of the requested matrix."""
    if weight is not None and weight not in kinds:
        raise ValueError(f"weight must be one of {', '.join(kinds)}, got {weight!r}")
    if len(kinds) != 1 and weight is None:
        raise ValueError(
            f"there are {' and '.join(kinds)}: weight={kinds[0]!r} (--weight {kinds[0]}) decides"
        )
    return weight or kinds[0]


def _matrix(rows: list[Any], what: str) -> ParsedInstance:
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
    return ParsedInstance(matrix=full, read_as=words)


def parse_xml(text: str, reading: Reading) -> Table:
    """Return the waypoints of GPX, the points of KML, or the nodes of OpenStreetMap, with tags if some have any.

    With ``reading.points`` points of tracks and routes of GPX are read, too, if it has no waypoints. Raises ValueError
    for other XML, and for entity declarations, which can expand without limit.
    """
    reading.allow("XML", "metric", "points")
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ValueError("XML with a DOCTYPE or entities is not read")
    try:
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML ({error})") from error
    kind = _tag(root)
    tags = {_tag(element) for element in root.iter()}
    if kind == "gpx":
        wanted = next((tag for tag in ("wpt", "rtept", "trkpt") if tag in tags), "")
        others = sorted(tags & {"wpt": {"trk", "rte"}, "rtept": {"trk"}}.get(wanted, set()))
        if wanted in ("rtept", "trkpt") and not reading.points:
            count, what = (
                sum(_tag(e) == wanted for e in root.iter()),
                "route" if wanted == "rtept" else "track",
            )
            raise ValueError(
                f"this GPX has no waypoints but a {what}, {count} points in order: points=True (--points) reads them "
                "as cities in any order"
            )
        places = [
            _place(element.get("lat"), element.get("lon"), element)
            for element in root.iter()
            if _tag(element) == wanted
        ]
    elif kind == "kml":
        places, others = [], []
        for mark in (element for element in root.iter() if _tag(element) == "Placemark"):
            points = [element for element in mark.iter() if _tag(element) == "Point"]
            others += [] if points else ["Placemark without a Point"]
            for point in points:
                tuples = re.sub(r"\s*,\s*", ",", _child(point, "coordinates") or "").split() or [""]
                for lon, lat, *_ in ([*numbers.split(","), None, None] for numbers in tuples):
                    places.append(_place(lat, lon, mark))
    elif kind == "osm":
        nodes = [element for element in root.iter() if _tag(element) == "node"]
        nodes = [node for node in nodes if len(node)] or nodes  # others are bends of ways
        others = sorted(tags & {"way", "relation"})
        places = []
        for node in nodes:
            names = {tag.get("k"): tag.get("v") for tag in node}
            places.append(
                [node.get("id"), names.get("name"), *_place(node.get("lat"), node.get("lon"), node)[2:]]
            )
    else:
        raise ValueError(f"it is XML, but neither GPX, KML nor OpenStreetMap: {kind[:40]!r}")
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
        numbers, rows, fault = _first_sheet(data, load_workbook)
    except Exception as error:  # openpyxl raises errors of any type for broken files
        raise ValueError(f"openpyxl cannot read this workbook ({error})") from error
    if fault or not rows:
        raise ValueError(fault or "this workbook has no cells")
    return table_of(numbers, rows)


def _first_sheet(data: bytes, load: Callable[..., Any]) -> tuple[list[int], list[list[Any]], str]:
    """Return numbers and cells of the rows of the first non-empty sheet, and what is wrong with them or ""."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        size = sum(entry.file_size for entry in packed.infolist())
    if size > most_unpacked(data):
        return (
            [],
            [],
            f"this workbook holds {size / 1e6:.0f} MB, {most_unpacked(data) / 1e6:.0f} MB are allowed",
        )
    books = [load(io.BytesIO(data), read_only=True, data_only=values) for values in (True, False)]
    for page, written in zip(*(book.worksheets for book in books), strict=True):
        numbers: list[int] = []
        rows: list[list[Any]] = []
        cells = width = 0
        page.reset_dimensions()  # the file may state any
        for number, row in enumerate(page.iter_rows(values_only=True), start=1):
            used = max((c + 1 for c, cell in enumerate(row) if not is_blank(cell)), default=0)
            cells, width = cells + len(row), max(width, used)
            if used:
                numbers.append(number)
                rows.append(list(row[:used]))
            if max(cells, width * len(rows)) > _SPARE_CELLS + size // _BYTES_A_CELL:
                return [], [], f"line {number}: cells are far apart; delete blank rows and columns"
        rows = [row + [None] * (width - len(row)) for row in rows]
        if any(None in row for row in rows):
            written.reset_dimensions()
            formulas = dict(enumerate(written.iter_rows(max_col=width, values_only=True), start=1))
            for number, row in zip(numbers, rows, strict=True):
                for c, formula in enumerate(formulas[number]):
                    if formula is not None and row[c] is None:
                        place = f"line {number}, column {c + 1}"
                        return (
                            [],
                            [],
                            f"{place}: a formula without a value; save the workbook in a spreadsheet program",
                        )
        if rows:
            return numbers, rows, ""
    return [], [], ""


def parse_npy(data: bytes, reading: Reading) -> ParsedInstance | Table:
    """Return the array of a .npy file: with titles a table, else a matrix or coordinates."""
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"numpy cannot read this array ({error})") from error
    if array.dtype.names:
        return Table(list(array.dtype.names), [list(row) for row in array.tolist()])
    reading.allow("an array", "metric", "matrix", "symmetric")
    if is_matrix(array, reading.matrix, reading.metric):
        return ParsedInstance(matrix=array, read_as=f"matrix, row = from; {len(array)} cities")
    return ParsedInstance(coords=array, metric=reading.metric, read_as=f"coordinates; {len(array)} cities")
