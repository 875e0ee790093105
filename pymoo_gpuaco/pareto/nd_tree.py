"""ND-tree: a front of more than two objectives in arrays for compiled code.

A. Jaszkiewicz and T. Lust, "ND-Tree-based update: a fast algorithm for the dynamic nondominance problem", IEEE
Transactions on Evolutionary Computation 22 (2018). Points are in leaves. Every node has a lower bound (ideal) and an
upper bound (nadir) of its points, by which most nodes are skipped. Removals do not change these bounds, which remain
valid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import (
    Bool_1d,
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int64_1d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)

LEAF = 20  # maximum points of a leaf
_AT_ONCE = 1 << 13  # points between two checks of the stop: a tenth of a second
_NONE = -1
_ROOT = 0


@struct
class NDTree(NamedTuple):
    """Tree of points, see `make_tree`."""

    ideal: Float64_2d
    nadir: Float64_2d
    child: Int32_1d
    sibling: Int32_1d
    parent: Int32_1d
    held: Int32_1d
    first: Int32_1d
    follows: Int32_1d
    stack: Int32_1d
    cover: Float64_1d
    here: Int32_1d
    counts: Int64_1d


def make_tree(points: int, nodes: int, k: int) -> NDTree:
    """Allocate an empty tree for ``points`` points of k objectives, including removed ones.

    A node has points or children.
    """
    return NDTree(
        ideal=np.full((nodes, k), np.inf),
        nadir=np.full((nodes, k), -np.inf),
        child=np.full(nodes, _NONE, np.int32),  # first child, or -1
        sibling=np.full(nodes, _NONE, np.int32),  # next child of the same parent, or -1
        parent=np.full(nodes, _NONE, np.int32),  # or -1
        held=np.zeros(nodes, np.int32),  # number of points in the subtree
        first=np.full(nodes, _NONE, np.int32),  # first point of a leaf, or -1
        follows=np.full(points, _NONE, np.int32),  # next point of the same leaf, or -1
        stack=np.empty(nodes, np.int32),  # nodes to visit
        cover=np.empty(k),  # lengths, see `tree_covers`
        here=np.empty(LEAF + 1, np.int32),  # points of the leaf to split
        counts=np.ones(1, np.int64),  # nodes in use
    )


def undominated(points: NDArray[np.float64], ended: Callable[[], bool] = lambda: False) -> NDArray[np.bool_]:
    """Return a mask of the nondominated points of (m, k), of equal points the first.

    Once ``ended`` returns True, the remaining points are left out.
    """
    m, k = points.shape
    offered, present, tree = np.ones(m, bool), np.zeros(m, bool), make_tree(m, 64 + m, k)
    for first in range(0, m, _AT_ONCE):
        tree = offer(tree, points, first, min(m, first + _AT_ONCE), offered, present)
        if ended():
            break
    return present


def offer(
    tree: NDTree,
    points: NDArray[np.float64],
    first: int,
    end: int,
    offered: NDArray[np.bool_],
    present: NDArray[np.bool_],
) -> NDTree:
    """Call `update`; return the tree, or a larger one with the same points if it was full."""
    while (at := update(tree, points, first, end, offered, present)) < end:
        offered[:at] = present[:at]
        tree, first = make_tree(len(tree.follows), 2 * len(tree.held), points.shape[1]), 0
    return tree


@inlined
def dominates(a, b):  # type: ignore[no-untyped-def]
    """Return True if lengths a (k,) weakly dominate b: none is longer."""
    for q in range(a.shape[0]):
        if a[q] > b[q]:
            return False
    return a.shape[0] > 0


@inlined
def _store_cover(cover, lengths):  # type: ignore[no-untyped-def]
    for q in range(lengths.shape[0]):
        cover[q] = lengths[q]


@compiled_callee
def tree_covers(tree, points, lengths, stack, cover):  # type: ignore[no-untyped-def]
    """Return True if a point of the tree weakly dominates lengths (k,); ``stack`` (nodes,) is a workspace.

    If so, lengths between such a point and ``lengths`` are written to ``cover`` (k,).
    """
    stack[0] = _ROOT
    left = 1
    while left > 0:
        left -= 1
        node = stack[left]
        if tree.held[node] == 0 or not dominates(tree.ideal[node], lengths):
            continue
        if dominates(tree.nadir[node], lengths):
            _store_cover(cover, tree.nadir[node])
            return True
        at = tree.first[node]
        while at != _NONE:
            if dominates(points[at], lengths):
                _store_cover(cover, points[at])
                return True
            at = tree.follows[at]
        child = tree.child[node]
        while child != _NONE:
            stack[left] = child
            left += 1
            child = tree.sibling[child]
    return False


@compiled
def update(tree: NDTree, points: Float64_2d, begin: int, end: int, offered: Bool_1d, present: Bool_1d) -> int:
    """Offer the points begin .. end-1 of (m, k) with ``offered`` (m,) to the tree.

    ``present`` (m,) marks the points in the tree. Returns the first point for which the tree is full, else ``end``.
    """
    for p in range(begin, end):
        if not offered[p]:
            continue
        if tree.counts[0] + points.shape[1] + 1 > tree.held.shape[0]:
            return p
        present[p] = not tree_covers(tree, points, points[p], tree.stack, tree.cover)
        if present[p]:
            _drop_dominated(tree, points, points[p], present)
            _insert(tree, points, p)
    return end


@compiled_callee
def _drop_dominated(tree, points, lengths, present):  # type: ignore[no-untyped-def]
    """Remove all points that ``lengths`` (k,) weakly dominate."""
    tree.stack[0] = _ROOT
    left = 1
    while left > 0:
        left -= 1
        node = tree.stack[left]
        if tree.held[node] == 0 or not dominates(lengths, tree.nadir[node]):
            continue
        before, at = _NONE, tree.first[node]
        while at != _NONE:
            to = tree.follows[at]
            if dominates(lengths, points[at]):
                present[at] = False
                if before == _NONE:
                    tree.first[node] = to
                else:
                    tree.follows[before] = to
                up = node
                while up != _NONE:
                    tree.held[up] -= 1
                    up = tree.parent[up]
            else:
                before = at
            at = to
        child = tree.child[node]
        while child != _NONE:
            tree.stack[left] = child
            left += 1
            child = tree.sibling[child]


@inlined
def _widen(tree, node, lengths):  # type: ignore[no-untyped-def]
    for q in range(lengths.shape[0]):
        tree.ideal[node, q] = min(tree.ideal[node, q], lengths[q])
        tree.nadir[node, q] = max(tree.nadir[node, q], lengths[q])


@compiled_callee
def _nearest_child(tree, node, lengths):  # type: ignore[no-untyped-def]
    """Return the child with the nearest centre."""
    best, least = _NONE, np.inf
    child = tree.child[node]
    while child != _NONE:
        far = 0.0
        for q in range(lengths.shape[0]):
            d = lengths[q] - 0.5 * (tree.ideal[child, q] + tree.nadir[child, q])
            far += d * d
        if far < least or best == _NONE:
            best, least = child, far
        child = tree.sibling[child]
    return best


@compiled_callee
def _insert(tree, points, p):  # type: ignore[no-untyped-def]
    node = _ROOT
    while True:
        _widen(tree, node, points[p])
        tree.held[node] += 1
        if tree.child[node] == _NONE:
            break
        node = _nearest_child(tree, node, points[p])
    tree.follows[p] = tree.first[node]
    tree.first[node] = p
    if tree.held[node] > LEAF:
        _split(tree, points, node)


@compiled_callee
def _split(tree, points, node):  # type: ignore[no-untyped-def]
    """Split a leaf into k + 1 children; the seed of each is the point farthest from the seeds so far."""
    k = points.shape[1]
    count, at = 0, tree.first[node]
    while at != _NONE:
        tree.here[count] = at
        count += 1
        at = tree.follows[at]
    tree.first[node] = _NONE
    for seed in range(k + 1):
        farthest, most = seed, -1.0
        for i in range(seed, count):
            total = 0.0
            for j in range(seed if seed > 0 else count):
                for q in range(k):
                    d = points[tree.here[i], q] - points[tree.here[j], q]
                    total += d * d
            if total > most:
                farthest, most = i, total
        tree.here[seed], tree.here[farthest] = tree.here[farthest], tree.here[seed]
        child = tree.counts[0]
        tree.counts[0] += 1
        tree.parent[child] = node
        tree.sibling[child] = tree.child[node]
        tree.child[node] = child
        _add_to_leaf(tree, points, child, tree.here[seed])
    for i in range(k + 1, count):
        p = tree.here[i]
        _add_to_leaf(tree, points, _nearest_child(tree, node, points[p]), p)


@inlined
def _add_to_leaf(tree, points, leaf, p):  # type: ignore[no-untyped-def]
    _widen(tree, leaf, points[p])
    tree.held[leaf] += 1
    tree.follows[p] = tree.first[leaf]
    tree.first[leaf] = p
