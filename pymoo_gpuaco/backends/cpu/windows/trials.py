"""Trials in a window: a kick, its repair, and acceptance.

The kick is a double bridge of three short stretches (Martin, Otto and Felten, Operations Research Letters 11, 1992),
which no sequential move undoes. A trial that does not lengthen the tour is accepted, another one with the Metropolis
probability at the current temperature.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.windows.moves import flip, repair, undo
from pymoo_gpuaco.backends.cpu.windows.window import LOGGED, MADE, Units, Window, cost
from pymoo_gpuaco.backends.cpu.workspace import push
from pymoo_gpuaco.runtime.compiled import UInt8_1d, UInt64, compiled, inlined
from pymoo_gpuaco.runtime.philox import STREAM_KICKS, begin_stream, next_below, next_uniform

# Consecutive kicks are near one another, so that most of their data is in the first-level cache.
STAY = 10  # trials near one position
SPREAD = 50  # range of their first positions
DRAWS = 21  # attempts to draw a kick that fits


@inlined
def _at(order, m, p):  # type: ignore[no-untyped-def]
    return order[p if p < m else p - m]


@inlined
def _is_fixed(w, m, p):  # type: ignore[no-untyped-def]
    """Return 1 if the link after position p is fixed, else 0; two consecutive links are never both fixed."""
    return 1 if w.mate[_at(w.order, m, p)] == _at(w.order, m, p + 1) else 0


@inlined
def _kick(units, w, m, around, longest, stream):  # type: ignore[no-untyped-def]
    """Apply a random double bridge and queue its eight cities; return its gain, and False if none fits.

    It begins less than ``SPREAD`` positions after ``around``, with stretches of random lengths. Fixed links are
    skipped.
    """
    o = w.order
    p = around + next_below(stream, SPREAD)
    if p >= m:
        p %= m
    p += _is_fixed(w, m, p)
    if p == m:
        p = 0
    x = p + 1 + next_below(stream, longest)
    y = x + 1 + next_below(stream, longest)
    x += _is_fixed(w, m, x)
    y = max(y, x + 1)
    y += _is_fixed(w, m, y)
    z = y + 1 + next_below(stream, longest)
    z += _is_fixed(w, m, z)
    if z - p >= m - 1:
        return 0.0, False
    # a [b .. c] [d .. e] [f .. g] h becomes a [f .. g] [d .. e] [b .. c] h; fixed links inside a stretch move with it
    a, b, c, d = _at(o, m, p), _at(o, m, p + 1), _at(o, m, x), _at(o, m, x + 1)
    e, f, g, h = _at(o, m, y), _at(o, m, y + 1), _at(o, m, z), _at(o, m, z + 1)
    gain = (
        (cost(units, w, a, b) - cost(units, w, a, f))
        + (cost(units, w, c, d) - cost(units, w, g, d))
        + (cost(units, w, e, f) - cost(units, w, e, b))
        + (cost(units, w, g, h) - cost(units, w, c, h))
    )
    order, position, log, state = w.order, w.position, w.log, w.state
    direction = flip(order, position, log, state, m, 1, b, g)
    direction = flip(order, position, log, state, m, direction, g, f)
    direction = flip(order, position, log, state, m, direction, e, d)
    flip(order, position, log, state, m, direction, c, b)
    for city in (a, b, c, d, e, f, g, h):
        push(w, city)
    return gain, True


@compiled
def search_window(
    units: Units,
    w: Window,
    m: int,
    dirty: UInt8_1d,
    count: int,
    first_temperature: float,
    last_temperature: float,
    longest: int,
    key: UInt64,
    number: int,
) -> float:
    """Repair from dirty cities, and run ``count`` trials while the temperature falls linearly; return the gain.

    Cities with all candidates in the window are no longer dirty. Kicks move stretches of up to ``longest`` cities.
    Random numbers depend on ``key`` and the ``number`` of the window.
    """
    stream = w.rng
    begin_stream(stream, key, number, STREAM_KICKS)
    longest, total, around = min(longest, (m - 2) // 3), 0.0, 0
    for trial in range(-1, count):  # number -1 is the repair: `repair`, most of the code, is compiled once
        w.state[LOGGED] = w.state[MADE] = 0
        gain, made = 0.0, trial < 0
        if trial < 0:
            for p in range(m):
                if dirty[w.city[p]]:
                    push(w, p)
        elif w.stop[0]:
            break
        elif trial % STAY == 0:
            around = next_below(stream, m)
        for _ in range(DRAWS):
            if made:
                break
            gain, made = _kick(units, w, m, around, longest, stream)
        if not made:
            continue
        gain += repair(units, w, m, trial >= 0)
        if trial < 0:
            for p in range(m):
                if w.near[p, w.near.shape[1] - 1] >= 0:
                    dirty[w.city[p]] = 0
            total += gain
            continue
        temperature = first_temperature + (last_temperature - first_temperature) * (trial / count)
        if gain >= 0.0 or (temperature > 0.0 and gain > temperature * math.log(next_uniform(stream))):
            total += gain
        else:
            undo(w.order, w.position, w.log, w.state, m, 0)
    return total


def unload_stretch(w: Window, m: int, tour: NDArray[np.int32], positions: NDArray[np.int32]) -> None:
    """Write a window of one run back to its positions; the ends of the run stay in place."""
    p = int(w.position[0])
    step = 1 if w.order[p - 1 if p > 0 else m - 1] == m - 1 else -1  # direction away from the fixed link
    tour[positions] = w.city[w.order[(p + step * np.arange(m)) % m]]
