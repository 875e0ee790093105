"""Minimum 1-trees: a spanning tree and one edge more, so that there is one cycle, as in a tour.

Held and Karp, "The traveling-salesman problem and minimum spanning trees", Operations Research 18 (1970). Every tour
is a 1-tree, so the shortest 1-tree is no longer than the shortest tour. The tree is Boruvka's: every part takes the
lightest edge that leaves it.

All threads find it, each in blocks of near cities. A part whose lightest edge leads to another block takes none. Where
only such parts are left in a block, edges of it can still be in the tree if they are in the minimum forest that joins
these parts. That forest and the edges between blocks are few, and one thread goes on with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.blocks import Blocks, make_blocks
from pymoo_gpuaco.candidates.sparse import SparseGraph
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined
from pymoo_gpuaco.runtime.threads import spread, thread_count


class OneTree(NamedTuple):
    """Where 1-trees of one graph are written; n cities, x edges of B blocks. The first three are results.

    Parts of a block that begins at position p have the numbers p, p + 1 and so on.
    """

    tree: NDArray[np.int64]  # (n - 1,) edges of the spanning tree
    degree: NDArray[np.int32]  # (n,) edges of the 1-tree at a city
    extra: NDArray[np.int64]  # (2,) the leaf that got a second edge, and that edge
    blocks: Blocks
    pi: NDArray[np.float64]  # (n,) penalty of a position
    ends: NDArray[np.int32]  # (n,) edges of the tree at a position
    second: NDArray[np.int32]  # (n,) the lightest edge but one at a position, of a block
    second_weight: NDArray[np.float64]  # (n,)
    part: NDArray[np.int32]  # (n,) of a position
    best: NDArray[np.int32]  # (n,) a part's lightest edge among ``a`` to ``b``, or -1: it leaves the block
    best_weight: NDArray[np.float64]  # (n,)
    out: NDArray[np.int32]  # (n,) a part's lightest edge out of the block, or -1
    out_weight: NDArray[np.float64]  # (n,)
    parent: NDArray[np.int32]  # (n,) of a part
    label: NDArray[np.int32]  # (n,) its next number
    a: NDArray[np.int32]  # (x,) edges that are left, between parts a
    b: NDArray[np.int32]  # (x,) and b
    edge: NDArray[np.int32]  # (x,) which edges of a block they are
    weight: NDArray[np.float64]  # (x,)
    taken: NDArray[np.int32]  # (n,) edges in the tree, those of a block from its first position on
    possible: NDArray[np.int32]  # (n,) and those that can be
    joining: NDArray[np.int32]  # (n,) edges taken between blocks, where they are among ``a`` to ``b``
    counts: NDArray[np.int64]  # (B, 3) how many are taken, parts that are left, and how many are possible
    total: NDArray[np.float64]  # (B,) weight of the edges taken


def make_one_tree(graph: SparseGraph) -> OneTree:
    """Allocate the arrays for a graph."""
    n = graph.n
    blocks = make_blocks(graph.city, graph.first, graph.u, graph.v, graph.length)
    x, count = len(blocks.u), len(graph.first) - 1

    def numbers(size: int) -> NDArray[np.int32]:
        return np.empty(size, np.int32)

    return OneTree(
        tree=np.empty(n - 1, np.int64),
        degree=numbers(n),
        extra=np.empty(2, np.int64),
        blocks=blocks,
        pi=np.empty(n),
        ends=numbers(n),
        second=numbers(n),
        second_weight=np.empty(n),
        part=numbers(n),
        best=numbers(n),
        best_weight=np.empty(n),
        out=numbers(n),
        out_weight=np.empty(n),
        parent=numbers(n),
        label=numbers(n),
        a=numbers(x),
        b=numbers(x),
        edge=numbers(x),
        weight=np.empty(x),
        taken=numbers(n),
        possible=numbers(n),
        joining=numbers(n),
        counts=np.zeros((count, 3), np.int64),
        total=np.empty(count),
    )


def find_one_tree(pi: NDArray[np.float64], o: OneTree) -> float:
    """Find the minimum 1-tree under d(i, j) + (pi_i + pi_j) and return its weight; equal edges go by number.

    The leaf with the heaviest second edge gets that edge (Helsgaun 2000, section 4.1): any leaf gives a 1-tree that no
    tour is lighter than, and this one the heaviest.
    """

    def work(_: int, low: int, high: int) -> None:
        _search_blocks(pi, o, low, high)

    spread(work, len(o.total), thread_count())
    return float(_join_blocks(o))


@compiled
def _search_blocks(pi, o, low, high):  # type: ignore[no-untyped-def]
    """Find what blocks low .. high-1 have of the tree, and what they can have."""
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
                if taken > 0:  # before, places are edges of the block
                    o.taken[t] = o.edge[o.taken[t]]
                o.total[block] += _count(o, o.taken[t])
            taken += chosen
            parts, left = _unite(o, first, parts, begin, left)
            for p in range(first, last):
                o.part[p] = o.label[o.part[p]]
            _find_lightest(o, first, parts, begin, left)
            a, b = o.a, o.b
        o.counts[block, 0], o.counts[block, 1] = taken, parts
        # what is left within the block: edges out of it do not count any more
        _forget_outward(o, first, parts)
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
    """Join the parts of all blocks by what can be in the tree; close the 1-tree and return its weight."""
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
            if blocks.u[x] < blocks.v[x]:  # the other block has it as well
                left = _add(o, left, x)
    _forget_outward(o, 0, parts)
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
    """Weight above which no edge within a block is in the tree: the last search may have found a tree of the block."""
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
    """Weight of a block's edge; the brackets make it the same either way round."""
    return o.blocks.length[x] + (o.pi[o.blocks.u[x]] + o.pi[o.blocks.v[x]])


