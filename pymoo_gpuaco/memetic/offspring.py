"""Choice of the best child of each pair of tours: the one with the largest gain per loss of entropy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.ab_cycles import (
    Cycles,
    Regions,
    assign_regions,
    count_regions,
    find_cycles,
    make_cycles,
    make_regions,
    regions_of,
)
from pymoo_gpuaco.memetic.block2 import (
    BlockSearch,
    Contacts,
    block_of,
    choose_block,
    find_contacts,
    make_block_search,
    make_contacts,
    reset_contacts,
)
from pymoo_gpuaco.memetic.child import Child, breed, cycle_gain, make_child
from pymoo_gpuaco.memetic.entropy import Frequencies, count_edge, frequency, has_space
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.runtime.compiled import (
    Int32_2d,
    Int32_3d,
    Int64_1d,
    Int64_2d,
    UInt8_1d,
    UInt64_3d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.intrinsics import atomic_add, atomic_load, await_count
from pymoo_gpuaco.runtime.philox import next_below

# Lower limit of the loss of entropy: children without a loss come first, in the order of their gains.
_MIN_LOSS = 1e-8
# A stage ends when the best tour has not changed for this many children per tour, and for a tenth of the generations of
# the stage. The first stage seldom lasts that long, see ``FEW_REPLACED``; ``eax`` also ends it after half of the time.
PATIENCE = 1500
# A stage also ends after this many generations without a replaced tour: annealed tours reach their gains in about forty
# generations.
IDLE = 5
# The first stage ends with a generation that replaces at most this share of the parents. Its later generations take a
# sixth of the work, and tours without them end as short.
FEW_REPLACED = 0.25
# State of a stage (6,), int64: its generations, those since the best tour changed and since a tour was replaced, length
# of the best tour, whether the stage has ended, number of counted pairs of its last generation.
GENERATIONS, WAITED, IDLED, SHORTEST, ENDED, COUNTED = range(6)
# Progress of a generation: next task, finished tasks, and finished tasks of two kinds of each pair, in different cache
# lines.
_NEXT, _FINISHED, _OF_PAIRS = 0, 8, 16


@struct
class OffspringWorkspace(NamedTuple):
    """Arrays of one thread, see `make_workspace`."""

    cycles: Cycles
    child: Child
    block: BlockSearch


@struct
class Differences(NamedTuple):
    """Differences of the pairs of a generation, see `make_differences`."""

    cities: Int32_2d
    first: Int64_2d
    found: Int64_1d
    regions: Regions
    made: Int64_2d
    contacts: Contacts


@struct
class Chosen(NamedTuple):
    """Chosen child of each pair, see `make_chosen`."""

    removed: Int32_3d
    added: Int32_3d
    changes: Int64_1d
    gain: Int64_1d
    children: Int64_1d


@struct
class PopulationArrays(NamedTuple):
    """Population of a run of evolution."""

    graph: Graph
    scale: float
    near: Int32_2d
    tours: Int32_2d
    positions: Int32_2d
    rows: Int64_1d
    lengths: Int64_1d
    parents: int
    table: Frequencies
    chosen: Chosen
    stop: UInt8_1d


@struct
class GenerationBatch(NamedTuple):
    """Generations of one call."""

    rings: Int64_2d
    streams: UInt64_3d
    progress: Int64_2d
    finished: Int64_1d
    stage: Int64_1d
    totals: Int64_1d


def make_workspace(n: int, most: int) -> OffspringWorkspace:
    """Allocate the arrays of one thread for tours of n cities and children with up to ``most`` changed edges."""
    return OffspringWorkspace(make_cycles(n), make_child(n, most), make_block_search(n))


def make_differences(n: int, pairs: int) -> Differences:
    """Allocate what the tasks of each of some pairs share: AB-cycles, regions and contacts."""
    return Differences(
        # see `make_cycles`
        cities=np.empty((pairs, 2 * n), np.int32),
        first=np.zeros((pairs, n + 1), np.int64),
        found=np.zeros(pairs, np.int64),  # number of cycles; 0 between generations
        regions=make_regions(n, pairs),
        made=np.zeros((pairs, count_regions(n)), np.int64),  # children tried
        contacts=make_contacts(n, pairs),
    )


def make_chosen(m: int, most: int) -> Chosen:
    """Allocate the best child of each of m pairs, and the number of children tried."""
    return Chosen(
        removed=np.empty((m, most, 2), np.int32),  # edges of A that the child lacks
        added=np.empty((m, most, 2), np.int32),  # edges that replace them
        changes=np.zeros(m, np.int64),  # number of replaced edges; 0: no child is shorter than A
        gain=np.zeros(m, np.int64),  # length of A minus length of the child, in whole units
        children=np.zeros(m, np.int64),  # children tried
    )


def make_stage(shortest: int) -> NDArray[np.int64]:
    """Return a new stage of an evolution, whose shortest tour has the given length in whole units."""
    stage = np.zeros(6, np.int64)
    stage[SHORTEST] = shortest
    return stage


def make_generation_batch(
    rings: NDArray[np.int64], streams: NDArray[np.uint64], stage: NDArray[np.int64]
) -> GenerationBatch:
    """Allocate a batch of g generations of a stage, with their rings (g, m) of tours.

    streams : (g, s, 10) of each pair of a generation, and if tours have several regions, after all pairs, of each
        region of each pair.
    """
    g, m = rings.shape
    return GenerationBatch(
        rings=rings,
        streams=streams,
        progress=np.zeros((g, _OF_PAIRS + 2 * m), np.int64),  # see ``_NEXT``
        # number of finished generations; at least g once the batch has ended
        finished=np.zeros(1, np.int64),
        stage=stage,
        totals=np.zeros(2, np.int64),  # children tried, and replaced parents
    )


@compiled
def make_generations(
    population: PopulationArrays,
    differences: Differences,
    workspace: OffspringWorkspace,
    batch: GenerationBatch,
    most: int,
    blocks: bool,
) -> None:
    """Make the generations of a batch; all threads call this function, each with a workspace of its own.

    The thread that finishes the last task of a generation replaces the parents. The batch ends early if the stage ends,
    if the table of edges is full, or if the search is stopped.
    """
    g, m, regions = atomic_load(batch.finished, 0), batch.rings.shape[1], differences.made.shape[1]
    tasks = m * (2 + regions) if differences.found.shape[0] == m else m
    while g < batch.rings.shape[0]:
        progress = batch.progress[g]
        own = _make_offspring(
            population, differences, workspace, batch.rings[g], progress, batch.streams[g], most, blocks
        )
        if own > 0 and atomic_add(progress, _FINISHED, own) + own == tasks:
            ended = _finish_generation(population, batch, g, most, blocks)
            atomic_add(batch.finished, 0, batch.rings.shape[0] if ended else 1)
        else:
            await_count(batch.finished, 0, g + 1)
        g = atomic_load(batch.finished, 0)


@compiled_callee
def _make_offspring(  # type: ignore[no-untyped-def]
    population, differences, workspace, ring, progress, streams, most, blocks
):
    """Take tasks until none is left; return their number. Choose the best of ``most`` children of each pair and region.

    Pair i is ring[i], ring[i + 1]. The child takes one AB-cycle, or a block of AB-cycles if ``blocks``, from each
    region. It is written to the spare row of its parent A, because other threads still read A. A pair whose A is a
    migrant has no child.

    With one difference, a task is a pair; otherwise it finds, chooses or stores.

    progress : of all threads, see `make_generation_batch`.
    streams : see `make_generation_batch`.
    """
    m, d, w = ring.shape[0], differences, workspace
    if d.found.shape[0] == m:
        return _make_in_parts(population, d, w, ring, progress, streams, most, blocks)
    own, at = np.int64(0), np.int64(0)
    i = atomic_add(progress, _NEXT, 1)
    while i < m:
        _find_difference(population, ring, i, d, at, w, streams, blocks)
        for region in range(d.made.shape[1]):
            _choose_in_region(population, ring, i, d, at, region, w, streams, most, blocks)
        _store_child(population, ring, i, d, at, w, blocks)
        own += 1
        i = atomic_add(progress, _NEXT, 1)
    return own


@compiled_callee
def _make_in_parts(population, d, w, ring, progress, streams, most, blocks):  # type: ignore[no-untyped-def]
    """Do the same with three kinds of tasks in this order, so that a few pairs of long tours occupy many threads.

    They are the difference of each pair, the choice in each region of each pair, and the child of each pair. A task
    waits for those of its pair, which other threads have begun.
    """
    m, regions = ring.shape[0], d.made.shape[1]
    first_child, own = m + m * regions, np.int64(0)
    task = atomic_add(progress, _NEXT, 1)
    while task < first_child + m:
        if task < m:
            _find_difference(population, ring, task, d, task, w, streams, blocks)
            atomic_add(progress, _OF_PAIRS + task, 1)
        elif task < first_child:
            i, region = (task - m) // regions, (task - m) % regions
            await_count(progress, _OF_PAIRS + i, 1)
            _choose_in_region(population, ring, i, d, i, region, w, streams, most, blocks)
            atomic_add(progress, _OF_PAIRS + m + i, 1)
        else:
            i = task - first_child
            await_count(progress, _OF_PAIRS + m + i, regions)
            _store_child(population, ring, i, d, i, w, blocks)
        own += 1
        task = atomic_add(progress, _NEXT, 1)
    return own


@compiled_callee
def _finish_generation(population, batch, g, most, blocks):  # type: ignore[no-untyped-def]
    """Replace parents by their children; return True if the batch ends."""
    p, ring, chosen, stage = population, batch.rings[g], population.chosen, batch.stage
    m, shortest, gain, replaced = ring.shape[0], stage[SHORTEST], np.int64(0), 0
    for i in range(m):
        tour = ring[i]
        gain += chosen.gain[i]
        batch.totals[0] += chosen.children[i]
        if chosen.changes[i] > 0:
            replaced += 1
            p.rows[tour] = (p.rows[tour] + m) % (2 * m)
            p.lengths[tour] -= chosen.gain[i]
            if tour < p.parents:
                shortest = min(shortest, p.lengths[tour])
    batch.totals[1] += replaced
    _advance(stage, shortest, gain, most)
    if not blocks and replaced <= FEW_REPLACED * p.parents and p.stop[0] == 0:
        stage[ENDED] = 1
    stage[COUNTED] = count_chosen(p.table, chosen, 0)
    return stage[ENDED] or stage[COUNTED] < m or p.stop[0] > 0


@compiled_callee
def _advance(stage, shortest, gain, most):  # type: ignore[no-untyped-def]
    """Advance a stage by a generation of total gain ``gain``, after which the best tour has length ``shortest``."""
    stage[GENERATIONS] += 1
    stage[WAITED] = 0 if shortest < stage[SHORTEST] else stage[WAITED] + 1
    stage[IDLED] = 0 if gain > 0 else stage[IDLED] + 1
    stage[SHORTEST] = shortest
    is_patient = stage[WAITED] * most < PATIENCE or 10 * stage[WAITED] < stage[GENERATIONS]
    stage[ENDED] = not is_patient or stage[IDLED] >= IDLE


@inlined
def _is_idle(population, ring, i):  # type: ignore[no-untyped-def]
    """Return True if pair i gets no child: its A is a migrant, or the search has ended."""
    return ring[i] >= population.parents or population.stop[0] > 0


@inlined
def _cycles_of(d, at, workspace):  # type: ignore[no-untyped-def]
    """Return the AB-cycles of a pair, with the thread's workspace of the search for them."""
    c = workspace.cycles
    return Cycles(d.cities[at], d.first[at], c.differing, c.unused_ends, c.unused, c.left_at, c.path)


