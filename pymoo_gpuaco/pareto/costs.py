"""Costs of edges by every objective, for compiled functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.instance import as_instance
from pymoo_gpuaco.problems.metrics import between
from pymoo_gpuaco.problems.summation import ADDED_AT_ONCE, all_lengths
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.runtime.compiled import compiled, inlined

#: maximum cities for a table of the costs of all edges: 8 k n^2 bytes
MOST_FOR_TABLE = 2000


class Costs(NamedTuple):
    """k objectives of n cities, c candidates per city."""

    metric: NDArray[np.int64]  # (k,)
    coords: NDArray[np.float64]  # (k, n, 3), or (k, 0, 3) with a table
    table: NDArray[np.float64]  # (n, n, k), or (0, 0, k)
    # (n, c) candidates of each city; shorter rows are padded with the city itself
    neighbours: NDArray[np.int32]
    # (n, c, k) costs of the edges to candidates, infinite in the padding
    near: NDArray[np.float64]
    directed: bool  # True if any objective is asymmetric


@inlined
def cost(costs, q, i, j):  # type: ignore[no-untyped-def]
    """Return the cost of the edge from city i to city j by objective q."""
    if costs.table.shape[0] > 0:
        return costs.table[i, j, q]
    if i == j:
        return 0.0
    c = costs.coords
    return between(costs.metric[q], c[q, i, 0], c[q, i, 1], c[q, i, 2], c[q, j, 0], c[q, j, 1], c[q, j, 2])


@compiled
def add_up_table(table, tours, lengths):  # type: ignore[no-untyped-def]
    """Write lengths (m, k) of tours (m, n) by a table of costs (n, n, k): the sums of `add_up`, to the last bit."""
    n = tours.shape[1]
    for t in range(tours.shape[0]):
        tour, zero = tours[t], 0
        while tour[zero] != 0:
            zero += 1
        step = -1 if tour[zero - 1] < tour[(zero + 1) % n] else 1
        for q in range(table.shape[2]):
            total = block = 0.0
            at, i = zero, tour[zero]
            for edge in range(1, n + 1):
                at += step
                at = 0 if at == n else n - 1 if at < 0 else at
                j = tour[at]
                block += table[i, j, q] if step > 0 else table[j, i, q]
                if edge % ADDED_AT_ONCE == 0 or edge == n:
                    total += block
                    block = 0.0
                i = j
            lengths[t, q] = total


def make_costs(
    parts: Sequence[TSP], neighbours: NDArray[np.int32], table: NDArray[np.float64] | None = None
) -> Costs:
    """Return arrays of k problems with candidates (n, c); a ``table`` of the same problems is shared."""
    n, k = len(neighbours), len(parts)
    tabled = n <= MOST_FOR_TABLE or any(part.coords is None for part in parts)
    if table is None:
        table = np.empty((n, n, k) if tabled else (0, 0, k))
        own = np.empty((n, n) if tabled else (0, 0))
        for q, part in enumerate(parts if tabled else ()):
            all_lengths(part.metric, part.coords, part.matrix, own)
            table[:, :, q] = own
    coords = np.empty((k, 0, 3)) if tabled else np.stack([as_instance(part).coords for part in parts])
    rows = np.arange(n)[:, None]
    near = np.stack([as_instance(part).distance(rows, neighbours) for part in parts], axis=2)
    near[neighbours == rows] = np.inf
    metric = np.array([int(part.metric) for part in parts])
    directed = not all(part.symmetric for part in parts)
    return Costs(
        metric, np.ascontiguousarray(coords), table, neighbours, np.ascontiguousarray(near), directed
    )
