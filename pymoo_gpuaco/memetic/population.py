"""Population of a memetic search: first tours, the best tour, recombination, and the tours on a device."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.varied import varied_tours
from pymoo_gpuaco.memetic.assembly import assemble
from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.eax import Evolved, evolve
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.partition_crossover import merge
from pymoo_gpuaco.memetic.units import whole_units
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.problems.summation import lengths_of
from pymoo_gpuaco.runtime.stop import Stop

# From this number on, first tours differ, so that recombination gains more. A tour by perturbed lengths needs more
# kicks, which is not worthwhile with fewer tours.
FEWEST_VARIED = 4
# Limit of the cities of all different first tours, at .4 us per city. Copies of one tour share its long edges, which
# annealing in windows rarely changes, and evolution adds no edge that no tour has.
CITIES_OF_VARIED = 5_000_000
# Limit of the cities of all tours in an assembly before more annealing, because assembly is slow, and the minimum of
# assembled tours. Copies of assembled tours replace the others.
CITIES_OF_ASSEMBLED, FEWEST_ASSEMBLED = 3_000_000, 4
# After the first of several cycles of annealing, assembly ends with a generation that gains at most this share of the
# best generation. By then the tours have lost their long edges, and more generations make them alike. Few
# tours do not evolve, so their assembly continues longer.
LEAST_GAIN_AT_FIRST, LEAST_GAIN_OF_FEW = 1 / 4, 1 / 16
NEIGHBOURS_OF_OFFSPRING = 7  # candidates per city by which subtours of offspring are joined


def first_tours(
    instance: ListedInstance, greedy: NDArray[np.int32], m: int, key: int, stop: Stop | None = None
) -> NDArray[np.int32]:
    """Return first tours (m, n), beginning with the greedy one.

    Tours repeat if more different ones would take too long, or if ``stop`` ends their construction.
    """
    different = min(m, max(1, CITIES_OF_VARIED // instance.n)) if m >= FEWEST_VARIED else 1
    tours = np.concatenate([greedy[None], varied_tours(instance, different - 1, key, stop)])
    return np.resize(tours, (m, instance.n))


def least_gain_at_first(m: int) -> float:
    """Return the share of the best gain at which the assembly of m tours after the first cycle ends."""
    return LEAST_GAIN_OF_FEW if m < FEWEST_TO_EVOLVE else LEAST_GAIN_AT_FIRST


class Population:
    """The best tour of a run, and its recombination with the tours of a device."""

    def __init__(self, instance: ListedInstance, graph: Graph, n_offspring: int = 30) -> None:
        self._instance, self._graph, self._offspring_of_pair = instance, graph, n_offspring
        self._units = whole_units(instance)
        self.n_offspring = 0  # made so far
        self.best: NDArray[np.int32] | None = None  # (n,)
        self.length = math.inf

    def measure(self, tour: NDArray[np.int32]) -> float:
        """Return the exact length of a tour (n,)."""
        return float(self.lengths_of(tour[None])[0])

    def lengths_of(self, tours: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of tours (m, n)."""
        return lengths_of(self._graph, tours)

    def keep(self, tour: NDArray[np.int32], length: float) -> None:
        """Replace the best tour if the given one is shorter."""
        if length < self.length:
            self.best, self.length = tour.copy(), length

    def merge(self, tour: NDArray[np.int32]) -> None:
        """Merge the better parts of a tour into the best one."""
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
        migrants: NDArray[np.int32] | None = None,
        least_gain: float = 0.0,
    ) -> NDArray[np.int32]:
        """Recombine the tours (m, n) and the best with each other; return tours (m, n).

        A single tour is merged with the best. Several tours are assembled; if that would take too long, they are
        returned unchanged.

        migrants : tours (e, n) of other islands to recombine with; only some of them if n is large.
        least_gain : share of the best gain of a generation at which assembly ends, see `assemble`.
        """
        assert self.best is not None
        if len(tours) == 1:
            self.merge(tours[0])
            return self.best[None].copy()
        most = self.most_assembled(len(tours))
        if not most:
            return tours
        given = own = tours[:most]
        if not (own == self.best).all(axis=1).any():  # a copy adds nothing
            given = own = np.concatenate([own, self.best[None]])
        if migrants is not None and len(migrants):
            given = np.concatenate([own, migrants[: max(1, most + 1 - len(own))]])
        taken = assemble(self._graph, given, key, stop, scale=self._units, least_gain=least_gain)[: len(own)]
        self._keep_shortest(taken)
        self.n_offspring += len(taken)
        return np.resize(taken[:most], tours.shape)

    def most_assembled(self, m: int) -> int:
        """Return the limit of the tours, of m, to assemble before more annealing; 0: assembly takes too long."""
        most = CITIES_OF_ASSEMBLED // self._instance.n
        return 0 if most < min(FEWEST_ASSEMBLED, m) else most

    def evolve(
        self,
        tours: NDArray[np.int32],
        key: int,
        stop: Stop | None,
        migrants: NDArray[np.int32] | None = None,
        pause_after: float | None = None,
        blocks: bool = False,
    ) -> Evolved:
        """Evolve tours (m, n) until no offspring improves them, or pause; see ``eax.evolve``.

        Evolution preserves diversity and therefore finds shorter tours than `assemble`, which applies every gain at
        once.
        """
        near = np.ascontiguousarray(self._instance.neighbours[:, :NEIGHBOURS_OF_OFFSPRING])
        evolved = evolve(
            self._graph,
            tours,
            near,
            key,
            scale=self._units,
            migrants=migrants,
            stop=stop,
            children=self._offspring_of_pair,
            pause_after=pause_after,
            blocks=blocks,
        )
        return self.keep_evolved(evolved)

    def keep_evolved(self, evolved: Evolved) -> Evolved:
        """Count the offspring of an evolution, and replace the best tour if it has a shorter one."""
        self.n_offspring += evolved.children
        self._keep_shortest(evolved.tours)
        return evolved

    def _keep_shortest(self, tours: NDArray[np.int32]) -> None:
        """Replace the best tour if the shortest of tours (m, n) is shorter."""
        lengths = self.lengths_of(tours)
        shortest = int(lengths.argmin())
        self.keep(tours[shortest], float(lengths[shortest]))

    def _distance(self, i: NDArray[np.int32], j: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return distances in whole units."""
        return np.floor(self._instance.distance(i, j) * self._units + 0.5)


class DeviceTours:
    """m tours of n cities on a device, with the lengths of the last measurement.

    Attributes
    ----------
    population : the best tour of the run.
    first : tour (n,) with which the run begins.
    lengths : exact lengths (m,) of the tours; (0,) before the first tours.
    """

    def __init__(self, device: SearchDevice) -> None:
        self._device = device
        self.reset()
        self.first = device.first_tour()

    def reset(self) -> None:
        """Return to the state before the first tours."""
        device = self._device
        self.population = Population(device.instance, device.graph, device.parameters.n_offspring)
        self.lengths = np.empty(0)

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """Return a copy of the first tour (n,), and its length."""
        return self.first.copy(), self.population.measure(self.first)

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the best tour (n,) of the run, and its length."""
        best, length = self.population.best, self.population.length
        return self.first_tour() if best is None else (best.copy(), length)

    def best_tours(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return up to ``most`` tours (e, n), the best of the run first, then by length; and lengths (e,)."""
        best, length = self.best()
        if most == 1:  # saves a copy of millions of cities
            return best[None], np.array([length])
        rows, lengths = [best], [length]
        if len(self.lengths):
            with self._device.working():
                tours = self._device.read()
            for tour in self.lengths.argsort(kind="stable"):
                if len(rows) < most and not np.array_equal(tours[tour], best):
                    rows.append(tours[tour])
                    lengths.append(float(self.lengths[tour]))
        return np.array(rows), np.array(lengths)

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Continue from tours (m, n)."""
        self._device.load(tours, repaired)
        self.measure()

    def load_copies_of_best(self, repaired: bool = True) -> None:
        """Continue from copies of the best tour."""
        self.load(np.tile(self.best()[0], (self._device.n_tours, 1)), repaired)

    def measure(self, merged: int = 0) -> None:
        """Measure the tours; merge the ``merged`` shortest ones into the best."""
        self._store(self._device.measure(), merged)

    def merge_copies(self) -> None:
        """Merge the improvements on copies of the best tour into it, and continue from copies of the result."""
        lengths = self._device.measure()
        shorter = int((lengths < self.population.length).sum())
        self._store(lengths, shorter)
        if shorter and not self._device.stop.passed():
            self.load_copies_of_best()

    def _store(self, lengths: NDArray[np.float64], merged: int) -> None:
        """Store measured lengths (m,) and merge the ``merged`` shortest tours into the best."""
        device, population = self._device, self.population
        if merged:
            tours = device.read()
            for tour in lengths.argsort(kind="stable")[:merged]:
                if device.stop.passed():
                    break
                population.merge(tours[tour])
        # merging compares whole units: by exact lengths the shortest tour may still be a little shorter
        population.keep(device.shortest(), float(lengths.min()))
        self.lengths = lengths
