"""Edge assembly of members of a front: tours between two of its tours, an AB-cycle of theirs at a time.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013): tour A with the edges of B along one AB-cycle, its subtours joined by
exchanges of two edges, the shortest first. Here it is shortest by a weighted sum, and every such tour is a child.

What chains of few exchanges do not lead to, this may: two members differ in many edges at once. A child is known by
what it changes, see ``memetic.child``, and so are its lengths: only one that the front lacks is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.ab_cycles import Cycles, find_cycles, make_cycles
from pymoo_gpuaco.memetic.child import REFUSED, Child, breeder, make_child
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.pareto.costs import Costs, cost
from pymoo_gpuaco.pareto.device import Front
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.pareto.nd_tree import tree_covers
from pymoo_gpuaco.pareto.seen import key_of, slot_of
from pymoo_gpuaco.pareto.stairs import stairs_cover
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import STREAM_ASSEMBLY, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

MOST_OF_PAIR = 32  # children that are made of one pair of members
# Pairs of one call, and their cities: a call takes as long as assembling a pair of a hundred cities.
_PAIRS_AT_ONCE, _CITIES_AT_ONCE = 32, 8192
# Cities from either end of a subtour's stretch that may join it to another. Of a thousand cities a pair takes half as
# long as with all of them, and leads to as much of the front but a twentieth.
_REACH = 10
_BREADTH = 10  # candidates of a city that subtours are joined by
_FARTHEST_MATE = 8.0  # steps along the archive to a mate, as a power of two
# Whole units of a tour's weighted length, and of an edge at most: sums of a few edges stay below 2^63.
_UNITS, _MOST_UNITS = 2.0**40, 2.0**58


class Couples(NamedTuple):
    """m pairs of tours A and B of n cities, k objectives."""

    tours: NDArray[np.int32]  # (m, n) A
    others: NDArray[np.int32]  # (m, n) B
    lengths: NDArray[np.float64]  # (m, k) of A
    weights: NDArray[np.float64]  # (m, k) under which subtours are joined


def drawn_couples(m: int, most: int, draw: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Couples i, j of m tours in the order of a front, at most so many: the nearer the mate, the more often."""
    i = np.sort(draw.permutation(m)[:most])
    steps = (2.0 ** draw.uniform(0.0, _FARTHEST_MATE, len(i))).astype(np.intp)
    j = i + np.where(draw.random(len(i)) < 0.5, steps, -steps)
    inside = (j >= 0) & (j < m)
    return i[inside], j[inside]


class Weighted(NamedTuple):
    """A weighted sum of the objectives, as `breeder` asks what edges cost."""

    costs: Costs
    weights: NDArray[np.float64]  # (k,)
    partner: NDArray[np.int32]  # (0,): no edge must stay


class Room(NamedTuple):
    """Where one thread works on tours of n cities, k objectives."""

    positions: NDArray[np.int32]  # (2, n) of each city in A and in B
    cycles: Cycles
    cycle: NDArray[np.int64]  # (1,) the one whose child is made
    child: Child
    moved: NDArray[np.int32]  # (n,) position of each city in a child
    partner: NDArray[np.int32]  # (0,), see ``Weighted``
    one: NDArray[np.float64]  # (k,) lengths of a child
    way: NDArray[np.int32]  # (nodes,) of the front's tree
    cover: NDArray[np.float64]  # (k,) see `tree_covers`
    children: NDArray[np.int32]  # (c, n)
    lengths: NDArray[np.float64]  # (c, k)


def make_room(n: int, k: int, nodes: int, pairs: int) -> Room:
    """Allocate the arrays, for children of so many pairs at once."""
    return Room(
        np.empty((2, n), np.int32),
        make_cycles(n),
        np.zeros(1, np.int64),
        make_child(n, 2 * n)._replace(reach=_REACH),
        np.empty(n, np.int32),
        np.empty(0, np.int32),
        np.empty(k),
        np.empty(nodes, np.int32),
        np.empty(k),
        np.empty((pairs * MOST_OF_PAIR, n), np.int32),
        np.empty((pairs * MOST_OF_PAIR, k)),
    )