@compiled_callee
def _weigh(pi, o, block, heaviest):  # type: ignore[no-untyped-def]
    """Find each city's lightest two edges, and its lightest out of the block, each city being a part.

    Return how many edges within the block are left, which are those that are not too heavy.
    """
    blocks = o.blocks
    first, last, kept = blocks.first[block], blocks.first[block + 1], blocks.edges[block]
    for p in range(first, last):
        o.best[p], o.second[p] = -1, -1
        o.best_weight[p], o.second_weight[p] = np.inf, np.inf
        o.ends[p], o.part[p] = 0, p
    for edge in range(blocks.outward[block], blocks.edges[block + 1]):
        x = np.uint32(edge)  # unsigned: numba looks for no negative index
        p, q = np.uint32(blocks.u[x]), np.uint32(blocks.v[x])
        _note(o, p, x, blocks.length[x] + (o.pi[p] + pi[blocks.city[q]]))
    for p in range(first, last):
        o.out[p], o.out_weight[p] = o.best[p], o.best_weight[p]
    for edge in range(blocks.edges[block], blocks.outward[block]):
        x, to = np.uint32(edge), np.uint32(kept)
        p, q = np.uint32(blocks.u[x]), np.uint32(blocks.v[x])
        w = blocks.length[x] + (o.pi[p] + o.pi[q])
        # written in any case: a branch would cost more
        o.a[to], o.b[to], o.edge[to], o.weight[to] = p, q, x, w
        kept += 1 if w <= heaviest else 0
        _note(o, p, x, w)
        _note(o, q, x, w)
    for p in range(first, last):
        if o.best[p] == o.out[p]:
            o.best[p] = -1
    return kept - blocks.edges[block]


@inlined
def _note(o, p, x, w):  # type: ignore[no-untyped-def]
    """Note edge x of weight w at the city of a position if it is among the lightest two."""
    number = o.blocks.number
    if w <= o.second_weight[p]:  # edges go by length, so that most fail here
        if w < o.best_weight[p] or (w == o.best_weight[p] and number[x] < number[o.best[p]]):
            o.second[p], o.second_weight[p] = o.best[p], o.best_weight[p]
            o.best[p], o.best_weight[p] = x, w
        elif w < o.second_weight[p] or number[x] < number[o.second[p]]:
            o.second[p], o.second_weight[p] = x, w


@compiled_callee
def _forget_outward(o, low, parts):  # type: ignore[no-untyped-def]
    """Let no edge lead out of where the parts are."""
    for c in range(low, low + parts):
        o.out[c], o.out_weight[c] = -1, np.inf


@compiled_callee
def _add(o, left, x):  # type: ignore[no-untyped-def]
    """Add an edge of a block to those that are left; return how many these are."""
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
    """Find the lightest of ``left`` edges from place ``begin`` on at each part, if none outward is lighter."""
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
    """Whether an edge of a weight that is not above a part's least comes before that one."""
    if w < o.best_weight[c]:
        return True
    before = o.out[c] if o.best[c] < 0 else o.edge[o.best[c]]
    return o.blocks.number[o.edge[s]] < o.blocks.number[before]


@compiled_callee
def _take(o, a, b, low, parts, taken, at):  # type: ignore[no-untyped-def]
    """Link parts by their lightest edges, between a and b; write where these are, each once; return how many."""
    start = at
    for c in range(low, low + parts):
        s = o.best[c]
        o.parent[c] = c if s < 0 else b[s] if a[s] == c else a[s]
    for c in range(low, low + parts):
        s = o.best[c]
        if s < 0:
            continue
        other = o.parent[c]
        # Where two parts choose one edge, the lower part is the root. No longer cycle is possible, as no two
        # edges are equal: their numbers differ.
        if o.best[other] == s:
            if c > other:
                continue
            o.parent[c] = c
        taken[at] = s
        at += 1
    return at - start


@compiled_callee
def _unite(o, low, parts, begin, left):  # type: ignore[no-untyped-def]
    """Number the joined parts anew, drop edges inside them; return how many parts and edges are left."""
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
    kept = begin
    for at in range(begin, begin + left):
        s, to = np.uint32(at), np.uint32(kept)
        a, b = o.label[np.uint32(o.a[s])], o.label[np.uint32(o.b[s])]
        # written in any case: a branch would cost more
        o.a[to], o.b[to], o.edge[to], o.weight[to] = a, b, o.edge[s], o.weight[s]
        kept += 1 if a != b else 0
    return count - low, kept - begin


@compiled_callee
def _close(o):  # type: ignore[no-untyped-def]
    """Write the degrees, give a leaf its second edge, return that edge's weight."""
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
