"""Instance of several objectives for the Pareto search: costs of edges, candidates and first tours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.metrics import EARTH_DIAMETER_KM, Metric, between
from pymoo_gpuaco.problems.summation import ADDED_AT_ONCE
from pymoo_gpuaco.runtime.compiled import (
    Float64_2d,
    Float64_3d,
    Int32_2d,
    Int64_1d,
    compiled,
    inlined,
    struct,
)

#: maximum cities for a table of the costs of all edges: 8 k n^2 bytes
MOST_FOR_TABLE = 2000


@struct
class Costs(NamedTuple):
    """Costs of k objectives, as compiled code reads them."""

    metric: Int64_1d
    coords: Float64_3d
    table: Float64_3d
    neighbours: Int32_2d
    near: Float64_3d
    directed: bool


@inlined
def cost(costs, q, i, j):  # type: ignore[no-untyped-def]
    """Return the cost of the edge from city i to city j by objective q."""
    if costs.table.shape[0] > 0:
        return costs.table[i, j, q]
    if i == j:
        return 0.0
    c = costs.coords
    return between(costs.metric[q], c[q, i, 0], c[q, i, 1], c[q, i, 2], c[q, j, 0], c[q, j, 1], c[q, j, 2])


@compiled
def add_up_table(table: Float64_3d, tours: Int32_2d, lengths: Float64_2d) -> None:
    """Write lengths (m, k) of tours (m, n) by a table of costs (n, n, k): the sums of `add_up`, to the last bit."""
    n = tours.shape[1]
    for t in range(tours.shape[0]):
        tour, zero = tours[t], 0
        while tour[zero] != 0:
            zero += 1
        step = -1 if tour[zero - 1] < tour[(zero + 1) % n] else 1
        for q in range(table.shape[2]):
            total = block = 0.0
            at, i = zero, tour[zero]
            for edge in range(1, n + 1):
                at += step
                at = 0 if at == n else n - 1 if at < 0 else at
                j = tour[at]
                block += table[i, j, q] if step > 0 else table[j, i, q]
                if edge % ADDED_AT_ONCE == 0 or edge == n:
                    total += block
                    block = 0.0
                i = j
            lengths[t, q] = total


def make_costs(
    parts: Sequence[Instance], neighbours: NDArray[np.int32], table: NDArray[np.float64] | None = None
) -> Costs:
    """Return arrays of k objectives with candidates (n, c); a ``table`` of the same objectives is shared."""
    n, k = len(neighbours), len(parts)
    tabled = n <= MOST_FOR_TABLE or any(part.metric == Metric.EXPLICIT for part in parts)
    if table is None:
        table = np.empty((n, n, k) if tabled else (0, 0, k))
        for q, part in enumerate(parts if tabled else ()):
            part.write_distances(table[:, :, q])
    coords = np.empty((k, 0, 3)) if tabled else np.stack([part.coords for part in parts])
    rows = np.arange(n)[:, None]
    near = np.stack([part.distance(rows, neighbours) for part in parts], axis=2)
    near[neighbours == rows] = np.inf
    return Costs(
        metric=np.array([part.metric for part in parts]),
        coords=np.ascontiguousarray(coords),  # (k, n, 3), or (k, 0, 3) with a table
        table=table,  # (n, n, k), or (0, 0, k)
        neighbours=neighbours,  # shorter rows are padded with the city itself
        near=np.ascontiguousarray(near),  # (n, c, k) costs of edges to candidates, infinite in the padding
        directed=not all(part.symmetric for part in parts),  # True if any objective is asymmetric
    )


# Resolution of lengths that are not whole numbers, relative to a tour's length.
_FINE = 1e-10
_LEAST = 1e-140  # areas and slopes are products of two lengths, and vanish for shorter ones
_ALL_EXACT = 2.0**53  # whole numbers up to this are exact in double precision
_AT_ONCE = 1000  # tours per call of the count of their edges
MOST_FOR_ALL_TOURS = 9  # cities: 20,160 tours, or twice as many if directed


@dataclass(frozen=True, eq=False)
class FrontInstance:
    """k objectives of n cities. Arrays are shared and read-only.

    Attributes
    ----------
    parts : the k objectives.
    costs : costs of edges, with candidates that are near by at least one objective.
    starts : (k, n) a greedy tour by each objective.
    unit : (k,) resolution of the lengths of tours: 1 for whole numbers.
    integral : True if all lengths are whole numbers that double precision adds exactly in any order.
    """

    parts: tuple[Instance, ...]
    costs: Costs
    starts: NDArray[np.int32]
    unit: NDArray[np.float64]
    integral: bool
    constraints = None

    @property
    def n(self) -> int:
        """Number of cities."""
        return self.starts.shape[1]

    @property
    def k(self) -> int:
        """Number of objectives."""
        return len(self.parts)

    @property
    def symmetric(self) -> bool:
        """True if every objective is symmetric."""
        return not self.costs.directed

    def lengths(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Return the lengths (m, k) of tours (m, n) of the problem."""
        rows = np.ascontiguousarray(tours, np.int32)
        if not len(self.costs.table):
            return np.stack([part.tour_lengths(rows) for part in self.parts], axis=1)
        lengths = np.empty((len(rows), self.k))
        add_up_table(self.costs.table, rows, lengths)
        return lengths


