"""Memetic search of asymmetric, open and constrained problems on a symmetric form of the problem."""

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
    """``SearchEngine`` with tours of a problem, which searches the symmetric form of the problem.

    Parameters
    ----------
    instance : the problem of n cities: asymmetric, a path, or with fixed or forbidden edges.
    form : its symmetric form.
    symmetric_search : ``SearchEngine`` of the instance of that form.
    """

    def __init__(self, instance: ListedInstance, form: SymmetricForm, symmetric_search: Any) -> None:
        self.instance = instance
        self.kind: str = symmetric_search.kind
        self.symmetric_search = symmetric_search
        self.stop: Stop = symmetric_search.stop
        self.form = form

    def _measured(self, tour: NDArray[np.int32]) -> tuple[NDArray[np.int32], float]:
        """Translate a tour of the form to the problem; return it and its length there."""
        own = self.form.to_problem(tour)
        return own, self.instance.tour_length(own)

    def _all_measured(self, tours: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Translate tours (m, ..) of the form to (m, n) of the problem; return them and their lengths (m,)."""
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
        """True if a whole cycle of annealing has found no shorter tour, or the last cycle has ended."""
        return bool(self.symmetric_search.may_stagnate)

    @property
    def n_trials(self) -> int:
        """Number of kicks so far."""
        return int(self.symmetric_search.n_trials)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths (m,) of the current tours, with forbidden edges as very long ones; (0,) before the first tours."""
        lengths: NDArray[np.float64] = self.symmetric_search.lengths + self.form.constant
        return lengths

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """Return the tour with which the search begins, and its length."""
        return self._measured(self.symmetric_search.first_tour()[0])

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        self.symmetric_search.search(key)

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return up to ``most`` tours (e, n), the best of the run first, then the current ones; and lengths (e,)."""
        return self._all_measured(self.symmetric_search.best_tours(most)[0])

    def expect(self, progress: float) -> None:
        """Set the progress of the run, in [0, 1], or NaN if it is unknown."""
        self.symmetric_search.expect(progress)

    # ---- Stoppable

    def stop_at(self, moment: float | None) -> None:
        """Set the deadline of the calls that follow, by ``time.monotonic()``, see ``Stoppable``."""
        self.symmetric_search.stop_at(moment)

    # ---- Migrates

    @property
    def exchanges(self) -> bool:
        """True if evolution waits for migrants, see ``Migrates``."""
        return bool(self.symmetric_search.exchanges)

    @exchanges.setter
    def exchanges(self, wanted: bool) -> None:
        self.symmetric_search.exchanges = wanted

    @property
    def annealed(self) -> bool:
        """True if all annealing is over, see ``Migrates``."""
        return bool(self.symmetric_search.annealed)

    @property
    def awaits_migrants(self) -> bool:
        """True if the next generation begins with an evolution, see ``Migrates``."""
        return bool(self.symmetric_search.awaits_migrants)

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return tours (e, n) for other islands and their lengths (e,), see ``Migrates``."""
        return self._all_measured(self.symmetric_search.emigrants(most)[0])

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Add tours (m, n) of other islands, repaired if they violate constraints, see ``Migrates``."""
        self.symmetric_search.immigrate(self._translated("tours", tours), lengths)

    # ---- Accepts, Improver

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n), repaired if they violate constraints, into the best one, see ``Accepts``."""
        self.symmetric_search.accept(self._translated("tours", tours), lengths)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve copies of any number of tours (m, n) by window search; return them and their exact lengths (m,)."""
        improved, _ = self.symmetric_search.improve(self._translated("tours", tours), key)
        return self._all_measured(improved)

    # ---- Stateful

    def export_state(self) -> State:
        """Return the state of the search of the form."""
        state: State = self.symmetric_search.export_state()
        return state

    def import_state(self, state: State) -> None:
        """Continue from an exported state on the same problem."""
        self.symmetric_search.import_state(state)
