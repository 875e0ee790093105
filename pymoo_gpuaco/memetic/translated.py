"""The memetic search for every kind of tour, on the symmetric instance that stands for a problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.symmetric import SymmetricForm
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import Stop


class TranslatedSearch:
    """``SearchEngine`` that hands out and takes in tours of a problem, and searches its symmetric form.

    Parameters
    ----------
    instance : the problem of n cities: asymmetric, a path, or one with fixed or forbidden edges.
    form : what stands for it.
    symmetric_search : ``SearchEngine`` of that form's instance.
    """

    def __init__(self, instance: ListedInstance, form: SymmetricForm, symmetric_search: Any) -> None:
        self.instance = instance
        self.kind: str = symmetric_search.kind
        self.symmetric_search = symmetric_search
        self.stop: Stop = symmetric_search.stop
        self.form = form

    def _measured(self, tour: NDArray[np.int32]) -> tuple[NDArray[np.int32], float]:
        """A tour of the form as one of the problem, and its length there."""
        own = self.form.to_problem(tour)
        return own, self.instance.tour_length(own)

    def _all_measured(self, tours: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (m, ..) of the form as (m, n) of the problem, and their lengths (m,)."""
        found = [self._measured(tour) for tour in tours]
        rows = np.array([tour for tour, _ in found], np.int32).reshape(len(found), self.instance.n)
        return rows, np.array([length for _, length in found])

    def _translated(self, name: str, tours: ArrayLike) -> NDArray[np.int32]:
        rows = checks.permutations(name, tours, self.instance.n)
        translated = [self.form.to_instance(row) for row in rows]
        return np.array(translated, np.int32).reshape(len(rows), self.form.instance.n)

    # ---- Searches

    @property
    def n_tours(self) -> int:
        """Size of the population."""
        return int(self.symmetric_search.n_tours)

    @property
    def n_built(self) -> int:
        """Tours of the last generation, >= 1."""
        return int(self.symmetric_search.n_built)

    @property
    def may_stagnate(self) -> bool:
        """Whether a whole cycle of annealing has brought no shorter tour, or the last one has ended."""
        return bool(self.symmetric_search.may_stagnate)

    @property
    def n_trials(self) -> int:
        """Kicks since the engine was made."""
        return int(self.symmetric_search.n_trials)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths (m,) of the tours at hand, forbidden edges counted as very long ones; (0,) before there are any."""
        lengths: NDArray[np.float64] = self.symmetric_search.lengths + self.form.constant
        return lengths

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """Tour with which the search begins, and its length."""
        return self._measured(self.symmetric_search.first_tour()[0])

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        self.symmetric_search.search(key)

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """At most so many tours (e, n), the best of the run first, then those at hand; and lengths (e,)."""
        return self._all_measured(self.symmetric_search.best_tours(most)[0])

    def expect(self, progress: float) -> None:
        """Note how far the run is, in [0, 1], or NaN where nobody knows."""
        self.symmetric_search.expect(progress)

    # ---- Stoppable

    def stop_at(self, moment: float | None) -> None:
        """Let the calls that follow end soon after this ``time.monotonic()``, see ``Stoppable``."""
        self.symmetric_search.stop_at(moment)

    # ---- Migrates

    @property
    def exchanges(self) -> bool:
        """Whether evolution waits for migrants, see ``Migrates``."""
        return bool(self.symmetric_search.exchanges)

    @exchanges.setter
    def exchanges(self, wanted: bool) -> None:
        self.symmetric_search.exchanges = wanted

    @property
    def annealed(self) -> bool:
        """Whether all annealing is over, see ``Migrates``."""
        return bool(self.symmetric_search.annealed)

    @property
    def awaits_migrants(self) -> bool:
        """Whether the next generation begins with an evolution, see ``Migrates``."""
        return bool(self.symmetric_search.awaits_migrants)

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (e, n) for other islands and their lengths (e,), see ``Migrates``."""
        return self._all_measured(self.symmetric_search.emigrants(most)[0])

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Take in tours (m, n) of other islands, see ``Migrates``; where they break demands they are mended first."""
        self.symmetric_search.immigrate(self._translated("tours", tours), lengths)

    # ---- Accepts, Improver

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n) into the best, see ``Accepts``; where they break demands they are mended first."""
        self.symmetric_search.accept(self._translated("tours", tours), lengths)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Window search on any number of tours (m, n); return copies and their exact lengths (m,)."""
        improved, _ = self.symmetric_search.improve(self._translated("tours", tours), key)
        return self._all_measured(improved)

    # ---- Stateful

    def export_state(self) -> State:
        """State of the search of the form."""
        state: State = self.symmetric_search.export_state()
        return state

    def import_state(self, state: State) -> None:
        """Continue from an exported state on the same problem."""
        self.symmetric_search.import_state(state)
