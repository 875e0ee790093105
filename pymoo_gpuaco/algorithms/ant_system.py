"""Ant System."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco.algorithms.base import Tours
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate

_SELECTIONS = ("auto", "roulette", "compressed", "stochastic_trial", "hybrid", "acceptance_tournament")
_DEPOSITS = ("all", "elitist", "ranked", "best_worst")
RANKED = 6  # weight of the best tour so far in Bullnheimer, Hartl and Strauss (1999)


class GPUAS(AntColony):
    """Ant System (Dorigo, Maniezzo, Colorni 1996) with the selection rules of the two Hiroshima papers.

    Every ant deposits 1 / its length on its edges unless ``deposit`` says otherwise. As in the papers there are no
    candidate lists and no local search by default, one ant a city, alpha 1, beta 2, rho 0.5.

    Parameters
    ----------
    n_ants, alpha, beta, rho, candidate_list_size, local_search, pheromone : see ``AntColony``.
    selection : "roulette" (without compression), "compressed", "stochastic_trial", "hybrid" and "auto" draw from
        the same distribution, Eq. (2); with candidate lists they are computed alike. "acceptance_tournament" is exact
        until ``switch``, then draws from a tournament, which favours near cities less; it needs
        ``candidate_list_size=None``.
    trials : draws of a trial or acceptance before the exact fallback, >= 1. Default 8 (w of the paper).
    switch : share of visited cities, in [0, 1], at which "hybrid" and "acceptance_tournament" change their rule.
        None: 0.85 and 0.99.
    tournament_size : cities in a tournament, >= 1. None: 4 up to 1002 cities, 8 up to 2392, 16 above.
    deposit : who deposits: "all" ants 1 / their lengths; "elitist": and the best tour so far e / its length (Dorigo et
        al. 1996); "ranked": the best w - 1 ants, weighted w - 1, w - 2, .. 1, and the best so far w (Bullnheimer, Hartl
        and Strauss 1999); "best_worst": the best so far alone, while the iteration's worst takes away 1 / its length
        (after Cordon, Fernandez de Viana and Herrera 2002, without mutation and restarts: it concentrates soon).
    best_weight : e or w, or what the best so far counts against the worst, in [1, 1048576]. None: as many as there are
        ants, 6 and 1. It must be None with "all".
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
        "deposit",
        "best_weight",
    )

    def __init__(
        self,
        n_ants: Any = None,
        *,
        alpha: Any = 1.0,
        beta: Any = 2.0,
        rho: Any = 0.5,
        candidate_list_size: Any = None,
        local_search: Any = False,
        pheromone: str = "auto",
        selection: str = "auto",
        trials: Any = 8,
        switch: Any = None,
        tournament_size: Any = None,
        deposit: str = "all",
        best_weight: Any = None,
        **common: Any,
    ) -> None:
        super().__init__(
            n_ants=n_ants,
            alpha=alpha,
            beta=beta,
            rho=rho,
            candidate_list_size=candidate_list_size,
            local_search=local_search,
            pheromone=pheromone,
            **common,
        )
        self.selection = selection
        self.trials = trials
        self.switch = switch
        self.tournament_size = tournament_size
        self.deposit = deposit
        self.best_weight = best_weight
        self._check()

    def _parameters(self) -> ColonyParameters:
        return ColonyParameters(
            **self._common(),
            selection=checks.choice("selection", get(self.selection), _SELECTIONS),
            trials=get(self.trials),
            switch=get(self.switch),
            tournament_size=get(self.tournament_size),
        )

    def _check(self) -> None:
        super()._check()
        rule = checks.choice("deposit", get(self.deposit), _DEPOSITS)
        weight = checks.optional_integer("best_weight", get(self.best_weight), 1, 1 << 20)
        if rule == "all" and weight is not None:
            raise ValueError(
                f"best_weight must be None with deposit='all', where the best has none, got {weight}"
            )

    def _first_trail(self, n: int) -> float:
        return float(n)  # n / C_g, Eq. (1), Uchida et al. 2012

    def _start_from(self, told: Tours) -> None:
        # the given tours are this generation's ants
        self._accept(told)
        self._best_tour, self._best_length = told.best()
        self._deposit_as_told(told)

    def _learn(self, told: Tours) -> None:
        if not self._by_objective:
            super()._learn(told)
            return
        tour, length = told.best()
        if length < self._best_length:
            self._best_tour, self._best_length = tour, length
        self._deposit_as_told(told)

    def _deposit_as_told(self, told: Tours) -> None:
        """Let these tours deposit as a colony's would, by what was told of them: the engine knows distances alone."""
        update = self._deposits().written_out(told.rows.astype(np.int32), told.lengths)
        self.engine.update_trails(update)

    def _update(self, tour: NDArray[np.int32], length: float, improved: bool) -> None:
        self.engine.update_trails(self._deposits())

    def _deposits(self) -> TrailUpdate:
        """Who deposits after an iteration, the best tour so far being known."""
        rule, weight = get(self.deposit), get(self.best_weight)
        if rule == "all":
            # Eqs. (4) to (6), Uchida et al. 2012: evaporation, then every ant deposits 1 / C_k
            return self._trail_update(colony_amount=self._unit)
        if weight is None:
            weight = {"elitist": self.engine.n_ants, "ranked": RANKED, "best_worst": 1}[rule]
        best = ((self._best_tour, int(weight) * self._amount(self._best_length)),)
        if rule == "elitist":
            return self._trail_update(deposits=best, colony_amount=self._unit)
        if rule == "ranked":
            # rank r of 1 .. w-1 deposits (w - r) / C_r, the best so far w / C
            ranks = range(1, min(int(weight), self.engine.n_ants + 1))
            return self._trail_update(
                deposits=best, ranked=tuple(self._unit * (weight - rank) for rank in ranks)
            )
        return self._trail_update(deposits=best, worst_amount=-self._unit)
