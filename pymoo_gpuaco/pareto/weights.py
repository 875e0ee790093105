"""Weighted sums of the objectives: the sums to solve for supported tours, and the weights along the front."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.archive import WHOLE, Archive, FrontShare
from pymoo_gpuaco.pareto.front_2d import hull_of, normals, slack_at, weights_at

_TIE = 1e-4  # weight of the other objectives in a single-objective sum
_APART = 4  # maximum steps between paired corners of the hull
_STEPS = 5  # points of the front on either side, whose gaps chains may reach
_SHARE = 0.02  # minimum depth of gaps as a share of the extent of the front, with more than two objectives


class Sums(NamedTuple):
    """m weighted sums to solve."""

    weights: NDArray[np.float64]  # (m, k)
    rows: NDArray[np.intp]  # (m,) first tours, by row of the archive
    keys: list[bytes]  # identify the solved sums


def single_objective_weights(k: int) -> NDArray[np.float64]:
    """Return weights (k, k), one row per objective: about 1 for it, and nearly 0 for the others to break ties."""
    return np.full((k, k), _TIE) + (1.0 - _TIE) * np.eye(k)


def dichotomic_sums(archive: Archive, solved: set[bytes], most: int, first: FrontShare = WHOLE) -> Sums:
    """Return the next sums of the dichotomic scheme for two objectives, at most ``most``.

    Y. P. Aneja and K. P. K. Nair, "Bicriteria transportation problem", Management Science 25 (1979). Two neighbouring
    corners of the convex hull have weights under which both are equal. A shorter tour under these is a new corner
    between them; if none is found, there is no further corner. Sums of part ``first`` come first, and of these the
    longest sides of the hull.
    """
    rows, corners, sides = _hull(archive)
    names = [corners[i : i + 2].tobytes() for i in range(len(rows) - 1)]
    chosen = _first(names, solved, np.concatenate([corners[:-1], corners[1:]], axis=1), first, -sides, most)
    return Sums(normals(corners)[chosen], rows[chosen], [names[i] for i in chosen])


class Pairs(NamedTuple):
    """m pairs of corners, and the weights of two objectives under which both are equal."""

    rows: NDArray[np.intp]  # (m,) tours, by row of the archive
    others: NDArray[np.intp]  # (m,)
    weights: NDArray[np.float64]  # (m, 2)
    keys: list[bytes]  # identify the assembled pairs


def corner_pairs(archive: Archive, known: set[bytes], most: int, part: FrontShare = WHOLE) -> Pairs:
    """Return pairs of corners of the hull up to ``_APART`` steps apart that are not ``known``, at most ``most``.

    Pairs of the part come first, and of these the ones with the fewest steps between them.
    """
    rows, corners, _ = _hull(archive)
    steps = np.arange(1, _APART + 1)
    i, j = np.repeat(np.arange(len(rows)), _APART), (np.arange(len(rows))[:, None] + steps).ravel()
    i, j = i[j < len(rows)], j[j < len(rows)]
    pairs = np.concatenate([corners[i], corners[j]], axis=1)
    names = [pair.tobytes() for pair in pairs]
    chosen = _first(names, known, pairs, part, j - i, most)
    weights = np.abs(corners[j] - corners[i])[chosen, ::-1]
    weights /= weights.sum(axis=1, keepdims=True)
    return Pairs(rows[i[chosen]], rows[j[chosen]], weights, [names[at] for at in chosen])


def _hull(archive: Archive) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return rows (h,) and lengths of the corners of the hull, and its sides (h - 1,) as shares of the extent."""
    rows = archive.front[hull_of(archive.points)]
    corners = archive.lengths[rows]
    extent = np.ptp(corners, axis=0)
    return rows, corners, np.abs(np.diff(corners, axis=0) / np.where(extent > 0.0, extent, 1.0)).sum(axis=1)


def _first(
    names: list[bytes],
    known: set[bytes],
    pairs: NDArray[np.float64],
    part: FrontShare,
    order: NDArray[Any],
    most: int,
) -> NDArray[np.intp]:
    """Return indices of at most ``most`` pairs that are not ``known``: those of the part first, then by ``order``."""
    new = np.array([i for i, name in enumerate(names) if name not in known], np.intp)
    return new[np.lexsort((order[new], ~part.has(pairs[new])))][:most]


def direction_sums(
    archive: Archive, given: NDArray[np.float64], solved: set[bytes], most: int, first: FrontShare = WHOLE
) -> Sums:
    """Return sums of the next unsolved directions (d, k), at most ``most``, each from the best tour so far.

    Directions of part ``first`` come first. The weights of a direction apply to lengths as shares of the front's
    extent.
    """
    names = [row.tobytes() for row in given]
    order = np.argsort(~first.has(given), kind="stable")
    chosen = [i for i in order.tolist() if names[i] not in solved][:most]
    weights = scaled(archive, given[chosen])
    values = weights @ archive.points.T
    return Sums(weights, archive.front[values.argmin(axis=1)], [names[i] for i in chosen])


def spread(archive: Archive, begun: int, most: int) -> Sums:
    """Return ``most`` sums of two objectives from number ``begun`` on, spread evenly, each with the best current tour.

    The weights follow the sequence of J. G. van der Corput (1935), which leaves no large gaps after any number of sums.
    """
    shares = np.array([_radical_inverse(begun + i) for i in range(most)])
    weights = scaled(archive, np.stack([shares, 1.0 - shares], axis=1))
    corners = archive.front[hull_of(archive.points)]
    return Sums(weights, corners[(weights @ archive.lengths[corners].T).argmin(axis=1)], [])


def _radical_inverse(number: int) -> float:
    """Return the radical inverse of a number in base 2: its reversed binary digits after the point, in [0, 1)."""
    return int(f"{number:b}"[::-1], 2) / (1 << number.bit_length()) if number else 0.0


def scaled(archive: Archive, given: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights (m, k) of sum 1 for lengths, from directions for shares of the extent of the front."""
    extent = np.ptp(archive.points, axis=0)
    weights = np.maximum(given, _TIE) / np.where(extent > 0.0, extent, 1.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def slopes(
    archive: Archive, directions: NDArray[np.float64] | None, points: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return weights (m, k) of the slope of the front at points (m, k), and the slack (m,) of chains to its gaps.

    directions : (d, k) for more than two objectives; a point gets the direction under which it is nearest to the best.
    """
    front = archive.points
    if points.shape[1] == 2:
        weights = weights_at(front, points)
        return weights, slack_at(front, points, weights, _STEPS) + _least(points)
    assert directions is not None
    all_weights = scaled(archive, directions)
    values = front @ all_weights.T
    least = values.min(axis=0)
    over = points @ all_weights.T - least
    chosen = over.argmin(axis=1)
    weights = all_weights[chosen]
    most = (values - least).min(axis=1).max()  # largest excess of a member over the best under its weights
    slack = np.maximum(most, _SHARE * weights @ np.ptp(front, axis=0))
    return weights, slack + _least(points)


def _least(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a minimum slack (m,) > 0 at points (m, k)."""
    return np.asarray(1e-9 * points.max(axis=1, initial=0.0) + 1e-300)
