"""Which members of a front go where there are too many: those without which it loses least."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pymoo_gpuaco.pareto.stairs import contributions
from pymoo_gpuaco.runtime.threads import thread_count

_SHARE = 20  # one of so many members may go at once: what one leaves changes the worth of those beside it
_SHARE_OF_MANY = 2  # of more than two objectives, this part of those that are to go may, where that is more


def least_missed(points: NDArray[np.float64], stay: NDArray[np.bool_], many: int) -> NDArray[np.intp]:
    """Which so many of a front (f, k) it loses least without; those that are to ``stay`` (f,) never go.

    Of two objectives (in order of the first) that is the area they dominate alone, the least of all going first; of
    more, they are those that have another member nearest by, where every objective is measured by the front's extent.
    They go in steps, after each of which it is worked out anew.
    """
    return _by_area(points, stay, many) if points.shape[1] == 2 else _by_distance(points, stay, many)


def _by_area(points: NDArray[np.float64], stay: NDArray[np.bool_], many: int) -> NDArray[np.intp]:
    left, going = np.arange(len(points)), [np.empty(0, np.intp)]
    while many > 0:
        worth = contributions(points[left])
        worth[stay[left]] = np.inf
        some = np.argsort(worth, kind="stable")[: min(many, max(1, len(left) // _SHARE))]
        going.append(left[some])
        left = np.delete(left, some)
        many -= len(some)
    return np.concatenate(going)


def _by_distance(points: NDArray[np.float64], stay: NDArray[np.bool_], many: int) -> NDArray[np.intp]:
    extent = np.ptp(points, axis=0)
    scaled = points / np.where(extent > 0.0, extent, 1.0)
    left, going = np.arange(len(points)), [np.empty(0, np.intp)]
    near, other = np.empty(len(points)), np.empty(len(points), np.intp)
    has_gone, asked = np.zeros(len(points), bool), left
    while many > 0:
        near[asked], other[asked] = _nearest(scaled, left, asked)
        # if both of two that are nearest to each other went, nothing would be left there. What is to stay leaves it
        # to the other to go
        mates = other[left]
        one_of_two = (other[mates] == left) & (mates < left) & ~stay[mates]
        worth = np.where(stay[left] | one_of_two, np.inf, near[left])
        # as the size is at least 2 k, none goes whose worth is infinite: at most half, and the k best
        share = max(1, len(left) // _SHARE, many // _SHARE_OF_MANY)
        some = np.argsort(worth, kind="stable")[: min(many, share)]
        going.append(left[some])
        has_gone[left[some]] = True
        left = np.delete(left, some)
        asked = left[has_gone[other[left]]]
        many -= len(some)
    return np.concatenate(going)


def _nearest(
    points: NDArray[np.float64], left: NDArray[np.intp], asked: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """How far (a,) the nearest other of points ``left`` is from each of those ``asked``, which are among them."""
    far, found = cKDTree(points[left]).query(points[asked], k=2, workers=thread_count())
    rows = left[found]
    others = np.where(rows[:, 1] == asked, rows[:, 0], rows[:, 1])  # of two at one place either comes first
    return far[:, 1], others
