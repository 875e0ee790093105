"""Best-Worst Ant System."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.ant_system import DepositingColony
from pymoo_gpuaco.algorithms.arguments import Count, Number
from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.algorithms.colony import Search
from pymoo_gpuaco.colony.trails import LEAST_MUTATED, TrailUpdate, draw_mutations, edges_apart


@dataclass(kw_only=True, eq=False, repr=False)
class GPUBWAS(DepositingColony):
    """Best-Worst Ant System (Cordon, Fernandez de Viana, Herrera, Moreno 2000).

    The best tour so far deposits; edges of the iteration's worst tour that are not in it evaporate once more; some
    trails mutate, more strongly later in the run. If best and worst tour have nearly the same edges, all trails start
    again. Defaults are the paper's: alpha 1, beta 2, rho 0.2, P_m 0.3, sigma 4, with 20 candidates and local search.

    Parameters
    ----------
    mutation_probability : P_m, share of the cities for which the trail of one random edge mutates, in [0, 1].
    mutation_strength : sigma, the largest change of a trail by mutation, in mean trails of the best tour's edges, in
        [0, 1000]. It grows from 0, again after every restart.
    mutation_iterations : N_it, the iteration from which mutations have their full strength, >= 1. In the paper it
        is the length of the run.
    restart_below : share of differing edges below which trails start again, in [0, 1]. 0: never.

    All arguments of ``AntColony``, ``EngineAlgorithm`` and ``TourAlgorithm`` are also available.

    Source: O. Cordon, I. Fernandez de Viana, F. Herrera, L. Moreno, "A new ACO model integrating evolutionary
    computation concepts: the Best-Worst Ant System", ANTS 2000.
    """

    rho: Number = 0.2
    candidate_list_size: Count | None = 20
    local_search: Search = True
    mutation_probability: Number = 0.3
    mutation_strength: Number = 4.0
    mutation_iterations: Count = 1000
    restart_below: Number = 0.05

    def _check(self) -> None:
        super()._check()
        checks.real("mutation_probability", get(self.mutation_probability), 0.0, 1.0)
        checks.real("mutation_strength", get(self.mutation_strength), 0.0, 1000.0)
        checks.integer("mutation_iterations", get(self.mutation_iterations), 1)
        checks.real("restart_below", get(self.restart_below), 0.0, 1.0)

    def _begin(self) -> None:
        super()._begin()
        self._iteration = 0  # since the run began
        self._restarted = 0  # iteration of the last restart
        self._mutation_key = self._draw_key()

    def _first_trail(self, n: int) -> float:
        return 1.0 / n  # tau_0 = 1 / (n C_g)

    def _deposits(self) -> TrailUpdate:
        # Cordon et al. 2000: tau <- (1 - rho) tau, then the best tour so far deposits 1 / C
        return self._trail_update(deposits=((self._best_tour, self._amount(self._best_length)),))

    def _update(self, tour: NDArray[np.int32], length: float, improved: bool) -> None:
        super()._update(tour, length, improved)
        self._learn_from_worst(self.engine.tours([int(self.engine.lengths().argmax())])[0])

    def _deposit_by_objective(self, evaluated: Tours) -> None:
        self.engine.update_trails(self._deposits())
        self._learn_from_worst(evaluated.rows[int(evaluated.lengths.argmax())].astype(np.int32))

    def _learn_from_worst(self, worst: NDArray[np.int32]) -> None:
        """Weaken the edges that only the worst tour has, then reset or mutate the trails."""
        self._iteration += 1
        worst_only = edges_apart(worst, self._best_tour, self.instance.symmetric)
        # Cordon et al. 2000: tau <- (1 - rho) tau on the edges of the worst tour that are not in the best
        self.engine.set_trails(worst_only, (1.0 - float(get(self.rho))) * self.engine.trails_of(worst_only))
        # Cordon et al. 2000: the search has run dry when best and worst have nearly the same edges
        if len(worst_only) < float(get(self.restart_below)) * self.instance.n:
            self.engine.reset_trails(self._first_trail(self.instance.n))
            self._restarted = self._iteration
        else:
            self._mutate()

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
        """Return (it - it_r) / (N_it - it_r), Cordon et al. 2000, where it_r is the iteration of the last reset."""
        left = int(get(self.mutation_iterations)) - self._restarted
        return min(1.0, (self._iteration - self._restarted) / left) if left > 0 else 1.0
