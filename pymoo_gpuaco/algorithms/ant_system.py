"""Ant System."""

from __future__ import annotations

from typing import Any

from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.algorithms.depositing import DepositingColony
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate

_SELECTIONS = ("auto", "roulette", "compressed", "stochastic_trial", "hybrid", "acceptance_tournament")


class GPUAS(DepositingColony):
    """Ant System (Dorigo, Maniezzo, Colorni 1996) with the selection rules of the two Hiroshima papers.

    Every ant deposits 1 / its length on its edges. As in the papers there are no candidate lists and no local search by
    default, one ant a city, alpha 1, beta 2, rho 0.5.

    Parameters
    ----------
    n_ants, alpha, beta, rho, candidate_list_size, candidates, local_search, pheromone : see ``AntColony``.
    selection : "roulette" (without compression), "compressed", "stochastic_trial", "hybrid" and "auto" draw from
        the same distribution, Eq. (2); with candidate lists they are computed alike. "acceptance_tournament" is exact
        until ``switch``, then draws from a tournament, which favours near cities less; it needs
        ``candidate_list_size=None``.
    trials : draws of a trial or acceptance before the exact fallback, >= 1. Default 8 (w of the paper).
    switch : share of visited cities, in [0, 1], at which "hybrid" and "acceptance_tournament" change their rule.
        None: 0.85 and 0.99.
    tournament_size : cities in a tournament, >= 1. None: 4 up to 1002 cities, 8 up to 2392, 16 above.
    sampling, n_elites, backend, device, **pymoo_arguments : see ``TourAlgorithm``.

    Sources: A. Uchida, Y. Ito, K. Nakano, "An Efficient GPU Implementation of Ant Colony Optimization for the
    Traveling Salesman Problem", ICNC 2012; R. Murooka, Y. Ito, K. Nakano, "GPU-accelerated Ant Colony Optimization
    for the Traveling Salesman Problem" (in Japanese).
    """

    arguments = (
        *AntColony.arguments,
        "selection",
        "trials",
        "switch",
        "tournament_size",
    )

    def __init__(
        self,
        n_ants: Any = None,
        *,
        alpha: Any = 1.0,
        beta: Any = 2.0,
        rho: Any = 0.5,
        candidate_list_size: Any = None,
        candidates: Any = "auto",
        local_search: Any = False,
        pheromone: str = "auto",
        selection: str = "auto",
        trials: Any = 8,
        switch: Any = None,
        tournament_size: Any = None,
        **common: Any,
    ) -> None:
        super().__init__(
            n_ants=n_ants,
            alpha=alpha,
            beta=beta,
            rho=rho,
            candidate_list_size=candidate_list_size,
            candidates=candidates,
            local_search=local_search,
            pheromone=pheromone,
            **common,
        )
        self.selection = selection
        self.trials = trials
        self.switch = switch
        self.tournament_size = tournament_size
        self._check()

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
