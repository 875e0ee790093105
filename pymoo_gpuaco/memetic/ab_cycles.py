"""AB-cycles: what two tours do differently, parted into closed walks along edges of A and of B in turn.

Y. Nagata and S. Kobayashi, "A powerful genetic algorithm using edge assembly crossover for the traveling salesman
problem", INFORMS Journal on Computing 25 (2013). Every city has as many edges that only A has as edges that only B has,
so such walks always close. Which they are is chance where a city has two of each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.partition_crossover import adjacent
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.philox import next_below, next_word

_A, _B = 0, 1


class Cycles(NamedTuple):
    """AB-cycles of two tours of n cities, and a workspace to find them in."""

    cities: NDArray[np.int32]  # (2n,) of all cycles; each begins with an edge of A
    first: NDArray[np.int64]  # (n + 1,) cycle c has the cities first[c] .. first[c+1]-1
    differing: NDArray[np.int32]  # (n,) cities that have an edge which only one tour has, in any order
    # (2, n, 2) other ends of edges that only A has, or only B, and no cycle yet
    unused_ends: NDArray[np.int32]
    unused: NDArray[np.int32]  # (2, n) how many they are; 0 between calls
    # (2, n) step at which the walk left a city by an edge of A, or of B; -1 between calls
    left_at: NDArray[np.int32]
    path: NDArray[np.int32]  # (2n + 1,) cities of the walk


def make_cycles(n: int) -> Cycles:
    """Allocate the arrays."""
    return Cycles(
        np.empty(2 * n, np.int32),
        np.zeros(n + 1, np.int64),
        np.empty(n, np.int32),
        np.empty((2, n, 2), np.int32),
        np.zeros((2, n), np.int32),
        np.full((2, n), -1, np.int32),
        np.empty(2 * n + 1, np.int32),
    )


@compiled
def find_cycles(a, position_a, b, position_b, most, stream, c):  # type: ignore[no-untyped-def]
    """Find up to ``most`` AB-cycles of the tours a and b, from cities drawn at random; return how many.

    ``position_a`` and ``position_b`` are the cities' positions in the tours.
    """
    count = _note_difference(_A, a, position_b, 0, c)
    count = _note_difference(_B, b, position_a, count, c)
    left, found = count, 0
    while left > 0 and found < most:
        i = next_below(stream, left)
        start = c.differing[i]
        if c.unused[_A, start] == 0:
            left -= 1
            c.differing[i], c.differing[left] = c.differing[left], start
        else:
            found = _walk(start, found, most, stream, c)
    for i in range(left):
        city = c.differing[i]
        c.unused[_A, city] = c.unused[_B, city] = 0
    return found


@compiled_callee
def _note_difference(kind, tour, other_position, count, c):  # type: ignore[no-untyped-def]
    """Note the tour's edges that the other has not, and the cities that are new; return how many cities there are."""
    n = tour.shape[0]
    u, p = tour[n - 1], other_position[tour[n - 1]]
    for i in range(n):
        v = tour[i]
        q = other_position[v]
        if not adjacent(n, p, q):
            count = _note(kind, u, v, count, c)
            count = _note(kind, v, u, count, c)
        u, p = v, q
    return count


@inlined
def _note(kind, city, end, count, c):  # type: ignore[no-untyped-def]
    if c.unused[_A, city] == 0:  # edges of A come first, and no city has edges of B alone
        c.differing[count] = city
        count += 1
    c.unused_ends[kind, city, c.unused[kind, city]] = end
    c.unused[kind, city] += 1
    return count


@inlined
def _drop(kind, city, at, c):  # type: ignore[no-untyped-def]
    """The edge ``at`` of a city is used."""
    c.unused[kind, city] -= 1
    c.unused_ends[kind, city, at] = c.unused_ends[kind, city, c.unused[kind, city]]


@compiled_callee
def _walk(start, found, most, stream, c):  # type: ignore[no-untyped-def]
    """Walk until back at the start by an edge of B, or until there are enough cycles; return how many there are.

    Where the walk comes to a city that it has left by an edge of the kind whose turn it is, what lies between is a
    cycle and is taken off the walk's end.
    """
    steps, kind, city = 0, _A, start
    c.path[0] = start
    while True:
        at = np.int64(0)
        if c.unused[kind, city] > 1:
            at = np.int64(next_word(stream) & np.uint64(1))
        to = c.unused_ends[kind, city, at]
        _drop(kind, city, at, c)
        _drop(kind, to, 0 if c.unused_ends[kind, to, 0] == city else 1, c)
        c.left_at[kind, city] = steps
        steps += 1
        c.path[steps] = city = to
        kind = 1 - kind
        cycle_start = c.left_at[kind, city]
        if cycle_start >= 0:
            _cut_off(cycle_start, steps, kind, found, c)
            found += 1
            steps = cycle_start
            if steps == 0 or found == most:
                break
    for i in range(steps):
        c.left_at[i & 1, c.path[i]] = -1
    return found


@inlined
def _cut_off(cycle_start, steps, kind, cycle, c):  # type: ignore[no-untyped-def]
    """Write the end of the walk as a cycle; its first edge is of the kind."""
    length, first = steps - cycle_start, c.first[cycle]
    for i in range(length):
        # an edge later where it begins with one of B
        c.cities[first + i] = c.path[cycle_start + (i + kind) % length]
        c.left_at[(kind + i) & 1, c.path[cycle_start + i]] = -1
    c.first[cycle + 1] = first + length
