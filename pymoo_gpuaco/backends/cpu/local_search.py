"""2-opt and Or-opt with neighbour lists, a position array and a work queue (the don't-look bits).

Source of the method: Bentley, "Fast algorithms for geometric traveling salesman problems", ORSA J. Computing 4
(1992), as paper 001, section 5.7 uses it. The best move at one city is applied, and the cities at the ends of
changed edges go back into the queue. Every move is one to three reversals of a path, and each reversal is written
to a log, so that a whole search can be undone in the time it took.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cpu.gain import shortens
from pymoo_gpuaco.host.compiled import allocating, compiled, inlined, inner
from pymoo_gpuaco.host.distances import distance, tour_length
from pymoo_gpuaco.host.philox import STREAM_KICKS, new_stream, next_below

MAX_SEGMENT = 3  # cities that one Or-opt move carries at most (Or, 1976)
NOT_LOGGING = -1
# Moves a city after which a search is given up. From a random tour it makes two or three; more than this means that
# the lengths contradict each other, or that the tour is no permutation.
MOST_MOVES = 1000
NO_END = "the local search found no end: distances contradict each other, or a tour is no permutation of the cities"
_FEW_CITIES = 100  # so that the bound is no tight one where there are few cities


class Workspace(NamedTuple):
    """One thread's tour under change; n cities, positions are indices into ``tour``."""

    tour: np.ndarray  # (n,) int32
    position: np.ndarray  # (n,) int32, position[tour[p]] == p
    queue: np.ndarray  # (n,) int32, ring of cities to look at
    queued: np.ndarray  # (n,) uint8, 1 while the city is in the ring
    ring: np.ndarray  # (2,) int64: head, count
    log: np.ndarray  # (capacity, 2) int32: first position and number of cities of each reversal
    logged: np.ndarray  # (1,) int64: reversals written, or NOT_LOGGING
    moves_left: np.ndarray  # (1,) int64: moves that this tour may still take
    stop: np.ndarray  # (1,) uint8: 1 when the search is to end where it is


def make_workspace(n: int, log_capacity: int = 4096, stop: np.ndarray | None = None) -> Workspace:
    """Allocate what one thread needs for tours of n cities; ``stop`` is the flag that ends its searches."""
    return Workspace(
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.empty(n, np.int32),
        np.zeros(n, np.uint8),
        np.zeros(2, np.int64),
        np.empty((log_capacity, 2), np.int32),
        np.full(1, NOT_LOGGING, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.uint8) if stop is None else stop,
    )


@inlined
def push(w, city):  # type: ignore[no-untyped-def]
    """Put a city into the work queue unless it waits there already."""
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
    """Take the city that waits longest."""
    city = w.queue[w.ring[0]]
    w.ring[0] += 1
    if w.ring[0] == w.queue.shape[0]:
        w.ring[0] = 0
    w.ring[1] -= 1
    w.queued[city] = 0
    return city


@inner
def load_tour(w, tour):  # type: ignore[no-untyped-def]
    """Copy a tour into the workspace; the work queue is empty then."""
    n = tour.shape[0]
    w.moves_left[0] = MOST_MOVES * (n + _FEW_CITIES)
    while w.ring[1] > 0:
        pop(w)
    for p in range(n):
        w.tour[p] = tour[p]
        w.position[tour[p]] = p


@inner
def store_tour(w, tour):  # type: ignore[no-untyped-def]
    """Copy the workspace's tour out; a loop, as a slice assignment takes seconds more to compile."""
    for p in range(tour.shape[0]):
        tour[p] = w.tour[p]


@inlined
def after(w, city):  # type: ignore[no-untyped-def]
    """City that follows in the tour."""
    p = w.position[np.uint32(city)] + 1
    return w.tour[np.uint32(p if p < w.tour.shape[0] else 0)]


@inlined
def before(w, city):  # type: ignore[no-untyped-def]
    """City that precedes in the tour."""
    p = w.position[np.uint32(city)]
    return w.tour[np.uint32(p - 1 if p > 0 else w.tour.shape[0] - 1)]


