"""Workspace of local search: tour, positions, queue of cities (don't-look bits), and log of reversals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.runtime.compiled import (
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    UInt64_1d,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import STATE
from pymoo_gpuaco.runtime.threads import thread_array

NOT_LOGGING = -1
# Moves per city after which a search fails; from a random tour it needs two or three. More indicate inconsistent
# distances, or a tour that is not a permutation.
MOST_MOVES = 1000
NO_END = "local search did not terminate: distances are inconsistent, or a tour is not a permutation"
_FEW_CITIES = 100  # added to n, so that the limit is also loose for small instances


@struct
class Workspace(NamedTuple):
    """Arrays of one thread, see `make_workspace`."""

    tour: Int32_1d
    position: Int32_1d
    queue: Int32_1d
    queued: UInt8_1d
    ring: Int64_1d
    log: Int32_2d
    logged: Int64_1d
    moves_left: Int64_1d
    stop: UInt8_1d
    rng: UInt64_1d


def make_workspace(n: int, log_capacity: int = 4096, stop: np.ndarray | None = None) -> Workspace:
    """Allocate the state of the local search of one thread for n cities; positions are indices of ``tour``.

    ``stop`` is the flag that ends its searches.
    """
    return Workspace(
        tour=np.zeros(n, np.int32),
        position=np.zeros(n, np.int32),  # position[tour[p]] == p
        queue=np.empty(n, np.int32),  # ring buffer of cities from which to search
        queued=np.zeros(n, np.uint8),  # 1 while the city is in the queue, so its don't-look bit is off
        ring=thread_array(2, np.int64),  # head, count
        log=np.empty((log_capacity, 2), np.int32),  # first position and number of cities of each reversal
        logged=np.full(1, NOT_LOGGING, np.int64),  # reversals written, or NOT_LOGGING
        moves_left=thread_array(1, np.int64),  # moves left for this tour
        stop=np.zeros(1, np.uint8) if stop is None else stop,  # 1 stops the search
        rng=thread_array(STATE, np.uint64),  # random numbers of kicks
    )


@inlined
def push(w, city):  # type: ignore[no-untyped-def]
    """Append a city to the queue, unless the queue contains it."""
    if w.queued[np.uint32(city)] == 0:
        n = w.queue.shape[0]
        slot = w.ring[0] + w.ring[1]
        if slot >= n:
            slot -= n
        w.queue[np.uint32(slot)] = city
        w.queued[np.uint32(city)] = 1
        w.ring[1] += 1


@inlined
def pop(w):  # type: ignore[no-untyped-def]
    """Remove and return the oldest city of the queue."""
    city = w.queue[w.ring[0]]
    w.ring[0] += 1
    if w.ring[0] == w.queue.shape[0]:
        w.ring[0] = 0
    w.ring[1] -= 1
    w.queued[city] = 0
    return city


@compiled_callee
def load_tour(w, tour):  # type: ignore[no-untyped-def]
    """Copy a tour into the workspace, and clear the queue."""
    n = tour.shape[0]
    w.moves_left[0] = MOST_MOVES * (n + _FEW_CITIES)
    while w.ring[1] > 0:
        pop(w)
    for p in range(n):
        w.tour[p] = tour[p]
        w.position[tour[p]] = p


@compiled_callee
def store_tour(w, tour):  # type: ignore[no-untyped-def]
    """Copy the tour out of the workspace, in a loop: a slice assignment takes seconds longer to compile."""
    for p in range(tour.shape[0]):
        tour[p] = w.tour[p]


@inlined
def after(w, city):  # type: ignore[no-untyped-def]
    """Return the next city of the tour."""
    p = w.position[np.uint32(city)] + 1
    return w.tour[np.uint32(p if p < w.tour.shape[0] else 0)]


@inlined
def before(w, city):  # type: ignore[no-untyped-def]
    """Return the previous city of the tour."""
    p = w.position[np.uint32(city)]
    return w.tour[np.uint32(p - 1 if p > 0 else w.tour.shape[0] - 1)]


@compiled_callee
def reverse(tour, position, n, first, count):  # type: ignore[no-untyped-def]
    """Reverse ``count`` of n cities from position ``first`` on, past the end of the tour if needed; an involution."""
    i, j = first, first + count - 1
    if j >= n:
        j -= n
    for _ in range(count // 2):
        u, v = tour[np.uint64(i)], tour[np.uint64(j)]
        tour[np.uint64(i)], tour[np.uint64(j)] = v, u
        position[np.uint64(v)], position[np.uint64(u)] = i, j
        i += 1
        if i == n:
            i = 0
        j -= 1
        if j < 0:
            j = n - 1


@compiled_callee
def reverse_logged(w, first, count):  # type: ignore[no-untyped-def]
    """Reverse ``count`` cities from position ``first`` on; log the reversal if logging is on."""
    if w.logged[0] >= 0:
        w.log[w.logged[0], 0] = first
        w.log[w.logged[0], 1] = count
        w.logged[0] += 1
    reverse(w.tour, w.position, w.tour.shape[0], first, count)


@compiled_callee
def reverse_path(w, outside, first, last):  # type: ignore[no-untyped-def]
    """Reverse the path first .. last, where ``outside`` is the tour neighbour of ``first`` that is not on it.

    Reversing all other cities gives the same cycle, so the shorter of both paths is reversed.
    """
    n = w.tour.shape[0]
    if after(w, outside) == first:
        i, j = w.position[np.uint32(first)], w.position[np.uint32(last)]
    else:
        i, j = w.position[np.uint32(last)], w.position[np.uint32(first)]
    count = j - i + 1
    if count <= 0:
        count += n
    if 2 * count > n:
        i = j + 1 if j + 1 < n else 0
        count = n - count
    reverse_logged(w, i, count)


@compiled_callee
def undo(w):  # type: ignore[no-untyped-def]
    """Undo all logged reversals, the newest first."""
    for e in range(w.logged[0] - 1, -1, -1):
        reverse(w.tour, w.position, w.tour.shape[0], w.log[e, 0], w.log[e, 1])
    w.logged[0] = 0


@compiled_callee
def push_changed(w, reference, directed):  # type: ignore[no-untyped-def]
    """Queue, in tour order, every city whose tour neighbours differ from those in the reference.

    ``reference`` (n, 2) int32 holds the tour neighbours of a locally optimal tour, -1 if there is none. Unless
    ``directed``, their order does not matter. Searches from other cities would find nothing, so their
    don't-look bits stay set.
    """
    n = w.tour.shape[0]
    for p in range(n):
        city = w.tour[p]
        left, right = w.tour[p - 1 if p > 0 else n - 1], w.tour[p + 1 if p + 1 < n else 0]
        same = (reference[city, 0] == left and reference[city, 1] == right) or (
            not directed and reference[city, 0] == right and reference[city, 1] == left
        )
        if not same:
            push(w, city)


def tour_neighbours(tour: np.ndarray, reference: np.ndarray) -> None:
    """Write both tour neighbours of every city; ``reference`` is (n, 2) int32."""
    reference[tour, 0], reference[tour, 1] = np.roll(tour, 1), np.roll(tour, -1)
