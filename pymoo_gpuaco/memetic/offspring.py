"""The best child of each pair of tours: that with the largest gain per loss of the population's entropy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.memetic.ab_cycles import Cycles, find_cycles, make_cycles
from pymoo_gpuaco.memetic.block2 import Block, choose_block, forget_cycles, make_block, note_cycles
from pymoo_gpuaco.memetic.child import Child, breed, cycle_gain, make_child
from pymoo_gpuaco.memetic.entropy import Frequencies, count_edge, frequency, has_room
from pymoo_gpuaco.memetic.regions import Regions, make_regions, part_cycles
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import next_below

# A loss of entropy below this counts as this: children that cost no variety come before those that do, by their gain.
_NO_LOSS = 1e-8


class Workspace(NamedTuple):
    """Where one thread works."""

    cycles: Cycles
    child: Child
    block: Block
    regions: Regions


class Chosen(NamedTuple):
    """The best child of each of m pairs, and what was tried."""

    removed: NDArray[np.int32]  # (m, k, 2) edges that its parent A has and it has not
    added: NDArray[np.int32]  # (m, k, 2) edges that it has instead
    changes: NDArray[np.int64]  # (m,) how many, 0 where no child is shorter than A
    gain: NDArray[np.int64]  # (m,) by how much it is shorter, in whole units
    children: NDArray[np.int64]  # (m,) how many there were to choose from


class Family(NamedTuple):
    """m tours of n cities that have children with each other."""

    graph: Graph
    scale: float  # whole units a unit of distance
    near: NDArray[np.int32]  # (n, k) candidates of each city
    tours: NDArray[np.int32]  # (m, n)
    positions: NDArray[np.int32]  # (m, n) position of each city
    parents: int  # tours before this one have children; the others are mates of these alone
    table: Frequencies  # how many tours have which edge
    chosen: Chosen
    stop: NDArray[np.uint8]  # (1,) 1: a generation is to end soon


def make_workspace(n: int, most: int) -> Workspace:
    """Allocate the arrays for tours of n cities and children that change up to ``most`` edges."""
    return Workspace(make_cycles(n), make_child(n, most), make_block(n), make_regions(n))


def make_chosen(m: int, most: int) -> Chosen:
    """Allocate the arrays for m pairs."""
    return Chosen(
        np.empty((m, most, 2), np.int32),
        np.empty((m, most, 2), np.int32),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
        np.zeros(m, np.int64),
    )


@compiled
def choose_children(family, workspace, ring, first, last, streams, most, blocks):  # type: ignore[no-untyped-def]
    """Choose the best of up to ``most`` children a region of pairs first .. last-1; pair i is ring[i] and ring[i + 1].

    A child takes one AB-cycle, or a block of them where ``blocks``. Where there are several regions, the child of the
    pair takes what was chosen in each. A pair whose A is no parent has none; what ``chosen`` has of it stays.
    """
    m = ring.shape[0]
    for i in range(first, last):
        if ring[i] < family.parents and not family.stop[0]:
            _choose_child(
                family, workspace, ring[i], ring[i + 1 if i + 1 < m else 0], i, streams[i], most, blocks
            )


@compiled_callee
def _choose_child(family, workspace, one, other, pair, stream, most, blocks):  # type: ignore[no-untyped-def]
    graph, scale, near, chosen = family.graph, family.scale, family.near, family.chosen
    a, position_a = family.tours[one], family.positions[one]
    b, position_b = family.tours[other], family.positions[other]
    n, c, w = a.shape[0], workspace.cycles, workspace.block
    child, regions = workspace.child, workspace.regions
    parts, shift = regions.gain.shape[0], np.int64(0)
    found = find_cycles(a, position_a, b, position_b, n, stream, c)
    if parts > 1:
        shift = next_below(stream, n)
    part_cycles(position_a, c, found, shift, regions)
    if blocks:
        note_cycles(a, position_a, c, found, regions, w)
    for r in range(parts):
        at = regions.first_chosen[r]
        best, count_of_best, gain_of_best, made = 0.0, 0, np.int64(0), 0
        for i in range(regions.first[r], regions.first[r + 1]):
            if made == most or family.stop[0]:
                break
            w.chosen[0], count = regions.cycles[i], 1
            if blocks:
                count = choose_block(w.centres[i], c, regions, stream, w)
            promised = np.int64(0)
            for j in range(count):
                promised += cycle_gain(graph, scale, c, w.chosen[j])
            # cycles that promise nothing, half of all, and nearly all where many edges are equally long, are told at
            # once and are no children; to look for a block takes as long as a child
            made += blocks or promised > 0
            if promised <= 0:
                continue
            gain = breed(graph, scale, near, a, position_a, c, w.chosen, count, child)
            if gain > 0:
                worth = gain / max(_entropy_lost(family.table, child), _NO_LOSS)
                if worth > best:
                    best, count_of_best, gain_of_best = worth, count, gain
                    for j in range(count):
                        regions.chosen[at + j] = w.chosen[j]
        chosen.children[pair] += made
        regions.gain[r], regions.first_chosen[r + 1] = gain_of_best, at + count_of_best
    if blocks:
        forget_cycles(position_a, c, found, w)
    gain = _unite(graph, scale, near, a, position_a, c, regions, child)
    if gain > 0:
        _keep(child, gain, pair, chosen)


@compiled_callee
def _unite(graph, scale, near, a, position, c, regions, child):  # type: ignore[no-untyped-def]
    """Make the child that takes what was chosen in all regions; return its gain, or 0 where nothing was.

    Choices of two regions may each gain and yet leave subtours together, which cost something to join. So several
    regions are added at once and kept if the child gains the sum of their own gains; if not, half as many are tried,
    down to one region, which is kept if the child gains at all. The next step tries twice as many.
    """
    parts = regions.gain.shape[0]
    gain, count, made = np.int64(0), 0, 0  # cycles of the child so far, and of that which was made last
    first, together = 0, parts
    while first < parts:
        while together > 1 and first + (together >> 1) >= parts:  # half as many would be the same regions
            together >>= 1
        last = min(first + together, parts)
        alone = np.int64(0)
        for r in range(first, last):
            alone += regions.gain[r]
        if alone > 0:
            more = regions.first_chosen[last] - regions.first_chosen[first]
            for i in range(more):
                regions.united[count + i] = regions.chosen[regions.first_chosen[first] + i]
            made = count + more
            both = breed(graph, scale, near, a, position, c, regions.united, made, child)
            if both >= gain + alone or (together == 1 and both > gain):
                gain, count = both, made
            elif together > 1:
                together >>= 1
                continue
        first = last
        together *= 2
    if made != count:
        breed(graph, scale, near, a, position, c, regions.united, count, child)
    return gain


@compiled_callee
def _entropy_lost(table, child):  # type: ignore[no-untyped-def]
    """By how much the population's entropy falls when a child takes its parent's place."""
    lost = 0.0
    for i in range(child.counts[0]):
        f = frequency(table, child.removed[i, 0], child.removed[i, 1])
        lost += table.terms[f] - table.terms[f - 1]
        f = frequency(table, child.added[i, 0], child.added[i, 1])
        lost += table.terms[f] - table.terms[f + 1]
    return lost


@inlined
def _keep(child, gain, pair, chosen):  # type: ignore[no-untyped-def]
    chosen.gain[pair], chosen.changes[pair] = gain, child.counts[0]
    for i in range(child.counts[0]):
        for end in range(2):
            chosen.removed[pair, i, end] = child.removed[i, end]
            chosen.added[pair, i, end] = child.added[i, end]


@compiled
def count_chosen(table, chosen, first):  # type: ignore[no-untyped-def]
    """Count the edges of the chosen children, from pair ``first`` on, instead of their parents'.

    Returns the first pair that is not counted, for want of room in the table, or how many pairs there are.
    """
    m = chosen.changes.shape[0]
    for pair in range(first, m):
        if not has_room(table, chosen.changes[pair]):
            return pair
        for i in range(chosen.changes[pair]):
            count_edge(table, chosen.removed[pair, i, 0], chosen.removed[pair, i, 1], -1)
            count_edge(table, chosen.added[pair, i, 0], chosen.added[pair, i, 1], 1)
    return m


@compiled
def replace_parents(family, ring, stretches):  # type: ignore[no-untyped-def]
    """Let the chosen children take the places of their parents.

    One thread does that: few have been chosen, and a thread that sleeps takes longer to wake.
    """
    chosen = family.chosen
    for i in range(ring.shape[0]):
        if chosen.changes[i] > 0:
            a, count = ring[i], chosen.changes[i]
            lay_out(
                family.tours[a], family.positions[a], chosen.removed[i], chosen.added[i], count, stretches
            )
