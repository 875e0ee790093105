"""Edge assembly: greedy recombination of tours, one AB-cycle after another.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). The AB-cycles of two tours A and B are tried one at a time. A with the
AB-cycle, joined to one tour, replaces A at once if it is shorter.

`merge` applies whole components of the difference, edge assembly also parts of them. Annealed tours often differ in a
component of a thousand edges without a total gain, so an improvement within it is not a component by itself.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.graph import Graph, renumber_along_first
from pymoo_gpuaco.memetic.ab_cycles import find_cycles, make_cycles
from pymoo_gpuaco.memetic.child import breed, cycle_gain, make_child
from pymoo_gpuaco.memetic.partition_crossover import adjacent
from pymoo_gpuaco.memetic.stretches import lay_out
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee
from pymoo_gpuaco.runtime.keys import fold_in, generator
from pymoo_gpuaco.runtime.philox import STREAM_ASSEMBLY, new_stream
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

# Hardly any tour gets shorter after about ten generations.
MOST_GENERATIONS = 12


AssemblyWorkspace = namedtuple("AssemblyWorkspace", "order position other_position cycles child cycle")


def make_workspace(n: int) -> AssemblyWorkspace:
    """Allocate the arrays of one thread for tours of n cities, large enough for a child of any two tours."""
    return AssemblyWorkspace(
        order=np.empty(n, np.int32),  # tour A
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
    m = len(tours)
    renumbered = renumber_along_first(graph, graph.neighbours, tours)
    workspaces = [make_workspace(tours.shape[1]) for _ in range(min(thread_count(), m))]
    before, most = np.empty_like(renumbered.tours), 0.0
    stop = Stop() if stop is None else stop
    stop.lower()
    for generation in range(MOST_GENERATIONS if m > 1 else 0):
        generation_key = fold_in(key, generation)
        before[...] = renumbered.tours
        gain = _generation(
            renumbered.graph, scale, before, renumbered.tours, generation_key, workspaces, stop
        )
        most = max(most, gain)
        if stop.raised() or gain <= least_gain * most:
            break
    return renumbered.original_tours()


def _generation(
    graph: Graph,
    scale: float,
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    key: int,
    workspaces: list[AssemblyWorkspace],
    stop: Stop,
) -> float:
    """Recombine each of the tours ``before`` (m, n) with another into ``after``; return the total gain."""
    m = len(before)
    ring, gains = generator(key, m).permutation(m), np.zeros(m)

    def work(thread: int, numbers: Iterator[int]) -> None:
        workspace = workspaces[thread]
        for i in numbers:
            a, b = ring[i], ring[(i + 1) % m]
            stream = new_stream(np.uint64(key), i, STREAM_ASSEMBLY)
            gains[i] = recombine(graph, scale, before[a], before[b], stream, workspace, stop.flag)
            after[a] = workspace.order

    stop.share(work, m, len(workspaces))
    return float(gains.sum())


@compiled
def recombine(graph, scale, tour, other, stream, workspace, stop):  # type: ignore[no-untyped-def]
    """Write A with the AB-cycles of B (``other``) that shorten it to ``workspace.order``; return the gain."""
    n, order, position, child = tour.shape[0], workspace.order, workspace.position, workspace.child
    for p in range(n):
        order[p] = tour[p]
        position[tour[p]] = p
        workspace.other_position[other[p]] = p
    total = 0.0
    found = find_cycles(tour, position, other, workspace.other_position, stream, workspace.cycles)
    for cycle in range(found):
        if stop[0]:
            break
        if not _may_gain(graph, scale, cycle, workspace):
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
def _may_gain(graph, scale, cycle, workspace):  # type: ignore[no-untyped-def]
    """Return True if an AB-cycle can be applied to the current A with a gain, before subtours are joined."""
    n, c, position = workspace.order.shape[0], workspace.cycles.cities, workspace.position
    first, last = workspace.cycles.first[cycle], workspace.cycles.first[cycle + 1]
    for i in range(first, last, 2):
        u, v, w = c[i], c[i + 1], c[i + 2 if i + 2 < last else first]
        # applied AB-cycles may have changed these edges, by joining subtours
        if not adjacent(n, position[u], position[v]) or adjacent(n, position[v], position[w]):
            return False
    return cycle_gain(graph, scale, workspace.cycles, cycle) > 0
