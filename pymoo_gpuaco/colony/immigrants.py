"""Immigrant tours, and the tours of a colony that they replace."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks


def in_order(tours: ArrayLike, lengths: ArrayLike, n: int) -> NDArray[np.int32]:
    """Return validated tours (m, n) in the order of ``lengths`` (m,), ties in the given order."""
    rows = checks.permutations("tours", tours, n).astype(np.int32)
    values = checks.finite("lengths", lengths)
    if values.shape != (len(rows),):
        raise ValueError(f"lengths must have shape ({len(rows)},), got {values.shape}")
    return rows[values.argsort(kind="stable")]


def places(own: NDArray[np.float64], given: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return (ant, row) pairs: each row of ``given`` in turn replaces the longest tour if it is shorter.

    ``own`` (m,) and ``given`` (e,) are the lengths of the ants and of the immigrants. A later row replaces an earlier
    one only if it is shorter. Of equally long tours, that of the lowest ant is replaced.
    """
    lengths = own.copy()
    taken: dict[int, int] = {}
    for row, length in enumerate(given):
        longest = int(lengths.argmax())
        if length < lengths[longest]:
            lengths[longest], taken[longest] = length, row
    return list(taken.items())
