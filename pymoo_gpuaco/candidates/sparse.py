"""A connected graph of few edges, from candidate lists: what trees and penalties are computed on."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.host.compiled import compiled

# Length of edges that must stay, in mean candidate edges below 0, at least: no penalties make up for it.
_SHORTER = 100.0
_CHUNK = 1 << 18  # edges whose lengths are computed together


class SparseGraph(NamedTuple):
    """m edges without direction between n cities, each once."""

    n: int
    u: NDArray[np.int32]  # (m,)
    v: NDArray[np.int32]  # (m,)
    length: NDArray[np.float64]  # (m,)
    stays: NDArray[np.bool_]  # (m,) edges that must stay; here so short that every minimum tree has them
    constant: float  # by how much a tour is longer than by these lengths


def sparse_graph(instance: ListedInstance, ids: NDArray[np.int32]) -> SparseGraph:
    """Return the edges of (n, k) candidate lists and of a greedy tour.

    With a tour in it the graph is connected and every city has two edges. Where lists had a single edge between two
    parts of the cities, penalties would grow without end; with the tour no 1-tree gets heavier than it.

    Raises ValueError unless the instance is symmetric.
    """
    if not instance.symmetric:
        raise ValueError("a graph without directions needs a symmetric instance")
    n, k = ids.shape
    u, v = np.empty(n * k, np.int32), np.empty(n * k, np.int32)
    m = _edges_once(ids, u, v)
    tour = greedy_tour(instance)
    onward = np.roll(tour, -1)
    # Doubled edges would be two ways between the same cities.
    listed = (ids[tour] == onward[:, None]).any(axis=1) | (ids[onward] == tour[:, None]).any(axis=1)
    u, v = np.concatenate([u[:m], tour[~listed]]), np.concatenate([v[:m], onward[~listed]])
    if instance.form is not None and instance.form.has_dummy:  # it may join any two cities
        u, v = u[(u < n - 1) & (v < n - 1)], v[(u < n - 1) & (v < n - 1)]
        u = np.concatenate([u, np.arange(n - 1, dtype=np.int32)])
        v = np.concatenate([v, np.full(n - 1, n - 1, np.int32)])
    length, partner = pair_lengths(instance, u, v), instance.partner
    if partner is None:
        return SparseGraph(n, u, v, length, np.zeros(len(u), bool), 0.0)
    stays = partner[u] == v
    # a power of two, so that the sum is exact where lengths are whole numbers: a bound is rounded up to one
    mean = float(instance.neighbour_distances.mean())
    short = -(2.0 ** math.ceil(math.log2(_SHORTER * mean))) if mean > 0.0 else 0.0
    constant = math.fsum((length[stays] - short).tolist())
    length[stays] = short
    return SparseGraph(n, u, v, length, stays, constant)


def pair_lengths(instance: ListedInstance, i: NDArray[Any], j: NDArray[Any]) -> NDArray[np.float64]:
    """Return the (m,) distances of cities i (m,) to j (m,), in pieces of bounded memory."""
    length = np.empty(len(i))
    for start in range(0, len(i), _CHUNK):
        piece = slice(start, start + _CHUNK)
        length[piece] = instance.distance(i[piece], j[piece])
    return length


@compiled
def _edges_once(ids, u, v):  # type: ignore[no-untyped-def]
    """Write every edge of the lists once; return how many there are."""
    m = 0
    for i in range(ids.shape[0]):
        for s in range(ids.shape[1]):
            j = ids[i, s]
            new = True
            if j < i:
                for t in range(ids.shape[1]):
                    if ids[j, t] == i:
                        new = False
                        break
            if new:
                u[m], v[m] = i, j
                m += 1
    return m
