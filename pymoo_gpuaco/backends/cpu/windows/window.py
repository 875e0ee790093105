"""A window: a part of a tour as a small tour of its own, in arrays that fit a core's cache.

It holds m cities in the order in which the tour visits them, in runs of neighbouring positions. From the end of a run
to the start of the next lies the rest of the tour: that link is fixed, it may be turned and moved but never broken, so
a better tour of the window is a better tour of everything. Edges of the instance that must stay are such links too.
Cities are renumbered by position.

Costs are whole numbers: distances in whole units plus the penalties pi of both ends. Penalties change no difference
between tours, but they tell good edges from bad ones (Held and Karp 1971; Helsgaun 2000, section 4.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.problems.metrics import EUC, EXPLICIT, WITH_DUMMY, between, distance, stays
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined

LOG = 1 << 14  # reversals that can be taken back
DEPTH = 6  # basis moves after one another; each puts in two edges that stay
NOBODY = -1
# Positions from which on a path is not turned around before a move closes. To read the tour through a reversal takes as
# long as to turn some hundred: with 300 and with 1000 kicks were as fast.
LONG_PATH = 1000

# What ``Window.state`` holds: reversals in the log, those of them that are made, and where the queue is.
LOGGED, MADE, QUEUE_HEAD, QUEUED = 0, 1, 2, 3


class Units(NamedTuple):
    """Costs of one instance in whole numbers; n cities, k candidates a city."""

    graph: tuple  # distances
    scale: float  # whole units of one unit of distance: 1 where distances are whole numbers
    pi: np.ndarray  # (n,) float64, whole
    candidates: np.ndarray  # (n, k) int32


class Window(NamedTuple):
    """Arrays for up to w cities; the first m of each are in use."""

    city: np.ndarray  # (w,) int32, number in the instance
    coords: np.ndarray  # (w, 4) float64: coordinates and pi
    near: np.ndarray  # (w, k) int32, candidates within the window, then -1
    cost: np.ndarray  # (w, k) float64, of the edges to them
    mate: np.ndarray  # (w,) int32, other end of the fixed link at a city, or -1
    order: np.ndarray  # (w,) int32, the tour
    position: np.ndarray  # (w,) int32, position of each city in it
    queue: np.ndarray  # (w,) int32, cities that may lie wrong, a ring
    queued: np.ndarray  # (w,) uint8
    log: np.ndarray  # (LOG, 2) int32, reversals: first position, number of positions
    added: np.ndarray  # (2 DEPTH, 2) int32, edges put in by the move at hand
    found: np.ndarray  # (5,) int64, the move found: kind, t3, t4, t5, t6
    state: np.ndarray  # (4,) int64
    stop: np.ndarray  # (1,) uint8, 1 ends what is done with the window
    long_path: int  # see ``LONG_PATH``


def make_window(w: int, k: int, stop: np.ndarray | None = None) -> Window:
    """Allocate a window of up to ``w`` cities with ``k`` candidates each; without ``stop`` nothing ends it."""
    return Window(
        np.zeros(w, np.int32),
        np.zeros((w, 4)),
        np.zeros((w, k), np.int32),
        np.zeros((w, k)),
        np.zeros(w, np.int32),
        np.zeros(w, np.int32),
        np.zeros(w, np.int32),
        np.zeros(w, np.int32),
        np.zeros(w, np.uint8),
        np.zeros((LOG, 2), np.int32),
        np.zeros((2 * DEPTH, 2), np.int32),
        np.zeros(5, np.int64),
        np.zeros(4, np.int64),
        np.zeros(1, np.uint8) if stop is None else stop,
        LONG_PATH,
    )


@inlined
def index(i):  # type: ignore[no-untyped-def]
    """Index known not to be negative: of a signed one numba asks at each use whether it counts from the end."""
    return np.uint64(i)


@inlined
def _whole(units, d):  # type: ignore[no-untyped-def]
    """A distance in whole units."""
    return np.floor(d * units.scale + 0.5)


@inlined
def cost(units, w, a, b):  # type: ignore[no-untyped-def]
    """Cost of the edge between two cities of the window."""
    p, q = w.coords[index(a)], w.coords[index(b)]
    if units.graph.metric == EUC:
        return between(EUC, p[0], p[1], p[2], q[0], q[1], q[2]) + (p[3] + q[3])
    if units.graph.metric == EUC + WITH_DUMMY:  # as fast: a path is searched as a round trip is
        d = between(EUC, p[0], p[1], p[2], q[0], q[1], q[2])
        return (d if d == d else 0.0) + (p[3] + q[3])  # the dummy's coordinates, and its distances, are NaN
    if EXPLICIT < units.graph.metric < WITH_DUMMY and a != b:
        # By the window's coordinates, as the instance's may lie anywhere in memory: exact distances and rounded-up ones
        # take 3 to 6 % less time a kick, at 1,000 cities and in windows of 200,000.
        d = between(units.graph.metric, p[0], p[1], p[2], q[0], q[1], q[2])
        return _whole(units, d) + (p[3] + q[3])
    return _other_cost(units, w.city[a], w.city[b]) + (p[3] + q[3])


@compiled_callee
def _other_cost(units, i, j):  # type: ignore[no-untyped-def]
    return _whole(units, distance(units.graph, i, j))


@compiled
def load(units, tour, positions, m, number, w):  # type: ignore[no-untyped-def]
    """Fill a window with the cities at ``positions[:m]`` of a tour, ascending.

    A city has one fixed link at most: runs hold two or more, and do not end in an edge that must stay.

    ``number`` (n,) int32 is -1 throughout, and again after the call.
    """
    n, k = tour.shape[0], units.candidates.shape[1]
    for p in range(m):
        c = tour[positions[p]]
        w.city[p] = c
        number[c] = p
        for axis in range(units.graph.coords.shape[1] if units.graph.coords.shape[0] else 0):
            w.coords[p, axis] = units.graph.coords[c, axis]
        w.coords[p, 3] = units.pi[c]
        w.order[p], w.position[p] = p, p
        w.mate[p] = NOBODY
        w.queued[p] = 0
    for i in range(w.state.shape[0]):
        w.state[i] = 0
    for p in range(m):
        listed = 0
        for r in range(k):
            q = number[units.candidates[w.city[p], r]]
            if q >= 0:
                w.near[p, listed] = q
                w.cost[p, listed] = cost(units, w, p, q)
                listed += 1
        for r in range(listed, k):
            w.near[p, r] = NOBODY
        q = p + 1 if p + 1 < m else 0
        after = positions[p] + 1 if positions[p] + 1 < n else 0
        if positions[q] != after or stays(units.graph, w.city[p], w.city[q]):
            w.mate[p], w.mate[q] = q, p
    for p in range(m):
        number[w.city[p]] = NOBODY
