"""Tours that have children with each other, a generation at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.memetic.child import units
from pymoo_gpuaco.memetic.entropy import count_edges, entropy, larger
from pymoo_gpuaco.memetic.numbering import along_the_first
from pymoo_gpuaco.memetic.offspring import (
    Family,
    choose_children,
    count_chosen,
    make_chosen,
    make_workspace,
    replace_parents,
)
from pymoo_gpuaco.memetic.regions import count_regions
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.keys import generator
from pymoo_gpuaco.runtime.philox import STREAM_EVOLUTION, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

# Children that change more edges are none: for each pair there is room for the best. Each further region brings some.
MOST_CHANGED, CHANGED_IN_A_REGION = 4096, 512
# Parts of the pairs for each thread. A thread takes the next part when it is through with its last, so that all others
# wait for a short part where one thread loses its core to another process.
_PARTS_A_THREAD = 8


class EvolvingTours:
    """m tours over n cities, their lengths in whole units, and how many of them have which edge.

    Parameters
    ----------
    graph : distances, which must be symmetric; n >= 3.
    tours : (m, n), each a permutation of 0 .. n-1; they are copied.
    near : (n, k) candidates of each city by which subtours are joined: the nearest 7 serve as well as 10.
    scale : whole units a unit of distance, > 0: 1 for whole distances, else the mean edge should have some 2**20.
    parents : the first so many of the tours have children, in [1, m], and the others, mates, stay as they are; None:
        all. Their edges count like those of the parents.
    stop : ends a generation early; None: nothing does.

    Raises
    ------
    ValueError : where a row is no tour, or ``scale`` or ``parents`` is out of its range.
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
        self._numbered = along_the_first(graph, near, checks.permutations("tours", tours, n))
        self._positions = np.empty((m, n), np.int32)
        self.lengths = np.empty(m, np.int64)  # in whole units
        _measure(self._numbered.graph, self.scale, self._numbered.tours, self._positions, self.lengths)
        self._table = count_edges(self._numbered.tours)
        most = min(n, MOST_CHANGED + CHANGED_IN_A_REGION * (count_regions(n) - 1))
        self._workspaces = [make_workspace(n, most) for _ in range(min(thread_count(), m))]
        self._chosen = make_chosen(m, most)
        self.children = 0  # that were looked at so far
        self.replaced = 0  # parents, each by a child
        self._stop = Stop() if stop is None else stop

    @property
    def tours(self) -> NDArray[np.int32]:
        """A copy of the tours (m, n) as they are now."""
        return self._numbered.as_given()

    @property
    def entropy(self) -> float:
        """Of the edges of all tours, in nats; 0 where all are equal."""
        return entropy(self._table)

    def generation(self, key: int, children: int, blocks: bool) -> int:
        """Let each parent have up to ``children`` a region with another; return by how much all got shorter, in units.

        The best child of A and B takes A's place. Every B is a tour as it was before the generation, and edges are
        counted when all have chosen, so any number of threads may choose at once. Several tours may give up the same
        rare edge together: 50 tours of fnl4461 ended as short as with a count after every 32 pairs (the means of 47
        keys are .0064 and .0067 %). A child takes one AB-cycle, or a block of them where ``blocks``.

        ``key`` in [0, 2**64) decides everything unless the stop ends it.
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
        """The tours as compiled code takes them."""
        return Family(
            self._numbered.graph,
            self.scale,
            self._numbered.graph.neighbours,
            self._numbered.tours,
            self._positions,
            self.parents,
            self._table,
            self._chosen,
            self._stop.flag,
        )

    def _count(self) -> None:
        """Count the edges of the chosen children."""
        done = 0
        while (done := int(count_chosen(self._table, self._chosen, done))) < len(self.lengths):
            self._table = larger(self._table)


@compiled
def _measure(graph, scale, tours, positions, lengths):  # type: ignore[no-untyped-def]
    """Write the cities' positions (m, n) and the tours' lengths (m,) in whole units."""
    m, n = tours.shape
    for t in range(m):
        lengths[t] = 0
        before = tours[t, n - 1]
        for p in range(n):
            city = tours[t, p]
            positions[t, city] = p
            lengths[t] += units(graph, scale, before, city)
            before = city
