"""A problem as plain arrays for engines, its distances and the lengths of tours in double precision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.constraints import UNCONSTRAINED, TourConstraints
from pymoo_gpuaco.problems.metrics import (
    DOUBLED,
    WITH_DUMMY,
    Graph,
    Metric,
    graph_distances,
)
from pymoo_gpuaco.problems.summation import lengths_of

# Edges per chunk: bounds the temporaries to some tens of megabytes.
_CHUNK_EDGES = 1 << 19


class Form(NamedTuple):
    """Relation of a symmetric instance of n cities to the problem it represents, see `symmetric.symmetric_form`."""

    partner: NDArray[np.int32]  # (n,) other end of the fixed edge at a city, or -1
    doubled: bool  # tours enter city i of the asymmetric matrix at city 2i and leave it at 2i + 1
    has_dummy: bool  # the last city is at distance 0 from all others; its first two coordinates are NaN
    far: float  # length of an edge that no tour may use


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem as arrays. Arrays are shared, not copied; do not write to them.

    Attributes
    ----------
    metric : the `Metric` by which distances are computed, as a plain int: pymoo's `get_params` does not
        terminate on an Enum. `EXPLICIT` looks distances up in `matrix`.
    coords : (n, 3) float64, prepared for the metric (GEO: radians; HAVERSINE: kilometres on the sphere); (0, 3) when
        `EXPLICIT`.
    matrix : (n, n) float64, row = from, diagonal 0; (0, 0) unless `EXPLICIT`.
    symmetric : whether d(i, j) = d(j, i) for all cities.
    integral : whether every distance is known to be a whole number.
    constraints : constraints of a tour besides visiting every city once, or None.
    form : relation to the problem that this instance represents; None if it represents itself.
    """

    metric: int
    coords: NDArray[np.float64]
    matrix: NDArray[np.float64]
    symmetric: bool
    integral: bool
    constraints: TourConstraints | None = field(default=None, kw_only=True)
    form: Form | None = field(default=None, kw_only=True)

    @property
    def n(self) -> int:
        """Number of cities."""
        if self.form is not None:
            return len(self.form.partner)
        return len(self.matrix) if self.metric == Metric.EXPLICIT else len(self.coords)

    @property
    def has_precedence(self) -> bool:
        """True if some cities must be visited before others."""
        return self.constraints is not None and len(self.constraints.precedence) > 0

    @property
    def partner(self) -> NDArray[np.int32] | None:
        """Other end (n,) of the fixed edge at each city, or -1; None if there are no such edges."""
        return None if self.form is None or not (self.form.partner >= 0).any() else self.form.partner

    @property
    def real_coords(self) -> NDArray[np.float64]:
        """Coordinates without those of the dummy, which are NaN."""
        return self.coords[:-1] if self.form is not None and self.form.has_dummy else self.coords

    @property
    def graph(self) -> Graph:
        """Distances and fixed edges in the one layout of the compiled functions, which then compile once."""
        graph = Graph(int(self.metric), np.ascontiguousarray(self.coords), np.ascontiguousarray(self.matrix))
        if self.form is None:
            return graph
        if self.form.doubled or self.form.has_dummy:
            graph = graph._replace(metric=DOUBLED if self.form.doubled else WITH_DUMMY + graph.metric)
        if self.partner is not None:
            graph = graph._replace(partner=np.ascontiguousarray(self.partner, np.int32))
        return graph._replace(far=float(self.form.far))

    def distance(self, i: ArrayLike, j: ArrayLike) -> NDArray[np.float64]:
        """Return the distances from cities i to cities j in double precision, rounded as the metric defines."""
        return graph_distances(self.graph, self.n, i, j)

    def write_distances(self, into: NDArray[np.floating]) -> None:
        """Write the distances of all cities ``into`` an (n, n) array, in blocks of bounded memory."""
        to, rows = np.arange(self.n), max(1, _CHUNK_EDGES // self.n)
        for start in range(0, self.n, rows):
            into[start : start + rows] = self.distance(to[start : start + rows, None], to)

    def tour_lengths(self, tours: NDArray[Any], what: str = "tours") -> NDArray[np.float64]:
        """Return the (m,) lengths of tours (m, n), or of paths if the problem is one, in blocks of bounded memory.

        Edges of infinite length, which are forbidden, count 0. Raises ValueError naming `what` when a row is not a
        permutation of 0..n-1.
        """
        n, graph, closed = self.n, self.graph, (self.constraints or UNCONSTRAINED).closed
        if tours.ndim != 2 or tours.shape[1] != n:
            raise ValueError(f"{what} must have shape (m, {n}), got {tours.shape}")
        lengths, rows = np.empty(len(tours)), max(1, _CHUNK_EDGES // n)
        for start in range(0, len(tours), rows):
            chunk = checks.permutations(what, tours[start : start + rows], n, first_row=start)
            lengths[start : start + rows] = lengths_of(graph, chunk, closed)
        return lengths

    def tour_length(self, tour: ArrayLike) -> float:
        """Return the length of a tour, or of a path if the problem is one; forbidden edges count 0.

        Raises ValueError unless it is an (n,) permutation of 0..n-1.
        """
        row = np.asarray(tour)
        if row.ndim != 1:
            raise ValueError(f"tour must have shape ({self.n},), got {row.shape}")
        return float(self.tour_lengths(row[None], "tour")[0])

    def violations(self, tours: ArrayLike) -> NDArray[np.int64]:
        """Return the number of violations (m,) of tours (m, n), see `TourConstraints.violations`."""
        rows, constraints = np.asarray(tours), self.constraints
        count = np.zeros(len(rows), np.int64)
        if constraints is not None:
            for number, tour in enumerate(rows):  # one by one: of a million cities one takes some megabytes
                lengths = self.distance(tour, np.roll(tour, -1))
                count[number] = constraints.violations(tour, lengths if constraints.closed else lengths[:-1])
        return count


def of_matrix(matrix: NDArray[np.float64], symmetric: bool, integral: bool = False) -> Instance:
    """Return an instance of distances (n, n) without constraints; `prepare_matrix` checks such a matrix."""
    return Instance(int(Metric.EXPLICIT), np.zeros((0, 3)), matrix, symmetric, integral)
