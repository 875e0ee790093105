"""Coincident cities: equal coordinates, or equal rows of a matrix.

Lists of the nearest cities could contain only coincident cities, and no edge to any other. So lists chain them: a city
lists the one before and the one after it at its place, and then the nearest other places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import Candidates
from pymoo_gpuaco.runtime.compiled import Int32_1d, Int32_2d, compiled

_ODD = np.uint64(0xD6E8FEB86659FD93)  # multiplier of the hash of coordinates


class Copies(NamedTuple):
    """The p <= n places of n cities, numbered in the order of their first cities."""

    first: NDArray[np.int32]  # (p + 1,) the cities at place i are member[first[i] : first[i + 1]]
    member: NDArray[np.int32]  # (n,) cities by place, ascending within one

    @property
    def any(self) -> bool:
        """True if two cities share a place."""
        return len(self.first) <= len(self.member)

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
        if not self.any:
            return near
        ids = np.empty((len(self.member), k), np.int32)
        _fill_rows(self.first, self.member, near, ids)
        return ids

    def lists(
        self,
        k: int,
        nearest: Callable[[NDArray[np.int32], int], NDArray[np.int32]],
        lengths_to: Callable[[NDArray[np.int32]], NDArray[np.float64]],
    ) -> Candidates:
        """Return chained lists and their distances (n, k), each row sorted by (distance, id).

        nearest : finds lists (p, most) of the p first cities, of one another, for p > 1.
        lengths_to : finds the distances (n, k) of all cities to those listed.
        """
        cities, near = self.cities, np.empty((1, 0), np.int32)
        if len(cities) > 1:
            near = nearest(cities, min(k, len(cities) - 1))
        ids = self.chained(near, k)
        return Candidates(ids, lengths_to(ids)).in_order()


def at_one_point(coords: NDArray[np.float64]) -> Copies:
    """Group cities by their coordinates (n, d)."""
    coords = coords + 0.0  # turns -0.0 into 0.0
    mixed = np.zeros(len(coords), np.uint64)
    for axis in coords.T:
        mixed = (mixed ^ (mixed >> np.uint64(29)) ^ axis.view(np.uint64)) * _ODD
    in_order, lowest = np.sort(mixed), np.arange(len(coords), dtype=np.int32)
    # only cities with equal hashes, usually few, are compared
    suspects = np.flatnonzero(np.isin(mixed, in_order[1:][in_order[1:] == in_order[:-1]]))
    if len(suspects):
        suspects = suspects[np.lexsort(coords[suspects].T)]
        is_new = np.append(True, (coords[suspects[1:]] != coords[suspects[:-1]]).any(axis=1))
        lowest[suspects] = suspects[is_new][np.cumsum(is_new) - 1]
    return _grouped(lowest)


def _grouped(lowest: NDArray[np.int32]) -> Copies:
    """Group n cities by the lowest city (n,) at the place of each."""
    n = len(lowest)
    if (lowest == np.arange(n, dtype=np.int32)).all():
        return Copies(np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32))
    sizes = np.bincount(lowest, minlength=n)
    first = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int32)
    return Copies(first, np.argsort(lowest, kind="stable").astype(np.int32))


def with_equal_rows(matrix: NDArray[np.float64], suspects: NDArray[np.int64]) -> Copies:
    """Group cities of a matrix (n, n) by their rows and columns.

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
    return _grouped(lowest)


def _digest(lengths: NDArray[np.float64], city: int) -> bytes:
    """Return a digest of a row or a column that ignores the distance of the city to itself."""
    others = lengths + 0.0  # turns -0.0 into 0.0
    others[city] = 0.0
    return hashlib.blake2b(others.tobytes(), digest_size=16).digest()


@compiled
def _fill_rows(first: Int32_1d, member: Int32_1d, near: Int32_2d, ids: Int32_2d) -> None:
    """Write the lists (n, k) of all cities by those of places.

    The neighbours of a city in the chain of its place come first, then the first city of each listed place. If these
    are too few, the other cities of all these places follow.
    """
    k, count = ids.shape[1], near.shape[1]
    for here in range(near.shape[0]):
        for m in range(first[here], first[here + 1]):
            row, filled = ids[member[m]], 0
            for other in (m - 1, m + 1):
                if first[here] <= other < first[here + 1] and filled < k:
                    row[filled] = member[other]
                    filled += 1
            for c in range(count):
                if filled < k:
                    row[filled] = member[first[near[here, c]]]
                    filled += 1
            for c in range(-1, count):
                there = here if c < 0 else near[here, c]
                other = first[there] + (0 if c < 0 else 1)
                while filled < k and other < first[there + 1]:
                    if c >= 0 or abs(other - m) > 1:
                        row[filled] = member[other]
                        filled += 1
                    other += 1
