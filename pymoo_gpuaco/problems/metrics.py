"""TSPLIB's distance functions and five others, in double precision, and checks of coordinates.

Definitions: G. Reinelt, "TSPLIB95" (1995), section 2. TSPLIB's metrics and Concorde's `GEOM` give whole numbers; the
rounding is a part of their definitions. `EXACT`, `HAVERSINE`, `MANHATTAN` and `CHEBYSHEV` do not round.
"""

from __future__ import annotations

import math
import os
import warnings
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.cells import axis_of
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

MAX_COORDINATE = 1e15
"""Largest magnitude of a coordinate: beyond it doubles no longer represent whole-number distances."""


class Metric(IntEnum):
    """Distance function. Kernels branch on the same codes: never renumber them."""

    EXPLICIT = 0  # looked up in a matrix
    EUC = 1  # Euclidean, to the nearest integer
    CEIL = 2  # Euclidean, rounded up
    ATT = 3  # pseudo-Euclidean of the AT&T instances
    GEO = 4  # great circle, whole kilometres
    MAN = 5  # sum of the axes, to the nearest integer
    MAX = 6  # largest axis, each rounded to the nearest integer
    EXACT = 7  # Euclidean, not rounded
    HAVERSINE = 8  # great circle in kilometres, not rounded


class _Row(NamedTuple):
    code: Metric
    dimensions: tuple[int, ...]  # allowed numbers of coordinates per city
    integral: bool
    words: str


METRICS: dict[str, _Row] = {
    "EUC_2D": _Row(Metric.EUC, (2,), True, "Euclidean distances, rounded"),
    "EUC_3D": _Row(Metric.EUC, (3,), True, "Euclidean distances, rounded"),
    "CEIL_2D": _Row(Metric.CEIL, (2,), True, "Euclidean distances, rounded up"),
    "ATT": _Row(Metric.ATT, (2,), True, "pseudo-Euclidean distances, rounded"),
    "GEO": _Row(Metric.GEO, (2,), True, "great circles in whole kilometres"),
    "MAN_2D": _Row(Metric.MAN, (2,), True, "distances along the axes, rounded"),
    "MAN_3D": _Row(Metric.MAN, (3,), True, "distances along the axes, rounded"),
    "MAX_2D": _Row(Metric.MAX, (2,), True, "distances along the longest axis, rounded"),
    "MAX_3D": _Row(Metric.MAX, (3,), True, "distances along the longest axis, rounded"),
    "EXACT": _Row(Metric.EXACT, (2, 3), False, "Euclidean distances, not rounded"),
    "EXACT_2D": _Row(Metric.EXACT, (2,), False, "Euclidean distances, not rounded"),
    "EXACT_3D": _Row(Metric.EXACT, (3,), False, "Euclidean distances, not rounded"),
    "HAVERSINE": _Row(Metric.HAVERSINE, (2,), False, "great circles in kilometres, not rounded"),
    "GEOM": _Row(Metric.EXPLICIT, (2,), True, "great circles in whole metres"),
    "MANHATTAN": _Row(Metric.EXPLICIT, (2, 3), False, "distances along the axes, not rounded"),
    "CHEBYSHEV": _Row(Metric.EXPLICIT, (2, 3), False, "distances along the longest axis, not rounded"),
}
"""All metrics by name. The last three are computed once, as a matrix; GEOM takes decimal degrees."""

METRIC_NAMES = {name: (row.code, row.dimensions[0]) for name, row in METRICS.items() if row.code}
"""Name -> (metric, coordinates per city). `EXACT` and `HAVERSINE` are not in TSPLIB; `EXACT` takes 2 or 3."""

MOST_TABULATED = 20_000
"""Maximum cities whose coordinates may become a matrix: for some metrics, and for forbidden edges."""

LEAST_EXTENT = 1e-140
"""Minimum extent of coordinates that differ, for `EXACT`: squares of smaller differences are 0."""


