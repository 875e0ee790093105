"""One ant of Focused ACO: a walk that changes the source tour in a few places, and local search of the changes."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cpu.segments import difference, find, search
from pymoo_gpuaco.backends.cpu.workspace import push
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.runtime.compiled import allocating, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import STREAM_CONSTRUCTION, new_stream, next_below, next_uniform


@inlined
def _begin_segment(w, q):  # type: ignore[no-untyped-def]
    w.first[w.used[0]] = q
    w.last[w.used[0]] = q
    w.used[0] += 1


@compiled_callee
def _gap(w, q, step):  # type: ignore[no-untyped-def]
    """Return the number of unvisited positions behind q in the direction of ``step``, up to the source's end."""
    n = w.tour.shape[0]
    free = n - 1 - q if step > 0 else q
    for i in range(w.used[0]):
        low, high = min(w.first[i], w.last[i]), max(w.first[i], w.last[i])
        if step > 0 and high > q:
            free = min(free, max(low - q - 1, 0))
        elif step < 0 and low < q:
            free = min(free, max(q - high - 1, 0))
    return free


@compiled_callee
def _copy_source(w, q):  # type: ignore[no-untyped-def]
    """Copy unvisited cities of the source from the last city, at q; return their number."""
    n, added = w.tour.shape[0], np.int64(0)
    for step in (1, -1):
        while True:
            free = _gap(w, q, step)
            i = w.used[0] - 1
            if free > 0:
                q += step * free
                w.last[i] = q
                added += free
            # continue from one end of the source to the other
            end = n - 1 if step > 0 else 0
            other = n - 1 - end
            if q != end or find(w, other) >= 0:
                break
            q = other
            _begin_segment(w, q)
            added += 1
        if added > 0:
            break
    return added


@compiled_callee
def _nearest_gap(graph, w, city):  # type: ignore[no-untyped-def]
    """Return the nearest unvisited city that is adjacent to a visited one in the source."""
    n, k = w.tour.shape[0], w.used[0]
    nearest, chosen = np.inf, np.int64(-1)
    for i in range(k):
        a, b = w.first[i], w.last[i]
        low, high = min(a, b), max(a, b)
        for q in (low - 1 if low > 0 else n - 1, high + 1 if high + 1 < n else 0):
            if find(w, q) < 0:
                c = w.tour[q]
                d = distance(graph, city, c)
                if d < nearest or (d == nearest and c < chosen):
                    nearest, chosen = d, np.int64(c)
    return chosen


@compiled_callee
def _is_visited(w, walked, walking, city):  # type: ignore[no-untyped-def]
    q = w.position[np.uint32(city)]
    return walked[np.uint32(q)] != 0 if walking else find(w, q) >= 0


@compiled_callee
def _next_city(graph, backup, w, weights, walked, walking, city, has_capacity, rng, chances):  # type: ignore[no-untyped-def]
    """Draw an unvisited candidate by roulette; if there is none, choose from the backup list, then from all gaps.

    Without ``has_capacity``, only cities adjacent to visited ones are chosen, so that no more gaps arise.
    """
    k = weights.shape[1]
    if has_capacity:
        total = 0.0
        for r in range(k):
            visited = _is_visited(w, walked, walking, graph.neighbours[city, r])
            chances[r] = 0.0 if visited else weights[city, r]
            total += chances[r]
        if total > 0.0:
            spin = next_uniform(rng) * total
            chosen = np.int64(-1)
            for r in range(k):
                if chances[r] > 0.0:
                    chosen = np.int64(graph.neighbours[city, r])
                    spin -= chances[r]
                    if spin <= 0.0:
                        break
            return chosen
        for r in range(backup.shape[1]):
            c = backup[city, r]
            if not _is_visited(w, walked, walking, c):
                return np.int64(c)
    return _nearest_gap(graph, w, city)


@compiled_callee
def _walk(graph, backup, w, weights, walked, new_edges, rng, chances):  # type: ignore[no-untyped-def]
    """Walk until ``new_edges`` edges are not the source's, then copy the source; queue the ends of new edges."""
    n, capacity = w.tour.shape[0], w.first.shape[0]
    w.used[0] = 0
    city = next_below(rng, n)
    q = w.position[city]
    _begin_segment(w, q)
    walked[q] = 1
    visited, made, walking = np.int64(1), 0, True
    while visited < n:
        has_capacity = w.used[0] < capacity // 2 - 2  # every remaining gap takes a segment, one of them two
        j = _next_city(graph, backup, w, weights, walked, walking, city, has_capacity, rng, chances)
        p = w.position[j]
        step = p - q
        i = w.used[0] - 1
        if abs(step) == 1 and (w.first[i] == q or (w.last[i] > w.first[i]) == (step > 0)):
            w.last[i] = p
        else:
            _begin_segment(w, p)
            if abs(step) != 1 and abs(step) != n - 1:
                made += 1
                push(w, city)
                push(w, j)
        if not has_capacity:
            made = max(made, new_edges)
        visited += 1
        city, q = j, p
        if walking:
            walked[p] = 1
        if walking and (made >= new_edges or visited == n):
            walking = False
            for i in range(w.used[0]):
                a, b = w.first[i], w.last[i]
                for e in range(min(a, b), max(a, b) + 1):
                    walked[e] = 0
        if made >= new_edges:
            visited += _copy_source(w, q)
            q = w.last[w.used[0] - 1]
            city = np.int64(w.tour[q])
    push(w, w.tour[w.first[0]])
    push(w, city)


@allocating
def build_tours(  # type: ignore[no-untyped-def]
    graph,
    backup,
    w,
    weights,
    walked,
    new_edges,
    moves,
    key,
    first_ant,
    last_ant,
    first,
    last,
    counts,
    lengths,
    stop,
):
    """Walk and improve ants first_ant .. last_ant-1; write segments (m, capacity), their numbers and excess lengths.

    ``backup`` (n, b) lists the nearest cities, ``weights`` (n, k) belong to the candidates. ``moves`` < 0:
    no local search. Once ``stop[0]`` is 1, ants leave ``lengths`` at infinity.
    """
    chances = np.empty(weights.shape[1])
    for ant in range(first_ant, last_ant):
        if stop[0] != 0:
            break
        rng = new_stream(key, ant, STREAM_CONSTRUCTION)
        _walk(graph, backup, w, weights, walked, new_edges, rng, chances)
        _improve(graph, w, moves, stop)
        lengths[ant] = difference(graph, w)
        counts[ant] = w.used[0]
        for i in range(w.used[0]):
            first[ant, i] = w.first[i]
            last[ant, i] = w.last[i]


@compiled_callee
def _improve(graph, w, moves, stop):  # type: ignore[no-untyped-def]
    if moves >= 0:
        search(graph, w, moves, stop)
    while w.ring[1] > 0:  # cities that the search has not processed
        city = w.queue[w.ring[0]]
        w.queued[city] = 0
        w.ring[0] = w.ring[0] + 1 if w.ring[0] + 1 < w.queue.shape[0] else 0
        w.ring[1] -= 1
