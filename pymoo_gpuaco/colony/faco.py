"""Parameters of Focused ACO: validated and immutable; no device and no pymoo."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony.parameters import LocalSearch, number_of
from pymoo_gpuaco.colony.trails import TrailUpdate, trail_limits

NO_SEARCH = -1


@dataclass(frozen=True)
class FacoParameters:
    """Parameters of one colony of Focused ACO; ``None`` selects the documented rule of the engine.

    Parameters
    ----------
    n_ants : m, ants of an iteration, >= 1, or None: 4 sqrt(n) to the next multiple of 32.
    alpha, beta : exponents of trail and of 1 / distance, in [0, 20].
    rho : evaporation rate in (0, 1].
    candidate_list_size : k, cities an ant draws from, in [1, 1024].
    backup_list_size : further near cities, of which an ant takes the nearest unvisited one, >= 0.
    min_new_edges : number of edges not in the source tour that an ant adds before it copies the rest, >= 1.
    p_best : probability in (0, 1) that sets tau_min.
    best_as_source : probability in [0, 1] that the best tour is the next source, instead of the iteration's best.
    local_search : 2-opt or 2-opt and Or-opt, without kicks, or None.
    """

    n_ants: int | None = None
    alpha: float = 1.0
    beta: float = 1.0
    rho: float = 0.5
    candidate_list_size: int = 16
    backup_list_size: int = 64
    min_new_edges: int = 8
    p_best: float = 0.1
    best_as_source: float = 0.01
    local_search: LocalSearch | None = None

    def __post_init__(self) -> None:
        """Validate."""
        checks.optional_integer("n_ants", self.n_ants, 1, 1 << 20)
        checks.real("alpha", self.alpha, 0.0, 20.0)
        checks.real("beta", self.beta, 0.0, 20.0)
        checks.real("rho", self.rho, 0.0, 1.0, open_low=True)
        checks.integer("candidate_list_size", self.candidate_list_size, 1, 1024)
        checks.integer("backup_list_size", self.backup_list_size, 0, 1024)
        checks.integer("min_new_edges", self.min_new_edges, 1, 64)
        checks.real("p_best", self.p_best, 0.0, 1.0, open_low=True, open_high=True)
        checks.real("best_as_source", self.best_as_source, 0.0, 1.0)
        search = self.local_search
        if search is not None and (search.in_windows or search.kicks):
            raise ValueError(
                f"local_search must be True, False, '2opt', '2opt+oropt' or a LocalSearch without kicks, got {search!r}"
            )

    @property
    def moves(self) -> int:
        """Code of the moves of the local search, see ``number_of``, or ``NO_SEARCH``."""
        return NO_SEARCH if self.local_search is None else number_of(self.local_search.moves)

    @property
    def capacity(self) -> int:
        """Maximum number of segments of a tour, a multiple of 32."""
        return 32 * math.ceil((96 + 8 * self.min_new_edges) / 32)

    def resolved_ants(self, n: int) -> int:
        """Return the number of ants for n cities: as given, else 4 sqrt(n) (section 4, Skinderowicz 2022)."""
        return 32 * math.ceil(4.0 * math.sqrt(n) / 32) if self.n_ants is None else int(self.n_ants)

    def limits(self, best_length: float, k: int) -> tuple[float, float]:
        """Return tau_min and tau_max for a best tour of this length, in the unit of trails.

        After convergence an ant leaves the best tour at few steps. Therefore the limits of MMAS are computed for k
        cities and k choices instead of n (Skinderowicz 2022), which gives a far higher tau_min.
        """
        return trail_limits(best_length, k, 2.0 * k, float(self.rho), float(self.p_best))

    def update(self, tour: NDArray[np.int32], amount: float, limits: tuple[float, float]) -> TrailUpdate:
        """Return the pheromone update of an iteration, with a deposit of the new source only."""
        return TrailUpdate(float(self.rho), ((tour, amount),), tau_min=limits[0], tau_max=limits[1])
