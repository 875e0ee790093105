"""MAX-MIN Ant System."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem
from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, Word
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.candidates.exact import MOST_CITIES
from pymoo_gpuaco.colony.parameters import CONSTRUCTIONS, TABUS, ColonyParameters
from pymoo_gpuaco.colony.selection import offered_by
from pymoo_gpuaco.colony.trails import best_so_far_deposits, trail_limits
from pymoo_gpuaco.host.notices import warn_once
from pymoo_gpuaco.problems.tsp import TSP

_SELECTIONS = offered_by("GPUMMAS")
# Candidates of focused ants, and tours a city that they may search without a better one while they anneal.
_FOCUSED_CANDIDATES, _PATIENCE = 8, 5000
_DEPOSITS = ("schedule", "iteration_best", "global_best")
# A city of a converged colony has two edges with trail, one where direction counts.
_LAMBDA, _CONVERGED = 0.05, 1.01


@dataclass(kw_only=True, eq=False, repr=False)
class GPUMMAS(AntColony):
    """MAX-MIN Ant System (Stuetzle and Hoos, FGCS 16, 2000) in the GPU form of Skinderowicz (2020).

    By default, ``GPUMMAS()``, ants build no whole tours: they change good tours in a few places and repair them there,
    thousands side by side (window search), on every kind of `TSP`; up to 12 cities they are handed the best tour, which
    is found at once. For other problems, and when an argument that only whole tours know is given, such as ``n_ants``,
    it is the colony of the papers, and a logged line says so.

    In both only the iteration's or the best tour deposits, and trails stay within [tau_min, tau_max], which follow the
    best length. When the trails have converged and nothing improves, they start again from tau_max.

    Parameters
    ----------
    construction : "full", every ant builds a whole tour (the paper); "focused", ants change good tours in a few
        places and repair them there, thousands side by side (window search); "auto" (default) is "focused" for
        a `TSP`, unless an argument is given that only whole tours know: ``n_ants``, ``candidate_list_size``,
        ``local_search``, ``pheromone``, ``selection`` or ``tabu``.
    n_ants, alpha, beta, candidate_list_size, candidates, local_search, pheromone : see ``AntColony``. Focused ants are
        windows on CUDA, and on the CPU tours or parts of one; ``n_ants`` of them are searched at a time (None: on CUDA
        what keeps the device busy, on the CPU what pays in the time of the run, else one for each thread, at least
        two). They look at up to 8 candidates a city; with "focused" the other arguments of whole tours raise.
    rho : evaporation rate in (0, 1]. Default 0.35.
    selection : "wrs" (weighted reservoir sampling) or "rwm" (roulette wheel), the same distribution; "auto" takes
        the faster one.
    tabu : "compact", "list" or "bitmask": how a GPU remembers visited cities (section 4.1 of the paper). Results
        do not depend on it, and the CPU engine has a layout of its own.
    p_best : probability in (0, 1) that converged ants rebuild the best tour; sets tau_min. Default 0.05.
    deposit : "iteration_best", "global_best", or "schedule" (default): the iteration's best at first, the best so far
        more and more often.
    restart_after : iterations without a better tour after which converged trails are reset, >= 1. Default 250.

    All arguments of ``AntColony``, ``EngineAlgorithm`` and ``TourAlgorithm`` besides.

    Source: R. Skinderowicz, "Implementing a GPU-based parallel MAX-MIN Ant System", FGCS 106 (2020),
    doi:10.1016/j.future.2020.01.011.
    """

    rho: Number = 0.35
    construction: Word = "auto"
    selection: Word = "auto"
    tabu: Word = "auto"
    p_best: Number = 0.05
    deposit: Word = "schedule"
    restart_after: Count = 250

    _kept_tours: ClassVar[tuple[str, ...]] = (*AntColony._kept_tours, "_recent_tour")

    def _parameters(self) -> ColonyParameters:
        common = self._common()
        if self._focused():
            # windows on one engine, whole tours on the other: a run that changes engines takes as many as suit it
            common["n_ants"] = get(self.n_ants)
        return ColonyParameters(
            **common,
            selection=checks.choice("selection", get(self.selection), _SELECTIONS),
            tabu=checks.choice("tabu", get(self.tabu), TABUS),
            construction="focused" if self._focused() else "full",
        )

    def _focused(self) -> bool:
        """Whether ants change good tours, for the problem at hand; without one, whether they are told to."""
        wanted = checks.choice("construction", get(self.construction), ("auto", *CONSTRUCTIONS))
        if self._by_objective:  # windows know lengths alone
            return False
        if wanted != "auto" or self.problem is None:
            return wanted == "focused"
        if isinstance(self.problem, TSP) and self.problem.demands is not None:
            return not self._only_of_whole_tours()  # whose ants would refuse
        return isinstance(self.problem, TSP) and not self._hints_at_whole_tours()

    def _hints_at_whole_tours(self) -> list[str]:
        """Arguments that are given and that "auto" takes as a wish for ants which build whole tours."""
        given = {
            "n_ants": get(self.n_ants) is not None,
            "candidate_list_size": get(self.candidate_list_size) != AntColony.candidate_list_size,
            "pheromone": get(self.pheromone) != "auto",
        }
        given |= dict.fromkeys(self._only_of_whole_tours(), True)
        return [name for name, is_given in given.items() if is_given]

    def _setup(self, problem: Problem, **kwargs: Any) -> None:
        super()._setup(problem, **kwargs)
        hints = self._hints_at_whole_tours()
        if get(self.construction) == "auto" and hints and isinstance(self.problem, TSP):
            told = ", ".join(f"{name}={get(getattr(self, name))!r}" for name in hints)
            # a warning: of the two algorithms the user gets the one that is not the default, and nothing else shows it
            are = "is an argument" if len(hints) == 1 else "are arguments"
            warn_once(
                f"GPUMMAS builds whole tours here, as {told} {are} of ants that do. By default ants change good tours "
                "in a few places, which mostly finds shorter ones; construction='full' or 'focused' chooses without "
                "this line"
            )

    def _only_of_whole_tours(self) -> list[str]:
        """Arguments that are given and that only ants which build whole tours know."""
        given = {
            "candidate_list_size": get(self.candidate_list_size) is None,  # all cities are weighed
            "local_search": get(self.local_search) is not True,
            "pheromone": get(self.pheromone) == "dense",
            "selection": get(self.selection) != "auto",
            "tabu": get(self.tabu) != "auto",
        }
        return [name for name, is_given in given.items() if is_given]

    def _candidates(self) -> int:
        k = super()._candidates()
        return min(k, _FOCUSED_CANDIDATES) if self._focused() else k

    def _kind_of_candidates(self) -> str:
        kind = super()._kind_of_candidates()
        if not self._focused():
            return kind
        if self.problem.n_var <= MOST_CITIES:
            return "nearest"  # the best tour is found without candidates
        # the engine of focused ants finds those of least alpha by itself, among these
        return "quadrant" if get(self.candidates) in ("auto", "alpha") else kind

    @property
    def patience(self) -> int:
        """Tours without a shorter one that are no stagnation yet."""
        return _PATIENCE * self.instance.n if self._focused() else 0

    def _check(self) -> None:
        super()._check()
        if get(self.construction) == "focused":
            unknown = self._only_of_whole_tours()
            if unknown:
                raise ValueError(
                    f"construction='focused' builds no whole tours and has no use for {unknown[0]}="
                    f"{get(getattr(self, unknown[0]))!r}: leave it out, or take construction='full'"
                )
        checks.real("p_best", get(self.p_best), 0.0, 1.0, open_low=True, open_high=True)
        checks.choice("deposit", get(self.deposit), _DEPOSITS)
        checks.integer("restart_after", get(self.restart_after), 1)

    def _limits(self, length: float) -> tuple[float, float]:
        """tau_min and tau_max for a best tour of ``length``."""
        choices = get(self.candidate_list_size) or self.instance.n
        return trail_limits(
            length / self._unit,
            self.instance.n,
            float(choices),
            float(get(self.rho)),
            float(get(self.p_best)),
        )

    def _first_trail(self, n: int) -> float:
        # Fig. 1, line 2 of the paper: tau_max of the nearest-neighbour tour
        self._start_search_again()
        return self._limits(self._unit)[1]

    def _start_search_again(self) -> None:
        self._iteration = 0
        self._idle = 0
        self._recent_tour = np.empty(0, np.int32)
        self._recent_length = float("inf")

    def _update(self, tour: NDArray[np.int32], length: float, improved: bool) -> None:
        if length < self._recent_length:
            self._recent_tour, self._recent_length, self._idle = tour, length, 0
        else:
            self._idle += 1
        tau_min, tau_max = self._limits(self._best_length)
        rule = get(self.deposit)
        if rule == "global_best":
            tour, length = self._best_tour, self._best_length
        elif rule == "schedule" and best_so_far_deposits(self._iteration):
            tour, length = self._recent_tour, self._recent_length
        self._apply(deposits=((tour, self._amount(length)),), tau_min=tau_min, tau_max=tau_max)
        self._iteration += 1
        patience = int(get(self.restart_after))
        if self._idle >= patience and self._idle % patience == 0:
            edges = 2 if self.instance.symmetric else 1
            if self.engine.branching_factor(_LAMBDA) <= _CONVERGED * edges:
                self.engine.reset_trails(tau_max)
                self._start_search_again()
