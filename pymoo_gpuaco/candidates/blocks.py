"""The edges of a sparse graph by blocks of near cities, for work that all threads share.

Few edges lead from one block to another, so most of a minimum tree can be found within blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.tree import build_tree
from pymoo_gpuaco.runtime.compiled import compiled
from pymoo_gpuaco.runtime.threads import spread, thread_count

# Cities of a block: what is kept of them fits the fast memory of a core, and 16 cores have work from 8,000 cities on.
_MOST = 1000


class Blocks(NamedTuple):
    """n cities at positions 0 .. n-1, block after block, and the edges that each of B blocks has at its cities.

    An edge between two blocks is in both. In a block those that stay within it come first. Either kind goes by length.
    """

    city: NDArray[np.int32]  # (n,) at a position
    first: NDArray[np.int64]  # (B + 1,) position where a block begins
    edges: NDArray[np.int64]  # (B + 1,) where its edges begin
    outward: NDArray[np.int64]  # (B,) the first of them that leaves it
    u: NDArray[np.int32]  # (x,) position of an end in the block
    v: NDArray[np.int32]  # (x,) of the other end
    length: NDArray[np.float64]  # (x,)
    number: NDArray[np.int32]  # (x,) of the edge in the graph


def near_together(n: int, coords: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return n cities in blocks of near ones, and where each block begins (B + 1,).

    Near by the first two coordinates, of (n, 3); those of the dummy are NaN. Without any, (0, 3), there is one block.
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
    """Sort the edges u (m,) to v (m,) of some length (m,) by the blocks that `near_together` has found."""
    n, count = len(city), len(first) - 1
    place, block = np.empty(n, np.int32), np.empty(n, np.int32)
    place[city] = np.arange(n, dtype=np.int32)
    block[city] = np.repeat(np.arange(count, dtype=np.int32), np.diff(first))
    begins = np.zeros(2 * count + 1, np.int64)  # of the edges within a block and of those out of it, in turn
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
    """Count the edges of each block, those within it and those out of it in turn, one place further on."""
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
