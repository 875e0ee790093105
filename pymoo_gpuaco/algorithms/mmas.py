"""MAX-MIN Ant System."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, Word
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.colony.selection import check_selection
from pymoo_gpuaco.colony.trails import best_so_far_deposits, branching_factor, trail_limits

_DEPOSITS = ("schedule", "iteration_best", "global_best")
_TAU_MINS = ("candidates", "cities", "2n")
# Branching factor below which a colony has converged, as a multiple of the minimum: 2 edges a city, 1 if asymmetric.
_CONVERGED = 1.01


@dataclass(kw_only=True, eq=False, repr=False)
class GPUMMAS(AntColony):
    """MAX-MIN Ant System (Stuetzle and Hoos, FGCS 16, 2000) in the GPU form of Skinderowicz (2020).

    Only the iteration's best tour or the best so far deposits. Trails are limited to [tau_min, tau_max], which depend
    on the best length. If the trails have converged and the search stagnates, all trails are reset to tau_max.

    Parameters
    ----------
    n_ants, alpha, beta, candidate_list_size, candidates, local_search, pheromone : see ``AntColony``.
    rho : evaporation rate in (0, 1]. Default 0.35.
    selection : "wrs" (weighted reservoir sampling) or "rwm" (roulette wheel), the same distribution; "auto" selects
        the faster one. A function draws for all ants at once, on the CPU: see the page "Write your own colony".
    tabu : "compact", "list" or "bitmask": layout of the visited cities on a GPU (section 4.1 of the paper). Results
        do not depend on it; the CPU engine has one layout.
    p_best : probability in (0, 1) that converged ants rebuild the best tour; sets tau_min. Default 0.05.
    tau_min : tau_min of Eq. (11) with c, the mean number of choices, as half of the "candidates" (default) or of all
        "cities" (the original paper); or "2n": tau_max / (2 n), the original paper with local search.
    deposit : "iteration_best", "global_best", or "schedule" (default): at first the iteration's best, with increasing
        frequency the best since the last restart. An integer k >= 1: that best in every k-th iteration.
    restart_after : iterations without a better tour after which converged trails are reset, >= 1. Default 250.
    smoothing : delta in (0, 1]: the reset moves trails towards tau_max, tau <- tau + delta (tau_max - tau). Default 1.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Source: R. Skinderowicz, "Implementing a GPU-based parallel MAX-MIN Ant System", FGCS 106 (2020),
    doi:10.1016/j.future.2020.01.011.
    """

    rho: Number = 0.35
    selection: Word | Callable[..., Any] = "auto"
    tabu: Word = "auto"
    p_best: Number = 0.05
    tau_min: Word = "candidates"
    deposit: Word | Count = "schedule"
    restart_after: Count = 250
    smoothing: Number = 1.0

    _stored_tours: ClassVar[tuple[str, ...]] = (*AntColony._stored_tours, "_recent_tour")

    @classmethod
    def _refuse_unknown(cls, given: Iterable[str], known: Iterable[str]) -> None:
        if "construction" in given:
            raise TypeError(
                f"{cls.__name__} has no argument 'construction': use GPUMemetic() for the search of "
                "construction='focused'"
            )
        super()._refuse_unknown(given, known)

    def _check(self) -> None:
        check_selection(get(self.selection), "GPUMMAS")
        super()._check()
        checks.real("p_best", get(self.p_best), 0.0, 1.0, open_low=True, open_high=True)
        checks.choice("tau_min", get(self.tau_min), _TAU_MINS)
        deposit = get(self.deposit)
        if isinstance(deposit, (int, np.integer)) and not isinstance(deposit, bool):
            checks.integer("deposit", deposit, 1)
        else:
            checks.choice("deposit", deposit, _DEPOSITS, "an integer >= 1")
        checks.integer("restart_after", get(self.restart_after), 1)
        checks.real("smoothing", get(self.smoothing), 0.0, 1.0, open_low=True)

    def _limits(self, length: float) -> tuple[float, float]:
        """Return tau_min and tau_max for a best tour of ``length``."""
        n, form = self.instance.n, get(self.tau_min)
        # lists with ties, for a custom objective, may be longer
        choices = n if form == "cities" else max(get(self.candidate_list_size) or n, self.instance.k)
        rho, p_best = float(get(self.rho)), float(get(self.p_best))
        tau_min, tau_max = trail_limits(length / self._unit, n, float(choices), rho, p_best)
        # section 5, Stuetzle and Hoos 2000
        return (tau_max / (2 * n) if form == "2n" else tau_min), tau_max

    def _first_trail(self, n: int) -> float:
        # Fig. 1, line 2 of the paper: tau_max of the nearest-neighbour tour
        self._reset_search()
        return self._limits(self._unit)[1]

    def _reset_search(self) -> None:
        self._iteration = 0
        self._idle = 0
        self._recent_tour = np.empty(0, np.int32)
        self._recent_length = float("inf")

    def _update(self, evaluated: Permutations) -> None:
        tour, length = evaluated.best()
        if length < self._recent_length:
            self._recent_tour, self._recent_length, self._idle = tour, length, 0
        else:
            self._idle += 1
        tau_min, tau_max = self._limits(self._cost(self._best_length))
        rule = get(self.deposit)
        if rule == "global_best":
            tour, length = self._best_tour, self._best_length
        elif best_so_far_deposits(self._iteration, rule):
            tour, length = self._recent_tour, self._recent_length
        self._apply(evaluated, deposits=((tour, self._amount(length)),), tau_min=tau_min, tau_max=tau_max)
        self._iteration += 1
        patience = int(get(self.restart_after))
        if self._idle >= patience and self._idle % patience == 0:
            edges = 2 if self.instance.symmetric else 1
            if branching_factor(self.trails("candidates")) <= _CONVERGED * edges:
                self._smooth(tau_max)
                self._reset_search()

    def _smooth(self, tau_max: float) -> None:
        """Move all trails towards tau_max (trail smoothing, Stuetzle and Hoos 2000); delta = 1 resets them."""
        delta = float(get(self.smoothing))
        if delta == 1.0:
            self.engine.reset_trails(tau_max)
            return
        state = self.engine.export_state()
        moved = {
            name: state[name] + np.float32(delta) * (np.float32(tau_max) - state[name])
            for name in ("tau", "rest")
        }
        self.engine.import_state({**state, **moved})
