"""Multi-objective search on all cores.

Exploration enumerates the chains of a front's member and collects those that improve the front. L. Paquete,
M. Chiarandini and T. Stuetzle, "Pareto local optimum sets in the biobjective traveling salesman problem" (2004), use
2-opt and Or-opt moves. Chains include both; weights prune those that lead away from the front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.chains import (
    Walker,
    begin_chain,
    closes,
    lengths_of,
    make_walker,
    next_chain,
    put,
    rejoin,
    weigh,
)
from pymoo_gpuaco.backends.cpu.pareto.descent import descend, make_way, slide
from pymoo_gpuaco.pareto.archive import key_of, slot_of
from pymoo_gpuaco.pareto.device import (
    MOST_CHILDREN,
    MOST_EXCHANGES,
    MOST_ON_THE_WAY,
    Children,
    Front,
    Members,
)
from pymoo_gpuaco.pareto.front_2d import is_covered
from pymoo_gpuaco.pareto.instance import FrontInstance, make_costs
from pymoo_gpuaco.pareto.nd_tree import none_longer, tree_covers
from pymoo_gpuaco.runtime.compiled import compiled, inlined
from pymoo_gpuaco.runtime.philox import STREAM_KICKS, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

_FREE = np.uint64(0)
_COVERS = 16  # cached points: a few points of the front dominate most children of a member


class Finds(NamedTuple):
    """Table of the chains of one member that lead to new length vectors."""

    exchanges: NDArray[np.int32]  # (most,)
    chain: NDArray[np.int32]  # (most, 2 MOST_EXCHANGES)
    lengths: NDArray[np.float64]  # (most, k)
    slots: NDArray[np.uint64]  # (a power of two > most,) keys of the vectors found
    taken: NDArray[np.int64]  # (most,) indices of the used slots
    one: NDArray[np.float64]  # (k,) workspace
    # (_COVERS, k) the last points of the front that dominated a child
    covers: NDArray[np.float64]
    found: NDArray[np.int64]  # (1,)


def make_finds(most: int, k: int) -> Finds:
    """Allocate the arrays; ``most`` is a power of two."""
    return Finds(
        np.empty(most, np.int32),
        np.empty((most, 2 * MOST_EXCHANGES), np.int32),
        np.empty((most, k)),
        np.zeros(4 * most, np.uint64),
        np.empty(most, np.int64),
        np.empty(k),
        np.empty((_COVERS, k)),
        np.zeros(1, np.int64),
    )


@inlined
def _covered_again(finds):  # type: ignore[no-untyped-def]
    """Return whether a cached point dominates the lengths."""
    again = False
    for c in range(_COVERS):
        again = again or none_longer(finds.covers[c], finds.one)
    return again


@compiled
def look(costs, w, members, front, unit, finds, way, i, stop):  # type: ignore[no-untyped-def]
    """Explore all chains of member i, until ``finds`` is full or ``stop[0]`` is 1."""
    tours, lengths, weights, slack, most, begin = members
    points, tree, rank, met = front
    n, k = tours.shape[1], lengths.shape[1]
    for f in range(finds.found[0]):
        finds.slots[finds.taken[f]] = _FREE
    finds.found[0] = 0
    for f in range(finds.covers.shape[0]):  # cached points of another member may have left the front
        for q in range(k):
            finds.covers[f, q] = np.inf
    oldest = 0
    weigh(costs, weights[i], w, False)
    put(tours[i], w)
    for step in range(2 * n):
        if stop[0] or finds.found[0] == finds.taken.shape[0]:
            break
        forward = step & 1 == 0
        if forward and costs.directed:
            continue
        opened = begin_chain(costs, w, (begin[i] + (step >> 1)) % n, forward)
        while True:
            exchanges, opened, change = next_chain(costs, w, opened, most[i], slack[i], w.near.shape[1])
            if exchanges == 0 or stop[0]:
                break
            if change >= slack[i]:
                continue
            lengths_of(costs, w, exchanges, lengths[i], finds.one)
            if k == 2:
                if is_covered(points, finds.one, rank):
                    continue
            elif _covered_again(finds):
                continue
            key = key_of(finds.one, unit)
            if met[slot_of(met, key)] == key:
                continue
            slot = slot_of(finds.slots, key)
            if finds.slots[slot] == key or not closes(w, exchanges):
                continue
            # the tree query is far more expensive than all of this
            if k > 2 and tree_covers(tree, points, finds.one, way, finds.covers[oldest]):
                oldest = (oldest + 1) % _COVERS
                continue
            at = finds.found[0]
            if at == finds.taken.shape[0]:
                break
            _note(finds, at, w, exchanges)
            finds.slots[slot] = key
            finds.taken[at] = slot


@inlined
def _note(finds, at, w, exchanges):  # type: ignore[no-untyped-def]
    """Store a chain."""
    finds.exchanges[at] = exchanges
    for m in range(2 * exchanges):
        finds.chain[at, m] = w.chain[m]
    for q in range(finds.one.shape[0]):
        finds.lengths[at, q] = finds.one[q]
    finds.found[0] = at + 1


@compiled
def follow(w, tours, owner, exchanges, chain, children, first, last):  # type: ignore[no-untyped-def]
    """Write children first .. last-1 of (e, n): the owner's tour after its chain."""
    for f in range(first, last):
        put(tours[owner[f]], w)
        for m in range(2 * exchanges[f]):
            w.chain[m] = chain[f, m]
        closes(w, exchanges[f])
        rejoin(w, exchanges[f])
        for p in range(w.tour.shape[0]):
            children[f, p] = w.tour[p]