@inner
def _reverse_positions(w, first, count):  # type: ignore[no-untyped-def]
    """Reverse ``count`` cities from position ``first`` on, round the end of the array; its own inverse."""
    n = w.tour.shape[0]
    i = first
    j = first + count - 1
    if j >= n:
        j -= n
    for _ in range(count // 2):
        u, v = w.tour[np.uint32(i)], w.tour[np.uint32(j)]
        w.tour[np.uint32(i)] = v
        w.position[np.uint32(v)] = i
        w.tour[np.uint32(j)] = u
        w.position[np.uint32(u)] = j
        i += 1
        if i == n:
            i = 0
        j -= 1
        if j < 0:
            j = n - 1


@inner
def turn(w, first, count):  # type: ignore[no-untyped-def]
    """Reverse ``count`` cities from position ``first`` on, and note it where reversals are logged."""
    if w.logged[0] >= 0:
        w.log[w.logged[0], 0] = first
        w.log[w.logged[0], 1] = count
        w.logged[0] += 1
    _reverse_positions(w, first, count)


@inner
def reverse_path(w, outside, first, last):  # type: ignore[no-untyped-def]
    """Reverse the path first .. last, where ``outside`` is the tour neighbour of ``first`` that is not on it.

    Reversing the rest of the tour in its place gives the same cycle, so the shorter of the two is turned.
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
    turn(w, i, count)


@inner
def move_segment(w, s1, s2, c, flip):  # type: ignore[no-untyped-def]
    """Or-opt: carry the segment s1 .. s2 (in tour order) between c and the city after c, turned if ``flip``."""
    p, nx = before(w, s1), after(w, s2)
    # p [s1..s2 nx..c] d  ->  p [c..nx s2..s1] d  ->  p [nx..c] s2..s1 d  (->  nx..c s1..s2 d)
    reverse_path(w, p, s1, c)
    reverse_path(w, p, c, nx)
    if not flip and s1 != s2:
        reverse_path(w, c, s2, s1)


@inner
def undo(w):  # type: ignore[no-untyped-def]
    """Take back every logged reversal, the newest first."""
    for e in range(w.logged[0] - 1, -1, -1):
        _reverse_positions(w, w.log[e, 0], w.log[e, 1])
    w.logged[0] = 0


@inlined
def improve_city(graph, w, a, with_or_opt):  # type: ignore[no-untyped-def]
    """Apply the best improving move that gives ``a`` a nearer tour neighbour; the change of length, 0.0 if none."""
    n = w.tour.shape[0]
    k = graph.neighbours.shape[1]
    row = np.uint32(a)
    longest = min(MAX_SEGMENT, n - 3) if with_or_opt else 0
    best = 0.0
    # the best move so far: kind 1 = 2-opt (x1..x2 reversed behind x0), kind 2 = Or-opt
    kind, x0, x1, x2, flip = 0, a, a, a, False
    for forward in (True, False):
        b = after(w, a) if forward else before(w, a)
        d_ab = distance(graph, a, b)
        if graph.neighbour_distances[row, 0] >= d_ab:
            continue
        # the segments of 1, 2, 3 cities that end at a and leave b behind: other end e, next city f
        e1, f1 = a, before(w, a) if forward else after(w, a)
        e2, f2 = f1, before(w, f1) if forward else after(w, f1)
        e3, f3 = f2, before(w, f2) if forward else after(w, f2)
        joined1 = joined2 = joined3 = 0.0
        if longest >= 1:
            joined1 = distance(graph, b, f1) - distance(graph, e1, f1) - d_ab
        if longest >= 2:
            joined2 = distance(graph, b, f2) - distance(graph, e2, f2) - d_ab
        if longest >= 3:
            joined3 = distance(graph, b, f3) - distance(graph, e3, f3) - d_ab
        for r in range(k):
            d_ac = graph.neighbour_distances[row, r]
            if d_ac >= d_ab:
                break
            c = graph.neighbours[row, r]
            c_next, c_prev = after(w, c), before(w, c)
            d_next, d_prev = distance(graph, c, c_next), distance(graph, c, c_prev)
            # 2-opt: (a, b) (c, d) -> (a, c) (b, d)
            d = c_next if forward else c_prev
            d_cd = d_next if forward else d_prev
            delta = d_ac - d_ab + distance(graph, b, d) - d_cd
            if delta < best and d != a and shortens(delta, d_ab + d_cd):
                best = delta
                kind = 1
                if forward:
                    x0, x1, x2 = a, b, c
                else:
                    x0, x1, x2 = b, a, d
            # Or-opt: the segment a .. e between c and one of its tour neighbours, a next to c
            d_longer = max(d_next, d_prev)
            for length in range(1, longest + 1):
                if length == 1:
                    e, f, joined = e1, f1, joined1
                elif length == 2:
                    e, f, joined = e2, f2, joined2
                else:
                    e, f, joined = e3, f3, joined3
                if e == c:
                    break
                if joined + d_ac - d_longer >= best:
                    continue
                s1, s2 = (e, a) if forward else (a, e)
                delta = joined + d_ac + distance(graph, e, c_next) - d_next
                if delta < best and c_next != s1 and shortens(delta, d_ab + distance(graph, e, f) + d_next):
                    best = delta
                    kind, x0, x1, x2, flip = 2, s1, s2, c, forward
                delta = joined + d_ac + distance(graph, e, c_prev) - d_prev
                if delta < best and c_prev != s2 and shortens(delta, d_ab + distance(graph, e, f) + d_prev):
                    best = delta
                    kind, x0, x1, x2, flip = 2, s1, s2, c_prev, not forward
    if kind == 0:
        return 0.0
    push(w, x0)
    push(w, x1)
    push(w, x2)
    push(w, after(w, x2))
    if kind == 1:
        reverse_path(w, x0, x1, x2)
    else:
        push(w, before(w, x0))
        push(w, after(w, x1))
        move_segment(w, x0, x1, x2, flip)
    return best


@compiled
def search(graph, w, with_or_opt):  # type: ignore[no-untyped-def]
    """Work the queue off until no queued city has an improving move; the total change of length (<= 0).

    While reversals are logged, the search ends early rather than outgrow the log; and it ends when the tour's moves
    are used up or it is told to stop.
    """
    total = 0.0
    capacity = w.log.shape[0] - 3
    while w.ring[1] > 0:
        city = pop(w)
        while w.logged[0] < capacity and w.moves_left[0] > 0 and w.stop[0] == 0:
            delta = improve_city(graph, w, city, with_or_opt)
            if delta == 0.0:
                break
            total += delta
            if w.logged[0] < 0:
                w.moves_left[0] -= 1
    return total


@inner
def push_changed(w, reference, directed):  # type: ignore[no-untyped-def]
    """Queue every city, in tour order, that has other tour neighbours than in the reference.

    ``reference`` (n, 2) int32 holds the tour neighbours of a locally optimal tour, -1 where there is none yet; unless
    ``directed``, they may have changed places. Where ants repeat its edges, the search would find nothing: their
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


@compiled
def tour_neighbours(tour, reference):  # type: ignore[no-untyped-def]
    """Write both tour neighbours of every city; ``reference`` is (n, 2) int32."""
    n = tour.shape[0]
    for p in range(n):
        reference[tour[p], 0] = tour[p - 1 if p > 0 else n - 1]
        reference[tour[p], 1] = tour[p + 1 if p + 1 < n else 0]


@inner
def _kick(graph, w, longest, rng):  # type: ignore[no-untyped-def]
    """Two adjacent stretches of 1 .. ``longest`` cities change places (a double bridge); the change of length."""
    n = w.tour.shape[0]
    first = next_below(rng, n)
    a = 1 + next_below(rng, longest)
    b = 1 + next_below(rng, longest)
    a1 = w.tour[first]
    a2, b1 = w.tour[(first + a - 1) % n], w.tour[(first + a) % n]
    b2, q = w.tour[(first + a + b - 1) % n], w.tour[(first + a + b) % n]
    p = before(w, a1)
    delta = distance(graph, p, b1) + distance(graph, b2, a1) + distance(graph, a2, q)
    delta -= distance(graph, p, a1) + distance(graph, a2, b1) + distance(graph, b2, q)
    # p [A][B] q -> p [B][A] q: turn both together, then each
    reverse_path(w, p, a1, b2)
    reverse_path(w, p, b2, b1)
    reverse_path(w, b2, a2, a1)
    push(w, p)
    push(w, a1)
    push(w, a2)
    push(w, b1)
    push(w, b2)
    push(w, q)
    return delta


@inner
def kick_and_repair(graph, w, with_or_opt, kicks, longest, rng):  # type: ignore[no-untyped-def]
    """Iterated local search with kicks of a few cities; the change of length (<= 0).

    A kick and its repair that leave the tour longer are undone, at the cost of what they changed.
    """
    total = 0.0
    for _ in range(kicks):
        if w.stop[0] != 0:
            break
        w.logged[0] = 0
        delta = _kick(graph, w, longest, rng)
        delta += search(graph, w, with_or_opt)
        if delta > 0.0:
            undo(w)
        else:
            total += delta
    return total


@allocating
def improve_tours(  # type: ignore[no-untyped-def]
    graph, w, with_or_opt, reference, kicks, longest, key, first, last, tours, lengths
):
    """Ants first .. last-1: improve ``tours`` (m, n) in place and write their exact lengths (m,).

    A tour that begins with -1 was not finished: it is left alone, with its length.
    Raises RuntimeError when a search has made ``MOST_MOVES`` moves a city and found no end.
    """
    for ant in range(first, last):
        if tours[ant, 0] < 0:
            continue
        load_tour(w, tours[ant])
        push_changed(w, reference, False)
        w.logged[0] = NOT_LOGGING
        search(graph, w, with_or_opt)
        if w.moves_left[0] == 0:
            raise RuntimeError(NO_END)
        if kicks > 0:
            rng = new_stream(key, ant, STREAM_KICKS)
            kick_and_repair(graph, w, with_or_opt, kicks, longest, rng)
        store_tour(w, tours[ant])
        lengths[ant] = tour_length(graph, w.tour)
