"""Fronts of two objectives: points in the order of the first, which is the opposite order of the second.

Drawn in the plane they are stairs: what lies on or above them is dominated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined


def stairs_of(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which of points (m, 2) no other dominates, in the order of the first objective; of equal ones the first."""
    order = np.lexsort((points[:, 1], points[:, 0]))
    second = points[order, 1]
    lowest = np.minimum.accumulate(second)
    kept = np.ones(len(points), bool)
    kept[1:] = second[1:] < lowest[:-1]
    return order[kept]


def ranks(stairs: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.intp]:
    """How many points of a front (f, 2) are as short by both objectives as each of points (m, 2)."""
    as_short = np.searchsorted(stairs[:, 0], points[:, 0], "right")
    longer = np.searchsorted(-stairs[:, 1], -points[:, 1], "left")
    return np.maximum(0, as_short - longer)


@compiled
def rank_rows(stairs, joined, points, first, most, gone, rank):  # type: ignore[no-untyped-def]
    """Write to ``rank`` (m,) how many points of a front (f, 2) are as short as each of points (m, 2).

    More than ``most`` are ``gone``. Of points 0 .. first-1 those only are looked at that one of ``joined`` (c, 2) is as
    short as: the points that have joined the front, in order. What has left it since, one of these dominates.
    """
    for i in range(points.shape[0]):
        x, y = points[i, 0], points[i, 1]
        if i < first:
            last = as_short(joined, x) - 1
            if last < 0 or joined[last, 1] > y:
                continue
        low, high = 0, stairs.shape[0]
        while low < high:  # how many are longer by the second
            middle = (low + high) >> 1
            if stairs[middle, 1] > y:
                low = middle + 1
            else:
                high = middle
        dominators = max(0, as_short(stairs, x) - low)
        rank[i] = dominators if dominators <= most else gone


@inlined
def as_short(stairs, x):  # type: ignore[no-untyped-def]
    """How many points of a front are as short as x by the first objective."""
    low, high = 0, stairs.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if stairs[middle, 0] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_callee
def stairs_cover(stairs, lengths, rank):  # type: ignore[no-untyped-def]
    """Whether more than ``rank`` points of a front of two objectives (f, 2) are nowhere longer; it is in order."""
    count = as_short(stairs, lengths[0])
    return count > rank and stairs[count - 1 - rank, 1] <= lengths[1]


def hull_of(stairs: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which points of a front (f, 2) are the corners of its convex hull: those of supported tours."""
    hull = np.empty(len(stairs), np.int64)
    return hull[: find_hull(np.ascontiguousarray(stairs), hull)]


@compiled
def find_hull(stairs, hull):  # type: ignore[no-untyped-def]
    """Write the corners to ``hull`` (f,); return how many there are."""
    count = 0
    for i in range(stairs.shape[0]):
        while count > 1:
            a, b = hull[count - 2], hull[count - 1]
            turn = (stairs[b, 0] - stairs[a, 0]) * (stairs[i, 1] - stairs[a, 1])
            turn -= (stairs[b, 1] - stairs[a, 1]) * (stairs[i, 0] - stairs[a, 0])
            if turn > 0.0:
                break
            count -= 1
        hull[count] = i
        count += 1
    return count


def normals(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (h - 1, 2) under which two corners that follow each other are equal (Aneja and Nair 1979); sum 1."""
    steps = np.stack([corners[:-1, 1] - corners[1:, 1], corners[1:, 0] - corners[:-1, 0]], axis=1)
    return np.asarray(steps / steps.sum(axis=1, keepdims=True))


def weights_at(stairs: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (m, 2) of the front's slope at points (m, 2): those of the side of the hull below each."""
    corners = stairs[hull_of(stairs)]
    if len(corners) < 2:
        return np.full(points.shape, 0.5)
    side = np.searchsorted(corners[:, 0], points[:, 0], "right") - 1
    return normals(corners)[np.clip(side, 0, len(corners) - 2)]


def slack_at(
    stairs: NDArray[np.float64], points: NDArray[np.float64], weights: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """By how much (m,) a weighted sum may grow from points (m, 2) on the way to a gap of the front near them.

    It is what the farthest of the outer corners between so many points on either side has more than the point.
    """
    if len(stairs) < 2:
        return np.full(len(points), np.abs(points).max() if len(points) else 0.0)
    outer = np.stack([stairs[1:, 0], stairs[:-1, 1]], axis=1)
    at = np.searchsorted(stairs[:, 0], points[:, 0], "right") - 1
    own = (weights * points).sum(axis=1)
    most = np.zeros(len(points))
    for step in range(-steps, steps):
        corner = outer[np.clip(at + step, 0, len(outer) - 1)]
        most = np.maximum(most, (weights * corner).sum(axis=1) - own)
    return most


def area(stairs: NDArray[np.float64], worst: NDArray[np.float64]) -> float:
    """Area that a front (f, 2) dominates up to ``worst`` (2,), which is nowhere shorter than the front."""
    before = np.concatenate([worst[1:], stairs[:-1, 1]])
    return float(((worst[0] - stairs[:, 0]) * (before - stairs[:, 1])).sum())


def contributions(stairs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Area (f,) that each point of a front alone dominates; infinite at both ends."""
    own = np.full(len(stairs), np.inf)
    own[1:-1] = (stairs[2:, 0] - stairs[1:-1, 0]) * (stairs[:-2, 1] - stairs[1:-1, 1])
    return own
