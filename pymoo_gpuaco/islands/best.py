"""The best tour of all islands, merged from theirs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.exchange.merge import merge
from pymoo_gpuaco.islands.member import Tour
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.symmetric import form_to_search


class BestTour:
    """The best of all tours offered; where the objective is the length, it is merged from them."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.tour: Tour | None = None
        self.by_objective = False  # whether the objective is something else than the length
        self._form = form_to_search(instance)

    def offer(self, tour: Tour) -> None:
        """Merge a tour into the best one, or replace it."""
        if self.tour is None:
            self.tour = tour
        elif self.by_objective:
            self.tour = min(self.tour, tour, key=lambda one: one.value)
        elif not np.array_equal(tour.cities, self.tour.cities):
            cities = self._merged(self.tour.cities, tour.cities)
            merged = Tour(cities, self.instance.tour_length(cities))
            self.tour = min(self.tour, tour, merged, key=self._rank)

    def _rank(self, tour: Tour) -> tuple[int, float]:
        """Order tours by the number of broken demands, then by length."""
        return int(self.instance.violations(tour.cities[None])[0]), tour.value

    def _merged(self, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int32]:
        if self._form is None:
            return merge(one, other, self.instance.distance)[0]
        form = self._form
        merged, _ = merge(form.to_instance(one), form.to_instance(other), form.instance.distance)
        return form.to_problem(merged)

    def judge_by_objective(self, tours: Iterable[Tour]) -> None:
        """Start again from these tours: the best by length need not be the best by objective."""
        self.by_objective, self.tour = True, None
        for tour in tours:
            self.offer(tour)

    def prepare(self) -> None:
        """Compile the merge before the search: it would wait for the compiler, which may lose a Ctrl-C."""
        if self.instance.n >= 5:
            tour = np.arange(self.instance.n, dtype=np.int32)
            other = tour.copy()
            other[2:5] = other[4:1:-1].copy()
            self._merged(tour, other)
