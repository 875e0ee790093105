"""The tours on a device, their lengths, and the best tour of the run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.population import Population


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
        # merging counts in whole units: by exact lengths the shortest tour may still be a little shorter
        population.keep(device.shortest(), float(lengths.min()))
        self.lengths = lengths