@compiled_callee
def _find_difference(population, ring, i, d, at, workspace, streams, blocks):  # type: ignore[no-untyped-def]
    """Find the AB-cycles of pair i, their regions, and their contacts if ``blocks``."""
    chosen = population.chosen
    chosen.changes[i] = chosen.gain[i] = chosen.children[i] = 0
    if _is_idle(population, ring, i):
        return
    row, row_b = population.rows[ring[i]], population.rows[ring[i + 1 if i + 1 < ring.shape[0] else 0]]
    a, position, stream = population.tours[row], population.positions[row], streams[i]
    n, c, regions = a.shape[0], _cycles_of(d, at, workspace), regions_of(d.regions, at)
    k = d.contacts
    if d.found[at] > 0:  # a stop ended the last generation before its end
        for city in range(n):
            k.used[at, city], k.through[at, city, 0], k.through[at, city, 1] = 0, -1, -1
    found = find_cycles(a, position, population.tours[row_b], population.positions[row_b], stream, c)
    d.found[at] = found
    shift = np.int64(0)
    if regions.gain.shape[0] > 1:
        shift = next_below(stream, n)
    assign_regions(position, c, found, shift, regions)
    if blocks:
        find_contacts(a, position, c, found, regions, block_of(d.contacts, at, workspace.block))
    for r in range(regions.gain.shape[0]):
        regions.gain[r] = regions.n_chosen[r] = d.made[at, r] = 0


