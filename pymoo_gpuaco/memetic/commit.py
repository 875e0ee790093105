"""Commit of several exchanges, found in parallel on one tour, to this tour.

An exchange replaces k edges of the tour by k others, and gives a tour if it is applied alone. Several exchanges may
conflict: two may remove the same edge, and two that share no city can still leave more than one cycle. ``commit``
accepts better exchanges first, and its result is always one cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.stretches import Stretches, find_subtours, free_end, make_stretches, write_stretch
from pymoo_gpuaco.runtime.compiled import (
    Bool_1d,
    Float64_1d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    Int64_2d,
    compiled,
    compiled_callee,
    struct,
)

# Exchanges of gain 0 let a search cross plateaus. Lattices have thousands in a round, which cost more than they gain.
# Considered are MOST_ZEROS, and one more for every CITIES_PER_ZERO cities.
MOST_ZEROS = 16
CITIES_PER_ZERO = 256
# In a round, for each extra cycle one of the exchanges that separate it from another cycle is dropped. After
# SINGLE_DROP_ROUNDS all of those that are not local are dropped, and after LOCAL_ROUNDS more all of them.
SINGLE_DROP_ROUNDS, LOCAL_ROUNDS = 12, 8


class Exchanges(NamedTuple):
    """e exchanges of r edges in total, by positions in the tour on which they were found."""

    gain: NDArray[np.float64]  # (e,) reduction of the tour length, exact in the units of the search
    first: NDArray[np.int64]  # (e + 1,) exchange i owns rows first[i] .. first[i+1]-1 of both
    removed: NDArray[np.int32]  # (r, 2) edges out: pairs of cyclically adjacent positions
    added: NDArray[np.int32]  # (r, 2) edges in: pairs of positions
    # (e,) True if only short stretches change their order or direction: such exchanges rarely conflict; None: unknown
    local: NDArray[np.bool_] | None = None


def commit(
    tour: NDArray[np.int32], exchanges: Exchanges, only_gains: bool = False
) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Choose exchanges of a tour (n,) that together give one tour; return which are applied (e,), and that tour.

    Better exchanges come first (ties: the lower index). Each claims its positions, and an exchange with a claimed
    position is rejected. The others may give several cycles. Then, for each cycle but the largest, the weakest exchange
    that separates it from another cycle is dropped, a local one only if there is no other. This repeats, and drops more
    after some rounds. Of the exchanges with gain 0, 16 and one more for every 256 cities are considered.
    ``only_gains``: none without a gain. The cost is O(r log r + n).

    n >= 3, and each exchange must be valid if it is applied alone.
    """
    n, (gain, first, removed, added, local) = len(tour), exchanges
    order = np.argsort(-gain, kind="stable")
    accepted = np.zeros(len(gain), np.bool_)
    claimed = np.zeros(n, np.bool_)
    rank = np.empty(len(gain), np.int64)
    is_local = np.zeros(len(gain), np.bool_) if local is None else local
    rank[order] = np.arange(len(gain))
    rank[~is_local] += len(gain)  # these are dropped before local ones
    if only_gains:
        order = order[gain[order] > 0.0]
    _claim(order, gain, first[:-1], first[1:], removed, MOST_ZEROS + n // CITIES_PER_ZERO, claimed, accepted)

    sizes = np.diff(first)
    owner = np.repeat(np.arange(len(gain)), sizes)
    rows = np.flatnonzero(accepted[owner])
    owner, away, into = owner[rows], removed[rows].astype(np.int64), added[rows].astype(np.int64)
    low, high = away.min(axis=1, initial=n), away.max(axis=1, initial=-1)
    cuts = np.where((low == 0) & (high == n - 1), n - 1, low)
    by_position = np.argsort(cuts, kind="stable")
    m, out = len(rows), np.empty(n, np.int32)
    changes = _Changes(cuts[by_position], owner[by_position], into, owner, rank, is_local, accepted)
    by_end, weakest = np.empty(2 * m, np.int64), np.empty(m + 1, np.int64)
    _drop_until_one_cycle(tour, changes, make_stretches(0, m), by_end, weakest, out)
    return accepted, out


@compiled
def _claim(
    order: Int64_1d,
    gain: Float64_1d,
    first: Int64_1d,
    last: Int64_1d,
    removed: Int32_2d,
    zeros: int,
    claimed: Bool_1d,
    accepted: Bool_1d,
) -> None:
    """Accept exchanges in the given order unless a position is ``claimed`` (n,).

    Exchange i owns rows first[i] .. last[i]-1 of ``removed``.
    """
    for i in order:
        if gain[i] == 0.0:
            if zeros == 0:
                continue
            zeros -= 1
        free = True
        for row in range(first[i], last[i]):
            for side in range(2):
                if claimed[removed[row, side]]:
                    free = False
        if not free:
            continue
        for row in range(first[i], last[i]):
            for side in range(2):
                claimed[removed[row, side]] = True
        accepted[i] = True


@struct
class _Changes(NamedTuple):
    """Exchanges of a tour, and the m edges of those that `_claim` accepted."""

    cuts: Int64_1d  # (m,) removed edges, ascending
    cut_owner: Int64_1d  # (m,) exchange of each
    added: Int64_2d  # (m, 2)
    owner: Int64_1d  # (m,) exchange of each
    rank: Int64_1d  # (e,) the exchange of highest rank is dropped first
    is_local: Bool_1d  # (e,)
    accepted: Bool_1d  # (e,)


@compiled
def _drop_until_one_cycle(
    tour: Int32_1d,
    changes: _Changes,
    w: Stretches,
    by_end: Int64_1d,
    weakest: Int64_1d,
    out: Int32_1d,
) -> None:
    """Drop exchanges until one cycle is left; write the new tour to ``out`` (n,).

    Workspace arrays: ``w``, the current stretches; ``by_end`` (2 m,), the exchange that joins each end of a stretch;
    ``weakest`` (m + 1,), the weakest exchange of each cycle.
    """
    n, rounds = tour.shape[0], 0
    while True:
        m = _cut_and_join(changes, n, w, by_end)
        if m == 0:
            for p in range(n):
                out[p] = tour[p]
            return
        found = find_subtours(n, m, w)
        if found == 1:
            _write(tour, m, w, out)
            return
        _drop(changes, m, found, rounds, w, by_end, weakest)
        rounds += 1


@compiled_callee
def _cut_and_join(changes, n, w, by_end):  # type: ignore[no-untyped-def]
    """Cut the tour at the edges of accepted exchanges and join the stretches; return their number."""
    m = 0
    for row in range(changes.cuts.shape[0]):
        if changes.accepted[changes.cut_owner[row]]:
            w.cuts[m] = changes.cuts[row]
            m += 1
    for end in range(2 * m):
        w.joined[end] = -1
    for row in range(changes.added.shape[0]):
        if changes.accepted[changes.owner[row]]:
            a, b = free_end(changes.added[row, 0], n, m, w), free_end(changes.added[row, 1], n, m, w)
            w.joined[a], w.joined[b] = b, a
            by_end[a] = by_end[b] = changes.owner[row]
    return m


@compiled_callee
def _drop(changes, m, found, rounds, w, by_end, weakest):  # type: ignore[no-untyped-def]
    """Drop the weakest exchange that separates each of ``found`` cycles but the largest; after some rounds, more."""
    largest = 0
    for c in range(found):
        weakest[c] = -1
        if w.size[c] > w.size[largest]:
            largest = c
    for s in range(m):
        one, two = w.subtour[s], w.subtour[s + 1 if s + 1 < m else 0]
        if one == two:
            continue
        # this exchange separates the two cycles
        exchange = by_end[2 * s + 1]
        for c in (one, two):
            if weakest[c] < 0 or changes.rank[exchange] > changes.rank[weakest[c]]:
                weakest[c] = exchange
        if rounds >= SINGLE_DROP_ROUNDS and (
            not changes.is_local[exchange] or rounds >= SINGLE_DROP_ROUNDS + LOCAL_ROUNDS
        ):
            changes.accepted[exchange] = False
    for c in range(found):
        if c != largest:
            changes.accepted[weakest[c]] = False


@compiled_callee
def _write(tour, m, w, out):  # type: ignore[no-untyped-def]
    """Write the cities of the cycle to ``out``, from stretch 0 in its old direction."""
    end, to = 0, 0
    while True:
        to = write_stretch(tour, end, m, w.cuts, out, to)
        end = w.joined[end ^ 1]
        if end == 0:
            return
