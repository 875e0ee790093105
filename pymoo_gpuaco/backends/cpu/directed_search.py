"""Or-3opt and kicks for asymmetric instances: stretches are swapped without reversal.

Only one exchange of three edges preserves directions: the swap of two adjacent stretches. Or-opt is its special case
with a short stretch. The search follows Bentley (1992) and, for asymmetric instances, Stuetzle and Hoos (2000):
neighbour lists by row, don't-look bits, positive partial gains.
"""

from __future__ import annotations

from typing import Any

from pymoo_gpuaco.backends.cpu.local_search import make_searches
from pymoo_gpuaco.backends.cpu.moves import shortens
from pymoo_gpuaco.backends.cpu.workspace import (
    after,
    before,
    push,
    reverse_logged,
)
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import next_below


@compiled_callee
def swap_stretches(w, first, a, b):  # type: ignore[no-untyped-def]
    """Swap adjacent stretches of ``a`` and ``b`` cities from position ``first`` on, in their directions.

    Both are reversed together, then each: three reversals, which can be undone by the log.
    """
    n = w.tour.shape[0]
    reverse_logged(w, first, a + b)
    reverse_logged(w, first, b)
    reverse_logged(w, (first + b) % n, a)


@compiled_callee
def cycle_stretches(w, first, a, b):  # type: ignore[no-untyped-def]
    """Swap two stretches of the cycle without moving the longest of three parts: both stretches and the rest."""
    n = w.tour.shape[0]
    c = n - a - b
    if c < 1:  # the tour is not a permutation: ``search`` reaches its move limit
        return
    if c >= a and c >= b:
        swap_stretches(w, first, a, b)
    elif a >= b:
        swap_stretches(w, (first + a) % n, b, c)
    else:
        swap_stretches(w, (first + a + b) % n, c, a)


@compiled_callee
def _distance_on(w, i, j):  # type: ignore[no-untyped-def]
    """Return the number of steps from city i forward to city j along the tour."""
    steps = w.position[j] - w.position[i]
    return steps + w.tour.shape[0] if steps < 0 else steps


@compiled_callee
def improve_from(graph, w, a, moves):  # type: ignore[no-untyped-def]
    """Apply the best move that replaces the edge from city ``a``; return the change of length, 0.0 if there is none.

    a -> b .. e -> f .. c -> d becomes a -> f .. c -> b .. e -> d, with f near a and d near e. This is the only move:
    ``moves`` only completes the signature that ``make_searches`` expects.
    """
    b = after(w, a)
    d_ab = distance(graph, a, b)
    best, best_f, best_d = 0.0, a, a
    for r in range(graph.neighbours.shape[1]):
        d_af = graph.neighbour_distances[a, r]
        if d_af >= d_ab:
            break
        f = graph.neighbours[a, r]
        e = before(w, f)
        removed = d_ab + distance(graph, e, f)
        to_a = _distance_on(w, f, a)
        for s in range(graph.neighbours.shape[1]):
            d_ed = graph.neighbour_distances[e, s]
            if d_ed >= removed - d_af:
                break
            d = graph.neighbours[e, s]
            if d == f or _distance_on(w, f, d) > to_a:
                continue
            c = before(w, d)
            d_cd = distance(graph, c, d)
            delta = d_af + d_ed + distance(graph, c, b) - removed - d_cd
            if delta < best and shortens(delta, removed + d_cd):
                best, best_f, best_d = delta, f, d
    if best < 0.0:
        e, c = before(w, best_f), before(w, best_d)
        push(w, a)
        push(w, b)
        push(w, e)
        push(w, best_f)
        push(w, c)
        push(w, best_d)
        cycle_stretches(w, w.position[b], _distance_on(w, b, e) + 1, _distance_on(w, best_f, c) + 1)
    return best


def make_kick(length: Any) -> Any:
    """Return the compiled kick of a search that measures edges by the compiled ``length(graph, w, i, j)``."""

    @compiled_callee
    def kick(graph, w, longest, rng):  # type: ignore[no-untyped-def]
        """Reverse the order of three adjacent stretches of 1 .. ``longest`` cities; return the change of length.

        p [A][B][C] q becomes p [C][B][A] q: the double bridge (Martin, Otto and Felten 1991), which sequential moves
        cannot undo.
        """
        n = w.tour.shape[0]
        first = next_below(rng, n)
        a = 1 + next_below(rng, longest)
        b = 1 + next_below(rng, longest)
        c = 1 + next_below(rng, longest)
        a1, a2 = w.tour[first], w.tour[(first + a - 1) % n]
        b1, b2 = w.tour[(first + a) % n], w.tour[(first + a + b - 1) % n]
        c1, c2 = w.tour[(first + a + b) % n], w.tour[(first + a + b + c - 1) % n]
        p, q = before(w, a1), after(w, c2)
        delta = length(graph, w, p, c1) + length(graph, w, c2, b1)
        delta += length(graph, w, b2, a1) + length(graph, w, a2, q)
        delta -= length(graph, w, p, a1) + length(graph, w, a2, b1)
        delta -= length(graph, w, b2, c1) + length(graph, w, c2, q)
        swap_stretches(w, first, a, b + c)
        swap_stretches(w, first, b, c)
        for city in (p, a1, a2, b1, b2, c1, c2, q):
            push(w, city)
        return delta

    return kick


@inlined
def _length(graph, w, i, j):  # type: ignore[no-untyped-def]
    return distance(graph, i, j)


kick = make_kick(_length)
search, improve_tour = make_searches(improve_from, kick, True)
