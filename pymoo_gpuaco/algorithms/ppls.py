"""Two-phase Pareto local search for several objectives; the front is not part of pymoo's population."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from moocore import is_nondominated
from numpy.typing import ArrayLike, NDArray
from pymoo.core.individual import Individual, default_config
from pymoo.core.population import Population
from pymoo.core.variable import get
from pymoo.util.ref_dirs import get_reference_directions

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count
from pymoo_gpuaco.algorithms.display import FrontOutput
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.algorithms.termination import FrontTermination, colony_terminations
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.backends import make_front
from pymoo_gpuaco.pareto.instance import front_instance
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.problems.multi_objective import as_multi_objective
from pymoo_gpuaco.problems.symmetric import ranked_objectives

_N_INFILLS = 100  # maximum new members of a generation that pymoo evaluates
# s for the conversion of a front to a population and a result, on a core of 2.8 GHz
_CONVERSION_PER_TOUR, _CONVERSION_PER_CITY = 3e-5, 4e-8
_log = logging.getLogger("pymoo_gpuaco")


def population_of(tours: NDArray[np.int64], objectives: NDArray[np.float64]) -> Population:
    """Return evaluated individuals of tours (f, n), as views of the rows; all share one object of settings."""
    none = np.empty(0)
    alike = vars(Individual(default_config(), G=none, H=none))
    individuals = []
    for row, values in zip(tours, objectives, strict=True):
        one = Individual.__new__(Individual)  # faster than its constructor
        vars(one).update(alike, data={}, evaluated={"F", "G", "H"})
        one.X, one.F = row, values
        individuals.append(one)
    return Population(individuals)


@dataclass(kw_only=True, eq=False, repr=False)
class FrontAlgorithm(TourAlgorithm):
    """An algorithm whose engine is a `FrontEngine`: pymoo evaluates new members, and ``opt`` is the front.

    All arguments of ``PermutationAlgorithm`` are available.
    """

    _default_termination = FrontTermination
    _default_output = FrontOutput
    _quiet = False  # True while pymoo reads opt and discards it

    def _check(self) -> None:
        super()._check()
        if any(part.single_objective for part in colony_terminations(self.termination)):
            raise TypeError(
                "termination must be FrontTermination(..) or pymoo's: ColonyTermination is for one objective"
            )

    def _forget_run(self) -> None:
        super()._forget_run()
        self._lower_bound = None  # not defined for several objectives
        # members that the archive had added and dropped when opt was built
        self._front_version: tuple[int, int] | None = None
        self._logged_dropped = 0  # dropped members at the last log line

    def _instance_maker(self) -> Callable[[], Any]:
        problem, (k, _) = self.problem, self._candidates()

        def make() -> Any:
            given = as_multi_objective(problem)
            objectives = [part.instance for part in given.parts]
            searched = ranked_objectives(objectives)
            if searched is not objectives:  # the problem evaluates the tours that the search finds
                self._custom_objective = True
            return front_instance(searched, given.names, k)

        return make

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of `TourAlgorithm` without ``opt``, which is rebuilt from the engine's state."""
        return {**super().__getstate__(), "_front": None, "_front_version": None}

    def _adopt(self, engine: Any) -> None:
        self._size = _N_INFILLS  # number of tours of a pymoo Sampling

    # ---- a generation

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        engine = self.engine
        before = engine.n_tours
        engine.search(key)
        archive = engine.archive
        if archive.dropped > self._logged_dropped:
            self._logged_dropped = archive.dropped
            words = "pymoo_gpuaco: the front is larger than archive_size=%d: %d tours were dropped"
            _log.info(words, archive.size, archive.dropped)
        rows = archive.joined if len(archive.joined) else archive.front[:1]
        if len(rows) > _N_INFILLS:
            rows = rows[np.linspace(0, len(rows) - 1, _N_INFILLS).astype(np.intp)]
        built = max(engine.n_tours - before, len(rows))
        self._conversion_seconds = len(archive.front) * (
            _CONVERSION_PER_TOUR + _CONVERSION_PER_CITY * archive.n
        )
        return archive.tours[rows].astype(np.int32), archive.lengths[rows], built

    def _accept(self, outside: Permutations) -> None:
        self.engine.accept(outside.rows)

    def _inspect_problem(self) -> None:
        """Do nothing: objectives are compared when tours are evaluated."""

    def _compare_with_distances(self, tours: Permutations) -> None:
        if self._custom_objective:
            return
        given, own = tours.values, self.engine.instance.lengths(tours.rows)
        others = np.flatnonzero(~np.isclose(given, own, rtol=1e-6, atol=0.0).all(axis=1))
        if len(others):
            self._custom_objective, self._front_version = True, None
            one = others[0]
            warnings.warn(
                f"the problem's objectives ({given[one]}) are not the tour's lengths under its distances ({own[one]}): "
                "the search uses the distances, and res.F are the objectives of the tours that it finds",
                stacklevel=2,
            )

    def _rescue(self) -> None:
        """Add evaluated tours of an interrupted ``sampling`` to the archive; it has all other tours."""
        if self.sampling is None or self.is_initialized or self._asked is None or self._engine is None:
            return
        evaluated = [one.X for one in self._asked if "F" in one.evaluated]
        if evaluated:
            self._engine.accept(np.array(evaluated))

    # ---- the front

    @property
    def opt(self) -> Population | None:
        """The front, with the problem's objectives; None before the first generation."""
        if self._quiet:
            return None
        engine = self.__dict__.get("_engine")
        if engine is None and self.__dict__.get("_engine_state") is not None:
            engine = self.engine
        if engine is None or not len(engine.archive.front):
            return None
        version = engine.archive.added, engine.archive.dropped
        if self._front_version != version:
            front = population_of(*self._arrays(engine))
            self._front, self._front_version = front, version  # an interrupt must not separate them
        return self._front

    @opt.setter
    def opt(self, value: Population | None) -> None:
        """Store the value; readers get the front of the archive instead."""
        self._front, self._front_version = value, None

    def _arrays(self, engine: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return tours (f, n) of the front in pymoo's form, and the problem's objectives (f, k), sorted."""
        tours, lengths = engine.archive.members()
        rows = self.canonical(tours)
        if not self._custom_objective:
            return rows, lengths
        objectives = np.asarray(self.problem.evaluate(rows, return_values_of=["F"]), np.float64)
        front = np.flatnonzero(is_nondominated(objectives))
        front = front[np.lexsort(objectives[front, ::-1].T)]
        return rows[front], objectives[front]

    def advance(self, infills: Population | None = None, **kwargs: Any) -> Any:
        """Process evaluated tours like pymoo's ``advance``, but return None instead of ``opt``."""
        try:
            return super().advance(infills=infills, **kwargs)
        finally:
            self._quiet = False

    def tell(self, *args: Any, **kwargs: Any) -> Any:
        """Process evaluated tours like pymoo's ``tell``; return the front, or the result if the run has ended."""
        ended = self.advance(*args, **kwargs)
        return self.opt if ended is None else ended

    def _post_advance(self) -> None:
        super()._post_advance()
        self._quiet = not self.termination.has_terminated()

    def _set_optimum(self) -> None:
        """Do nothing: the engine updates the archive."""


_DIRECTIONS = 100  # approximate number by default, for more than two objectives
_MOST_WEIGHTS = 100_000


@dataclass(eq=False, repr=False)
class GPU2PPLS(FrontAlgorithm):
    """Two-phase Pareto local search (2PPLS): the Pareto front of tours of 2 to 6 objectives.

    Phase one solves weighted sums of the objectives. Phase two explores the neighbourhood of every tour of the front.
    There is no pheromone.

    ``res.F`` (f, k) and ``res.X`` (f, n) are the front, one tour for each F, in order of the first objective;
    ``algorithm.opt`` is the front as a population. A generation is a fixed amount of work and gives pymoo up to 100
    tours that are new to the front. ``evaluator.n_eval`` counts all tours that were built. Up to 9 cities the first
    generation evaluates every tour.

    Parameters
    ----------
    n_weights : weighted sums that are solved first, in [2, 100000]. None: with two objectives the number that finds all
        supported tours (Aneja and Nair 1979), at most 2000, and from 100 cities on at most 200,000 / n or 100; with
        more objectives about 100.
    archive_size : maximum number of tours of the front, >= 4 and at least two for each objective; 2 n bytes a tour.
        Above it, tours are dropped: with two objectives those of least hypervolume, with more those closest to
        another. The number is logged.
    ref_dirs : (d, k) weights instead of ``n_weights``, >= 0 and in no row all 0, in ranges of the objectives on the
        front; rows are normalised. None: with more than two objectives pymoo's Das and Dennis.
    candidate_list_size : nearest cities by each objective that are a city's candidates, in [1, 1024]. After the first
        explorations candidates are the edges of the front's tours (Lust and Jaszkiewicz 2010).
    sampling : tours to start from, see `PermutationAlgorithm`.
    backend : "auto" uses CUDA up to 2,000 cities with symmetric distances where it can run, else the CPU; "cuda" raises
        ``BackendUnavailable`` where it cannot.

    All arguments of ``PermutationAlgorithm`` are also available; ``termination`` is one of pymoo's or a
    `FrontTermination`.
    ``setup`` raises TypeError or ValueError for problems that `as_multi_objective` does not accept.

    If the objectives are not lengths under the distances, the search uses the distances; ``res.F`` are the objectives
    of its tours, without dominated ones.

    Source: T. Lust, J. Teghem, "Two-phase Pareto local search for the biobjective traveling salesman problem", Journal
    of Heuristics 16 (2010), doi:10.1007/s10732-009-9103-9; T. Lust, A. Jaszkiewicz, "Speed-up techniques for solving
    large-scale biobjective TSP", Computers and Operations Research 37 (2010), doi:10.1016/j.cor.2009.01.005;
    A. Jaszkiewicz, T. Lust, "ND-Tree-based update", IEEE TEVC 22 (2018), doi:10.1109/TEVC.2018.2799684.
    """

    n_weights: Count | None = None
    archive_size: Count = 100_000
    _: KW_ONLY
    ref_dirs: Any = None
    candidate_list_size: Count = 10

    _make_engine = staticmethod(make_front)

    def _check(self) -> None:
        super()._check()
        checks.optional_integer("n_weights", get(self.n_weights), 2, _MOST_WEIGHTS)
        checks.integer("archive_size", get(self.archive_size), 4)
        checks.integer("candidate_list_size", get(self.candidate_list_size), 1, 1024)
        if self.ref_dirs is not None:
            _check_directions(self.ref_dirs)
            if get(self.n_weights) is not None:
                raise ValueError("n_weights and ref_dirs both define the weighted sums: give one of them")

    # ---- the engine

    def _candidates(self) -> tuple[int, str]:
        return int(get(self.candidate_list_size)), "nearest"

    def _parameters(self) -> FrontParameters:
        k = as_multi_objective(self.problem).n_obj
        return FrontParameters(get(self.n_weights), self.size_of(k), self._directions(k))

    def size_of(self, k: int) -> int:
        """Return the maximum tours of a front of k objectives."""
        return checks.integer("archive_size", get(self.archive_size), max(4, 2 * k))

    def _directions(self, k: int) -> NDArray[np.float64] | None:
        if self.ref_dirs is not None:
            given = _check_directions(self.ref_dirs)
            if given.shape[1] != k:
                raise ValueError(f"ref_dirs must have {k} columns, one per objective, got {given.shape[1]}")
            return given
        return usual_directions(k, get(self.n_weights) or _DIRECTIONS)


def usual_directions(k: int, wanted: int = _DIRECTIONS) -> NDArray[np.float64] | None:
    """Return at least ``wanted`` directions (d, k) by Das and Dennis; None for two objectives: adaptive weights."""
    if k == 2:
        return None
    parts = 1
    while len(found := get_reference_directions("das-dennis", k, n_partitions=parts)) < wanted:
        parts += 1
    return np.ascontiguousarray(found)


def _check_directions(given: ArrayLike) -> NDArray[np.float64]:
    """Return directions (d, k) as float64 with row sums 1; raise TypeError or ValueError for invalid ones."""
    directions = np.array(checks.finite("ref_dirs", given, 0.0), np.float64)
    if directions.ndim != 2 or len(directions) < 2 or not 2 <= directions.shape[1] <= 6:
        raise ValueError(
            f"ref_dirs must have shape (d, k) with d >= 2 and k in [2, 6], got {directions.shape}"
        )
    zeros = np.flatnonzero(~directions.any(axis=1))
    if len(zeros):
        raise ValueError(f"ref_dirs must not have a row of zeros, got zeros in row {zeros[0]}")
    directions /= directions.max(axis=1, keepdims=True)  # avoids overflow in the sum
    return np.ascontiguousarray(directions / directions.sum(axis=1, keepdims=True))
