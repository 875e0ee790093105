"""A tour in a file for other programs: CSV, GeoJSON, JSON or TSPLIB's tour, its cities in visiting order."""

from __future__ import annotations

import csv
import io
import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.problems.geojson import geojson_of
from pymoo_gpuaco.problems.lengths import edge_lengths
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.problems.writing import tour_text, write_whole

__all__ = ["check_route", "numbers_of", "route_text", "write_route"]


def write_route(path: str | PathLike[str], problem: TSP, tour: ArrayLike) -> None:
    """Write a tour of a problem; the file's suffix says how.

    * ``.csv``: a line a city in visiting order, with its number in the file (TSPLIB's own, else from 1 on), name and
      place, and the distance to the next one.
    * ``.geojson``: the places in visiting order and a line through them; for cities on the globe.
    * ``.json``: an object with `tour` (cities from 0 on), `names`, `numbers` (where a TSPLIB file has others than 1 to
      n), `length`, `metric` and `closed`.
    * any other: TSPLIB's tour file, of the same numbers.

    `tour` is an (n,) permutation of the problem's cities. Raises ValueError for no tour and for GeoJSON of cities that
    have no place on the globe, TypeError for something else than a problem and a tour, OSError where the file cannot
    be written.
    """
    if not isinstance(problem, TSP):
        raise TypeError(
            f"problem must be a TSP, got {type(problem).__name__}: write_route(path, problem, tour)"
        )
    path = Path(path)
    write_whole(path, route_text(problem, tour, path.suffix, problem.label or path.stem).encode("utf-8"))


def check_route(problem: TSP, suffix: str) -> None:
    """Raise ValueError where a tour of the problem cannot be written in the format of that suffix."""
    if suffix.lower() not in (".csv", ".geojson", ".json") and -1 in numbers_of(problem):
        raise ValueError(
            "TSPLIB's tours end at -1, which is the number of a city here; .csv, .geojson and .json do not"
        )
    if suffix.lower() == ".geojson" and _globe(problem) is None:
        raise ValueError(
            f"GeoJSON needs latitudes and longitudes, and {problem.label or 'the problem'} has "
            f"{problem.distances_in_words}"
        )


def numbers_of(problem: TSP | MultiObjectiveTSP) -> NDArray[Any]:
    """Return the (n,) numbers of the cities in files: those of the TSPLIB file that they are from, else 1 to n."""
    return np.arange(1, problem.n_cities + 1) if problem.numbers is None else problem.numbers


def route_text(problem: TSP, tour: ArrayLike, suffix: str, name: str) -> str:
    """Return the contents of such a file; see `write_route`."""
    check_route(problem, suffix)
    length = problem.tour_length(tour)
    order, closed = np.asarray(tour, dtype=np.int64), problem.closed
    numbers = numbers_of(problem)
    names = (numbers if problem.names is None else problem.names).tolist()
    about = {"name": name, "length": length, "metric": problem.metric_name, "closed": closed}
    kind = suffix.lower()
    if kind == ".csv":
        return _csv(problem, order, numbers, names, closed)
    if kind == ".geojson":
        places = _globe(problem)
        assert places is not None
        return json.dumps(geojson_of(places, order, numbers, names, closed, about), default=str) + "\n"
    if kind == ".json":
        known = {"names": problem.names, "numbers": problem.numbers}
        shown = {key: of[order].tolist() for key, of in known.items() if of is not None}
        return json.dumps({**about, "tour": order.tolist(), **shown}, default=str) + "\n"
    return tour_text(order, name, f"length {length:.10g}", numbers)


def _globe(problem: TSP) -> NDArray[np.float64] | None:
    """Return (n, 2) latitudes and longitudes in decimal degrees, or None for cities that have none."""
    if problem.positions is None or problem.metric not in (Metric.HAVERSINE, Metric.GEO):
        return None
    if problem.metric == Metric.HAVERSINE:
        return problem.positions
    degrees = np.trunc(problem.positions)  # TSPLIB writes DDD.MM
    return degrees + (problem.positions - degrees) * 5.0 / 3.0


def _csv(
    problem: TSP, order: NDArray[np.int64], numbers: NDArray[Any], names: list[object], closed: bool
) -> str:
    """Return a line a city; the last one's distance is that back to the first, of a path nothing."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    places = None if problem.matrix is not None else problem.positions
    globe = problem.metric in (Metric.HAVERSINE, Metric.GEO)
    axes = [] if places is None else ["lat", "lon"] if globe else ["x", "y"]
    writer.writerow(["stop", "city", "name", *axes, "to_next"])
    legs = edge_lengths(problem.metric, problem.coords, problem.matrix, order, np.roll(order, -1))
    lengths = [f"{leg:.10g}" for leg in legs]
    if not closed:
        lengths[-1] = ""
    for stop, city in enumerate(order.tolist()):
        place = [] if places is None else [repr(float(x)) for x in places[city]]
        writer.writerow([stop + 1, numbers[city], names[city], *place, lengths[stop]])
    return text.getvalue()
