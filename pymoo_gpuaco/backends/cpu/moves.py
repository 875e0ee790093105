"""2-opt and Or-opt moves of symmetric instances: evaluation and application.

Source of the method: Bentley, "Fast algorithms for geometric traveling salesman problems", ORSA J. Computing 4
(1992), as Skinderowicz 2020, section 5.7 uses it. Every move is one to three reversals of a path.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pymoo_gpuaco.backends.cpu.workspace import after, before, push, reverse_path
from pymoo_gpuaco.colony.parameters import number_of
from pymoo_gpuaco.problems.metrics import distance
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

TWO_OPT = number_of("2opt")
MAX_SEGMENT = 3  # maximum number of cities that Or-opt moves (Or, 1976)
# A move adds and removes up to three lengths, with a rounding error of at most 6 * 2**-53 of their sum. The limit is a
# thousand times that, so every move shortens the tour, and no tour repeats. It does not depend on the unit of length.
NOISE = 1e-12


@inlined
def shortens(delta, removed):  # type: ignore[no-untyped-def]
    """Return True if a gain exceeds the rounding error of a move that removes edges of length ``removed``."""
    return delta < -NOISE * removed


def make_moves(after: Any, before: Any, reverse_path: Any) -> tuple[Any, Any]:
    """Return ``improve_city`` and ``move_segment`` for a representation of tours that has these functions."""

    @compiled_callee
    def move_segment(w, s1, s2, c, flip):  # type: ignore[no-untyped-def]
        """Move the segment s1 .. s2 (in tour order) between c and its successor, reversed if ``flip`` (Or-opt)."""
        p, nx = before(w, s1), after(w, s2)
        # p [s1..s2 nx..c] d  ->  p [c..nx s2..s1] d  ->  p [nx..c] s2..s1 d  (->  nx..c s1..s2 d)
        reverse_path(w, p, s1, c)
        reverse_path(w, p, c, nx)
        if not flip and s1 != s2:
            reverse_path(w, c, s2, s1)

    @inlined
    def best_move(graph, w, a, moves):  # type: ignore[no-untyped-def]
        """Find the best move that gives ``a`` a nearer tour neighbour.

        Returns the change of length, the kind (0 none, 1 2-opt: x1 .. x2 reversed after x0, 2 Or-opt), x0, x1, x2, and
        whether the segment is reversed.
        """
        n = w.tour.shape[0]
        k = graph.neighbours.shape[1]
        row = np.uint32(a)
        longest = min(MAX_SEGMENT, n - 3) if moves != TWO_OPT else 0
        best = 0.0
        kind, x0, x1, x2, flip = 0, a, a, a, False
        for forward in (True, False):
            b = after(w, a) if forward else before(w, a)
            d_ab = distance(graph, a, b)
            if graph.neighbour_distances[row, 0] >= d_ab:
                continue
            # segments of 1, 2, 3 cities that end at a, next to b: other ends, next cities, change by joining b and next
            f1 = before(w, a) if forward else after(w, a)
            f2 = before(w, f1) if forward else after(w, f1)
            f3 = before(w, f2) if forward else after(w, f2)
            ends, nexts = (np.int32(a), f1, f2), (f1, f2, f3)
            joined1 = distance(graph, b, f1) - distance(graph, a, f1) - d_ab if longest >= 1 else 0.0
            joined2 = distance(graph, b, f2) - distance(graph, f1, f2) - d_ab if longest >= 2 else 0.0
            joined3 = distance(graph, b, f3) - distance(graph, f2, f3) - d_ab if longest >= 3 else 0.0
            changes = (joined1, joined2, joined3)
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
                for last in range(longest):
                    e, f, joined = ends[last], nexts[last], changes[last]
                    if e == c:
                        break
                    if joined + d_ac - d_longer >= best:
                        continue
                    s1, s2 = (e, a) if forward else (a, e)
                    for ahead in (True, False):
                        d, d_cd = (c_next, d_next) if ahead else (c_prev, d_prev)
                        delta = joined + d_ac + distance(graph, e, d) - d_cd
                        if (
                            delta < best
                            and d != (s1 if ahead else s2)
                            and shortens(delta, d_ab + distance(graph, e, f) + d_cd)
                        ):
                            best = delta
                            kind, x0, x1, x2, flip = 2, s1, s2, c if ahead else c_prev, forward == ahead
        return best, kind, x0, x1, x2, flip

    @inlined
    def improve_city(graph, w, a, moves):  # type: ignore[no-untyped-def]
        """Apply the best move that gives ``a`` a nearer tour neighbour; return the change of length, 0.0 if none."""
        best, kind, x0, x1, x2, flip = best_move(graph, w, a, moves)
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

    return improve_city, move_segment


improve_city, move_segment = make_moves(after, before, reverse_path)
