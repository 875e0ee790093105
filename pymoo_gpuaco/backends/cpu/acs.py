"""Tour construction of the Ant Colony System, with local updates of the trails (paper 003)."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cpu.construct import UNFINISHED, best_remaining, power
from pymoo_gpuaco.backends.cpu.selection import roulette_among_candidates
from pymoo_gpuaco.backends.cpu.tabu import Tabu, clear, visit
from pymoo_gpuaco.backends.cpu.trails import CANDIDATE, SELECTIVE, blend_edge, read_trail
from pymoo_gpuaco.runtime.compiled import allocating, compiled_callee
from pymoo_gpuaco.runtime.philox import STREAM_CONSTRUCTION, new_stream, next_below, next_uniform


@compiled_callee
def _weigh_candidates(graph, t, eta_beta, i, rule, weights):  # type: ignore[no-untyped-def]
    k = graph.neighbours.shape[1]
    if t.kind == SELECTIVE:
        # start from the shared trail, then overlay the few stored ones
        base = power(np.float64(t.default_trail[0]), rule.alpha)
        for r in range(k):
            weights[r] = base * eta_beta[i, r]
        for s in range(t.ids.shape[1]):
            j = t.ids[i, s]
            if j >= 0:
                for r in range(k):
                    if graph.neighbours[i, r] == j:
                        weights[r] = power(np.float64(t.tau[i, s]), rule.alpha) * eta_beta[i, r]
                        break
        return
    for r in range(k):
        tau = t.tau[i, r] if t.kind == CANDIDATE else read_trail(t, i, graph.neighbours[i, r])
        weights[r] = power(np.float64(tau), rule.alpha) * eta_beta[i, r]


@compiled_callee
def pseudo_random_proportional(graph, t, eta_beta, i, tabu, rule, rng, weights, cities, chances):  # type: ignore[no-untyped-def]
    """Choose by Eqs. (1) and (2), paper 003: the best candidate with probability q0, else roulette."""
    _weigh_candidates(graph, t, eta_beta, i, rule, weights)
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


@allocating
def _row(tabus, ant):  # type: ignore[no-untyped-def]
    """Return the tabu of one ant from arrays with a row an ant."""
    return Tabu(tabus.visited[ant], tabus.unvisited[ant], tabus.position[ant], tabus.left[ant : ant + 1])


@allocating
def build_tours_acs(  # type: ignore[no-untyped-def]
    graph, t, eta_beta, rule, tabus, key, xi, tau0, period, together, symmetric, tours, stop
):
    """Build the tours of all ants with local updates of the trails; ``tours`` is (m, n) int32.

    ``together``: all ants step synchronously (ACS-GPU, section 3.1.2, paper 003); otherwise an ant walks its whole tour
    before the next starts (a valid order of ACS-GPU-Alt). Every ``period``-th edge of an ant gets the local update
    (section 4.2). ``stop``: see ``build_tours_from_candidates``.
    """
    m, n = tours.shape
    k = graph.neighbours.shape[1]
    weights, cities, chances = np.empty(k), np.empty(k, np.int32), np.empty(k)
    streams = np.empty((m, 10), np.uint64)
    for ant in range(m):
        if stop[0] != 0:
            tours[ant, 0], tabus.left[ant] = UNFINISHED, 0
            continue
        streams[ant] = new_stream(key, ant, STREAM_CONSTRUCTION)
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
            graph, t, eta_beta, i, tabu, rule, streams[ant], weights, cities, chances
        )
        tours[ant, p] = j
        visit(tabu, j)
        if p % period == 0:
            blend_edge(t, i, j, xi, tau0, symmetric)
        if p == n - 1 and n % period == 0:
            blend_edge(t, j, tours[ant, 0], xi, tau0, symmetric)
