"""Paths instead of round trips, as travelling salesman problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.tsp import TSP

__all__ = ["OpenPath"]


class OpenPath(TSP):
    """The shortest path that visits every city once and does not come back.

    With `start`, the way back to that city costs nothing: its column of the matrix is 0. Without, a further city n is
    added, at distance 0 from all others: the path begins behind it and ends before it, wherever that is shortest, and
    a symmetric matrix stays one. Either way the length of a tour is the length of its path.

    Parameters
    ----------
    distances : (n, n) matrix as `TSP` takes it, row = from, or a `TSP`, whose matrix is taken; n >= 3.
    start : city to begin at, in [0, n - 1], or None.
    name : a title, kept as `label`.

    Raises ValueError or TypeError for a matrix that is none, and for a `start` that is no city.
    """

    def __init__(self, distances: ArrayLike | TSP, start: int | None = None, name: str | None = None) -> None:
        known = isinstance(distances, TSP)
        matrix = np.array(distances.D if isinstance(distances, TSP) else TSP(matrix=distances).D)
        positions = distances.positions if isinstance(distances, TSP) else None
        n = len(matrix)
        self.start = checks.optional_integer("start", start, 0, n - 1)
        self.n_places = n
        if start is None:
            matrix = np.pad(matrix, (0, 1))
            if positions is not None:
                positions = np.vstack([positions, positions.mean(axis=0)])
        else:
            matrix[:, start] = 0.0
        if name is None and known:
            name = distances.label  # type: ignore[union-attr]
        super().__init__(matrix=matrix, positions=positions, name=name)

    def path(self, tour: ArrayLike) -> NDArray[np.int64]:
        """Return the (n,) cities of a tour of this problem in the order of the path. Raises ValueError for no tour."""
        row = checks.permutations("tour", np.atleast_2d(np.asarray(tour)), self.n_cities)[0]
        first = self.n_places if self.start is None else self.start
        turned: NDArray[np.int64] = np.roll(row, -int(np.argmax(row == first)))
        return turned[1:] if self.start is None else turned

    def _calc_pareto_front(self, *args: Any, **kwargs: Any) -> None:
        return None
