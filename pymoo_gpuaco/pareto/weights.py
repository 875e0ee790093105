"""Which weighted sums of the objectives a search solves: their shortest tours are the supported ones of the front."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.parts import WHOLE, Part
from pymoo_gpuaco.pareto.stairs import hull_of, normals

_TIE = 1e-4  # what the other objectives weigh where one alone is to be shortest
_APART = 4  # corners of the hull that are paired lie so many steps apart at most


class Sums(NamedTuple):
    """m weighted sums to solve."""

    weights: NDArray[np.float64]  # (m, k)
    rows: NDArray[np.intp]  # (m,) tours of the archive to begin with
    keys: list[bytes]  # by which a sum that was solved is known


def single_objective_weights(k: int) -> NDArray[np.float64]:
    """Weights (k, k), a row an objective: 1 for it and nearly 0 for the others, which decide between equal lengths."""
    return np.full((k, k), _TIE) + (1.0 - _TIE) * np.eye(k)


def dichotomic_sums(archive: Archive, solved: set[bytes], most: int, first: Part = WHOLE) -> Sums:
    """Sums that the dichotomic scheme solves next, of two objectives, at most so many.

    Y. P. Aneja and K. P. K. Nair, "Bicriteria transportation problem", Management Science 25 (1979). Two neighbouring
    corners of the convex hull have weights under which both are equal. A shorter tour under these is a new corner
    between them; where none is found, there is no further corner. Sums of part ``first`` come first, and of these the
    longest sides of the hull.
    """
    rows = archive.front[hull_of(archive.points)]
    corners = archive.lengths[rows]
    if len(rows) < 2:
        return Sums(np.empty((0, 2)), rows[:0], [])
    names = [corners[i : i + 2].tobytes() for i in range(len(rows) - 1)]
    open_ = np.array([i for i, name in enumerate(names) if name not in solved], np.intp)
    pairs = np.concatenate([corners[:-1], corners[1:]], axis=1)
    chosen = open_[np.lexsort((-_sides(corners)[open_], ~first.has(pairs[open_])))][:most]
    return Sums(normals(corners)[chosen], rows[chosen], [names[i] for i in chosen])


class Ways(NamedTuple):
    """m ways along the front: a tour, and the weights of two objectives that it is shortened under."""

    rows: NDArray[np.intp]  # (m,) tours of the archive
    first: NDArray[np.float64]  # (m, 2) weights
    last: NDArray[np.float64]  # (m, 2)
    keys: list[bytes]  # by which a side that tours were taken along is known


def along_sides(archive: Archive, gone: set[bytes], most: int, part: Part = WHOLE) -> Ways:
    """The longest sides of the hull, at most so many, that have not been gone along, each from both ends.

    Those of a part come first. Weights go from those of the side to those of the next one: on the way lie the tours
    between the two corners.
    """
    rows = archive.front[hull_of(archive.points)]
    corners = archive.lengths[rows]
    names = [corners[[i + 1, i]].tobytes() for i in range(len(rows) - 1)]
    open_ = np.array([i for i, name in enumerate(names) if name not in gone], np.intp)
    if not len(open_):
        return Ways(rows[:0], np.empty((0, 2)), np.empty((0, 2)), [])
    pairs = np.concatenate([corners[:-1], corners[1:]], axis=1)
    chosen = open_[np.lexsort((-_sides(corners)[open_], ~part.has(pairs[open_])))][:most]
    ends = single_objective_weights(2)
    weights = np.concatenate([ends[:1], normals(corners), ends[1:]])
    first = np.repeat(weights[chosen + 1], 2, axis=0)
    from_, to = np.stack([chosen, chosen + 1], axis=1), np.stack([chosen + 2, chosen], axis=1)
    return Ways(rows[from_.ravel()], first, weights[to.ravel()], [names[i] for i in chosen])


class Pairs(NamedTuple):
    """m pairs of corners, and the weights of two objectives under which both are equal."""

    rows: NDArray[np.intp]  # (m,) tours of the archive
    others: NDArray[np.intp]  # (m,)
    weights: NDArray[np.float64]  # (m, 2)
    keys: list[bytes]  # by which a pair that was assembled is known


def corner_pairs(archive: Archive, known: set[bytes], most: int, part: Part = WHOLE) -> Pairs:
    """Corners of the hull up to ``_APART`` steps apart, at most so many pairs that are not ``known``.

    Those of a part come first, and of these the ones that are the fewest steps apart.
    """
    rows = archive.front[hull_of(archive.points)]
    steps = np.arange(1, _APART + 1)
    i, j = np.repeat(np.arange(len(rows)), _APART), (np.arange(len(rows))[:, None] + steps).ravel()
    i, j = i[j < len(rows)], j[j < len(rows)]
    left, right = archive.lengths[rows[i]], archive.lengths[rows[j]]
    pairs = np.concatenate([left, right], axis=1)
    names = [pair.tobytes() for pair in pairs]
    open_ = np.array([at for at, name in enumerate(names) if name not in known], np.intp)
    chosen = open_[np.lexsort(((j - i)[open_], ~part.has(pairs[open_])))][:most]
    weights = np.abs(right - left)[chosen, ::-1]
    weights /= weights.sum(axis=1, keepdims=True)
    return Pairs(rows[i[chosen]], rows[j[chosen]], weights, [names[at] for at in chosen])


def _sides(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    """How long (h - 1,) the sides between corners are, as shares of what they extend over."""
    extent = np.ptp(corners, axis=0)
    return np.asarray(np.abs(np.diff(corners, axis=0) / np.where(extent > 0.0, extent, 1.0)).sum(axis=1))


def direction_sums(
    archive: Archive, given: NDArray[np.float64], solved: set[bytes], most: int, first: Part = WHOLE
) -> Sums:
    """Sums of the next directions (d, k) that have not been solved, at most so many, each from the best tour so far.

    Those of part ``first`` come first. Weights of a direction are for lengths in shares of the front's extent.
    """
    names = [row.tobytes() for row in given]
    order = np.argsort(~first.has(given), kind="stable")
    chosen = [i for i in order.tolist() if names[i] not in solved][:most]
    weights = scaled(archive, given[chosen])
    values = weights @ archive.points.T
    return Sums(weights, archive.front[values.argmin(axis=1)], [names[i] for i in chosen])


def spread(archive: Archive, begun: int, most: int) -> Sums:
    """Sums number ``begun`` and so many that follow, of two objectives, spread evenly, each with the best tour at hand.

    J. G. van der Corput's sequence (1935): whatever number of them has been solved, they have no large gaps.
    """
    shares = np.array([_radical_inverse(begun + i) for i in range(most)])
    weights = scaled(archive, np.stack([shares, 1.0 - shares], axis=1))
    corners = archive.front[hull_of(archive.points)]
    return Sums(weights, corners[(weights @ archive.lengths[corners].T).argmin(axis=1)], [])


def _radical_inverse(number: int) -> float:
    """The binary digits of a number in the opposite order, behind the point: in [0, 1)."""
    return int(f"{number:b}"[::-1], 2) / (1 << number.bit_length()) if number else 0.0


def scaled(archive: Archive, given: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights (m, k) of sum 1 that are to lengths as the directions are to shares of the front's extent."""
    extent = np.ptp(archive.points, axis=0)
    weights = np.maximum(given, _TIE) / np.where(extent > 0.0, extent, 1.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
