"""Cities that share a place. A list must not fill up with them, or the place is cut off from the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.host.compiled import compiled


class Places(NamedTuple):
    """Distinct places of n cities in the plane, numbered by their first city; p places."""

    x: NDArray[np.float64]  # (p,)
    y: NDArray[np.float64]  # (p,)
    first: NDArray[np.int32]  # (p + 1,) the cities of place i are member[first[i] : first[i + 1]]
    member: NDArray[np.int32]  # (n,) cities by place, ascending within one


def find_places(x: NDArray[np.float64], y: NDArray[np.float64]) -> Places:
    """Group cities at (n,) coordinates by place, in O(n)."""
    n = len(x)
    # Adding 0 turns -0.0 into 0.0, the same place with other bits.
    bits_x, bits_y = (x + 0.0).view(np.uint64), (y + 0.0).view(np.uint64)
    table = np.full(1 << (2 * n).bit_length(), -1, np.int32)
    place, founder = np.empty(n, np.int32), np.empty(n, np.int32)
    p = int(_number_places(bits_x, bits_y, table, place, founder))
    if p == n:
        return Places(x, y, np.arange(n + 1, dtype=np.int32), np.arange(n, dtype=np.int32))
    first = np.zeros(p + 1, np.int32)
    np.cumsum(np.bincount(place, minlength=p), out=first[1:])
    member = np.argsort(place, kind="stable").astype(np.int32)
    return Places(x[founder[:p]], y[founder[:p]], first, member)


@compiled
def _number_places(bits_x, bits_y, table, place, founder):  # type: ignore[no-untyped-def]
    """Number places in order of appearance, by a hash table with open addressing; return how many there are."""
    mask = np.uint64(table.shape[0] - 1)
    count = 0
    for city in range(bits_x.shape[0]):
        # The golden ratio's bits and another odd number, so that the grid of the coordinates spreads.
        h = bits_x[city] * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(29)) ^ bits_y[city]) * np.uint64(0xD6E8FEB86659FD93)
        slot = (h ^ (h >> np.uint64(32))) & mask
        while True:
            known = table[slot]
            if known < 0:
                table[slot] = count
                place[city], founder[count] = count, city
                count += 1
                break
            if bits_x[founder[known]] == bits_x[city] and bits_y[founder[known]] == bits_y[city]:
                place[city] = known
                break
            slot = (slot + np.uint64(1)) & mask
    return count
