"""Tours from outside, and which of a colony's tours they replace."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks


def in_order(tours: ArrayLike, lengths: ArrayLike, n: int) -> NDArray[np.int32]:
    """Return checked tours (m, n), the shortest by ``lengths`` (m,) first, ties as given."""
    rows = checks.permutations("tours", tours, n).astype(np.int32)
    told = checks.finite("lengths", lengths)
    if told.shape != (len(rows),):
        raise ValueError(f"lengths must have shape ({len(rows)},), got {told.shape}")
    return rows[told.argsort(kind="stable")]


def places(own: NDArray[np.float64], given: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return (ant, row) pairs: each row of ``given`` in turn replaces the longest tour, where it is shorter.

    ``own`` (m,) are the ants' lengths and ``given`` (e,) those of the tours that come. No row loses its place to one
    that comes later, unless that is shorter. Among equals the ant of the lowest number gives way.
    """
    lengths = own.copy()
    taken: dict[int, int] = {}
    for row, length in enumerate(given):
        longest = int(lengths.argmax())
        if length < lengths[longest]:
            lengths[longest], taken[longest] = length, row
    return list(taken.items())
