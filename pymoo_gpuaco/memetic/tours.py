"""The tours at hand, which a device holds, and the best of all beside them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.population import Population


class Tours:
    """m tours of n cities, as they were measured last.

    Attributes
    ----------
    population : the best tour of the run.
    first : tour (n,) with which the run begins.
    lengths : exact lengths (m,) of the tours at hand; (0,) before there are any.
    """

    def __init__(self, device: SearchDevice) -> None:
        self._device = device
        self.forget()
        self.first = device.first_tour()

    def forget(self) -> None:
        """Be as before there were any."""
        device = self._device
        self.population = Population(device.instance, device.graph, device.parameters.n_offspring)
        self.lengths = np.empty(0)

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """A copy of the first tour (n,), and its length."""
        return self.first.copy(), self.population.measure(self.first)

    def best(self) -> tuple[NDArray[np.int32], float]:
        """The best tour (n,) of the run, and its length."""
        best, length = self.population.best, self.population.length
        return self.first_tour() if best is None else (best.copy(), length)

    def best_tours(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """At most so many tours (e, n), the best of the run first, then those at hand by length; and lengths (e,)."""
        best, length = self.best()
        if most == 1:  # of millions of cities one copy less
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

    def take(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Go on from tours (m, n)."""
        self._device.load(tours, repaired)
        self.measure()

    def take_copies(self, repaired: bool = True) -> None:
        """Go on from copies of the best tour."""
        self.take(np.tile(self.best()[0], (self._device.n_tours, 1)), repaired)

    def measure(self, merged: int = 0) -> None:
        """Measure the tours; the best is merged with so many of them, the shortest first."""
        self._note(self._device.measure(), merged)

    def unite_copies(self) -> None:
        """Put together what kicks have found on copies of the best tour, and go on from copies of what it becomes."""
        lengths = self._device.measure()
        shorter = int((lengths < self.population.length).sum())
        self._note(lengths, shorter)
        if shorter and not self._device.stop.passed():
            self.take_copies()

    def _note(self, lengths: NDArray[np.float64], merged: int) -> None:
        """Note lengths (m,) just measured, of which the ``merged`` shortest are those of tours to merge."""
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
