"""Block2: a set of AB-cycles (E-set) that are applied together, for children with many changes in one place.

Along a child, pieces of A and of B alternate. With fewer alternations the child has fewer subtours, and inherits longer
pieces of each parent. An alternation lies at a contact of two AB-cycles of which the child takes one: at a city of
both, or at the ends of a stretch that A and B share. A block is a set of AB-cycles around a centre, found by tabu
search for few alternations (Block2 strategy of Nagata and Kobayashi, 2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.memetic.ab_cycles import sort_by_region
from pymoo_gpuaco.memetic.stretches import edge_position, sort
from pymoo_gpuaco.runtime.compiled import (
    Int32_2d,
    Int32_3d,
    Int64_1d,
    Int64_2d,
    UInt8_1d,
    UInt8_2d,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import next_below, next_word

_PATIENCE = 20  # moves without a better set, after which the search ends
_LONGEST_TABU = 10  # maximum moves for which an added or removed cycle is tabu

_NONE = -1


@struct
class Contacts(NamedTuple):
    """Contacts between AB-cycles, see `make_contacts`."""

    centres: Int64_2d
    through: Int32_3d
    used: UInt8_2d
    shared: Int64_2d


@struct
class BlockSearch(NamedTuple):
    """Arrays of one search for a Block2 set, see `make_block_search`."""

    chosen: Int64_1d
    inside: UInt8_1d
    reached: Int64_1d
    is_reached: UInt8_1d
    counts: Int64_1d
    contact: Int64_1d
    tabu: Int64_1d


@struct
class Block(NamedTuple):
    """Row of `Contacts`, and the arrays of a `BlockSearch`."""

    centres: Int64_1d
    through: Int32_2d
    used: UInt8_1d
    shared: Int64_1d
    chosen: Int64_1d
    inside: UInt8_1d
    reached: Int64_1d
    is_reached: UInt8_1d
    counts: Int64_1d
    contact: Int64_1d
    tabu: Int64_1d


def make_contacts(n: int, pairs: int) -> Contacts:
    """Allocate the contacts of the AB-cycles of each of some pairs of tours of n cities."""
    return Contacts(
        centres=np.empty((pairs, n), np.int64),  # all cycles by region, the largest of each region first
        # one or two cycles at a city, else -1; -1 between calls
        through=np.full((pairs, n, 2), _NONE, np.int32),
        # 1: a cycle has the edge of A that follows a position; 0 between calls
        used=np.zeros((pairs, n), np.uint8),
        shared=np.empty((pairs, n), np.int64),  # contacts of a cycle with other cycles
    )


def make_block_search(n: int) -> BlockSearch:
    """Allocate a set of AB-cycles of tours of n cities, and the workspace of its search."""
    return BlockSearch(
        chosen=np.empty(n, np.int64),  # cycles of the set
        inside=np.zeros(n, np.uint8),  # 1: a cycle is in the set
        # cycles of the region that are or were in the set or in contact with it
        reached=np.empty(n, np.int64),
        is_reached=np.zeros(n, np.uint8),  # 1: a cycle is in ``reached``; 0 between calls
        counts=np.zeros(1, np.int64),  # number of reached cycles
        contact=np.empty(n, np.int64),  # contacts of a cycle with cycles of the set
        tabu=np.empty(n, np.int64),  # first move at which a cycle may be added or removed again
    )


@inlined
def block_of(contacts, pair, search):  # type: ignore[no-untyped-def]
    """Return the contacts of one pair, with the workspace of the search for a block."""
    c, w = contacts, search
    return Block(
        c.centres[pair],
        c.through[pair],
        c.used[pair],
        c.shared[pair],
        w.chosen,
        w.inside,
        w.reached,
        w.is_reached,
        w.counts,
        w.contact,
        w.tabu,
    )


@compiled_callee
def find_contacts(a, position, c, found, regions, w):  # type: ignore[no-untyped-def]
    """Find the contacts of the ``found`` cycles of ``c`` along A; ``reset_contacts`` resets the arrays."""
    for cycle in range(found):
        for i in range(c.first[cycle], c.first[cycle + 1]):
            city = c.cities[i]
            w.through[city, 0 if w.through[city, 0] == _NONE else 1] = cycle
        for i in range(c.first[cycle], c.first[cycle + 1], 2):
            w.used[edge_position(position, c.cities[i], c.cities[i + 1])] = 1
    _count_stretches(a, w)
    for cycle in range(found):
        w.shared[cycle] = 0
        for i in range(c.first[cycle], c.first[cycle + 1]):
            if _other(c.cities[i], cycle, w) != _NONE:
                w.shared[cycle] += 1
        # sort key: the largest cycle first, of equal sizes the one found first
        w.contact[cycle] = cycle - (_size(cycle, c) << 32)
    sort(w.contact, found)
    for i in range(found):
        w.contact[i] &= 0xFFFFFFFF
    sort_by_region(w.contact, found, regions, w.centres)


@compiled_callee
def _count_stretches(a, w):  # type: ignore[no-untyped-def]
    """Store a contact between the cycles at the two ends of each stretch that no cycle changes."""
    n, begin = a.shape[0], 0
    while begin < n and (w.through[a[begin], 0] == _NONE or w.used[begin]):
        begin += 1
    if begin == n:
        return
    open_city, p = a[begin], begin  # first city of the current stretch, or -1; one cycle passes each end
    for _ in range(n):
        p = p + 1 if p + 1 < n else 0
        city = a[p]
        if w.through[city, 0] == _NONE:
            continue
        if open_city >= 0:
            w.through[open_city, 1], w.through[city, 1] = w.through[city, 0], w.through[open_city, 0]
        open_city = np.int32(_NONE) if w.used[p] else city


@compiled_callee
def reset_contacts(position, c, found, w):  # type: ignore[no-untyped-def]
    """Reset ``through`` and ``used``."""
    for i in range(c.first[found]):
        w.through[c.cities[i], 0] = w.through[c.cities[i], 1] = _NONE
        w.used[position[c.cities[i]]] = 0  # the edge of A follows one of its two cities


@inlined
def _other(city, cycle, w):  # type: ignore[no-untyped-def]
    """Return the other cycle at a city, or -1."""
    one, two = w.through[city, 0], w.through[city, 1]
    if one == two:
        return np.int64(_NONE)
    return np.int64(two if one == cycle else one)


@inlined
def _reach(cycle, w):  # type: ignore[no-untyped-def]
    """Add a cycle to ``reached``, outside the set."""
    w.is_reached[cycle], w.reached[w.counts[0]] = 1, cycle
    w.inside[cycle] = w.contact[cycle] = w.tabu[cycle] = 0
    w.counts[0] += 1


@inlined
def _flip(cycle, c, region_of, w):  # type: ignore[no-untyped-def]
    """Add a cycle to the set or remove it."""
    w.inside[cycle] = 1 - w.inside[cycle]
    change = 1 if w.inside[cycle] else -1
    for i in range(c.first[cycle], c.first[cycle + 1]):
        other = _other(c.cities[i], cycle, w)
        if other != _NONE and region_of[other] == region_of[cycle]:
            if not w.is_reached[other]:
                _reach(other, w)
            w.contact[other] += change


@inlined
def _size(cycle, c):  # type: ignore[no-untyped-def]
    return c.first[cycle + 1] - c.first[cycle]


@inlined
def _write_chosen(w):  # type: ignore[no-untyped-def]
    """Write the set to ``chosen``; return its size."""
    count = 0
    for i in range(w.counts[0]):
        if w.inside[w.reached[i]]:
            w.chosen[count] = w.reached[i]
            count += 1
    return count


@compiled_callee
def choose_block(centre, c, region_of, stream, w):  # type: ignore[no-untyped-def]
    """Write a set of cycles around ``centre``, all of its region, to ``chosen``; return its size.

    The set begins with the centre and about half of the smaller cycles in contact with it. Only cycles in contact with
    the set are added or removed: a few of the hundreds of a region.
    """
    w.counts[0] = 0
    _reach(centre, w)
    _flip(centre, c, region_of, w)
    for i in range(1, w.counts[0]):  # cycles in contact with the centre
        other = w.reached[i]
        if _size(other, c) < _size(centre, c) and next_word(stream) & np.uint64(1):
            _flip(other, c, region_of, w)
    count = _write_chosen(w)
    # change of the alternations since the first set, now and for the best set
    contacts = fewest = np.int64(0)
    move = better = 0
    while move - better < _PATIENCE:
        move += 1
        best, least = _NONE, np.int64(0)
        at = next_below(stream, w.counts[0])
        for _ in range(w.counts[0]):
            at = at + 1 if at + 1 < w.counts[0] else 0
            cycle = w.reached[at]
            if cycle == centre or (not w.inside[cycle] and w.contact[cycle] == 0):
                continue
            change = w.shared[cycle] - 2 * w.contact[cycle]
            if w.inside[cycle]:
                change = -change
            if w.tabu[cycle] > move and contacts + change >= fewest:
                continue
            if best == _NONE or change < least:
                best, least = cycle, change
        if best == _NONE:  # all cycles are tabu
            continue
        _flip(best, c, region_of, w)
        w.tabu[best] = move + 1 + next_below(stream, _LONGEST_TABU) + 1
        contacts += least
        if contacts < fewest:
            fewest, better = contacts, move
            count = _write_chosen(w)
    for i in range(w.counts[0]):
        w.is_reached[w.reached[i]] = 0
    return count
