"""Ant Colony System."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.colony.parameters import ColonyParameters

_VARIANTS = ("sync", "relaxed", "selective")


class GPUACS(AntColony):
    """Ant Colony System (Dorigo and Gambardella 1997) in the three parallel forms of Skinderowicz (2016).

    Ants take the best candidate with probability q0, and each edge they take loses some of its trail (local
    update), so that others look elsewhere. Only the best tour so far is reinforced.

    Parameters
    ----------
    n_ants, alpha, beta, candidate_list_size, candidates, local_search, pheromone : see ``AntColony``.
    rho : global evaporation in (0, 1]. Default 0.1.
    variant : "sync" (default): all ants make one step, then all the next; "relaxed": each ant walks its whole tour, on
        trails that change meanwhile; "selective": relaxed, with ``trails_per_node`` trails a city, O(n) memory.
    q0 : probability of the greedy choice, in [0, 1]. Default 0.9.
    xi : local evaporation in [0, 1]; 0 leaves trails alone while ants walk. None (default): 0.1 for up to 24 ants, and
        in proportion less for more, 2.4 ``local_update_period`` / ``n_ants`` (never above 0.1).
    local_update_period : the local update is made on every which edge an ant takes, >= 1. Default 1.
    trails_per_node : ring of the selective memory, in [1, 1024]. Default 8.
    deterministic : True repeats a run from its seed, whatever the variant. Only "relaxed" and "selective" on CUDA need
        it: their ants then walk one after another, which takes m times as long. Default False.
    sampling, n_elites, backend, device, **pymoo_arguments : see ``TourAlgorithm``.

    Source: R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016),
    doi:10.1016/j.jpdc.2016.04.014.
    """

    arguments = (
        *AntColony.arguments,
        "variant",
        "q0",
        "xi",
        "local_update_period",
        "trails_per_node",
        "deterministic",
    )

    def __init__(
        self,
        n_ants: Any = None,
        *,
        alpha: Any = 1.0,
        beta: Any = 2.0,
        rho: Any = 0.1,
        candidate_list_size: Any = 32,
        candidates: Any = "auto",
        local_search: Any = True,
        pheromone: str = "auto",
        variant: str = "sync",
        q0: Any = 0.9,
        xi: Any = None,
        local_update_period: Any = 1,
        trails_per_node: Any = 8,
        deterministic: Any = False,
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
        self.variant = variant
        self.q0 = q0
        self.xi = xi
        self.local_update_period = local_update_period
        self.trails_per_node = trails_per_node
        self.deterministic = deterministic
        self._check()

    def _parameters(self) -> ColonyParameters:
        variant = checks.choice("variant", get(self.variant), _VARIANTS)
        common = self._common()
        if common["candidate_list_size"] is None:
            raise ValueError("candidate_list_size must be an integer in [1, 1024] for GPUACS, got None")
        if variant == "selective":
            if get(self.pheromone) != "auto":
                raise ValueError(
                    "variant='selective' is a pheromone memory of its own: "
                    f"pheromone must be 'auto', got {get(self.pheromone)!r}"
                )
            common["memory"] = "selective"
        return ColonyParameters(
            **common,
            selection="pseudo_random_proportional",
            q0=get(self.q0),
            xi=get(self.xi),
            local_update_period=get(self.local_update_period),
            together=variant == "sync",
            trails_per_node=get(self.trails_per_node),
            deterministic=get(self.deterministic),
        )

    def _first_trail(self, n: int) -> float:
        return 1.0 / n  # tau_0 = 1 / (n C_g), Dorigo and Gambardella 1997

    def _update(self, tour: NDArray[np.int32], length: float, improved: bool) -> None:
        # Eq. (4), Skinderowicz 2016: only the edges of the best tour so far
        self._apply(deposits=((self._best_tour, self._amount(self._best_length)),), on_tours_only=True)
