"""Base of the ant colonies: shared arguments and one iteration."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import Variable, get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count, Number, Word, as_parameters
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.backends import ColonyEngine, FunctionSearch, Improver, make_colony, make_improver
from pymoo_gpuaco.candidates.heuristic import heuristic_matrix
from pymoo_gpuaco.colony import published
from pymoo_gpuaco.colony.parameters import CANDIDATES, ColonyParameters, LocalSearch
from pymoo_gpuaco.colony.trails import TrailUpdate, all_trails, candidate_trails, per_length
from pymoo_gpuaco.runtime.state import SMALLEST

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T", float, NDArray[np.float64])

_log = logging.getLogger("pymoo_gpuaco")

Search: TypeAlias = bool | str | LocalSearch | Variable | Callable[..., Any] | None

# Candidates per city of the local search if construction uses no candidate lists.
_NEIGHBOURS_OF_SEARCH = 32


@dataclass(eq=False, repr=False)
class AntColony(TourAlgorithm):
    """Ant colony: ants build tours, pymoo evaluates the best, trails are updated.

    Trails are in units of 1 / C_g, where C_g is the length of the nearest-neighbour tour. The unit changes neither
    proportional selection nor trail updates, and makes single precision sufficient for coordinates of any scale.

    Parameters
    ----------
    n_ants : m, tours an iteration, >= 1. None with local search: the number that occupies the device (CUDA: 32 a
        multiprocessor, and 6 above 6,000 cities or with "windows"; CPU: 24, and 8 from 3,000 cities on). None without
        local search: one ant a city, at most 4096, and fewer from some 8,000 cities on, so that a generation takes
        less than a minute.
    alpha, beta : exponents of trail and of 1 / distance, in [0, 20].
    rho : evaporation rate in (0, 1]: tau <- (1 - rho) tau.
    candidate_list_size : nearest cities that an ant considers first, in [1, 1024] (at most n - 1 are used); None: every
        step considers all cities.
    candidates : cities in the candidate lists of ants and local search. "nearest"; "quadrant": some of the nearest in
        every quadrant of the plane (for other metrics, the nearest); "alpha": least alpha, by minimum spanning trees
        (Helsgaun 2000), for symmetric instances of up to 200,000 cities, computed in seconds from some 10,000 cities
        on. "auto" (default): "nearest", for the local search "windows" its own default. It must be "auto" without
        lists, that is with ``candidate_list_size=None`` and no local search.
    local_search : True (2-opt, Or-opt and a few kicks), False, "2opt", "2opt+oropt", "windows" (window search with one
        kick a city), a ``LocalSearch``, or a function that takes all tours (m, n) of a generation and returns
        improved ones; lengths are computed from these. It runs to its end also after the time limit.
    n_elites : best tours of each generation that pymoo evaluates, >= 1. None (default): one; all tours if the problem's
        objective is not the tour length.
    pheromone : memory of the trails: "dense" (n x n), "candidate" (edges of the candidate lists only), or "auto"
        ("candidate" from 10,000 cities on).
    heuristic : eta by which ants weigh edges in place of 1 / distance: an (n, n) array of finite values >= 0, or a
        function of the problem that returns it, also after a copy. Lists, local search and trails still use distances.
        It takes 8 n^2 bytes, on CUDA 12 n^2. None (default): 1 / distance.

    All arguments of ``PermutationAlgorithm`` are also available.
    """

    n_ants: Count | None = None
    _: KW_ONLY
    alpha: Number = 1.0
    beta: Number = 2.0
    rho: Number = 0.1
    candidate_list_size: Count | None = 32
    candidates: Word = "auto"
    local_search: Search = True
    pheromone: Word = "auto"
    n_elites: Count | None = None
    heuristic: Any = None

    _make_engine = staticmethod(make_colony)
    #: attributes that hold a tour
    _stored_tours: ClassVar[tuple[str, ...]] = ("_best_tour",)

    @classmethod
    def published(cls, local_search: Search = False, source: str | None = None, **changes: Any) -> Self:
        """Return a colony with published parameters, from the table of ``colony.published``.

        ``local_search=True`` takes the parameters for ants with the source's local search; any other value of the
        argument replaces that local search. ``source`` is a name of the table; None is the first source of the class.
        ``changes`` are further arguments, which replace published ones. Raises ValueError that names the sources if
        none has these parameters.
        """
        own = {row.algorithm for row in published.PUBLISHED}
        name = next((base.__name__ for base in cls.__mro__ if base.__name__ in own), cls.__name__)
        searched = callable(local_search) or LocalSearch.of(local_search) is not None
        row = published.find(name, searched, source)
        search = {} if isinstance(local_search, bool | None) else {"local_search": local_search}
        return cls(**{**row.arguments, **search, **changes})

    def _parameters(self, **others: Any) -> Any:
        search, function = self._search(), callable(get(self.local_search))
        memory = checks.choice("pheromone", get(self.pheromone), ("auto", "dense", "candidate"))
        common = {"n_ants": self._n_ants(), "memory": memory, "local_search": search, "heuristic": None}
        if function or (self._evaluates_all and search is not None):
            common |= {"local_search": None, "searched_elsewhere": True}
        if callable(rule := get(getattr(self, "selection", None))):
            common |= {"selection": "auto", "own_rule": rule}
        return as_parameters(self, ColonyParameters, **{**common, **others})

    def _n_ants(self) -> int | None:
        return self._size if get(self.n_ants) is None else get(self.n_ants)

    def _check(self) -> None:
        super()._check()
        checks.optional_integer("n_elites", get(self.n_elites), 1)
        self._parameters()
        checks.real("rho", get(self.rho), 0.0, 1.0, open_low=True)
        if get(self.heuristic) is not None and not callable(get(self.heuristic)):
            heuristic_matrix(get(self.heuristic))
        kind = checks.choice("candidates", get(self.candidates), CANDIDATES)
        if kind != "auto" and get(self.candidate_list_size) is None and self._search() is None:
            raise ValueError(
                "candidates must be 'auto' if neither ants nor local search use lists, "
                f"got {kind!r}: set candidate_list_size or local_search"
            )

    def _engine_maker(self) -> Callable[..., Any]:
        make, eta = super()._engine_maker(), get(self.heuristic)
        if eta is None:
            return make
        values = heuristic_matrix(eta(self.problem) if callable(eta) else eta)
        return partial(make, parameters=replace(self._parameters(), heuristic=values))

    def _search(self) -> LocalSearch | None:
        """Return the local search of the engine, None also for a function of the user."""
        search = get(self.local_search)
        return None if callable(search) else LocalSearch.of(search)

    def _candidates(self) -> tuple[int, str]:
        k, kind = get(self.candidate_list_size), str(get(self.candidates))
        return int(k or _NEIGHBOURS_OF_SEARCH), "nearest" if kind == "auto" else kind

    def _forget_run(self) -> None:
        super()._forget_run()
        self._evaluates_all = False  # a custom objective ranks the tours, and all are evaluated
        self._improver: Improver | None = None

    def _inspect_problem(self) -> None:
        super()._inspect_problem()
        self._evaluates_all = self._custom_objective and get(self.n_elites) is None

    def trails(self, edges: str = "all") -> NDArray[np.float32]:
        """Return a copy of the trails, in units of 1 / C_g; rows are start cities.

        Parameters
        ----------
        edges : "all": the (n, n) matrix with diagonal 0; an edge without a stored trail has the value that ants use
            for it. "candidates": (n, k), trails of the edges from i to ``algorithm.instance.neighbours[i]``,
            4 n k bytes instead of 4 n^2.

        Raises ValueError for another ``edges``, and before ``setup``.
        """
        checks.choice("edges", edges, ("all", "candidates"))
        self._needs_problem()
        read = all_trails if edges == "all" else candidate_trails
        return read(self.engine.export_state(), self.instance.neighbours)

    def describe(self) -> str:
        """Return name, number of ants and local search."""
        search, given = self._search(), get(self.local_search)
        after = "no local search" if search is None else f"local search {search.moves}"
        if callable(given):
            after = f"local search {getattr(given, '__name__', type(given).__name__)}"
        return f"{type(self).__name__}: {self.engine.n_ants} ants, {after}"

    def check_loaded(self) -> None:
        """Validate what a file holds of the run, see `PermutationAlgorithm.check_loaded`."""
        super().check_loaded()
        if self._begun:
            checks.real("the unit of the trails", self._unit, SMALLEST)
            if self._spread is not None:
                checks.real("the spread of the objective", self._spread, SMALLEST)
            for name in self._stored_tours:
                tour = getattr(self, name)
                if np.size(tour):
                    checks.tours(name, tour, self.problem.n_var)

    def _adopt(self, engine: Any) -> None:
        if self._asked_permutations is not None and isinstance(
            engine, ColonyEngine
        ):  # its ants may deposit next
            checks.tours("state['tours']", engine.tours([0]), engine.instance.n)
        search = self._search() if self._evaluates_all else None
        if callable(get(self.local_search)):
            self._improver = FunctionSearch(get(self.local_search), self.instance)
        if search is not None:  # on the same kind of device as the engine
            place = engine.kind, int(self.device), str(get(self.candidates))
            self._improver = make_improver(self.instance, search, *place)
        # a copy keeps the number of ants of the first engine, also on another kind of device
        self._size = engine.n_ants

    def _first_trail(self, n: int) -> float:
        """Return the initial trail in units of 1 / C_g for n cities: by default 1."""
        return 1.0

    def _begin(self) -> None:
        self._begin_with(self.engine.greedy_tour()[1])
        self.engine.reset_trails(self._first_trail(self.instance.n))

    def _begin_with(self, greedy_length: float) -> None:
        """Set the unit of the trails; there is no best tour yet."""
        self._unit = greedy_length if greedy_length > 0.0 else 1.0
        self._best_tour, self._best_length = np.empty(0, np.int32), float("inf")
        self._spread: float | None = None  # s, worst minus best F of the first generation; 1 if that is 0
        self._relative = False  # deposits are relative to the best F, because an F was 0 or negative

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        lengths = self.engine.construct(key)
        if self._evaluates_all:
            return self._all_tours(key, lengths)
        if self._improver is not None and self.engine.n_built == len(lengths):  # a function of the user
            tours, _ = self._improver.improve(self.engine.tours(np.arange(len(lengths))), key)
            lengths = self.engine.replace_tours(tours)
        return self._elites(lengths)

    def _elites(self, lengths: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        """Return the shortest tours of the last construction, whose lengths (m,) these are."""
        n_elites = int(get(self.n_elites) or 1)
        self.iteration_mean = float(lengths.mean())
        elites = np.array([lengths.argmin()]) if n_elites == 1 else lengths.argsort(kind="stable")[:n_elites]
        return self.engine.tours(elites), lengths[elites], max(1, self.engine.n_built)

    # ---- learning

    def _learn(self, evaluated: Permutations) -> None:
        self._note_best(evaluated)
        self._update(evaluated)

    @abstractmethod
    def _update(self, evaluated: Permutations) -> None:
        """Update the trails after an iteration; the best tour so far is known."""

    def _apply(self, evaluated: Permutations, **update: Any) -> None:
        """Evaporate and deposit, see `TrailUpdate`; ``evaluated`` tours deposit for the ants if these are unknown."""
        complete = TrailUpdate(rho=float(get(self.rho)), **update)
        if self._evaluated_deposit():
            rows, costs = evaluated.rows.astype(np.int32), self._cost(evaluated.values)
            complete = complete.written_out(rows, costs)
        self.engine.update_trails(complete)

    def _evaluated_deposit(self) -> bool:
        """Return True if the evaluated tours deposit in place of the ants': all tours, or those of ``sampling``."""
        return self._evaluates_all or self._asked_permutations is None

    def _amount(self, length: float) -> float:
        """Return the deposit 1 / length in units of 1 / C_g, see `_cost`."""
        return per_length(self._unit, self._cost(length))

    def _note_best(self, evaluated: Permutations) -> None:
        """Take the best of evaluated tours as the best so far if it is shorter."""
        if self._spread is None:
            self._spread = float(np.ptp(evaluated.values)) or 1.0
        tour, length = evaluated.best()
        if length < self._best_length:
            self._best_tour, self._best_length = tour, length
        if self._custom_objective and not self._relative and length <= 0.0:
            self._relative = True
            self._restart_trails()
            _log.info(
                "pymoo_gpuaco: the objective is %.10g: from now on deposits are relative to the best F, and all trails "
                "start again",
                length,
            )

    def _restart_trails(self) -> None:
        """Set all trails to their initial value."""
        self.engine.reset_trails(self._first_trail(self.instance.n))

    def _cost(self, values: T) -> T:
        """Return the lengths by which tours of these F deposit: F, or F' = F - b + s in units of which s is C_g.

        b is the best F so far, and s the spread of the first generation. Like 1 / (1 + F - b), Solnon and Fenet 2006,
        with s in place of 1: deposits do not depend on the unit of F.
        """
        if not self._relative:
            return values
        assert self._spread is not None
        return (values - self._best_length + self._spread) * (self._unit / self._spread)

    # ---- A custom objective: the engine cannot rank tours by it, and its local search may make tours worse. Therefore
    # ``ask`` returns all tours, before and after the local search, and their F decides.

    def _set_deadline(self) -> None:
        if self._custom_objective and not self._evaluates_all and get(self.n_elites) is None:
            # a custom objective detected during the run: continue from the state with an engine without local search
            state = self.engine.export_state()
            self.__dict__.update(_engine_state=state, _evaluates_all=True, _engine=None)
        super()._set_deadline()

    def _engines(self) -> list[Any]:
        return [*super()._engines(), *([] if self._improver is None else [self._improver])]

    def _all_tours(
        self, key: int, lengths: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        """Return the tours of the last construction, followed by the same tours after the local search."""
        self.iteration_mean = float(lengths.mean())
        built = max(1, self.engine.n_built)
        tours = self.engine.tours(np.arange(len(lengths)))
        if built < len(lengths):  # tours that were not built before the deadline are copies of the shortest
            ants = np.sort(np.unique(tours, axis=0, return_index=True)[1])
            tours, lengths = tours[ants], lengths[ants]
        if self._improver is None:
            return tours, lengths, built
        better, shorter = self._improver.improve(tours, key)
        return np.concatenate([tours, better]), np.concatenate([lengths, shorter]), 2 * len(lengths)

    def _response_to_custom_objective(self) -> str:
        elites = get(self.n_elites)
        if elites is not None:
            return f"Only the shortest tours of each generation are evaluated, n_elites={elites}"
        evaluated = "All tours of a generation are evaluated, before and after the local search"
        return f"{evaluated}; n_elites=.. limits them"

    def release_engine(self) -> None:
        """Replace engine and improver, see `PermutationAlgorithm.release_engine`."""
        super().release_engine()
        self._improver = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of the base class without the improver, which is created again."""
        return {**super().__getstate__(), "_improver": None}
