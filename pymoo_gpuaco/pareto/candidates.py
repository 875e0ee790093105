"""Which edges a search for fronts looks at: near by one of the objectives, or on tours of the front."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_AT_ONCE = 1000  # tours whose edges are counted at once


def union_of(lists: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Candidates (n, c) of several lists (n, ..), each once, those that come first in a list first.

    Rows that are shorter end with the city itself.
    """
    # the first of each list, the second of each, ..
    together = np.stack(lists, axis=2).reshape(len(lists[0]), -1)
    return _padded([row[np.sort(np.unique(row, return_index=True)[1])] for row in together])


def edges_of(tours: NDArray[np.integer], directed: bool) -> NDArray[np.int32]:
    """Candidates (n, c): the cities next to each other on any of the tours (m, n), those on most of them first.

    ``directed``: of each city those that follow it.

    T. Lust and A. Jaszkiewicz, "Speed-up techniques for solving large-scale biobjective TSP", Computers and Operations
    Research 37 (2010): what supported tours and their likes are made of is little, and enough.
    """
    n = tours.shape[1]
    edges, times = np.empty(0, np.int64), np.empty(0, np.int64)
    for first in range(0, len(tours), _AT_ONCE):
        some = tours[first : first + _AT_ONCE]
        found, counts = np.unique(_pairs(some, np.roll(some, -1, axis=1), n, directed), return_counts=True)
        edges, place = np.unique(np.concatenate([edges, found]), return_inverse=True)
        times = np.bincount(place, np.concatenate([times, counts])).astype(np.int64)
    ends, others = edges // n, edges % n
    if not directed:
        ends, others, times = np.append(ends, others), np.append(others, ends), np.append(times, times)
    order = np.lexsort((others, -times, ends))
    ends, others = ends[order], others[order]
    bounds = np.searchsorted(ends, np.arange(n + 1))
    return _padded([others[bounds[city] : bounds[city + 1]] for city in range(n)])


def _pairs(a: NDArray[np.integer], b: NDArray[np.integer], n: int, directed: bool) -> NDArray[np.int64]:
    if not directed:
        a, b = np.minimum(a, b), np.maximum(a, b)
    return a.astype(np.int64) * n + b


def _padded(rows: list[NDArray[np.integer]]) -> NDArray[np.int32]:
    most = max(map(len, rows))
    lists = np.repeat(np.arange(len(rows), dtype=np.int32)[:, None], most, axis=1)
    for city, row in enumerate(rows):
        lists[city, : len(row)] = row
    return lists
