"""The population of an edge assembly crossover, with one generation of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph, renumber_along_first
from pymoo_gpuaco.memetic.ab_cycles import count_regions
from pymoo_gpuaco.memetic.child import units
from pymoo_gpuaco.memetic.entropy import count_edges, entropy, larger
from pymoo_gpuaco.memetic.offspring import (
    Family,
    choose_children,
    count_chosen,
    make_chosen,
    make_workspace,
    replace_parents,
)
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.keys import generator
from pymoo_gpuaco.runtime.philox import STREAM_EVOLUTION, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

# Limit of the changed edges of a child, for the buffer of each pair, and its increase with each further region.
MOST_CHANGED, CHANGED_IN_A_REGION = 4096, 512
# Parts of the pairs for each thread. Threads take the next part when they finish one, so that only a short part delays
# the others if a thread loses its core to another process.
_PARTS_A_THREAD = 8


class EvolvingTours:
    """m tours of n cities, their lengths in whole units, and the frequencies of their edges.

    Parameters
    ----------
    graph : symmetric distances; n >= 3.
    tours : (m, n), each a permutation of 0 .. n-1; they are copied.
    near : (n, k) candidates of each city to join subtours: the nearest 7 are as good as 10.
    scale : whole units per unit of distance, > 0: 1 for whole distances; else the mean edge should have about 2**20.
    parents : number of tours, the first ones, that are parents A, in [1, m]; None: all. The others are migrants: they
        do not change, and their edges count like those of the parents.
    stop : ends a generation early; None: no limit.

    Raises
    ------
    ValueError : a row is not a tour, or ``scale`` or ``parents`` is out of range.
    """

    def __init__(
        self,
        graph: Graph,
        tours: NDArray[np.int32],
        near: NDArray[np.int32],
        scale: float = 1.0,
        parents: int | None = None,
        stop: Stop | None = None,
    ) -> None:
        m, n = tours.shape
        self.scale = checks.real("scale", scale, 0.0, open_low=True)
        self.parents = m if parents is None else checks.integer("parents", parents, 1, m)
        near = np.ascontiguousarray(near, np.int32)
        self._renumbered = renumber_along_first(graph, near, checks.permutations("tours", tours, n))
        self._positions = np.empty((m, n), np.int32)
        self.lengths = np.empty(m, np.int64)  # in whole units
        _measure(self._renumbered.graph, self.scale, self._renumbered.tours, self._positions, self.lengths)
        self._table = count_edges(self._renumbered.tours)
        most = min(n, MOST_CHANGED + CHANGED_IN_A_REGION * (count_regions(n) - 1))
        self._workspaces = [make_workspace(n, most) for _ in range(min(thread_count(), m))]
        self._chosen = make_chosen(m, most)
        self.children = 0  # number of children tried so far
        self.replaced = 0  # number of replaced parents
        self._stop = Stop() if stop is None else stop

    @property
    def tours(self) -> NDArray[np.int32]:
        """A copy of the current tours (m, n)."""
        return self._renumbered.original_tours()

    @property
    def entropy(self) -> float:
        """Entropy of the edges of all tours, in nats; 0 if all tours are equal."""
        return entropy(self._table)

    def generation(self, key: int, children: int, blocks: bool) -> int:
        """Make up to ``children`` per parent and region and replace parents; return the total gain in whole units.

        The best child of A and B replaces A. Every B is a tour from before the generation, and edges are counted after
        all choices, so any number of threads may choose in parallel. Several tours may then lose the same rare edge
        together: 50 tours of fnl4461 ended as short as with a count after every 32 pairs (the means of 47 keys are
        .0064 and .0067 %). A child takes one AB-cycle, or a block of AB-cycles if ``blocks``.

        ``key`` in [0, 2**64) determines the result unless the stop ends the generation.
        """
        m, chosen, family = len(self.lengths), self._chosen, self._family()
        ring = generator(key, m).permutation(m)
        streams = new_streams(np.uint64(key), m, STREAM_EVOLUTION)
        chosen.changes[:] = chosen.gain[:] = chosen.children[:] = 0

        together = max(1, m // (_PARTS_A_THREAD * len(self._workspaces)))

        def choose(thread: int, parts: Iterator[int]) -> None:
            w = self._workspaces[thread]
            for part in parts:
                first, last = together * part, min(together * (part + 1), m)
                choose_children(family, w, ring, first, last, streams, children, blocks)

        self._stop.share(choose, -(-m // together), len(self._workspaces))
        self._count()
        replace_parents(family, ring, self._workspaces[0].child.stretches)
        self.lengths[ring] -= chosen.gain
        self.children += int(chosen.children.sum())
        self.replaced += int((chosen.changes > 0).sum())
        return int(chosen.gain.sum())

    def _family(self) -> Family:
        """Return the tours in the form for compiled code."""
        return Family(
            self._renumbered.graph,
            self.scale,
            self._renumbered.graph.neighbours,
            self._renumbered.tours,
            self._positions,
            self.parents,
            self._table,
            self._chosen,
            self._stop.flag,
        )

    def _count(self) -> None:
        """Count the edges of the chosen children, in a larger table if needed."""
        done = 0
        while (done := int(count_chosen(self._table, self._chosen, done))) < len(self.lengths):
            self._table = larger(self._table)


@compiled
def _measure(graph, scale, tours, positions, lengths):  # type: ignore[no-untyped-def]
    """Write the positions of the cities (m, n) and the lengths of the tours (m,) in whole units."""
    m, n = tours.shape
    for t in range(m):
        lengths[t] = 0
        before = tours[t, n - 1]
        for p in range(n):
            city = tours[t, p]
            positions[t, city] = p
            lengths[t] += units(graph, scale, before, city)
            before = city
