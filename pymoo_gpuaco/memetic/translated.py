"""Memetic search of asymmetric, open and constrained problems by their symmetric form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.symmetric import SymmetricForm
from pymoo_gpuaco.runtime.stop import Stop


def _forwarded(name: str) -> Any:
    """Return a property that reads and writes an attribute of the search of the form."""
    return property(
        lambda self: getattr(self.symmetric_search, name),
        lambda self, value: setattr(self.symmetric_search, name, value),
    )


class TranslatedSearch:
    """``SearchEngine`` of a problem that searches its symmetric form and translates the tours.

    Parameters
    ----------
    instance : the problem of n cities: asymmetric, a path, or with fixed or forbidden edges.
    form : its symmetric form.
    symmetric_search : ``SearchEngine`` of the instance of that form.
    """

    n_tours, n_built = _forwarded("n_tours"), _forwarded("n_built")
    n_trials, may_stagnate = _forwarded("n_trials"), _forwarded("may_stagnate")
    search, expect, stop_at = _forwarded("search"), _forwarded("expect"), _forwarded("stop_at")
    export_state, import_state = _forwarded("export_state"), _forwarded("import_state")
    describe = _forwarded("describe")
    exchanges, annealed = _forwarded("exchanges"), _forwarded("annealed")
    awaits_migrants = _forwarded("awaits_migrants")

    def __init__(self, instance: ListedInstance, form: SymmetricForm, symmetric_search: Any) -> None:
        self.instance = instance
        self.kind: str = symmetric_search.kind
        self.symmetric_search = symmetric_search
        self.stop: Stop = symmetric_search.stop
        self.form = form

    def _measured(self, tours: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Translate tours (m, ..) of the form to (m, n) of the problem; return them and their lengths (m,)."""
        own = np.array([self.form.to_problem(tour) for tour in tours], np.int32)
        own = own.reshape(len(tours), self.instance.n)
        return own, self.instance.tour_lengths(own)

    def _translated(self, tours: ArrayLike) -> NDArray[np.int32]:
        rows = checks.permutations("tours", tours, self.instance.n)
        translated = [self.form.to_instance(row) for row in rows]
        return np.array(translated, np.int32).reshape(len(rows), self.form.instance.n)

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Lengths (m,) of the current tours, in which forbidden edges are very long; (0,) before the first tours."""
        lengths: NDArray[np.float64] = self.symmetric_search.lengths + self.form.constant
        return lengths

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return up to ``most`` tours (e, n), the best of the run first, then the current ones; and lengths (e,)."""
        return self._measured(self.symmetric_search.best_tours(most)[0])

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return tours (e, n) for other islands and their lengths (e,), see ``Migrates``."""
        return self._measured(self.symmetric_search.emigrants(most)[0])

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Add tours (m, n) of other islands, repaired if they violate constraints, see ``Migrates``."""
        self.symmetric_search.immigrate(self._translated(tours), lengths)

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n), repaired if they violate constraints, into the best one, see ``Accepts``."""
        self.symmetric_search.accept(self._translated(tours), lengths)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve copies of any number of tours (m, n) by window search; return them and their exact lengths (m,)."""
        improved, _ = self.symmetric_search.improve(self._translated(tours), key)
        return self._measured(improved)
