"""Tour construction of Ant System and MMAS: trails stay constant while the ants walk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cpu.selection import next_among_all, next_among_candidates
from pymoo_gpuaco.backends.cpu.tabu import clear, visit
from pymoo_gpuaco.backends.cpu.trails import DENSE
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime.compiled import allocating, compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import STREAM_CONSTRUCTION, new_stream, next_below

UNFINISHED = -1  # first city of a tour that an interrupt or the time limit has left incomplete


class Rule(NamedTuple):
    """Parameters of the choice, from ``colony.parameters`` as plain scalars."""

    selection: int  # code in ``colony.selection``
    alpha: float
    beta: float
    shortest: float  # replaces zero distances
    trials: int  # most draws of a trial rule
    switch_left: int  # unvisited cities at which HYBRID and ACCEPTANCE_TOURNAMENT switch rules
    tournament_size: int
    q0: float  # ACS: probability of the greedy choice


@inlined
def power(x, exponent):  # type: ignore[no-untyped-def]
    """Return x ** exponent, without a library call for the exponents of the papers."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return x * x
    return x**exponent


@inlined
def edge_weight(tau, d, near, rule):  # type: ignore[no-untyped-def]
    """Return tau^alpha eta^beta of an edge, eta = near / d (Eq. (1), paper 001; ``near`` only scales)."""
    return power(np.float64(tau), rule.alpha) * power(near / max(d, rule.shortest), rule.beta)


@compiled_callee
def best_remaining(graph, t, i, tabu, rule):  # type: ignore[no-untyped-def]
    """Return the unvisited city of largest weight, for cities without unvisited candidates (section 3.1.1, paper 003).

    If the memory contains only some edges, all others share one trail, so that the nearest city is the best of them.
    """
    chosen, best = np.int64(tabu.unvisited[0]), 0.0
    # unvisited cities are farther than the candidates: in units of the farthest candidate eta^beta cannot overflow
    near = max(graph.neighbour_distances[i, graph.neighbours.shape[1] - 1], rule.shortest)
    if t.kind == DENSE:
        for p in range(tabu.left[0]):
            j = tabu.unvisited[p]
            w = edge_weight(t.tau[np.uint32(i), np.uint32(j)], distance(graph, i, j), near, rule)
            if w > best or (w == best and j < chosen):
                best, chosen = w, np.int64(j)
        if best > 0.0:
            return chosen
    nearest = np.inf
    for p in range(tabu.left[0]):
        j = tabu.unvisited[p]
        d = distance(graph, i, j)
        if d < nearest or (d == nearest and j < chosen):
            nearest, chosen = d, np.int64(j)
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
def _walk(graph, t, weights, rule, tabu, rng, cities, chances, tours, ant, stop):  # type: ignore[no-untyped-def]
    """Walk one ant of ``build_tours_from_candidates``, in a function without reference counting."""
    n = tours.shape[1]
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
        row = np.uint32(i)  # unsigned: numba skips the check for negative indices
        j = next_among_candidates(
            graph.neighbours[row], weights[row], tabu.visited, rule, cities, chances, rng
        )
        i = j if j >= 0 else best_remaining(graph, t, i, tabu, rule)


# Two functions without a switch, because most runs need only one, and each takes seconds to compile.
@allocating
def build_tours_from_candidates(graph, t, weights, rule, tabu, key, first, last, tours, stop):  # type: ignore[no-untyped-def]
    """Walk ants first .. last-1 from random cities, to unvisited candidates if there are any.

    ``weights`` is (n, k), ``tours`` (m, n) int32. Once ``stop[0]`` is 1, tours are marked as ``UNFINISHED``.
    """
    cities, chances = np.empty(weights.shape[1], np.int32), np.empty(weights.shape[1])
    for ant in range(first, last):
        rng = new_stream(key, ant, STREAM_CONSTRUCTION)
        _walk(graph, t, weights, rule, tabu, rng, cities, chances, tours, ant, stop)


@allocating
def build_tours_from_all(graph, t, choice, rule, tabu, key, first, last, tours, stop):  # type: ignore[no-untyped-def]
    """Walk ants first .. last-1 from random cities, choosing among all unvisited cities; ``tours`` (m, n) int32.

    ``stop``: see ``build_tours_from_candidates``.
    """
    n = tours.shape[1]
    for ant in range(first, last):
        rng = new_stream(key, ant, STREAM_CONSTRUCTION)
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
            j = next_among_all(choice, i, tabu, rule, rng)
            # every weight may have underflowed to 0
            i = j if j >= 0 else best_remaining(graph, t, i, tabu, rule)


@compiled
def nearest_neighbour_tour(graph, start, tabu, tour, stop):  # type: ignore[no-untyped-def]
    """Build the nearest-neighbour tour of Eq. (1), paper 000; ties: the lower city.

    Once ``stop[0]`` is 1, the remaining cities follow in any order.
    """
    n = tour.shape[0]
    clear(tabu)
    i = np.int64(start)
    tour[0] = i
    visit(tabu, i)
    for p in range(1, n):
        j = np.int64(-1)
        for r in range(graph.neighbours.shape[1]):
            c = graph.neighbours[i, r]
            if not tabu.visited[c]:
                j = np.int64(c)
                break
        if j < 0 and stop[0] != 0:
            j = np.int64(tabu.unvisited[0])
        if j < 0:
            nearest = np.inf
            for q in range(tabu.left[0]):
                c = tabu.unvisited[q]
                d = distance(graph, i, c)
                if d < nearest or (d == nearest and c < j):
                    nearest, j = d, np.int64(c)
        tour[p] = j
        visit(tabu, j)
        i = j


@compiled
def measure(graph, first, last, tours, lengths):  # type: ignore[no-untyped-def]
    """Compute the exact lengths of tours first .. last-1, except unfinished ones."""
    for ant in range(first, last):
        if tours[ant, 0] >= 0:
            lengths[ant] = tour_length(graph, tours[ant])


@compiled
def fill_distances(graph, first, last, matrix):  # type: ignore[no-untyped-def]
    """Fill rows first .. last-1 of the (n, n) distance matrix."""
    for i in range(first, last):
        for j in range(matrix.shape[1]):
            matrix[i, j] = distance(graph, i, j)
