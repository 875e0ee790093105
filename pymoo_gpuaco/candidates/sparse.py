"""A connected sparse graph from candidate lists, for trees and penalties."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.blocks import near_together
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.start import greedy_tour, is_listed
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread, thread_count

# Minimum negative length of fixed edges, in mean candidate edges: no penalties compensate it.
_SHORTER = 100.0
_CHUNK = 1 << 18  # edges per computation of lengths


class SparseGraph(NamedTuple):
    """m undirected edges between n cities, each once."""

    n: int
    u: NDArray[np.int32]  # (m,)
    v: NDArray[np.int32]  # (m,)
    length: NDArray[np.float64]  # (m,)
    stays: NDArray[np.bool_]  # (m,) fixed edges, here so short that every minimum tree has them
    constant: float  # length of a tour minus its length by these lengths
    city: NDArray[np.int32]  # (n,) cities in blocks of near ones, see `blocks.near_together`
    first: NDArray[np.int64]  # (B + 1,) first position of a block


def sparse_graph(
    instance: ListedInstance, ids: NDArray[np.int32], distances: NDArray[np.float64]
) -> SparseGraph:
    """Return the edges of (n, k) candidate lists, by their ids and distances, and those of a greedy tour.

    With the tour the graph is connected and every city has two edges. With a single edge between two parts of the
    cities, penalties would grow without limit; with the tour every 1-tree is at most as heavy as the tour.

    Raises ValueError unless the instance is symmetric.
    """
    if not instance.symmetric:
        raise ValueError("a sparse graph requires a symmetric instance")
    n = len(ids)
    u, v, length = _edges_once(ids, distances)
    # Repeated edges would be two paths between the same cities.
    i, j = _not_listed(ids, greedy_tour(instance))
    u, v, length = np.append(u, i), np.append(v, j), np.append(length, pair_lengths(instance, i, j))
    if instance.form is not None and instance.form.has_dummy:  # the dummy may join any two cities
        real = (u < n - 1) & (v < n - 1)
        u, v = np.append(u[real], np.arange(n - 1, dtype=np.int32)), np.append(v[real], np.full(n - 1, n - 1))
        u, v, length = u.astype(np.int32), v.astype(np.int32), np.append(length[real], np.zeros(n - 1))
    stays, constant = np.zeros(len(u), bool), 0.0
    if instance.partner is not None:
        stays = instance.partner[u] == v
        # a power of two, so that sums of whole lengths are exact and a bound can be rounded up
        mean = float(instance.neighbour_distances.mean())
        short = -(2.0 ** math.ceil(math.log2(_SHORTER * mean))) if mean > 0.0 else 0.0
        constant = math.fsum((length[stays] - short).tolist())
        length[stays] = short
    return SparseGraph(n, u, v, length, stays, constant, *near_together(n, instance.coords))


def pair_lengths(instance: ListedInstance, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
    """Return the (m,) distances of cities i (m,) to j (m,), in pieces of bounded memory."""
    length = np.empty(len(i))
    for start in range(0, len(i), _CHUNK):
        piece = slice(start, start + _CHUNK)
        length[piece] = instance.distance(i[piece], j[piece])
    return length


def _edges_once(
    ids: NDArray[np.int32], distances: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
    """Return every edge of the lists (n, k) once: its ends (m,) each, and its length (m,)."""
    n, k = ids.shape
    edges = np.empty(n * k, np.int32), np.empty(n * k, np.int32), np.empty(n * k)
    found = np.zeros((thread_count(), 2), np.int64)

    def work(part: int, first: int, last: int) -> None:
        found[part] = k * first, _write_edges(ids, distances, *edges, first, last)

    spread(work, n, len(found))
    u, v, length = (np.concatenate([of[at : at + count] for at, count in found.tolist()]) for of in edges)
    return u, v, length


@compiled
def _write_edges(ids, distances, u, v, length, first, last):  # type: ignore[no-untyped-def]
    """Write the edges of cities first .. last-1 from place k first on; return their number."""
    k = ids.shape[1]
    m = k * first
    for i in range(first, last):
        for s in range(k):
            j = ids[i, s]
            u[m], v[m], length[m] = i, j, distances[i, s]  # always: a branch would cost more
            m += 1 if j > i or not is_listed(ids, k, j, i) else 0
    return m - k * first


def _not_listed(
    ids: NDArray[np.int32], tour: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the ends (m,) each of a tour's edges that are in no list, in the order of the tour."""
    i, j = np.empty(len(tour), np.int32), np.empty(len(tour), np.int32)
    m = _write_missing(ids, tour, i, j)
    return i[:m], j[:m]


@compiled
def _write_missing(ids, tour, u, v):  # type: ignore[no-untyped-def]
    """Write the edges of the tour that are in no list; return their number."""
    m, n, k = 0, tour.shape[0], ids.shape[1]
    for s in range(n):
        i, j = tour[s], tour[s + 1 if s + 1 < n else 0]
        if not is_listed(ids, k, i, j) and not is_listed(ids, k, j, i):
            u[m], v[m] = i, j
            m += 1
    return m
