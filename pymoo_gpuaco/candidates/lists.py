"""Candidate lists by kind: which few edges of each city a search looks at."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.quadrant import has_quadrants, quadrant_lists
from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.problems.instance import Instance, nearest_by_coordinates, nearest_by_matrix
from pymoo_gpuaco.problems.metrics import Metric

Kind = Literal["auto", "nearest", "quadrant"]


class Candidates(NamedTuple):
    """k candidates of each of n cities; each row is sorted by (distance, id) and never holds the city itself."""

    ids: NDArray[np.int32]  # (n, k)
    distances: NDArray[np.float64]  # (n, k)


def lists(instance: Instance, kind: Kind, k: int) -> Candidates:
    """Return `k` candidates a city (k >= 1; at most n - 1 are listed).

    kind : "nearest" the cities at least distance (by row where the matrix is asymmetric); "quadrant" see
        `quadrant.quadrant_lists`; "auto" is "quadrant". Without a plane (a matrix, GEO, three dimensions)
        quadrants have no meaning and the nearest are listed.

    Raises ValueError or TypeError naming the parameter.
    """
    checks.choice("kind", kind, get_args(Kind))
    k = min(checks.integer("k", k, 1), instance.n - 1)
    if kind != "nearest" and has_quadrants(instance.metric, instance.coords):
        return Candidates(*quadrant_lists(instance.metric, instance.coords, k))
    if k <= instance.k:
        near = instance.neighbours[:, :k], instance.neighbour_distances[:, :k]
        return Candidates(np.ascontiguousarray(near[0]), np.ascontiguousarray(near[1]))
    if instance.metric == Metric.EXPLICIT:
        return Candidates(*nearest_by_matrix(instance.matrix, k))
    return Candidates(*nearest_by_coordinates(Metric(instance.metric), instance.coords, k))
