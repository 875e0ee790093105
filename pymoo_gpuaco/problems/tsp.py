"""The travelling salesman problem, and paths instead of round trips, as vectorised pymoo Problems."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.cells import axis_of, by_its_labels, check_ids, check_names, find_city
from pymoo_gpuaco.problems.constraints import NO_EDGES, TourConstraints, check_edges, each_once
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.matrix import MAX_WEIGHT, blocks, prepare_matrix
from pymoo_gpuaco.problems.metrics import (
    MAX_COORDINATE,
    METRICS,
    MOST_TABULATED,
    Metric,
    are_places_on_the_globe,
    check_coords,
    name_of,
    on_the_globe,
    prepare_coordinates,
    warn_of_no_rounding,
    warn_of_rounding,
)

if TYPE_CHECKING:
    from pymoo_gpuaco.solving import Solution

__all__ = ["TSP", "CitiesProblem", "OpenPath", "constrained"]

_OF_COORDS = {
    "positions": "coords are plotted where they are",
    "symmetric": "distances of coords are symmetric",
}


class CitiesProblem(checks.KnownKeywords, Problem):
    """A problem over permutations of n cities. Copies share its arrays: pymoo makes many."""

    def __init__(self, n: int, **given: Any) -> None:
        super().__init__(n_var=n, xl=0, xu=n - 1, vtype=int, exclude_from_serialization=["_D"], **given)
        self._D: NDArray[np.float64] | None = None  # computed at the first use

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        arrays = {key: own for key, own in self.__dict__.items() if isinstance(own, np.ndarray)}
        memo |= {id(own): own for key, own in arrays.items() if key not in ("xl", "xu")}
        new = self.__class__.__new__(self.__class__)
        memo[id(self)] = new
        for key, value in self.__dict__.items():
            new.__dict__[key] = copy.deepcopy(value, memo)
        return new


class TSP(CitiesProblem):
    """A travelling salesman problem: find the permutation of cities whose closed tour is shortest.

    Takes either `coords` (with a `metric`) or `matrix`. Coordinates need no n x n array, unless a caller reads `D`.

    Parameters
    ----------
    coords : (n, 2) or (n, 3) array of finite numbers, at most 1e15 in magnitude; n >= 1. With "EXACT" they differ by
        1e-140 at least or not at all.
    metric : a TSPLIB name ("EUC_2D", "EUC_3D", "CEIL_2D", "ATT", "GEO", "MAN_2D", "MAN_3D", "MAX_2D",
        "MAX_3D"), "EXACT" for the Euclidean distance without rounding, "MANHATTAN", "CHEBYSHEV" and Concorde's "GEOM"
        for matrices of up to 20,000 cities, "HAVERSINE" for kilometres over the globe
        between places of (latitude, longitude) in decimal degrees, or a `Metric`. None (default) is "EXACT". With
        `matrix` it says what `positions` are: "HAVERSINE" latitude and longitude, "EXACT" places in a plane.
    matrix : (n, n) array, 0 <= entry <= 1e30, or inf for an edge that no tour may use; row = from, column = to. It
        may be asymmetric. Whole numbers beyond 2^53 that a double cannot represent raise an error, except one that
        marks missing edges. The diagonal is ignored. The array is copied. Columns of a DataFrame with labels of rows
        and columns are put in the order of its rows.
    best_known : length of the best known tour (>= 0), for gaps and pymoo's `pareto_front`. Default: the length of
        `optimal_tour`, if any.
    name : a title for plots and messages, such as "pcb442"; stored as `label`, because `name` is a method of
        pymoo's Problem.
    optimal_tour : (n,) permutation of 0..n-1.
    positions : (n, 2) places of the cities of a `matrix`, for pictures and maps: x and y, or latitude and longitude
        if `metric` says so, a DataFrame has such titles, or the numbers have their range and up to 8 decimals.
    names : n names of the cities, of any kind.
    ids : ids of the n cities in files and on the command line, all different; default 1 to n.
    symmetric : for a `matrix` with distances on one side of the diagonal and zeros on the other: True mirrors it, False
        takes the zeros as distances, and None (default) raises an error. True also requires a symmetric matrix.
    fixed_edges : (e, 2) cities, edges that every tour must have; of an asymmetric matrix from the first city to the
        second. At most two at a city, and no cycles; duplicates count once. Integers are positions, from 0, and texts
        are names or ids.
    forbidden_edges : (e, 2) cities, edges that no tour may have, in the same way. Coordinates of up to 20,000 cities
        become a matrix for them.
    precedence : (p, 2) cities, in the same way: the first of each pair comes before the second, counted from
        `start`. Up to 5,000 cities. Pairs that form a cycle raise ValueError.
    start : city that written tours begin with. None: any; with `precedence` city 0.

    With fixed or forbidden edges or precedence the problem has one constraint in pymoo's sense: G is the number of
    fixed edges that a tour lacks, of forbidden ones that it has and of pairs that it visits in the wrong order, and F
    the length of its edges that are not forbidden.

    Attributes
    ----------
    n_cities : number of cities, n.
    metric : the `Metric`; `EXPLICIT` with a matrix.
    metric_name : its name, such as "EUC_2D"; "EXPLICIT" with a matrix.
    coords : (n, 3) float64 as `prepare_coordinates` returns it (GEO: radians; HAVERSINE: places on the sphere in
        kilometres), or None.
    positions : (n, 2) float64, the first two columns of the coordinates as given (GEO and HAVERSINE: latitude and
        longitude), or the given positions of a matrix, or None.
    position_metric : name of the metric of the positions; on the globe "HAVERSINE", "GEO" or "GEOM".
    matrix : (n, n) float64 with a zero diagonal, or None.
    symmetric : whether d(i, j) = d(j, i) for all cities.
    integral : whether every distance is known to be a whole number.
    best_known, optimal_tour : as above, or None.
    names : (n,) array of objects, so that `problem.names[tour]` are the names in the order of a tour; or None.
    ids : (n,) array of objects, the ids given or those of the file that the cities were read from; None: 1 to n.
    read_as : the roles of the columns of the file or table that the cities were read from, in words; else "".
    home : the city that written tours begin with, which is the given `start`, or None.
    label : the `name` given, or None.
    fixed_edges : (e, 2) int64 as above, each once, (0, 2) if there are none.
    n_forbidden : number of forbidden edges; of an asymmetric matrix each direction counts.
    precedence : (p, 2) int64 as above, each once, (0, 2) if there is none.
    constraints : `TourConstraints`, or None.

    Raises TypeError or ValueError that names the parameter for input outside these ranges. Warns (UserWarning) in four
    cases:

    * A rounding metric makes short distances equal, as in a unit square, without `best_known` or `optimal_tour`.
    * Whole coordinates have an `optimal_tour` or a whole `best_known` but no `metric`.
    * Coordinates without a metric look like degrees.
    * The largest entry of a matrix looks like a mark for missing edges: it is repeated and 1,000 times any other one,
      or it is `sys.maxsize`, 1e9 or 1e15, for example.
    """

    names: NDArray[np.object_] | Any = None  # Any: callers that read names usually know that they exist
    ids: NDArray[np.object_] | None = None
    read_as = ""
    metric_name = (
        "EXPLICIT"  # a str: pymoo's get_params walks attributes without end when it meets an Enum member
    )
    position_metric = "EXACT"
    home: int | None = None
    fixed_edges: NDArray[np.int64] = NO_EDGES
    precedence: NDArray[np.int64] = NO_EDGES
    n_forbidden = 0
    closed = True
    start: int | None = None
    end: int | None = None

    if TYPE_CHECKING:  # result of `solve`, by which type checkers choose its overload

        def _solved_as(self) -> Solution: ...

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
        ids: Sequence[Any] | None = None,
        symmetric: bool | None = None,
        fixed_edges: ArrayLike | None = None,
        forbidden_edges: ArrayLike | None = None,
        precedence: ArrayLike | None = None,
        start: int | str | None = None,
    ) -> None:
        if (coords is None) == (matrix is None):
            raise ValueError("give exactly one of coords and matrix")
        self.coords: NDArray[np.float64] | None = None
        self.matrix: NDArray[np.float64] | None = None
        self.positions: NDArray[np.float64] | None = None
        if matrix is not None:
            n = self._take_matrix(matrix, positions, metric, symmetric)
        else:
            for what, given in (("positions", positions), ("symmetric", symmetric)):
                if given is not None:
                    raise ValueError(f"{what} goes with matrix only: {_OF_COORDS[what]}")
            n = self._take_coords(coords, metric, is_known=best_known is not None or optimal_tour is not None)
        if n < 1:
            raise ValueError("a TSP needs at least 1 city, got 0")
        self.n_cities = n
        self.names = None if names is None else check_names(names, n)
        self.ids = None if ids is None else check_ids(ids, n)
        super().__init__(n, n_obj=1)
        self.label = name
        self._constrain(fixed_edges, forbidden_edges, precedence, start)
        self._take_best(best_known, optimal_tour)
        if self.coords is not None and metric is None and self.best_known is not None:
            warn_of_no_rounding(self.coords, best_known)

    def _take_matrix(
        self, matrix: Any, positions: Any, metric: str | Metric | None, symmetric: bool | None
    ) -> int:
        """Store checked distances and positions; return the number of cities."""
        self.matrix, self.symmetric, self.integral = prepare_matrix(
            by_its_labels(matrix), "matrix", forbidden=True, symmetric=symmetric
        )
        n = len(self.matrix)
        if metric == "EXPLICIT":  # of a file
            metric = None if positions is None else "EXACT"
        if positions is None:
            if metric is not None:
                raise ValueError(
                    f"metric={metric!r} has no effect on a matrix without positions: leave it out"
                )
            return n
        axes = [axis_of(title) for title in getattr(positions, "columns", ())]
        places = checks.finite("positions", positions).astype(np.float64)
        if places.shape != (n, 2):
            raise ValueError(f"positions must have shape ({n}, 2), got {places.shape}")
        self.positions = places[:, ::-1] if axes == ["lon", "lat"] else places
        if metric is not None:
            self.position_metric = name_of(metric, places.shape)
        elif "lat" in axes or are_places_on_the_globe(self.positions):
            self.position_metric = "HAVERSINE"
        if on_the_globe(self.position_metric):
            prepare_coordinates(Metric.HAVERSINE, self.positions)  # checks their range
        return n

    def _take_coords(self, coords: Any, metric: str | Metric | None, is_known: bool) -> int:
        """Store checked coordinates, or their matrix; warn of rounding unless the best length ``is_known``."""
        self.metric_name, array = check_coords(coords, metric)
        if self.metric == Metric.EXPLICIT:
            self.matrix = array
        else:
            self.coords = array
            if not is_known:
                warn_of_rounding(self.metric, array)
        self.positions = np.asarray(coords)[:, :2].astype(np.float64)
        self.position_metric = self.metric_name
        self.symmetric, self.integral = True, METRICS[self.metric_name].integral
        return len(array)

    def _take_best(self, best_known: float | None, optimal_tour: Any) -> None:
        self.optimal_tour: NDArray[np.int64] | None = None
        if optimal_tour is not None:
            tour, n = np.asarray(optimal_tour), self.n_cities
            if tour.ndim != 1:
                raise ValueError(f"optimal_tour must have shape ({n},), got {tour.shape}")
            self.optimal_tour = checks.permutations("optimal_tour", tour[None], n)[0].copy()
        self.best_known = None if best_known is None else checks.real("best_known", best_known, 0.0)
        if self.best_known is None and self.optimal_tour is not None:
            self.best_known = self.tour_length(self.optimal_tour)

    def __repr__(self) -> str:
        """Describe the problem in words: name, cities, how distances are computed, constraints, best known length."""
        known = "" if self.best_known is None else f", best known {self.best_known:.10g}"
        label = "" if self.label is None else f" {self.label}"
        words = self.distances_in_words + self.constraints_in_words()
        return f"{type(self).__name__}{label}: {self.n_cities} cities, {words}{known}"

    __str__ = __repr__

    def city(self, given: Any, what: str = "city") -> int:
        """Return the position, from 0, of a city given by its name or id (text) or by its position (integer).

        Raises ValueError, naming the parameter ``what``, if no city or several match.
        """
        return find_city(given, self.n_cities, self.names, self.ids, what)

    def edges(self, what: str, edges: Any) -> NDArray[np.int64]:
        """Return edges (e, 2) as positions; `city` looks up texts. Raises TypeError or ValueError."""
        if isinstance(edges, (list, tuple)) and any(
            isinstance(c, str) for edge in edges for c in np.ravel(edge)
        ):
            edges = [[self.city(city, what) for city in edge] for edge in edges]
        return check_edges(what, edges, self.n_cities, () if self.ids is None else self.ids)

    def _constrain(
        self, fixed_edges: Any, forbidden_edges: Any, precedence: Any, start: Any, end: Any = None
    ) -> None:
        """Add edges and pairs to the existing ones, and set the ends. Raises as `TSP` does."""
        self._forbid(self.edges("forbidden_edges", forbidden_edges))
        fixed = np.concatenate([self.fixed_edges, self.edges("fixed_edges", fixed_edges)])
        self.fixed_edges = each_once(fixed, directed=not self.symmetric)
        pairs = np.concatenate([self.precedence, self.edges("precedence", precedence)])
        self.precedence = each_once(pairs, directed=True)
        begin, last = (
            None if city is None else self.city(city, what) for city, what in ((start, "start"), (end, "end"))
        )
        if not self.closed:
            self.start, self.end = begin, last
            if begin is not None and begin == last:
                raise ValueError(
                    f"end must be another city than start, got {end} for both; a round trip is a TSP"
                )
        elif begin is not None or (self.home is None and len(pairs)):
            self.home = begin or 0
        self.n_ieq_constr = int(self.constraints is not None)
        self._check_constraints()

    def _check_constraints(self) -> None:
        """Raise ValueError if no tour can satisfy the constraints."""
        if self.constraints is not None:
            self.constraints.check(self.n_cities)
            forbidden = np.isinf(self.instance.distance(*self.fixed_edges.T))
            for i, j in self.fixed_edges[forbidden][:1].tolist():
                raise ValueError(f"fixed_edges: ({i}, {j}) is a forbidden edge too")

    def _forbid(self, edges: NDArray[np.int64]) -> None:
        """Make the distances of edges (e, 2) infinite."""
        if len(edges):
            n = self.n_cities
            if self.coords is not None and n > MOST_TABULATED:
                raise ValueError(
                    f"forbidden_edges of coordinates need a matrix: {MOST_TABULATED} cities at most, got {n}"
                )
            full = np.empty((n, n))  # the arrays may belong to another problem too
            self.instance.write_distances(full)
            if self.coords is not None:
                self.metric_name = "EXPLICIT"
            self.matrix, self.coords = full, None
            self.matrix[edges[:, 0], edges[:, 1]] = np.inf
            if self.symmetric:
                self.matrix[edges[:, 1], edges[:, 0]] = np.inf
        if self.matrix is not None:
            self.n_forbidden = int(np.isinf(self.matrix).sum()) // (2 if self.symmetric else 1)

    @property
    def constraints(self) -> TourConstraints | None:
        """Constraints of a tour besides visiting every city once, or None."""
        if self.closed and not self.n_forbidden and not len(self.fixed_edges) and not len(self.precedence):
            return None
        return TourConstraints(
            self.fixed_edges,
            not self.symmetric,
            self.closed,
            self.start,
            self.end,
            self.precedence,
            self.home or 0,
        )

    @property
    def instance(self) -> Instance:
        """The problem as arrays for engines."""
        coords = np.zeros((0, 3)) if self.coords is None else self.coords
        matrix = np.zeros((0, 0)) if self.matrix is None else self.matrix
        known = self.symmetric, self.integral
        return Instance(int(self.metric), coords, matrix, *known, constraints=self.constraints)

    @property
    def metric(self) -> Metric:
        """Metric of the distances."""
        return METRICS[self.metric_name].code if self.metric_name in METRICS else Metric.EXPLICIT

    @property
    def distances_in_words(self) -> str:
        """Return the metric in words, such as "Euclidean distances, rounded (EUC_2D)"."""
        if self.metric_name in METRICS:
            return f"{METRICS[self.metric_name].words} ({self.metric_name})"
        return f"distances from {'a' if self.symmetric else 'an asymmetric'} matrix"

    def constraints_in_words(self, named: Callable[[int], Any] = int) -> str:
        """Describe the constraints, such as ", 2 fixed edges, from 0"; ``named`` returns the name of an end."""
        words = [] if self.constraints is None else self.constraints.in_words(self.n_forbidden, named)
        words += [] if self.home is None else [f"from {named(self.home)} and back"]
        return "".join(f", {word}" for word in words)

    def from_home(self, tour: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rotate a round trip (n,) to begin at `home`, if there is one.

        Where the direction is free, the chain of fixed edges at home comes first; without one, most fixed edges are
        passed from their first city to their second.
        """
        if self.home is None:
            return tour
        tour = np.roll(tour, -int(np.argmax(tour == self.home)))
        if not self.symmetric or len(self.precedence) or not len(self.fixed_edges):
            return tour
        n, place = self.n_cities, np.argsort(tour)
        first, second = self.fixed_edges.T
        step = (place[second] - place[first]) % n
        forward = (step == 1).astype(int) - (step == n - 1)
        weight = np.where(first == self.home, n * n, np.where(second == self.home, -n, 1))
        return np.roll(tour[::-1], 1) if (weight * forward).sum() < 0 else tour

    @property
    def cities(self) -> NDArray[np.float64]:
        """Return (n, 2) positions to plot, as in pymoo's TravelingSalesman: on the globe longitude and latitude.

        Raises ValueError for a problem without positions.
        """
        if self.positions is None:
            raise ValueError(
                "the problem was made from a distance matrix and has no positions of its cities to draw"
            )
        return self.positions[:, ::-1] if on_the_globe(self.position_metric) else self.positions

    @property
    def D(self) -> NDArray[np.float64]:
        """The (n, n) float64 distance matrix, as in pymoo's TravelingSalesman: 8 n^2 bytes, computed once."""
        if self.matrix is not None:
            return self.matrix
        if self._D is None:
            full = np.empty((self.n_cities, self.n_cities))
            self.instance.write_distances(full)
            self._D = full
        return self._D

    def tour_length(self, tour: ArrayLike) -> float:
        """Return the length of a tour, or of a path for an `OpenPath`.

        Raises ValueError unless it is an (n,) permutation of 0..n-1, TypeError for a file or a result that holds one.
        """
        return self.instance.tour_length(checks.tours_given("tour", tour))

    def tour_lengths(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Return the (m,) lengths of an (m, n) array of tours, or of paths for an `OpenPath`.

        Raises ValueError if a row is not a permutation of 0..n-1. Memory for temporaries is bounded for any number of
        tours.
        """
        return self.instance.tour_lengths(np.asarray(tours))

    def _evaluate(self, x: NDArray[Any], out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out["F"] = self.instance.tour_lengths(np.asarray(x), "X")[:, None]
        if self.n_ieq_constr:
            out["G"] = self.violations(x)[:, None]

    def violations(self, tours: ArrayLike) -> NDArray[np.int64]:
        """Return the number of violations (m,) of tours (m, n): of fixed and forbidden edges, ends and precedence.

        It is the constraint G of the problem, and 0 without constraints. Raises ValueError as `tour_lengths`.
        """
        return self.instance.violations(checks.permutations("tours", tours, self.n_cities))

    def _calc_pareto_front(self, *args: Any, **kwargs: Any) -> NDArray[np.float64] | None:
        return None if self.best_known is None else np.array([[self.best_known]])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state of ``__getstate__``. Raises ValueError for arrays that compiled code could not read."""
        n, row = state["n_cities"], METRICS.get(state.get("metric_name", ""))
        explicit = row is None or row.code == Metric.EXPLICIT
        name, shape, largest = (
            ("matrix", (n, n), MAX_WEIGHT) if explicit else ("coords", (n, 3), MAX_COORDINATE)
        )
        array = state[name]
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != np.float64:
            raise ValueError(f"{name} of this TSP must be a float64 array for {n!r:.50} cities")
        allowed = np.abs(array) <= largest
        if explicit:
            allowed = (allowed | np.isinf(array)) & (array >= 0.0)
        if not np.all(allowed):
            raise ValueError(f"{name} of this TSP has values out of range")
        self.__dict__.update(state)
        self._check_stored(array if explicit else array[:0])

    def _check_stored(self, matrix: NDArray[np.float64]) -> None:
        """Raise ValueError or TypeError for other attributes of a state that searches could not use.

        ``matrix`` is that of the state, without rows for a problem of coordinates.
        """
        n, explicit = self.n_cities, len(matrix) > 0
        symmetric, integral, forbidden = True, explicit or METRICS[self.metric_name].integral, 0
        for rows in blocks(n) if explicit else ():
            block, turned = matrix[rows], matrix[:, rows].T
            symmetric = symmetric and np.array_equal(block, turned)
            integral = integral and bool(np.all(block == np.floor(block)))
            forbidden += int(np.isinf(block).sum())
        for name, possible in (("symmetric", symmetric), ("integral", integral)):
            if checks.flag(name, getattr(self, name)) and not possible:
                raise ValueError(f"{name} of this TSP must be False for its distances, got True")
        forbidden //= 2 if self.symmetric else 1
        unused = "coords" if explicit else "matrix"
        known: dict[str, Any] = {"n_var": n, "n_obj": 1, "n_forbidden": forbidden, unused: None}
        for name, expected in known.items():
            value = getattr(self, name)
            if type(value) is not type(expected) or value != expected:
                raise ValueError(f"{name} of this TSP must be {expected}, got {value!r:.50}")
        checks.choice("position_metric", self.position_metric, tuple(METRICS))
        self.fixed_edges = check_edges("fixed_edges", self.fixed_edges, n)
        self.precedence = check_edges("precedence", self.precedence, n)
        for name in ("home", "start", "end"):
            checks.optional_integer(name, getattr(self, name), 0, n - 1)
        if self.optimal_tour is not None:
            checks.permutations("optimal_tour", np.atleast_2d(self.optimal_tour), n)
        self._check_constraints()


class OpenPath(TSP):
    """The shortest path that visits every city once and does not return.

    A solution is the path itself: X is a permutation of the n cities, X[0] the first and X[-1] the last one, and F its
    length. If `start` or `end` is given, a path with another one violates the constraint G, see `TSP`.

    Parameters
    ----------
    coords : (n, 2) or (n, 3) coordinates as `TSP` takes them, n >= 3; or a `TSP` with its cities, distances, names and
        edges. From coordinates no matrix is made.
    metric : as `TSP` takes it, for coordinates.
    matrix : (n, n) distances as `TSP` takes them, row = from.
    start : city to begin at, a position in [0, n - 1] or the text of a name or id, or None: any city.
    end : city to end at, likewise; not the start.
    fixed_edges, forbidden_edges, precedence : as `TSP` takes them, besides those of a given `TSP`; precedence counts
        along the path.
    others : keyword arguments of `TSP`, such as `name` or `names`; not with a given `TSP`.

    Raises ValueError or TypeError as `TSP` does, and for a `start` or `end` that is no city.
    """

    closed = False

    def __init__(
        self,
        coords: ArrayLike | TSP | None = None,
        metric: str | Metric | None = None,
        *,
        matrix: ArrayLike | None = None,
        start: int | str | None = None,
        end: int | str | None = None,
        fixed_edges: ArrayLike | None = None,
        forbidden_edges: ArrayLike | None = None,
        precedence: ArrayLike | None = None,
        **others: Any,
    ) -> None:
        self._refuse_unknown(others, checks.parameters(OpenPath.__init__) + checks.parameters(TSP.__init__))
        if isinstance(coords, TSP):
            for what, given in {"metric": metric, "matrix": matrix, **others}.items():
                if given is not None:
                    raise ValueError(f"a TSP has its {what}: leave it out")
            self.__dict__.update(coords.__dict__)
            self.best_known = self.optimal_tour = self.home = None
        else:
            super().__init__(coords, metric, matrix=matrix, **others)
        self._constrain(fixed_edges, forbidden_edges, precedence, start, end)

    @property
    def distances_in_words(self) -> str:
        """Description of the distances and of the path."""
        return f"{super().distances_in_words}, along a path (one-way, no return)"


def constrained(
    problem: TSP,
    start: int | str | None = None,
    end: int | str | None = None,
    fixed_edges: Any = None,
    forbidden_edges: Any = None,
    one_way: bool = False,
    precedence: Any = None,
) -> TSP:
    """Return a problem with additional ends and edges; an equal start and end make a round trip from that city.

    Cities are positions, or names or ids as text. Raises ValueError or TypeError as `TSP` and `OpenPath` do.
    """
    begin = problem.start if start is None else problem.city(start, "start")
    last = problem.end if end is None else problem.city(end, "end")
    edges = {"fixed_edges": fixed_edges, "forbidden_edges": forbidden_edges, "precedence": precedence}
    has_edges = any(given is not None for given in edges.values())
    is_round_trip = begin is not None and begin == last and problem.closed and not one_way
    if not is_round_trip and (one_way or not problem.closed or begin is not None or last is not None):
        return OpenPath(problem, start=begin, end=last, **edges)
    if is_round_trip or has_edges:
        problem = copy.copy(problem)
        if has_edges:
            problem.best_known = problem.optimal_tour = None
        problem._constrain(**edges, start=begin if is_round_trip else None)
    return problem


def with_missing(problem: TSP, tour: NDArray[np.int64]) -> NDArray[np.int64]:
    """Insert the cities that a tour (m,), m >= 1, of the problem lacks, each at its cheapest place; return (n,)."""
    distance = problem.instance.distance
    for city in np.setdiff1d(np.arange(problem.n_cities), tour):
        i, j, new = tour, np.roll(tour, -1), np.full(len(tour), city)
        to, onward, replaced = distance(i, new), distance(new, j), distance(i, j)
        if not problem.closed:  # no edge leads from the last city to the first
            onward[-1] = replaced[-1] = np.inf if tour[-1] == problem.end else 0.0
        with np.errstate(invalid="ignore"):
            cost = np.nan_to_num(to + onward - replaced, nan=np.inf)
        place, first = int(cost.argmin()) + 1, float(distance(new[:1], tour[:1])[0])
        if not problem.closed and tour[0] != problem.start and first < cost[place - 1]:
            place = 0
        tour = np.insert(tour, place, city)
    return tour
