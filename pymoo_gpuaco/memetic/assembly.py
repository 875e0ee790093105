"""Edge assembly: greedy recombination of tours, one AB-cycle after another.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). The AB-cycles of two tours A and B are tried one at a time. A with the
AB-cycle, joined to one tour, replaces A at once if it is shorter.

`merge` applies whole components of the difference, edge assembly also parts of them: a component without total gain may
contain a part with a gain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.ab_cycles import Cycles, find_cycles, make_cycles
from pymoo_gpuaco.memetic.child import Child, breed, cycle_gain, make_child
from pymoo_gpuaco.memetic.numbering import renumber_along_first
from pymoo_gpuaco.memetic.partition_crossover import adjacent
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.problems.metrics import Graph, distance
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Int32_1d,
    Int32_3d,
    Int64_1d,
    Int64_2d,
    UInt8_1d,
    UInt64_3d,
    compiled,
    compiled_callee,
    struct,
)
from pymoo_gpuaco.runtime.intrinsics import atomic_add, atomic_load, await_count
from pymoo_gpuaco.runtime.philox import STREAM_ASSEMBLY, fold_in, generator, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

# Hardly any tour gets shorter after about ten generations.
MOST_GENERATIONS = 12


@struct
class AssemblyWorkspace(NamedTuple):
    """Arrays of one thread, see `make_workspace`."""

    position: Int32_1d
    other_position: Int32_1d
    cycles: Cycles
    child: Child
    cycle: Int64_1d


@struct
class AssemblyBatch(NamedTuple):
    """Generations of one call."""

    tours: Int32_3d
    rings: Int64_2d
    streams: UInt64_3d
    gains: Float64_1d
    most: Float64_1d
    progress: Int64_2d
    finished: Int64_1d
    made: Int64_1d


def make_workspace(n: int) -> AssemblyWorkspace:
    """Allocate the arrays of one thread for tours of n cities, large enough for a child of any two tours."""
    return AssemblyWorkspace(
        position=np.empty(n, np.int32),  # position of each city in A
        other_position=np.empty(n, np.int32),  # position of each city in B
        cycles=make_cycles(n),
        child=make_child(n, 2 * n),
        cycle=np.zeros(1, np.int64),  # number of the AB-cycle to try
    )


def assemble(
    graph: Graph,
    tours: NDArray[np.int32],
    key: int,
    stop: Stop | None = None,
    *,
    scale: float,
    least_gain: float = 0.0,
) -> NDArray[np.int32]:
    """Recombine each of the tours (m, n) with others until none gets shorter; return new tours in the same order.

    Each tour is A once and B once in every generation. No tour gets longer. The distances of ``graph`` must be
    symmetric, n >= 3; subtours are joined by its candidates. ``key`` in [0, 2**64) determines the result, unless
    ``stop`` ends the search early. ``scale``: whole units per unit of distance, see `EvolvingTours`. The search ends
    after a generation that gains at most the share ``least_gain``, in [0, 1], of the largest gain of a generation.
    """
    m, n = tours.shape
    if m == 1:
        return tours.copy()
    keys = [fold_in(key, generation) for generation in range(MOST_GENERATIONS)]
    renumbered = renumber_along_first(graph, graph.neighbours, tours)
    both = np.empty((2, m, n), np.int32)
    both[0] = renumbered.tours
    batch = AssemblyBatch(
        tours=both,  # (2, m, n) before and after a generation; they change places in the next one
        rings=np.array([generator(key, m).permutation(m) for key in keys]),
        streams=np.array([new_streams(key, m, STREAM_ASSEMBLY) for key in keys]),
        gains=np.zeros(m),  # of each pair in the current generation
        most=np.zeros(1),  # largest total gain of a generation
        progress=np.zeros((len(keys), 2), np.int64),  # next pair, and number of finished pairs
        # number of finished generations; at least their maximum once the search has ended
        finished=np.zeros(1, np.int64),
        made=np.zeros(1, np.int64),  # number of generations that were made
    )
    stop = Stop() if stop is None else stop
    stop.reset()

    def work(*_: int) -> None:
        assemble_in_threads(renumbered.graph, scale, batch, make_workspace(n), least_gain, stop.flag)

    threads = min(thread_count(), m)
    stop.parallel_for(work, threads, threads)
    return renumbered._replace(tours=both[batch.made[0] % 2]).original_tours()


@compiled
def assemble_in_threads(
    graph: Graph,
    scale: float,
    batch: AssemblyBatch,
    workspace: AssemblyWorkspace,
    least_gain: float,
    stop: UInt8_1d,
) -> None:
    """Make generations, with other threads, until one gains little or ``stop`` is set."""
    generations, m = batch.rings.shape
    g = atomic_load(batch.finished, 0)
    while g < generations:
        ring, progress = batch.rings[g], batch.progress[g]
        before, after = batch.tours[g % 2], batch.tours[1 - g % 2]
        own, i = np.int64(0), atomic_add(progress, 0, 1)
        while i < m:
            a, b = ring[i], ring[i + 1 if i + 1 < m else 0]
            batch.gains[i] = recombine(
                graph, scale, before[a], before[b], after[a], batch.streams[g, i], workspace, stop
            )
            own += 1
            i = atomic_add(progress, 0, 1)
        if own > 0 and atomic_add(progress, 1, own) + own == m:
            batch.made[0] = g + 1
            gain = 0.0
            for i in range(m):
                gain += batch.gains[i]
            batch.most[0] = max(batch.most[0], gain)
            ended = stop[0] > 0 or gain <= least_gain * batch.most[0]
            atomic_add(batch.finished, 0, generations if ended else 1)
        else:
            await_count(batch.finished, 0, g + 1)
        g = atomic_load(batch.finished, 0)


@compiled_callee
def recombine(graph, scale, tour, other, order, stream, workspace, stop):  # type: ignore[no-untyped-def]
    """Write A (``tour``) with the AB-cycles of B (``other``) that shorten it to ``order``; return the gain."""
    n, position, child = tour.shape[0], workspace.position, workspace.child
    for p in range(n):
        order[p] = tour[p]
    if stop[0]:
        return 0.0
    for p in range(n):
        position[tour[p]] = p
        workspace.other_position[other[p]] = p
    total = 0.0
    found = find_cycles(tour, position, other, workspace.other_position, stream, workspace.cycles)
    for cycle in range(found):
        if stop[0]:
            break
        if not _may_gain(graph, scale, cycle, order, workspace):
            continue
        workspace.cycle[0] = cycle
        cycles, near = workspace.cycles, graph.neighbours
        if breed(graph, scale, near, order, position, cycles, workspace.cycle, 1, child) > 0:
            gain, count = 0.0, child.counts[0]
            for i in range(count):
                gain += distance(graph, child.removed[i, 0], child.removed[i, 1])
                gain -= distance(graph, child.added[i, 0], child.added[i, 1])
            if gain > 0.0:  # else the gain in whole units is a rounding error
                lay_out(order, position, child.removed, child.added, count, child.stretches)
                total += gain
    return total


@compiled_callee
def _may_gain(graph, scale, cycle, order, workspace):  # type: ignore[no-untyped-def]
    """Return True if an AB-cycle can be applied to the current A with a gain, before subtours are joined."""
    n, c, position = order.shape[0], workspace.cycles.cities, workspace.position
    first, last = workspace.cycles.first[cycle], workspace.cycles.first[cycle + 1]
    for i in range(first, last, 2):
        u, v, w = c[i], c[i + 1], c[i + 2 if i + 2 < last else first]
        # applied AB-cycles may have changed these edges, by joining subtours
        if not adjacent(n, position[u], position[v]) or adjacent(n, position[v], position[w]):
            return False
    return cycle_gain(graph, scale, workspace.cycles, cycle) > 0
