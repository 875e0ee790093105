"""What an engine needs of a problem, as plain arrays: coordinates or a matrix."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.problem import Problem
from pymoo.problems.single.traveling_salesman import TravelingSalesman

from pymoo_gpuaco.problems.adding_up import add_up
from pymoo_gpuaco.problems.demands import Demands
from pymoo_gpuaco.problems.foreign import WITHOUT_DISTANCES, check_permutations, check_size
from pymoo_gpuaco.problems.lengths import tour_lengths, violations
from pymoo_gpuaco.problems.matrix import half_of, prepare_matrix
from pymoo_gpuaco.problems.metrics import Metric, distances
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["Form", "Instance", "as_instance", "check_foreign", "is_length"]


class Form(NamedTuple):
    """What makes a symmetric instance of n cities stand for another problem, see `symmetric.symmetric_form`."""

    partner: NDArray[np.int32]  # (n,) other end of the edge at a city that must stay, or -1
    doubled: bool  # city 2i is entered and 2i + 1 left where row and column i of the asymmetric matrix are
    has_dummy: bool  # the last city is at distance 0 from all others; its first two coordinates are NaN
    far: float  # length of an edge that no tour may use


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem as arrays. They are shared, not copied: nobody may write to them.

    Attributes
    ----------
    metric : the `Metric` by which distances are computed, as a plain int: pymoo's `get_params` would walk an
        Enum without end. `EXPLICIT` looks distances up in `matrix`.
    coords : (n, 3) float64, prepared for the metric (GEO: radians; HAVERSINE: kilometres on the sphere); (0, 3) when
        `EXPLICIT`.
    matrix : (n, n) float64, row = from, diagonal 0; (0, 0) unless `EXPLICIT`.
    symmetric : whether d(i, j) = d(j, i) for all cities.
    integral : whether every distance is known to be a whole number.
    demands : what a tour must do besides visiting every city once; None where that is all.
    form : how this instance stands for another problem; None where it stands for itself.
    halves : whether distances are halves of whole numbers, by which the length of every tour is a whole number.
    """

    metric: int
    coords: NDArray[np.float64]
    matrix: NDArray[np.float64]
    symmetric: bool
    integral: bool
    demands: Demands | None = field(default=None, kw_only=True)
    form: Form | None = field(default=None, kw_only=True)
    halves: bool = field(default=False, kw_only=True)

    @property
    def n(self) -> int:
        """Number of cities."""
        if self.form is not None:
            return len(self.form.partner)
        return len(self.matrix) if self.metric == Metric.EXPLICIT else len(self.coords)

    @property
    def arrays(self) -> tuple[int, NDArray[np.float64], NDArray[np.float64], bool, bool]:
        """What it is made of, besides its demands and form."""
        return self.metric, self.coords, self.matrix, self.symmetric, self.integral

    @property
    def partner(self) -> NDArray[np.int32] | None:
        """Other end (n,) of the edge at each city that must stay, or -1; None where there are no such edges."""
        return None if self.form is None or not (self.form.partner >= 0).any() else self.form.partner

    @property
    def real_coords(self) -> NDArray[np.float64]:
        """Coordinates without those of the dummy, which lies nowhere."""
        return self.coords[:-1] if self.form is not None and self.form.has_dummy else self.coords

    def distance(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Return the distances from cities i to cities j, in double, with the metric's own rounding."""
        if self.form is not None and self.form.doubled:
            return self._doubled(*np.broadcast_arrays(i, j))
        if self.metric == Metric.EXPLICIT:
            return self.matrix[np.asarray(i), np.asarray(j)]
        length = distances(self.metric, self.coords, i, j)
        return length if self.form is None else np.where(np.isnan(length), 0.0, length)

    def _doubled(self, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
        assert self.form is not None
        leaving, entering = np.where(i & 1, i, j) >> 1, np.where(i & 1, j, i) >> 1
        length = np.where(
            (i ^ j) & 1, np.minimum(self.matrix[leaving, entering], self.form.far), self.form.far
        )
        return np.where(leaving == entering, 0.0, length)

    def tour_length(self, tour: ArrayLike) -> float:
        """Return a tour's length, of an open path that of the path; edges that no tour may use do not count.

        Raises ValueError unless it is an (n,) permutation of 0..n-1.
        """
        row = np.asarray(tour)
        if row.ndim != 1:
            raise ValueError(f"tour must have shape ({self.n},), got {row.shape}")
        if self.form is not None:
            return float(add_up(self.distance(row, np.roll(row, -1))[None], row[None])[0])
        closed = self.demands is None or self.demands.closed
        lengths = tour_lengths(self.metric, self.coords, self.matrix, row[None], self.n, "tour", closed)
        return float(lengths[0])

    def violations(self, tours: ArrayLike) -> NDArray[np.int64]:
        """Return how many demands each of tours (m, n) breaks, see `Demands.violations`."""
        rows = np.asarray(tours)
        return violations(self.demands, self.metric, self.coords, self.matrix, rows)


def as_instance(problem: Problem) -> Instance:
    """Turn a pymoo problem into an `Instance`.

    Taken are `TSP`, pymoo's `TravelingSalesman`, and any single-objective, unconstrained Problem over integer
    permutations (`vtype=int`) that has its distance matrix as attribute `D`. The problem is left as it is.

    Raises TypeError when it is not a pymoo Problem, has no `D` or variables that are not integers, and
    ValueError when objectives, constraints, bounds or `D` do not fit.
    """
    if not isinstance(problem, TSP):
        matrix, symmetric, integral = _matrix_of(problem)
    elif problem.coords is not None:
        empty = np.zeros((0, 0))
        metric, coords = int(problem.metric), problem.coords
        return Instance(metric, coords, empty, problem.symmetric, problem.integral, demands=problem.demands)
    else:
        assert problem.matrix is not None
        matrix, symmetric, integral = problem.matrix, problem.symmetric, problem.integral
    demands = problem.demands if isinstance(problem, TSP) else None
    return Instance(int(Metric.EXPLICIT), np.zeros((0, 3)), matrix, symmetric, integral, demands=demands)


def is_length(problem: Problem) -> bool:
    """Whether the problem's class says that its objective is the tour's length: nobody else has written it."""
    evaluate = getattr(getattr(problem, "_evaluate", None), "__func__", None)
    return evaluate in (TSP._evaluate, TravelingSalesman._evaluate)


def check_foreign(problem: Any) -> None:
    """Raise TypeError or ValueError unless a problem that is no `TSP` has one objective, permutations and a `D`."""
    what = type(problem).__name__
    needs = (
        "needed is a TSP, pymoo's TravelingSalesman, or a Problem with one objective, no constraints, "
        "vtype=int and the distance matrix as attribute D"
    )
    if isinstance(problem, Problem) and problem.n_obj != 1:
        raise ValueError(
            f"{what} has {problem.n_obj} objectives; {needs}. GPU2PPLS finds the front of tours of several objectives, "
            "and MultiObjectiveTSP.weighted makes one of them"
        )
    check_permutations(problem, needs)
    if getattr(problem, "D", None) is None:
        raise TypeError(f"{what} has no distance matrix D; {needs}. {WITHOUT_DISTANCES}")


def _matrix_of(problem: Any) -> tuple[NDArray[np.float64], bool, bool]:
    """Check a foreign problem; return its distance matrix (a copy), whether symmetric, whether integral."""
    check_foreign(problem)
    what = type(problem).__name__
    matrix, symmetric, integral = prepare_matrix(problem.D, f"D of {what}", symmetric=False)
    check_size(problem, len(matrix))
    if half_of(matrix):
        warnings.warn(
            f"D of {what} has distances in its {half_of(matrix)} half alone and zeros in the other, which count as "
            "distances",
            stacklevel=4,
        )
    return matrix, symmetric, integral
