"""Ant System."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, Word
from pymoo_gpuaco.algorithms.depositing import DepositingColony
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.selection import offered_by
from pymoo_gpuaco.colony.trails import TrailUpdate

_SELECTIONS = offered_by("GPUAS")


@dataclass(kw_only=True, eq=False, repr=False)
class GPUAS(DepositingColony):
    """Ant System (Dorigo, Maniezzo, Colorni 1996) with the selection rules of the two Hiroshima papers.

    Every ant deposits 1 / its length on its edges. As in the papers there are no candidate lists and no local search by
    default, one ant a city, alpha 1, beta 2, rho 0.5.

    Parameters
    ----------
    selection : "auto", or a rule of the table on the page of ``GPUAS``, such as "roulette". The exact ones draw from
        the same distribution, Eq. (2); with candidate lists they are computed alike. "acceptance_tournament" is exact
        until ``switch``, then draws from a tournament, which favours near cities less; it needs
        ``candidate_list_size=None``.
    trials : draws of a trial or acceptance before the exact fallback, >= 1. Default 8 (w of the paper).
    switch : share of visited cities, in [0, 1], at which "hybrid" and "acceptance_tournament" change their rule.
        None: 0.85 and 0.99.
    tournament_size : cities in a tournament, >= 1. None: 4 up to 1002 cities, 8 up to 2392, 16 above.

    All arguments of ``AntColony``, ``EngineAlgorithm`` and ``TourAlgorithm`` besides.

    Sources: A. Uchida, Y. Ito, K. Nakano, "An Efficient GPU Implementation of Ant Colony Optimization for the
    Traveling Salesman Problem", ICNC 2012; R. Murooka, Y. Ito, K. Nakano, "GPU-accelerated Ant Colony Optimization
    for the Traveling Salesman Problem" (in Japanese).
    """

    rho: Number = 0.5
    selection: Word = "auto"
    trials: Count = 8
    switch: Number | None = None
    tournament_size: Count | None = None

    def _parameters(self) -> ColonyParameters:
        return ColonyParameters(
            **self._common(),
            selection=checks.choice("selection", get(self.selection), _SELECTIONS),
            trials=get(self.trials),
            switch=get(self.switch),
            tournament_size=get(self.tournament_size),
        )

    def _first_trail(self, n: int) -> float:
        return float(n)  # n / C_g, Eq. (1), Uchida et al. 2012

    def _deposits(self) -> TrailUpdate:
        # Eqs. (4) to (6), Uchida et al. 2012: evaporation, then every ant deposits 1 / C_k
        return self._trail_update(colony_amount=self._unit)
