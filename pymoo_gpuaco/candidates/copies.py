"""Cities at one place: by their coordinates, or of a matrix, where their rows are equal.

Lists of the nearest alone would hold nothing but the others at the same place, and no edge to any other. So lists chain
them, as `quadrant.quadrant_lists` does: a city lists the one before and the one after it at its place, and then the
nearest other places.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.nearest import nearest_by_coordinates
from pymoo_gpuaco.candidates.points import fill_row
from pymoo_gpuaco.host.compiled import compiled
from pymoo_gpuaco.problems.metrics import Metric, distances


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
        """The same places, their cities descending: where edges have a direction a chain is left at its last one."""
        place = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        mirrored = self.first[place] + self.first[place + 1] - 1 - np.arange(len(place))
        return Copies(self.first, self.member[mirrored])

    def chained(self, near: NDArray[np.int32], k: int) -> NDArray[np.int32]:
        """Lists (n, k) of cities from lists (p, min(k, p - 1)) of places, whose order they keep."""
        ids = np.empty((len(self.member), k), np.int32)
        _fill_rows(self.first, self.member, np.arange(len(near), dtype=np.int32), near, ids)
        return ids


def at_one_point(coords: NDArray[np.float64]) -> Copies | None:
    """Group cities (n, 3) by their coordinates; None where no two share all of them."""
    order = np.lexsort(coords.T)
    begins = np.ones(len(coords), bool)
    begins[1:] = (coords[order[1:]] != coords[order[:-1]]).any(axis=1)
    lowest = np.empty(len(coords), np.int32)
    lowest[order] = order[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    return _grouped(lowest)


def with_equal_rows(matrix: NDArray[np.float64], suspects: NDArray[np.int64]) -> Copies | None:
    """Group cities of a matrix (n, n) by their rows and columns; None where no two have the same.

    suspects : ascending; the others are equal to none. Cities at one place have distance 0, but not the other way
        round: where distances are 0 and 1, most that are at 0 differ in their other distances.
    """
    lowest = np.arange(len(matrix), dtype=np.int32)
    by_row: dict[bytes, list[int]] = {}
    for city in suspects.tolist():
        by_row.setdefault(_digest(matrix[city], city), []).append(city)
    for alike in by_row.values():
        by_column: dict[bytes, int] = {}
        for city in alike if len(alike) > 1 else ():
            lowest[city] = by_column.setdefault(_digest(matrix[:, city], city), city)
    return _grouped(lowest)


def chained_nearest(
    metric: Metric, coords: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return ids and distances (n, k) of the nearest by coordinates, cities at one point chained.

    Each row is sorted by (distance, id).
    """
    copies = at_one_point(coords)
    if copies is None:
        return nearest_by_coordinates(metric, coords, k)
    places = coords[copies.cities]
    near = np.empty((1, 0), np.int32)
    if len(places) > 1:
        near = nearest_by_coordinates(metric, places, min(k, len(places) - 1))[0]
    ids = copies.chained(near, k)
    lengths = distances(metric, coords, np.arange(len(coords))[:, None], ids)
    order = np.lexsort((ids, lengths), axis=-1)
    return np.take_along_axis(ids, order, axis=1), np.take_along_axis(lengths, order, axis=1)


def _digest(lengths: NDArray[np.float64], city: int) -> bytes:
    """The same for equal rows, or columns, whatever a city's distance to itself is given as."""
    others = lengths + 0.0  # where -0.0 becomes 0.0
    others[city] = 0.0
    return hashlib.blake2b(others.tobytes(), digest_size=16).digest()


def _grouped(lowest: NDArray[np.int32]) -> Copies | None:
    """Group cities by the lowest (n,) at their place."""
    member = np.argsort(lowest, kind="stable").astype(np.int32)
    begins = np.flatnonzero(np.diff(lowest[member], prepend=-1))
    if len(begins) == len(lowest):
        return None
    return Copies(np.append(begins, len(lowest)).astype(np.int32), member)


@compiled
def _fill_rows(first, member, everyone, near, ids):  # type: ignore[no-untyped-def]
    """Fill the rows of all cities; ``everyone`` is 0 .. p-1."""
    for here in range(near.shape[0]):
        for m in range(first[here], first[here + 1]):
            fill_row(first, member, here, m, everyone, near[here], near.shape[1], ids[member[m]])
