"""Parameters of the engines: validated and immutable; no device and no pymoo.

Letters as in the papers: m ants, n cities, k candidates per city, tau trail, eta = 1 / distance, rho evaporation rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony.selection import RULES, SELECTIONS, SelectionRule

#: moves of the descent to a local optimum; the index of a name is its code in kernels and compiled functions
CLIMBS = ("2opt", "2opt+oropt")
#: the moves "2opt+oropt", then window search
WINDOWS = "windows"
MOVES = (*CLIMBS, WINDOWS)
TABUS = ("auto", "compact", "list", "bitmask")
MEMORIES = ("auto", "dense", "candidate", "selective")
CANDIDATES = ("auto", "nearest", "quadrant", "alpha")
KERNELS = ("auto", "intra", "tiled", "tuned")
FEWEST_CITIES_TO_KICK = 8  # required by a double bridge
USUAL_KICK_LENGTH = 30
# Maximum neighbours of moves that preserve direction: with 32 a kick on rbg443 takes over twice as long, and tours are
# hardly shorter.
NEIGHBOURS_WITH_DIRECTION = 16
USUAL_TRIALS = 1.0  # of window search, per city
# Number of cities from which "auto" stores trails of candidate edges only: 4 n k bytes instead of 4 n^2.
CANDIDATE_MEMORY_FROM = 10_000
# Default local evaporation of ACS, and the maximum local updates of an edge per iteration for which it is used.
_XI, _UPDATES_OF_AN_EDGE = 0.1, 24


# Default number of ants without local search: one per city (Uchida et al. 2012, Skinderowicz 2020 and 2016). Two limits
# apply: the memory of the tours, some hundred megabytes, and the steps of all ants, so that a generation takes one or
# two seconds.
MOST_ANTS_BY_DEFAULT, STEPS_BY_DEFAULT, FEWEST_ANTS_BY_DEFAULT = 4096, 1 << 25, 64


def number_of(moves: str) -> int:
    """Return the code of the moves of the descent."""
    return CLIMBS.index(CLIMBS[-1] if moves == WINDOWS else moves)


def usual_ants(n: int) -> int:
    """Return the default number of ants for n cities without local search."""
    return min(n, MOST_ANTS_BY_DEFAULT, max(FEWEST_ANTS_BY_DEFAULT, STEPS_BY_DEFAULT // n))


@dataclass(frozen=True)
class LocalSearch(checks.KnownKeywords):
    """Local search of each ant's tour.

    Parameters
    ----------
    moves : "2opt+oropt" (default), "2opt" or "windows": 2-opt and Or-opt, then window search, which repairs by
        sequential 3-opt moves, first everywhere and then after each kick. On asymmetric instances moves preserve the
        direction of travel: "2opt+oropt" swaps two adjacent stretches of any length (or-3opt), and "2opt" and "windows"
        raise an error.
    kicks : random local double-bridge kicks per city, >= 0. After the tour is locally optimal, a kick swaps two
        adjacent stretches and the search repairs the tour, ``kicks * n`` times; a longer tour is undone (iterated local
        search; Martin, Otto and Felten 1991). 0 stops at the first local optimum. None (default): 1 on asymmetric
        instances; on others 0.1 on the CPU, and 1 from 3,000 cities on; 0 on CUDA, which has many ants. On asymmetric
        instances a kick reorders three adjacent stretches without reversal. For "windows" these are the trials, and
        None is 1 on both engines; CUDA makes them in rounds of all windows, and therefore up to one round more.
    kick_length : longest stretch that a kick moves, in cities, >= 1. None (default): 30. With "windows", whose kicks
        move up to 50 cities, it must be None.
    """

    moves: str = "2opt+oropt"
    kicks: float | None = None
    kick_length: int | None = None

    def __post_init__(self) -> None:
        """Validate."""
        checks.choice("local_search.moves", self.moves, MOVES)
        checks.optional_real("local_search.kicks", self.kicks, 0.0, 1000.0)
        checks.optional_integer("local_search.kick_length", self.kick_length, 1)
        if self.in_windows and self.kick_length is not None:
            raise ValueError(
                f"local_search.kick_length must be None with moves='windows', got {self.kick_length}"
            )

    @property
    def in_windows(self) -> bool:
        """True if window search follows 2-opt and Or-opt."""
        return self.moves == WINDOWS

    @property
    def number(self) -> int:
        """Code of the moves, see ``number_of``."""
        return number_of(self.moves)

    def longest_kick(self) -> int:
        """Return the longest stretch of a kick between 2-opt and Or-opt, in cities."""
        return USUAL_KICK_LENGTH if self.kick_length is None else int(self.kick_length)

    def check_for(self, symmetric: bool) -> None:
        """Raise ValueError for moves that reverse paths on an asymmetric instance."""
        if self.moves in ("2opt", WINDOWS):
            checks.may_reverse(f"local_search={self.moves!r}", symmetric, "local_search=True or '2opt+oropt'")

    def number_of_kicks(self, n: int, usual: float) -> int:
        """Return the kicks of a tour of n cities; ``usual`` is the default of the engine per city.

        There are none below 8 cities, where 2-opt and Or-opt suffice; for "windows" see ``trials_in_windows``.
        """
        if self.in_windows:
            return 0
        return int((usual if self.kicks is None else self.kicks) * n) if n >= FEWEST_CITIES_TO_KICK else 0

    def trials_in_windows(self, n: int) -> int:
        """Return the kicks of window search on a tour of n cities; 0 below 8 cities, and without window search."""
        if not self.in_windows or n < FEWEST_CITIES_TO_KICK:
            return 0
        return int((USUAL_TRIALS if self.kicks is None else self.kicks) * n)

    @staticmethod
    def of(value: Any) -> LocalSearch | None:
        """Convert the argument of a user: True, False, None, an object, "windows" (with its usual kicks), or "2opt" or
        "2opt+oropt" (both without kicks).
        """
        if value is None or value is False:
            return None
        if value is True:
            return LocalSearch()
        if isinstance(value, LocalSearch):
            return value
        if isinstance(value, str) and value in MOVES:
            return LocalSearch(moves=value, kicks=None if value == WINDOWS else 0.0)
        raise ValueError(
            f"local_search must be True, False, {', '.join(map(repr, MOVES))} or a LocalSearch, got {value!r}"
        )


@dataclass(frozen=True)
class ColonyParameters:
    """Parameters of one colony; ``None`` selects the documented rule of the engine.

    Parameters
    ----------
    n_ants : m, tours per iteration, >= 1, or None.
    alpha, beta : exponents of trail and of eta, in [0, 20].
    candidate_list_size : k, nearest cities an ant chooses from first, or None to choose from all cities.
    local_search : local search of every tour, or None.
    searched_elsewhere : True if the caller applies the local search; this affects only the default of `n_ants`.
    candidates : candidate edges of window search as local search: "auto" is the choice of the engine; for "nearest",
        "quadrant" and "alpha" see ``candidates.lists``. Ants choose from the lists of the instance.
    memory : "dense" (n x n), "candidate" (n x k), "selective" (n x trails_per_node) or "auto".
    selection : rule of drawing the next city, one of ``colony.selection``; "auto" is the fastest exact rule.
    tabu : "list", "compact" or "bitmask" (section 4.1, Skinderowicz 2020): GPU memory of the visited cities. It changes
        no result; the CPU engine has one layout.
    trials : draws of a trial or acceptance rule before its fallback, >= 1 (w, Uchida et al. 2012).
    switch : share of visited cities at which "hybrid" and "acceptance_tournament" change rule, in [0, 1], or None
        for the default of the rule.
    tournament_size : cities of a tournament (m, Murooka et al.), or None for the choice of the paper.
    q0 : probability of the greedy choice in ACS, in [0, 1] (Eq. (1), Skinderowicz 2016).
    xi : local evaporation of ACS in [0, 1], or 0 for no local update (Eq. (3), Skinderowicz 2016); None:
        ``resolved_xi``.
    local_update_period : number of selected edges per local update, >= 1 (section 4.2, Skinderowicz 2016).
    together : True: ACS ants step together; False: each builds its whole tour independently.
    trails_per_node : slots of the selective memory, >= 1.
    deterministic : reproduce a run exactly from its keys at any cost. It affects only ACS ants with together=False on
        CUDA, which then build their tours one after another.
    heuristic : eta (n, n) in place of 1 / distance, see ``candidates.heuristic``, or None.
    own_rule : a function in place of ``selection``, for the CPU engine, see ``cpu.own_rule``, or None.
    """

    n_ants: int | None = None
    alpha: float = 1.0
    beta: float = 2.0
    candidate_list_size: int | None = 32
    local_search: LocalSearch | None = None
    searched_elsewhere: bool = False
    candidates: str = "auto"
    memory: str = "auto"
    selection: str = "auto"
    tabu: str = "auto"
    trials: int = 8
    switch: float | None = None
    tournament_size: int | None = None
    q0: float = 0.0
    xi: float | None = 0.0
    local_update_period: int = 1
    together: bool = True
    trails_per_node: int = 8
    deterministic: bool = False
    heuristic: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    own_rule: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        """Validate."""
        checks.optional_integer("n_ants", self.n_ants, 1, 1 << 20)
        checks.real("alpha", self.alpha, 0.0, 20.0)
        checks.real("beta", self.beta, 0.0, 20.0)
        checks.optional_integer("candidate_list_size", self.candidate_list_size, 1, 1024)
        checks.flag("searched_elsewhere", self.searched_elsewhere)
        checks.choice("candidates", self.candidates, CANDIDATES)
        checks.choice("memory", self.memory, MEMORIES)
        checks.choice("selection", self.selection, SELECTIONS)
        checks.choice("tabu", self.tabu, TABUS)
        checks.integer("trials", self.trials, 1, 1 << 20)
        checks.optional_real("switch", self.switch, 0.0, 1.0)
        checks.optional_integer("tournament_size", self.tournament_size, 1, 1024)
        checks.real("q0", self.q0, 0.0, 1.0)
        checks.optional_real("xi", self.xi, 0.0, 1.0)
        checks.integer("local_update_period", self.local_update_period, 1)
        checks.flag("together", self.together)
        checks.integer("trails_per_node", self.trails_per_node, 1, 1024)
        checks.flag("deterministic", self.deterministic)
        if self.candidate_list_size is None and self.memory in ("candidate", "selective"):
            raise ValueError(
                f"candidate_list_size must be an integer >= 1 with pheromone={self.memory!r}, got None"
            )
        if self.candidate_list_size is not None and self.rule("rwm").over_lists is None:
            raise ValueError(
                f"candidate_list_size must be None with selection={self.selection!r}, got {self.candidate_list_size}"
            )

    @property
    def is_searched(self) -> bool:
        """True if each tour gets a local search, by the engine or by the caller."""
        return self.local_search is not None or self.searched_elsewhere

    def rule(self, auto: str) -> SelectionRule:
        """Return the selection rule; ``auto`` replaces "auto"."""
        return RULES[auto if self.selection == "auto" else self.selection]

    def resolved_memory(self, n: int) -> str:
        """Return the memory for n cities: as given, else candidate edges from 10,000 cities on, if there are lists."""
        if self.memory != "auto":
            return self.memory
        return "dense" if self.candidate_list_size is None or n < CANDIDATE_MEMORY_FROM else "candidate"

    def resolved_xi(self, n_ants: int) -> float:
        """Return the local evaporation for m ants: as given, else 0.1 for up to 24 updates of an edge, and less above.

        Before the next global update, an edge of all ants has the share (1 - xi)^(m / period) of its trail above tau_0.
        The share is 0.35 with the 10 ants of Dorigo and Gambardella (1997) and 0.08 with 24. With hundreds of ants it
        is almost 0: the trail is lost before it is used. Source of the values: benchmarks/cpu_acs.py.
        """
        if self.xi is not None:
            return float(self.xi)
        return _XI * min(1.0, _UPDATES_OF_AN_EDGE * self.local_update_period / n_ants)

    def switch_left(self, n: int) -> int:
        """Return the number of unvisited cities of n at which the rule changes, by ``switch`` or its default."""
        usual = self.rule("hybrid").switch
        return round((1.0 - (usual if self.switch is None else self.switch)) * n)

    def resolved_tournament_size(self, n: int) -> int:
        """Return the size for n cities: as given, else 4 up to 1002, 8 up to 2392, 16 above (Murooka et al., V)."""
        if self.tournament_size is not None:
            return self.tournament_size
        return 4 if n <= 1002 else 8 if n <= 2392 else 16


@dataclass(frozen=True)
class ClimberParameters:
    """Parameters of random-restart 2-opt hill climbing (O'Neil and Burtscher 2015) of ``n_climbers`` tours in parallel.

    Parameters
    ----------
    n_climbers : m, >= 1, or None.
    kernel : GPU code of the scan: "intra", "tiled" or "tuned" (sections 3.1 to 3.3, O'Neil and Burtscher 2015); "auto"
        is the fastest. It changes no result; the CPU engine has one scan.
    """

    n_climbers: int | None = None
    kernel: str = "auto"

    def __post_init__(self) -> None:
        """Validate."""
        checks.optional_integer("n_climbers", self.n_climbers, 1, 1 << 20)
        checks.choice("kernel", self.kernel, KERNELS)

    def check_for(self, symmetric: bool) -> None:
        """Raise ValueError for an asymmetric instance."""
        checks.may_reverse("2-opt hill climbing", symmetric, "an ant colony")
