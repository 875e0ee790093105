"""Repair of a window: sequential 3-opt moves with candidate lists, deepened like Lin and Kernighan's.

A move starts with the edge from a city t1 to its neighbour t2 and exchanges edges one after another: (t2, t3) added,
(t3, t4) removed, (t4, t5) added, (t5, t6) removed. The edge from the last city to t1 closes the tour. The first move
that closes with a gain is applied. Otherwise the 3-opt move with the largest partial gain is applied, and the search
continues from its open end; if this fails, too, all of it is undone. The basis move is Helsgaun's (European Journal of
Operational Research 126, 2000, section 4.3) with three edges, evaluated without touching the tour.

Most moves without a closing gain are undone, and reversing long paths twice is expensive. Therefore, from the first
long path on, such reversals are only logged, and the search reads the tour through the log. They are executed when a
move closes with a gain.
"""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cpu.windows.window import (
    DEPTH,
    LOG,
    LOGGED,
    MADE,
    NO_CITY,
    cost,
    index,
)
from pymoo_gpuaco.backends.cpu.workspace import pop, push, reverse
from pymoo_gpuaco.runtime.compiled import compiled_callee, inlined

# Maximum number of reversals of one call of ``improve``; with less space left, the log counts as full.
MOST_FLIPS = 4 * DEPTH

# Kinds of basis moves.
_NONE, _TWO_OPT, _AFTER_TWO_OPT, _SWAP, _TURN_BOTH = 0, 1, 2, 3, 4


@inlined
def _through(log, r, m, p):  # type: ignore[no-untyped-def]
    """Map position p by reversal r of the log (an involution)."""
    first, count = log[r, 0], log[r, 1]
    d = p - first
    if d < 0:
        d += m
    if d >= count:
        return p
    p = first + count - 1 - d
    return p - m if p >= m else p


@inlined
def _position(w, m, c):  # type: ignore[no-untyped-def]
    """Return the position of a city in the tour after all logged reversals."""
    p = np.int64(w.position[index(c)])
    for r in range(w.state[MADE], w.state[LOGGED]):
        p = _through(w.log, r, m, p)
    return p


@inlined
def _beside(w, m, p, direction):  # type: ignore[no-untyped-def]
    """Return the city next to a position, in a direction, of the tour after all logged reversals."""
    p += direction
    if p == m:
        p = np.int64(0)
    elif p < 0:
        p = m - np.int64(1)
    for r in range(w.state[LOGGED] - 1, w.state[MADE] - 1, -1):
        p = _through(w.log, r, m, p)
    return w.order[index(p)]


@inlined
def _log_path(log, state, m, direction, i, j):  # type: ignore[no-untyped-def]
    """Log the reversal of the path from position i to j (in ``direction``); return the new direction.

    If the rest of the tour is shorter, it is reversed instead: this gives the same cycle in the other direction.
    """
    if direction < 0:
        i, j = j, i
    count = j - i
    if count < 0:
        count += m
    count += 1
    if 2 * count > m:
        i = j + 1 if j + 1 < m else 0
        count = m - count
        direction = -direction
    logged = state[LOGGED]
    log[logged, 0], log[logged, 1] = i, count
    state[LOGGED] = logged + 1
    return direction


@compiled_callee
def execute_logged(order, position, log, state, m):  # type: ignore[no-untyped-def]
    """Execute the logged reversals."""
    for r in range(state[MADE], state[LOGGED]):
        reverse(order, position, m, log[r, 0], log[r, 1])
    state[MADE] = state[LOGGED]


@inlined
def flip(order, position, log, state, m, direction, a, b):  # type: ignore[no-untyped-def]
    """Reverse the path from city a to city b (in ``direction``); return the new direction."""
    direction = _log_path(log, state, m, direction, position[a], position[b])
    execute_logged(order, position, log, state, m)
    return direction


