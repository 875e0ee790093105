"""The edges of a sparse graph by blocks of near cities, for parallel work.

Few edges connect different blocks, so most of a minimum tree is found within blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.tree import build_tree
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread, thread_count

# Cities of a block: its data fit the cache of a core, and 16 cores are busy from 8,000 cities on.
_MOST = 1000


class Blocks(NamedTuple):
    """n cities at positions 0 .. n-1 in B blocks, and the edges of each block.

    An edge between two blocks is in both. Inner edges of a block come first; both kinds are sorted by length.
    """

    city: NDArray[np.int32]  # (n,) at a position
    first: NDArray[np.int64]  # (B + 1,) first position of a block
    edges: NDArray[np.int64]  # (B + 1,) first edge of a block
    outward: NDArray[np.int64]  # (B,) its first edge to another block
    u: NDArray[np.int32]  # (x,) position of the end in the block
    v: NDArray[np.int32]  # (x,) position of the other end
    length: NDArray[np.float64]  # (x,)
    number: NDArray[np.int32]  # (x,) of the edge in the graph


def near_together(n: int, coords: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return n cities in blocks of near ones, and the first position of each block (B + 1,).

    Blocks use the first two coordinates of (n, 3); those of the dummy are NaN. Without coordinates, (0, 3), there is
    one block.
    """
    places = np.nan_to_num(coords) if len(coords) else np.zeros((n, 2))
    tree = build_tree(places[:, 0], places[:, 1], thread_count(), _MOST if len(coords) else n)
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
    begins = np.zeros(
        2 * count + 1, np.int64
    )  # of the inner and the outward edges of each block, alternating
    _count_edges(block, u, v, begins)
    np.cumsum(begins, out=begins)
    at = begins[:-1].copy()
    total = int(begins[-1])
    blocks = Blocks(
        city,
        first,
        begins[::2].copy(),
        begins[1::2].copy(),
        np.empty(total, np.int32),
        np.empty(total, np.int32),
        np.empty(total),
        np.empty(total, np.int32),
    )
    _share_edges(block, place, u, v, length, at, blocks)

    def work(_: int, low: int, high: int) -> None:
        for start, end in zip(begins[low:high].tolist(), begins[low + 1 : high + 1].tolist(), strict=True):
            order = np.argsort(blocks.length[start:end])
            for values in (blocks.u, blocks.v, blocks.length, blocks.number):
                values[start:end] = values[start:end][order]

    spread(work, 2 * count, thread_count())
    return blocks


@compiled
def _count_edges(block, u, v, begins):  # type: ignore[no-untyped-def]
    """Count the inner and the outward edges of each block, alternating, from place 1 on."""
    for e in range(u.shape[0]):
        a, b = block[u[e]], block[v[e]]
        if a == b:
            begins[2 * a + 1] += 1
        else:
            begins[2 * a + 2] += 1
            begins[2 * b + 2] += 1


@compiled
def _share_edges(block, place, u, v, length, at, blocks):  # type: ignore[no-untyped-def]
    """Write every edge to its block or both of its blocks, from the places ``at`` on."""
    for e in range(u.shape[0]):
        i, j = u[e], v[e]
        a, b = block[i], block[j]
        for turn in range(1 if a == b else 2):
            if turn == 1:
                a, i, j = b, j, i
            kind = 2 * a if a == b and turn == 0 else 2 * a + 1
            x = at[kind]
            at[kind] += 1
            blocks.u[x], blocks.v[x], blocks.length[x], blocks.number[x] = place[i], place[j], length[e], e
