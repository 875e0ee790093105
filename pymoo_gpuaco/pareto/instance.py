"""A problem of several objectives as the search for its front takes it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.pareto.candidates import union_of
from pymoo_gpuaco.pareto.costs import Costs, add_up_table, make_costs
from pymoo_gpuaco.problems.instance import as_instance
from pymoo_gpuaco.problems.metrics import EARTH_DIAMETER_KM
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.tsp import TSP

# Of a tour's length: what tours of different lengths differ by, where those are no whole numbers.
_FINE = 1e-10
_LEAST = 1e-140  # areas and slopes are products of two lengths: of shorter ones they would be 0
_ALL_EXACT = 2.0**53  # whole numbers up to this are exact in double precision


@dataclass(frozen=True, eq=False)
class FrontInstance:
    """k objectives of n cities. Arrays are shared: nobody may write to them.

    Attributes
    ----------
    parts : k problems.
    costs : what edges cost, with the candidates that are near by one of the objectives.
    starts : (k, n) a greedy tour by each objective.
    unit : (k,) what the lengths of two tours differ by at least, to be told apart: 1 for whole numbers.
    integral : whether all lengths are whole numbers, which sums of distances in any order then give: none is so great
        that double precision rounds it.
    """

    parts: tuple[TSP, ...]
    costs: Costs
    starts: NDArray[np.int32]
    unit: NDArray[np.float64]
    integral: bool
    demands = None

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
        """Whether a tour is as long the other way round, by every objective."""
        return not self.costs.directed

    def lengths(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Lengths (m, k) of tours (m, n), as the problem has them."""
        rows = np.ascontiguousarray(tours, np.int32)
        if not len(self.costs.table):
            return np.stack([part.tour_lengths(rows) for part in self.parts], axis=1)
        lengths = np.empty((len(rows), self.k))
        add_up_table(self.costs.table, rows, lengths)
        return lengths


def front_instance(problem: MultiObjectiveTSP, k: int) -> FrontInstance:
    """Arrays of a problem, with up to k >= 1 nearest cities by each objective as candidates.

    Raises ValueError where an objective's lengths vanish in products of two of them.
    """
    # Not `listed_instance`, which makes an asymmetric matrix that potentials even out a symmetric one: tours are as
    # long by that, but edges cost something else, and what edges cost by each objective is added up here.
    listed = [with_lists(as_instance(part), k) for part in problem.parts]
    starts = np.stack([greedy_tour(one) for one in listed])
    costs = make_costs(problem.parts, union_of([one.neighbours for one in listed]))
    whole = [_is_exact(part) for part in problem.parts]
    unit = [1.0 if whole[number] else _unit(problem, number, starts) for number in range(len(whole))]
    return FrontInstance(problem.parts, costs, starts, np.array(unit), all(whole))


def _is_exact(part: TSP) -> bool:
    """Whether the lengths of all tours are whole numbers of double precision, and so are all sums on the way."""
    if not part.integral:
        return False
    if part.coords is None:
        assert part.matrix is not None
        longest = float(part.matrix.max())
    else:  # of every metric: no city is farther than all axes together, or half around the globe
        longest = max(float(np.ptp(part.coords, axis=0).sum()) + 1.0, EARTH_DIAMETER_KM * np.pi)
    return part.n_cities * longest < _ALL_EXACT


def _unit(problem: MultiObjectiveTSP, number: int, starts: NDArray[np.int32]) -> float:
    """What lengths of one objective differ by at least, by its own short tour, or by the longest if that has none."""
    lengths = problem.parts[number].tour_lengths(starts)
    longest = float(lengths.max())
    if 0.0 < longest < _LEAST:
        raise ValueError(
            f"tours must be {_LEAST:g} or longer by {problem.names[number]!r}, or of length 0, got one of {longest:g}: "
            "take a larger unit"
        )
    return _FINE * max(float(lengths[number]) or longest or 1.0, _LEAST)
