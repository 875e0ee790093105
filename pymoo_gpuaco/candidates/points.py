"""Cities that share a point. A candidate list must not fill up with them, or the point is cut off from all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


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
    """Group cities at (n,) coordinates by point."""
    # A sort of hashes, which hardly ever sees two equal ones where all points differ, is several times faster than one
    # of pairs. Adding 0 turns -0.0 into 0.0, the same point with other bits.
    bits_x, bits_y = (x + 0.0).view(np.uint64), (y + 0.0).view(np.uint64)
    hashes = bits_x * np.uint64(0x9E3779B97F4A7C15)  # the golden ratio's bits
    hashes = (hashes ^ (hashes >> np.uint64(29)) ^ bits_y) * np.uint64(0xD6E8FEB86659FD93)
    hashes.sort()
    if not (hashes[1:] == hashes[:-1]).any():
        return one_point_each(x, y)
    by_point = np.lexsort((y, x))  # stable: the cities of one point ascend
    new = np.ones(len(x), bool)
    new[1:] = (np.diff(x[by_point]) != 0.0) | (np.diff(y[by_point]) != 0.0)
    first_cities, sizes = by_point[new], np.diff(np.append(np.flatnonzero(new), len(x)))
    order = np.argsort(first_cities)
    number = np.empty(len(order), np.intp)
    number[order] = np.arange(len(order))
    member = by_point[np.argsort(np.repeat(number, sizes), kind="stable")].astype(np.int32)
    first = np.zeros(len(order) + 1, np.int32)
    np.cumsum(sizes[order], out=first[1:])
    return Points(x[first_cities[order]], y[first_cities[order]], first, member)
