"""Partition crossover: a tour takes from another tour every component of their difference in which that is shorter.

The edges of only one of two tours form connected components. In each component every city loses as many edges as it
gains, so each component is an exchange, and the commit applies those that shorten the tour. See Whitley, Hains and
Howe, "Tunneling between optima", GECCO 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.ascent import representative
from pymoo_gpuaco.memetic.commit import Exchanges, commit
from pymoo_gpuaco.runtime.compiled import Int32_1d, Int32_2d, compiled, inlined

Distance = Callable[[NDArray[np.int32], NDArray[np.int32]], NDArray[np.float64]]


def merge(
    tour: NDArray[np.int32], other: NDArray[np.int32], distance: Distance
) -> tuple[NDArray[np.int32], float]:
    """Merge ``other`` into ``tour``, both (n,) permutations of 0 .. n-1 with n >= 3; neither changes.

    ``distance(i, j)`` returns the symmetric lengths of the edges between cities i and j (arrays of equal shape).
    Returns a new tour, never longer than the shorter of the two, and its gain over ``tour`` in units of ``distance``.
    """
    exchanges = difference(tour, other, distance)
    total = max(0.0, float(exchanges.gain.sum()))
    if total > 0.0:  # the other tour is shorter: merge this one into it
        tour, exchanges = other, difference(other, tour, distance)
    accepted, merged = commit(np.ascontiguousarray(tour, np.int32), exchanges, only_gains=True)
    return merged, total + float(exchanges.gain[accepted].sum())


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
    tour, other = np.ascontiguousarray(tour, np.int32), np.ascontiguousarray(other, np.int32)
    position, other_position, parent = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    removed, added = np.empty((n, 2), np.int32), np.empty((n, 2), np.int32)
    r = _differing_edges(tour, other, position, other_position, parent, removed, added)
    removed, added = removed[:r], added[:r]
    component = _roots(parent, removed[:, 0])
    removed = removed[np.argsort(component, kind="stable")]
    added = added[np.argsort(_roots(parent, added[:, 0]), kind="stable")]
    sizes = np.unique(component, return_counts=True)[1]
    first = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=first[1:])
    shorter = distance(tour[removed[:, 0]], tour[removed[:, 1]]) - distance(
        tour[added[:, 0]], tour[added[:, 1]]
    )
    gain = np.add.reduceat(shorter, first[:-1]) if len(sizes) else np.empty(0)
    return Exchanges(gain, first, removed, added)


@inlined
def adjacent(n, p, q):  # type: ignore[no-untyped-def]
    """Return True if two positions of a tour of n cities are neighbours; the last and the first are."""
    gap = abs(p - q)
    return gap == 1 or gap == n - 1


@compiled
def _differing_edges(
    tour: Int32_1d,
    other: Int32_1d,
    position: Int32_1d,
    other_position: Int32_1d,
    parent: Int32_1d,
    removed: Int32_2d,
    added: Int32_2d,
) -> int:
    """Write the edges of only one tour, as positions in ``tour``, and join their ends in ``parent``.

    ``position`` and ``other_position`` get the positions of the cities in ``tour`` and in ``other``. Returns the number
    of edges on each side.
    """
    n = tour.shape[0]
    for p in range(n):
        position[tour[p]] = p
        other_position[other[p]] = p
        parent[p] = p
    outs = ins = 0
    for p in range(n):
        q = p + 1 if p + 1 < n else 0
        if not adjacent(n, other_position[tour[p]], other_position[tour[q]]):
            removed[outs, 0], removed[outs, 1] = p, q
            outs += 1
            parent[representative(parent, p)] = representative(parent, q)
        a, b = position[other[p]], position[other[q]]
        if not adjacent(n, a, b):
            added[ins, 0], added[ins, 1] = a, b
            ins += 1
            parent[representative(parent, a)] = representative(parent, b)
    return outs


def _roots(parent: NDArray[np.int32], positions: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the roots (r,) of positions (r,) in a forest."""
    while not np.array_equal(parent[positions], positions):
        positions = parent[positions]
    return positions
