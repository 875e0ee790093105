"""Tour lengths: edges are summed in one order, so that a cycle has the same length to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.constraints import used_edges
from pymoo_gpuaco.problems.metrics import DOUBLED, WITH_DUMMY, Graph, distance, graph_distances
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.threads import spread, thread_count

if TYPE_CHECKING:
    from pymoo_gpuaco.problems.instance import Instance
    from pymoo_gpuaco.problems.tsp import TSP

ADDED_AT_ONCE = 512
"""Edges per partial sum: partial sums reduce rounding errors."""

# Edges per chunk: bounds the temporaries to some tens of megabytes.
CHUNK_EDGES = 1 << 19

_SPREAD_FROM = 100_000  # minimum edges for all threads: one takes 10 ms for these


def graph_of(cities: TSP | Instance) -> Graph:
    """Return the distances of a problem for compiled functions, without candidates and fixed edges."""
    metric, form = int(cities.metric), getattr(cities, "form", None)
    if form is not None and (form.doubled or form.has_dummy):
        metric = DOUBLED if form.doubled else WITH_DUMMY + metric
    coords = np.zeros((0, 3)) if cities.coords is None else cities.coords
    matrix = np.zeros((0, 0)) if cities.matrix is None else cities.matrix
    far = 0.0 if form is None else float(form.far)
    return Graph(metric, np.ascontiguousarray(coords), np.ascontiguousarray(matrix), far=far)


def edge_lengths(cities: TSP | Instance, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
    """Return d(i, j) over index arrays, in double precision, rounded as the metric defines."""
    n = cities.n_cities if hasattr(cities, "n_cities") else cities.n
    return graph_distances(graph_of(cities), n, i, j)


def all_lengths(cities: TSP | Instance, into: NDArray[np.floating]) -> None:
    """Write the distances of all n cities ``into`` an (n, n) array, in blocks of bounded memory."""
    n = len(into)
    to = np.arange(n)
    rows = max(1, CHUNK_EDGES // n)
    for start in range(0, n, rows):
        block = to[start : start + rows, None]
        into[start : start + rows] = edge_lengths(cities, block, to)


def violations(cities: TSP | Instance, tours: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of constraints (m,) that tours (m, n) break, see `TourConstraints.violations`."""
    count, constraints = np.zeros(len(tours), np.int64), cities.constraints
    if constraints is None:
        return count
    for number in range(len(tours)):  # one by one: a tour of a million cities takes some megabytes
        row = tours[number : number + 1]
        lengths = edge_lengths(cities, *used_edges(row, constraints.closed))
        count[number] = constraints.violations(row, lengths)[0]
    return count


def tour_lengths(
    cities: TSP | Instance, tours: NDArray[Any], n: int, what: str, closed: bool
) -> NDArray[np.float64]:
    """Return the (m,) lengths of (m, n) closed tours, or of paths, in blocks of bounded memory.

    Edges of infinite length, which are forbidden, count 0.

    Raises ValueError naming `what` when a row is not a permutation of 0..n-1.
    """
    if tours.ndim != 2 or tours.shape[1] != n:
        raise ValueError(f"{what} must have shape (m, {n}), got {tours.shape}")
    lengths, graph, rows = np.empty(len(tours)), graph_of(cities), max(1, CHUNK_EDGES // n)
    for start in range(0, len(tours), rows):
        chunk = checks.permutations(what, tours[start : start + rows], n, first_row=start)
        lengths[start : start + rows] = lengths_of(graph, chunk, closed)
    return lengths


def lengths_of(graph: Graph, tours: NDArray[np.integer], closed: bool = True) -> NDArray[np.float64]:
    """Return the (m,) lengths of permutations (m, n), which are not checked.

    Sums begin at city 0 and go towards its smaller neighbour, for any first city and direction of a row.
    """
    rows = np.ascontiguousarray(tours, np.int32)
    sums = np.empty((len(rows), -(-rows.shape[1] // ADDED_AT_ONCE)))

    def work(_: int, first: int, last: int) -> None:
        _add_blocks(graph, rows, closed, first, last, sums)

    spread(work, sums.size, thread_count() if rows.size >= _SPREAD_FROM else 1)
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
def _add_blocks(graph, tours, closed, first, last, sums):  # type: ignore[no-untyped-def]
    """Write blocks first .. last-1 of all tours, those of the first tour first."""
    blocks, zero, step = sums.shape[1], 0, 1
    for place in range(first, last):
        number, block = place // blocks, place % blocks
        if place == first or block == 0:
            zero, step = _begin(tours[number])
        sums[number, block] = _sum_block(graph, tours[number], closed, zero, step, block)


@compiled
def tour_length(graph, tour):  # type: ignore[no-untyped-def]
    """Return the length of a closed tour (n,), summed in the order of `lengths_of`."""
    total, (zero, step) = 0.0, _begin(tour)
    for block in range((tour.shape[0] + ADDED_AT_ONCE - 1) // ADDED_AT_ONCE):
        total += _sum_block(graph, tour, True, zero, step, block)
    return total
