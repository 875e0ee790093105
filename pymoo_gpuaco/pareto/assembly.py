"""Edge assembly of members of a front: children between two tours, each with one AB-cycle.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013): tour A with the edges of B along one AB-cycle, its subtours joined by
exchanges of two edges, the smallest first. Here lengths are weighted sums, and every such tour is a child.

Assembly finds tours that chains of few exchanges do not reach, because two members differ in many edges. The changed
edges of a child give its lengths, see ``memetic.child``, so only tours that are new to the front are written.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.ab_cycles import Cycles, find_cycles, make_cycles
from pymoo_gpuaco.memetic.child import REFUSED, Child, breeder, make_child
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.pareto.archive import key_of, slot_of
from pymoo_gpuaco.pareto.device import Front
from pymoo_gpuaco.pareto.front_2d import is_covered
from pymoo_gpuaco.pareto.instance import Costs, FrontInstance, cost
from pymoo_gpuaco.pareto.nd_tree import tree_covers
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    UInt64_2d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import STREAM_ASSEMBLY, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

MOST_OF_PAIR = 32  # maximum children of a pair of members
# Limits of pairs and cities per call: the overhead of a call is the time of a pair of a hundred cities.
_PAIRS_AT_ONCE, _CITIES_AT_ONCE = 32, 8192
# Cities from either end of a subtour's stretch that may join it to another subtour. A full search takes much longer and
# adds little to the front.
_REACH = 10
_BREADTH = 10  # candidates per city to join subtours
_FARTHEST_PARTNER = 8.0  # log2 of the maximum steps along the archive to the second parent
# Whole units of a tour's weighted length, and the limit of an edge: sums of a few edges stay below 2^63.
_UNITS, _MOST_UNITS = 2.0**40, 2.0**58


@struct
class ParentPairs(NamedTuple):
    """m pairs of tours A and B of n cities, k objectives."""

    tours: Int32_2d  # (m, n) A
    others: Int32_2d  # (m, n) B
    lengths: Float64_2d  # (m, k) of A
    weights: Float64_2d  # (m, k) of the sum by which subtours are joined


def draw_pairs(m: int, most: int, draw: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Draw up to ``most`` pairs i, j of m tours in the order of a front; nearer tours are more likely pairs."""
    i = np.sort(draw.permutation(m)[:most])
    steps = (2.0 ** draw.uniform(0.0, _FARTHEST_PARTNER, len(i))).astype(np.intp)
    j = i + np.where(draw.random(len(i)) < 0.5, steps, -steps)
    inside = (j >= 0) & (j < m)
    return i[inside], j[inside]


# weighted sum of the objectives as the graph of a `breeder`
Weighted = namedtuple("Weighted", "costs weights partner")


@struct
class PairWorkspace(NamedTuple):
    """Arrays of one thread, see `make_workspace`."""

    positions: Int32_2d
    cycles: Cycles
    cycle: Int64_1d
    child: Child
    moved: Int32_1d
    partner: Int32_1d
    one: Float64_1d
    stack: Int32_1d
    cover: Float64_1d
    children: Int32_2d
    lengths: Float64_2d


def make_workspace(n: int, k: int, nodes: int, pairs: int) -> PairWorkspace:
    """Allocate the arrays of one thread for the children of ``pairs`` pairs: n cities, k objectives."""
    return PairWorkspace(
        positions=np.empty((2, n), np.int32),  # of each city in A and in B
        cycles=make_cycles(n),
        cycle=np.zeros(1, np.int64),  # number of the AB-cycle to apply
        child=make_child(n, 2 * n)._replace(reach=_REACH),
        moved=np.empty(n, np.int32),  # position of each city in the current child
        partner=np.empty(0, np.int32),  # no fixed edges, see ``Weighted``
        one=np.empty(k),  # lengths of the current child
        stack=np.empty(nodes, np.int32),  # of the front's tree
        cover=np.empty(k),  # see `tree_covers`
        children=np.empty((pairs * MOST_OF_PAIR, n), np.int32),
        lengths=np.empty((pairs * MOST_OF_PAIR, k)),
    )


