"""Pareto local search: enumeration of the chains of a front's member, and collection of those that improve the front.

L. Paquete, M. Chiarandini and T. Stuetzle, "Pareto local optimum sets in the biobjective traveling salesman problem"
(2004), use 2-opt and Or-opt moves. Chains include both; weights prune those that lead away from the front.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.chains import (
    begin_chain,
    closes,
    lengths_of,
    next_chain,
    put,
    rejoin,
    weigh,
)
from pymoo_gpuaco.pareto.device import MOST_EXCHANGES
from pymoo_gpuaco.pareto.front_2d import is_covered
from pymoo_gpuaco.pareto.nd_tree import none_longer, tree_covers
from pymoo_gpuaco.pareto.seen import key_of, slot_of
from pymoo_gpuaco.runtime.compiled import compiled, inlined

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
