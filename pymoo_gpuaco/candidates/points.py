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
from pymoo_gpuaco.runtime.compiled import compiled, inlined
from pymoo_gpuaco.runtime.threads import spread, thread_count

# Multipliers of the hash of coordinates: the bits of the golden ratio, and an odd number.
_GOLDEN, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_MINUS_ZERO = np.uint64(1 << 63)


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
        lengths = lengths_to(ids)
        order = np.lexsort((ids, lengths), axis=-1)
        return Candidates(np.take_along_axis(ids, order, axis=1), np.take_along_axis(lengths, order, axis=1))


def distinct_points(x: NDArray[np.float64], y: NDArray[np.float64]) -> Copies:
    """Group cities at (n,) contiguous coordinates by point; the same for any number of threads."""
    n = len(x)
    lists, onward = np.full(n, -1, np.int32), np.empty(n, np.int32)
    lowest, bits = np.empty(n, np.int32), (x.view(np.uint64), y.view(np.uint64))
    spread(lambda _, *part: _find_lowest(x, y, *bits, *part, lists, onward, lowest), n, thread_count())
    return _grouped(lowest)


def _grouped(lowest: NDArray[np.int32]) -> Copies:
    """Group n cities by the lowest city (n,) at the place of each."""
    n = len(lowest)
    if (lowest == np.arange(n, dtype=np.int32)).all():
        return Copies(np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32))
    sizes = np.bincount(lowest, minlength=n)
    first = np.concatenate([[0], np.cumsum(sizes[sizes > 0])]).astype(np.int32)
    return Copies(first, np.argsort(lowest, kind="stable").astype(np.int32))


def at_one_point(coords: NDArray[np.float64]) -> Copies | None:
    """Group cities (n, 3) by their coordinates; return None if all differ."""
    x, y, z = np.ascontiguousarray(coords.T)
    copies = distinct_points(x, y)
    if z.any():
        number = np.empty(len(z))  # of each city's point in the plane
        number[copies.member] = np.repeat(np.arange(len(copies.cities)), np.diff(copies.first))
        copies = distinct_points(number, z)
    return copies if copies.any else None


@inlined
def _bits(coordinate):  # type: ignore[no-untyped-def]
    """Return the bits of a coordinate, those of 0.0 for -0.0."""
    return np.uint64(0) if coordinate == _MINUS_ZERO else coordinate


@compiled
def _find_lowest(x, y, bits_x, bits_y, first, last, lists, onward, lowest):  # type: ignore[no-untyped-def]
    """Write the ``lowest`` city at the same point for all cities whose hash, in [0, n), is in first .. last-1.

    ``lists`` (n,) has the lowest city of the last point of each hash, or -1; ``onward`` (n,) links to the point before.
    """
    n = np.uint64(x.shape[0])
    for city in range(x.shape[0]):
        mixed = _bits(bits_x[city]) * _GOLDEN
        mixed = (mixed ^ (mixed >> np.uint64(29)) ^ _bits(bits_y[city])) * _ODD
        hashed = np.int64(((mixed >> np.uint64(32)) * n) >> np.uint64(32))
        if hashed < first or hashed >= last:
            continue
        other = lists[hashed]
        while other >= 0 and (x[other] != x[city] or y[other] != y[city]):
            other = onward[other]
        if other < 0:
            onward[city], lists[hashed], other = lists[hashed], city, city
        lowest[city] = other


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
    copies = _grouped(lowest)
    return copies if copies.any else None


def _digest(lengths: NDArray[np.float64], city: int) -> bytes:
    """Return a digest of a row or a column that ignores the distance of the city to itself."""
    others = lengths + 0.0  # turns -0.0 into 0.0
    others[city] = 0.0
    return hashlib.blake2b(others.tobytes(), digest_size=16).digest()


@compiled
def _fill_rows(first, member, near, ids):  # type: ignore[no-untyped-def]
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