def assemble_pairs(
    instance: FrontInstance, pairs: ParentPairs, front: Front, key: int, stop: Stop
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return children (e, n) of pairs that are new to the front, in order, and their lengths (e, k).

    Lengths are those of A plus the changes of edges, so they are exact only for whole numbers.

    key : in [0, 2**64); determines the result, unless ``stop`` ends the call early.
    """
    m, n = pairs.tours.shape
    near = np.ascontiguousarray(instance.costs.neighbours[:, :_BREADTH])
    at_once = max(1, min(_PAIRS_AT_ONCE, _CITIES_AT_ONCE // n))
    blocks, nodes = -(-m // at_once), len(front.tree.held)
    workspaces = [
        make_workspace(n, instance.k, nodes, at_once) for _ in range(max(1, min(thread_count(), blocks)))
    ]
    streams = new_streams(key, m, STREAM_ASSEMBLY)
    none = np.empty((0, n), np.int32), np.empty((0, instance.k))
    parts: dict[int, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}

    def work(thread: int, numbers: Iterator[int]) -> None:
        workspace = workspaces[thread]
        for i in numbers:
            last = min(m, (i + 1) * at_once)
            born = breed_pairs(
                instance.costs,
                near,
                pairs,
                i * at_once,
                last,
                front,
                instance.unit,
                streams,
                workspace,
                stop.flag,
            )
            parts[i] = workspace.children[:born].copy(), workspace.lengths[:born].copy()

    stop.parallel_dynamic(work, blocks, len(workspaces))
    tours, lengths = zip(none, *(parts[i] for i in sorted(parts)), strict=True)
    return np.concatenate(tours), np.concatenate(lengths)


@inlined
def _weighted_units(weighted, scale, u, v):  # type: ignore[no-untyped-def]
    """Return the weighted sum of the costs of an edge in whole units."""
    total = 0.0
    for q in range(weighted.weights.shape[0]):
        total += weighted.weights[q] * cost(weighted.costs, q, u, v)
    return np.int64(min(np.floor(total * scale + 0.5), _MOST_UNITS))


_breed, _ = breeder(_weighted_units)


@compiled
def breed_pairs(
    costs: Costs,
    near: Int32_2d,
    pairs: ParentPairs,
    first: int,
    last: int,
    front: Front,
    unit: Float64_1d,
    streams: UInt64_2d,
    workspace: PairWorkspace,
    stop: UInt8_1d,
) -> int:
    """Write the children of pairs first .. last-1 and their lengths to ``workspace``; return their number."""
    born = 0
    for i in range(first, last):
        born = _breed_pair(costs, near, pairs, i, front, unit, streams[i], workspace, born, stop)
    return born


@compiled_callee
def _breed_pair(costs, near, pairs, i, front, unit, stream, workspace, born, stop):  # type: ignore[no-untyped-def]
    """Append the children of pair i after the first ``born``; return the new number of children."""
    a, b, before, weights = pairs.tours[i], pairs.others[i], pairs.lengths[i], pairs.weights[i]
    n, cycles, child, position = a.shape[0], workspace.cycles, workspace.child, workspace.positions[0]
    total = 0.0
    for q in range(weights.shape[0]):
        total += weights[q] * before[q]
    scale = _UNITS / total if total > 0.0 else 1.0
    for p in range(n):
        position[a[p]] = p
        workspace.positions[1, b[p]] = p
    found = find_cycles(a, position, b, workspace.positions[1], stream, cycles)
    weighted, most = Weighted(costs, weights, workspace.partner), born + MOST_OF_PAIR
    for cycle in range(found):
        if stop[0] or born == most:
            break
        workspace.cycle[0] = cycle
        gain = _breed(weighted, scale, near, a, position, cycles, workspace.cycle, 1, child)
        if gain == REFUSED or not _is_new(costs, before, front, unit, workspace):
            continue
        for p in range(n):
            workspace.children[born, p] = a[p]
            workspace.moved[p] = position[p]
        for q in range(before.shape[0]):
            workspace.lengths[born, q] = workspace.one[q]
        lay_out(
            workspace.children[born],
            workspace.moved,
            child.removed,
            child.added,
            child.counts[0],
            child.stretches,
        )
        born += 1
    return born


@compiled_callee
def _is_new(costs, before, front, unit, workspace):  # type: ignore[no-untyped-def]
    """Return True if the child of a tour of lengths ``before`` (k,) is new; write its lengths to ``one``."""
    child, one = workspace.child, workspace.one
    for q in range(one.shape[0]):
        one[q] = before[q]
        for e in range(child.counts[0]):
            one[q] -= cost(costs, q, child.removed[e, 0], child.removed[e, 1])
            one[q] += cost(costs, q, child.added[e, 0], child.added[e, 1])
    if one.shape[0] == 2 and is_covered(front.points, one, front.rank):
        return False
    key = key_of(one, unit)
    if front.seen[slot_of(front.seen, key)] == key:
        return False
    return one.shape[0] == 2 or not tree_covers(
        front.tree, front.points, one, workspace.stack, workspace.cover
    )