# Below this typical distance to the nearest city, rounding to whole numbers decides which tour is shorter.
COARSE = 10.0
# Maximum decimals of degrees from users; computed numbers, such as random ones, have more.
_DECIMALS = 8
# Maximum share of minutes above 59 in GEO: ali535 has 3 of 1,070, random decimal degrees have 2 of 5.
_MISWRITTEN = 0.02
# Number of cities whose nearest neighbours are queried.
_SAMPLE = 1000

# TSPLIB's constants. A more exact pi gives other lengths than the published optima.
_GEO_PI = 3.141592
GEO_RADIUS_KM = 6378.388
"""Radius of the sphere of `GEO`."""

EARTH_DIAMETER_KM = 2 * 6371.0088
"""Diameter for `HAVERSINE`: twice the mean radius of the Earth (International Union of Geodesy and Geophysics)."""

_SPREAD_FROM = 100_000  # minimum edges for all threads

WITH_DUMMY, DOUBLED = 32, 64
"""Codes of symmetric forms in a `Graph`: a `Metric` plus 32 if the last city is a dummy; doubled cities."""

# Names of metrics in SciPy and elsewhere.
_ALIASES = {
    "EUCLIDEAN": "EXACT",
    "L2": "EXACT",
    "CITYBLOCK": "MANHATTAN",
    "L1": "MANHATTAN",
    "LINF": "CHEBYSHEV",
    "GREAT_CIRCLE": "HAVERSINE",
    "GEODESIC": "HAVERSINE",
}


def name_of(metric: str | Metric, shape: tuple[int, ...]) -> str:
    """Return the name of a metric, given by its name (any case) or `Metric`, for coordinates of a shape (n, d).

    Raises ValueError for a metric without coordinates (`EXPLICIT`), an unknown name, or another number of coordinates;
    TypeError for other types.
    """
    known = ", ".join(METRICS)
    if metric is Metric.EXPLICIT:
        raise ValueError(f"metric EXPLICIT has no coordinates; use matrix=, or one of {known}")
    if callable(metric):
        raise TypeError(
            "metric must be a str or Metric, got a function: write matrix=cdist(coords, coords, metric), with "
            "scipy.spatial.distance.cdist"
        )
    if not isinstance(metric, (str, Metric)):
        raise TypeError(f"metric must be a str or Metric, got {type(metric).__name__}")
    if isinstance(metric, str) and metric.upper() not in METRICS:
        hint = checks.did_you_mean(metric, {name: name for name in METRICS} | _ALIASES) or ";"
        raise ValueError(f"unknown metric {metric!r}{hint} known are {known}")
    names = [name for name, row in METRICS.items() if metric is row.code or str(metric).upper() == name]
    fitting = [name for name in names if shape[-1] in METRICS[name].dimensions]
    if not fitting:
        expected = " or ".join(
            f"(n, {dimension})" for name in names for dimension in METRICS[name].dimensions
        )
        raise ValueError(f"coords must have shape {expected} for metric {names[0]}, got {shape}")
    return fitting[0]


def on_the_globe(metric: str | None) -> bool:
    """Return True if a metric takes latitude and longitude."""
    return metric is not None and metric.upper() in ("HAVERSINE", "GEO", "GEOM")


