"""Commit for many tours at once: each has exchanges of its own, and threads take tours side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.compiled import compiled
from pymoo_gpuaco.exchange.commit import CITIES_A_ZERO, ZEROS, _claim, _settle
from pymoo_gpuaco.backends.cpu.threads import spread, thread_count

# A thread is woken for so many tours at least: fewer are done sooner than said.
_TOURS_A_THREAD = 8


class Found(NamedTuple):
    """e exchanges of t tours over n cities each; exchange i owns ``edges[i]`` rows from ``first[i]`` on, 0 for none."""

    tours: NDArray[np.int32]  # (e,) number of the tour it was found on, ascending
    gain: NDArray[np.float64]  # (e,)
    edges: NDArray[np.int32]  # (e,)
    first: NDArray[np.int32]  # (e,)
    removed: NDArray[np.int32]  # (r, 2) pairs of adjacent positions
    added: NDArray[np.int32]  # (r, 2) pairs of positions


class Commit(NamedTuple):
    """What becomes of t tours: the segments of tour t are rows begins[t] .. begins[t] + counts[t] - 1."""

    accepted: NDArray[np.bool_]  # (e,)
    gain: NDArray[np.float64]  # (t,) how much shorter each tour gets
    begins: NDArray[np.int32]  # (t,)
    counts: NDArray[np.int32]  # (t,)
    segments: NDArray[np.int32]  # (s, 4) place in the new tour, position in the old, count, direction


def select_many(n: int, tours: int, found: Found) -> Commit:
    """Choose exchanges for each of several tours, as ``select`` does for one, and cut the tours up for them.

    Raises ValueError where exchanges are none: see ``select``.
    """
    order = np.flatnonzero(found.edges)
    order = order[np.lexsort((-found.gain[order], found.tours[order]))]
    bounds = np.searchsorted(found.tours[order], np.arange(tours + 1)).astype(np.int64)
    upto = np.zeros(len(order) + 1, np.int64)
    np.cumsum(found.edges[order], out=upto[1:])
    rows = upto[bounds]  # where the workspace of each tour begins
    total = int(rows[-1])
    begins = (rows[:-1] + np.arange(tours)).astype(np.int32)
    counts = np.empty(tours, np.int32)
    segments = np.empty((total + tours, 4), np.int32)
    accepted = np.zeros(len(found.gain), np.bool_)
    gain = np.zeros(tours)
    rank = np.empty(len(found.gain), np.int64)
    rank[order] = np.arange(len(order))
    work = _Work(
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        np.empty(total, np.int64),
        np.empty((total, 2), np.int64),
        np.empty(total, np.int64),
        np.empty((2 * total, 2), np.int64),
        np.empty(total, np.int64),
        np.empty((total + tours, 2), np.int64),
        np.empty((total + tours, 3), np.int32),
    )
    first = found.first.astype(np.int64)
    last = first + found.edges
    threads = min(thread_count(), max(1, tours // _TOURS_A_THREAD))
    claimed = np.empty((threads, n // 64 + 1), np.uint64)

    def commit(thread: int, low: int, high: int) -> None:
        _commit_tours(
            n, low, high, order, bounds, rows, found.gain, first, last, found.removed, found.added, rank,
            claimed[thread], work, accepted, gain, begins, counts, segments,
        )

    spread(commit, tours, threads)
    if np.any(counts < 0):
        raise ValueError("an exchange adds edges between other positions than those it has cut loose")
    return Commit(accepted, gain, begins, counts, segments)


class _Work(NamedTuple):
    """Room for all tours: each uses the rows from its own beginning on."""

    keys: NDArray[np.int64]
    all_cuts: NDArray[np.int64]
    cut_owner: NDArray[np.int64]
    owner: NDArray[np.int64]
    added: NDArray[np.int64]
    cuts: NDArray[np.int64]
    links: NDArray[np.int64]
    label: NDArray[np.int64]
    cycles: NDArray[np.int64]
    segments: NDArray[np.int32]


@compiled
def _commit_tours(  # type: ignore[no-untyped-def]
    n, low, high, order, bounds, rows, gains, first, last, removed, added, rank, claimed, work, accepted, gain,
    begins, counts, segments,
):
    """Commit tours low .. high-1."""
    for tour in range(low, high):
        mine = order[bounds[tour] : bounds[tour + 1]]
        claimed[:] = np.uint64(0)
        _claim(mine, gains, first, last, removed, ZEROS + n // CITIES_A_ZERO, claimed, accepted)
        base = rows[tour]
        m = _gather(n, mine, first, last, removed, added, accepted, work, base)
        count = _settle(
            n,
            work.all_cuts[base : base + m],
            work.cut_owner[base : base + m],
            work.added[base : base + m],
            work.owner[base : base + m],
            rank,
            accepted,
            work.cuts[base : base + m],
            work.links[2 * base : 2 * (base + m)],
            work.label[base : base + m],
            work.cycles[base + tour : base + tour + m + 1],
            work.segments[base + tour : base + tour + m + 1],
        )
        counts[tour] = count
        place = 0
        for s in range(count):
            to, run = begins[tour] + s, work.segments[base + tour + s]
            segments[to, 0], segments[to, 1], segments[to, 2], segments[to, 3] = place, run[0], run[1], run[2]
            place += run[1]
        total = 0.0
        for i in mine:
            if accepted[i]:
                total += gains[i]
        gain[tour] = total


@compiled
def _gather(n, mine, first, last, removed, added, accepted, work, base):  # type: ignore[no-untyped-def]
    """Copy the accepted exchanges' edges, and their cuts sorted by position, to the workspace; their number."""
    m = 0
    for i in mine:
        if not accepted[i]:
            continue
        for row in range(first[i], last[i]):
            p, q = removed[row, 0], removed[row, 1]
            cut = n - 1 if abs(p - q) != 1 else min(p, q)
            work.keys[base + m] = cut << 32 | i
            work.added[base + m, 0], work.added[base + m, 1] = added[row, 0], added[row, 1]
            work.owner[base + m] = i
            m += 1
    keys = work.keys[base : base + m]
    _sort(keys)
    for r in range(m):
        work.all_cuts[base + r] = keys[r] >> 32
        work.cut_owner[base + r] = keys[r] & 0xFFFFFFFF
    return m


@compiled
def _sort(keys):  # type: ignore[no-untyped-def]
    """Heap sort: numba's own sort makes arrays, which a function without reference counts must not."""
    count = keys.shape[0]
    start, end = count // 2, count
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            keys[0], keys[end] = keys[end], keys[0]
        root = start
        while True:
            child = 2 * root + 1
            if child >= end:
                break
            if child + 1 < end and keys[child] < keys[child + 1]:
                child += 1
            if keys[root] >= keys[child]:
                break
            keys[root], keys[child] = keys[child], keys[root]
            root = child
