"""What a search of several objectives returns: the tours of a front and their lengths."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.indicators.hv import HV

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.notebook import html_table, svg_of, svg_of_points

__all__ = ["Front"]

#: what the reference point of a hypervolume is of the largest lengths
WORST = 1.01


class _Pair(NamedTuple):
    tours: NDArray[np.int32]
    lengths: NDArray[np.float64]


class Front(_Pair):
    """What `solve` returns for several objectives: ``tours, lengths = solve(..)``, sorted by the first objective.

    A notebook shows it as a table and, of two objectives, a picture.

    Parameters
    ----------
    tours : (f, n) cities in order, one tour a row.
    lengths : (f, k) their lengths by each of the k objectives.
    problem : what was solved, or None.

    Attributes
    ----------
    tours : (f, n) int32, in the order of the first objective (of equals in that of the second, and so on).
    lengths : (f, k) float64, in the same order.
    problem : as given.

    Raises ValueError where tours and lengths are not as many.
    """

    problem: MultiObjectiveTSP | None

    def __new__(cls, tours: ArrayLike, lengths: ArrayLike, problem: MultiObjectiveTSP | None = None) -> Front:
        """Sort the tours; the pair remembers its problem."""
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
        """How many tours it has."""
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

        Fronts compare under one reference point alone: take that of the better known one for both. Source: E. Zitzler
        and L. Thiele, "Multiobjective evolutionary algorithms: a comparative case study and the strength Pareto
        approach", IEEE Transactions on Evolutionary Computation 3 (1999).

        Raises ValueError unless that is k finite numbers.
        """
        if reference_point is None:
            point = self.reference_point()
        else:
            point = checks.finite("reference_point", reference_point)
            if point.shape != self.lengths.shape[1:]:
                raise ValueError(
                    f"reference_point must be {self.lengths.shape[1]} numbers, one an objective, "
                    f"got {reference_point!r:.60}"
                )
        return float(HV(ref_point=point)(self.lengths))

    def __getnewargs__(self) -> tuple[Any, ...]:
        """What a copy or a pickle is made from."""
        return self.tours, self.lengths, self.problem

    def _extremes(self) -> list[tuple[str, int]]:
        """The shortest tour by each objective."""
        return [
            (f"least {name}", int(row))
            for name, row in zip(self.names, self.lengths.argmin(axis=0), strict=True)
        ]

    def __repr__(self) -> str:
        """How many tours, and between which lengths."""
        low, high = (self.lengths.min(axis=0), self.lengths.max(axis=0)) if self.size else (np.array([]),) * 2
        ranges = ", ".join(f"{a:.10g} to {b:.10g}" for a, b in zip(low, high, strict=True))
        return f"Front({self.size} tours, lengths {ranges}, problem={str(self.problem)!r})"

    def _repr_html_(self) -> str:
        """A table of the extremes, the points of two objectives and, where there are positions, three tours."""
        if not self.size:
            return html_table([("tours", "0")])
        rows = [
            (what, *(f"{length:.10g}" for length in self.lengths[row]), str(row))
            for what, row in self._extremes()
        ]
        title = f"{self.size} tours" + ("" if self.problem is None else f" of {self.problem}")
        table = html_table(rows, ["tour", *self.names, "row"], title)
        points = svg_of_points(self.lengths) if self.lengths.shape[1] == 2 else ""
        return table + points + "".join(svg_of(self.problem, self.tours[row]) for row in self.along())

    def along(self, count: int = 3) -> NDArray[np.int64]:
        """Return rows of up to `count` >= 2 tours along the front: its ends, and between them at equal distances.

        Distances are those of the lengths, each objective's range counting as 1. With more than two objectives they are
        instead the shortest by each, and the tour that is nearest to all of these lengths at once. Raises TypeError or
        ValueError for another `count`.
        """
        checks.integer("count", count, 2)
        low, span = self.lengths.min(axis=0), np.ptp(self.lengths, axis=0)
        scaled = (self.lengths - low) / np.where(span > 0.0, span, 1.0)
        if self.lengths.shape[1] > 2:
            middle = int(np.hypot.reduce(scaled, axis=1).argmin())
            return np.unique([*(row for _, row in self._extremes()), middle])
        way = np.append(0.0, np.cumsum(np.hypot(*np.diff(scaled, axis=0).T)))
        return np.unique(np.abs(way - np.linspace(0.0, way[-1], count)[:, None]).argmin(axis=1))
