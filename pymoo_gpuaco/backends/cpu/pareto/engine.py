"""Multi-objective search on all cores.

Exploration enumerates the chains of a member of the front and collects those that improve the front. L. Paquete,
M. Chiarandini and T. Stuetzle, "Pareto local optimum sets in the biobjective traveling salesman problem" (2004), use
2-opt and Or-opt moves. Chains include both; weights prune chains that lead away from the front.
"""

from __future__ import annotations

from collections.abc import Iterator
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
    rejoin,
    set_tour,
    set_weights,
)
from pymoo_gpuaco.backends.cpu.pareto.descent import descend
from pymoo_gpuaco.pareto.archive import key_of, slot_of
from pymoo_gpuaco.pareto.device import (
    MOST_CHILDREN,
    MOST_EXCHANGES,
    Children,
    Front,
    Members,
)
from pymoo_gpuaco.pareto.front_2d import is_covered
from pymoo_gpuaco.pareto.instance import Costs, FrontInstance, make_costs
from pymoo_gpuaco.pareto.nd_tree import dominates, tree_covers
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    UInt64_1d,
    compiled,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import STREAM_KICKS, new_streams
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

_FREE = np.uint64(0)
_COVERS = 16  # cached points per member: a few points of the front dominate most of its children


@struct
class FoundChains(NamedTuple):
    """Chains that one thread has found, see `make_found_chains`."""

    exchanges: Int32_1d
    chain: Int32_2d
    lengths: Float64_2d
    slots: UInt64_1d
    taken: Int64_1d
    child: Float64_1d
    covers: Float64_2d
    n_found: Int64_1d


def make_found_chains(most: int, k: int) -> FoundChains:
    """Allocate a table of up to ``most`` chains of one member that lead to new lengths (k,).

    ``most`` is a power of two.
    """
    return FoundChains(
        exchanges=np.empty(most, np.int32),
        chain=np.empty((most, 2 * MOST_EXCHANGES), np.int32),
        lengths=np.empty((most, k)),
        slots=np.zeros(4 * most, np.uint64),  # hash table of the keys of these vectors
        taken=np.empty(most, np.int64),  # indices of the used ``slots``
        child=np.empty(k),  # lengths of the current child
        covers=np.empty((_COVERS, k)),  # latest points of the front that dominated a child
        n_found=np.zeros(1, np.int64),  # number of chains
    )


@inlined
def _is_covered_by_cached(chains):  # type: ignore[no-untyped-def]
    """Return True if a cached point weakly dominates the current child."""
    again = False
    for c in range(_COVERS):
        again = again or dominates(chains.covers[c], chains.child)
    return again


@compiled
def explore_member(
    costs: Costs,
    w: Walker,
    members: Members,
    front: Front,
    unit: Float64_1d,
    chains: FoundChains,
    stack: Int32_1d,
    i: int,
    stop: UInt8_1d,
) -> None:
    """Explore all chains of member i, until ``chains`` is full or ``stop[0]`` is 1; ``stack``: see `tree_covers`."""
    tours, lengths, weights, slack, most, begin = members
    n = tours.shape[1]
    _clear(chains)
    oldest = 0  # of the cached points
    set_weights(costs, weights[i], w, False)
    set_tour(tours[i], w)
    for step in range(2 * n):
        if stop[0] or chains.n_found[0] == chains.taken.shape[0]:
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
            lengths_of(costs, w, exchanges, lengths[i], chains.child)
            key = key_of(chains.child, unit)
            slot, oldest = _slot_if_new(w, front, chains, key, exchanges, stack, oldest)
            if slot < 0:
                continue
            at = chains.n_found[0]
            if at == chains.taken.shape[0]:
                break
            _store(chains, at, w, exchanges)
            chains.slots[slot] = key
            chains.taken[at] = slot


@inlined
def _clear(chains):  # type: ignore[no-untyped-def]
    """Forget the chains of another member, and cached points, which may have left the front."""
    for f in range(chains.n_found[0]):
        chains.slots[chains.taken[f]] = _FREE
    chains.n_found[0] = 0
    for f in range(chains.covers.shape[0]):
        for q in range(chains.covers.shape[1]):
            chains.covers[f, q] = np.inf