def _tabulated(name: str, coords: ArrayLike) -> NDArray[np.float64]:
    """Return the matrix (n, n) of GEOM, MANHATTAN or CHEBYSHEV for coordinates (n, 2) or (n, 3).

    GEOM is Concorde's, between (latitude, longitude) in decimal degrees on a sphere of radius 6,378,388 m.
    Raises ValueError as `prepare_coordinates` does.
    """
    if name != "GEOM":
        from scipy.spatial.distance import cdist

        x = prepare_coordinates(Metric.EXACT, coords)
        return cdist(x, x, "cityblock" if name == "MANHATTAN" else "chebyshev")
    prepare_coordinates(Metric.HAVERSINE, coords)  # checks them
    latitude, longitude = np.radians(np.asarray(coords, dtype=np.float64)).T
    half = (longitude[:, None] - longitude) / 2.0
    s2, c2 = np.sin(half) ** 2, np.cos(half) ** 2
    plus, minus = latitude[:, None] + latitude, latitude[:, None] - latitude
    q1 = np.cos(latitude) * np.sin(longitude[:, None] - longitude)
    q2 = np.sin(plus) * s2 - np.sin(minus) * c2
    q5 = np.cos(minus) * c2 - np.cos(plus) * s2
    full = np.trunc(1000.0 * GEO_RADIUS_KM * np.arctan2(np.hypot(q1, q2), q5) + 1.0)
    np.fill_diagonal(full, 0.0)
    return full


def prepare_coordinates(metric: Metric, coords: ArrayLike) -> NDArray[np.float64]:
    """Return a new (n, 3) float64 C-contiguous array for `distances` and the kernels.

    `coords` is (n, 2) or (n, 3), finite and at most 1e15 in magnitude. Two columns get z = 0. For GEO they
    are latitude and longitude as TSPLIB writes them, DDD.MM (degrees and minutes); they become radians. For HAVERSINE
    they are latitude, in [-90, 90], and longitude, in [-360, 360], in decimal degrees; they become points on the
    sphere (x, y, z) in kilometres, so that 180 degrees east and west are the same point.

    Raises TypeError if `coords` are not numbers, ValueError for a wrong shape or a value out of range.
    """
    if isinstance(coords, (str, os.PathLike)):
        raise TypeError(
            f"coords must be an array of numbers, got {coords!r}; load_tsp reads a name or a file"
        )
    raw = checks.unmasked("coords", coords)
    if raw.dtype.kind not in "iuf":
        raise TypeError(
            f"coords must be an array of numbers, got dtype {raw.dtype}; read_cities takes tables with names"
        )
    if raw.ndim != 2 or raw.shape[1] not in (2, 3):
        raise ValueError(f"coords must have shape (n, 2) or (n, 3), got {raw.shape}")
    if metric in (Metric.GEO, Metric.HAVERSINE) and raw.shape[1] != 2:
        raise ValueError(f"coords must have shape (n, 2) for {metric.name}, got {raw.shape}")
    prepared = np.zeros((len(raw), 3))
    prepared[:, : raw.shape[1]] = raw
    # False for NaN.
    inside = np.abs(prepared) <= MAX_COORDINATE
    if not inside.all():
        row, column = np.argwhere(~inside)[0]
        raise ValueError(
            f"coords must be finite and at most {MAX_COORDINATE:g} in magnitude, "
            f"got {prepared[row, column]:g} at city {row}"
        )
    if metric == Metric.GEO:
        degrees = np.trunc(prepared)
        minutes = prepared - degrees
        # TSPLIB's order of operations: another one changes some distances by a kilometre.
        prepared = _GEO_PI * (degrees + 5.0 * minutes / 3.0) / 180.0
    if metric == Metric.HAVERSINE:
        prepared = _on_the_sphere(prepared[:, 0], prepared[:, 1])
    return prepared


