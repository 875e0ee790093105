"""Minimum 1-trees: a spanning tree and one more edge, so that there is one cycle, as in a tour.

Held and Karp, "The traveling-salesman problem and minimum spanning trees", Operations Research 18 (1970). Every tour is
a 1-tree, so the shortest 1-tree is at most as long as the shortest tour. The tree is found by Boruvka's algorithm:
every part takes the lightest edge that leaves it.

All threads search, each in blocks of near cities. A part whose lightest edge leads to another block waits. When all
parts of a block wait, further edges of the block can be in the tree only if they are in the minimum forest of these
parts. The forests and the edges between blocks are few, and one thread completes the tree with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.sparse import Blocks, SparseGraph, make_blocks
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.threads import spread, thread_count


class OneTree(NamedTuple):
    """Workspace for 1-trees of one graph; n cities, x edges of B blocks. The first three arrays are results.

    The parts of a block with first position p have the numbers p, p + 1 and so on.
    """

    tree: NDArray[np.int64]  # (n - 1,) edges of the spanning tree
    degree: NDArray[np.int32]  # (n,) edges of the 1-tree at a city
    extra: NDArray[np.int64]  # (2,) the leaf with the additional edge, and that edge
    blocks: Blocks
    pi: NDArray[np.float64]  # (n,) penalty of a position
    ends: NDArray[np.int32]  # (n,) edges of the tree at a position
    second: NDArray[np.int32]  # (n,) the second lightest edge at a position of a block
    second_weight: NDArray[np.float64]  # (n,)
    part: NDArray[np.int32]  # (n,) of a position
    best: NDArray[np.int32]  # (n,) lightest edge of a part in ``a`` and ``b``, or -1: it leaves the block
    best_weight: NDArray[np.float64]  # (n,)
    out: NDArray[np.int32]  # (n,) lightest edge of a part out of the block, or -1
    out_weight: NDArray[np.float64]  # (n,)
    parent: NDArray[np.int32]  # (n,) of a part
    label: NDArray[np.int32]  # (n,) new number of a part
    a: NDArray[np.int32]  # (x,) first parts of the remaining edges
    b: NDArray[np.int32]  # (x,) second parts
    edge: NDArray[np.int32]  # (x,) their edges of the block
    weight: NDArray[np.float64]  # (x,)
    taken: NDArray[np.int32]  # (n,) edges in the tree, those of a block from its first position on
    possible: NDArray[np.int32]  # (n,) further possible edges of the tree
    joining: NDArray[np.int32]  # (n,) edges taken between blocks, by place in ``a`` and ``b``
    counts: NDArray[np.int64]  # (B, 3) numbers of taken edges, remaining parts, and possible edges
    total: NDArray[np.float64]  # (B,) weight of the edges taken


def make_one_tree(graph: SparseGraph) -> OneTree:
    """Allocate the arrays for a graph."""
    n = graph.n
    blocks = make_blocks(graph.city, graph.first, graph.u, graph.v, graph.length)
    x, count = len(blocks.u), len(graph.first) - 1

    def arrays(kind: type, size: int, names: str) -> dict[str, NDArray[Any]]:
        return {name: np.empty(size, kind) for name in names.split()}

    return OneTree(
        tree=np.empty(n - 1, np.int64),
        extra=np.empty(2, np.int64),
        blocks=blocks,
        counts=np.zeros((count, 3), np.int64),
        total=np.empty(count),
        weight=np.empty(x),
        **arrays(np.int32, n, "degree ends second part best out parent label taken possible joining"),
        **arrays(np.float64, n, "pi second_weight best_weight out_weight"),
        **arrays(np.int32, x, "a b edge"),
    )


def find_one_tree(pi: NDArray[np.float64], o: OneTree) -> float:
    """Find the minimum 1-tree under d(i, j) + (pi_i + pi_j) and return its weight; edge numbers break ties.

    The leaf with the heaviest second edge gets that edge (Helsgaun 2000, section 4.1): every leaf gives a lower bound
    of all tours, and this leaf the largest one.
    """

    def work(_: int, low: int, high: int) -> None:
        _search_blocks(pi, o, low, high)

    spread(work, len(o.total), thread_count())
    return float(_join_blocks(o))


@compiled
def _search_blocks(pi, o, low, high):  # type: ignore[no-untyped-def]
    """Find the certain and the possible edges of the tree in blocks low .. high-1."""
    for block in range(low, high):
        first, last, begin = o.blocks.first[block], o.blocks.first[block + 1], o.blocks.edges[block]
        for p in range(first, last):
            o.pi[p] = pi[o.blocks.city[p]]
        left = _weigh(pi, o, block, _heaviest_needed(o, block))
        parts, taken, possible = last - first, 0, 0
        o.total[block] = 0.0
        a, b = o.blocks.u, o.blocks.v
        while True:
            chosen = _take(o, a, b, first, parts, o.taken, first + taken)
            if chosen == 0:
                break
            for t in range(first + taken, first + taken + chosen):
                if taken > 0:  # in the first round, places are edges of the block
                    o.taken[t] = o.edge[o.taken[t]]
                o.total[block] += _count(o, o.taken[t])
            taken += chosen
            parts, left = _unite(o, first, parts, begin, left)
            for p in range(first, last):
                o.part[p] = o.label[o.part[p]]
            _find_lightest(o, first, parts, begin, left)
            a, b = o.a, o.b
        o.counts[block, 0], o.counts[block, 1] = taken, parts
        # the minimum forest of the remaining parts, without outward edges
        _ignore_outward(o, first, parts)
        while True:
            _find_lightest(o, first, parts, begin, left)
            chosen = _take(o, o.a, o.b, first, parts, o.possible, first + possible)
            if chosen == 0:
                break
            for t in range(first + possible, first + possible + chosen):
                o.possible[t] = o.edge[o.possible[t]]
            possible += chosen
            parts, left = _unite(o, first, parts, begin, left)
        o.counts[block, 2] = possible


@compiled
def _join_blocks(o):  # type: ignore[no-untyped-def]
    """Join the parts of all blocks by possible edges; close the 1-tree and return its weight."""
    blocks = o.blocks
    taken, parts, left, total = 0, 0, 0, 0.0
    for block in range(o.total.shape[0]):
        first = blocks.first[block]
        for t in range(first, first + o.counts[block, 0]):
            o.tree[taken] = blocks.number[o.taken[t]]
            taken += 1
        for p in range(first, blocks.first[block + 1]):
            o.part[p] += parts - first
        parts += o.counts[block, 1]
        total += o.total[block]
    for block in range(o.total.shape[0]):
        first = blocks.first[block]
        for t in range(first, first + o.counts[block, 2]):
            left = _add(o, left, o.possible[t])
        for x in range(blocks.outward[block], blocks.edges[block + 1]):
            if blocks.u[x] < blocks.v[x]:  # the edge is in both blocks
                left = _add(o, left, x)
    _ignore_outward(o, 0, parts)
    while True:
        _find_lightest(o, 0, parts, 0, left)
        chosen = _take(o, o.a, o.b, 0, parts, o.joining, 0)
        if chosen == 0:
            break
        for t in range(chosen):
            x = o.edge[o.joining[t]]
            total += _count(o, x)
            o.tree[taken] = blocks.number[x]
            taken += 1
        parts, left = _unite(o, 0, parts, 0, left)
    return total + _close(o)


@compiled_callee
def _heaviest_needed(o, block):  # type: ignore[no-untyped-def]
    """Return a weight above which no inner edge of a block is in the tree, from the last search, or infinity."""
    first = o.blocks.first[block]
    taken, possible = o.counts[block, 0], o.counts[block, 2]
    if taken + possible < o.blocks.first[block + 1] - first - 1:
        return np.inf
    heaviest = -np.inf
    for t in range(first, first + taken):
        heaviest = max(heaviest, _weight(o, o.taken[t]))
    for t in range(first, first + possible):
        heaviest = max(heaviest, _weight(o, o.possible[t]))
    return heaviest


@inlined
def _weight(o, x):  # type: ignore[no-untyped-def]
    """Return the weight of an edge of a block; the brackets make it independent of the direction."""
    return o.blocks.length[x] + (o.pi[o.blocks.u[x]] + o.pi[o.blocks.v[x]])


@compiled_callee
def _weigh(pi, o, block, heaviest):  # type: ignore[no-untyped-def]
    """Find the two lightest edges of each city, and its lightest outward edge; each city becomes a part.

    Returns the number of remaining inner edges, which are not above ``heaviest``.
    """
    blocks = o.blocks
    first, last, end = blocks.first[block], blocks.first[block + 1], blocks.edges[block]
    for p in range(first, last):
        o.best[p], o.second[p] = -1, -1
        o.best_weight[p], o.second_weight[p] = np.inf, np.inf
        o.ends[p], o.part[p] = 0, p
    for edge in range(blocks.outward[block], blocks.edges[block + 1]):
        x = np.uint32(edge)  # unsigned: numba then omits the check for negative indices
        p, q = np.uint32(blocks.u[x]), np.uint32(blocks.v[x])
        _note(o, p, x, blocks.length[x] + (o.pi[p] + pi[blocks.city[q]]))
    for p in range(first, last):
        o.out[p], o.out_weight[p] = o.best[p], o.best_weight[p]
    for edge in range(blocks.edges[block], blocks.outward[block]):
        x, to = np.uint32(edge), np.uint32(end)
        p, q = np.uint32(blocks.u[x]), np.uint32(blocks.v[x])
        w = blocks.length[x] + (o.pi[p] + o.pi[q])
        # written in any case: a branch would cost more
        o.a[to], o.b[to], o.edge[to], o.weight[to] = p, q, x, w
        end += 1 if w <= heaviest else 0
        _note(o, p, x, w)
        _note(o, q, x, w)
    for p in range(first, last):
        if o.best[p] == o.out[p]:
            o.best[p] = -1
    return end - blocks.edges[block]


@inlined
def _note(o, p, x, w):  # type: ignore[no-untyped-def]
    """Store edge x of weight w at a position if it is one of the two lightest."""
    number = o.blocks.number
    if w <= o.second_weight[p]:  # edges are sorted by length, so most fail here
        if w < o.best_weight[p] or (w == o.best_weight[p] and number[x] < number[o.best[p]]):
            o.second[p], o.second_weight[p] = o.best[p], o.best_weight[p]
            o.best[p], o.best_weight[p] = x, w
        elif w < o.second_weight[p] or number[x] < number[o.second[p]]:
            o.second[p], o.second_weight[p] = x, w


@compiled_callee
def _ignore_outward(o, low, parts):  # type: ignore[no-untyped-def]
    """Ignore outward edges of the parts from now on."""
    for c in range(low, low + parts):
        o.out[c], o.out_weight[c] = -1, np.inf


@compiled_callee
def _add(o, left, x):  # type: ignore[no-untyped-def]
    """Add an edge of a block to the remaining ones; return their number."""
    p, q = o.blocks.u[x], o.blocks.v[x]
    o.a[left], o.b[left], o.edge[left] = o.part[p], o.part[q], x
    o.weight[left] = _weight(o, x)
    return left + 1


@compiled_callee
def _count(o, x):  # type: ignore[no-untyped-def]
    """Count an edge of a block at its ends; return its weight."""
    p, q = o.blocks.u[x], o.blocks.v[x]
    o.ends[p] += 1
    o.ends[q] += 1
    return _weight(o, x)


@compiled_callee
def _find_lightest(o, low, parts, begin, left):  # type: ignore[no-untyped-def]
    """Find the lightest of ``left`` edges from place ``begin`` on at each part, unless an outward edge is lighter."""
    for c in range(low, low + parts):
        o.best[c], o.best_weight[c] = -1, o.out_weight[c]
    for at in range(begin, begin + left):
        s = np.uint32(at)
        a, b, w = np.uint32(o.a[s]), np.uint32(o.b[s]), o.weight[s]
        if w <= o.best_weight[a] and _is_lighter(o, s, w, a):
            o.best[a], o.best_weight[a] = s, w
        if w <= o.best_weight[b] and _is_lighter(o, s, w, b):
            o.best[b], o.best_weight[b] = s, w


@inlined
def _is_lighter(o, s, w, c):  # type: ignore[no-untyped-def]
    """Return True if an edge comes before the lightest edge of a part, by (weight, number)."""
    if w < o.best_weight[c]:
        return True
    before = o.out[c] if o.best[c] < 0 else o.edge[o.best[c]]
    return o.blocks.number[o.edge[s]] < o.blocks.number[before]


@compiled_callee
def _take(o, a, b, low, parts, taken, at):  # type: ignore[no-untyped-def]
    """Link parts by their lightest edges between a and b; write their places without repeats; return their number."""
    start = at
    for c in range(low, low + parts):
        s = o.best[c]
        o.parent[c] = c if s < 0 else b[s] if a[s] == c else a[s]
    for c in range(low, low + parts):
        s = o.best[c]
        if s < 0:
            continue
        other = o.parent[c]
        # If two parts choose the same edge, the lower part is the root. Longer cycles are impossible, because edge
        # numbers break ties.
        if o.best[other] == s:
            if c > other:
                continue
            o.parent[c] = c
        taken[at] = s
        at += 1
    return at - start


@compiled_callee
def _unite(o, low, parts, begin, left):  # type: ignore[no-untyped-def]
    """Renumber the joined parts and drop edges inside them; return the numbers of parts and edges left."""
    count, number = low, o.blocks.number
    for c in range(low, low + parts):
        if o.parent[c] == c:
            o.label[c] = count
            count += 1
    for c in range(low, low + parts):
        root = o.parent[c]
        if root == c:
            continue
        while o.parent[root] != root:
            root = o.parent[root]
        at = c
        while o.parent[at] != root:
            o.parent[at], at = root, o.parent[at]
        o.label[c] = o.label[root]
        w = o.out_weight[c]
        if w < o.out_weight[root] or (
            w == o.out_weight[root] and w < np.inf and number[o.out[c]] < number[o.out[root]]
        ):
            o.out[root], o.out_weight[root] = o.out[c], w
    for c in range(low, low + parts):
        if o.parent[c] == c:
            o.out[o.label[c]], o.out_weight[o.label[c]] = o.out[c], o.out_weight[c]
    end = begin
    for at in range(begin, begin + left):
        s, to = np.uint32(at), np.uint32(end)
        a, b = o.label[np.uint32(o.a[s])], o.label[np.uint32(o.b[s])]
        # written in any case: a branch would cost more
        o.a[to], o.b[to], o.edge[to], o.weight[to] = a, b, o.edge[s], o.weight[s]
        end += 1 if a != b else 0
    return count - low, end - begin


@compiled_callee
def _close(o):  # type: ignore[no-untyped-def]
    """Write the degrees and add the second edge of a leaf; return its weight."""
    blocks, leaf = o.blocks, -1
    for p in range(o.ends.shape[0]):
        o.degree[blocks.city[p]] = o.ends[p]
        if o.ends[p] == 1:
            w = o.second_weight[p]
            if (
                leaf < 0
                or w > o.second_weight[leaf]
                or (w == o.second_weight[leaf] and blocks.city[p] < blocks.city[leaf])
            ):
                leaf = p
    x = o.second[leaf]
    o.degree[blocks.city[blocks.u[x]]] += 1
    o.degree[blocks.city[blocks.v[x]]] += 1
    o.extra[0], o.extra[1] = blocks.city[leaf], blocks.number[x]
    return o.second_weight[leaf]
