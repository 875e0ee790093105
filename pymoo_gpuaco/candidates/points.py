"""Cities at the same point, which must not fill candidate lists, or the point has no edge to others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.threads import spread, thread_count

# Multipliers of the hash of coordinates: the bits of the golden ratio, and an odd number.
_GOLDEN, _ODD = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_MINUS_ZERO = np.uint64(1 << 63)


class Points(NamedTuple):
    """The p distinct points of n cities in the plane, numbered in the order of their first cities."""

    x: NDArray[np.float64]  # (p,)
    y: NDArray[np.float64]  # (p,)
    first: NDArray[np.int32]  # (p + 1,) the cities of point i are member[first[i] : first[i + 1]]
    member: NDArray[np.int32]  # (n,) cities by point, ascending within one


def one_point_each(x: NDArray[np.float64], y: NDArray[np.float64]) -> Points:
    """Return the (n,) coordinates as n points of one city each."""
    n = len(x)
    return Points(x, y, np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32))


def distinct_points(x: NDArray[np.float64], y: NDArray[np.float64]) -> Points:
    """Group cities at (n,) contiguous coordinates by point; the same for any number of threads."""
    n = len(x)
    lists, onward = np.full(n, -1, np.int32), np.empty(n, np.int32)
    lowest, bits = np.empty(n, np.int32), (x.view(np.uint64), y.view(np.uint64))

    def work(_: int, first: int, last: int) -> None:
        _find_lowest(x, y, *bits, first, last, lists, onward, lowest)

    spread(work, n, thread_count())
    alone = lowest == np.arange(n, dtype=np.int32)
    if alone.all():
        return one_point_each(x, y)
    return Points(x[alone], y[alone], *grouped(lowest))


def grouped(lowest: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return ``first`` (p + 1,) and ``member`` (n,) of `Points`, by the lowest city (n,) at the place of each."""
    n = len(lowest)
    first = np.zeros(1 + np.count_nonzero(lowest == np.arange(n, dtype=np.int32)), np.int32)
    member = np.empty(n, np.int32)
    _number_points(lowest, np.empty(n, np.int32), first, member)
    return first, member


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


@compiled
def _number_points(lowest, number, first, member):  # type: ignore[no-untyped-def]
    """Write ``first`` (p + 1,), initially 0, and ``member`` (n,) of `Points`; ``number`` (n,) is a workspace."""
    points = 0
    for city in range(lowest.shape[0]):
        if lowest[city] == city:
            number[city] = points
            points += 1
        first[number[lowest[city]] + 1] += 1
    for point in range(points):
        first[point + 1] += first[point]
    for city in range(lowest.shape[0]):
        point = number[lowest[city]]
        member[first[point]] = city
        first[point] += 1
    for point in range(points, 0, -1):  # each was advanced to the first place of the next one
        first[point] = first[point - 1]
    first[0] = 0


@compiled_callee
def fill_row(first, member, here, m, point, chosen, count, row):  # type: ignore[no-untyped-def]
    """Write k cities to ``row`` (k,) for the city in slot m of ``member``, at point ``here``.

    Its neighbours in the chain of its point come first, then one city of each of the ``count`` chosen points. If these
    are too few, the other cities of all of them follow. The chosen points are point[chosen[c]]; the cities of point i
    are member[first[i] : first[i + 1]].
    """
    k, filled = row.shape[0], 0
    low, high = first[here], first[here + 1]
    for other in (m - 1, m + 1):
        if low <= other < high and filled < k:
            row[filled] = member[other]
            filled += 1
    for c in range(count):
        if filled < k:
            row[filled] = member[first[point[chosen[c]]]]
            filled += 1
    for c in range(-1, count):
        there = here if c < 0 else point[chosen[c]]
        other = first[there] + (0 if c < 0 else 1)
        while filled < k and other < first[there + 1]:
            if c >= 0 or abs(other - m) > 1:
                row[filled] = member[other]
                filled += 1
            other += 1
