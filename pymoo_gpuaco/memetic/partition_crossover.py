"""Partition crossover: a tour takes from another tour every part in which that tour is shorter.

The edges of only one of two tours form connected components. In each component every city loses as many edges as it
gains, so each component is an exchange, and the commit applies those that shorten the tour. See Whitley, Hains and
Howe, "Tunneling between optima", GECCO 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pymoo_gpuaco.memetic.commit import Exchanges, lay_out, select

Distance = Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]]


def merge(
    tour: NDArray[np.int32], other: NDArray[np.int32], distance: Distance
) -> tuple[NDArray[np.int32], float]:
    """Merge ``other`` into ``tour``, both (n,) permutations of 0 .. n-1 with n >= 3; neither is written to.

    ``distance(i, j)`` returns the symmetric lengths of the edges between cities i and j (arrays of equal shape).
    Returns a new tour, never longer than the shorter of the two, and its gain over ``tour`` in units of ``distance``.
    """
    exchanges = difference(tour, other, distance)
    total = max(0.0, float(exchanges.gain.sum()))
    if total > 0.0:  # the other tour is shorter: merge this one into it
        tour, exchanges = other, difference(other, tour, distance)
    improving = _subset(exchanges, exchanges.gain > 0.0)
    accepted, segments = select(len(tour), improving)
    merged = np.empty(len(tour), np.int32)
    lay_out(np.ascontiguousarray(tour, np.int32), segments, merged)
    return merged, total + float(improving.gain[accepted].sum())


def merge_all(tours: Iterable[NDArray[np.int32]], distance: Distance) -> tuple[NDArray[np.int32], float]:
    """Merge one or more tours in turn; return the tour and its gain over the first."""
    remaining = iter(tours)
    merged, total = np.array(next(remaining), np.int32), 0.0
    for tour in remaining:
        merged, gain = merge(merged, tour, distance)
        total += gain
    return merged, total


def difference(tour: NDArray[np.int32], other: NDArray[np.int32], distance: Distance) -> Exchanges:
    """Return the exchanges, one per connected component, that together turn ``tour`` into ``other``."""
    n = len(tour)
    places = np.arange(n, dtype=np.int32)
    position, other_position = np.empty(n, np.int32), np.empty(n, np.int32)
    position[tour], other_position[other] = places, places
    removed = np.stack([places, np.roll(places, -1)], axis=1)
    added = position[np.asarray(other)[removed]]
    removed = removed[_are_apart(other_position[np.asarray(tour)[removed]])]
    added = added[_are_apart(added)]
    edges = np.concatenate([removed, added]).T
    part = connected_components(coo_array((np.ones(edges.shape[1]), edges), (n, n)), directed=False)[1]
    removed = removed[np.argsort(part[removed[:, 0]], kind="stable")]
    added = added[np.argsort(part[added[:, 0]], kind="stable")]
    component = part[removed[:, 0]]
    first = np.append(0, np.unique(component, return_counts=True)[1].cumsum())
    shorter = distance(tour[removed[:, 0]], tour[removed[:, 1]]) - distance(
        tour[added[:, 0]], tour[added[:, 1]]
    )
    gain = np.add.reduceat(shorter, first[:-1]) if len(removed) else np.empty(0)
    return Exchanges(gain, first, removed, added)


def _subset(exchanges: Exchanges, wanted: NDArray[np.bool_]) -> Exchanges:
    """Return the wanted exchanges in their order."""
    sizes = np.diff(exchanges.first)
    rows, first = np.repeat(wanted, sizes), np.append(0, sizes[wanted].cumsum())
    return Exchanges(exchanges.gain[wanted], first, exchanges.removed[rows], exchanges.added[rows])


def _are_apart(edges: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return a mask of the pairs of positions (n, 2) of a tour of n cities that are not neighbours."""
    gap = np.abs(edges[:, 0] - edges[:, 1])
    return (gap > 1) & (gap < len(edges) - 1)
