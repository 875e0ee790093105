"""Blocks: AB-cycles that go together, for children that change much in one place.

Where two AB-cycles share a city and a child takes one of them, an edge of A and one of B meet there. The fewer such
meetings, the more a child is whole pieces of A beside whole pieces of B, and the fewer subtours it falls into. A block
is a set of AB-cycles around one of them, found by tabu search for few meetings; none is larger than the one in the
centre, or the search would always end with all cycles that hang together. After the Block2 strategy of Nagata and
Kobayashi (2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.host.compiled import inlined, inner
from pymoo_gpuaco.host.philox import next_below

_PATIENCE = 20  # moves without a better set until the search ends
_LONGEST_TABU = 10  # moves for which a cycle that came or went stays where it is

_NONE = -1


class Block(NamedTuple):
    """A set of AB-cycles of tours of n cities, and the room that looking for one takes."""

    chosen: NDArray[np.int64]  # (n,) the cycles of the set
    centres: NDArray[np.int64]  # (n,) all cycles, in random order
    through: NDArray[np.int32]  # (n, 2) the one or two cycles through a city, or -1; -1 between calls
    inside: NDArray[np.uint8]  # (n,) whether a cycle is in the set
    shared: NDArray[np.int64]  # (n,) cities that a cycle shares with others
    contact: NDArray[np.int64]  # (n,) cities that a cycle shares with the others in the set
    tabu: NDArray[np.int64]  # (n,) move from which on a cycle may come or go again


def make_block(n: int) -> Block:
    """Allocate the arrays."""
    return Block(
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.full((n, 2), _NONE, np.int32),
        np.zeros(n, np.uint8),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
    )


@inner
def note_cycles(c, found, w):  # type: ignore[no-untyped-def]
    """Note the ``found`` cycles of ``c`` through each city; ``forget_cycles`` undoes it."""
    for cycle in range(found):
        for i in range(c.first[cycle], c.first[cycle + 1]):
            city = c.cities[i]
            w.through[city, 0 if w.through[city, 0] == _NONE else 1] = cycle
    for cycle in range(found):
        w.centres[cycle] = cycle
        w.shared[cycle] = 0
        for i in range(c.first[cycle], c.first[cycle + 1]):
            if _other(c.cities[i], cycle, w) != _NONE:
                w.shared[cycle] += 1


@inner
def forget_cycles(c, found, w):  # type: ignore[no-untyped-def]
    """Leave ``through`` as it was."""
    for i in range(c.first[found]):
        w.through[c.cities[i], 0] = w.through[c.cities[i], 1] = _NONE


@inlined
def _other(city, cycle, w):  # type: ignore[no-untyped-def]
    """The other cycle through a city, or -1 if there is none."""
    one, two = w.through[city, 0], w.through[city, 1]
    if one == two:
        return np.int64(_NONE)
    return np.int64(two if one == cycle else one)


@inlined
def _flip(cycle, c, w):  # type: ignore[no-untyped-def]
    """Let a cycle come or go."""
    w.inside[cycle] = 1 - w.inside[cycle]
    change = 1 if w.inside[cycle] else -1
    for i in range(c.first[cycle], c.first[cycle + 1]):
        other = _other(c.cities[i], cycle, w)
        if other != _NONE:
            w.contact[other] += change


@inlined
def _size(cycle, c):  # type: ignore[no-untyped-def]
    return c.first[cycle + 1] - c.first[cycle]


@inlined
def _write_down(found, w):  # type: ignore[no-untyped-def]
    """Write the set to ``chosen``; return how many cycles it has."""
    count = 0
    for cycle in range(found):
        if w.inside[cycle]:
            w.chosen[count] = cycle
            count += 1
    return count


@inner
def choose_block(centre, c, found, stream, w):  # type: ignore[no-untyped-def]
    """Write a set of cycles around ``centre`` to ``chosen``; return how many they are."""
    for cycle in range(found):
        w.inside[cycle] = w.contact[cycle] = w.tabu[cycle] = 0
    _flip(centre, c, w)
    largest = _size(centre, c)
    for i in range(c.first[centre], c.first[centre + 1]):
        other = _other(c.cities[i], centre, w)
        if other != _NONE and not w.inside[other] and _size(other, c) <= largest:
            _flip(other, c, w)
    count = _write_down(found, w)
    meetings = fewest = np.int64(0)  # against those of the first set
    move = last = 0
    while move - last < _PATIENCE:
        move += 1
        best, least = _NONE, np.int64(0)
        cycle = next_below(stream, found)
        for _ in range(found):
            cycle = cycle + 1 if cycle + 1 < found else 0
            if cycle == centre or w.tabu[cycle] > move or _size(cycle, c) > largest:
                continue
            if not w.inside[cycle] and w.contact[cycle] == 0:
                continue
            change = w.shared[cycle] - 2 * w.contact[cycle]
            if w.inside[cycle]:
                change = -change
            if best == _NONE or change < least:
                best, least = cycle, change
        if best == _NONE:
            break
        _flip(best, c, w)
        w.tabu[best] = move + 1 + next_below(stream, _LONGEST_TABU) + 1
        meetings += least
        if meetings < fewest:
            fewest, last = meetings, move
            count = _write_down(found, w)
    return count
