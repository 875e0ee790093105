"""Edge assembly: tours take over from each other whatever makes them shorter, one AB-cycle after another.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). Each AB-cycle of two tours A and B is tried alone: what A becomes with
it, joined to one tour again, takes A's place at once where it is shorter.

Where `merge` takes whole components of the difference, this looks at their parts. Annealed tours differ in a thousand
edges that hang together and gain nothing; what one of them does better is then in no component of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.exchange.ab_cycles import Cycles, find_cycles, make_cycles
from pymoo_gpuaco.exchange.child import Child, breed, make_child, units
from pymoo_gpuaco.exchange.merge import adjacent
from pymoo_gpuaco.exchange.stretches import lay_out
from pymoo_gpuaco.host.compiled import compiled, inner
from pymoo_gpuaco.host.distances import distance
from pymoo_gpuaco.host.keys import fold_in, generator
from pymoo_gpuaco.host.philox import STREAM_ASSEMBLY, new_stream
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.host.threads import thread_count

# Hardly anything is left to take over after some ten generations.
MOST_GENERATIONS = 12


class Workspace(NamedTuple):
    """Where one thread works on tours of n cities."""

    order: NDArray[np.int32]  # (n,) tour A
    place: NDArray[np.int32]  # (n,) of each city in it
    other_place: NDArray[np.int32]  # (n,) of each city in B
    cycles: Cycles
    child: Child
    cycle: NDArray[np.int64]  # (1,) number of the one that is tried


def make_workspace(n: int) -> Workspace:
    """Allocate the arrays; a child of any two tours has workspace, whatever joins its subtours."""
    place, other_place = np.empty(n, np.int32), np.empty(n, np.int32)
    return Workspace(
        np.empty(n, np.int32), place, other_place, make_cycles(n), make_child(n, 2 * n), np.zeros(1, np.int64)
    )


def assemble(
    graph: Graph, tours: NDArray[np.int32], key: int, stop: Stop | None = None, *, scale: float
) -> NDArray[np.int32]:
    """Let each of the tours (m, n) take over from others until none gets shorter; return them, in their order.

    In every generation each tour is A once and B once. No tour gets longer, and none is written to. The distances of
    ``graph`` must be symmetric, n >= 3; subtours are joined by its candidates. ``key`` in [0, 2**64) decides
    everything, unless ``stop`` ends it early. ``scale``: whole units a unit of distance, see `EvolvingTours`.

    Raises ValueError where a row is no permutation of 0 .. n-1, or ``scale`` is not above 0.
    """
    m, n = tours.shape
    tours = checks.permutations("tours", tours, n).astype(np.int32)
    scale = checks.real("scale", scale, 0.0, open_low=True)
    workspaces = [make_workspace(n) for _ in range(min(thread_count(), m))]
    stop = Stop() if stop is None else stop
    stop.lower()
    for generation in range(MOST_GENERATIONS if m > 1 else 0):
        shorter = _generation(graph, scale, tours, fold_in(key, generation), workspaces, stop)
        if stop.raised() or not shorter:
            break
    return tours


def _generation(
    graph: Graph, scale: float, tours: NDArray[np.int32], key: int, workspaces: list[Workspace], stop: Stop
) -> bool:
    """Let each tour take over from another; whether any has become shorter. A workspace a thread."""
    m = len(tours)
    ring = generator(key, m).permutation(m)
    before, gains = tours.copy(), np.zeros(m)

    def work(thread: int, first: int, last: int) -> None:
        workspace = workspaces[thread]
        for i in range(first, last):
            a, b = ring[i], ring[(i + 1) % m]
            stream = new_stream(np.uint64(key), i, STREAM_ASSEMBLY)
            gains[i] = _take_over(graph, scale, before[a], before[b], stream, workspace, stop.flag)
            tours[a] = workspace.order

    stop.spread(work, m, len(workspaces))
    return bool(gains.any())


@compiled
def _take_over(graph, scale, tour, other, stream, workspace, stop):  # type: ignore[no-untyped-def]
    """Make ``workspace.order`` the tour A with what it takes over from B, ``other``; return how much shorter it is."""
    n, child = tour.shape[0], workspace.child
    for p in range(n):
        workspace.order[p] = tour[p]
        workspace.place[tour[p]] = p
        workspace.other_place[other[p]] = p
    total = 0.0
    for cycle in range(
        find_cycles(tour, workspace.place, other, workspace.other_place, n, stream, workspace.cycles)
    ):
        if stop[0]:
            break
        if not _promises(graph, scale, cycle, workspace):
            continue
        workspace.cycle[0] = cycle
        if (
            breed(
                graph,
                scale,
                graph.neighbours,
                workspace.order,
                workspace.place,
                workspace.cycles,
                workspace.cycle,
                1,
                child,
            )
            > 0
        ):
            gain, count = 0.0, child.counts[0]
            for i in range(count):
                gain += distance(graph, child.removed[i, 0], child.removed[i, 1])
                gain -= distance(graph, child.added[i, 0], child.added[i, 1])
            if gain > 0.0:  # else it is rounding to whole units that gains
                lay_out(workspace.order, workspace.place, child.removed, child.added, count, child.stretches)
                total += gain
    return total


@inner
def _promises(graph, scale, cycle, workspace):  # type: ignore[no-untyped-def]
    """Whether an AB-cycle can be applied to A as it is now and gains, if nothing has to be joined."""
    n, c, place, gain = workspace.order.shape[0], workspace.cycles.cities, workspace.place, np.int64(0)
    first, last = workspace.cycles.first[cycle], workspace.cycles.first[cycle + 1]
    for i in range(first, last, 2):
        u, v, w = c[i], c[i + 1], c[i + 2 if i + 2 < last else first]
        # cycles before this one have joined subtours by other edges
        if not adjacent(n, place[u], place[v]) or adjacent(n, place[v], place[w]):
            return False
        gain += units(graph, scale, u, v) - units(graph, scale, v, w)
    return gain > 0
