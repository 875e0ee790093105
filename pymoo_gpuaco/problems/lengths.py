"""Lengths of edges and tours, and the demands that tours break, by whatever a problem has: coordinates or a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.adding_up import add_up
from pymoo_gpuaco.problems.demands import Demands, used_edges
from pymoo_gpuaco.problems.long_tours import is_long, long_tour_length
from pymoo_gpuaco.problems.metrics import Metric, distances

__all__ = ["CHUNK_EDGES", "all_lengths", "edge_lengths", "tour_lengths", "violations"]

# Edges looked at together when lengths are computed: keeps the temporaries at some tens of megabytes.
CHUNK_EDGES = 1 << 19
# Of one tour, temporaries that stay in a cache: those of a million cities took most of the time of its length.
_AT_ONCE = 1 << 14


def edge_lengths(
    metric: int,
    coords: NDArray[np.float64] | None,
    matrix: NDArray[np.float64] | None,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return d(i, j) over index arrays, from the matrix (`EXPLICIT`) or from prepared coordinates."""
    if metric == Metric.EXPLICIT:
        assert matrix is not None
        return matrix[i, j]
    assert coords is not None
    if i.size <= _AT_ONCE or i.shape != j.shape:
        return distances(metric, coords, i, j)
    lengths, begin, end = np.empty(i.shape), i.ravel(), j.ravel()
    for start in range(0, i.size, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        lengths.reshape(-1)[part] = distances(metric, coords, begin[part], end[part])
    return lengths


def all_lengths(
    metric: int,
    coords: NDArray[np.float64] | None,
    matrix: NDArray[np.float64] | None,
    into: NDArray[np.float64],
) -> None:
    """Write the distances of all n cities ``into`` an (n, n) array, in pieces of bounded memory."""
    n = len(into)
    to = np.arange(n)
    rows = max(1, CHUNK_EDGES // n)
    for start in range(0, n, rows):
        block = to[start : start + rows, None]
        into[start : start + rows] = edge_lengths(metric, coords, matrix, block, to)


def violations(
    demands: Demands | None,
    metric: int,
    coords: NDArray[np.float64] | None,
    matrix: NDArray[np.float64] | None,
    tours: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return (m,) how many demands each of the permutations ``tours`` (m, n) breaks, see `Demands.violations`."""
    count = np.zeros(len(tours), np.int64)
    if demands is None:
        return count
    for number in range(len(tours)):  # one by one: of a million cities each takes some megabytes
        row = tours[number : number + 1]
        lengths = edge_lengths(metric, coords, matrix, *used_edges(row, demands.closed))
        count[number] = demands.violations(row, lengths)[0]
    return count


def tour_lengths(
    metric: int,
    coords: NDArray[np.float64] | None,
    matrix: NDArray[np.float64] | None,
    tours: NDArray[Any],
    n: int,
    what: str = "tours",
    closed: bool = True,
) -> NDArray[np.float64]:
    """Return the (m,) lengths of (m, n) closed tours, or of paths, in pieces of bounded memory.

    Edges of infinite length, which tours must not use, do not count.

    Raises ValueError naming `what` when a row is not a permutation of 0..n-1.
    """
    if tours.ndim != 2 or tours.shape[1] != n:
        raise ValueError(f"{what} must have shape (m, {n}), got {tours.shape}")
    lengths = np.empty(len(tours))
    by_threads = closed and is_long(metric, n)
    rows = 1 if by_threads else max(1, CHUNK_EDGES // n)
    for start in range(0, len(tours), rows):
        chunk = checks.permutations(what, tours[start : start + rows], n, first_row=start)
        if by_threads and coords is not None:
            lengths[start] = long_tour_length(metric, coords, chunk[0].astype(np.int32))
            continue
        edges = edge_lengths(metric, coords, matrix, *used_edges(chunk, closed))
        if metric == Metric.EXPLICIT:
            edges = np.where(np.isinf(edges), 0.0, edges)
        lengths[start : start + rows] = add_up(edges, chunk)
    return lengths
