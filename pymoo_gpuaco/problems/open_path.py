"""Paths instead of round trips, as travelling salesman problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["OpenPath"]

_FAR = (
    4.0  # times the largest distance: taking a city out and putting it elsewhere costs three of them at most
)


class OpenPath(TSP):
    """The shortest path that visits every city once and does not come back.

    With `start`, the way back to that city costs nothing: its column of the matrix is 0. With `end` alone, the way on
    from it costs nothing: its row is 0. With neither or both a further city n is added. With neither it is at distance
    0 from all others: the path begins behind it and ends before it, wherever that is shortest. With both it is on
    a free way from the end to the start, and so far from all others that the best tour passes it there. Either way a
    symmetric matrix stays one, and the length of a tour is the length of its path.

    Parameters
    ----------
    distances : (n, n) matrix as `TSP` takes it, row = from, or a `TSP`, whose matrix is taken; n >= 3.
    start : city to begin at, in [0, n - 1], or None.
    name : a title, kept as `label`.
    end : city to end at, in [0, n - 1], or None; not the start.

    Attributes
    ----------
    original : the `TSP` given, or None.
    n_places : number of cities on the path, n; `n_cities` counts the further one.
    names : those of `original`: `problem.names[problem.path(tour)]` are the names along the path.

    Raises ValueError or TypeError for a matrix that is none, and for a `start` or `end` that is no city.
    """

    def __init__(
        self,
        distances: ArrayLike | TSP,
        start: int | None = None,
        name: str | None = None,
        end: int | None = None,
    ) -> None:
        original = distances if isinstance(distances, TSP) else None
        matrix = np.array(original.D if original is not None else TSP(matrix=distances).D)
        positions = None if original is None or original.positions is None else original.cities
        n = len(matrix)
        both_ways = bool(np.array_equal(matrix, matrix.T))
        self.start = checks.optional_integer("start", start, 0, n - 1)
        self.end = checks.optional_integer("end", end, 0, n - 1)
        self.n_places = n
        if start is not None and start == end:
            raise ValueError(
                f"end must be another city than start, got {end} for both; a round trip is a TSP"
            )
        if (start is None) == (end is None):
            far = 0.0 if start is None else _FAR * (float(matrix.max()) or 1.0)
            matrix = np.pad(matrix, (0, 1), constant_values=far)
            if start is not None:
                matrix[n, start] = matrix[end, n] = 0.0
                if both_ways:
                    matrix[start, n] = matrix[n, end] = 0.0
            if positions is not None:
                positions = np.vstack([positions, positions.mean(axis=0)])
        elif start is not None:
            matrix[:, start] = 0.0
        else:
            matrix[end] = 0.0
        if name is None and original is not None:
            name = original.label
        super().__init__(matrix=matrix, positions=positions, name=name)
        self.original = original
        self.names = None if original is None else original.names

    @property
    def distances_in_words(self) -> str:
        """How distances are computed, and that their path counts."""
        words = super().distances_in_words if self.original is None else self.original.distances_in_words
        return f"{words}, along a path"

    def path(self, tour: ArrayLike) -> NDArray[np.int64]:
        """Return the (n,) cities of a tour of this problem in the order of the path.

        Raises ValueError for no tour, and where both ends are given for a tour so bad that it does not join them.
        """
        row = checks.permutations("tour", np.atleast_2d(np.asarray(tour)), self.n_cities)[0]
        if self.end is not None and self.start is None:
            return np.roll(row, -int(np.argmax(row == self.end)) - 1)
        first = self.start if self.n_cities == self.n_places else self.n_places
        turned: NDArray[np.int64] = np.roll(row, -int(np.argmax(row == first)))
        if first == self.start:
            return turned
        path = turned[1:]
        if self.start is not None and self.symmetric and path[0] != self.start:
            path = path[::-1]
        if self.start is not None and (path[0], path[-1]) != (self.start, self.end):
            raise ValueError(
                f"this tour's path goes from {path[0]} to {path[-1]}, not from {self.start} to {self.end}: search on"
            )
        return path

    def _calc_pareto_front(self, *args: Any, **kwargs: Any) -> None:
        return None
