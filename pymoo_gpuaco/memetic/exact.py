"""Exact search for instances of few cities."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import Stop


class ExactSearch:
    """``SearchEngine`` whose best tour (n,) is known, see `candidates.exact.optimal_tour`."""

    kind = "cpu"
    n_tours = n_built = 1
    n_trials = 0
    may_stagnate = True

    def __init__(self, instance: ListedInstance, tour: NDArray[np.int32]) -> None:
        self.instance = instance
        self.stop = Stop()
        self._tour = tour
        self._length = instance.tour_length(self._tour)

    def describe(self) -> str:
        """Return how the tour was found."""
        return "dynamic programming"

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Length of the best tour, (1,)."""
        return np.array([self._length])

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the best tour (1, n) and its length (1,), for any ``most``."""
        return self._tour[None].copy(), self.lengths

    def search(self, key: int) -> None:
        """Do nothing: the best tour is known."""

    def expect(self, progress: float) -> None:
        """Ignore the progress of the run."""

    def stop_at(self, moment: float | None) -> None:
        """Ignore the deadline: every call returns at once."""

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Validate tours (m, n) and ignore them: none is better."""
        checks.permutations("tours", tours, self.instance.n)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the best tour for each of tours (m, n), and its length (m,)."""
        m = len(checks.permutations("tours", tours, self.instance.n))
        return np.tile(self._tour, (m, 1)), np.full(m, self._length)

    def export_state(self) -> State:
        """Return a state without tours; another engine computes the best tour again."""
        return {"kind": np.array("exact")}

    def import_state(self, state: State) -> None:
        """Accept any state of the same problem."""
