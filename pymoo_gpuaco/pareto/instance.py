"""Instance of several objectives for the Pareto search: costs, candidates and first tours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.pareto.costs import Costs, add_up_table, make_costs
from pymoo_gpuaco.problems.instance import as_instance
from pymoo_gpuaco.problems.metrics import EARTH_DIAMETER_KM
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.tsp import TSP

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
    parts : k problems.
    costs : costs of edges, with candidates that are near by one of the objectives.
    starts : (k, n) a greedy tour by each objective.
    unit : (k,) resolution of the lengths of tours: 1 for whole numbers.
    integral : True if all lengths are whole numbers that double precision adds exactly in any order.
    """

    parts: tuple[TSP, ...]
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


def front_instance(problem: MultiObjectiveTSP, k: int) -> FrontInstance:
    """Return the arrays of a problem, with up to k >= 1 nearest cities by each objective as candidates.

    Raises ValueError if products of two lengths of an objective vanish.
    """
    # Not `listed_instance`: it may replace an asymmetric matrix by a symmetric one with the same lengths of tours but
    # other costs of edges, and the search adds costs of edges by each objective.
    listed = [with_lists(as_instance(part), k) for part in problem.parts]
    starts = np.stack([greedy_tour(one) for one in listed])
    costs = make_costs(problem.parts, union_of([one.neighbours for one in listed]))
    whole = [_is_exact(part) for part in problem.parts]
    unit = [1.0 if whole[number] else _unit(problem, number, starts) for number in range(len(whole))]
    return FrontInstance(problem.parts, costs, starts, np.array(unit), all(whole))


def _is_exact(part: TSP) -> bool:
    """Return True if all lengths of tours and their partial sums are exact whole numbers in double precision."""
    if not part.integral:
        return False
    if part.coords is None:
        assert part.matrix is not None
        longest = float(part.matrix.max())
    else:  # no distance of any metric exceeds the sum of the extents of all axes, or half around the globe
        longest = max(float(np.ptp(part.coords, axis=0).sum()) + 1.0, EARTH_DIAMETER_KM * np.pi)
    return part.n_cities * longest < _ALL_EXACT


def _unit(problem: MultiObjectiveTSP, number: int, starts: NDArray[np.int32]) -> float:
    """Return the resolution of one objective, from its greedy tour, or from the longest tour if that has length 0."""
    lengths = problem.parts[number].tour_lengths(starts)
    longest = float(lengths.max())
    if 0.0 < longest < _LEAST:
        raise ValueError(
            f"lengths by {problem.names[number]!r} must be 0 or at least {_LEAST:g}, got {longest:g}; use a larger unit"
        )
    return _FINE * max(float(lengths[number]) or longest or 1.0, _LEAST)


def union_of(lists: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return candidates (n, c) of several lists (n, ..) without repeats, ordered by their place in a list.

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
    edges, times = np.empty(0, np.int64), np.empty(0, np.int64)
    for first in range(0, len(tours), _AT_ONCE):
        some = tours[first : first + _AT_ONCE]
        found, counts = np.unique(_pairs(some, np.roll(some, -1, axis=1), n, directed), return_counts=True)
        edges, place = np.unique(np.concatenate([edges, found]), return_inverse=True)
        times = np.bincount(place, np.concatenate([times, counts])).astype(np.int64)
    ends, others = edges // n, edges % n
    if not directed:
        ends, others, times = np.append(ends, others), np.append(others, ends), np.append(times, times)
    order = np.lexsort((others, -times, ends))
    ends, others = ends[order], others[order]
    bounds = np.searchsorted(ends, np.arange(n + 1))
    return _padded([others[bounds[city] : bounds[city + 1]] for city in range(n)])


def _pairs(a: NDArray[np.integer], b: NDArray[np.integer], n: int, directed: bool) -> NDArray[np.int64]:
    if not directed:
        a, b = np.minimum(a, b), np.maximum(a, b)
    return a.astype(np.int64) * n + b


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
