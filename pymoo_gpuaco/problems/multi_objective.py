"""Problems with several objectives, and the front of tours that a search returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.problem import Problem
from pymoo.indicators.hv import HV

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.pymoo_problems import check_size, distances_of
from pymoo_gpuaco.problems.qap import QAP
from pymoo_gpuaco.problems.reading import tsp_of
from pymoo_gpuaco.problems.tsp import TSP, CitiesProblem

MOST_OBJECTIVES = 6
#: reference point of a hypervolume relative to the largest lengths
WORST = 1.01


class MultiObjectiveTSP(CitiesProblem):
    """A travelling salesman problem with several objectives: the same cities with several kinds of distances.

    F is (m, k) for m tours: their lengths by each objective. The solution is the front, the tours that no other tour
    dominates. A tour dominates another one if it is shorter by one objective and longer by none.

    Parameters
    ----------
    problems : the 2 to 6 objectives, for the same n cities in the same order: `TSP`, arrays of coordinates (n, 2) or
        (n, 3) (Euclidean distances, not rounded), matrices (n, n), row = from, or DataFrames and graphs as
        `read_cities` takes them. Each may have any metric.
    names : k different names of the objectives, such as ("kilometres", "tolls"), for plots and messages. None (default)
        takes the problems' own, or "objective 1" and so on.

    Attributes
    ----------
    parts : the k `TSP`, one per objective.
    n_cities : number of cities, n.
    symmetric : whether every objective is symmetric.
    names : (k,) names of the objectives.
    city_names : (n,) names of the cities of the first problem that has any, or None.
    label : names of the problems joined by +, such as "kroA100+kroB100", or None.

    Raises TypeError or ValueError as `TSP` does, and for wrong numbers of objectives or names, paths, and fixed or
    forbidden edges. So it does for objectives whose numbers of cities differ, or whose cities are in different orders.
    """

    if TYPE_CHECKING:  # result of `solve`, by which type checkers choose its overload

        def _solved_as(self) -> Front: ...

    def __init__(self, problems: Sequence[TSP | ArrayLike], names: Sequence[str] | None = None) -> None:
        if isinstance(problems, (str, TSP)) or not hasattr(problems, "__len__"):
            raise TypeError(
                f"problems must be a sequence of 2 to {MOST_OBJECTIVES} problems, got {problems!r:.50}"
            )
        if not 2 <= len(problems) <= MOST_OBJECTIVES:
            raise ValueError(
                f"problems must be 2 to {MOST_OBJECTIVES}, one per objective, got {len(problems)}"
            )
        self.parts: tuple[TSP, ...] = tuple(map(tsp_of, problems))
        self.n_cities: int = self.parts[0].n_cities
        self.check_parts()
        super().__init__(self.n_cities, n_obj=len(self.parts))
        self.symmetric: bool = all(part.symmetric for part in self.parts)
        labels = [part.label for part in self.parts]
        self.names: tuple[str, ...] = _objective_names(names, labels)
        self.label: str | None = None if None in labels else "+".join(map(str, labels))
        self.city_names: NDArray[np.object_] | None = next(
            (part.names for part in self.parts if part.names is not None), None
        )

    def check_parts(self) -> None:
        """Raise ValueError unless all objectives are round trips through the same cities without constraints."""
        if self.n_cities < 2:
            raise ValueError("problems must have at least 2 cities, got 1")
        if any(part.n_cities != self.n_cities for part in self.parts):
            sizes = ", ".join(f"{part.label or 'one'} with {part.n_cities}" for part in self.parts)
            raise ValueError(f"problems must have the same cities, got {sizes}")
        named = [[str(name) for name in part.names] for part in self.parts if part.names is not None]
        for names in named[1:]:
            if names != named[0] and sorted(names) == sorted(named[0]):
                city = next(city for city, name in enumerate(names) if name != named[0][city])
                raise ValueError(
                    f"problems must have their cities in the same order, got {named[0][city]!r} and {names[city]!r} as "
                    f"city {city}"
                )
        for part in self.parts:
            if not part.closed:
                raise ValueError(
                    "problems must be round trips, got a path: add a city whose distance to all others is 0 in every "
                    "objective"
                )
            if part.constraints is not None:
                raise ValueError(
                    f"problems must not have fixed or forbidden edges, got {part}: give a forbidden edge a large "
                    "distance in every objective instead"
                )

    def __repr__(self) -> str:
        """Describe the problem in words: cities, and the distances of each objective."""
        label = "" if self.label is None else f" {self.label}"
        objectives = f"{self.n_obj} objectives ({self.objectives_in_words})"
        return f"{type(self).__name__}{label}: {self.n_cities} cities, {objectives}"

    __str__ = __repr__

    @property
    def objectives_in_words(self) -> str:
        """Names of the objectives, each with its distances."""
        parts = zip(self.names, self.parts, strict=True)
        return "; ".join(f"{name}: {part.distances_in_words}" for name, part in parts)

    @property
    def D(self) -> NDArray[np.float64]:
        """The (k, n, n) float64 distance matrices: 8 k n^2 bytes, computed at the first use."""
        if self._D is None:
            full = np.empty((len(self.parts), self.n_cities, self.n_cities))
            for part, into in zip(self.parts, full, strict=True):
                part.instance.write_distances(into)
            self._D = full
        return self._D

    @property
    def ids(self) -> NDArray[np.object_] | None:
        """The (n,) ids of the cities in the files of all objectives, see `TSP`; None where files differ in them."""
        ids = [None if part.ids is None else part.ids.tolist() for part in self.parts]
        return self.parts[0].ids if all(other == ids[0] for other in ids) else None

    @property
    def cities(self) -> NDArray[np.float64]:
        """Return (n, 2) positions to plot, those of the first objective that has any, see `TSP.cities`.

        Raises AttributeError if no objective has any.
        """
        for part in self.parts:
            if part.positions is not None:
                return part.cities
        raise AttributeError("no objective has positions of its cities to draw")

    def tour_lengths(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Return the (m, k) lengths of an (m, n) array of closed tours. Raises ValueError as `TSP.tour_lengths`."""
        return np.stack([part.tour_lengths(tours) for part in self.parts], axis=1)

    def weighted(self, weights: ArrayLike) -> TSP:
        """Return the `TSP` of a weighted sum: its distances are the weighted sums of those of the objectives.

        If all weights are positive, its shortest tour is a supported solution of the front. The distances are a matrix,
        8 n^2 bytes.

        weights : (k,) finite numbers >= 0, not all 0, in units of the objectives: a weight of 2 on the second of two
            means that one unit of it is worth two of the first.

        Raises ValueError for other weights.
        """
        given = checks.finite("weights", weights, 0.0)
        if given.shape != (self.n_obj,) or not given.any():
            raise ValueError(
                f"weights must be {self.n_obj} numbers, one per objective and not all 0, got {weights!r}"
            )
        total, own = np.zeros((self.n_cities, self.n_cities)), np.empty((self.n_cities, self.n_cities))
        for part, weight in zip(self.parts, given.tolist(), strict=True):
            if weight > 0.0:
                part.instance.write_distances(own)
                own *= weight
                total += own
        title = " + ".join(f"{weight:.6g} {name}" for weight, name in zip(given, self.names, strict=True))
        names = None if self.city_names is None else self.city_names.tolist()
        placed = next((part for part in self.parts if part.positions is not None), None)
        places: dict[str, Any] = {}
        if placed is not None:
            places = {"positions": placed.positions, "metric": placed.position_metric}
        return TSP(matrix=total, name=title, names=names, **places)

    def _evaluate(self, x: NDArray[Any], out: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        out["F"] = self.tour_lengths(x)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a state of ``__getstate__``. Raises ValueError if an objective is not a `TSP`."""
        parts = state["parts"]
        if not isinstance(parts, tuple) or not all(isinstance(part, TSP) for part in parts):
            raise ValueError("parts of this MultiObjectiveTSP must be a tuple of TSP")
        self.__dict__.update(state)


def _objective_names(names: Sequence[str] | None, labels: list[str | None]) -> tuple[str, ...]:
    if names is None:
        return tuple(label or f"objective {number}" for number, label in enumerate(labels, 1))
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"names must be {len(labels)} strings, one per objective, got {names!r:.80}")
    if len(names) != len(labels):
        raise ValueError(f"names must be {len(labels)}, one per objective, got {len(names)}")
    if len(set(names)) < len(names):
        raise ValueError(f"names must differ, one per objective, got {names!r:.80}")
    return tuple(names)


def as_multi_objective(problem: Any) -> MultiObjectiveTSP:
    """Turn a pymoo problem into a `MultiObjectiveTSP`, for the search for a front.

    Accepted are `MultiObjectiveTSP`, and any unconstrained Problem of 2 to 6 objectives over integer permutations
    (`vtype=int`) that has its distance matrices as attribute `D`, (k, n, n). The problem is not changed.

    Raises TypeError when it is not a pymoo Problem, has no `D` or variables that are not integers, and ValueError when
    objectives, constraints, bounds or `D` do not fit.
    """
    if isinstance(problem, MultiObjectiveTSP):
        problem.check_parts()  # the parts may come from a file
        return problem
    what = type(problem).__name__
    needs = (
        f"expected a MultiObjectiveTSP, or a Problem with 2 to {MOST_OBJECTIVES} objectives, no constraints, "
        "vtype=int and the distance matrices of all objectives as attribute D, (k, n, n)"
    )
    if (
        isinstance(problem, Problem)
        and not isinstance(problem, QAP)
        and not 2 <= problem.n_obj <= MOST_OBJECTIVES
    ):
        instead = ". For one objective take GPUMMAS" if problem.n_obj == 1 else ""
        raise ValueError(
            f"{what} has {problem.n_obj} objective{'s' * (problem.n_obj != 1)}; {needs}{instead}"
        )
    D = distances_of(problem, needs)
    shape = np.shape(D)
    if len(shape) != 3 or shape[0] != problem.n_obj or shape[1] != shape[2]:
        raise ValueError(f"D of {what} must have shape ({problem.n_obj}, n, n), got {shape}")
    check_size(problem, shape[1])
    parts = []
    for number, matrix in enumerate(D):
        try:
            parts.append(TSP(matrix=matrix))
        except (TypeError, ValueError) as error:
            raise type(error)(f"D[{number}] of {what}: {error}") from error
    return MultiObjectiveTSP(parts)


class _Pair(NamedTuple):
    tours: NDArray[np.int32]
    lengths: NDArray[np.float64]


class Front(_Pair):
    """Result of `solve` for several objectives: ``tours, lengths = solve(..)``, sorted by the first objective.

    Parameters
    ----------
    tours : (f, n) cities in order, one tour a row.
    lengths : (f, k) their lengths by each of the k objectives.
    problem : the solved problem, or None.

    Attributes
    ----------
    tours : (f, n) int32, sorted by the first objective (ties by the second, and so on).
    lengths : (f, k) float64, in the same order.
    problem : as given.

    Raises ValueError if the numbers of tours and lengths differ.
    """

    problem: MultiObjectiveTSP | None

    def __new__(cls, tours: ArrayLike, lengths: ArrayLike, problem: MultiObjectiveTSP | None = None) -> Front:
        """Sort the tours and store the problem."""
        rows, values = np.asarray(tours, dtype=np.int32), np.asarray(lengths, dtype=np.float64)
        if rows.ndim != 2 or values.ndim != 2 or len(rows) != len(values):
            raise ValueError(
                f"tours and lengths must be of shapes (f, n) and (f, k), got {rows.shape} and {values.shape}"
            )
        order = np.lexsort(values.T[::-1])
        self = super().__new__(cls, rows[order], values[order])
        self.problem = problem
        return self

    @property
    def size(self) -> int:
        """Number of tours."""
        return len(self.tours)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the k objectives."""
        k = self.lengths.shape[1]
        known = None if self.problem is None else self.problem.names
        return known or tuple(f"objective {number}" for number in range(1, k + 1))

    def reference_point(self) -> NDArray[np.float64]:
        """Return (k,) lengths that no tour of the front reaches: 1.01 times the largest by each objective."""
        largest: NDArray[np.float64] = WORST * self.lengths.max(axis=0)
        return largest

    def hypervolume(self, reference_point: ArrayLike | None = None) -> float:
        """Return the volume between the front and a (k,) reference point, `reference_point()` by default.

        Compare fronts under the same reference point only. Source: E. Zitzler
        and L. Thiele, "Multiobjective evolutionary algorithms: a comparative case study and the strength Pareto
        approach", IEEE Transactions on Evolutionary Computation 3 (1999).

        Raises ValueError unless `reference_point` is k finite numbers.
        """
        if reference_point is None:
            point = self.reference_point()
        else:
            point = checks.finite("reference_point", reference_point)
            if point.shape != self.lengths.shape[1:]:
                raise ValueError(
                    f"reference_point must be {self.lengths.shape[1]} numbers, one per objective, "
                    f"got {reference_point!r:.60}"
                )
        return float(HV(ref_point=point)(self.lengths))

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return the arguments of a copy."""
        return self.tours, self.lengths, self.problem

    def __repr__(self) -> str:
        """Describe the front: number of tours and ranges of their lengths."""
        low, high = (self.lengths.min(axis=0), self.lengths.max(axis=0)) if self.size else (np.array([]),) * 2
        ranges = ", ".join(f"{a:.10g} to {b:.10g}" for a, b in zip(low, high, strict=True))
        return f"Front({self.size} tours, lengths {ranges}, problem={str(self.problem)!r})"

    def along(self, count: int = 3) -> NDArray[np.int64]:
        """Return the rows of up to `count` >= 2 tours along the front: its ends, and tours evenly spaced between them.

        Distances are those of the lengths, scaled by each objective's range. With more than two objectives, return
        instead the shortest tour by each, and the tour nearest to all of these lengths at once. Raises TypeError or
        ValueError for an invalid `count`.
        """
        checks.integer("count", count, 2)
        low, span = self.lengths.min(axis=0), np.ptp(self.lengths, axis=0)
        scaled = (self.lengths - low) / np.where(span > 0.0, span, 1.0)
        if self.lengths.shape[1] > 2:
            middle = int(np.hypot.reduce(scaled, axis=1).argmin())
            return np.unique([*self.lengths.argmin(axis=0), middle])
        way = np.append(0.0, np.cumsum(np.hypot(*np.diff(scaled, axis=0).T)))
        return np.unique(np.abs(way - np.linspace(0.0, way[-1], count)[:, None]).argmin(axis=1))