@compiled_callee
def _choose_in_region(population, ring, i, d, at, r, workspace, streams, most, blocks):  # type: ignore[no-untyped-def]
    """Choose the AB-cycle or block in region r of pair i whose child gains most per loss of entropy."""
    if _is_idle(population, ring, i):
        return
    row, regions_of_pair = population.rows[ring[i]], d.made.shape[1]
    stream = streams[i if regions_of_pair == 1 else ring.shape[0] + i * regions_of_pair + r]
    graph, scale, near = population.graph, population.scale, population.near
    a, position, child = population.tours[row], population.positions[row], workspace.child
    c, regions, w = (
        _cycles_of(d, at, workspace),
        regions_of(d.regions, at),
        block_of(d.contacts, at, workspace.block),
    )
    best, made = 0.0, 0
    for number in range(regions.first[r], regions.first[r + 1]):
        if made == most or population.stop[0]:
            break
        w.chosen[0], count = regions.cycles[number], 1
        if blocks:
            count = choose_block(w.centres[number], c, regions.of, stream, w)
        gain_of_cycles = np.int64(0)
        for j in range(count):
            gain_of_cycles += cycle_gain(graph, scale, c, w.chosen[j])
        # count only cycles with a gain, but every block: it costs as much as a child
        made += blocks or gain_of_cycles > 0
        if gain_of_cycles <= 0:
            continue
        gain = breed(graph, scale, near, a, position, c, w.chosen, count, child)
        if gain > 0:
            worth = gain / max(
                _entropy_lost(population.table, child.removed, child.added, child.counts[0]), _MIN_LOSS
            )
            if worth > best:
                best, regions.gain[r], regions.n_chosen[r] = worth, gain, count
                for j in range(count):
                    regions.chosen[regions.first[r] + j] = w.chosen[j]
    d.made[at, r] = made


