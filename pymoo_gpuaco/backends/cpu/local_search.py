"""Local search with neighbour lists and a work queue, and kicks with repair (moves: see ``moves``).

The best move at a city is applied, and the ends of changed edges are queued again. Reversals are logged; undoing a
search takes no longer than the search.
"""

from __future__ import annotations

from typing import Any

from pymoo_gpuaco.backends.cpu.moves import improve_city
from pymoo_gpuaco.backends.cpu.workspace import (
    NOT_LOGGING,
    before,
    load_tour,
    pop,
    push,
    push_changed,
    reverse_path,
    store_tour,
    undo,
)
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.runtime.compiled import compiled_callee
from pymoo_gpuaco.runtime.philox import next_below


@compiled_callee
def _kick(graph, w, longest, rng):  # type: ignore[no-untyped-def]
    """Swap two adjacent stretches of 1 .. ``longest`` cities (a double bridge); return the change of length."""
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
    # p [A][B] q -> p [B][A] q: reverse A and B together, then each
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


def make_searches(improve: Any, kick: Any, directed: bool) -> tuple[Any, Any]:
    """Return compiled ``search`` and ``improve_tour``.

    ``improve(graph, w, city, moves)`` applies the best move at a city; ``kick(graph, w, longest, rng)`` kicks.
    """

    @compiled_callee
    def search(graph, w, moves):  # type: ignore[no-untyped-def]
        """Improve until the queue is empty; return the total change of length (<= 0).

        The search ends early if the log is full, the move limit is reached or ``stop`` is set.
        """
        total = 0.0
        capacity = w.log.shape[0] - 3
        while w.ring[1] > 0:
            city = pop(w)
            while w.logged[0] < capacity and w.moves_left[0] > 0 and w.stop[0] == 0:
                delta = improve(graph, w, city, moves)
                if delta == 0.0:
                    break
                total += delta
                if w.logged[0] < 0:
                    w.moves_left[0] -= 1
        return total

    @compiled_callee
    def improve_tour(graph, w, moves, reference, kicks, longest, rng, tour):  # type: ignore[no-untyped-def]
        """Improve a tour in place; undo a kick and its repair if they lengthen the tour."""
        load_tour(w, tour)
        push_changed(w, reference, directed)
        w.logged[0] = NOT_LOGGING
        search(graph, w, moves)
        for _ in range(kicks):
            if w.stop[0] != 0 or w.moves_left[0] == 0:
                break
            w.logged[0] = 0
            delta = kick(graph, w, longest, rng)
            if delta + search(graph, w, moves) > 0.0:
                undo(w)
        store_tour(w, tour)

    return search, improve_tour


search, improve_tour = make_searches(improve_city, _kick, False)
