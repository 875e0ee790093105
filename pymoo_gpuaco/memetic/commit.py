"""Commit: exchanges that were found in parallel on one tour are applied to it together.

An exchange replaces k edges of the tour by k others, and gives a tour if it is applied alone. Several exchanges may
conflict: two may remove the same edge, and two that share nothing can still leave more than one cycle. ``select``
accepts better exchanges first and always ends with one cycle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.stretches import begin_of, cities_in, stretch_at
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee

# Exchanges of gain 0 let a search cross plateaus. Lattices offer thousands in a round, which cost more than they gain.
# Accepted are ZEROS, and one more for every CITIES_A_ZERO cities.
ZEROS = 16
CITIES_A_ZERO = 256
# For each extra cycle, one of the exchanges that separate it from another cycle is dropped. After GENTLE_ROUNDS rounds
# all of those that are not local are dropped, and after FIRM_ROUNDS more all of them.
GENTLE_ROUNDS, FIRM_ROUNDS = 12, 8

_NONE = np.int32(-1)
_TAKEN = np.int32(-2)


class Exchanges(NamedTuple):
    """e exchanges of r edges in total, by positions of the tour on which they were found."""

    gain: NDArray[np.float64]  # (e,) reduction of the tour length, exact in the units of the search
    first: NDArray[np.int64]  # (e + 1,) exchange i owns rows first[i] .. first[i+1]-1 of both
    removed: NDArray[np.int32]  # (r, 2) edges out: pairs of cyclically adjacent positions
    added: NDArray[np.int32]  # (r, 2) edges in: pairs of positions
    # (e,) True if only short stretches change their order or direction, which rarely causes conflicts; None: unknown
    local: NDArray[np.bool_] | None = None


def select(n: int, exchanges: Exchanges) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
    """Choose exchanges that together give one tour, and return the tour as segments.

    Better exchanges come first (ties: the lower index). Each claims the positions it touches, and an exchange with a
    claimed position is rejected. The rest may give several cycles. Then, for each cycle but the largest, the weakest of
    the exchanges that separate it from another cycle is dropped, a local one only if there is no other. This repeats,
    and after some rounds drops more. Of the exchanges with gain 0, 16 and one more for every 256 cities are considered.
    The cost is O(r log r + n / 64).

    ``n`` >= 3 is the number of positions, and each exchange must be valid if it is applied alone. Returns ``accepted``
    (e,), True for the applied exchanges, and ``segments`` (s, 3) int32, the new tour as stretches of the old one for
    ``lay_out``: position of the entry, number of positions, +1 or -1 for the direction.

    Raises ValueError if an exchange removes pairs that are not adjacent or removes a pair twice, or if it adds edges at
    ends that it has not freed.
    """
    gain, first, removed, added, local = exchanges
    if np.any(removed < 0) or np.any(removed >= n):
        raise ValueError(f"positions of removed edges must be in [0, {n - 1}]")
    order = np.argsort(-gain, kind="stable")
    accepted = np.zeros(len(gain), np.bool_)
    claimed = np.zeros(n // 64 + 1, np.uint64)
    rank = np.empty(len(gain), np.int64)
    is_local = np.zeros(len(gain), np.bool_) if local is None else local
    rank[order] = np.arange(len(gain))
    rank[~is_local] += len(gain)  # dropped before the others
    _claim(order, gain, first[:-1], first[1:], removed, ZEROS + n // CITIES_A_ZERO, claimed, accepted)

    sizes = np.diff(first)
    owner = np.repeat(np.arange(len(gain)), sizes)
    rows = np.flatnonzero(accepted[owner])
    owner, out, into = owner[rows], removed[rows].astype(np.int64), added[rows].astype(np.int64)
    low, high = out.min(axis=1, initial=n), out.max(axis=1, initial=-1)
    around = (low == 0) & (high == n - 1)
    if np.any((high - low != 1) & ~around):
        raise ValueError("positions of a removed edge must be adjacent in the tour")
    cuts = np.where(around, n - 1, low)
    by_position = np.argsort(cuts, kind="stable")
    m = len(rows)
    segments = np.empty((m + 1, 3), np.int32)
    count = _settle(
        n,
        cuts[by_position],
        owner[by_position],
        into,
        owner,
        rank,
        is_local,
        accepted,
        np.empty(m, np.int64),
        np.empty((2 * m, 2), np.int64),
        np.empty(m, np.int64),
        np.empty((m + 1, 2), np.int64),
        segments,
    )
    if count < 0:
        raise ValueError("an exchange must add edges at the ends that it frees")
    return accepted, segments[:count].copy()


def lay_out(tour: NDArray[np.int32], segments: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """Write the tour (n,) of the segments from ``select`` to ``out`` (n,), which must be another array."""
    _lay_out(tour, segments, out)


@compiled
def _claim(order, gain, first, last, removed, zeros, claimed, accepted):  # type: ignore[no-untyped-def]
    """Accept exchanges in the given order unless a position is claimed; ``claimed`` has one bit per position.

    Exchange i owns rows first[i] .. last[i]-1 of ``removed``.
    """
    one, low = np.uint64(1), np.uint64(63)
    for i in order:
        if gain[i] == 0.0:
            if zeros == 0:
                continue
            zeros -= 1
        free = True
        for row in range(first[i], last[i]):
            for side in range(2):
                p = np.uint64(removed[row, side])
                if claimed[p >> np.uint64(6)] >> (p & low) & one:
                    free = False
        if not free:
            continue
        for row in range(first[i], last[i]):
            for side in range(2):
                p = np.uint64(removed[row, side])
                claimed[p >> np.uint64(6)] |= one << (p & low)
        accepted[i] = True


@compiled_callee
def _loose_end(n, cuts, m, p, links):  # type: ignore[no-untyped-def]
    """Return the free end at position p: 2 s for the start of segment s, 2 s + 1 for its end, -1 if none.

    A position with both edges removed is a segment of one city. Its two added edges take one end each, so a walk that
    arrives by one leaves by the other.
    """
    s = stretch_at(p, m, cuts)
    if begin_of(s, n, m, cuts) == p and links[2 * s, 0] == _NONE:
        return 2 * s
    if cuts[s] == p and links[2 * s + 1, 0] == _NONE:
        return 2 * s + 1
    return -1


@compiled
def _settle(  # type: ignore[no-untyped-def]
    n,
    all_cuts,
    cut_owner,
    added,
    owner,
    rank,
    is_local,
    accepted,
    cuts,
    links,
    label,
    cycles,
    segments,
):
    """Drop exchanges until one cycle is left; write its segments and return their number, or -1 for bad input.

    Workspaces: ``cuts`` (m,), the current cuts; ``links`` (2 m, 2), the end linked to each segment end and the exchange
    of that link; ``label`` (m,), the cycle of each segment; ``cycles`` (m + 1, 2), the number of positions and the
    weakest exchange of each cycle.
    """
    rounds = 0
    while True:
        m = 0
        for row in range(all_cuts.shape[0]):
            if accepted[cut_owner[row]]:
                cuts[m] = all_cuts[row]
                if m > 0 and cuts[m - 1] == cuts[m]:
                    return -1
                m += 1
        if m == 0:
            segments[0, 0], segments[0, 1], segments[0, 2] = 0, n, 1
            return 1
        for end in range(2 * m):
            links[end, 0] = links[end, 1] = _NONE
        for row in range(added.shape[0]):
            if accepted[owner[row]]:
                a = _loose_end(n, cuts, m, added[row, 0], links)
                if a < 0:
                    return -1
                links[a, 0] = _TAKEN
                b = _loose_end(n, cuts, m, added[row, 1], links)
                if b < 0:
                    return -1
                links[a, 0], links[b, 0] = b, a
                links[a, 1] = links[b, 1] = owner[row]
        found = _walk(n, cuts, m, links, label, cycles)
        if found == 1:
            return _write(n, cuts, m, links, segments)
        largest = 0
        for c in range(1, found):
            if cycles[c, 0] > cycles[largest, 0]:
                largest = c
        for s in range(m):
            one, two = label[s], label[s + 1 if s + 1 < m else 0]
            if one == two:
                continue
            # without this exchange the two cycles would be one
            exchange = links[2 * s + 1, 1]
            for c in (one, two):
                if cycles[c, 1] < 0 or rank[exchange] > rank[cycles[c, 1]]:
                    cycles[c, 1] = exchange
            if rounds >= GENTLE_ROUNDS and (not is_local[exchange] or rounds >= GENTLE_ROUNDS + FIRM_ROUNDS):
                accepted[exchange] = False
        for c in range(found):
            if c != largest:
                accepted[cycles[c, 1]] = False
        rounds += 1


@compiled_callee
def _walk(n, cuts, m, links, label, cycles):  # type: ignore[no-untyped-def]
    """Follow the links from segment to segment; return the number of cycles."""
    for s in range(m):
        label[s] = -1
    found = 0
    for begin in range(m):
        if label[begin] >= 0:
            continue
        positions, end = 0, 2 * begin
        while True:  # enter a segment by ``end``, cross it, follow the link
            s = end >> 1
            label[s] = found
            positions += cities_in(s, n, m, cuts)
            end = links[end ^ 1, 0]
            if end == 2 * begin:
                break
        cycles[found, 0], cycles[found, 1] = positions, -1
        found += 1
    return found


@compiled_callee
def _write(n, cuts, m, links, segments):  # type: ignore[no-untyped-def]
    """Write the segments in the order of the cycle, from the first one in its old direction; return their number."""
    end, count = 0, 0
    while True:
        s = end >> 1
        forward = (end & 1) == 0
        segments[count, 0] = begin_of(s, n, m, cuts) if forward else cuts[s]
        segments[count, 1] = cities_in(s, n, m, cuts)
        segments[count, 2] = 1 if forward else -1
        count += 1
        end = links[end ^ 1, 0]
        if end == 0:
            return count


@compiled
def _lay_out(tour, segments, out):  # type: ignore[no-untyped-def]
    n = tour.shape[0]
    to = 0
    for s in range(segments.shape[0]):
        p, count = segments[s, 0], segments[s, 1]
        if segments[s, 2] > 0:
            for _ in range(count):
                out[to] = tour[p]
                to += 1
                p = p + 1 if p + 1 < n else 0
        else:
            for _ in range(count):
                out[to] = tour[p]
                to += 1
                p = p - 1 if p > 0 else n - 1
