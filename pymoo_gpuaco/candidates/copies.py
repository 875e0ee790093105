"""Coincident cities: equal coordinates, or equal rows of a matrix.

Lists of the nearest cities could contain only coincident cities, and no edge to any other. So lists chain them, as
`quadrant.quadrant_lists` does: a city lists the one before and the one after it at its place, and then the nearest
other places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.by_matrix import nearest_by_matrix
from pymoo_gpuaco.candidates.nearest import nearest_by_coordinates
from pymoo_gpuaco.candidates.points import distinct_points, fill_row, grouped
from pymoo_gpuaco.problems.metrics import Metric, distances
from pymoo_gpuaco.runtime.compiled import compiled


class Copies(NamedTuple):
    """The p < n places of n cities, numbered in the order of their first cities."""

    first: NDArray[np.int32]  # (p + 1,) the cities at place i are member[first[i] : first[i + 1]]
    member: NDArray[np.int32]  # (n,) cities by place, ascending within one

    @property
    def cities(self) -> NDArray[np.int32]:
        """The first city (p,) of each place."""
        return self.member[self.first[:-1]]

    @property
    def backward(self) -> Copies:
        """The same places with descending cities, for directed edges: a chain is left at its last city."""
        place = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        mirrored = self.first[place] + self.first[place + 1] - 1 - np.arange(len(place))
        return Copies(self.first, self.member[mirrored])

    def chained(self, near: NDArray[np.int32], k: int) -> NDArray[np.int32]:
        """Return lists (n, k) of cities from lists (p, min(k, p - 1)) of places, in the same order."""
        ids = np.empty((len(self.member), k), np.int32)
        _fill_rows(self.first, self.member, np.arange(len(near), dtype=np.int32), near, ids)
        return ids

    def lists(
        self,
        k: int,
        nearest: Callable[[NDArray[np.int32], int], NDArray[np.int32]],
        lengths_to: Callable[[NDArray[np.int32]], NDArray[np.float64]],
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return chained lists and their distances (n, k), each row sorted by (distance, id).

        nearest : finds lists (p, most) of the p first cities, of one another, for p > 1.
        lengths_to : finds the distances (n, k) of all cities to those listed.
        """
        cities, near = self.cities, np.empty((1, 0), np.int32)
        if len(cities) > 1:
            near = nearest(cities, min(k, len(cities) - 1))
        ids = self.chained(near, k)
        lengths = lengths_to(ids)
        order = np.lexsort((ids, lengths), axis=-1)
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(lengths, order, axis=1)


def at_one_point(coords: NDArray[np.float64]) -> Copies | None:
    """Group cities (n, 3) by their coordinates; return None if all differ."""
    x, y, z = np.ascontiguousarray(coords.T)
    points = distinct_points(x, y)
    if z.any():
        number = np.empty(len(z))  # of each city's point in the plane
        number[points.member] = np.repeat(np.arange(len(points.x)), np.diff(points.first))
        points = distinct_points(number, z)
    return _copies(points.first, points.member)


def with_equal_rows(matrix: NDArray[np.float64], suspects: NDArray[np.int64]) -> Copies | None:
    """Group cities of a matrix (n, n) by their rows and columns; return None if all differ.

    suspects : ascending; all others are known to differ. Coincident cities have distance 0, but cities at distance 0
        may differ in their other distances.
    """
    lowest = np.arange(len(matrix), dtype=np.int32)
    by_row: dict[bytes, list[int]] = {}
    for city in suspects.tolist():
        by_row.setdefault(_digest(matrix[city], city), []).append(city)
    for alike in by_row.values():
        by_column: dict[bytes, int] = {}
        for city in alike if len(alike) > 1 else ():
            lowest[city] = by_column.setdefault(_digest(matrix[:, city], city), city)
    return _copies(*grouped(lowest))


def chained_nearest(
    metric: Metric, coords: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return ids and distances (n, k) of the nearest by coordinates, cities at one point chained.

    Each row is sorted by (distance, id).
    """
    copies = at_one_point(coords)
    if copies is None:
        return nearest_by_coordinates(metric, coords, k)
    return copies.lists(
        k,
        lambda cities, most: nearest_by_coordinates(metric, coords[cities], most)[0],
        lambda ids: distances(metric, coords, np.arange(len(coords))[:, None], ids),
    )


def chained_nearest_by_matrix(
    matrix: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the same by a matrix (n, n), row = from."""
    found = nearest_by_matrix(matrix, k)
    copies = with_equal_rows(matrix, np.flatnonzero(found.lengths[:, 0] == 0.0))
    if copies is None:
        return found.places, found.lengths
    return copies.lists(
        k,
        lambda cities, most: nearest_by_matrix(matrix, most, cities).places,
        lambda ids: np.take_along_axis(matrix, ids.astype(np.int64), axis=1),
    )


def _digest(lengths: NDArray[np.float64], city: int) -> bytes:
    """Return a digest of a row or a column that ignores the distance of the city to itself."""
    others = lengths + 0.0  # turns -0.0 into 0.0
    others[city] = 0.0
    return hashlib.blake2b(others.tobytes(), digest_size=16).digest()


def _copies(first: NDArray[np.int32], member: NDArray[np.int32]) -> Copies | None:
    return None if len(first) > len(member) else Copies(first, member)


@compiled
def _fill_rows(first, member, places, near, ids):  # type: ignore[no-untyped-def]
    """Fill the rows of all cities; ``places`` is 0 .. p-1."""
    for here in range(near.shape[0]):
        for m in range(first[here], first[here + 1]):
            fill_row(first, member, here, m, places, near[here], near.shape[1], ids[member[m]])
