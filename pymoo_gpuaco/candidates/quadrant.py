"""Quadrant neighbours: near cities on every side of a city, also if the nearest ones all lie on one side.

On clustered instances a list of the nearest cities never leaves the cluster. Johnson and McGeoch ("Experimental
analysis of heuristics for the STSP", 2002) take the nearest of each quadrant around the city instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import Candidates
from pymoo_gpuaco.candidates.points import at_one_point
from pymoo_gpuaco.problems.metrics import Metric, between
from pymoo_gpuaco.runtime.compiled import (
    Float64_1d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    Int64_1d,
    Int64_2d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.intrinsics import as_matrix
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count

PER_QUADRANT = 2
LEAF = 8  # maximum points of a leaf

# Measures of nearness: any number that grows with the distance of two points.
SUM, SQUARES, LARGEST = 1, 2, 3
_POINTS_PER_CALL = 10_240  # points per thread between two checks of the stop
# Consecutive points share a budget of boxes; when it is spent, the quadrants are final. Most shapes need
# 15 to 200 boxes per point for any n. If many points are nearly as far as the nearest one of a quadrant (two distant
# parallel slanted lines), boxes exclude little: 20,000 points by sums of axes needed 2,600 each.
_BATCH, _BOXES_PER_POINT, _LEAST_BOXES = 256, 256, 64
_MEASURE = {Metric.MAN: SUM, Metric.MAX: LARGEST}


@struct
class Tree(NamedTuple):
    """A balanced k-d tree of points in the plane, in leaf order, for searches that SciPy's tree does not offer.

    Node j of level l has the points first(j) .. first(j + 1) - 1 of the leaf order, first(j) = floor(n j / 2^l), so
    only boxes are stored (Bentley, "Multidimensional binary search trees used for associative searching",
    Communications of the ACM 18, 1975, with medians along the longer side).
    """

    x: Float64_1d  # (n,)
    y: Float64_1d  # (n,)
    point: Int32_1d  # (n,) number of the point at a position of the leaf order
    boxes: Float64_2d  # (2^(depth + 1), 4) x low, x high, y low, y high; row 2^l + j
    lowest: Int32_1d  # (2^(depth + 1),) least number of a box's points
    depth: int  # level of the leaves


def build_tree(x: NDArray[np.float64], y: NDArray[np.float64], threads: int, leaf: int = LEAF) -> Tree:
    """Build the tree of n >= 1 points, at most ``leaf`` in a leaf; the same for any number of threads."""
    n = len(x)
    depth = max(0, (n - 1) // leaf).bit_length()
    boxes, lowest = np.empty((2 << depth, 4)), np.empty(2 << depth, np.int32)
    tree = Tree(x.copy(), y.copy(), np.arange(n, dtype=np.int32), boxes, lowest, depth)
    for level in range(depth + 1):
        parallel_for(lambda _, *part, level=level: _split(tree, level, *part), 1 << level, threads)
    return tree


@compiled
def _split(tree: Tree, level: int, first: int, last: int) -> None:
    """Compute the boxes of nodes first .. last-1 of a level and split the nodes."""
    n = tree.x.shape[0]
    for j in range(first, last):
        low, high = (n * j) >> level, (n * (j + 1)) >> level
        x0, x1, y0, y1, lowest = np.inf, -np.inf, np.inf, -np.inf, n
        for p in range(low, high):
            x0, x1 = min(x0, tree.x[p]), max(x1, tree.x[p])
            y0, y1 = min(y0, tree.y[p]), max(y1, tree.y[p])
            lowest = min(lowest, tree.point[p])
        box = (1 << level) + j
        tree.boxes[box, 0], tree.boxes[box, 1] = x0, x1
        tree.boxes[box, 2], tree.boxes[box, 3] = y0, y1
        tree.lowest[box] = lowest
        if level < tree.depth:
            middle = (n * (2 * j + 1)) >> (level + 1)
            if x1 - x0 >= y1 - y0:
                _select(tree.x, tree.y, tree.point, low, high, middle)
            else:
                _select(tree.y, tree.x, tree.point, low, high, middle)


@compiled_callee
def _select(key, other, point, low, high, middle):  # type: ignore[no-untyped-def]
    """Reorder positions low .. high-1 so that no key before ``middle`` exceeds one after it (Hoare's Find)."""
    while high - low > 1:
        a, b, c = key[low], key[(low + high) >> 1], key[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high - 1
        while i <= j:
            while key[i] < pivot:
                i += 1
            while key[j] > pivot:
                j -= 1
            if i <= j:
                key[i], key[j] = key[j], key[i]
                other[i], other[j] = other[j], other[i]
                point[i], point[j] = point[j], point[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j + 1
        elif middle >= i:
            low = i
        else:
            return


@inlined
def nearness(measure, dx, dy):  # type: ignore[no-untyped-def]
    """Return a number that grows with the distance of two points dx, dy apart."""
    if measure == SQUARES:
        return dx * dx + dy * dy
    dx, dy = abs(dx), abs(dy)
    return dx + dy if measure == SUM else max(dx, dy)


@inlined
def box_nearness(measure, boxes, box, x, y):  # type: ignore[no-untyped-def]
    """Return the `nearness` of a point and the closest point of a box."""
    dx = max(0.0, max(boxes[box, 0] - x, x - boxes[box, 1]))
    dy = max(0.0, max(boxes[box, 2] - y, y - boxes[box, 3]))
    return nearness(measure, dx, dy)


@struct
class _Found(NamedTuple):
    """Points found by one thread around a point, as positions in the leaf order of the tree; k neighbours wanted."""

    near: Float64_2d  # (5, k) nearness, ascending, for each quadrant, and row 4 for all
    at: Int64_2d  # (5, k) positions
    per_quadrant: int  # columns of rows 0 to 3 in use
    chosen: Int64_1d  # (k,) chosen points, in the order of preference
    stack: Int64_1d  # (64,) nodes to visit
    stack_near: Float64_1d  # (64,)


def has_quadrants(metric: int, coords: NDArray[np.float64]) -> bool:
    """Return True if cities lie in a plane: not for a matrix, on the globe or in space."""
    return metric not in (Metric.EXPLICIT, Metric.GEO) and not coords[:, 2].any()


def quadrant_lists(
    metric: int, coords: NDArray[np.float64], k: int, per_quadrant: int | None = None
) -> Candidates:
    """Return (n, k) ids and distances: 2 cities per quadrant (1 below k = 8), then the nearest.

    The nearest also replace missing cities of a quadrant. Rows are sorted by (distance, id), with the distance of the
    metric. Cities at one point are chained: each lists the ones before and after it, by id, and then other points, by
    their city of lowest id. So coincident cities stay connected to all others. The cost is O(n log n), on all threads:
    quadrants that need more than `_BOXES_PER_POINT` boxes per point may list near cities that are not the nearest.

    metric : any with coordinates in the plane, so neither `EXPLICIT` nor `GEO`.
    coords : (n, 3) as `prepare_coordinates` returns it, with z = 0.
    k : 1 <= k <= n - 1.
    per_quadrant : 0 for the nearest points alone, at most k / 4; None as above.
    """
    if per_quadrant is None:
        per_quadrant = min(PER_QUADRANT, k // 4)
    copies = at_one_point(coords[:, :2])
    threads, stop = thread_count(), np.zeros(1, np.uint8)  # set by a keyboard interrupt
    x, y = (coords[copies.cities, axis] for axis in (0, 1))
    tree, points = build_tree(x, y, threads), len(x)
    near = np.empty((points, min(k, points - 1)), np.int32)
    measure = measure_of(metric)

    def list_points(_: int, first: int, last: int) -> None:
        w = make_list_workspace(1, k)
        found = _Found(
            w.near_of_rows.reshape(5, k), w.at.reshape(5, k), per_quadrant, w.chosen, w.stack, w.stack_near
        )
        for start in range(_BATCH * first, min(_BATCH * last, points), _POINTS_PER_CALL):
            if stop[0]:
                break
            end = min(start + _POINTS_PER_CALL, _BATCH * last, points)
            _list_points(measure, tree, found, near, start, end)

    parallel_for(list_points, -(-points // _BATCH), threads, stop)
    ids = copies.chained(near, k)
    length = np.empty(ids.shape)
    parallel_for(lambda _, *part: _sort_rows(int(metric), coords, ids, length, *part), len(ids), threads)
    return Candidates(ids, length)


@struct
class ListWorkspace(NamedTuple):
    """Arrays of one thread that lists at most k neighbours of each of at most n points, see `list_distinct_points`."""

    ids: Int32_1d  # (n k,)
    lengths: Float64_1d  # (n k,)
    x: Float64_1d  # (n,)
    y: Float64_1d  # (n,)
    point: Int32_1d  # (n,)
    boxes: Float64_2d  # (2^(depth + 1), 4)
    lowest: Int32_1d  # (2^(depth + 1),)
    near_of_rows: Float64_1d  # (5 k,) see `_Found`
    at: Int64_1d  # (5 k,)
    chosen: Int64_1d  # (k,)
    stack: Int64_1d  # (64,)
    stack_near: Float64_1d  # (64,)


def make_list_workspace(n: int, k: int) -> ListWorkspace:
    """Allocate the arrays for n >= 1 points."""
    nodes = 2 << max(0, (n - 1) // LEAF).bit_length()
    return ListWorkspace(
        np.empty(n * k, np.int32),
        np.empty(n * k),
        np.empty(n),
        np.empty(n),
        np.empty(n, np.int32),
        np.empty((nodes, 4)),
        np.empty(nodes, np.int32),
        np.empty(5 * k),
        np.empty(5 * k, np.int64),
        np.empty(k, np.int64),
        np.empty(64, np.int64),
        np.empty(64),
    )


def measure_of(metric: int) -> int:
    """Return the measure of nearness of a metric in the plane."""
    return _MEASURE.get(Metric(metric), SQUARES)


@compiled_callee
def list_distinct_points(metric, measure, coords, k, w):  # type: ignore[no-untyped-def]
    """Do the same as `quadrant_lists` for distinct points (n, 3), in one thread.

    Lists and distances (n, k) are written to ``w``, one row after another.
    """
    n, depth = coords.shape[0], 0
    while (n - 1) // LEAF >> depth > 0:
        depth += 1
    tree = Tree(w.x[:n], w.y[:n], w.point[:n], w.boxes, w.lowest, depth)
    for i in range(n):
        tree.x[i], tree.y[i], tree.point[i] = coords[i, 0], coords[i, 1], i
    for level in range(depth + 1):
        _split(tree, level, 0, 1 << level)
    ids = as_matrix(w.ids, n, k)
    near, at = as_matrix(w.near_of_rows, 5, k), as_matrix(w.at, 5, k)
    found = _Found(near, at, min(PER_QUADRANT, k // 4), w.chosen[:k], w.stack, w.stack_near)
    _list_points(measure, tree, found, ids, 0, n)
    _sort_rows(metric, coords, ids, as_matrix(w.lengths, n, k), 0, n)


@compiled
def _list_points(measure: int, tree: Tree, found: _Found, near: Int32_2d, first: int, last: int) -> int:
    """Write the points near those at positions first .. last-1 of the leaf order; return the boxes visited."""
    visited, budget = 0, 0
    for p in range(first, last):
        if p % _BATCH == 0:
            budget = _BATCH * _BOXES_PER_POINT
        boxes = _search(measure, tree, p, max(budget, _LEAST_BOXES), found)
        visited, budget = visited + boxes, budget - boxes
        _choose(found)
        for s in range(near.shape[1]):
            near[tree.point[p], s] = tree.point[found.chosen[s]]
    return visited


@inlined
def _quadrant(dx, dy):  # type: ignore[no-untyped-def]
    """Return the quadrant; each has one of the four half-axes, so the points of a lattice are divided evenly."""
    if dx > 0.0 and dy >= 0.0:
        return 0
    if dx <= 0.0 and dy > 0.0:
        return 1
    if dx < 0.0:
        return 2
    return 3


@compiled_callee
def _insert(found, point, q, columns, d, position):  # type: ignore[no-untyped-def]
    """Insert into row q, sorted by (nearness, point), and drop its last entry."""
    near, at = found.near, found.at
    s = columns - 1
    if d > near[q, s] or (d == near[q, s] and point[position] > point[at[q, s]]):
        return
    while s > 0 and (near[q, s - 1] > d or (near[q, s - 1] == d and point[at[q, s - 1]] > point[position])):
        near[q, s], at[q, s] = near[q, s - 1], at[q, s - 1]
        s -= 1
    near[q, s], at[q, s] = d, position


@inlined
def _can_enter(found, tree, box, d, row, column):  # type: ignore[no-untyped-def]
    """Return True if a point of a box at nearness d can come before the point in a column of a row."""
    at, worst = found.at[row, column], found.near[row, column]
    if at < 0 or d < worst:
        return True
    return d == worst and tree.lowest[box] < tree.point[at]


@inlined
def _can_improve(found, tree, box, d, x, y, quadrants):  # type: ignore[no-untyped-def]
    """Return True if a point of a box at nearness d can enter the row of all, or of its ``quadrants``.

    A box that only touches a half-axis of another quadrant has no point in that quadrant. Otherwise a city on a line,
    with empty quadrants beside the line, would visit all others.
    """
    if _can_enter(found, tree, box, d, 4, found.near.shape[1] - 1):
        return True
    if not quadrants or found.per_quadrant == 0:
        return False
    c, boxes = found.per_quadrant - 1, tree.boxes
    west, east, south, north = boxes[box, 0], boxes[box, 1], boxes[box, 2], boxes[box, 3]
    return (
        (east > x and north >= y and _can_enter(found, tree, box, d, 0, c))
        or (west <= x and north > y and _can_enter(found, tree, box, d, 1, c))
        or (west < x and south <= y and _can_enter(found, tree, box, d, 2, c))
        or (east >= x and south < y and _can_enter(found, tree, box, d, 3, c))
    )


@compiled_callee
def _search(measure, tree, p, most, found):  # type: ignore[no-untyped-def]
    """Find the k points nearest to position p, and the nearest of each quadrant; return the boxes visited.

    After ``most`` boxes the quadrants are final, and only the k nearest are completed.
    """
    k, n, x, y = found.near.shape[1], tree.x.shape[0], tree.x[p], tree.y[p]
    for q in range(5):
        for s in range(k):
            found.near[q, s], found.at[q, s] = np.inf, -1
    leaves = 1 << tree.depth
    found.stack[0], found.stack_near[0] = 1, 0.0
    size, visited = 1, 0
    while size > 0:
        size -= 1
        box = found.stack[size]
        if not _can_improve(found, tree, box, found.stack_near[size], x, y, visited < most):
            continue
        visited += 1
        if box < leaves:
            a, b = 2 * box, 2 * box + 1
            to_a = box_nearness(measure, tree.boxes, a, x, y)
            to_b = box_nearness(measure, tree.boxes, b, x, y)
            # the nearer one is visited first, so it goes on top; the lowest point breaks ties
            if to_a < to_b or (to_a == to_b and tree.lowest[a] < tree.lowest[b]):
                a, b, to_a, to_b = b, a, to_b, to_a
            found.stack[size], found.stack_near[size] = a, to_a
            found.stack[size + 1], found.stack_near[size + 1] = b, to_b
            size += 2
            continue
        j = box - leaves
        for position in range((n * j) >> tree.depth, (n * (j + 1)) >> tree.depth):
            if position != p:
                dx, dy = tree.x[position] - x, tree.y[position] - y
                d = nearness(measure, dx, dy)
                _insert(found, tree.point, 4, k, d, position)
                if found.per_quadrant > 0:
                    _insert(found, tree.point, _quadrant(dx, dy), found.per_quadrant, d, position)
    return visited


@compiled_callee
def _choose(found):  # type: ignore[no-untyped-def]
    """Choose the nearest of each quadrant, then the second nearest, then the nearest of all."""
    k, count = found.near.shape[1], 0
    for s in range(found.per_quadrant):
        for q in range(4):
            if found.at[q, s] >= 0:
                found.chosen[count] = found.at[q, s]
                count += 1
    for s in range(k):
        position = found.at[4, s]
        if position < 0 or count == k:
            break
        new = True
        for c in range(count):
            if found.chosen[c] == position:
                new = False
                break
        if new:
            found.chosen[count] = position
            count += 1


@compiled
def _sort_rows(
    metric: int, coords: Float64_2d, ids: Int32_2d, length: Float64_2d, first: int, last: int
) -> None:
    """Compute the distances of the candidates of cities first .. last-1 and sort them by (distance, id)."""
    for i in range(first, last):
        for s in range(ids.shape[1]):
            j, t = ids[i, s], s
            d = between(metric, coords[i, 0], coords[i, 1], 0.0, coords[j, 0], coords[j, 1], 0.0)
            while t > 0 and (length[i, t - 1] > d or (length[i, t - 1] == d and ids[i, t - 1] > j)):
                length[i, t], ids[i, t] = length[i, t - 1], ids[i, t - 1]
                t -= 1
            length[i, t], ids[i, t] = d, j
