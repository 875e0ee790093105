"""Blocks: AB-cycles that go together, for children that change much in one place.

Along a child, pieces of A and pieces of B take turns. The fewer such changes there are, the fewer subtours the child
falls into, and the more of each parent it keeps. A change lies where two AB-cycles meet of which the child takes one:
at a city that both run through, or at the two ends of a stretch that A and B share. A block is a set of AB-cycles
around one of them, found by tabu search for few changes. After the Block2 strategy of Nagata and Kobayashi (2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.regions import by_region
from pymoo_gpuaco.memetic.stretches import edge_position, sort
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import next_below, next_word

_PATIENCE = 20  # moves without a better set until the search ends
_LONGEST_TABU = 10  # moves for which a cycle that came or went stays where it is

_NONE = -1


class Block(NamedTuple):
    """A set of AB-cycles of tours of n cities, and a workspace to look for one in."""

    chosen: NDArray[np.int64]  # (n,) the cycles of the set
    centres: NDArray[np.int64]  # (n,) all cycles, region by region, the largest of each first
    through: NDArray[np.int32]  # (n, 2) the one or two cycles that meet at a city, or -1; -1 between calls
    used: NDArray[np.uint8]  # (n,) whether a cycle has the edge of A behind a position; 0 between calls
    inside: NDArray[np.uint8]  # (n,) whether a cycle is in the set
    met: NDArray[np.int64]  # (n,) cycles of the region that are in the set, or have met one that was
    is_met: NDArray[np.uint8]  # (n,) whether a cycle is among them; 0 between calls
    counts: NDArray[np.int64]  # (1,) how many they are
    shared: NDArray[np.int64]  # (n,) where a cycle meets others
    contact: NDArray[np.int64]  # (n,) where a cycle meets the others in the set
    tabu: NDArray[np.int64]  # (n,) move from which on a cycle may come or go again


def make_block(n: int) -> Block:
    """Allocate the arrays."""
    return Block(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.full((n, 2), _NONE, np.int32),
        np.zeros(n, np.uint8),
        np.zeros(n, np.uint8),
        np.empty(n, np.int64),
        np.zeros(n, np.uint8),
        np.zeros(1, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )


@compiled_callee
def note_cycles(a, position, c, found, regions, w):  # type: ignore[no-untyped-def]
    """Note where the ``found`` cycles of ``c``, parted by region, meet along A; ``forget_cycles`` undoes it."""
    for cycle in range(found):
        for i in range(c.first[cycle], c.first[cycle + 1]):
            city = c.cities[i]
            w.through[city, 0 if w.through[city, 0] == _NONE else 1] = cycle
        for i in range(c.first[cycle], c.first[cycle + 1], 2):
            w.used[edge_position(position, c.cities[i], c.cities[i + 1])] = 1
    _note_stretches(a, w)
    for cycle in range(found):
        w.shared[cycle] = 0
        for i in range(c.first[cycle], c.first[cycle + 1]):
            if _other(c.cities[i], cycle, w) != _NONE:
                w.shared[cycle] += 1
        # the largest first; of equal ones, that which was found first
        w.contact[cycle] = cycle - (_size(cycle, c) << 32)
    sort(w.contact, found)
    for i in range(found):
        w.contact[i] &= 0xFFFFFFFF
    by_region(w.contact, found, regions, w.centres)


@compiled_callee
def _note_stretches(a, w):  # type: ignore[no-untyped-def]
    """Let the cycles at both ends of each stretch that no cycle touches meet there."""
    n, begin = a.shape[0], 0
    while begin < n and (w.through[a[begin], 0] == _NONE or w.used[begin]):
        begin += 1
    if begin == n:
        return
    open_city, p = a[begin], begin  # where a stretch begins, or -1: each end of one is in one cycle
    for _ in range(n):
        p = p + 1 if p + 1 < n else 0
        city = a[p]
        if w.through[city, 0] == _NONE:
            continue
        if open_city >= 0:
            w.through[open_city, 1], w.through[city, 1] = w.through[city, 0], w.through[open_city, 0]
        open_city = np.int32(_NONE) if w.used[p] else city


@compiled_callee
def forget_cycles(position, c, found, w):  # type: ignore[no-untyped-def]
    """Leave ``through`` and ``used`` as they were."""
    for i in range(c.first[found]):
        w.through[c.cities[i], 0] = w.through[c.cities[i], 1] = _NONE
        w.used[position[c.cities[i]]] = 0  # an edge of A lies behind one of its cities


@inlined
def _other(city, cycle, w):  # type: ignore[no-untyped-def]
    """The other cycle at a city, or -1 if there is none."""
    one, two = w.through[city, 0], w.through[city, 1]
    if one == two:
        return np.int64(_NONE)
    return np.int64(two if one == cycle else one)


@inlined
def _meet(cycle, w):  # type: ignore[no-untyped-def]
    """Put a cycle, which is not there yet, among those met."""
    w.is_met[cycle], w.met[w.counts[0]] = 1, cycle
    w.inside[cycle] = w.contact[cycle] = w.tabu[cycle] = 0
    w.counts[0] += 1


@inlined
def _flip(cycle, c, regions, w):  # type: ignore[no-untyped-def]
    """Let a cycle come or go."""
    w.inside[cycle] = 1 - w.inside[cycle]
    change = 1 if w.inside[cycle] else -1
    for i in range(c.first[cycle], c.first[cycle + 1]):
        other = _other(c.cities[i], cycle, w)
        if other != _NONE and regions.of[other] == regions.of[cycle]:
            if not w.is_met[other]:
                _meet(other, w)
            w.contact[other] += change


@inlined
def _size(cycle, c):  # type: ignore[no-untyped-def]
    return c.first[cycle + 1] - c.first[cycle]


@inlined
def _write_down(w):  # type: ignore[no-untyped-def]
    """Write the set to ``chosen``; return how many cycles it has."""
    count = 0
    for i in range(w.counts[0]):
        if w.inside[w.met[i]]:
            w.chosen[count] = w.met[i]
            count += 1
    return count


@compiled_callee
def choose_block(centre, c, regions, stream, w):  # type: ignore[no-untyped-def]
    """Write a set of cycles around ``centre`` and of its region to ``chosen``; return how many they are.

    It begins as the centre and about half of the smaller cycles that it meets. Only cycles that meet the set come or
    go: a region has hundreds, of which a set meets a few.
    """
    w.counts[0] = 0
    _meet(centre, w)
    _flip(centre, c, regions, w)
    for i in range(1, w.counts[0]):  # whom the centre meets
        other = w.met[i]
        if _size(other, c) < _size(centre, c) and next_word(stream) & np.uint64(1):
            _flip(other, c, regions, w)
    count = _write_down(w)
    meetings = fewest = np.int64(0)  # against those of the first set
    move = better = 0
    while move - better < _PATIENCE:
        move += 1
        best, least = _NONE, np.int64(0)
        at = next_below(stream, w.counts[0])
        for _ in range(w.counts[0]):
            at = at + 1 if at + 1 < w.counts[0] else 0
            cycle = w.met[at]
            if cycle == centre or (not w.inside[cycle] and w.contact[cycle] == 0):
                continue
            change = w.shared[cycle] - 2 * w.contact[cycle]
            if w.inside[cycle]:
                change = -change
            if w.tabu[cycle] > move and meetings + change >= fewest:
                continue
            if best == _NONE or change < least:
                best, least = cycle, change
        if best == _NONE:  # until a cycle may move again
            continue
        _flip(best, c, regions, w)
        w.tabu[best] = move + 1 + next_below(stream, _LONGEST_TABU) + 1
        meetings += least
        if meetings < fewest:
            fewest, better = meetings, move
            count = _write_down(w)
    for i in range(w.counts[0]):
        w.is_met[w.met[i]] = 0
    return count
