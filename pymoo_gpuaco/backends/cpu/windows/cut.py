"""Choice of disjoint windows: each grows around a centre along candidate lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import Int32_1d, Int32_2d, UInt8_1d, compiled

# Golden ratio: any number of its multiples modulo 1 is distributed evenly (Knuth, TAOCP 3, section 6.4).
_GOLDEN = 0.6180339887498949


def cut_windows(
    candidates: NDArray[np.int32],
    size: int,
    tour: NDArray[np.int32],
    position: NDArray[np.int32],
    first: int,
    count: int,
    dirty: NDArray[np.uint8],
    partner: NDArray[np.int32] | None = None,
    everywhere: bool = False,
) -> list[NDArray[np.int32]]:
    """Return ascending positions of the cities of windows ``first`` .. ``first + count - 1`` of a run, one list each.

    Centres are distributed over the tour. If any city is dirty, the centre is the next dirty city along the tour; once
    windows contain all of them the list ends, or with ``everywhere`` windows around other cities follow. A window has
    up to ``size`` cities.
    """
    n = len(tour)
    claimed, reach = np.zeros(n, np.uint8), np.empty(min(size, n), np.int32)
    windows = []
    any_dirty = bool(dirty.any())
    for index in range(first, first + count):
        start = place_of(index, n)
        p = _centre(tour, claimed, dirty, start, any_dirty)
        if p < 0 and everywhere:
            p = _centre(tour, claimed, dirty, start, False)
        if p < 0:
            break
        positions = np.sort(position[reach[: _grow(candidates, tour[p], claimed, reach)]])
        if partner is not None:
            positions = without_fixed_ends(positions, tour, partner)
        if len(positions):
            positions = _without_single_cities(positions, n)
        if len(positions) >= 8:
            windows.append(positions)
    return windows


def place_of(index: int, n: int) -> int:
    """Return the position, of n, from which window ``index`` of a run searches for its centre."""
    return int((index * _GOLDEN % 1.0) * n)


def without_fixed_ends(
    positions: NDArray[np.int32], tour: NDArray[np.int32], partner: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Remove the ends of runs whose edge into the run is fixed: their link out of the run is fixed, too."""
    n = len(tour)
    if len(positions) == n:
        return positions
    mate = partner[tour[positions]]
    before, after = np.roll(positions, 1), np.roll(positions, -1)
    begins, ends = (before + 1) % n != positions, (positions + 1) % n != after
    fixed_after, fixed_before = mate == tour[(positions + 1) % n], mate == tour[positions - 1]
    return positions[~((begins & fixed_after) | (ends & fixed_before))]


def _without_single_cities(positions: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """Remove positions without a neighbour in the window: both their edges would be fixed."""
    joined = np.diff(positions) == 1
    around = positions[0] == 0 and positions[-1] == n - 1 and n > 1
    return positions[np.append(around, joined) | np.append(joined, around)]


@compiled
def _centre(tour: Int32_1d, claimed: UInt8_1d, dirty: UInt8_1d, start: int, any_dirty: bool) -> int:
    """Return the first position from ``start`` on of an unclaimed city (a dirty one if ``any_dirty``), or -1."""
    n = tour.shape[0]
    for step in range(n):
        p = start + step
        if p >= n:
            p -= n
        if claimed[tour[p]] == 0 and (not any_dirty or dirty[tour[p]] == 1):
            return p
    return -1


@compiled
def _grow(candidates: Int32_2d, centre: int, claimed: UInt8_1d, reach: Int32_1d) -> int:
    """Claim cities breadth-first from the centre over candidates until ``reach`` is full; return their number."""
    reach[0] = centre
    claimed[centre] = 1
    head, count = 0, 1
    while head < count and count < reach.shape[0]:
        city = reach[head]
        head += 1
        for r in range(candidates.shape[1]):
            c = candidates[city, r]
            if claimed[c] == 0 and count < reach.shape[0]:
                claimed[c] = 1
                reach[count] = c
                count += 1
    return count