def _on_the_sphere(latitude: NDArray[np.float64], longitude: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (n, 3) points in kilometres from the Earth's centre. Raises ValueError for angles out of range."""
    for name, angle, most in (("latitude", latitude, 90), ("longitude", longitude, 360)):
        outside = np.flatnonzero(np.abs(angle) > most)
        if outside.size:
            raise ValueError(
                f"coords must be (latitude, longitude) in decimal degrees for HAVERSINE: {name} must be in "
                f"[-{most}, {most}], got {angle[outside[0]]:g} at city {outside[0]}"
            )
    lat, lon = np.radians(latitude), np.radians(np.mod(longitude, 360.0))  # one value per meridian
    unit = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    return np.ascontiguousarray(0.5 * EARTH_DIAMETER_KM * unit)


def check_coords(coords: ArrayLike, metric: str | Metric | None) -> tuple[str, NDArray[np.float64]]:
    """Return the metric's name, "EXACT" for None, and coordinates (n, 3) as `prepare_coordinates` returns them.

    For GEOM, MANHATTAN and CHEBYSHEV return their matrix (n, n) instead.
    """
    raw = checks.unmasked("coords", coords)
    if raw.ndim == 2 and raw.shape[0] == raw.shape[1] and raw.shape[0] > 3:
        raise ValueError(
            f"coords must have shape (n, 2) or (n, 3), got {raw.shape}; "
            "for a distance matrix write matrix=, as in TSP(matrix=D)"
        )
    titles = getattr(coords, "columns", ()) if metric is None else ()  # of a DataFrame
    if any(axis_of(title) == "lat" for title in titles):
        raise ValueError(
            "coords must be places in a plane, got columns of latitude and longitude: read_cities(table) measures "
            'kilometres over the globe; metric="EXACT" says that a plane is meant'
        )
    plain = prepare_coordinates(Metric.EXACT, coords)  # checks them
    name = name_of("EXACT" if metric is None else metric, raw.shape)
    code = METRICS[name].code
    if code == Metric.EXPLICIT:
        if len(raw) > MOST_TABULATED:
            raise ValueError(
                f"metric {metric} needs a matrix: {MOST_TABULATED} cities at most, got {len(raw)}"
            )
        return name, _tabulated(name, coords)
    if code == Metric.GEO and np.mean(np.abs(plain - np.trunc(plain))[:, :2] > 0.595) > _MISWRITTEN:
        warnings.warn(
            "coords have minutes above 59, and metric GEO takes degrees and minutes, DDD.MM: decimal degrees go with "
            '"HAVERSINE" (kilometres) or "GEOM" (whole metres)',
            stacklevel=3,
        )
    if code != Metric.EXACT:
        return name, prepare_coordinates(code, coords)
    extent = float(np.ptp(plain, axis=0).max(initial=0.0)) if len(plain) else 0.0
    if 0.0 < extent < LEAST_EXTENT:
        raise ValueError(
            f"coords must differ by {LEAST_EXTENT:g} at least, or squares of their differences are 0 in "
            f"double precision; they differ by {extent:g} at most"
        )
    given = plain[:, : raw.shape[1]]
    is_written = any(isinstance(title, str) for title in titles) or np.all(
        np.abs(given - np.round(given, _DECIMALS)) < 1e-12
    )
    if metric is None and is_written and looks_like_degrees(given):
        warnings.warn(
            'coords look like degrees, but count as places in a plane: metric="HAVERSINE" takes latitude and '
            'longitude, metric="EXACT" confirms the plane',
            stacklevel=3,
        )
    return name, plain


def looks_like_degrees(coords: NDArray[np.float64]) -> bool:
    """Return True if coordinates (n, d) have more than two decimals and the range of latitude and longitude."""
    if coords.shape[1] != 2 or not len(coords):
        return False
    most = np.abs(coords).max(axis=0)
    if not 1.0 < most.max() <= 180.0 or most.min() > 90.0:
        return False
    return bool(np.any(np.abs(coords - np.round(coords, 2)) > 1e-9))


def are_places_on_the_globe(positions: NDArray[np.float64]) -> bool:
    """Return True if positions (n, 2) have the range and the decimals of latitude and longitude."""
    most = np.abs(positions).max(axis=0, initial=0.0)
    decimals = np.abs(positions - np.round(positions, _DECIMALS))
    in_range = most[0] <= 90.0 and 1.0 < most.max() <= 180.0
    return bool(in_range and np.all(decimals < 1e-12) and np.any(positions != np.floor(positions)))


def warn_of_no_rounding(coords: NDArray[np.float64], best_known: float | None) -> None:
    """Warn if all coordinates are whole numbers and the best known length, if given, is one too."""
    published = best_known is None or float(best_known).is_integer()
    if published and bool(np.all(coords == np.floor(coords))):
        warnings.warn(
            "distances are not rounded, but the best tour of whole coordinates is known: write "
            'metric="EUC_2D" for TSPLIB\'s rounded distances, else metric="EXACT"',
            stacklevel=3,
        )


def warn_of_rounding(metric: Metric, coords: NDArray[np.float64]) -> None:
    """Warn if distances are rounded, coordinates have fractions and the typical nearest city is below `COARSE`."""
    n = len(coords)
    if (
        metric in (Metric.EXACT, Metric.GEO, Metric.HAVERSINE)
        or n < 3
        or bool(np.all(coords == np.floor(coords)))
    ):
        return
    from scipy.spatial import cKDTree

    sample = np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)
    typical = float(np.median(cKDTree(coords).query(coords[sample], k=2)[0][:, 1]))
    if typical < COARSE:
        warnings.warn(
            f"metric {metric.name} rounds distances to whole numbers, and the nearest city is typically only "
            f"{typical:.3g} away: leave metric out, "
            'write metric="EXACT", or multiply the coordinates by '
            f"{10.0 ** np.ceil(np.log10(100.0 * COARSE / max(typical, 1e-12))):g}",
            stacklevel=3,
        )


