"""Checks of the arguments of a `TSP`: coordinates, names, positions and the best known length."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.metrics import Metric, prepare_coordinates, resolve_metric, tabulated

MOST_TABULATED = 20_000
"""Maximum cities whose coordinates may become a matrix: for some metrics, and for forbidden edges."""

LEAST_EXTENT = 1e-140
"""Minimum extent of coordinates that differ, for `EXACT`: squares of smaller differences are 0."""


# Below this typical distance to the nearest city, rounding to whole numbers decides which tour is shorter.
COARSE = 10.0
# Maximum decimals of degrees from users; computed numbers, such as random ones, have more.
_DECIMALS = 8
# Number of cities whose nearest neighbours are queried.
_SAMPLE = 1000


def check_coords(coords: ArrayLike, metric: str | Metric | None) -> tuple[Metric, NDArray[np.float64]]:
    """Return the metric, `EXACT` for None, and coordinates (n, 3) as `prepare_coordinates` returns them.

    For a metric of `TABULATED`, return `EXPLICIT` and its matrix (n, n).
    """
    raw = checks.unmasked("coords", coords)
    if raw.ndim == 2 and raw.shape[0] == raw.shape[1] and raw.shape[0] > 3:
        raise ValueError(
            f"coords must have shape (n, 2) or (n, 3), got {raw.shape}; "
            "for a distance matrix write matrix=, as in TSP(matrix=D)"
        )
    if metric is None:
        refuse_degrees(coords)
    code, allowed = resolve_metric(Metric.EXACT if metric is None else metric)
    if code == Metric.EXPLICIT:
        if len(raw) > MOST_TABULATED:
            raise ValueError(
                f"metric {metric} needs a matrix: {MOST_TABULATED} cities at most, got {len(raw)}"
            )
        return code, tabulated(str(metric).upper(), coords)
    prepared = prepare_coordinates(code, coords)
    if code == Metric.EXACT and len(prepared):
        extent = float(np.ptp(prepared, axis=0).max())
        if 0.0 < extent < LEAST_EXTENT:
            raise ValueError(
                f"coords must differ by {LEAST_EXTENT:g} at least, or squares of their differences are 0 in "
                f"double precision; they differ by {extent:g} at most"
            )
    if raw.shape[1] not in allowed:
        expected = " or ".join(f"(n, {dim})" for dim in allowed)
        raise ValueError(f"coords must have shape {expected} for metric {metric}, got {raw.shape}")
    given = prepared[:, : raw.shape[1]]
    is_short = np.all(np.abs(given - np.round(given, _DECIMALS)) < 1e-12)
    if metric is None and is_short and looks_like_degrees(given):
        warnings.warn(
            'coords look like degrees, but count as places in a plane: metric="HAVERSINE" takes latitude and '
            'longitude, metric="EXACT" confirms the plane',
            stacklevel=3,
        )
    return code, prepared


def check_names(names: Sequence[Any], n: int, what: str = "names") -> NDArray[np.object_]:
    """Return (n,) names as an array."""
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise TypeError(f"{what} must be a sequence of {n} {what}, got {names!r}"[:120])
    if len(names) != n:
        raise ValueError(f"{what} must be {n}, one per city, got {len(names)}")
    array = np.empty(n, dtype=object)
    for city, name in enumerate(names):  # one by one: names may be tuples
        array[city] = name
    return array


def check_ids(ids: Sequence[Any], n: int) -> NDArray[np.object_]:
    """Return (n,) ids as an array; raise ValueError if two are equal."""
    array = check_names(ids, n, "ids")
    texts = [str(own) for own in array]
    if len(set(texts)) < n:
        twice = next(text for at, text in enumerate(texts) if text in texts[:at])
        raise ValueError(f"ids must differ, one per city, got {twice!r} twice")
    return array


def check_positions(positions: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return (n, 2) positions for plots as an array."""
    array = checks.finite("positions", positions)
    if array.shape != (n, 2):
        raise ValueError(f"positions must have shape ({n}, 2), got {array.shape}")
    return array.astype(np.float64)


def refuse_degrees(table: Any) -> None:
    """Raise ValueError for a DataFrame with a column of latitudes, because `TSP` ignores titles."""
    if any(str(title).strip().lower() in ("lat", "latitude") for title in getattr(table, "columns", ())):
        raise ValueError(
            "coords must be places in a plane, got columns of latitude and longitude: read_cities(table) measures "
            'kilometres over the globe; metric="EXACT" says that a plane is meant'
        )


def looks_like_degrees(coords: NDArray[np.float64]) -> bool:
    """Return True if coordinates (n, d) have more than two decimals and the range of latitude and longitude."""
    if coords.shape[1] != 2 or not len(coords):
        return False
    most = np.abs(coords).max(axis=0)
    if not 1.0 < most.max() <= 180.0 or most.min() > 90.0:
        return False
    return bool(np.any(np.abs(coords - np.round(coords, 2)) > 1e-9))


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
