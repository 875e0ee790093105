"""Tour construction: Ant System and MMAS on constant trails, and the Ant Colony System with local updates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cpu.selection import (
    Choice,
    Tabu,
    Tabus,
    clear,
    make_tabu,
    next_among_all,
    next_among_candidates,
    roulette_among_candidates,
    visit,
)
from pymoo_gpuaco.backends.cpu.trails import DENSE, Trails, blend_edge, power, weigh_candidates
from pymoo_gpuaco.problems.metrics import Graph, distance
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    UInt8_1d,
    UInt64,
    UInt64_1d,
    UInt64_2d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.philox import STATE, STREAM_CONSTRUCTION, begin_stream, next_below, next_uniform
from pymoo_gpuaco.runtime.threads import thread_array

UNFINISHED = -1  # first city of a tour that is incomplete after an interrupt or the time limit


@struct
class Rule(NamedTuple):
    """Selection rule and its parameters."""

    selection: int
    alpha: float
    beta: float
    shortest: float
    trials: int
    switch_left: int
    tournament_size: int
    q0: float


@struct
class WalkWorkspace(NamedTuple):
    """Arrays of one thread, see `make_walk_workspace`."""

    tabu: Tabu
    weights: Float64_1d
    cities: Int32_1d
    chances: Float64_1d
    rng: UInt64_1d


def make_walk_workspace(n: int, k: int, tournament_size: int) -> WalkWorkspace:
    """Allocate the arrays of one thread for walks over n cities with k candidates each."""
    return WalkWorkspace(
        tabu=make_tabu(n),
        weights=thread_array(k),  # of the candidates of one city
        cities=thread_array(max(k, tournament_size), np.int32),  # among which a rule draws
        chances=thread_array(k),
        rng=thread_array(STATE, np.uint64),
    )


@inlined
def edge_weight(tau, d, near, rule):  # type: ignore[no-untyped-def]
    """Return tau^alpha eta^beta of an edge, eta = near / d (Eq. (1), Skinderowicz 2020; ``near``: a constant)."""
    return power(np.float64(tau), rule.alpha) * power(near / max(d, rule.shortest), rule.beta)


@compiled_callee
def _nearest_remaining(graph, i, tabu):  # type: ignore[no-untyped-def]
    """Return the nearest unvisited city and its distance; ties: the lower index."""
    nearest, chosen = np.inf, np.int64(tabu.unvisited[0])
    for p in range(tabu.left[0]):
        j = tabu.unvisited[p]
        d = distance(graph, i, j)
        if d < nearest or (d == nearest and j < chosen):
            nearest, chosen = d, np.int64(j)
    return chosen, nearest


@compiled_callee
def best_remaining(graph, t, i, tabu, rule):  # type: ignore[no-untyped-def]
    """Return the unvisited city of largest weight, for a city without unvisited candidates (Skinderowicz 2016, 3.1.1).

    If the memory stores only some edges, the others share one trail, so the nearest city has their largest weight.
    """
    chosen, best = np.int64(tabu.unvisited[0]), 0.0
    # unvisited cities are farther than all candidates: with near = farthest candidate, eta^beta cannot overflow
    near = max(graph.neighbour_distances[i, graph.neighbour_distances.shape[1] - 1], rule.shortest)
    if t.kind == DENSE:
        for p in range(tabu.left[0]):
            j = tabu.unvisited[p]
            w = edge_weight(t.tau[np.uint32(i), np.uint32(j)], distance(graph, i, j), near, rule)
            if w > best or (w == best and j < chosen):
                best, chosen = w, np.int64(j)
        if best > 0.0:
            return chosen
    chosen, nearest = _nearest_remaining(graph, i, tabu)
    if t.kind == DENSE:  # every weight has underflowed to 0
        return chosen
    best = edge_weight(t.default_trail[0], nearest, near, rule)
    for s in range(t.ids.shape[1]):
        j = t.ids[i, s]
        if j >= 0 and not tabu.visited[j]:
            w = edge_weight(t.tau[i, s], distance(graph, i, j), near, rule)
            if w > best:
                best, chosen = w, np.int64(j)
    return chosen


@compiled_callee
def _walk(graph, t, weights, rule, w, tours, ant, stop):  # type: ignore[no-untyped-def]
    """Build one tour of ``build_tours_from_candidates``."""
    n, tabu = tours.shape[1], w.tabu
    clear(tabu)
    i = next_below(w.rng, n)
    for p in range(n):
        tours[ant, p] = i
        visit(tabu, i)
        if p == n - 1:
            break
        if stop[0] != 0:
            tours[ant, 0] = UNFINISHED
            break
        row = np.uint32(i)  # unsigned: numba skips the check for negative indices
        j = next_among_candidates(
            graph.neighbours[row], weights[row], tabu.visited, rule, w.cities, w.chances, w.rng
        )
        i = j if j >= 0 else best_remaining(graph, t, i, tabu, rule)


# Two functions instead of one with a switch: an edit of one compiles only that one.
@compiled
def build_tours_from_candidates(
    graph: Graph,
    t: Trails,
    weights: Float64_2d,
    rule: Rule,
    w: WalkWorkspace,
    key: UInt64,
    first: int,
    last: int,
    tours: Int32_2d,
    stop: UInt8_1d,
) -> None:
    """Build tours of ants first .. last-1 from random cities; the next city is an unvisited candidate if one exists.

    ``weights`` is (n, k), ``tours`` (m, n) int32. Once ``stop[0]`` is 1, tours are marked as ``UNFINISHED``.
    """
    for ant in range(first, last):
        begin_stream(w.rng, key, ant, STREAM_CONSTRUCTION)
        _walk(graph, t, weights, rule, w, tours, ant, stop)


@compiled
def build_tours_from_all(
    graph: Graph,
    t: Trails,
    choice: Choice,
    rule: Rule,
    w: WalkWorkspace,
    key: UInt64,
    first: int,
    last: int,
    tours: Int32_2d,
    stop: UInt8_1d,
) -> None:
    """Build tours of ants first .. last-1 from random cities by selection among all unvisited cities.

    ``tours`` (m, n) int32; ``stop``: see ``build_tours_from_candidates``.
    """
    n = tours.shape[1]
    for ant in range(first, last):
        tabu, rng = w.tabu, w.rng
        begin_stream(rng, key, ant, STREAM_CONSTRUCTION)
        clear(tabu)
        i = next_below(rng, n)
        for p in range(n):
            tours[ant, p] = i
            visit(tabu, i)
            if p == n - 1:
                break
            if stop[0] != 0:
                tours[ant, 0] = UNFINISHED
                break
            j = next_among_all(choice, i, tabu, rule, w.cities, rng)
            # -1: every weight has underflowed to 0
            i = j if j >= 0 else best_remaining(graph, t, i, tabu, rule)


@compiled_callee
def pseudo_random_proportional(graph, t, eta_beta, i, tabu, rule, rng, weights, cities, chances):  # type: ignore[no-untyped-def]
    """Choose by Eqs. (1) and (2), Skinderowicz 2016: with probability q0 the best candidate, else by roulette."""
    weigh_candidates(graph, t, rule.alpha, eta_beta, i, weights)
    if next_uniform(rng) < rule.q0:
        best, chosen = -1.0, np.int64(-1)
        for r in range(weights.shape[0]):
            c = graph.neighbours[i, r]
            if not tabu.visited[c] and weights[r] > best:
                best, chosen = weights[r], np.int64(c)
    else:
        chosen = roulette_among_candidates(graph.neighbours[i], weights, tabu.visited, cities, chances, rng)
    if chosen < 0:
        chosen = best_remaining(graph, t, i, tabu, rule)
    return chosen


@compiled_callee
def _row(tabus, ant):  # type: ignore[no-untyped-def]
    """Return the tabu of one ant from arrays with one row per ant."""
    return Tabu(tabus.visited[ant], tabus.unvisited[ant], tabus.position[ant], tabus.left[ant : ant + 1])


@compiled
def build_tours_acs(
    graph: Graph,
    t: Trails,
    eta_beta: Float64_2d,
    rule: Rule,
    tabus: Tabus,
    streams: UInt64_2d,
    w: WalkWorkspace,
    xi: float,
    tau0: float,
    period: int,
    together: bool,
    symmetric: bool,
    tours: Int32_2d,
    stop: UInt8_1d,
) -> None:
    """Build the tours of all ants with local updates of the trails; ``tours`` is (m, n) int32.

    ``together``: all ants step synchronously (ACS-GPU, section 3.1.2, Skinderowicz 2016); otherwise each ant completes
    its tour before the next one starts (a valid order of ACS-GPU-Alt). Every ``period``-th edge of an ant gets the
    local update (section 4.2). ``stop``: see ``build_tours_from_candidates``.
    """
    m, n = tours.shape
    for ant in range(m):
        if stop[0] != 0:
            tours[ant, 0], tabus.left[ant] = UNFINISHED, 0
            continue
        clear(_row(tabus, ant))
        start = next_below(streams[ant], n)
        tours[ant, 0] = start
        visit(_row(tabus, ant), start)
    for turn in range((n - 1) * m):
        if stop[0] != 0:
            for ant in range(m):
                if tabus.left[ant] > 0:
                    tours[ant, 0] = UNFINISHED
            break
        if together:
            p, ant = turn // m + 1, turn % m
        else:
            ant, p = turn // (n - 1), turn % (n - 1) + 1
        tabu = _row(tabus, ant)
        i = tours[ant, p - 1]
        j = pseudo_random_proportional(
            graph, t, eta_beta, i, tabu, rule, streams[ant], w.weights, w.cities, w.chances
        )
        tours[ant, p] = j
        visit(tabu, j)
        if p % period == 0:
            blend_edge(t, i, j, xi, tau0, symmetric)
        if p == n - 1 and n % period == 0:
            blend_edge(t, j, tours[ant, 0], xi, tau0, symmetric)