_NO_MATRIX, _NO_LISTS, _NO_PARTNERS = np.empty((0, 0)), np.empty((0, 0), np.int32), np.empty(0, np.int32)


@struct
class Graph(NamedTuple):
    """Arrays of one instance for compiled functions; letters: n cities, k candidates a city."""

    metric: int  # a `Metric`, `WITH_DUMMY` plus one, or `DOUBLED`
    coords: Float64_2d  # (n, 3), NaN for the dummy; (0, 3) for a matrix
    matrix: Float64_2d = _NO_MATRIX  # (n, n), row = from; of a doubled instance (n / 2, n / 2)
    neighbours: Int32_2d = _NO_LISTS  # (n, k), ascending by distance
    neighbour_distances: Float64_2d = _NO_MATRIX  # (n, k)
    # (n,) int32, other end of the fixed edge, or -1; (0,) without fixed edges
    partner: Int32_1d = _NO_PARTNERS
    far: float = 0.0  # length of an edge that no tour may use


def distances(metric: int, coords: NDArray[np.float64], i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
    """Return d(i, j) for index arrays `i` and `j` (broadcast together), rounded as the metric defines.

    `coords` is a result of `prepare_coordinates`. d(i, i) is 0 under every metric; two coincident cities are 1 km apart
    under GEO. Raises ValueError for `Metric.EXPLICIT` and for cities out of range.
    """
    if metric == Metric.EXPLICIT:
        raise ValueError(f"metric {Metric(metric).name} has no coordinates: look distances up in the matrix")
    return graph_distances(Graph(int(metric), coords), len(coords), i, j)


def graph_distances(graph: Graph, n: int, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
    """Return d(i, j) of n cities for index arrays. Raises ValueError for cities out of range."""
    start, end = np.broadcast_arrays(np.asarray(i, np.int64), np.asarray(j, np.int64))
    result, start, end = np.empty(start.shape), start.flatten(), end.flatten()
    if any(part.size and not 0 <= part.min() <= part.max() < n for part in (start, end)):
        raise ValueError(f"i and j must be cities in [0, {n - 1}]")
    flat = result.reshape(-1)

    def work(_: int, first: int, last: int) -> None:
        _write_distances(graph, start, end, first, last, flat)

    parallel_for(work, flat.size, thread_count() if flat.size >= _SPREAD_FROM else 1)
    return result


# plain integers for compiled code
EXPLICIT, EUC, _CEIL, _ATT, _GEO, _MAN, _MAX, _EXACT, _HAVERSINE = map(int, Metric)


@compiled_callee
def _other_metric(metric, x1, y1, z1, x2, y2, z2):  # type: ignore[no-untyped-def]
    """Return the distance of two points by any metric except EUC."""
    dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
    if metric == _CEIL:
        return np.ceil(math.sqrt(dx * dx + dy * dy + dz * dz))
    if metric == _ATT:
        r = math.sqrt((dx * dx + dy * dy) / 10.0)
        t = np.floor(r + 0.5)
        return t + 1.0 if t < r else t
    if metric == _GEO:
        q1, q2, q3 = math.cos(dy), math.cos(dx), math.cos(x1 + x2)
        q = min(1.0, max(-1.0, 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3)))
        return np.floor(GEO_RADIUS_KM * math.acos(q) + 1.0)
    if metric == _MAN:
        return np.floor(abs(dx) + abs(dy) + abs(dz) + 0.5)
    if metric == _MAX:
        return max(np.floor(abs(dx) + 0.5), np.floor(abs(dy) + 0.5), np.floor(abs(dz) + 0.5))
    straight = math.sqrt(dx * dx + dy * dy + dz * dz)
    if metric == _HAVERSINE:
        return EARTH_DIAMETER_KM * math.asin(min(1.0, straight / EARTH_DIAMETER_KM))
    return straight


@inlined
def between(metric, x1, y1, z1, x2, y2, z2):  # type: ignore[no-untyped-def]
    """Return the distance of two points in double precision, rounded as the metric defines.

    GEO takes (latitude, longitude, 0), HAVERSINE points on the sphere.
    """
    if metric == EUC:
        dx, dy, dz = x1 - x2, y1 - y2, z1 - z2
        return np.floor(math.sqrt(dx * dx + dy * dy + dz * dz) + 0.5)
    return _other_metric(metric, x1, y1, z1, x2, y2, z2)


@inlined
def distance(graph, i, j):  # type: ignore[no-untyped-def]
    """Return the distance from city i to city j, 0 from a city to itself."""
    p, q = np.uint32(i), np.uint32(j)  # unsigned: numba then omits the check for negative indices
    c = graph.coords
    if graph.metric == EUC:  # first, because most instances use it
        return between(EUC, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])
    if graph.metric == EXPLICIT:
        return graph.matrix[p, q]
    if i == j:
        return 0.0
    if graph.metric >= WITH_DUMMY:
        return _of_form(graph, p, q)
    return _other_metric(graph.metric, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])


