"""The population of a memetic search: its first tours, its best tour, and its recombination."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.start import varied_tours
from pymoo_gpuaco.memetic.assembly import assemble
from pymoo_gpuaco.memetic.eax import evolve
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.partition_crossover import merge
from pymoo_gpuaco.problems.matrix import largest_finite
from pymoo_gpuaco.problems.metrics import Metric
from pymoo_gpuaco.problems.summation import is_long, long_tour_length, tour_length
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import spread, thread_count

# So many tours or more begin as different ones, to have more to recombine. A tour that begins by other lengths than the
# true ones needs more kicks, which fewer tours do not make up for.
FEWEST_VARIED = 4
# Cities of all different first tours at most: they take .4 us each. Tours that go on from the same one have the same
# long edges, which annealing in windows seldom changes, and evolution cannot find what no tour has. 150 tours of
# rl11849 begun as 16 different ones ended at .003 to .029 % after twenty seconds of an H100 (five runs); begun as 150
# different ones, at the optimum (eight).
CITIES_OF_VARIED = 5_000_000
# Cities at most of all tours that are assembled when others are to be annealed after them: that takes the host long,
# eight seconds for nine tours of a million on sixteen cores. The others go on from what these become. Fewer than four
# give many others little: 48 tours of pla85900 ended at 0.09 % after twenty seconds of an H200 where four were
# assembled, at 0.06 where 32 were.
CITIES_OF_ASSEMBLED, FEWEST_ASSEMBLED = 3_000_000, 4
# After the first cycle of annealing, which others follow, assembly ends with a generation that gains no more than this
# share of what another has gained: by then tours have given each other what rids them of their long edges, and more
# generations make them alike. 22 tours of rl11849 were at .59 % in the mean after 6 generations and at .22 after all
# 12. Annealed by half a kick a city and evolved, the best was at .08 % either way (means of six runs). Few tours do not
# evolve: what they are not given now they may never get.
LEAST_GAIN_AT_FIRST, LEAST_GAIN_OF_FEW = 1 / 4, 1 / 16
NEAR_OF_CHILDREN = 7  # candidates a city by which subtours of children are joined
# Whole units of a mean candidate edge, as a power of two, where distances are no whole numbers: sums are exact then,
# and rounding changes a tour by less than 1e-6.
_UNITS_AN_EDGE = 20
# The same for a form of few cities, where long edges stand for forbidden ones: these are up to 2^7 times as long.
_UNITS_OF_SMALL_FORM, _SMALL_FORM = 7, 100
# Times that the mean candidate is longer than the median where few of them decide it; the median is that of a sample.
_FEW_ARE_LONGER, _SAMPLE = 1000.0, 1000
_LONGEST = 50  # the power of two that no distance should be above in whole units
_LARGEST_EXPONENT = 1023  # of a double; finer units are cut to it, coarser ones that pass it raise an error
_LONGEST_WHOLE = 2.0**40  # whole distances up to this in the mean are their own units


def whole_units(instance: ListedInstance) -> float:
    """Return the factor from distances to whole units: 1 where they are whole numbers, else a power of two.

    Numbers so great that sums of them would not be exact count as others do. Where a few candidates are far longer than
    most, most set the unit, as long as the longest distance keeps to 2^50 units.

    Raises ValueError where distances vanish in double precision.
    """
    lengths = instance.neighbour_distances
    mean = float(lengths.mean())
    if mean <= 0.0 or (instance.integral and mean < _LONGEST_WHOLE):
        return 1.0
    coarsest = _UNITS_AN_EDGE - math.frexp(mean)[1]
    of_form = _UNITS_OF_SMALL_FORM if instance.form is not None and instance.n <= _SMALL_FORM else 0
    exponent = coarsest + of_form
    usual = float(np.median(lengths.ravel()[:: 1 + lengths.size // _SAMPLE]))
    if mean > _FEW_ARE_LONGER * usual > 0.0:
        finer = min(_UNITS_AN_EDGE - math.frexp(usual)[1], _LONGEST - math.frexp(_longest(instance))[1])
        exponent = max(exponent, min(finer, 0) if instance.integral else finer)
    try:
        return math.ldexp(1.0, max(coarsest, min(exponent, _LARGEST_EXPONENT)))
    except OverflowError as error:
        raise ValueError(
            f"distances to candidates must be 1e-302 or more in the mean, or nothing but 0, got {mean:g}: "
            "take a larger unit"
        ) from error


def _longest(instance: ListedInstance) -> float:
    """Return a length that no distance is above."""
    if instance.form is not None and instance.form.doubled:
        return instance.form.far
    if instance.metric == Metric.EXPLICIT:
        return largest_finite(instance.matrix)
    return sum(float(np.ptp(axis)) for axis in instance.real_coords.T)


def first_tours(
    instance: ListedInstance, greedy: NDArray[np.int32], m: int, key: int, stop: Stop | None = None
) -> NDArray[np.int32]:
    """Tours (m, n) to begin with, the greedy one first.

    Some come more than once where many would take long, or ``stop`` has ended.
    """
    different = min(m, max(1, CITIES_OF_VARIED // instance.n)) if m >= FEWEST_VARIED else 1
    tours = np.concatenate([greedy[None], varied_tours(instance, different - 1, key, stop)])
    return np.resize(tours, (m, instance.n))


def least_gain_at_first(m: int) -> float:
    """Share of a generation's gain with which the assembly of m tours after the first cycle ends."""
    return LEAST_GAIN_OF_FEW if m < FEWEST_TO_EVOLVE else LEAST_GAIN_AT_FIRST


