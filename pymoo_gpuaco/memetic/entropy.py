"""Edge frequencies of a population, and its entropy as a measure of diversity.

The entropy of a population of m tours is the sum over all edges of -f log f, where f is the share of the tours with the
edge. It is 0 if all tours are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)

_EMPTY = -1
_FEWEST_SLOTS = 64


@struct
class Frequencies(NamedTuple):
    """Hash table of edges and the number of tours with each."""

    n: int
    edges: Int64_1d
    counts: Int32_1d
    used: Int64_1d
    terms: Float64_1d


def count_edges(tours: NDArray[np.int32]) -> Frequencies:
    """Count the edges of tours (m, n)."""
    m, n = tours.shape
    share = np.arange(m + 1) / m
    terms = np.zeros(m + 1)
    terms[1:] = -share[1:] * np.log(share[1:])
    table = _empty(n, 4 * n, terms)
    done = 0
    while True:
        done = int(_count_tours(table, tours, done))
        if done == m:
            return table
        table = larger(table)


def larger(table: Frequencies) -> Frequencies:
    """Return the same counts in a table for twice as many edges, without edges that no tour has."""
    present = table.counts > 0
    bigger = _empty(table.n, 4 * int(present.sum()), table.terms)
    _insert_all(bigger, table.edges[present], table.counts[present])
    return bigger


def _empty(n: int, slots: int, terms: NDArray[np.float64]) -> Frequencies:
    """Return an empty hash table with open addressing, of a power of two of slots."""
    size = 1 << max(slots, _FEWEST_SLOTS).bit_length()
    return Frequencies(
        n=n,
        edges=np.full(size, _EMPTY, np.int64),  # lower city times n plus higher city, or -1
        counts=np.zeros(size, np.int32),  # number of tours with the edge
        used=np.zeros(1, np.int64),  # number of slots with an edge, including edges with count 0
        terms=terms,  # (m + 1,) term of the entropy of an edge, by its number of tours
    )


@inlined
def has_space(table, edges):  # type: ignore[no-untyped-def]
    """Return True if a quarter of the table is still empty after ``edges`` new edges."""
    return 4 * (table.used[0] + edges) <= 3 * table.edges.shape[0]


@inlined
def _slot(table, edge):  # type: ignore[no-untyped-def]
    """Return the slot of an edge, or the free slot for it."""
    mask = np.uint64(table.edges.shape[0] - 1)
    h = np.uint64(edge) * np.uint64(0x9E3779B97F4A7C15)
    at = (h ^ (h >> np.uint64(32))) & mask
    while table.edges[at] != edge and table.edges[at] != _EMPTY:
        at = (at + np.uint64(1)) & mask
    return at


@inlined
def _edge(table, u, v):  # type: ignore[no-untyped-def]
    return np.int64(min(u, v)) * table.n + np.int64(max(u, v))


@compiled_callee
def frequency(table, u, v):  # type: ignore[no-untyped-def]
    """Return the number of tours with the edge."""
    at = _slot(table, _edge(table, u, v))
    return np.int64(table.counts[at])


@compiled_callee
def count_edge(table, u, v, change):  # type: ignore[no-untyped-def]
    """Add ``change``, 1 or -1, to the count of an edge. The table must have space."""
    edge = _edge(table, u, v)
    at = _slot(table, edge)
    if table.edges[at] == _EMPTY:
        table.edges[at] = edge
        table.used[0] += 1
    table.counts[at] += change


@compiled
def _count_tours(table: Frequencies, tours: Int32_2d, first: int) -> int:
    """Count the edges of tours from ``first`` on until the table is full; return the first tour not counted."""
    m, n = tours.shape
    for t in range(first, m):
        if not has_space(table, n):
            return t
        for p in range(n):
            count_edge(table, tours[t, p], tours[t, p + 1 if p + 1 < n else 0], 1)
    return m


@compiled
def _insert_all(table: Frequencies, edges: Int64_1d, counts: Int32_1d) -> None:
    for i in range(edges.shape[0]):
        at = _slot(table, edges[i])
        table.edges[at], table.counts[at] = edges[i], counts[i]
    table.used[0] = edges.shape[0]
