"""Fronts of two objectives: nondominated points, ascending by the first objective and descending by the second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import Float64_2d, Int64_1d, compiled, compiled_callee, inlined


def nondominated(points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of the nondominated points of (m, 2) by the first objective; of equal points the first."""
    order = np.lexsort((points[:, 1], points[:, 0]))
    second = points[order, 1]
    shortest_before = np.append(np.inf, np.minimum.accumulate(second)[:-1])
    return order[second < shortest_before]


def dominators(front: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the number of points of a front (f, 2) that weakly dominate each of points (m, 2)."""
    nearer = np.searchsorted(front[:, 0], points[:, 0], "right")
    return np.maximum(0, nearer - np.searchsorted(-front[:, 1], -points[:, 1]))


@inlined
def _count_up_to(front, x):  # type: ignore[no-untyped-def]
    """Count the points of a front that are at most x by the first objective."""
    low, high = 0, front.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if front[middle, 0] <= x:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_callee
def is_covered(front, lengths, rank):  # type: ignore[no-untyped-def]
    """Return True if more than ``rank`` points of an ordered front (f, 2) weakly dominate ``lengths``."""
    count = _count_up_to(front, lengths[0])
    return count > rank and front[count - 1 - rank, 1] <= lengths[1]


def hull_of(front: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of the corners of the convex hull of a front (f, 2): the supported tours."""
    hull = np.empty(len(front), np.int64)
    return hull[: find_hull(np.ascontiguousarray(front), hull)]


@compiled
def find_hull(front: Float64_2d, hull: Int64_1d) -> int:
    """Write the indices of the corners of the convex hull to ``hull`` (f,); return their number."""
    count = 0
    for i in range(front.shape[0]):
        while count > 1:
            a, b = hull[count - 2], hull[count - 1]
            turn = (front[b, 0] - front[a, 0]) * (front[i, 1] - front[a, 1])
            turn -= (front[b, 1] - front[a, 1]) * (front[i, 0] - front[a, 0])
            if turn > 0.0:
                break
            count -= 1
        hull[count] = i
        count += 1
    return count


def normals(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights (h - 1, 2) of sum 1 under which consecutive corners have equal sums (Aneja and Nair 1979)."""
    steps = np.stack([corners[:-1, 1] - corners[1:, 1], corners[1:, 0] - corners[:-1, 0]], axis=1)
    return np.asarray(steps / steps.sum(axis=1, keepdims=True))


def weights_at(front: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights (m, 2) of the slope of the front at points (m, 2): the normals of the nearest hull sides."""
    corners = front[hull_of(front)]
    if len(corners) < 2:
        return np.full(points.shape, 0.5)
    side = np.searchsorted(corners[:, 0], points[:, 0], "right") - 1
    return normals(corners)[np.clip(side, 0, len(corners) - 2)]


def slack_at(
    front: NDArray[np.float64], points: NDArray[np.float64], weights: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """Return the slack (m,) of weighted sums by which chains from points (m, 2) reach gaps of the front nearby.

    It is the largest excess over the point of an outer corner between the ``steps`` points on either side.
    """
    if len(front) < 2:
        return np.full(len(points), np.abs(points).max() if len(points) else 0.0)
    outer = np.stack([front[1:, 0], front[:-1, 1]], axis=1)
    at = np.searchsorted(front[:, 0], points[:, 0], "right") - 1
    own = (weights * points).sum(axis=1)
    most = np.zeros(len(points))
    for step in range(-steps, steps):
        corner = outer[np.clip(at + step, 0, len(outer) - 1)]
        most = np.maximum(most, (weights * corner).sum(axis=1) - own)
    return most


def hypervolume(front: NDArray[np.float64], worst: NDArray[np.float64]) -> float:
    """Return the area between a front (f, 2), f >= 1, and a reference point (2,) that no point exceeds."""
    heights = -np.diff(front[:, 1], prepend=worst[1])
    return float(np.cumsum((worst[0] - front[:, 0]) * heights)[-1])


def contributions(front: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the hypervolume contributions (f,) of the points of a front; infinite at both ends."""
    own = np.full(len(front), np.inf)
    own[1:-1] = (front[2:, 0] - front[1:-1, 0]) * (front[:-2, 1] - front[1:-1, 1])
    return own
