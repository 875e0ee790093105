"""The common part of Ant System and its descendants: the ants of every iteration deposit, in amounts by a rule."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.algorithms.arguments import Count
from pymoo_gpuaco.algorithms.colony import AntColony, Search
from pymoo_gpuaco.algorithms.told import Tours
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate


@dataclass(kw_only=True, eq=False, repr=False)
class DepositingColony(AntColony):
    """A colony whose trails are updated by the ants of the last construction and the best tour so far.

    As in the papers there are no candidate lists and no local search, unless they are asked for.
    """

    candidate_list_size: Count | None = None
    local_search: Search = False

    def _parameters(self) -> ColonyParameters:
        return ColonyParameters(**self._common())

    @abstractmethod
    def _deposits(self) -> TrailUpdate:
        """Return the deposits after an iteration, once the best tour so far is known."""

    def _start_from(self, told: Tours) -> None:
        # the given tours are this generation's ants
        self._accept(told)
        self._best_tour, self._best_length = told.best()
        self._deposit_by_objective(told)

    def _learn(self, told: Tours) -> None:
        if not self._by_objective:
            super()._learn(told)
            return
        tour, length = told.best()
        if length < self._best_length:
            self._best_tour, self._best_length = tour, length
        self._deposit_by_objective(told)

    def _deposit_by_objective(self, told: Tours) -> None:
        """Deposit on these tours by their objective; the engine itself would deposit by length."""
        update = self._deposits().written_out(told.rows.astype(np.int32), told.lengths)
        self.engine.update_trails(update)

    def _update(self, tour: NDArray[np.int32], length: float, improved: bool) -> None:
        self.engine.update_trails(self._deposits())