@inlined
def _slot_if_new(w, front, chains, key, exchanges, stack, oldest):  # type: ignore[no-untyped-def]
    """Return the hash slot of the current child, -1 if it is known, no tour or dominated; and the oldest cached one."""
    points, tree, rank, seen = front
    k = chains.child.shape[0]
    if is_covered(points, chains.child, rank) if k == 2 else _is_covered_by_cached(chains):
        return np.int64(-1), oldest
    if seen[slot_of(seen, key)] == key:
        return np.int64(-1), oldest
    slot = np.int64(slot_of(chains.slots, key))
    if chains.slots[slot] == key or not closes(w, exchanges):
        return np.int64(-1), oldest
    # last, because a query of the tree is far more expensive than the checks before
    if k > 2 and tree_covers(tree, points, chains.child, stack, chains.covers[oldest]):
        return np.int64(-1), (oldest + 1) % _COVERS
    return slot, oldest


@inlined
def _store(chains, at, w, exchanges):  # type: ignore[no-untyped-def]
    """Store the current chain and its lengths at index ``at``."""
    chains.exchanges[at] = exchanges
    for m in range(2 * exchanges):
        chains.chain[at, m] = w.chain[m]
    for q in range(chains.child.shape[0]):
        chains.lengths[at, q] = chains.child[q]
    chains.n_found[0] = at + 1


@compiled
def follow(
    w: Walker, tours: Int32_2d, owner: Int32_1d, exchanges: Int32_1d, chain: Int32_2d, children: Int32_2d
) -> None:
    """Write children (e, n): tours of their owners after their chains."""
    for f in range(children.shape[0]):
        set_tour(tours[owner[f]], w)
        for m in range(2 * exchanges[f]):
            w.chain[m] = chain[f, m]
        closes(w, exchanges[f])
        rejoin(w, exchanges[f])
        for p in range(w.tour.shape[0]):
            children[f, p] = w.tour[p]


class CpuFronts:
    """``FrontDevice`` on all cores."""

    kind: str = "cpu"
    times = 1

    def __init__(self, instance: FrontInstance) -> None:
        self.instance = instance
        self.stop = Stop()
        self._costs = instance.costs
        self._allocate()

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        self._costs = make_costs(self.instance.parts, candidates, self.instance.costs.table)
        self._allocate()

    def _allocate(self) -> None:
        """Allocate a workspace for each thread."""
        n, c, k = self._costs.near.shape
        self._workspaces = [
            (make_walker(n, k, c), make_found_chains(MOST_CHILDREN, k)) for _ in range(thread_count())
        ]

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Return tours (m, n) improved by ``kicks`` kicks, each under its weights (m, k)."""
        found = np.array(tours, np.int32)
        streams = new_streams(key, len(found), STREAM_KICKS)

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, _ = self._workspaces[thread]
            for i in rows:
                descend(self._costs, walker, weights[i], found[i], kicks, streams[i], self.stop.flag)

        self.stop.parallel_dynamic(work, len(found), len(self._workspaces))
        return found

    def explore(self, members: Members, front: Front) -> Children:
        """Return the children of members."""
        parts: dict[int, Children] = {}
        unit = self.instance.unit

        def work(thread: int, rows: Iterator[int]) -> None:
            walker, chains = self._workspaces[thread]
            stack = np.empty(len(front.tree.held), np.int32)
            for i in rows:
                explore_member(self._costs, walker, members, front, unit, chains, stack, i, self.stop.flag)
                parts[i] = _children_of(chains, i)

        self.stop.parallel_dynamic(work, len(members.tours), len(self._workspaces))
        found = [parts[i] for i in sorted(parts)] or [_children_of(make_found_chains(1, self.instance.k), 0)]
        return Children(*(np.concatenate(arrays) for arrays in zip(*found, strict=True)))

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
        tours = np.empty((len(children.owner), self.instance.n), np.int32)
        follow(self._workspaces[0][0], members.tours, *children[:3], tours)
        return tours


def _children_of(chains: FoundChains, member: int) -> Children:
    """Return copies of the children of a member."""
    e = int(chains.n_found[0])
    owner = np.full(e, member, np.int32)
    return Children(owner, chains.exchanges[:e].copy(), chains.chain[:e].copy(), chains.lengths[:e].copy())
