"""The best tour of all islands: each takes part with what is better in its tour."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pymoo_gpuaco.exchange.merge import merge
from pymoo_gpuaco.islands.member import Tour
from pymoo_gpuaco.problems.instance import Instance


class BestTour:
    """The best of the tours that it was offered, merged where that can be done.

    It can on symmetric instances whose objective is the length.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.tour: Tour | None = None
        self.by_objective = False  # whether that is something else than the length

    def offer(self, tour: Tour) -> None:
        """Let the best tour take over what is better in another one, or be it."""
        if self.tour is None:
            self.tour = tour
        elif self.by_objective or not self.instance.symmetric:
            self.tour = min(self.tour, tour, key=lambda one: one.value)
        elif not np.array_equal(tour.cities, self.tour.cities):
            cities, _ = merge(self.tour.cities, tour.cities, self.instance.distance)
            merged = Tour(cities, self.instance.tour_length(cities))
            self.tour = min(self.tour, tour, merged, key=lambda one: one.value)

    def judge_by_objective(self, tours: Iterable[Tour]) -> None:
        """Begin anew with these tours: what was best by length need not be."""
        self.by_objective, self.tour = True, None
        for tour in tours:
            self.offer(tour)

    def prepare(self) -> None:
        """Compile what merges: a search that is on its way would wait for it, and the compiler may lose a Ctrl-C."""
        if self.instance.symmetric and self.instance.n >= 5:
            tour = np.arange(self.instance.n, dtype=np.int32)
            other = tour.copy()
            other[2:5] = other[4:1:-1].copy()
            merge(tour, other, self.instance.distance)