_MOST_FOR_WEIGHTED = 500  # cities up to which weighted costs of all edges are computed for every tour


class CpuFronts:
    """``FrontDevice`` on all cores."""

    kind: str = "cpu"
    times = 1

    def __init__(self, instance: FrontInstance) -> None:
        self.instance = instance
        self.stop = Stop()
        self._costs = instance.costs
        self._threads = thread_count()
        self._workspaces: list[tuple[Walker, Finds]] = []

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        self._costs = make_costs(self.instance.parts, candidates, self.instance.costs.table)
        self._workspaces = []

    def _allocate_workspaces(self, threads: int) -> None:
        """Allocate workspaces for threads."""
        n, c, k = self._costs.near.shape
        while len(self._workspaces) < threads:
            walker = make_walker(n, k, c, n <= _MOST_FOR_WEIGHTED)
            self._workspaces.append((walker, make_finds(MOST_CHILDREN, k)))

    def _share(self, work: Callable[[int, Iterator[int]], None], items: int) -> None:
        """Call ``work(thread, numbers)`` on all threads, see ``Stop.share``."""
        self._allocate_workspaces(self._threads)
        self.stop.share(work, items, self._threads)

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Return tours (m, n) improved by ``kicks`` kicks, each under its weights (m, k)."""
        found = np.array(tours, np.int32)
        streams = new_streams(np.uint64(key), len(found), STREAM_KICKS)

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, _ = self._workspaces[thread]
            for i in rows:
                descend(self._costs, walker, weights, found, kicks, streams, i, i + 1, self.stop.flag)

        self._share(work, len(found))
        return found

    def slide(
        self,
        tours: NDArray[np.int32],
        first: NDArray[np.float64],
        last: NDArray[np.float64],
        points: NDArray[np.float64],
    ) -> NDArray[np.int32]:
        """Return tours (e, n) found from tours (m, n) while weights (m, 2) change from ``first`` to ``last``."""
        parts: dict[int, NDArray[np.int32]] = {}

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, _ = self._workspaces[thread]
            way = make_way(MOST_ON_THE_WAY, self.instance.n, self.instance.k)
            for i in rows:
                left = slide(self._costs, walker, way, tours[i], first[i], last[i], points, self.stop.flag)
                parts[i] = way.tours[:left].copy()

        self._share(work, len(tours))
        return np.concatenate([np.empty((0, self.instance.n), np.int32), *(parts[i] for i in sorted(parts))])

    def explore(self, members: Members, front: Front) -> Children:
        """Return the children of members."""
        parts: dict[int, Children] = {}

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, finds = self._workspaces[thread]
            way = np.empty(len(front.tree.held), np.int32)
            for i in rows:
                look(self._costs, walker, members, front, self.instance.unit, finds, way, i, self.stop.flag)
                parts[i] = _taken(finds, i)

        self._share(work, len(members.tours))
        found = [parts[i] for i in sorted(parts)] or [_taken(make_finds(1, self.instance.k), 0)]
        return Children(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
        tours = np.empty((len(children.owner), self.instance.n), np.int32)
        self._allocate_workspaces(1)
        follow(self._workspaces[0][0], members.tours, *children[:3], tours, 0, len(tours))
        return tours


def _taken(finds: Finds, member: int) -> Children:
    """Return copies of the children found."""
    e = int(finds.found[0])
    owner = np.full(e, member, np.int32)
    return Children(owner, finds.exchanges[:e].copy(), finds.chain[:e].copy(), finds.lengths[:e].copy())
