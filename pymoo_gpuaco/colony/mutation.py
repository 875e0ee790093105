"""Trail mutation of the Best-Worst Ant System (Cordon et al. 2000), drawn on the host."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: minimum trail after a mutation, as a share of the mean trail of the best tour: every edge remains possible
LEAST = 1e-6


def draw(
    key: int, probability: float, n: int, neighbours: NDArray[np.int32] | None, symmetric: bool
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Draw edges (e, 2) and signs (e,), +1 or -1, from ``key`` in [0, 2**64).

    Every city mutates one of its edges with ``probability``: to any other city, or to one of its ``neighbours`` (n, k)
    if only candidate edges have trails. Edges are unique; in a symmetric instance an edge drawn at both ends counts
    once.
    """
    random = np.random.Generator(np.random.Philox(key=key))
    mutates = np.flatnonzero(random.random(n) < probability)
    width = n - 1 if neighbours is None else neighbours.shape[1]
    slots = random.integers(0, width, n)[mutates]
    signs = random.choice([-1.0, 1.0], n)[mutates]
    # n - 1 other cities: numbers from the city's own number on are shifted by one
    ends = slots + (slots >= mutates) if neighbours is None else neighbours[mutates, slots]
    edges = np.stack([mutates, ends], axis=1)
    from_city, to_city = (np.sort(edges, axis=1) if symmetric else edges).astype(np.int64).T
    # unique numbers of edges, which is faster than unique rows
    _, first = np.unique(from_city * n + to_city, return_index=True)
    first.sort()
    return edges[first].astype(np.int32), signs[first]
