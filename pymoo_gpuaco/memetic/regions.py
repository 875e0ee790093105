"""Regions: stretches of tour A, in each of which one child's AB-cycles are chosen, to go into A together.

One choice a generation would let the generations that a population needs grow with the number of cities. So a long tour
is parted by position, at other places in every generation, and an AB-cycle belongs where its first edge of A lies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.stretches import edge_position
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

# Cities. Tours of fewer than two regions are one. Of d15112 three regions took two thirds of one's time, and 28 tours
# ended as short; two regions of pla7397 took twice one's.
REGION = 5_000


class Regions(NamedTuple):
    """The AB-cycles of tours of n cities, region by region, and what was chosen in each."""

    of: NDArray[np.int32]  # (n,) region of a cycle
    first: NDArray[np.int64]  # (regions + 1,) region r has the cycles first[r] .. first[r+1]-1 of ``cycles``
    cycles: NDArray[np.int64]  # (n,) in the order in which they were found
    gain: NDArray[np.int64]  # (regions,) of the child chosen in each region, by itself; 0 where there is none
    first_chosen: NDArray[np.int64]  # (regions + 1,) its cycles are so of ``chosen``
    chosen: NDArray[np.int64]  # (n,)
    united: NDArray[np.int64]  # (n,) cycles of several regions' children


def count_regions(n: int) -> int:
    """Return how many regions tours of n cities have."""
    return max(1, n // REGION)


def make_regions(n: int) -> Regions:
    """Allocate the arrays."""
    regions = count_regions(n)
    return Regions(
        np.zeros(n, np.int32),
        np.zeros(regions + 1, np.int64),
        np.empty(n, np.int64),
        np.zeros(regions, np.int64),
        np.zeros(regions + 1, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )


@compiled_callee
def part_cycles(position, c, found, shift, regions):  # type: ignore[no-untyped-def]
    """Part the ``found`` cycles of ``c`` by region; region 0 begins ``shift`` positions before the tour's first one."""
    n, parts = position.shape[0], regions.gain.shape[0]
    for r in range(parts + 1):
        regions.first[r] = 0
    for cycle in range(found):
        at = c.first[cycle]
        p = edge_position(position, c.cities[at], c.cities[at + 1]) + shift
        r = (p if p < n else p - n) * parts // n
        regions.of[cycle] = r
        regions.first[r + 1] += 1
    for r in range(parts):
        regions.first[r + 1] += regions.first[r]
    for cycle in range(found):
        _put(cycle, regions.cycles, regions)
    _begin_again(regions)


@compiled_callee
def by_region(cycles, found, regions, out):  # type: ignore[no-untyped-def]
    """Write all cycles to ``out``, region by region, those of one in the order that they are given in."""
    for i in range(found):
        _put(cycles[i], out, regions)
    _begin_again(regions)


@inlined
def _put(cycle, out, regions):  # type: ignore[no-untyped-def]
    """Write a cycle where its region's next one goes; ``first`` moves on."""
    r = regions.of[cycle]
    out[regions.first[r]] = cycle
    regions.first[r] += 1


@inlined
def _begin_again(regions):  # type: ignore[no-untyped-def]
    """Let ``first`` be as before all cycles were put."""
    for r in range(regions.gain.shape[0] - 1, 0, -1):
        regions.first[r] = regions.first[r - 1]
    regions.first[0] = 0
