"""GeoJSON (RFC 7946): cities from its points, and tours as a line through them. Its order is longitude, latitude."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.cells import number_of
from pymoo_gpuaco.problems.columns import NAMES, Columns

__all__ = ["geojson_of", "parse_geojson"]


def parse_geojson(source: str, text: str) -> Columns:
    """Return the points of a GeoJSON text as (latitude, longitude), with a name where their properties have one.

    Taken are Point and MultiPoint, alone, in a Feature, or in collections of these; other shapes are left out with a
    warning. A third number, the height, is left out. Raises ValueError naming `source`.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{source}: its JSON is nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{source}: it is no JSON ({error})") from error
    if not (isinstance(content, dict) and "type" in content):
        raise ValueError(
            f"{source}: it is JSON, but not GeoJSON; json.load reads it in Python, and solve takes what it holds, "
            "an array of coordinates or of distances"
        )
    places: list[list[float]] = []
    names: list[Any] = []
    others: list[str] = []
    pending: list[tuple[Any, Any]] = [(content, None)]
    while pending:
        item, name = pending.pop()
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "FeatureCollection":
            pending += [(feature, None) for feature in reversed(_list(source, item, "features"))]
        elif kind == "GeometryCollection":
            pending += [(geometry, name) for geometry in reversed(_list(source, item, "geometries"))]
        elif kind == "Feature":
            pending.append((item.get("geometry"), _name(item)))
        elif kind in ("Point", "MultiPoint"):
            points = _list(source, item, "coordinates")
            for point in [points] if kind == "Point" else points:
                places.append(_place(source, point))
                names.append(name)
        else:
            others.append(kind if isinstance(kind, str) else "something without a type")
    if not places:
        found = f", only {', '.join(sorted(set(others)))[:60]}" if others else ""
        raise ValueError(f"{source}: this GeoJSON holds no Point{found}")
    if others:
        warnings.warn(
            f"{source}: left out is what is no point: {len(others)} of {', '.join(sorted(set(others)))[:60]}",
            stacklevel=4,
        )
    known = any(name is not None for name in names)
    named = ["" if name is None else name for name in names] if known else None
    return Columns(named, np.array(places), None, "HAVERSINE")


def geojson_of(
    places: NDArray[np.float64],
    order: NDArray[np.int64],
    numbers: NDArray[Any],
    names: list[Any],
    closed: bool,
    about: dict[str, Any],
) -> dict[str, Any]:
    """Return a tour as a FeatureCollection: a line, and a point for each city in the order of the tour.

    places : (n, 2) latitude and longitude in decimal degrees.
    order : (n,) cities; numbers, names : (n,) of them, by city; closed : whether the line comes back.
    about : properties of the line.
    """
    line = [[float(places[city, 1]), float(places[city, 0])] for city in order]
    points = [
        {
            "type": "Feature",
            "properties": {"stop": stop, "city": int(numbers[city]), "name": names[city]},
            "geometry": {"type": "Point", "coordinates": line[stop - 1]},
        }
        for stop, city in enumerate(order, start=1)
    ]
    route = {
        "type": "Feature",
        "properties": about,
        "geometry": {"type": "LineString", "coordinates": [*line, line[0]] if closed else line},
    }
    return {"type": "FeatureCollection", "features": [route, *points]}


def _list(source: str, item: dict[str, Any], key: str) -> list[Any]:
    value = item.get(key)
    if not isinstance(value, list):
        raise ValueError(f"{source}: a {item['type']} without a list of {key}")
    return value


def _place(source: str, point: Any) -> list[float]:
    numbers = point[:2] if isinstance(point, list) else []
    if len(numbers) != 2 or any(isinstance(x, str) or number_of(x) is None for x in numbers):
        raise ValueError(f"{source}: a Point needs [longitude, latitude], got {str(point)[:60]}")
    return [float(numbers[1]), float(numbers[0])]


def _name(feature: dict[str, Any]) -> Any:
    properties = feature.get("properties")
    if isinstance(properties, dict):
        lower = {str(key).lower(): value for key, value in properties.items()}
        for title in NAMES:
            if lower.get(title) is not None:
                return lower[title]
    return feature.get("id")
