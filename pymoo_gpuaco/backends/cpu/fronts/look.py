"""Pareto local search: every chain from a member of a front, and which of them leads to what the front lacks.

L. Paquete, M. Chiarandini and T. Stuetzle, "Pareto local optimum sets in the biobjective traveling salesman problem"
(2004), look at 2-opt and Or-opt moves. Chains contain both; weights cut off those that lead away from the front.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.fronts.chains import MOST_EXCHANGES, begin_chain, closes, next_chain, put, rejoin, weigh
from pymoo_gpuaco.fronts.costs import cost
from pymoo_gpuaco.fronts.seen import key_of, slot_of
from pymoo_gpuaco.host.compiled import compiled, inner

_FREE = np.uint64(0)


class Finds(NamedTuple):
    """Chains that lead to new lengths, most first places of them taken."""

    owner: NDArray[np.int32]  # (most,) member
    exchanges: NDArray[np.int32]  # (most,)
    chain: NDArray[np.int32]  # (most, 2 MOST_EXCHANGES)
    lengths: NDArray[np.float64]  # (most, k)
    slots: NDArray[np.uint64]  # (power of two > most,) keys of what has been found
    taken: NDArray[np.int64]  # (most,) slots that are taken
    one: NDArray[np.float64]  # (k,) lengths of one tour
    count: NDArray[np.int64]  # (1,)


def make_finds(most: int, k: int) -> Finds:
    """Allocate the arrays; ``most`` is a power of two."""
    return Finds(
        np.empty(most, np.int32),
        np.empty(most, np.int32),
        np.empty((most, 2 * MOST_EXCHANGES), np.int32),
        np.empty((most, k)),
        np.zeros(4 * most, np.uint64),
        np.empty(most, np.int64),
        np.empty(k),
        np.zeros(1, np.int64),
    )


@inner
def _lengths_of(costs, w, exchanges, before, one):  # type: ignore[no-untyped-def]
    """Lengths of the tour that the chain leaves."""
    last = 2 * exchanges - 1
    for q in range(one.shape[0]):
        total = before[q]
        for m in range(exchanges):
            total -= cost(costs, q, w.chain[2 * m], w.chain[2 * m + 1])
            total += cost(costs, q, w.chain[2 * m + 1], w.chain[2 * m + 2 if 2 * m + 1 < last else 0])
        one[q] = total


@inner
def covered(stairs, lengths, rank):  # type: ignore[no-untyped-def]
    """Whether more than ``rank`` points of a front of two objectives (f, 2) are as short by both; it is sorted."""
    low, high = 0, stairs.shape[0]
    while low < high:  # how many are as short by the first
        middle = (low + high) >> 1
        if stairs[middle, 0] <= lengths[0]:
            low = middle + 1
        else:
            high = middle
    return low > rank and stairs[low - 1 - rank, 1] <= lengths[1]


@compiled
def look(costs, w, tours, lengths, weights, slack, most, stairs, rank, slots, unit, finds, first, last, stop):  # type: ignore[no-untyped-def]
    """Look at all chains of members first .. last-1; return the first that there was no room left for, else ``last``.

    tours (m, n), lengths (m, k), weights (m, k), slack (m,) by how much a chain may lengthen the weighted sum; most
    (m,) exchanges of a chain.
    """
    n = tours.shape[1]
    for i in range(first, last):
        if stop[0]:
            return i
        begun = finds.count[0]
        weigh(costs, weights[i], w)
        put(tours[i], w)
        room = True
        for t0 in range(n):
            for forward in (True, False):
                opened = begin_chain(costs, w, t0, forward)
                while room:
                    exchanges, opened, change = next_chain(costs, w, opened, most[i], slack[i])
                    if exchanges == 0:
                        break
                    if change >= slack[i]:
                        continue
                    _lengths_of(costs, w, exchanges, lengths[i], finds.one)
                    if covered(stairs, finds.one, rank):
                        continue
                    key = key_of(finds.one, unit)
                    if slots[slot_of(slots, key)] == key:
                        continue
                    slot = slot_of(finds.slots, key)
                    if finds.slots[slot] == key or not closes(w, exchanges):
                        continue
                    room = _note(finds, i, w, exchanges, key, slot)
        if not room and begun > 0:
            for f in range(begun, finds.count[0]):
                finds.slots[finds.taken[f]] = _FREE
            finds.count[0] = begun
            return i
    return last


@inner
def _note(finds, i, w, exchanges, key, slot):  # type: ignore[no-untyped-def]
    """Note a chain; whether there was room."""
    at = finds.count[0]
    if at == finds.owner.shape[0]:
        return False
    finds.slots[slot] = key
    finds.taken[at] = slot
    finds.owner[at] = i
    finds.exchanges[at] = exchanges
    for m in range(2 * exchanges):
        finds.chain[at, m] = w.chain[m]
    for q in range(finds.one.shape[0]):
        finds.lengths[at, q] = finds.one[q]
    finds.count[0] = at + 1
    return True


@compiled
def follow(w, tours, owner, exchanges, chain, children, first, last):  # type: ignore[no-untyped-def]
    """Write children first .. last-1 of (e, n): the owner's tour with its chain made."""
    for f in range(first, last):
        put(tours[owner[f]], w)
        for m in range(2 * exchanges[f]):
            w.chain[m] = chain[f, m]
        closes(w, exchanges[f])
        rejoin(w, exchanges[f])
        for p in range(w.tour.shape[0]):
            children[f, p] = w.tour[p]
