"""A connected sparse graph from candidate lists, for trees and penalties, and its edges by blocks for parallel work.

Few edges connect different blocks of near cities, so most of a minimum tree is found within blocks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.quadrant import build_tree
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.runtime.compiled import Bool_1d, Float64_1d, Int32_1d, Int64_1d, struct
from pymoo_gpuaco.runtime.threads import thread_count

# Minimum negative length of fixed edges, in mean candidate edges: no penalties compensate it.
_FIXED_FACTOR = 100.0
# Cities of a block: its data fit the cache of a core, and 16 cores are busy from 8,000 cities on.
_CITIES_PER_BLOCK = 1000


@struct
class SparseGraph(NamedTuple):
    """m undirected edges between n cities, each once."""

    n: int
    u: Int32_1d  # (m,)
    v: Int32_1d  # (m,)
    length: Float64_1d  # (m,)
    stays: Bool_1d  # (m,) fixed edges, here so short that every minimum tree has them
    constant: float  # length of a tour minus its length by these lengths
    city: Int32_1d  # (n,) cities in blocks of near ones, see `near_together`
    first: Int64_1d  # (B + 1,) first position of a block


def sparse_graph(
    instance: ListedInstance, ids: NDArray[np.int32], distances: NDArray[np.float64]
) -> SparseGraph:
    """Return the edges of (n, k) candidate lists, by their ids and distances, and those of a greedy tour.

    The instance is symmetric. With the tour the graph is connected and every city has two edges. With a single edge
    between two parts of the cities, penalties would grow without limit; with the tour every 1-tree is at most as heavy
    as the tour.
    """
    n = len(ids)
    # Each edge is there once: a repeated one would be two paths between the same cities.
    u, v = np.repeat(np.arange(n, dtype=np.int32), ids.shape[1]), ids.ravel()
    once = v > u
    once[~once] = ~_lists(ids, v[~once], u[~once])
    i = greedy_tour(instance)
    j = np.roll(i, -1)
    missing = ~(_lists(ids, i, j) | _lists(ids, j, i))
    i, j = i[missing], j[missing]
    length = np.append(distances.ravel()[once], instance.distance(i, j))
    u, v = np.append(u[once], i), np.append(v[once], j)
    if instance.form is not None and instance.form.has_dummy:  # the dummy may join any two cities
        real = (u < n - 1) & (v < n - 1)
        u, v = np.append(u[real], np.arange(n - 1, dtype=np.int32)), np.append(v[real], np.full(n - 1, n - 1))
        u, v, length = u.astype(np.int32), v.astype(np.int32), np.append(length[real], np.zeros(n - 1))
    stays, constant = np.zeros(len(u), bool), 0.0
    if instance.partner is not None:
        stays = instance.partner[u] == v
        # a power of two, so that sums of whole lengths are exact and a bound can be rounded up
        mean = float(instance.neighbour_distances.mean())
        short = -(2.0 ** math.ceil(math.log2(_FIXED_FACTOR * mean))) if mean > 0.0 else 0.0
        constant = math.fsum((length[stays] - short).tolist())
        length[stays] = short
    return SparseGraph(n, u, v, length, stays, constant, *near_together(n, instance.coords))


def _lists(ids: NDArray[np.int32], i: NDArray[np.int32], j: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return (m,) True where the list (k,) of city i (m,) contains city j (m,)."""
    found = ids[i, 0] == j
    for column in ids.T[1:]:
        found |= column[i] == j
    return found


@struct
class Blocks(NamedTuple):
    """n cities at positions 0 .. n-1 in B blocks, and the edges of each block.

    An edge between two blocks is in both. Inner edges of a block come first; both kinds are sorted by length.
    """

    city: Int32_1d  # (n,) at a position
    first: Int64_1d  # (B + 1,) first position of a block
    edges: Int64_1d  # (B + 1,) first edge of a block
    outward: Int64_1d  # (B,) its first edge to another block
    u: Int32_1d  # (x,) position of the end in the block
    v: Int32_1d  # (x,) position of the other end
    length: Float64_1d  # (x,)
    number: Int32_1d  # (x,) of the edge in the graph


def near_together(n: int, coords: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return n cities in blocks of near ones, and the first position of each block (B + 1,).

    Blocks use the first two coordinates of (n, 3); those of the dummy are NaN. Without coordinates, (0, 3), there is
    one block.
    """
    places = np.nan_to_num(coords) if len(coords) else np.zeros((n, 2))
    tree = build_tree(places[:, 0], places[:, 1], thread_count(), _CITIES_PER_BLOCK if len(coords) else n)
    return tree.point, n * np.arange((1 << tree.depth) + 1) >> tree.depth


def make_blocks(
    city: NDArray[np.int32],
    first: NDArray[np.int64],
    u: NDArray[np.int32],
    v: NDArray[np.int32],
    length: NDArray[np.float64],
) -> Blocks:
    """Sort the edges u (m,) to v (m,) of given lengths (m,) by the blocks from `near_together`."""
    n, count = len(city), len(first) - 1
    place, block = np.empty(n, np.int32), np.empty(n, np.int32)
    place[city] = np.arange(n, dtype=np.int32)
    block[city] = np.repeat(np.arange(count, dtype=np.int32), np.diff(first))
    outward = block[u] != block[v]
    number = np.concatenate([np.arange(len(u), dtype=np.int32), np.flatnonzero(outward).astype(np.int32)])
    near, far = np.concatenate([u, v[outward]]), np.concatenate([v, u[outward]])
    part = 2 * block[near] + outward[number]  # the inner and the outward edges of each block
    order = np.argsort(length[number])
    # a stable sort of 16 bits is a radix sort
    order = order[np.argsort(part[order].astype(np.uint16 if count < 1 << 15 else np.int32), kind="stable")]
    number = number[order]
    begins = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=2 * count))]).astype(np.int64)
    ends = place[near[order]], place[far[order]]
    return Blocks(city, first, begins[::2].copy(), begins[1::2].copy(), *ends, length[number], number)
