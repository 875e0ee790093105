"""A balanced k-d tree of points in the plane, for searches that scipy's tree does not offer.

Node j of level l has the points first(j) .. first(j + 1) - 1 of the leaf order, first(j) = floor(n j / 2^l), so only
boxes are stored (Bentley, "Multidimensional binary search trees used for associative searching", Communications of the
ACM 18, 1975, with medians along the longer side).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.threads import spread

LEAF = 8  # maximum points of a leaf

# Measures of nearness: any number that grows with the distance of two points.
SUM, SQUARES, LARGEST = 1, 2, 3


class Tree(NamedTuple):
    """The points in leaf order."""

    x: NDArray[np.float64]  # (n,)
    y: NDArray[np.float64]  # (n,)
    point: NDArray[np.int32]  # (n,) number of the point at a position of the leaf order
    boxes: NDArray[np.float64]  # (2^(depth + 1), 4) x low, x high, y low, y high; row 2^l + j
    lowest: NDArray[np.int32]  # (2^(depth + 1),) least number of a box's points
    depth: int  # level of the leaves


def build_tree(x: NDArray[np.float64], y: NDArray[np.float64], threads: int, leaf: int = LEAF) -> Tree:
    """Build the tree of n >= 1 points, at most ``leaf`` in a leaf; the same for any number of threads."""
    n = len(x)
    depth = max(0, (n - 1) // leaf).bit_length()
    boxes, lowest = np.empty((2 << depth, 4)), np.empty(2 << depth, np.int32)
    tree = Tree(x.copy(), y.copy(), np.arange(n, dtype=np.int32), boxes, lowest, depth)
    for level in range(depth + 1):

        def work(_: int, first: int, last: int, level: int = level) -> None:
            _split(tree, level, first, last)

        spread(work, 1 << level, threads)
    return tree


@compiled
def _split(tree, level, first, last):  # type: ignore[no-untyped-def]
    """Compute the boxes of nodes first .. last-1 of a level and split the nodes."""
    n = tree.x.shape[0]
    for j in range(first, last):
        low, high = (n * j) >> level, (n * (j + 1)) >> level
        x0, x1, y0, y1, lowest = np.inf, -np.inf, np.inf, -np.inf, n
        for p in range(low, high):
            x0, x1 = min(x0, tree.x[p]), max(x1, tree.x[p])
            y0, y1 = min(y0, tree.y[p]), max(y1, tree.y[p])
            lowest = min(lowest, tree.point[p])
        box = (1 << level) + j
        tree.boxes[box, 0], tree.boxes[box, 1] = x0, x1
        tree.boxes[box, 2], tree.boxes[box, 3] = y0, y1
        tree.lowest[box] = lowest
        if level < tree.depth:
            middle = (n * (2 * j + 1)) >> (level + 1)
            if x1 - x0 >= y1 - y0:
                _select(tree.x, tree.y, tree.point, low, high, middle)
            else:
                _select(tree.y, tree.x, tree.point, low, high, middle)


@compiled_callee
def _select(key, other, point, low, high, middle):  # type: ignore[no-untyped-def]
    """Reorder positions low .. high-1 so that no key before ``middle`` exceeds one after it (Hoare's Find)."""
    while high - low > 1:
        a, b, c = key[low], key[(low + high) >> 1], key[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high - 1
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                other[i], other[j] = other[j], other[i]
                point[i], point[j] = point[j], point[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j + 1
        elif middle >= i:
            low = i
        else:
            return


@inlined
def nearness(measure, dx, dy):  # type: ignore[no-untyped-def]
    """Return a number that grows with the distance of two points dx, dy apart."""
    if measure == SQUARES:
        return dx * dx + dy * dy
    dx, dy = abs(dx), abs(dy)
    return dx + dy if measure == SUM else max(dx, dy)


@inlined
def box_nearness(measure, boxes, box, x, y):  # type: ignore[no-untyped-def]
    """Return the `nearness` of a point and the closest point of a box."""
    dx = max(0.0, max(boxes[box, 0] - x, x - boxes[box, 1]))
    dy = max(0.0, max(boxes[box, 2] - y, y - boxes[box, 3]))
    return nearness(measure, dx, dy)
