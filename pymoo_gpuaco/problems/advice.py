"""Words to whoever makes a problem that is likely not the one that is meant."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.problems.metrics import Metric, distances

__all__ = ["COARSE", "hint_at_degrees", "hint_at_matrix", "warn_of_no_rounding", "warn_of_rounding"]

# Below this typical distance to the nearest city, rounding to whole numbers decides which tour is shorter.
COARSE = 10.0
# Cities whose nearest neighbour tells what is typical.
_SAMPLE = 1000


def hint_at_matrix(raw: NDArray[Any]) -> None:
    """Raise for coordinates that look like a distance matrix: the commonest slip, `TSP(D)`."""
    if raw.ndim == 2 and raw.shape[0] == raw.shape[1] and raw.shape[0] > 3:
        raise ValueError(
            f"coords must have shape (n, 2) or (n, 3), got {raw.shape}; "
            "for a distance matrix write matrix=, as in TSP(matrix=D)"
        )


def hint_at_degrees(table: Any) -> None:
    """Raise for a DataFrame with a column of latitudes, whose titles nobody reads here."""
    if any(str(title).strip().lower() in ("lat", "latitude") for title in getattr(table, "columns", ())):
        raise ValueError(
            "coords must be places in a plane, got columns of latitude and longitude: read_cities(table) measures "
            'kilometres over the globe; metric="EXACT" says that a plane is meant'
        )


def warn_of_no_rounding(coords: NDArray[np.float64], best_known: float | None) -> None:
    """Warn where all coordinates are whole numbers and the best known length, if told, is one too."""
    published = best_known is None or float(best_known).is_integer()
    if published and bool(np.all(coords == np.floor(coords))):
        warnings.warn(
            "distances are Euclidean and not rounded, but the coordinates are whole numbers and the best tour is "
            'known: if its length is that of TSPLIB\'s rounded distances, write metric="EUC_2D"; else metric="EXACT"',
            stacklevel=3,
        )


def warn_of_rounding(metric: Metric, coords: NDArray[np.float64]) -> None:
    """Warn where distances are rounded, coordinates have fractions and the typical nearest city is below `COARSE`."""
    n = len(coords)
    if (
        metric in (Metric.EXACT, Metric.GEO, Metric.HAVERSINE)
        or n < 3
        or bool(np.all(coords == np.floor(coords)))
    ):
        return
    sample = np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)
    nearest = cKDTree(coords).query(coords[sample], k=2)[1]
    # where cities coincide the query may name the city itself in either column
    other = np.where(nearest[:, 0] == sample, nearest[:, 1], nearest[:, 0])
    typical = float(np.median(distances(Metric.EXACT, coords, sample, other)))
    if typical < COARSE:
        warnings.warn(
            f"metric {metric.name} rounds distances to whole numbers, and the nearest city is typically only "
            f"{typical:.3g} away: tours will be told apart by rounding errors, or not at all. Leave metric out (or "
            'write metric="EXACT") for distances without rounding, or multiply the coordinates by '
            f"{10.0 ** np.ceil(np.log10(100.0 * COARSE / max(typical, 1e-12))):g}",
            stacklevel=3,
        )
