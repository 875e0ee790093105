"""What a colony engine needs of a problem, as plain arrays: coordinates or matrix, and candidate lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.problem import Problem
from scipy.spatial import cKDTree

from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.problems.metrics import Metric, distances
from pymoo_gpuaco.problems.tsp import TSP, prepare_matrix, tour_lengths

__all__ = ["Instance", "as_instance"]

# Cities asked of the k-d tree beyond k + 1: among cities at equal rounded distance it lets the lower id win
# in all but crowded cases, and it covers neighbours that the tree's own rounding puts in another order.
_SPARE = 8
# Cities from which on a search of our own, compiled and on all threads, is several times faster than scipy's.
_LARGE = 20_000
# Cities up to which candidates by alpha-nearness are found.
MOST_FOR_ALPHA = 200_000
# Cities queried together: bounds the temporaries to some tens of megabytes.
_BLOCK_ENTRIES = 1 << 19


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem as arrays. They are shared, not copied: nobody may write to them.

    Attributes
    ----------
    metric : the `Metric` by which distances are computed, as a plain int: pymoo's `get_params` would walk an
        Enum without end. `EXPLICIT` looks distances up in `matrix`.
    coords : (n, 3) float64, prepared for the metric (GEO: radians); (0, 3) when `EXPLICIT`.
    matrix : (n, n) float64, row = from, diagonal 0; (0, 0) unless `EXPLICIT`.
    neighbours : (n, k) int32, the nearest cities of each city under the metric, or others of `listed`, itself never
        among them.
    neighbour_distances : (n, k) float64, d(city, neighbour), ascending along a row.
    symmetric : whether d(i, j) = d(j, i) for all cities.
    integral : whether every distance is known to be a whole number.
    listed : what kind of cities `neighbours` are, see `as_instance`: "nearest", "quadrant" or "alpha".

    Each row of `neighbours` is sorted by (distance, city id); of the nearest its distances are the k smallest. Where
    more cities than fit are at the k-th distance, a matrix lists those of lowest id. With coordinates the
    choice is made, by lowest id, among the k + 9 cities nearest by unrounded distance (the city itself
    included); which of still more coincident or equidistant cities come into that set is the k-d tree's
    choice, the same each time.
    """

    metric: int
    coords: NDArray[np.float64]
    matrix: NDArray[np.float64]
    neighbours: NDArray[np.int32]
    neighbour_distances: NDArray[np.float64]
    symmetric: bool
    integral: bool
    listed: str = "nearest"

    @property
    def n(self) -> int:
        """Number of cities."""
        return len(self.neighbours)

    @property
    def k(self) -> int:
        """Neighbours listed for each city, 1 <= k <= n - 1."""
        return self.neighbours.shape[1]

    def distance(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Return the distances from cities i to cities j, in double, with the metric's own rounding."""
        if self.metric == Metric.EXPLICIT:
            return self.matrix[np.asarray(i), np.asarray(j)]
        return distances(self.metric, self.coords, i, j)

    def tour_length(self, tour: ArrayLike) -> float:
        """Return a closed tour's length. Raises ValueError unless it is an (n,) permutation of 0..n-1."""
        row = np.asarray(tour)
        if row.ndim != 1:
            raise ValueError(f"tour must have shape ({self.n},), got {row.shape}")
        return float(tour_lengths(self.metric, self.coords, self.matrix, row[None], self.n, "tour")[0])


def as_instance(problem: Problem, k: int, kind: str = "nearest") -> Instance:
    """Turn a pymoo problem into an `Instance` with `k` neighbours a city (k >= 1; at most n - 1 are listed).

    kind : "nearest"; "quadrant": in the plane some of the nearest in every direction (`candidates.quadrant`), elsewhere
        the nearest; or "alpha": those of least alpha (`candidates.alpha`), for symmetric problems of up to
        `MOST_FOR_ALPHA` cities.

    Taken are `TSP`, pymoo's `TravelingSalesman`, and any single-objective, unconstrained Problem over integer
    permutations (`vtype=int`) that has its distance matrix as attribute `D`. The problem is left as it is.

    Raises TypeError when it is not a pymoo Problem, has no `D` or variables that are not integers, and
    ValueError when objectives, constraints, bounds, `D`, `k` or `kind` do not fit.
    """
    from pymoo_gpuaco.candidates.quadrant import (
        has_quadrants,
        quadrant_lists,
    )  # which compiles, and not all need it

    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise TypeError(f"k must be an int, got {type(k).__name__}")
    checks.choice("kind", kind, ("nearest", "quadrant", "alpha"))
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    if kind == "alpha":
        return _by_alpha(as_instance(problem, k, "quadrant"), int(k))
    if not isinstance(problem, TSP):
        matrix, symmetric, integral = _matrix_of(problem)
    elif problem.coords is not None:
        metric, coords = problem.metric, problem.coords
        k = min(int(k), len(coords) - 1)
        if kind == "quadrant" and has_quadrants(metric, coords):
            neighbours, near = quadrant_lists(metric, coords, k)
        else:
            kind = "nearest"
            neighbours, near = nearest_by_coordinates(metric, coords, k)
        empty = np.zeros((0, 0))
        return Instance(
            int(metric), coords, empty, neighbours, near, problem.symmetric, problem.integral, kind
        )
    else:
        assert problem.matrix is not None
        matrix, symmetric, integral = problem.matrix, problem.symmetric, problem.integral
    neighbours, near = nearest_by_matrix(matrix, min(int(k), len(matrix) - 1))
    return Instance(int(Metric.EXPLICIT), np.zeros((0, 3)), matrix, neighbours, near, symmetric, integral)


def check_alpha(symmetric: bool, n: int) -> None:
    """Raise ValueError where candidates by alpha-nearness have no meaning or would take too long to find."""
    if not symmetric:
        raise ValueError(
            "candidates='alpha' comes from spanning trees, which know no direction, and needs a symmetric instance; "
            "candidates='nearest' does not"
        )
    if n > MOST_FOR_ALPHA:
        raise ValueError(
            f"candidates='alpha' must be found by some dozen spanning trees, for at most {MOST_FOR_ALPHA} cities, "
            f"got {n}; candidates='quadrant' has no limit"
        )


def _by_alpha(instance: Instance, k: int) -> Instance:
    """The same with lists of least alpha."""
    from pymoo_gpuaco.candidates.lists import lists

    check_alpha(instance.symmetric, instance.n)
    ids, near = lists(instance, "alpha", k)
    return replace(instance, neighbours=ids, neighbour_distances=near, listed="alpha")


def _matrix_of(problem: Any) -> tuple[NDArray[np.float64], bool, bool]:
    """Check a foreign problem; return its distance matrix (a copy), whether symmetric, whether integral."""
    what = type(problem).__name__
    needs = (
        "needed is a TSP, pymoo's TravelingSalesman, or a Problem with one objective, no constraints, "
        "vtype=int and the distance matrix as attribute D"
    )
    if not isinstance(problem, Problem):
        raise TypeError(f"{what} is not a pymoo Problem; {needs}")
    if problem.n_obj != 1:
        raise ValueError(f"{what} has {problem.n_obj} objectives; {needs}")
    if problem.n_ieq_constr or problem.n_eq_constr:
        raise ValueError(f"{what} has {problem.n_ieq_constr + problem.n_eq_constr} constraints; {needs}")
    vtype = problem.vtype
    if not isinstance(vtype, type) or not issubclass(vtype, (int, np.integer)) or vtype is bool:
        name = vtype.__name__ if isinstance(vtype, type) else repr(vtype)
        raise TypeError(f"{what} has variables of vtype {name}, not int; {needs}")
    D = getattr(problem, "D", None)
    if D is None:
        raise TypeError(f"{what} has no distance matrix D; {needs}")
    matrix, symmetric, integral = prepare_matrix(D, f"D of {what}")
    n = len(matrix)
    if problem.n_var != n:
        raise ValueError(f"D of {what} is {n} x {n}, but the problem has {problem.n_var} variables")
    # TravelingSalesman itself says xu = n.
    if problem.has_bounds() and not (np.all(problem.xl == 0) and np.all(np.isin(problem.xu, (n - 1, n)))):
        raise ValueError(
            f"{what} must have bounds xl=0 and xu={n - 1}: its tours are permutations of 0..{n - 1}"
        )
    return matrix, symmetric, integral


def nearest_by_coordinates(
    metric: Metric, coords: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (n, k) neighbour ids and distances through a k-d tree, in O(n k) memory."""
    if metric == Metric.GEO:
        # Straight-line distance on the unit sphere grows with the distance along it.
        lat, lon = coords[:, 0], coords[:, 1]
        points = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    else:
        points = coords if coords[:, 2].any() else coords[:, :2]
    n = len(coords)
    if n >= _LARGE and points.shape[1] == 2:
        # Imported here: compiling is not worth it for fewer cities.
        from pymoo_gpuaco.candidates.quadrant import nearest_in_the_plane

        return nearest_in_the_plane(metric, coords, k, min(n - 1, k + _SPARE))
    norm = {Metric.MAN: 1.0, Metric.MAX: np.inf}.get(metric, 2.0)
    tree = cKDTree(points)
    asked = min(n, k + 1 + _SPARE)
    neighbours = np.empty((n, k), dtype=np.int32)
    near = np.empty((n, k))
    rows = max(1, _BLOCK_ENTRIES // asked)
    for start in range(0, n, rows):
        city = np.arange(start, min(n, start + rows))[:, None]
        found = tree.query(points[city[:, 0]], k=asked, p=norm)[1]
        length = distances(metric, coords, city, found)
        # The city itself goes last. Where many share its place it may not be among those found at all.
        length[found == city] = np.inf
        order = np.lexsort((found, length), axis=-1)[:, :k]
        neighbours[start : start + rows] = np.take_along_axis(found, order, axis=1)
        near[start : start + rows] = np.take_along_axis(length, order, axis=1)
    return neighbours, near


def nearest_by_matrix(matrix: NDArray[np.float64], k: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (n, k) neighbour ids and distances, row = from, ties to the lowest id; O(n k) memory."""
    n = len(matrix)
    neighbours = np.empty((n, k), dtype=np.int32)
    near = np.empty((n, k))
    for city in range(n):
        row = matrix[city].copy()
        row[city] = np.inf
        # All that tie with the k-th, so that the stable sort can prefer the lowest ids.
        candidates = np.flatnonzero(row <= np.partition(row, k - 1)[k - 1])
        chosen = candidates[np.argsort(row[candidates], kind="stable")[:k]]
        neighbours[city], near[city] = chosen, row[chosen]
    return neighbours, near
