"""Migration: topologies, migrants, and the size of messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOPOLOGIES = ("all", "ring", "none")
MOST_CITIES = 1 << 21  # total cities of one message: 8 MB
# Maximum waiting migrants of an island with one objective: more of them cost memory and transfer.
MOST_MIGRANTS = 200


class Migrants(NamedTuple):
    """Tours (e, n) on their way between islands, and their objectives (e, k)."""

    tours: NDArray[np.int32]
    values: NDArray[np.float64]

    def __add__(self, other: Any) -> Migrants:
        """Concatenate both."""
        return Migrants(
            np.concatenate([self.tours, other.tours]), np.concatenate([self.values, other.values])
        )

    def take(self, rows: Any) -> Migrants:
        """Return the tours at ``rows``, an index of NumPy."""
        return Migrants(self.tours[rows], self.values[rows])


def no_migrants(n: int, k: int = 1) -> Migrants:
    """Return no tours of n cities with k objectives."""
    return Migrants(np.empty((0, n), np.int32), np.empty((0, k)))


def receivers(topology: str, giver: int, n_islands: int) -> list[int]:
    """Return the islands that receive the tours of island ``giver``."""
    if topology == "all":
        return [number for number in range(n_islands) if number != giver]
    after = (giver + 1) % n_islands
    return [after] if topology == "ring" and after != giver else []


def tours_a_message(n: int) -> int:
    """Return the maximum number of tours of n cities in a message."""
    return max(1, MOST_CITIES // n)


def shortest(migrants: Migrants) -> Migrants:
    """Return the migrants with the least objectives, at most MOST_MIGRANTS and at most one message."""
    most = min(MOST_MIGRANTS, tours_a_message(migrants.tours.shape[1]))
    if len(migrants.tours) <= most:
        return migrants
    return migrants.take(np.sort(migrants.values[:, 0].argsort(kind="stable")[:most]))


def digests(rows: Iterable[NDArray[Any]]) -> list[int]:
    """Return a number of 64 bits for each row, equal for equal rows on all hosts."""
    return [int.from_bytes(hashlib.blake2b(row.tobytes(), digest_size=8).digest(), "little") for row in rows]
