"""Window: a part of a tour as a small tour, in arrays that fit into the cache of a core.

It contains m cities in tour order, in runs of consecutive positions. A fixed link represents the rest of the tour
between two runs: it can be moved and reversed but not removed, so a shorter window gives a shorter tour. Fixed edges of
the instance are fixed links, too. Cities are renumbered by position.

Costs are whole numbers: distances in whole units plus the penalties pi of both ends. Penalties do not change
differences of tour lengths, but favour edges of good tours (Held and Karp 1971; Helsgaun 2000, section 4.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.candidates.listed import Candidates, ListedInstance
from pymoo_gpuaco.candidates.lists import Kind, by_alpha, check_alpha, lists
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.units import whole_units
from pymoo_gpuaco.problems.metrics import EUC, WITH_DUMMY, Graph, between, distance, stays
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    UInt8_1d,
    UInt64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import STATE
from pymoo_gpuaco.runtime.threads import thread_array

LOG = 1 << 14  # reversals that can be undone
DEPTH = 6  # maximum number of consecutive basis moves; each adds two edges, which later ones do not remove
NO_CITY = -1
# Minimum length of reversals that are logged instead of executed. Reading the tour through a logged reversal costs as
# much as reversing some hundred positions.
LONG_PATH = 1000

_TO_CHOOSE_FROM = 10  # candidates per city from which alpha-nearness chooses
_FEWEST_TREES = 5  # minimum number of iterations for candidates="alpha"
_WITHOUT_PENALTIES = 8  # default number of candidates per city without penalties

# Indices of ``Window.state``: logged reversals, executed reversals.
LOGGED, MADE = 0, 1


@struct
class Units(NamedTuple):
    """Costs of an instance in whole numbers; n cities, k candidates per city."""

    graph: Graph  # distances
    scale: float  # whole units per unit of distance: 1 for integral distances
    pi: Float64_1d  # (n,) float64, whole
    candidates: Int32_2d  # (n, k) int32


def make_units(
    instance: ListedInstance, graph: Graph, parameters: MemeticParameters
) -> tuple[Units, Candidates]:
    """Return costs and candidates of an instance, and the lists from which the candidates were chosen.

    Candidates "auto" are chosen by alpha-nearness if the instance is small enough.
    """
    n, scale, kind = instance.n, whole_units(instance), parameters.candidates
    iterations = parameters.iterations(n) if kind in ("auto", "alpha") else 0
    if kind == "alpha":
        check_alpha(instance.symmetric, n)
        iterations = max(iterations, _FEWEST_TREES)
    chosen: Kind = "nearest" if kind == "nearest" else "quadrant"
    without_penalties = parameters.candidate_list_size or _WITHOUT_PENALTIES
    near = lists(instance, chosen, _TO_CHOOSE_FROM if iterations else without_penalties)
    if iterations == 0:
        pi, ids, lengths = np.zeros(n), near.ids, near.distances
    else:
        ascent, alpha = by_alpha(instance, parameters.n_candidates(n), iterations, base=near)
        pi, ids, lengths = np.rint(ascent.pi * scale), alpha.ids, alpha.distances
    if iterations == 0 and bool((lengths[:, 1:] >= lengths[:, :-1]).all()):
        # already sorted by cost: sorting millions of rows takes seconds
        return Units(graph, scale, pi, ids), near
    costs = np.rint(lengths * scale) + pi[ids]  # the city's own pi does not change the order
    order = np.argsort(costs, axis=1, kind="stable")
    return Units(graph, scale, pi, np.ascontiguousarray(np.take_along_axis(ids, order, axis=1))), near


@struct
class Window(NamedTuple):
    """Window of one thread, see `make_window`."""

    city: Int32_1d
    coords: Float64_2d
    near: Int32_2d
    cost: Float64_2d
    mate: Int32_1d
    order: Int32_1d
    position: Int32_1d
    queue: Int32_1d
    queued: UInt8_1d
    ring: Int64_1d
    log: Int32_2d
    added: Int32_2d
    found: Int64_1d
    state: Int64_1d
    stop: UInt8_1d
    rng: UInt64_1d
    long_path: int


def make_window(w: int, k: int, stop: np.ndarray | None = None) -> Window:
    """Allocate a window of up to ``w`` cities with ``k`` candidates each; ``stop`` is its stop flag.

    The first m cities of each array are in use.
    """
    return Window(
        city=np.zeros(w, np.int32),  # index in the instance
        coords=np.zeros((w, 4)),  # coordinates and pi
        near=np.zeros((w, k), np.int32),  # candidates within the window, then -1
        cost=np.zeros((w, k)),  # of the edges to the candidates
        mate=np.zeros(w, np.int32),  # other end of the fixed link at a city, or -1
        order=np.zeros(w, np.int32),  # the tour
        position=np.zeros(w, np.int32),  # position of each city in ``order``
        queue=np.zeros(w, np.int32),  # see ``workspace.Workspace``, also for the next two
        queued=np.zeros(w, np.uint8),
        ring=thread_array(2, np.int64),
        log=np.zeros((LOG, 2), np.int32),  # reversals: first position, number of positions
        added=np.zeros((2 * DEPTH, 2), np.int32),  # edges added by the current move
        found=thread_array(5, np.int64),  # the move found: kind, t3, t4, t5, t6
        state=thread_array(2, np.int64),  # see ``LOGGED``
        stop=np.zeros(1, np.uint8) if stop is None else stop,  # 1 stops the search
        rng=thread_array(STATE, np.uint64),  # random numbers of kicks
        long_path=LONG_PATH,  # see ``LONG_PATH``
    )


@inlined
def index(i):  # type: ignore[no-untyped-def]
    """Return a non-negative index as unsigned: numba skips the check for negative indices."""
    return np.uint64(i)


@inlined
def cost(units, w, a, b):  # type: ignore[no-untyped-def]
    """Return the cost of the edge between two cities of the window."""
    p, q = w.coords[index(a)], w.coords[index(b)]
    plain = units.scale == 1.0
    if plain and units.graph.metric == EUC:
        return between(EUC, p[0], p[1], p[2], q[0], q[1], q[2]) + (p[3] + q[3])
    # without this case a path would take longer than a round trip
    if plain and units.graph.metric == EUC + WITH_DUMMY:
        d = between(EUC, p[0], p[1], p[2], q[0], q[1], q[2])
        return (d if d == d else 0.0) + (p[3] + q[3])  # the dummy's coordinates and distances are NaN
    return _other_cost(units, w.city[a], w.city[b]) + (p[3] + q[3])


@compiled_callee
def _other_cost(units, i, j):  # type: ignore[no-untyped-def]
    return np.floor(distance(units.graph, i, j) * units.scale + 0.5)


@compiled
def load(units: Units, tour: Int32_1d, positions: Int32_1d, m: int, number: Int32_1d, w: Window) -> None:
    """Fill a window with the cities at the ascending ``positions[:m]`` of a tour.

    A city has at most one fixed link: runs have two or more cities and do not end with a fixed edge. ``number`` (n,)
    int32 is a workspace, all -1 before and after the call.
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
        w.mate[p] = NO_CITY
        w.queued[p] = 0
    for i in range(2):
        w.state[i] = w.ring[i] = 0
    for p in range(m):
        listed = 0
        for r in range(k):
            q = number[units.candidates[w.city[p], r]]
            if q >= 0:
                w.near[p, listed] = q
                w.cost[p, listed] = cost(units, w, p, q)
                listed += 1
        for r in range(listed, k):
            w.near[p, r] = NO_CITY
        q = p + 1 if p + 1 < m else 0
        after = positions[p] + 1 if positions[p] + 1 < n else 0
        if positions[q] != after or stays(units.graph, w.city[p], w.city[q]):
            w.mate[p], w.mate[q] = q, p
    for p in range(m):
        number[w.city[p]] = NO_CITY