@inlined
def _flip_later(w, m, direction, a, b):  # type: ignore[no-untyped-def]
    """Do the same as ``flip``, but only log the reversal if this path or an earlier one is long."""
    logged = w.state[LOGGED]
    direction = _log_path(w.log, w.state, m, direction, _position(w, m, a), _position(w, m, b))
    if w.state[MADE] == logged and w.log[logged, 1] < w.long_path:
        execute_logged(w.order, w.position, w.log, w.state, m)
    return direction


@compiled_callee
def undo(order, position, log, state, m, until):  # type: ignore[no-untyped-def]
    """Undo all reversals except the first ``until``."""
    for r in range(state[MADE] - 1, until - 1, -1):
        reverse(order, position, m, log[r, 0], log[r, 1])
    state[LOGGED] = state[MADE] = until


@inlined
def _was_added(w, added, a, b):  # type: ignore[no-untyped-def]
    for e in range(added):
        p, q = w.added[e, 0], w.added[e, 1]
        if (p == a and q == b) or (p == b and q == a):
            return True
    return False


@inlined
def _along(m, direction, origin, p):  # type: ignore[no-untyped-def]
    """Return the number of steps from position ``origin`` to p in a direction."""
    d = (p - origin) * direction
    return d if d >= 0 else d + m


@inlined
def _reconnect(units, w, m, direction, cities, place, open_gain, best, added):  # type: ignore[no-untyped-def]
    """Search for the cities t5 and t6 of a 3-opt move.

    cities : t1, t3 and t4. place : position of t2, steps from it to t3, and the side of t3 on which t4 is; on side 1 it
    splits the tour. Returns the gain of the first move that closes with a gain and True, else the largest partial gain,
    at least ``best``, and False.
    """
    (t1, t3, t4), (origin, s3, side) = cities, place
    for s in range(w.near.shape[1]):
        t5 = w.near[index(t4), index(s)]
        if t5 < 0:
            break
        g3 = open_gain - w.cost[index(t4), index(s)]
        if g3 <= 0.0:
            break
        if t5 == t3:
            continue
        p5 = _position(w, m, t5)
        ahead, behind = _beside(w, m, p5, direction), _beside(w, m, p5, -direction)
        if ahead == t4 or behind == t4:
            continue
        s5 = _along(m, direction, origin, p5)
        if side == 0:
            choices, t6, kind = 1, behind if s5 >= s3 else ahead, _AFTER_TWO_OPT
            if t6 == t1:
                continue
        elif s5 > s3:
            continue
        else:  # t5 and t6 in the piece from t2 to t3 reconnect the tour
            choices, t6, kind = 2, ahead, _SWAP
        for choice in range(choices):
            if choice == 1:
                t6, kind = behind, _TURN_BOTH
            if (kind == _SWAP and s5 == s3) or (kind == _TURN_BOTH and s5 == 0):
                continue
            if w.mate[index(t5)] == t6 or _was_added(w, added, t5, t6):
                continue
            left = g3 + cost(units, w, t5, t6)
            gain = left - cost(units, w, t6, t1)
            if gain > 0.0 or left > best:
                w.found[0], w.found[1], w.found[2] = kind, t3, t4
                w.found[3], w.found[4] = t5, t6
                if gain > 0.0:
                    return gain, True
                best = left
    return best, False