def front_instance(parts: Sequence[Instance], names: Sequence[str], k: int) -> FrontInstance:
    """Return objectives with up to k >= 1 nearest cities by each of them as candidates.

    Raises ValueError, naming the objective by ``names``, if products of two of its lengths vanish.
    """
    listed = [with_lists(part, k) for part in parts]
    starts = np.stack([greedy_tour(one) for one in listed])
    costs = make_costs(parts, union_of([one.neighbours for one in listed]))
    whole = [_is_exact(part) for part in parts]
    unit = [
        1.0 if whole[number] else _unit(part.tour_lengths(starts), number, names[number])
        for number, part in enumerate(parts)
    ]
    return FrontInstance(tuple(parts), costs, starts, np.array(unit), all(whole))


def _is_exact(part: Instance) -> bool:
    """Return True if all lengths of tours and their partial sums are exact whole numbers in double precision."""
    if not part.integral:
        return False
    if part.metric == Metric.EXPLICIT:
        longest = float(part.matrix.max())
    else:  # no distance of any metric exceeds the sum of the extents of all axes, or half around the globe
        longest = max(float(np.ptp(part.coords, axis=0).sum()) + 1.0, EARTH_DIAMETER_KM * np.pi)
    return part.n * longest < _ALL_EXACT


def _unit(lengths: NDArray[np.float64], number: int, name: str) -> float:
    """Return the resolution of an objective by the lengths of all greedy tours: of its own or, if 0, the longest."""
    longest = float(lengths.max())
    if 0.0 < longest < _LEAST:
        raise ValueError(
            f"lengths by {name!r} must be 0 or at least {_LEAST:g}, got {longest:g}; use a smaller unit"
        )
    return _FINE * max(float(lengths[number]) or longest or 1.0, _LEAST)


def union_of(lists: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return candidates (n, c) of several lists (n, ..) without repeats, ordered by their rank in a list.

    Shorter rows are padded with the city itself.
    """
    # the first of each list, the second of each, ..
    together = np.stack(lists, axis=2).reshape(len(lists[0]), -1)
    return _padded([row[np.sort(np.unique(row, return_index=True)[1])] for row in together])


def edges_of(tours: NDArray[np.integer], directed: bool) -> NDArray[np.int32]:
    """Return candidates (n, c): the neighbours of each city in the tours (m, n), the most frequent ones first.

    ``directed``: successors only.

    T. Lust and A. Jaszkiewicz, "Speed-up techniques for solving large-scale biobjective TSP", Computers and Operations
    Research 37 (2010): the edges of supported tours are few and suffice as candidates.
    """
    n = tours.shape[1]
    counts = csr_array((n, n), dtype=np.int64)
    for first in range(0, len(tours), _AT_ONCE):
        some = tours[first : first + _AT_ONCE]
        pairs = some.ravel(), np.roll(some, -1, axis=1).ravel()
        counts += csr_array((np.ones(some.size, np.int64), pairs), (n, n))
    times = (counts if directed else counts + counts.T).tocoo()
    order = np.lexsort((times.col, -times.data, times.row))
    ends, others = times.row[order], times.col[order]
    bounds = np.searchsorted(ends, np.arange(n + 1))
    return _padded([others[bounds[city] : bounds[city + 1]] for city in range(n)])


def _padded(rows: list[NDArray[np.integer]]) -> NDArray[np.int32]:
    most = max(map(len, rows))
    lists = np.repeat(np.arange(len(rows), dtype=np.int32)[:, None], most, axis=1)
    for city, row in enumerate(rows):
        lists[city, : len(row)] = row
    return lists


def all_tours(n: int, directed: bool) -> NDArray[np.int32]:
    """Return all tours (.., n) of n >= 2 cities from city 0: (n - 1)! if directed, else one direction of each."""
    rest = [order for order in permutations(range(1, n)) if directed or order[0] <= order[-1]]
    tours = np.zeros((len(rest), n), np.int32)
    tours[:, 1:] = rest
    return tours


def shuffled(tours: NDArray[np.int32], count: int, draw: np.random.Generator) -> NDArray[np.int32]:
    """Return copies of tours (m, n), each with ``count`` consecutive cities, or all n, in random order."""
    m, n = tours.shape
    places = (draw.integers(0, n, (m, 1)) + np.arange(min(count, n))) % n
    new = tours.copy()
    np.put_along_axis(new, places, draw.permuted(np.take_along_axis(tours, places, axis=1), axis=1), axis=1)
    return new
