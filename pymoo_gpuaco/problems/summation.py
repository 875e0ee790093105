"""Tour lengths: edges are summed in one order, so that a cycle has the same length to the last bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.metrics import Graph, distance
from pymoo_gpuaco.runtime.compiled import Float64_2d, Int32_1d, Int32_2d, compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

ADDED_AT_ONCE = 512
"""Edges per partial sum: partial sums reduce rounding errors."""

_SPREAD_FROM = 100_000  # minimum edges for all threads: one takes 10 ms for these


def lengths_of(graph: Graph, tours: NDArray[np.integer], closed: bool = True) -> NDArray[np.float64]:
    """Return the (m,) lengths of permutations (m, n), which are not checked.

    Sums begin at city 0 and go towards its smaller neighbour, for any first city and direction of a row.
    """
    rows = np.ascontiguousarray(tours, np.int32)
    sums = np.empty((len(rows), -(-rows.shape[1] // ADDED_AT_ONCE)))

    def work(_: int, first: int, last: int) -> None:
        _add_blocks(graph, rows, closed, first, last, sums)

    parallel_for(work, sums.size, thread_count() if rows.size >= _SPREAD_FROM else 1)
    lengths: NDArray[np.float64] = np.cumsum(sums, axis=1)[:, -1]  # adds in order, unlike numpy's sum
    return lengths


@inlined
def _begin(tour):  # type: ignore[no-untyped-def]
    """Return the position of city 0, and 1 or -1, the step to its smaller neighbour."""
    n, zero = tour.shape[0], 0
    while zero < n - 1 and tour[zero] != 0:
        zero += 1
    backwards = tour[zero - 1 if zero > 0 else n - 1] < tour[zero + 1 if zero + 1 < n else 0]
    return zero, -1 if backwards else 1


@compiled_callee
def _sum_block(graph, tour, closed, zero, step, block):  # type: ignore[no-untyped-def]
    """Return the sum of one block of edges, from position ``zero`` on in steps of 1 or -1."""
    n, total = tour.shape[0], 0.0
    begin, end = block * ADDED_AT_ONCE, min(n, (block + 1) * ADDED_AT_ONCE)
    at = (zero + step * begin + n) % n
    for _ in range(begin, end):
        to = at + step
        to = 0 if to == n else n - 1 if to < 0 else to
        a, b = (at, to) if step > 0 else (to, at)
        if closed or b != 0:
            length = distance(graph, tour[a], tour[b])
            total += length if length < np.inf else 0.0
        at = to
    return total


@compiled
def _add_blocks(graph: Graph, tours: Int32_2d, closed: bool, first: int, last: int, sums: Float64_2d) -> None:
    """Write blocks first .. last-1 of all tours, those of the first tour first."""
    blocks, zero, step = sums.shape[1], 0, 1
    for place in range(first, last):
        number, block = place // blocks, place % blocks
        if place == first or block == 0:
            zero, step = _begin(tours[number])
        sums[number, block] = _sum_block(graph, tours[number], closed, zero, step, block)


@compiled
def tour_length(graph: Graph, tour: Int32_1d) -> float:
    """Return the length of a closed tour (n,), summed in the order of `lengths_of`."""
    total, (zero, step) = 0.0, _begin(tour)
    for block in range((tour.shape[0] + ADDED_AT_ONCE - 1) // ADDED_AT_ONCE):
        total += _sum_block(graph, tour, True, zero, step, block)
    return total
