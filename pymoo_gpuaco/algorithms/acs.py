"""Ant Colony System."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Flag, Number, Word
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.colony.selection import ACS

_VARIANTS = ("sync", "relaxed", "selective")
_LONGEST_LIST = 1024


@dataclass(kw_only=True, eq=False, repr=False)
class GPUACS(AntColony):
    """Ant Colony System (Dorigo and Gambardella 1997) in the three parallel forms of Skinderowicz (2016).

    Ants take the best candidate with probability q0, and each edge they take loses some of its trail (local
    update), so that others choose other edges. Only the best tour so far is reinforced.

    Parameters
    ----------
    rho : global evaporation in (0, 1]. Default 0.1.
    candidate_list_size : see ``AntColony``; None: the lists have all cities, for at most 1025 cities.
    variant : "sync" (default): all ants make each step together; "relaxed": each ant builds its whole tour, while
        other ants change the trails; "selective": relaxed, with ``trails_per_node`` trails a city, O(n) memory.
    q0 : probability of the greedy choice, in [0, 1]. Default 0.9.
    xi : local evaporation in [0, 1]; 0: no local update. None (default): 0.1 for up to 24 ants, for more ants
        2.4 ``local_update_period`` / ``n_ants``, at most 0.1.
    local_update_period : k >= 1: an ant makes the local update on every k-th edge of its tour. Default 1.
    trails_per_node : size of the ring of trails of a city in the selective memory, in [1, 1024]. Default 8.
    deterministic : True makes every variant reproducible from its seed. Only "relaxed" and "selective" on CUDA need it:
        their ants then build tours one after another, which takes m times as long. Default False.

    All arguments of ``AntColony`` and ``PermutationAlgorithm`` are also available.

    Source: R. Skinderowicz, "The GPU-based parallel Ant Colony System", JPDC 98 (2016),
    doi:10.1016/j.jpdc.2016.04.014.
    """

    rho: Number = 0.1
    variant: Word = "sync"
    q0: Number = 0.9
    xi: Number | None = None
    local_update_period: Count = 1
    trails_per_node: Count = 8
    deterministic: Flag = False

    def _parameters(self, **others: Any) -> Any:
        variant = checks.choice("variant", get(self.variant), _VARIANTS)
        if get(self.candidate_list_size) is None:
            others["candidate_list_size"] = _LONGEST_LIST
            if self.problem is not None and self.problem.n_var > _LONGEST_LIST + 1:
                raise ValueError(
                    f"candidate_list_size must be an integer in [1, {_LONGEST_LIST}] for GPUACS with more than "
                    f"{_LONGEST_LIST + 1} cities, got None for {self.problem.n_var}"
                )
        if variant == "selective":
            if get(self.pheromone) != "auto":
                raise ValueError(
                    "variant='selective' defines the pheromone memory: "
                    f"pheromone must be 'auto', got {get(self.pheromone)!r}"
                )
            others["memory"] = "selective"
        return super()._parameters(selection=ACS, together=variant == "sync", **others)

    def _candidates(self) -> tuple[int, str]:
        return int(get(self.candidate_list_size) or _LONGEST_LIST), super()._candidates()[1]

    def _first_trail(self, n: int) -> float:
        return 1.0 / n  # tau_0 = 1 / (n C_g), Dorigo and Gambardella 1997

    def _update(self, evaluated: Permutations) -> None:
        # Eq. (4), Skinderowicz 2016: evaporation and deposit on the edges of the best tour so far only
        self._apply(
            evaluated, deposits=((self._best_tour, self._amount(self._best_length)),), on_tours_only=True
        )
