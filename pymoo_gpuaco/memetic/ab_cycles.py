"""AB-cycles: the difference of two tours A and B, split into closed walks that alternate edges of A and of B.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). Every city has as many edges of only A as of only B, so such walks
always close. At a city with two edges of each kind, the next edge is random.

A long tour A is split by position into regions, which are shifted in every generation. The AB-cycles of one child are
chosen in each region, and all of them are applied to A together. An AB-cycle belongs to the region of its first edge of
A. With a single choice per generation, the number of generations would grow with the number of cities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.memetic.partition_crossover import adjacent
from pymoo_gpuaco.memetic.stretches import edge_position
from pymoo_gpuaco.runtime.compiled import (
    Int32_1d,
    Int32_2d,
    Int32_3d,
    Int64_1d,
    Int64_2d,
    UInt64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import next_below, next_word

_A, _B = 0, 1
# Minimum cities of a region; shorter tours are one region. On d15112 three regions took two thirds of the time of one,
# and 28 tours became as short. On pla7397 two regions took twice the time of one.
REGION = 5_000


@struct
class Cycles(NamedTuple):
    """AB-cycles of two tours, see `make_cycles`."""

    cities: Int32_1d
    first: Int64_1d
    differing: Int32_1d
    unused_ends: Int32_3d
    unused: Int32_2d
    left_at: Int32_2d
    path: Int32_1d


def make_cycles(n: int) -> Cycles:
    """Allocate the AB-cycles of two tours of n cities, and the workspace of the search for them."""
    return Cycles(
        cities=np.empty(2 * n, np.int32),  # cities of all cycles; each cycle begins with an edge of A
        first=np.zeros(n + 1, np.int64),  # cycle c is cities[first[c]] .. cities[first[c+1]-1]
        differing=np.empty(n, np.int32),  # cities with an edge of only one tour, in any order
        # other ends of the edges of only A, or of only B, that are in no cycle yet
        unused_ends=np.empty((2, n, 2), np.int32),
        unused=np.zeros((2, n), np.int32),  # number of these ends; 0 between calls
        # step at which the walk left a city by an edge of A, or of B; -1 between calls
        left_at=np.full((2, n), -1, np.int32),
        path=np.empty(2 * n + 1, np.int32),  # cities of the walk
    )


@compiled
def find_cycles(
    a: Int32_1d, position_a: Int32_1d, b: Int32_1d, position_b: Int32_1d, stream: UInt64_1d, c: Cycles
) -> int:
    """Find the AB-cycles of the tours a and b by walks from random cities; return their number.

    ``position_a`` and ``position_b`` are the positions of the cities in the tours.
    """
    count = _store_difference(_A, a, position_b, 0, c)
    count = _store_difference(_B, b, position_a, count, c)
    left, found = count, 0
    while left > 0:
        i = next_below(stream, left)
        start = c.differing[i]
        if c.unused[_A, start] == 0:
            left -= 1
            c.differing[i], c.differing[left] = c.differing[left], start
        else:
            found = _walk(start, found, stream, c)
    return found


@compiled_callee
def _store_difference(kind, tour, other_position, count, c):  # type: ignore[no-untyped-def]
    """Store the edges that only this tour has, and their cities; return the number of cities so far."""
    n = tour.shape[0]
    u, p = tour[n - 1], other_position[tour[n - 1]]
    for i in range(n):
        v = tour[i]
        q = other_position[v]
        if not adjacent(n, p, q):
            count = _store_end(kind, u, v, count, c)
            count = _store_end(kind, v, u, count, c)
        u, p = v, q
    return count


@inlined
def _store_end(kind, city, end, count, c):  # type: ignore[no-untyped-def]
    if c.unused[_A, city] == 0:  # new: edges of A are stored first, and no city has only edges of B
        c.differing[count] = city
        count += 1
    c.unused_ends[kind, city, c.unused[kind, city]] = end
    c.unused[kind, city] += 1
    return count


@inlined
def _remove_end(kind, city, at, c):  # type: ignore[no-untyped-def]
    """Remove end ``at`` of a city from the unused ones."""
    c.unused[kind, city] -= 1
    c.unused_ends[kind, city, at] = c.unused_ends[kind, city, c.unused[kind, city]]


@compiled_callee
def _walk(start, found, stream, c):  # type: ignore[no-untyped-def]
    """Walk until an edge of B returns to the start; return the number of cycles.

    If the walk returns to a city that it left by an edge of the next kind, its part since then is a cycle, which is cut
    off.
    """
    steps, kind, city = 0, _A, start
    c.path[0] = start
    while True:
        at = np.int64(0)
        if c.unused[kind, city] > 1:
            at = np.int64(next_word(stream) & np.uint64(1))
        to = c.unused_ends[kind, city, at]
        _remove_end(kind, city, at, c)
        _remove_end(kind, to, 0 if c.unused_ends[kind, to, 0] == city else 1, c)
        c.left_at[kind, city] = steps
        steps += 1
        c.path[steps] = city = to
        kind = 1 - kind
        cycle_start = c.left_at[kind, city]
        if cycle_start >= 0:
            _cut_off(cycle_start, steps, kind, found, c)
            found += 1
            steps = cycle_start
            if steps == 0:
                return found


@inlined
def _cut_off(cycle_start, steps, kind, cycle, c):  # type: ignore[no-untyped-def]
    """Store the end of the walk as a cycle; its first edge is of ``kind`` _A or _B."""
    length, first = steps - cycle_start, c.first[cycle]
    for i in range(length):
        # from the second edge if the first is of B
        c.cities[first + i] = c.path[cycle_start + (i + kind) % length]
        c.left_at[(kind + i) & 1, c.path[cycle_start + i]] = -1
    c.first[cycle + 1] = first + length


@struct
class Regions(NamedTuple):
    """AB-cycles of each pair by region, see `make_regions`."""

    of: Int32_2d
    first: Int64_2d
    cycles: Int64_2d
    gain: Int64_2d
    n_chosen: Int64_2d
    chosen: Int64_2d
    united: Int64_2d


@struct
class PairRegions(NamedTuple):
    """Row of `Regions`: AB-cycles of one pair by region."""

    of: Int32_1d
    first: Int64_1d
    cycles: Int64_1d
    gain: Int64_1d
    n_chosen: Int64_1d
    chosen: Int64_1d
    united: Int64_1d


def count_regions(n: int) -> int:
    """Return the number of regions of a tour of n cities."""
    return max(1, n // REGION)


def make_regions(n: int, pairs: int) -> Regions:
    """Allocate the regions of each of some pairs of tours of n cities: their AB-cycles, and the choice in each region.

    Functions take the arrays of one pair, see `regions_of`.
    """
    regions = count_regions(n)
    return Regions(
        of=np.zeros((pairs, n), np.int32),  # region of a cycle
        # region r has cycles[first[r]] .. cycles[first[r+1]-1]
        first=np.zeros((pairs, regions + 1), np.int64),
        cycles=np.empty((pairs, n), np.int64),  # by region, in the order in which they were found
        # gain of the choice in each region, applied alone; 0: no choice
        gain=np.zeros((pairs, regions), np.int64),
        n_chosen=np.zeros((pairs, regions), np.int64),  # number of cycles of each choice
        chosen=np.empty((pairs, n), np.int64),  # cycles of the choices; those of region r begin at first[r]
        united=np.empty((pairs, n), np.int64),  # cycles of the choices of several regions
    )


@inlined
def regions_of(all_regions, pair):  # type: ignore[no-untyped-def]
    """Return the regions of one pair."""
    r = all_regions
    return PairRegions(
        r.of[pair],
        r.first[pair],
        r.cycles[pair],
        r.gain[pair],
        r.n_chosen[pair],
        r.chosen[pair],
        r.united[pair],
    )


@compiled_callee
def assign_regions(position, c, found, shift, regions):  # type: ignore[no-untyped-def]
    """Sort the ``found`` cycles of ``c`` by region; region 0 begins ``shift`` positions before position 0."""
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
        _append(cycle, regions.cycles, regions)
    _reset_offsets(regions)


@compiled_callee
def sort_by_region(cycles, found, regions, out):  # type: ignore[no-untyped-def]
    """Write ``found`` cycles to ``out`` by region; the order within a region is unchanged."""
    for i in range(found):
        _append(cycles[i], out, regions)
    _reset_offsets(regions)


@inlined
def _append(cycle, out, regions):  # type: ignore[no-untyped-def]
    """Append a cycle to its region in ``out``, and advance ``first``."""
    r = regions.of[cycle]
    out[regions.first[r]] = cycle
    regions.first[r] += 1


@inlined
def _reset_offsets(regions):  # type: ignore[no-untyped-def]
    """Restore ``first`` after all cycles are appended."""
    for r in range(regions.gain.shape[0] - 1, 0, -1):
        regions.first[r] = regions.first[r - 1]
    regions.first[0] = 0