@compiled_callee
def _of_form(graph, p, q):  # type: ignore[no-untyped-def]
    """Return the distance of two different cities of a symmetric form, see ``problems.symmetric``."""
    if graph.metric == DOUBLED:
        if (p ^ q) & np.uint32(1) == 0:
            return graph.far
        left, entered = (p, q) if p & np.uint32(1) else (q, p)
        leaving, entering = left >> np.uint32(1), entered >> np.uint32(1)
        return 0.0 if leaving == entering else min(graph.matrix[leaving, entering], graph.far)
    c = graph.coords
    if np.isnan(c[p, 0]) or np.isnan(c[q, 0]):
        return 0.0
    return between(graph.metric - WITH_DUMMY, c[p, 0], c[p, 1], c[p, 2], c[q, 0], c[q, 1], c[q, 2])


@compiled
def _write_distances(
    graph: Graph, i: Int64_1d, j: Int64_1d, first: int, last: int, lengths: Float64_1d
) -> None:
    """Write the lengths of edges first .. last-1."""
    for e in range(first, last):
        lengths[e] = distance(graph, i[e], j[e])


@inlined
def stays(graph, i, j):  # type: ignore[no-untyped-def]
    """Return True if the edge between two cities is fixed."""
    return graph.partner.shape[0] > 0 and graph.partner[i] == j