def lengths_of(graph: Graph, tours: NDArray[np.int32]) -> NDArray[np.float64]:
    """Exact lengths (m,) of tours (m, n), on all cores: there may be a thousand, or one of millions of cities."""
    lengths = np.empty(len(tours))
    if is_long(graph.metric, tours.shape[1]):
        return np.array([long_tour_length(graph.metric, graph.coords, tour) for tour in tours])

    def work(_: int, first: int, last: int) -> None:
        for tour in range(first, last):
            lengths[tour] = tour_length(graph, tours[tour])

    spread(work, len(tours), thread_count())
    return lengths


class Population:
    """The best tour of a run, kept beside the tours that are searched, and how they are all recombined."""

    def __init__(self, instance: ListedInstance, graph: Graph, n_offspring: int = 30) -> None:
        self._instance, self._graph, self._offspring_of_pair = instance, graph, n_offspring
        self._units = whole_units(instance)
        self.n_offspring = 0  # measured so far
        self.best: NDArray[np.int32] | None = None  # (n,)
        self.length = math.inf

    def measure(self, tour: NDArray[np.int32]) -> float:
        """Exact length of a tour (n,)."""
        return float(self.lengths_of(tour[None])[0])

    def lengths_of(self, tours: NDArray[np.int32]) -> NDArray[np.float64]:
        """Exact lengths (m,) of tours (m, n)."""
        return lengths_of(self._graph, tours)

    def keep(self, tour: NDArray[np.int32], length: float) -> None:
        """Make a tour the best one if it is shorter."""
        if length < self.length:
            self.best, self.length = tour.copy(), length

    def merge(self, tour: NDArray[np.int32]) -> None:
        """Recombine the best tour with what is better in another."""
        if self.best is None:
            self.best, self.length = tour.copy(), self.measure(tour)
            return
        merged, gain = merge(self.best, tour, self._distance)
        self.n_offspring += 1
        if gain > 0.0:  # in whole units
            self.keep(merged, self.measure(merged))

    def recombine(
        self,
        tours: NDArray[np.int32],
        key: int,
        stop: Stop,
        mates: NDArray[np.int32] | None = None,
        least_gain: float = 0.0,
    ) -> NDArray[np.int32]:
        """Recombine the tours (m, n) and the best with each other; return tours (m, n).

        One tour, of very many cities, is merged with the best. Several are assembled, unless they have so many cities
        that this takes too long: then they stay as they are.

        mates : tours (e, n) of other islands to recombine with as well; few where n is large.
        least_gain : ends assembly, see `assemble`.
        """
        assert self.best is not None
        if len(tours) == 1:
            self.merge(tours[0])
            return self.best[None].copy()
        most = self.most_assembled(len(tours))
        if not most:
            return tours
        given = own = tours[:most]
        if not (own == self.best).all(axis=1).any():  # a copy has nothing to give
            given = own = np.concatenate([own, self.best[None]])
        if mates is not None and len(mates):
            given = np.concatenate([own, mates[: max(1, most + 1 - len(own))]])
        taken = assemble(self._graph, given, key, stop, scale=self._units, least_gain=least_gain)[: len(own)]
        self._keep_shortest(taken)
        self.n_offspring += len(taken)
        return np.resize(taken[:most], tours.shape)

    def most_assembled(self, m: int) -> int:
        """Most of m tours that are assembled when others are to be annealed after them; 0: that takes too long."""
        most = CITIES_OF_ASSEMBLED // self._instance.n
        return 0 if most < min(FEWEST_ASSEMBLED, m) else most

    def evolve(
        self,
        tours: NDArray[np.int32],
        key: int,
        stop: Stop | None,
        mates: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """Let tours (m, n) have children until these find nothing more; return tours (m, n).

        That keeps tours varied and finds more than `assemble`, which takes all at once. See ``eax.evolve``.
        """
        near = np.ascontiguousarray(self._instance.neighbours[:, :NEAR_OF_CHILDREN])
        scale = self._units
        evolved = evolve(
            self._graph,
            tours,
            near,
            key,
            scale=scale,
            mates=mates,
            stop=stop,
            children=self._offspring_of_pair,
        )
        self.n_offspring += evolved.children
        self._keep_shortest(evolved.tours)
        return evolved.tours

    def _keep_shortest(self, tours: NDArray[np.int32]) -> None:
        """Make the shortest of tours (m, n) the best one if it is shorter."""
        lengths = self.lengths_of(tours)
        shortest = int(lengths.argmin())
        self.keep(tours[shortest], float(lengths[shortest]))

    def _distance(self, i: NDArray[np.int32], j: NDArray[np.int32]) -> NDArray[np.float64]:
        """Distances in whole units."""
        return np.floor(self._instance.distance(i, j) * self._units + 0.5)