@inlined
def _search(units, w, m, direction, t1, t2, open_gain, added):  # type: ignore[no-untyped-def]
    """Search for a basis move from t1 and t2, which follows t1 in ``direction``; store it in ``w.found``.

    ``open_gain``: partial gain so far. Returns the gain of the first move that closes with a gain and True, else the
    largest partial gain of a 3-opt move (0 if there is none) and False.
    """
    k, origin = w.near.shape[1], _position(w, m, t2)
    best = 0.0
    for r in range(k):
        t3 = w.near[index(t2), index(r)]
        if t3 < 0:
            break
        g1 = open_gain - w.cost[index(t2), index(r)]
        if g1 <= 0.0:
            break  # candidates are sorted by cost
        if t3 == t1:
            continue
        p3 = _position(w, m, t3)
        before, after = _beside(w, m, p3, -direction), _beside(w, m, p3, direction)
        if before == t2:
            continue
        s3 = _along(m, direction, origin, p3)
        for side in range(2):
            t4 = before if side == 0 else after
            if w.mate[index(t3)] == t4 or (side == 1 and t4 == t2) or _was_added(w, added, t3, t4):
                continue
            g2 = g1 + cost(units, w, t3, t4)
            if side == 0:  # t1 t4' t2' t3: already a tour
                gain = g2 - cost(units, w, t4, t1)
                if gain > 0.0:
                    w.found[0], w.found[1], w.found[2] = _TWO_OPT, t3, t4
                    return gain, True
            best, closes = _reconnect(
                units, w, m, direction, (t1, t3, t4), (origin, s3, side), g2, best, added
            )
            if closes:
                return best, True
    return best, False


@inlined
def _apply_found(w, m, direction, t2):  # type: ignore[no-untyped-def]
    """Apply the move in ``w.found``; return the direction in which the move's last city follows t1."""
    kind, t3, t4, t5, t6 = w.found[0], w.found[1], w.found[2], w.found[3], w.found[4]
    # at most three reversals
    a1, b1, a2, b2, a3, b3 = t2, t4, NO_CITY, NO_CITY, NO_CITY, NO_CITY
    if kind == _AFTER_TWO_OPT:
        a2, b2 = t4, t6
    elif kind == _SWAP:
        a1, b1, a2, b2, a3, b3 = t2, t3, t3, t6, t5, t2
    elif kind == _TURN_BOTH:
        a1, b1, a2, b2 = t2, t6, t5, t3
    direction = _flip_later(w, m, direction, a1, b1)
    if a2 >= 0:
        direction = _flip_later(w, m, direction, a2, b2)
    if a3 >= 0:
        direction = _flip_later(w, m, direction, a3, b3)
    return direction


@inlined
def improve(units, w, m, t1):  # type: ignore[no-untyped-def]
    """Apply a move from t1 that shortens the tour, and queue its cities; return the gain, 0 if no move exists."""
    for side in range(2):
        direction = 1 if side == 0 else -1
        t2 = _beside(w, m, _position(w, m, t1), direction)
        if w.mate[index(t1)] == t2:
            continue
        start, left, added = w.state[LOGGED], cost(units, w, t1, t2), 0
        for level in range(DEPTH):
            gain, closes = _search(units, w, m, direction, t1, t2, left, added)
            if gain <= 0.0 or (level == DEPTH - 1 and not closes):
                break
            direction = _apply_found(w, m, direction, t2)
            w.added[added, 0], w.added[added, 1] = t2, w.found[1]
            w.added[added + 1, 0], w.added[added + 1, 1] = w.found[2], w.found[3]
            added += 2
            if closes:
                execute_logged(w.order, w.position, w.log, w.state, m)
                push(w, t1)
                for e in range(added - 1 if w.found[0] == _TWO_OPT else added):
                    push(w, w.added[e, 0])
                    push(w, w.added[e, 1])
                push(w, w.found[2] if w.found[0] == _TWO_OPT else w.found[4])
                return gain
            t2, left = w.found[4], gain
        undo(w.order, w.position, w.log, w.state, m, start)
    return 0.0


@compiled_callee
def repair(units, w, m, can_undo):  # type: ignore[no-untyped-def]
    """Improve until the queue is empty; return the gain.

    With ``can_undo`` all reversals stay in the log. If the log is nearly full or ``stop`` is set, the queue is cleared.
    """
    total = 0.0
    while w.ring[1] > 0:
        c = pop(w)
        while w.state[LOGGED] < LOG - MOST_FLIPS and w.stop[0] == 0:
            gain = improve(units, w, m, c)
            if gain <= 0.0:
                break
            total += gain
            if not can_undo:
                w.state[LOGGED] = w.state[MADE] = 0
    return total