@compiled_callee
def _store_child(population, ring, i, d, at, workspace, blocks):  # type: ignore[no-untyped-def]
    """Store the child that takes the choices of all regions of pair i, if it gains anything."""
    if _is_idle(population, ring, i):
        return
    row = population.rows[ring[i]]
    a, position, child = population.tours[row], population.positions[row], workspace.child
    c, regions, chosen = _cycles_of(d, at, workspace), regions_of(d.regions, at), population.chosen
    if blocks:
        reset_contacts(position, c, d.found[at], block_of(d.contacts, at, workspace.block))
    d.found[at] = 0
    for r in range(regions.gain.shape[0]):
        chosen.children[i] += d.made[at, r]
    gain = _combine_regions(
        population.graph, population.scale, population.near, a, position, c, regions, child
    )
    if gain > 0:
        _store(child, gain, i, chosen)
        spare = (row + population.rows.shape[0]) % population.tours.shape[0]
        tour, spare_position = population.tours[spare], population.positions[spare]
        for p in range(a.shape[0]):
            tour[p], spare_position[p] = a[p], position[p]
        lay_out(tour, spare_position, child.removed, child.added, child.counts[0], child.stretches)


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
            made = count
            for r in range(first, last):
                for i in range(regions.n_chosen[r]):
                    regions.united[made] = regions.chosen[regions.first[r] + i]
                    made += 1
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
def count_chosen(table: Frequencies, chosen: Chosen, first: int) -> int:
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
