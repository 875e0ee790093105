"""How a tour is packed for its way: as its cities, or as stretches of a tour that the receiver has, where that is less.

Good tours of one problem share most of their edges: what two islands do not share is a small part of a large tour.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks


class PackedTour(TypedDict):
    """A tour on its way; ``stretches`` tells what ``numbers`` are."""

    stretches: bool
    numbers: NDArray[np.int32]  # (n,) cities, or (s, 3): first position in the base, how many, +1 or -1


def pack(tour: NDArray[np.int32], base: NDArray[np.int32] | None) -> PackedTour:
    """Pack a tour (n,) for somebody who has the tour ``base`` (n,), or none of ours."""
    tour = np.ascontiguousarray(tour, np.int32)
    if base is not None:
        stretches = _stretches(tour, base)
        if stretches.size < len(tour):
            return {"stretches": True, "numbers": stretches}
    return {"stretches": False, "numbers": tour}


def unpack(packed: PackedTour, base: NDArray[np.int32] | None, n: int) -> NDArray[np.int32]:
    """Return the tour (n,) int32 that ``pack`` was given, the base being the same.

    Raises ValueError where what has come is no tour of n cities, or needs a base and there is none.
    """
    numbers = np.asarray(packed["numbers"])
    if not packed["stretches"]:
        return checks.permutations("the tour that has come", numbers.reshape(1, -1), n)[0].astype(np.int32)
    if base is None:
        raise ValueError("a difference has come, and the tour that it differs from is not here")
    first, count, step = numbers.reshape(-1, 3).astype(np.int64).T
    if count.sum() != n or count.min(initial=1) < 1:
        raise ValueError(f"the stretches that have come must have {n} cities, got {int(count.sum())}")
    within = np.arange(n) - np.repeat(np.cumsum(count) - count, count)
    positions = (np.repeat(first, count) + within * np.repeat(step, count)) % n
    return checks.permutations("the tour that has come", base[positions][None], n)[0].astype(np.int32)


def _stretches(tour: NDArray[np.int32], base: NDArray[np.int32]) -> NDArray[np.int32]:
    """The fewest stretches (s, 3) of ``base``, forwards or backwards around it, that make ``tour``."""
    n = len(tour)
    where = np.empty(n, np.int64)
    where[base] = np.arange(n)
    position = where[tour]
    ahead = np.diff(position) % n
    # a permutation cannot turn around in the middle of a stretch, so breaks are where no neighbour follows
    breaks = np.flatnonzero((ahead != 1) & (ahead != n - 1)) + 1
    first = np.concatenate(([0], breaks))
    count = np.diff(np.append(first, n))
    direction = np.ones(len(first), np.int64)
    longer = count > 1
    direction[longer] = np.where(ahead[first[longer]] == 1, 1, -1)
    return np.column_stack((position[first], count, direction)).astype(np.int32)
