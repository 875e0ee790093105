"""Or-opt for asymmetric instances: segments change their place but not their direction of travel."""

from __future__ import annotations

from pymoo_gpuaco.backends.cpu.compiled import allocating, inlined
from pymoo_gpuaco.backends.cpu.gain import shortens
from pymoo_gpuaco.backends.cpu.graph import distance, tour_length
from pymoo_gpuaco.backends.cpu.local_search import (
    MAX_SEGMENT,
    NO_END,
    after,
    before,
    load_tour,
    pop,
    push,
    store_tour,
)


@allocating
def shift_segment(w, s1, length, d):  # type: ignore[no-untyped-def]
    """Carry the ``length`` cities from s1 on to the place before city d; the shorter way round the tour moves."""
    n = w.tour.shape[0]
    start = w.position[s1]
    segment = _take(w, start, length)
    between = w.position[d] - start - length  # cities between the segment and d, going forward
    if between < 0:
        between += n
    if 2 * between <= n - length:
        for step in range(between):
            _put(w, (start + step) % n, w.tour[(start + length + step) % n])
        start = (start + between) % n
    else:
        others = n - length - between  # from d forward to the city before the segment
        for step in range(others):
            _put(w, (start + length - 1 - step) % n, w.tour[(start - 1 - step) % n])
        start = (start - others) % n
    for step in range(length):
        _put(w, (start + step) % n, segment[step])


@allocating
def _take(w, start, length):  # type: ignore[no-untyped-def]
    n = w.tour.shape[0]
    segment = w.tour[:length].copy()
    for step in range(length):
        segment[step] = w.tour[(start + step) % n]
    return segment


@inlined
def _put(w, position, city):  # type: ignore[no-untyped-def]
    w.tour[position] = city
    w.position[city] = position


@allocating
def improve_end(graph, w, e):  # type: ignore[no-untyped-def]
    """Apply the best move of a segment that ends at ``e`` to the place before a city near e; 0.0 if none."""
    n = w.tour.shape[0]
    best, best_length, best_d = 0.0, 0, e
    nx = after(w, e)
    d_e_nx = distance(graph, e, nx)
    s1 = e
    for length in range(1, min(MAX_SEGMENT, n - 3) + 1):
        p = before(w, s1)
        cut = distance(graph, p, s1) + d_e_nx
        freed = cut - distance(graph, p, nx)
        for r in range(graph.neighbours.shape[1]):
            d = graph.neighbours[e, r]
            offset = w.position[d] - w.position[s1]
            if offset < 0:
                offset += n
            if offset < length or d == nx:
                continue
            c = before(w, d)
            d_cd = distance(graph, c, d)
            delta = graph.neighbour_distances[e, r] + distance(graph, c, s1) - d_cd - freed
            if delta < best and shortens(delta, cut + d_cd):
                best, best_length, best_d = delta, length, d
        s1 = p
    if best_length == 0:
        return 0.0
    s1 = e
    for _ in range(best_length - 1):
        s1 = before(w, s1)
    for city in (before(w, s1), nx, s1, e, before(w, best_d), best_d):
        push(w, city)
    shift_segment(w, s1, best_length, best_d)
    return best


@allocating
def improve_directed_tours(graph, w, first, last, tours, lengths):  # type: ignore[no-untyped-def]
    """Ants first .. last-1: Or-opt to the local optimum; ``tours`` (m, n) in place, exact ``lengths`` (m,).

    Unfinished tours and errors as in ``improve_tours``.
    """
    for ant in range(first, last):
        if tours[ant, 0] < 0:
            continue
        load_tour(w, tours[ant])
        for p in range(w.tour.shape[0]):
            push(w, w.tour[p])
        while w.ring[1] > 0:
            e = pop(w)
            while w.stop[0] == 0 and improve_end(graph, w, e) < 0.0:
                w.moves_left[0] -= 1
                if w.moves_left[0] == 0:
                    raise RuntimeError(NO_END)
        store_tour(w, tours[ant])
        lengths[ant] = tour_length(graph, w.tour)