def assembled(
    instance: FrontInstance, couples: Couples, front: Front, key: int, stop: Stop
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return children (e, n) of couples that are new to the front, in order, and their lengths (e, k).

    Lengths are what A's are and edges change: to the last bit only where they are whole numbers.

    key : in [0, 2**64); decides everything, unless ``stop`` ends it early.
    """
    m, n = couples.tours.shape
    near = np.ascontiguousarray(instance.costs.neighbours[:, :_BREADTH])
    at_once = max(1, min(_PAIRS_AT_ONCE, _CITIES_AT_ONCE // n))
    blocks, nodes = -(-m // at_once), len(front.tree.held)
    rooms = [make_room(n, instance.k, nodes, at_once) for _ in range(max(1, min(thread_count(), blocks)))]
    streams = new_streams(np.uint64(key), m, STREAM_ASSEMBLY)
    none = np.empty((0, n), np.int32), np.empty((0, instance.k))
    parts: dict[int, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}

    def work(thread: int, numbers: Iterator[int]) -> None:
        room = rooms[thread]
        for i in numbers:
            last = min(m, (i + 1) * at_once)
            born = breed_pairs(
                instance.costs,
                near,
                couples,
                i * at_once,
                last,
                front,
                instance.unit,
                streams,
                room,
                stop.flag,
            )
            parts[i] = room.children[:born].copy(), room.lengths[:born].copy()

    stop.share(work, blocks, len(rooms))
    tours, lengths = zip(none, *(parts[i] for i in sorted(parts)), strict=True)
    return np.concatenate(tours), np.concatenate(lengths)


@inlined
def _weighted_units(weighted, scale, u, v):  # type: ignore[no-untyped-def]
    """Weighted sum of what an edge costs, in whole units."""
    total = 0.0
    for q in range(weighted.weights.shape[0]):
        total += weighted.weights[q] * cost(weighted.costs, q, u, v)
    return np.int64(min(np.floor(total * scale + 0.5), _MOST_UNITS))


_breed, _ = breeder(_weighted_units)


@compiled
def breed_pairs(costs, near, couples, first, last, front, unit, streams, room, stop):  # type: ignore[no-untyped-def]
    """Write the children of couples first .. last-1, and their lengths, to ``room``; return how many there are."""
    born = 0
    for i in range(first, last):
        born = _breed_pair(costs, near, couples, i, front, unit, streams[i], room, born, stop)
    return born


@compiled_callee
def _breed_pair(costs, near, couples, i, front, unit, stream, room, born, stop):  # type: ignore[no-untyped-def]
    """Write the children of couple i behind the first ``born``; return how many there are then."""
    a, b, before, weights = couples.tours[i], couples.others[i], couples.lengths[i], couples.weights[i]
    n, cycles, child, position = a.shape[0], room.cycles, room.child, room.positions[0]
    total = 0.0
    for q in range(weights.shape[0]):
        total += weights[q] * before[q]
    scale = _UNITS / total if total > 0.0 else 1.0
    for p in range(n):
        position[a[p]] = p
        room.positions[1, b[p]] = p
    found = find_cycles(a, position, b, room.positions[1], n, stream, cycles)
    weighted, most = Weighted(costs, weights, room.partner), born + MOST_OF_PAIR
    for cycle in range(found):
        if stop[0] or born == most:
            break
        room.cycle[0] = cycle
        gain = _breed(weighted, scale, near, a, position, cycles, room.cycle, 1, child)
        if gain == REFUSED or not _is_new(costs, before, front, unit, room):
            continue
        for p in range(n):
            room.children[born, p] = a[p]
            room.moved[p] = position[p]
        for q in range(before.shape[0]):
            room.lengths[born, q] = room.one[q]
        lay_out(room.children[born], room.moved, child.removed, child.added, child.counts[0], child.stretches)
        born += 1
    return born


@compiled_callee
def _is_new(costs, before, front, unit, room):  # type: ignore[no-untyped-def]
    """Whether the front lacks the child of a tour of lengths ``before`` (k,); its own are in ``room.one``."""
    child, one = room.child, room.one
    for q in range(one.shape[0]):
        one[q] = before[q]
        for e in range(child.counts[0]):
            one[q] -= cost(costs, q, child.removed[e, 0], child.removed[e, 1])
            one[q] += cost(costs, q, child.added[e, 0], child.added[e, 1])
    if one.shape[0] == 2 and stairs_cover(front.points, one, front.rank):
        return False
    key = key_of(one, unit)
    if front.met[slot_of(front.met, key)] == key:
        return False
    return one.shape[0] == 2 or not tree_covers(front.tree, front.points, one, room.way, room.cover)
