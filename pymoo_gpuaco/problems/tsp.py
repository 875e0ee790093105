"""The travelling salesman problem as a vectorised pymoo Problem."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.advice import hint_at_matrix, warn_of_no_rounding, warn_of_rounding
from pymoo_gpuaco.problems.metrics import (
    MAX_COORDINATE,
    METRIC_WORDS,
    Metric,
    distances,
    metric_name,
    prepare_coordinates,
    resolve_metric,
)

__all__ = ["TSP", "edge_lengths", "prepare_matrix", "tour_lengths"]

MAX_WEIGHT = 1e30
"""Largest entry of a distance matrix: a tour of such edges still fits a 32-bit float on the device."""

LEAST_EXTENT = 1e-140
"""Least extent of coordinates that are not all the same, for `EXACT`, so that their distances can be told apart."""

ADDED_AT_ONCE = 512
"""Edges of a tour whose lengths are added up before they join the sum."""

# Edges looked at together when lengths are computed: keeps the temporaries at some tens of megabytes.
_CHUNK_EDGES = 1 << 19


class TSP(Problem):
    """A travelling salesman problem: find the permutation of cities whose closed tour is shortest.

    Give either `coords` (with a `metric`) or `matrix`. With coordinates no n x n array is ever made, unless
    somebody asks for `D`.

    Parameters
    ----------
    coords : (n, 2) or (n, 3) array of finite numbers, at most 1e15 in magnitude; n >= 3. With "EXACT" they differ by
        1e-140 at least or not at all.
    metric : a TSPLIB name ("EUC_2D", "EUC_3D", "CEIL_2D", "ATT", "GEO", "MAN_2D", "MAN_3D", "MAX_2D",
        "MAX_3D"), "EXACT" for the Euclidean distance without rounding, "HAVERSINE" for kilometres over the globe
        between places of (latitude, longitude) in decimal degrees, or a `Metric`. None (default) is "EXACT". Unused
        with `matrix`.
    matrix : (n, n) array, finite, 0 <= entry <= 1e30; row = from, column = to. It may be asymmetric. Its
        diagonal is ignored. The array is copied.
    best_known : length of the best known tour (>= 0), for gaps and pymoo's `pareto_front`. Left out, it is
        the length of `optimal_tour`, where that is given.
    name : a title for plots and messages, such as "pcb442"; kept as `label`, since `name` is a method of
        pymoo's Problem.
    optimal_tour : (n,) permutation of 0..n-1.
    positions : (n, 2) array to plot the cities of a `matrix` at.
    names : n names of the cities, of any kind.

    Attributes
    ----------
    n_cities : number of cities, n.
    metric : the `Metric`; `EXPLICIT` with a matrix.
    coords : (n, 3) float64 as `prepare_coordinates` returns it (GEO: radians; HAVERSINE: places on the sphere in
        kilometres), or None.
    positions : (n, 2) float64, the first two columns of the coordinates as given (GEO and HAVERSINE: latitude and
        longitude), or None.
    matrix : (n, n) float64 with a zero diagonal, or None.
    symmetric : whether d(i, j) = d(j, i) for all cities.
    integral : whether every distance is known to be a whole number.
    best_known, optimal_tour : as above, or None.
    names : (n,) array of objects, so that `problem.names[tour]` are the names in the order of a tour; or None.
    label : the `name` given, or None.

    Raises TypeError or ValueError, naming the parameter, for input outside these ranges. Warns (UserWarning) where a
    rounded metric is chosen for coordinates with fractions whose cities are so close that rounding blurs the
    distances, unless `best_known` or `optimal_tour` shows that the instance is meant so; and where whole coordinates
    come with an `optimal_tour` or a whole `best_known` and no `metric`, since the lengths that are published of such
    instances are mostly those of TSPLIB's rounded distances.
    """

    names: NDArray[np.object_] | None = None  # also of problems that were saved before there were names

    def __init__(
        self,
        coords: ArrayLike | None = None,
        metric: str | Metric | None = None,
        *,
        matrix: ArrayLike | None = None,
        best_known: float | None = None,
        name: str | None = None,
        optimal_tour: ArrayLike | None = None,
        positions: ArrayLike | None = None,
        names: Sequence[Any] | None = None,
    ) -> None:
        if (coords is None) == (matrix is None):
            raise ValueError("give exactly one of coords and matrix")
        self.coords: NDArray[np.float64] | None = None
        self.matrix: NDArray[np.float64] | None = None
        self.positions: NDArray[np.float64] | None = None
        if matrix is not None:
            code = Metric.EXPLICIT
            self.matrix, self.symmetric, self.integral = prepare_matrix(matrix, "matrix")
            n = len(self.matrix)
            if positions is not None:
                self.positions = _check_positions(positions, n)
        else:
            if positions is not None:
                raise ValueError("positions goes with matrix only: coords are plotted where they are")
            assert coords is not None
            raw = np.asarray(coords)
            hint_at_matrix(raw)
            code, allowed = resolve_metric(Metric.EXACT if metric is None else metric)
            self.coords = prepare_coordinates(code, coords)
            extent = (
                float(np.ptp(self.coords, axis=0).max()) if code == Metric.EXACT and len(self.coords) else 1.0
            )
            if 0.0 < extent < LEAST_EXTENT:
                raise ValueError(
                    f"coords must differ by {LEAST_EXTENT:g} at least, or squares of their differences are 0 in "
                    f"double precision; they differ by {extent:g} at most"
                )
            n = len(self.coords)
            if raw.shape[1] not in allowed:
                expected = " or ".join(f"(n, {dim})" for dim in allowed)
                raise ValueError(f"coords must have shape {expected} for metric {metric}, got {raw.shape}")
            if best_known is None and optimal_tour is None:
                warn_of_rounding(code, self.coords)
            self.positions = np.array(raw[:, :2], dtype=np.float64)
            self.symmetric, self.integral = True, code not in (Metric.EXACT, Metric.HAVERSINE)
        if n < 3:
            raise ValueError(f"a TSP needs at least 3 cities, got {n}")

        super().__init__(n_var=n, n_obj=1, xl=0, xu=n - 1, vtype=int)
        self.n_cities = n
        self.label = name
        self.names = None if names is None else _check_names(names, n)
        # A plain int: pymoo's get_params walks attributes without end when it meets an Enum member.
        self._metric = int(code)
        self._D: NDArray[np.float64] | None = None

        self.optimal_tour: NDArray[np.int64] | None = None
        if optimal_tour is not None:
            tour = np.asarray(optimal_tour)
            if tour.ndim != 1:
                raise ValueError(f"optimal_tour must have shape ({n},), got {tour.shape}")
            self.optimal_tour = checks.permutations("optimal_tour", tour[None], n)[0].copy()
        self.best_known = _check_best_known(best_known)
        if self.best_known is None and self.optimal_tour is not None:
            self.best_known = self.tour_length(self.optimal_tour)
        if self.coords is not None and metric is None and self.best_known is not None:
            warn_of_no_rounding(self.coords, best_known)

    def __repr__(self) -> str:
        """What kind of instance it is, in one line."""
        kind = "asymmetric matrix" if not self.symmetric else self.metric_name
        known = "" if self.best_known is None else f", best known {self.best_known:.10g}"
        label = "" if self.label is None else f"{self.label!r}, "
        return f"{type(self).__name__}({label}{self.n_cities} cities, {kind}{known})"

    def __str__(self) -> str:
        """The same in words: name, cities, how distances are computed, best known length."""
        known = "" if self.best_known is None else f", best known {self.best_known:.10g}"
        label = "" if self.label is None else f" {self.label}"
        return f"{type(self).__name__}{label}: {self.n_cities} cities, {self.distances_in_words}{known}"

    @property
    def metric(self) -> Metric:
        """How distances are computed."""
        return Metric(self._metric)

    @property
    def metric_name(self) -> str:
        """The metric's name as `metric` takes it, such as "EUC_2D"; "EXPLICIT" of a matrix."""
        return metric_name(self.metric, 3 if self.coords is not None and self.coords[:, 2].any() else 2)

    @property
    def distances_in_words(self) -> str:
        """How distances are computed, such as "Euclidean distances, rounded (EUC_2D)"."""
        if self.matrix is not None:
            return "distances from a matrix" if self.symmetric else "distances from an asymmetric matrix"
        return f"{METRIC_WORDS[self.metric]} ({self.metric_name})"

    @property
    def cities(self) -> NDArray[np.float64]:
        """Return (n, 2) places to draw at, as pymoo's TravelingSalesman has them: on the globe longitude and latitude.

        Raises ValueError for a problem without positions.
        """
        if self.positions is None:
            raise ValueError(
                "the problem was made from a distance matrix and has no positions of its cities to draw"
            )
        on_the_globe = self.metric in (Metric.GEO, Metric.HAVERSINE)
        return self.positions[:, ::-1] if on_the_globe else self.positions

    def get_route_length(self, x: ArrayLike) -> float:
        """Return a tour's length, by the name that pymoo's TravelingSalesman has for it."""
        return self.tour_length(x)

    @property
    def D(self) -> NDArray[np.float64]:
        """The (n, n) float64 distance matrix, as in pymoo's TravelingSalesman: 8 n^2 bytes, made once."""
        if self.matrix is not None:
            return self.matrix
        if self._D is None:
            n = self.n_cities
            full = np.empty((n, n))
            to = np.arange(n)
            rows = max(1, _CHUNK_EDGES // n)
            for start in range(0, n, rows):
                block = to[start : start + rows, None]
                full[start : start + rows] = edge_lengths(self.metric, self.coords, self.matrix, block, to)
            self._D = full
        return self._D

    def tour_length(self, tour: ArrayLike) -> float:
        """Return a closed tour's length. Raises ValueError unless it is an (n,) permutation of 0..n-1."""
        row = np.asarray(tour)
        if row.ndim != 1:
            raise ValueError(f"tour must have shape ({self.n_cities},), got {row.shape}")
        return float(self._lengths(row[None], "tour")[0])

    def tour_lengths(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Return the (m,) lengths of an (m, n) array of closed tours.

        Raises ValueError when a row is not a permutation of 0..n-1. Memory for temporaries stays bounded,
        however many tours there are.
        """
        return self._lengths(np.asarray(tours), "tours")

    def _lengths(self, tours: NDArray[Any], what: str) -> NDArray[np.float64]:
        return tour_lengths(self.metric, self.coords, self.matrix, tours, self.n_cities, what)

    def _evaluate(self, x: NDArray[Any], out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out["F"] = self._lengths(np.asarray(x), "X")[:, None]

    def _calc_pareto_front(self, *args: Any, **kwargs: Any) -> NDArray[np.float64] | None:
        return None if self.best_known is None else np.array([[self.best_known]])

    def __deepcopy__(self, memo: dict[int, Any]) -> TSP:
        # pymoo copies the problem with the algorithm, each generation under save_history. The arrays never
        # change, so copies share them.
        for array in (self.coords, self.matrix, self.positions, self.optimal_tour, self.names, self._D):
            if array is not None:
                memo[id(array)] = array
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        for key, value in self.__dict__.items():
            new.__dict__[key] = copy.deepcopy(value, memo)
        return new

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state["_D"] = None  # n x n, and made again when asked for
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a state of ``__getstate__``. Raises ValueError for arrays that compiled code could not read."""
        n, explicit = state["n_cities"], state["_metric"] == Metric.EXPLICIT
        name, shape, largest = (
            ("matrix", (n, n), MAX_WEIGHT) if explicit else ("coords", (n, 3), MAX_COORDINATE)
        )
        array = state[name]
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != np.float64:
            raise ValueError(f"the {name} of this TSP are not what its number of cities, {n!r:.50}, needs")
        if not np.all(np.abs(array) <= largest) or (explicit and array.min() < 0.0):
            raise ValueError(f"the {name} of this TSP have values out of range")
        Metric(state["_metric"])
        self.__dict__.update(state)


def prepare_matrix(matrix: ArrayLike, what: str) -> tuple[NDArray[np.float64], bool, bool]:
    """Return a checked (n, n) float64 copy of a distance matrix, and whether it is symmetric and integral.

    The copy's diagonal is 0. Pairs that differ by no more than floating-point noise (1e-12 of the largest
    entry, in a matrix that is not integral) are replaced by their mean.
    Raises TypeError or ValueError naming `what`.
    """
    raw = np.asarray(matrix)
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{what} must be an array of numbers, got dtype {raw.dtype}")
    if raw.ndim != 2 or raw.shape[0] != raw.shape[1]:
        raise ValueError(f"{what} must be square, got shape {raw.shape}")
    if len(raw) < 3:
        raise ValueError(f"{what} must hold at least 3 cities, got {len(raw)}")
    full = np.array(raw, dtype=np.float64, order="C")
    np.fill_diagonal(full, 0.0)
    # Written so that NaN fails too.
    valid = (full >= 0.0) & (full <= MAX_WEIGHT)
    if not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(
            f"{what} must hold finite distances from 0 to {MAX_WEIGHT:g}, got {full[row, column]:g} "
            f"from city {row} to city {column}"
        )
    integral = bool(np.all(full == np.floor(full)))
    symmetric = bool(np.array_equal(full, full.T))
    if not symmetric and not integral and np.abs(full - full.T).max() <= 1e-12 * full.max():
        full = 0.5 * (full + full.T)
        symmetric = True
    return full, symmetric, integral


def edge_lengths(
    metric: int,
    coords: NDArray[np.float64] | None,
    matrix: NDArray[np.float64] | None,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return d(i, j) over index arrays, from the matrix (`EXPLICIT`) or from prepared coordinates."""
    if metric == Metric.EXPLICIT:
        assert matrix is not None
        return matrix[i, j]
    assert coords is not None
    return distances(metric, coords, i, j)


def tour_lengths(
    metric: int,
    coords: NDArray[np.float64] | None,
    matrix: NDArray[np.float64] | None,
    tours: NDArray[Any],
    n: int,
    what: str = "tours",
) -> NDArray[np.float64]:
    """Return the (m,) lengths of (m, n) closed tours, in pieces of bounded memory.

    Raises ValueError naming `what` when a row is not a permutation of 0..n-1.
    """
    if tours.ndim != 2 or tours.shape[1] != n:
        raise ValueError(f"{what} must have shape (m, {n}), got {tours.shape}")
    lengths = np.empty(len(tours))
    rows = max(1, _CHUNK_EDGES // n)
    for start in range(0, len(tours), rows):
        chunk = checks.permutations(what, tours[start : start + rows], n, first_row=start)
        edges = edge_lengths(metric, coords, matrix, chunk, np.roll(chunk, -1, axis=1))
        lengths[start : start + rows] = add_up(edges, chunk)
    return lengths


def add_up(edges: NDArray[np.float64], tours: NDArray[Any]) -> NDArray[np.float64]:
    """Return the (m,) sums of edges (m, n), from each city of tours (m, n) to the next, rounded alike for one cycle.

    From city 0 towards its smaller neighbour, wherever the row begins and whichever way it goes; in blocks, which keeps
    what is rounded off small.
    """
    m, n = tours.shape
    zero = (tours == 0).argmax(axis=1)
    row = np.arange(m)
    backwards = tours[row, zero - 1] < tours[row, (zero + 1) % n]
    steps = np.where(backwards[:, None], -1 - np.arange(n), np.arange(n))
    width = min(n, ADDED_AT_ONCE)
    ordered = np.zeros((m, -(-n // width), width))
    ordered.reshape(m, -1)[:, :n] = np.take_along_axis(edges, (zero[:, None] + steps) % n, axis=1)
    # cumulated, as numpy's sums add in an order of their own
    blocks = np.cumsum(ordered, axis=2)[:, :, -1]
    sums: NDArray[np.float64] = np.cumsum(blocks, axis=1)[:, -1]
    return sums


def _check_names(names: Sequence[Any], n: int) -> NDArray[np.object_]:
    if isinstance(names, str) or not hasattr(names, "__len__"):
        raise TypeError(f"names must be a sequence of {n} names, got {names!r}"[:120])
    if len(names) != n:
        raise ValueError(f"names must be {n}, one a city, got {len(names)}")
    array = np.empty(n, dtype=object)
    for city, name in enumerate(names):  # one by one: names may be tuples
        array[city] = name
    return array


def _check_positions(positions: ArrayLike, n: int) -> NDArray[np.float64]:
    try:
        array = np.array(positions, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"positions must be an array of numbers: {error}") from error
    if array.shape != (n, 2) or not np.isfinite(array).all():
        raise ValueError(f"positions must be finite and of shape ({n}, 2), got shape {array.shape}")
    return array


def _check_best_known(best_known: float | None) -> float | None:
    if best_known is None:
        return None
    try:
        value = float(best_known)
    except (TypeError, ValueError) as error:
        raise TypeError(f"best_known must be a number or None, got {best_known!r}") from error
    if not 0.0 <= value < np.inf:
        raise ValueError(f"best_known must be finite and >= 0, got {best_known!r}")
    return value
