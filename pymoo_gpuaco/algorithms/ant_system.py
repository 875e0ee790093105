"""Ant System and its variants: elitist, rank-based and best-worst."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, Word
from pymoo_gpuaco.algorithms.colony import AntColony, Search
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.colony.selection import check_selection
from pymoo_gpuaco.colony.trails import LEAST_MUTATED, draw_mutations, edges_apart

FIRST_TRAILS = 1e-9, 1e9  # least and largest ``first_trail``
_UNKNOWN_RUN = 1000  # iterations of a run whose length is unknown


def _given_or(given: Any, published: float) -> float:
    """Return the first trail in units of 1 / C_g: the argument, or tau_0 of the source."""
    return published if get(given) is None else float(get(given))


@dataclass(kw_only=True, eq=False, repr=False)
class GPUAS(AntColony):
    """Ant System (Dorigo, Maniezzo, Colorni 1996) with the selection rules of the two Hiroshima papers.

    Every ant deposits 1 / length of its tour on its edges. Defaults are those of the papers: no candidate lists and no
    local search, one ant a city, alpha 1, beta 2, rho 0.5.

    Parameters
    ----------
    selection : "auto", or a rule of the table on the page of ``GPUAS``, such as "roulette", or a function as in
        ``GPUMMAS``. Exact rules draw from the
        distribution of Eq. (2); with candidate lists they share one implementation. "acceptance_tournament" is exact
        until ``switch``, then draws by tournament, which favours near cities less; it requires
        ``candidate_list_size=None``.
    trials : maximum draws of a trial or acceptance rule before the exact rule, >= 1. Default 8 (w of the paper).
    switch : share of visited cities, in [0, 1], at which "hybrid" and "acceptance_tournament" change their rule.
        None: 0.85 and 0.99.
    tournament_size : cities in a tournament, >= 1. None: 4 up to 1002 cities, 8 up to 2392, 16 above.
    first_trail : trail at the start, in units of 1 / C_g, in [1e-9, 1e9]. None: n, as in Eq. (1) of Uchida et al.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Sources: A. Uchida, Y. Ito, K. Nakano, "An Efficient GPU Implementation of Ant Colony Optimization for the
    Traveling Salesman Problem", ICNC 2012; R. Murooka, Y. Ito, K. Nakano, "GPU-accelerated Ant Colony Optimization
    for the Traveling Salesman Problem" (in Japanese).
    """

    rho: Number = 0.5
    candidate_list_size: Count | None = None
    local_search: Search = False
    selection: Word | Callable[..., Any] = "auto"
    trials: Count = 8
    switch: Number | None = None
    tournament_size: Count | None = None
    first_trail: Number | None = None

    def _check(self) -> None:
        check_selection(get(self.selection), "GPUAS")
        checks.optional_real("first_trail", get(self.first_trail), *FIRST_TRAILS)
        super()._check()

    def _first_trail(self, n: int) -> float:
        return _given_or(self.first_trail, float(n))  # n / C_g, Eq. (1), Uchida et al. 2012

    def _update(self, evaluated: Permutations) -> None:
        # Eqs. (4) to (6), Uchida et al. 2012: evaporation, then every ant deposits 1 / C_k
        self._apply(evaluated, colony_amount=self._unit)


@dataclass(kw_only=True, eq=False, repr=False)
class GPUEAS(AntColony):
    """Elitist Ant System (Dorigo, Maniezzo, Colorni 1996): all ants and the best tour so far deposit.

    Every ant deposits 1 / length of its tour, the best tour so far ``elitist_weight`` times as much. Defaults are those
    of Dorigo and Stuetzle (2004), Box 3.1: one ant a city, alpha 1, beta 2, rho 0.5, no candidate lists and no local
    search.

    Parameters
    ----------
    elitist_weight : e, weight of the best tour so far, where an ant has weight 1, in [0, 1000000]. None: the number of
        cities.
    first_trail : trail at the start, in units of 1 / C_g, in [1e-9, 1e9]. None: (e + m) / rho, as in Box 3.1.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Sources: M. Dorigo, V. Maniezzo, A. Colorni, "Ant System", IEEE Transactions on Systems, Man, and Cybernetics B 26
    (1996); M. Dorigo, T. Stuetzle, "Ant Colony Optimization", MIT Press 2004, section 3.3.2.
    """

    rho: Number = 0.5
    candidate_list_size: Count | None = None
    local_search: Search = False
    elitist_weight: Number | None = None
    first_trail: Number | None = None

    def _check(self) -> None:
        super()._check()
        checks.optional_real("elitist_weight", get(self.elitist_weight), 0.0, 1e6)
        checks.optional_real("first_trail", get(self.first_trail), *FIRST_TRAILS)

    @property
    def _weight(self) -> float:
        weight = get(self.elitist_weight)
        return float(self.instance.n if weight is None else weight)  # e = n, Box 3.1

    def _first_trail(self, n: int) -> float:
        # tau_0 = (e + m) / (rho C_g), Box 3.1, Dorigo and Stuetzle 2004
        return _given_or(self.first_trail, (self._weight + self.engine.n_ants) / float(get(self.rho)))

    def _update(self, evaluated: Permutations) -> None:
        # section 3.3.2, Dorigo and Stuetzle 2004: tau <- (1 - rho) tau, then 1 / C_k by every ant and e / C by the best
        best = (self._best_tour, self._weight * self._amount(self._best_length))
        self._apply(evaluated, deposits=(best,), colony_amount=self._unit)


@dataclass(kw_only=True, eq=False, repr=False)
class GPURAS(AntColony):
    """Rank-based Ant System (Bullnheimer, Hartl, Strauss 1999): deposits are weighted by the rank of a tour.

    The best w - 1 ants of an iteration deposit, the r-th with weight w - r, and the best tour so far with weight w.
    Defaults are those of Dorigo and Stuetzle (2004), Box 3.1: one ant a city, alpha 1, beta 2, rho 0.1, w = 6, no
    candidate lists and no local search.

    Parameters
    ----------
    ranks : w, weight of the best tour so far, in [2, 1048576]; w - 1 ants deposit.
    first_trail : trail at the start, in units of 1 / C_g, in [1e-9, 1e9]. None: w (w - 1) / (2 rho), as in Box 3.1.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Sources: B. Bullnheimer, R. F. Hartl, C. Strauss, "A new rank based version of the Ant System", Central European
    Journal for Operations Research and Economics 7 (1999); M. Dorigo, T. Stuetzle, "Ant Colony Optimization", MIT Press
    2004, section 3.3.3.
    """

    rho: Number = 0.1
    candidate_list_size: Count | None = None
    local_search: Search = False
    ranks: Count = 6
    first_trail: Number | None = None

    def _check(self) -> None:
        super()._check()
        checks.integer("ranks", get(self.ranks), 2, 1 << 20)
        checks.optional_real("first_trail", get(self.first_trail), *FIRST_TRAILS)

    def _first_trail(self, n: int) -> float:
        # tau_0 = 0.5 w (w - 1) / (rho C_g), Box 3.1, Dorigo and Stuetzle 2004
        w = int(get(self.ranks))
        return _given_or(self.first_trail, 0.5 * w * (w - 1) / float(get(self.rho)))

    def _update(self, evaluated: Permutations) -> None:
        # section 3.3.3, Dorigo and Stuetzle 2004: (w - r) / C_r by the ants of rank r = 1 .. w-1, w / C by the best
        w = int(get(self.ranks))
        best = (self._best_tour, w * self._amount(self._best_length))
        ranked = tuple(self._unit * (w - rank) for rank in range(1, min(w, self.engine.n_ants + 1)))
        self._apply(evaluated, deposits=(best,), ranked=ranked)


@dataclass(kw_only=True, eq=False, repr=False)
class GPUBWAS(AntColony):
    """Best-Worst Ant System (Cordon, Fernandez de Viana, Herrera, Moreno 2000).

    The best tour so far deposits; edges of the iteration's worst tour that are not in it evaporate once more; some
    trails mutate, more strongly later in the run. If best and worst tour have nearly the same edges, all trails start
    again. Defaults are the paper's: alpha 1, beta 2, rho 0.2, P_m 0.3, sigma 4, with 20 candidates and local search.

    Parameters
    ----------
    mutation_probability : P_m, share of the cities for which the trail of one random edge mutates, in [0, 1].
    mutation_strength : sigma, the largest change of a trail by mutation, in mean trails of the best tour's edges, in
        [0, 1000]. It grows from 0, again after every restart.
    mutation_iterations : N_it, the iteration from which mutations have their full strength, >= 1. Default 1000. None:
        the length of the run, as in the paper, by the used share of its budget; 1000 without a budget.
    restart_below : share of differing edges below which trails start again, in [0, 1]. 0: never.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Source: O. Cordon, I. Fernandez de Viana, F. Herrera, L. Moreno, "A new ACO model integrating evolutionary
    computation concepts: the Best-Worst Ant System", ANTS 2000.
    """

    rho: Number = 0.2
    candidate_list_size: Count | None = 20
    local_search: Search = True
    mutation_probability: Number = 0.3
    mutation_strength: Number = 4.0
    mutation_iterations: Count | None = 1000
    restart_below: Number = 0.05

    def _check(self) -> None:
        super()._check()
        checks.real("mutation_probability", get(self.mutation_probability), 0.0, 1.0)
        checks.real("mutation_strength", get(self.mutation_strength), 0.0, 1000.0)
        checks.optional_integer("mutation_iterations", get(self.mutation_iterations), 1)
        checks.real("restart_below", get(self.restart_below), 0.0, 1.0)

    def _begin(self) -> None:
        super()._begin()
        self._iteration = 0  # since the run began
        self._restarted = 0  # iteration of the last restart
        self._used_at_restart = 0.0  # share of the run's budget at the last restart
        self._mutation_key = self._draw_key()

    def _first_trail(self, n: int) -> float:
        return 1.0 / n  # tau_0 = 1 / (n C_g)

    def _update(self, evaluated: Permutations) -> None:
        # Cordon et al. 2000: tau <- (1 - rho) tau, then the best tour so far deposits 1 / C
        self._apply(evaluated, deposits=((self._best_tour, self._amount(self._best_length)),))
        if self._evaluated_deposit():
            worst = evaluated.rows[int(evaluated.values.argmax())].astype(np.int32)
        else:
            worst = self.engine.tours([int(self.engine.lengths().argmax())])[0]
        self._learn_from_worst(worst)

    def _learn_from_worst(self, worst: NDArray[np.int32]) -> None:
        """Weaken the edges that only the worst tour has, then restart or mutate the trails."""
        self._iteration += 1
        worst_only = edges_apart(worst, self._best_tour, self.instance.symmetric)
        # Cordon et al. 2000: tau <- (1 - rho) tau on the edges of the worst tour that are not in the best
        self.engine.set_trails(worst_only, (1.0 - float(get(self.rho))) * self.engine.trails_of(worst_only))
        # Cordon et al. 2000: the search stagnates when best and worst have nearly the same edges
        if len(worst_only) < float(get(self.restart_below)) * self.instance.n:
            self._restart_trails()
        else:
            self._mutate()

    def _restart_trails(self) -> None:
        super()._restart_trails()
        self._restarted = self._iteration
        self._used_at_restart = self._progress()

    def _mutate(self) -> None:
        """Mutate trails: tau <- tau +- mut for one edge of every city drawn with P_m (Cordon et al. 2000)."""
        best = np.stack([self._best_tour, np.roll(self._best_tour, -1)], axis=1)
        # tau_threshold, mean trail of the best tour's edges
        threshold = float(self.engine.trails_of(best).mean())
        amount = self._share_of_run() * float(get(self.mutation_strength)) * threshold
        memory = self._parameters().resolved_memory(self.instance.n)
        edges, signs = draw_mutations(
            (self._mutation_key + self._iteration) % 2**64,
            float(get(self.mutation_probability)),
            self.instance.n,
            self.instance.neighbours if memory == "candidate" else None,
            self.instance.symmetric,
        )
        if amount > 0.0 and len(edges):
            mutated = self.engine.trails_of(edges) + signs * amount
            self.engine.set_trails(edges, np.maximum(mutated, LEAST_MUTATED * threshold))

    def _share_of_run(self) -> float:
        """Return (it - it_r) / (N_it - it_r), Cordon et al. 2000, where it_r is the iteration of the last restart."""
        used = self._progress()
        if get(self.mutation_iterations) is None and not math.isnan(used):
            rest = 1.0 - self._used_at_restart
            return min(1.0, max(0.0, (used - self._used_at_restart) / rest)) if rest > 0.0 else 1.0
        left = int(get(self.mutation_iterations) or _UNKNOWN_RUN) - self._restarted
        return min(1.0, (self._iteration - self._restarted) / left) if left > 0 else 1.0
