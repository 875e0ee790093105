"""Tour lengths: edges are summed in one order, so that a cycle has the same length to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.constraints import used_edges
from pymoo_gpuaco.problems.metrics import WITH_DUMMY, Metric, between, distance, distances
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread, thread_count

if TYPE_CHECKING:
    from pymoo_gpuaco.problems.instance import Instance
    from pymoo_gpuaco.problems.tsp import TSP

ADDED_AT_ONCE = 512
"""Edges per partial sum: partial sums reduce rounding errors."""


def add_up(edges: NDArray[np.float64], tours: NDArray[Any]) -> NDArray[np.float64]:
    """Return the (m,) sums of the edge lengths (m, n) of tours (m, n), or (m, n - 1) of paths.

    Sums begin at city 0 and go towards its smaller neighbour, for any first city and direction of a row.
    """
    m, n = tours.shape
    zero = (tours == 0).argmax(axis=1)
    row = np.arange(m)
    backwards = tours[row, zero - 1] < tours[row, (zero + 1) % n]
    steps = np.where(backwards[:, None], -1 - np.arange(n), np.arange(n))
    around = np.zeros((m, n))
    around[:, : edges.shape[1]] = edges
    width = min(n, ADDED_AT_ONCE)
    ordered = np.zeros((m, -(-n // width), width))
    ordered.reshape(m, -1)[:, :n] = np.take_along_axis(around, (zero[:, None] + steps) % n, axis=1)
    # cumsum adds in order, unlike numpy's sum
    blocks = np.cumsum(ordered, axis=2)[:, :, -1]
    sums: NDArray[np.float64] = np.cumsum(blocks, axis=1)[:, -1]
    return sums


# Edges per chunk: bounds the temporaries to some tens of megabytes.
CHUNK_EDGES = 1 << 19


LONG_TOUR = 100_000
"""Minimum cities of a tour that all threads measure: one thread takes 10 ms for each 100,000."""


def edge_lengths(cities: TSP | Instance, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return d(i, j) over index arrays, from the matrix (`EXPLICIT`) or from prepared coordinates."""
    metric, coords = cities.metric, cities.coords
    if metric == Metric.EXPLICIT:
        assert cities.matrix is not None
        return cities.matrix[i, j]
    assert coords is not None
    return distances(metric, coords, i, j)


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
    lengths, metric, coords = np.empty(len(tours)), int(cities.metric), cities.coords
    by_threads = closed and is_long(metric, n)
    rows = 1 if by_threads else max(1, CHUNK_EDGES // n)
    for start in range(0, len(tours), rows):
        chunk = checks.permutations(what, tours[start : start + rows], n, first_row=start)
        if by_threads and coords is not None:
            lengths[start] = long_tour_length(metric, coords, chunk[0].astype(np.int32))
            continue
        edges = edge_lengths(cities, *used_edges(chunk, closed))
        if metric == Metric.EXPLICIT:
            edges = np.where(np.isinf(edges), 0.0, edges)
        lengths[start : start + rows] = add_up(edges, chunk)
    return lengths


def is_long(metric: int, n: int) -> bool:
    """Return True if all threads measure one closed tour of n cities, which have coordinates."""
    return n >= LONG_TOUR and metric != Metric.EXPLICIT and metric < WITH_DUMMY


def compile_lengths(metric: int, n: int) -> None:
    """Compile the functions that measure tours, before the time of a run counts."""
    coords, city = np.zeros((3, 3)), np.arange(3, dtype=np.int32)
    if metric != Metric.EXPLICIT:
        distances(metric, coords, city, city)
    if is_long(metric, n):
        long_tour_length(metric, coords, city)


def long_tour_length(metric: int, coords: NDArray[np.float64], tour: NDArray[np.int32]) -> float:
    """Return the length of a closed tour (n,), a permutation of 0 .. n-1, in the order of `add_up`, on all threads."""
    n = len(tour)
    zero = int(np.argmax(tour == 0))
    step = -1 if tour[zero - 1] < tour[(zero + 1) % n] else 1
    sums = np.empty(-(-n // ADDED_AT_ONCE))

    def work(_: int, first: int, last: int) -> None:
        _add_blocks(metric, coords, tour, zero, step, first, last, sums)

    spread(work, len(sums), thread_count())
    return float(np.cumsum(sums)[-1])


@compiled
def _add_blocks(metric, coords, tour, zero, step, first, last, sums):  # type: ignore[no-untyped-def]
    """Add up blocks first .. last-1 of the tour's edges, from position ``zero`` on in steps of 1 or -1."""
    n = tour.shape[0]
    for block in range(first, last):
        begin, end = block * ADDED_AT_ONCE, min(n, (block + 1) * ADDED_AT_ONCE)
        at = (zero + step * begin + n) % n
        i, total = tour[at], 0.0
        for _ in range(begin, end):
            at += step
            at = 0 if at == n else n - 1 if at < 0 else at
            j = tour[at]
            total += between(
                metric, coords[i, 0], coords[i, 1], coords[i, 2], coords[j, 0], coords[j, 1], coords[j, 2]
            )
            i = j
        sums[block] = total


@compiled
def tour_length(graph, tour):  # type: ignore[no-untyped-def]
    """Return the length of a closed tour, summed in the order of `add_up`."""
    n, at = tour.shape[0], 0
    while at < n - 1 and tour[at] != 0:
        at += 1
    backwards = tour[at - 1 if at > 0 else n - 1] < tour[at + 1 if at + 1 < n else 0]
    total = part = 0.0
    for s in range(n):
        if s % ADDED_AT_ONCE == 0:
            total += part
            part = 0.0
        if backwards:
            to = at - 1 if at > 0 else n - 1
            part += distance(graph, tour[to], tour[at])
        else:
            to = at + 1 if at + 1 < n else 0
            part += distance(graph, tour[at], tour[to])
        at = to
    return total + part
