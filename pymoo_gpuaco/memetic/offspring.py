"""Choice of the best child of each pair of tours: the one with the largest gain per loss of entropy."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from pymoo_gpuaco.memetic.ab_cycles import (
    assign_regions,
    find_cycles,
    make_cycles,
    make_regions,
)
from pymoo_gpuaco.memetic.block2 import choose_block, find_contacts, make_block, reset_contacts
from pymoo_gpuaco.memetic.child import breed, cycle_gain, make_child
from pymoo_gpuaco.memetic.entropy import count_edge, frequency, has_space
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import next_below

# Lower limit of the loss of entropy: children without a loss come first, in the order of their gains.
_MIN_LOSS = 1e-8


OffspringWorkspace = namedtuple("OffspringWorkspace", "cycles child block regions")
Chosen = namedtuple("Chosen", "removed added changes gain children")


PopulationArrays = namedtuple(
    "PopulationArrays", "graph scale near tours positions rows parents table chosen stop"
)


def make_workspace(n: int, most: int) -> OffspringWorkspace:
    """Allocate the arrays of one thread for tours of n cities and children with up to ``most`` changed edges."""
    return OffspringWorkspace(make_cycles(n), make_child(n, most), make_block(n), make_regions(n))


def make_chosen(m: int, most: int) -> Chosen:
    """Allocate the best child of each of m pairs, and the number of children tried."""
    return Chosen(
        removed=np.empty((m, most, 2), np.int32),  # edges of A that the child lacks
        added=np.empty((m, most, 2), np.int32),  # edges that replace them
        changes=np.zeros(m, np.int64),  # number of replaced edges; 0: no child is shorter than A
        gain=np.zeros(m, np.int64),  # length of A minus length of the child, in whole units
        children=np.zeros(m, np.int64),  # children tried
    )


@compiled
def choose_children(population, workspace, ring, first, last, streams, most, blocks):  # type: ignore[no-untyped-def]
    """Choose the best of up to ``most`` children per region for pairs first .. last-1; pair i is ring[i], ring[i + 1].

    The child is written to the spare row of its parent A, because other threads still read A. It takes one AB-cycle,
    or a block of AB-cycles if ``blocks``, from each region. A pair whose A is a migrant has no child; its row of
    ``chosen`` is unchanged.
    """
    m = ring.shape[0]
    for i in range(first, last):
        if ring[i] < population.parents and not population.stop[0]:
            _choose_child(
                population, workspace, ring[i], ring[i + 1 if i + 1 < m else 0], i, streams[i], most, blocks
            )


@compiled_callee
def _choose_child(population, workspace, one, other, pair, stream, most, blocks):  # type: ignore[no-untyped-def]
    graph, scale, near, chosen = population.graph, population.scale, population.near, population.chosen
    row, row_b = population.rows[one], population.rows[other]
    a, position_a = population.tours[row], population.positions[row]
    b, position_b = population.tours[row_b], population.positions[row_b]
    n, c, w = a.shape[0], workspace.cycles, workspace.block
    child, regions = workspace.child, workspace.regions
    parts, shift = regions.gain.shape[0], np.int64(0)
    found = find_cycles(a, position_a, b, position_b, n, stream, c)
    if parts > 1:
        shift = next_below(stream, n)
    assign_regions(position_a, c, found, shift, regions)
    if blocks:
        find_contacts(a, position_a, c, found, regions, w)
    for r in range(parts):
        at = regions.first_chosen[r]
        best, count_of_best, gain_of_best, made = 0.0, 0, np.int64(0), 0
        for i in range(regions.first[r], regions.first[r + 1]):
            if made == most or population.stop[0]:
                break
            w.chosen[0], count = regions.cycles[i], 1
            if blocks:
                count = choose_block(w.centres[i], c, regions.of, stream, w)
            gain_of_cycles = np.int64(0)
            for j in range(count):
                gain_of_cycles += cycle_gain(graph, scale, c, w.chosen[j])
            # Cycles without a gain are cheap to detect and do not count as children: half of all, and nearly all if
            # many edges have the same length. A block always counts: its search takes as long as a child.
            made += blocks or gain_of_cycles > 0
            if gain_of_cycles <= 0:
                continue
            gain = breed(graph, scale, near, a, position_a, c, w.chosen, count, child)
            if gain > 0:
                worth = gain / max(
                    _entropy_lost(population.table, child.removed, child.added, child.counts[0]), _MIN_LOSS
                )
                if worth > best:
                    best, count_of_best, gain_of_best = worth, count, gain
                    for j in range(count):
                        regions.chosen[at + j] = w.chosen[j]
        chosen.children[pair] += made
        regions.gain[r], regions.first_chosen[r + 1] = gain_of_best, at + count_of_best
    if blocks:
        reset_contacts(position_a, c, found, w)
    gain = _combine_regions(graph, scale, near, a, position_a, c, regions, child)
    if gain > 0:
        _store(child, gain, pair, chosen)
        spare = (row + population.rows.shape[0]) % population.tours.shape[0]
        tour, position = population.tours[spare], population.positions[spare]
        for p in range(n):
            tour[p], position[p] = a[p], position_a[p]
        lay_out(tour, position, child.removed, child.added, child.counts[0], child.stretches)


@compiled_callee
def _combine_regions(graph, scale, near, a, position, c, regions, child):  # type: ignore[no-untyped-def]
    """Make the child that takes the choices of all regions; return its gain, or 0 without any choice.

    Choices of two regions may each gain alone and together leave subtours, which are costly to join. So the choices of
    several regions are added at once, and accepted if the child gains the sum of their own gains. If not, half as many
    are tried, down to one region, which is accepted if it gains anything. The next step tries twice as many.
    """
    parts = regions.gain.shape[0]
    gain, count, made = np.int64(0), 0, 0  # count, made: cycles of the accepted child and of the latest child
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
def _entropy_lost(table, removed, added, count):  # type: ignore[no-untyped-def]
    """Return the loss of the population's entropy if ``added`` edges (count, 2) replace those ``removed``."""
    lost = 0.0
    for i in range(count):
        f = frequency(table, removed[i, 0], removed[i, 1])
        lost += table.terms[f] - table.terms[f - 1]
        f = frequency(table, added[i, 0], added[i, 1])
        lost += table.terms[f] - table.terms[f + 1]
    return lost


@inlined
def _store(child, gain, pair, chosen):  # type: ignore[no-untyped-def]
    chosen.gain[pair], chosen.changes[pair] = gain, child.counts[0]
    for i in range(child.counts[0]):
        for end in range(2):
            chosen.removed[pair, i, end] = child.removed[i, end]
            chosen.added[pair, i, end] = child.added[i, end]


@compiled
def count_chosen(table, chosen, first):  # type: ignore[no-untyped-def]
    """Replace the parents' edges by those of the chosen children in the table, from pair ``first`` on.

    Returns the first pair that is not counted because the table is full, or the number of pairs.
    """
    m = chosen.changes.shape[0]
    for pair in range(first, m):
        if not has_space(table, chosen.changes[pair]):
            return pair
        for i in range(chosen.changes[pair]):
            count_edge(table, chosen.removed[pair, i, 0], chosen.removed[pair, i, 1], -1)
            count_edge(table, chosen.added[pair, i, 0], chosen.added[pair, i, 1], 1)
    return m
