"""Minimum 1-trees: a spanning tree and one more edge, so that there is one cycle, as in a tour.

Held and Karp, "The traveling-salesman problem and minimum spanning trees", Operations Research 18 (1970). Every tour is
a 1-tree, so the shortest 1-tree is at most as long as the shortest tour. The tree is found by Boruvka's algorithm:
every part takes the lightest edge that leaves it.

All threads search, each in blocks of near cities. A part whose lightest edge leads to another block waits. When all
parts of a block wait, further edges of the block can be in the tree only if they are in the minimum forest of these
parts. The forests and the edges between blocks are few, and one thread completes the tree with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.sparse import Blocks, SparseGraph, make_blocks
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Int32_1d,
    Int64_1d,
    Int64_2d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count


@struct
class Parts(NamedTuple):
    """Parts of a forest. A block with first position p has the parts p, p + 1 and so on."""

    best: Int32_1d  # (n,) place of the lightest edge of a part in `RemainingEdges`; -1: outward
    best_weight: Float64_1d  # (n,)
    out: Int32_1d  # (n,) lightest edge of a part out of the block, or -1
    out_weight: Float64_1d  # (n,)
    parent: Int32_1d  # (n,) of a part
    label: Int32_1d  # (n,) new number of a part


@struct
class RemainingEdges(NamedTuple):
    """Edges that may join two parts; the first place of a block is its first edge."""

    a: Int32_1d  # (x,) first parts
    b: Int32_1d  # (x,) second parts
    edge: Int32_1d  # (x,) their edges of the block
    weight: Float64_1d  # (x,)


@struct
class OneTree(NamedTuple):
    """Workspace for 1-trees of one graph; n cities, x edges of B blocks. The first three arrays are results."""

    tree: Int64_1d  # (n - 1,) edges of the spanning tree
    degree: Int32_1d  # (n,) edges of the 1-tree at a city
    extra: Int64_1d  # (2,) the leaf with the additional edge, and that edge
    blocks: Blocks
    parts: Parts
    edges: RemainingEdges
    pi: Float64_1d  # (n,) penalty of a position
    ends: Int32_1d  # (n,) edges of the tree at a position
    second: Int32_1d  # (n,) the second lightest edge at a position of a block
    second_weight: Float64_1d  # (n,)
    part: Int32_1d  # (n,) of a position
    taken: Int32_1d  # (n,) edges in the tree, those of a block from its first position on
    possible: Int32_1d  # (n,) further possible edges of the tree
    joining: Int32_1d  # (n,) edges taken between blocks
    counts: Int64_2d  # (B, 3) numbers of taken edges, remaining parts, and possible edges
    total: Float64_1d  # (B,) weight of the edges taken


def make_one_tree(graph: SparseGraph) -> OneTree:
    """Allocate the arrays for a graph."""
    n = graph.n
    blocks = make_blocks(graph.city, graph.first, graph.u, graph.v, graph.length)
    x, count = len(blocks.u), len(graph.first) - 1

    def integers(size: int) -> NDArray[np.int32]:
        return np.empty(size, np.int32)

    return OneTree(
        tree=np.empty(n - 1, np.int64),
        degree=integers(n),
        extra=np.empty(2, np.int64),
        blocks=blocks,
        parts=Parts(integers(n), np.empty(n), integers(n), np.empty(n), integers(n), integers(n)),
        edges=RemainingEdges(integers(x), integers(x), integers(x), np.empty(x)),
        pi=np.empty(n),
        ends=integers(n),
        second=integers(n),
        second_weight=np.empty(n),
        part=integers(n),
        taken=integers(n),
        possible=integers(n),
        joining=integers(n),
        counts=np.empty((count, 3), np.int64),
        total=np.empty(count),
    )


def find_one_tree(pi: NDArray[np.float64], o: OneTree) -> float:
    """Find the minimum 1-tree under d(i, j) + (pi_i + pi_j) and return its weight; edge numbers break ties.

    The leaf with the heaviest second edge gets that edge (Helsgaun 2000, section 4.1): every leaf gives a lower bound
    of all tours, and this leaf the largest one.
    """
    parallel_for(lambda _, low, high: search_blocks(pi, o, low, high), len(o.total), thread_count())
    return float(join_blocks(o))


@compiled
def search_blocks(pi: Float64_1d, o: OneTree, low: int, high: int) -> None:
    """Find the certain and the possible edges of the tree in blocks low .. high-1."""
    blocks, parts, edges = o.blocks, o.parts, o.edges
    for block in range(low, high):
        first, last, begin = blocks.first[block], blocks.first[block + 1], blocks.edges[block]
        for p in range(first, last):
            o.pi[p] = pi[blocks.city[p]]
        count, left = last - first, blocks.outward[block] - begin
        _weigh(pi, o, block)
        # in the first round the places are edges of the block
        taken = _take(parts, blocks.u, blocks.v, first, count, o.taken, first)
        count, left = _unite(parts, edges, blocks.number, first, count, begin, left)
        for p in range(first, last):
            o.part[p] = parts.label[o.part[p]]
        more, count, left = _grow(
            parts, edges, blocks.number, first, count, begin, left, o.taken, first + taken, o.part, last
        )
        taken += more
        o.total[block] = 0.0
        for t in range(first, first + taken):
            o.total[block] += _count(blocks, o.pi, o.ends, o.taken[t])
        o.counts[block, 0], o.counts[block, 1] = taken, count
        # the minimum forest of the remaining parts, without outward edges
        _ignore_outward(parts, first, count)
        o.counts[block, 2] = _grow(
            parts, edges, blocks.number, first, count, begin, left, o.possible, first, o.part, first
        )[0]


@compiled
def join_blocks(o: OneTree) -> float:
    """Join the parts of all blocks by possible edges; close the 1-tree and return its weight."""
    blocks, edges = o.blocks, o.edges
    taken, count, left, total = 0, 0, 0, 0.0
    for block in range(o.total.shape[0]):
        first = blocks.first[block]
        for t in range(first, first + o.counts[block, 0]):
            o.tree[taken] = blocks.number[o.taken[t]]
            taken += 1
        for p in range(first, blocks.first[block + 1]):
            o.part[p] += count - first
        count += o.counts[block, 1]
        total += o.total[block]
    for block in range(o.total.shape[0]):
        first = blocks.first[block]
        for t in range(first, first + o.counts[block, 2]):
            left = _add(blocks, o.pi, o.part, edges, left, o.possible[t])
        for x in range(blocks.outward[block], blocks.edges[block + 1]):
            if blocks.u[x] < blocks.v[x]:  # the edge is in both blocks
                left = _add(blocks, o.pi, o.part, edges, left, x)
    _ignore_outward(o.parts, 0, count)
    found = _grow(o.parts, edges, blocks.number, 0, count, 0, left, o.joining, 0, o.part, 0)[0]
    for t in range(found):
        x = o.joining[t]
        total += _count(blocks, o.pi, o.ends, x)
        o.tree[taken] = blocks.number[x]
        taken += 1
    return total + _close(o)


@inlined
def _weight(blocks, pi, x):  # type: ignore[no-untyped-def]
    """Return the weight of an edge of a block; the brackets make it independent of the direction."""
    return blocks.length[x] + (pi[blocks.u[x]] + pi[blocks.v[x]])


@compiled_callee
def _weigh(pi, o, block):  # type: ignore[no-untyped-def]
    """Find the two lightest edges of each city, and its lightest outward edge; each city becomes a part."""
    blocks, parts, edges = o.blocks, o.parts, o.edges
    first, last = blocks.first[block], blocks.first[block + 1]
    for p in range(first, last):
        parts.best[p], o.second[p] = -1, -1
        parts.best_weight[p], o.second_weight[p] = np.inf, np.inf
        o.ends[p], o.part[p] = 0, p
    for edge in range(blocks.outward[block], blocks.edges[block + 1]):
        x = np.uint32(edge)  # unsigned: numba then omits the check for negative indices
        p, q = np.uint32(blocks.u[x]), np.uint32(blocks.v[x])
        w = blocks.length[x] + (o.pi[p] + pi[blocks.city[q]])
        _note(parts, o.second, o.second_weight, blocks.number, p, x, w)
    for p in range(first, last):
        parts.out[p], parts.out_weight[p] = parts.best[p], parts.best_weight[p]
    for edge in range(blocks.edges[block], blocks.outward[block]):
        x = np.uint32(edge)
        p, q = np.uint32(blocks.u[x]), np.uint32(blocks.v[x])
        w = blocks.length[x] + (o.pi[p] + o.pi[q])
        edges.a[x], edges.b[x], edges.edge[x], edges.weight[x] = p, q, x, w
        _note(parts, o.second, o.second_weight, blocks.number, p, x, w)
        _note(parts, o.second, o.second_weight, blocks.number, q, x, w)
    for p in range(first, last):
        if parts.best[p] == parts.out[p]:
            parts.best[p] = -1


@inlined
def _note(parts, second, second_weight, number, p, x, w):  # type: ignore[no-untyped-def]
    """Store edge x of weight w at a position if it is one of the two lightest."""
    if w <= second_weight[p]:  # edges are sorted by length, so most fail here
        if w < parts.best_weight[p] or (w == parts.best_weight[p] and number[x] < number[parts.best[p]]):
            second[p], second_weight[p] = parts.best[p], parts.best_weight[p]
            parts.best[p], parts.best_weight[p] = x, w
        elif w < second_weight[p] or number[x] < number[second[p]]:
            second[p], second_weight[p] = x, w


@compiled_callee
def _ignore_outward(parts, low, count):  # type: ignore[no-untyped-def]
    """Ignore outward edges of the parts from now on."""
    for c in range(low, low + count):
        parts.out[c], parts.out_weight[c] = -1, np.inf


@compiled_callee
def _add(blocks, pi, part, edges, left, x):  # type: ignore[no-untyped-def]
    """Add an edge of a block to the remaining ones; return their number."""
    edges.a[left], edges.b[left], edges.edge[left] = part[blocks.u[x]], part[blocks.v[x]], x
    edges.weight[left] = _weight(blocks, pi, x)
    return left + 1


@compiled_callee
def _count(blocks, pi, ends, x):  # type: ignore[no-untyped-def]
    """Count an edge of a block at its ends; return its weight."""
    ends[blocks.u[x]] += 1
    ends[blocks.v[x]] += 1
    return _weight(blocks, pi, x)


@compiled_callee
def _grow(parts, edges, number, low, count, begin, left, found, at, part, last):  # type: ignore[no-untyped-def]
    """Join parts by their lightest edges, round by round, until no edge is left that may join two.

    Writes the edges of the block to ``found`` from ``at`` on, and the parts of positions ``low`` to ``last - 1``.
    Returns the numbers of edges found, of parts and of remaining edges.
    """
    start = at
    while True:
        _find_lightest(parts, edges, number, low, count, begin, left)
        chosen = _take(parts, edges.a, edges.b, low, count, found, at)
        if chosen == 0:
            return at - start, count, left
        for t in range(at, at + chosen):
            found[t] = edges.edge[found[t]]
        at += chosen
        count, left = _unite(parts, edges, number, low, count, begin, left)
        for p in range(low, last):
            part[p] = parts.label[part[p]]


@compiled_callee
def _find_lightest(parts, edges, number, low, count, begin, left):  # type: ignore[no-untyped-def]
    """Find the lightest of ``left`` edges from place ``begin`` on at each part, unless an outward edge is lighter."""
    best_weight = parts.best_weight
    for c in range(low, low + count):
        parts.best[c], best_weight[c] = -1, parts.out_weight[c]
    for at in range(begin, begin + left):
        s = np.uint32(at)
        a, b, w = np.uint32(edges.a[s]), np.uint32(edges.b[s]), edges.weight[s]
        if w <= best_weight[a] and _is_lighter(parts, edges, number, s, w, a):
            parts.best[a], best_weight[a] = s, w
        if w <= best_weight[b] and _is_lighter(parts, edges, number, s, w, b):
            parts.best[b], best_weight[b] = s, w


@inlined
def _is_lighter(parts, edges, number, s, w, c):  # type: ignore[no-untyped-def]
    """Return True if an edge comes before the lightest edge of a part, by (weight, number)."""
    if w < parts.best_weight[c]:
        return True
    before = parts.out[c] if parts.best[c] < 0 else edges.edge[parts.best[c]]
    return number[edges.edge[s]] < number[before]


@compiled_callee
def _take(parts, a, b, low, count, taken, at):  # type: ignore[no-untyped-def]
    """Link parts by their lightest edges between a and b; write their places without repeats; return their number."""
    start, best, parent = at, parts.best, parts.parent
    for c in range(low, low + count):
        s = best[c]
        parent[c] = c if s < 0 else b[s] if a[s] == c else a[s]
    for c in range(low, low + count):
        s = best[c]
        if s < 0:
            continue
        other = parent[c]
        # If two parts choose the same edge, the lower part is the root. Longer cycles are impossible, because edge
        # numbers break ties.
        if best[other] == s:
            if c > other:
                continue
            parent[c] = c
        taken[at] = s
        at += 1
    return at - start


@compiled_callee
def _unite(parts, edges, number, low, count, begin, left):  # type: ignore[no-untyped-def]
    """Renumber the joined parts and drop edges inside them; return the numbers of parts and edges left."""
    next_label, parent, label, out, out_weight = low, parts.parent, parts.label, parts.out, parts.out_weight
    for c in range(low, low + count):
        if parent[c] == c:
            label[c] = next_label
            next_label += 1
    for c in range(low, low + count):
        root = parent[c]
        if root == c:
            continue
        while parent[root] != root:
            root = parent[root]
        at = c
        while parent[at] != root:
            parent[at], at = root, parent[at]
        label[c] = label[root]
        w = out_weight[c]
        if w < out_weight[root] or (
            w == out_weight[root] and w < np.inf and number[out[c]] < number[out[root]]
        ):
            out[root], out_weight[root] = out[c], w
    for c in range(low, low + count):
        if parent[c] == c:
            out[label[c]], out_weight[label[c]] = out[c], out_weight[c]
    end = begin
    for at in range(begin, begin + left):
        s, to = np.uint32(at), np.uint32(end)
        a, b = label[np.uint32(edges.a[s])], label[np.uint32(edges.b[s])]
        # written in any case: a branch would cost more
        edges.a[to], edges.b[to], edges.edge[to], edges.weight[to] = a, b, edges.edge[s], edges.weight[s]
        end += 1 if a != b else 0
    return next_label - low, end - begin


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
