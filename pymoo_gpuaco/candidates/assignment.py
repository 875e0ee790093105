"""The shortest assignment of an asymmetric instance, with dual prices of leaving and entering each city.

A tour assigns a successor to each city, so the shortest assignment, which may have several cycles, is a lower bound. An
assignment is shortest if prices exist such that no edge costs less than the prices of its two ends, and no edge of the
assignment more. Cities are assigned one by one along shortest augmenting paths (R. Jonker and A. Volgenant, "A shortest
augmenting path algorithm for dense and sparse linear assignment problems", Computing 38, 1987), first over few edges.
Then edges that cost less than their ends are added until there are none.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee
from pymoo_gpuaco.runtime.stop import Stop

# Maximum rounds of adding edges. No tested instance needed more than 14, and missing edges change prices little.
_MOST_ROUNDS = 30
# Tolerance of reduced costs relative to the largest number, a thousand times the rounding errors.
_ROUNDING = 1e-12
_NEW, _DONE = -1, -2  # places of columns outside the heap
_ROWS_AT_ONCE = 64  # rows between checks of the clock: with 5,000 cities a row takes tenths of a millisecond


class Assignment(NamedTuple):
    """A shortest assignment of n cities; lengths and prices in units of the matrix.

    Reduced costs, of an edge minus the prices of its ends, are 0 for the edges of the assignment and >= 0 for all
    others, up to rounding.
    """

    successor: NDArray[np.int32]  # (n,) of each city, never itself
    to_leave: NDArray[np.float64]  # (n,) prices
    to_enter: NDArray[np.float64]  # (n,) prices, with the same mean as those of leaving
    shortest: float  # length of the assignment
    bound: float  # lower bound of assignments and tours; 0 if edges were left out
    shortest_listed: float  # length of the shortest assignment over the given edges


class _Search(NamedTuple):
    """Search for augmenting paths; rows are the n cities to leave, columns the n cities to enter."""

    match: NDArray[np.int32]  # (n,) column of a row, or -1
    owner: NDArray[np.int32]  # (n,) row of a column, or -1
    price: NDArray[np.float64]  # (n,) of columns
    reached: NDArray[np.float64]  # (n,) least reduced cost of a path to a column
    came: NDArray[np.int32]  # (n,) last row of that path
    heap: NDArray[np.int32]  # (n,) columns reached, the nearest first
    place: NDArray[np.int32]  # (n,) of each column in the heap, or ``_NEW`` or ``_DONE``
    touched: NDArray[np.int32]  # (n,) columns reached, in that order


class _Cheapest(NamedTuple):
    """Edges that cost less than their ends."""

    of_row: NDArray[np.int32]  # (n, 2) columns of the two cheapest edges of each row, or -1
    of_column: NDArray[np.int32]  # (n,) row of the cheapest edge of each column, or -1
    cost: NDArray[np.float64]  # (n,) its reduced cost


def shortest_assignment(
    matrix: NDArray[np.float64],
    far: float,
    successors: NDArray[np.int32],
    predecessors: NDArray[np.int32],
    stop: Stop | None = None,
) -> Assignment | None:
    """Return a shortest assignment, reproducibly; None if ``stop`` ends the search.

    matrix : (n, n), row = from, no negative entries; n >= 2. The diagonal is ignored, and entries above ``far``,
        including infinite ones, count as ``far``.
    successors, predecessors : (n, k) cities to enter from each city, and to enter it from, never itself: the first
        edges. The length of the result does not depend on them, but the duration does.
    """
    n = len(matrix)
    city = np.arange(n, dtype=np.int64)
    # the cycle 0, 1, .. n-1 guarantees an assignment
    numbers = (city[:, None] * n + successors, predecessors.astype(np.int64) * n + city[:, None])
    edges = np.unique(np.concatenate([*(part.ravel() for part in numbers), city * n + (city + 1) % n]))
    search = _make_search(n)
    cheapest = _Cheapest(np.empty((n, 2), np.int32), np.empty(n, np.int32), np.empty(n))
    shortest_listed = bound = 0.0
    for round_ in range(_MOST_ROUNDS + 1):
        rows, columns = np.divmod(edges, n)
        first = np.searchsorted(rows, np.arange(n + 1))
        cost, columns = np.minimum(matrix[rows, columns], far), columns.astype(np.int32)
        if round_ == 0:
            search.price[:] = np.inf
            np.minimum.at(search.price, columns, cost)
        if not _assign_all(first, columns, cost, search, stop):
            return None
        to_leave = np.minimum.reduceat(cost - search.price[columns], first[:-1])
        if round_ == 0:
            shortest_listed = float(np.minimum(matrix[city, search.match], far).sum())
        rounding = _ROUNDING * max(float(np.abs(part).max()) for part in (to_leave, search.price, cost))
        _find_cheapest(matrix, far, to_leave, search.price, rounding, cheapest)
        of_row = (city[:, None] * n + cheapest.of_row)[cheapest.of_row >= 0]
        of_column = (cheapest.of_column.astype(np.int64) * n + city)[cheapest.of_column >= 0]
        if not len(of_row):
            bound = max(0.0, math.fsum([*to_leave.tolist(), *search.price.tolist()]) - n * rounding)
            break
        edges = np.unique(np.concatenate([edges, of_row, of_column]))
    shortest = float(np.minimum(matrix[city, search.match], far).sum())
    shift = 0.5 * float(search.price.mean() - to_leave.mean())
    prices = to_leave + shift, search.price - shift
    return Assignment(search.match, *prices, shortest, bound, shortest_listed)


def assignment_of_twins(
    instance: Instance, ids: NDArray[np.int32], stop: Stop | None = None
) -> Assignment | None:
    """Return a shortest assignment of the cities of a doubled instance, see `Form.doubled`; None as above.

    ids : (2 n, k) lists of its cities, the first edges.
    """
    assert instance.form is not None
    assert instance.form.doubled
    return shortest_assignment(instance.matrix, instance.form.far, ids[1::2] // 2, ids[0::2] // 2, stop)


def _make_search(n: int) -> _Search:
    def integers(fill: int = 0) -> NDArray[np.int32]:
        return np.full(n, fill, np.int32)

    return _Search(
        integers(-1),
        integers(-1),
        np.empty(n),
        np.empty(n),
        integers(),
        integers(),
        integers(_NEW),
        integers(),
    )


def _assign_all(
    first: NDArray[np.int64],
    columns: NDArray[np.int32],
    cost: NDArray[np.float64],
    search: _Search,
    stop: Stop | None,
) -> bool:
    """Assign a column to each row over the edges first[i] .. first[i + 1] - 1 of row i; return False if stopped."""
    _assign_free(first, columns, cost, search)
    for begin in range(0, len(search.match), _ROWS_AT_ONCE):
        if stop is not None and stop.ended():
            return False
        _augment_rows(first, columns, cost, search, begin, min(begin + _ROWS_AT_ONCE, len(search.match)))
    return True


@compiled
def _assign_free(first, columns, cost, s):  # type: ignore[no-untyped-def]
    """Assign to each row its cheapest column if it is free; assigned rows stay if theirs is still cheapest."""
    n = s.match.shape[0]
    for i in range(n):
        at, least, own = -1, np.inf, np.inf
        for e in range(first[i], first[i + 1]):
            j = columns[e]
            reduced = cost[e] - s.price[j]
            if reduced < least:
                at, least = j, reduced
            if j == s.match[i]:
                own = reduced
        if own <= least:
            continue
        if s.match[i] >= 0:
            s.owner[s.match[i]] = -1
            s.match[i] = -1
        if s.owner[at] < 0:
            s.match[i], s.owner[at] = at, i


@compiled
def _augment_rows(first, columns, cost, s, begin, end):  # type: ignore[no-untyped-def]
    """Assign columns to the unassigned rows of begin .. end - 1."""
    for i in range(begin, end):
        if s.match[i] < 0:
            _augment(first, columns, cost, s, i)


@compiled_callee
def _augment(first, columns, cost, s, start):  # type: ignore[no-untyped-def]
    """Augment along the cheapest path from the free row ``start`` to a free column."""
    i, so_far, size, touched, end = start, 0.0, 0, 0, -1
    while end < 0:
        least = np.inf
        for e in range(first[i], first[i + 1]):
            least = min(least, cost[e] - s.price[columns[e]])
        for e in range(first[i], first[i + 1]):
            j = columns[e]
            if s.place[j] == _DONE:
                continue
            way = so_far + (cost[e] - s.price[j] - least)
            if s.place[j] == _NEW:
                s.touched[touched] = j
                touched += 1
                s.place[j] = size
                size += 1
            elif way >= s.reached[j]:
                continue
            s.reached[j], s.came[j] = way, i
            _rise(s, j)
        j = s.heap[0]
        so_far = s.reached[j]
        size -= 1
        if size > 0:
            _sink(s, s.heap[size], size)
        s.place[j] = _DONE
        if s.owner[j] < 0:
            end = j
        i = s.owner[j]
    for t in range(touched):
        j = s.touched[t]
        if s.place[j] == _DONE:
            s.price[j] -= so_far - s.reached[j]
        s.place[j] = _NEW
    j = end
    while j >= 0:
        i = s.came[j]
        before = s.match[i]
        s.match[i], s.owner[j] = j, i
        j = before


@compiled_callee
def _rise(s, j):  # type: ignore[no-untyped-def]
    """Move column j of the heap up after a decrease."""
    p = s.place[j]
    while p > 0:
        above = s.heap[(p - 1) // 2]
        if s.reached[above] <= s.reached[j]:
            break
        s.heap[p], s.place[above] = above, p
        p = (p - 1) // 2
    s.heap[p], s.place[j] = j, p


@compiled_callee
def _sink(s, j, size):  # type: ignore[no-untyped-def]
    """Replace the first column of the heap of ``size`` columns by column j."""
    p = 0
    while 2 * p + 1 < size:
        q = 2 * p + 1
        if q + 1 < size and s.reached[s.heap[q + 1]] < s.reached[s.heap[q]]:
            q += 1
        below = s.heap[q]
        if s.reached[below] >= s.reached[j]:
            break
        s.heap[p], s.place[below] = below, p
        p = q
    s.heap[p], s.place[j] = j, p


@compiled
def _find_cheapest(matrix, far, to_leave, to_enter, rounding, found):  # type: ignore[no-untyped-def]
    """Find the two cheapest edges of each row and the cheapest of each column that cost less than their ends.

    Of equal edges the nearest by number is chosen, so that rows find different columns.
    """
    n = matrix.shape[0]
    for i in range(n):
        found.of_row[i, 0] = found.of_row[i, 1] = found.of_column[i] = -1
        found.cost[i] = -rounding
    for half in range(2):  # columns before the row's own, then those after it
        for i in range(n):
            least, second = -rounding, -rounding
            if found.of_row[i, 0] >= 0:
                j = found.of_row[i, 0]
                least = min(matrix[i, j], far) - to_leave[i] - to_enter[j]
            if found.of_row[i, 1] >= 0:
                j = found.of_row[i, 1]
                second = min(matrix[i, j], far) - to_leave[i] - to_enter[j]
            for step in range(1, (i if half == 0 else n - 1 - i) + 1):
                j = i - step if half == 0 else i + step
                reduced = min(matrix[i, j], far) - to_leave[i] - to_enter[j]
                if reduced >= -rounding:
                    continue
                if reduced < least:
                    found.of_row[i, 1], second = found.of_row[i, 0], least
                    found.of_row[i, 0], least = j, reduced
                elif reduced < second:
                    found.of_row[i, 1], second = j, reduced
                if reduced < found.cost[j]:
                    found.of_column[j], found.cost[j] = i, reduced
