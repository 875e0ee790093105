"""A colony for several objectives: the front of tours."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from moocore import is_nondominated
from numpy.typing import ArrayLike, NDArray
from pymoo.core.population import Population
from pymoo.core.termination import Termination
from pymoo.core.variable import get
from pymoo.util.ref_dirs import get_reference_directions

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.algorithms.front_run import FrontOutput, FrontTermination
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.algorithms.told import Tours, canonical
from pymoo_gpuaco.backends import check_backend, make_front
from pymoo_gpuaco.fronts.instance import front_instance
from pymoo_gpuaco.fronts.parameters import FrontParameters
from pymoo_gpuaco.problems.multi_objective import as_multi_objective

_HANDED_OUT = 100  # new members a generation that pymoo gets to see
_DIRECTIONS = 100  # of more than two objectives, about
_MOST_WEIGHTS = 100_000
_log = logging.getLogger("pymoo_gpuaco")


@dataclass(eq=False, repr=False)
class GPUMOACO(TourAlgorithm):
    """The front of a TSP of 2 to 6 objectives: all tours that no other dominates, as far as they are found.

    Ants of many weights begin: each shortens a tour under its weighted sum of the objectives, beginning with that of a
    neighbouring weight, by changing it in a few places and repairing it, as ants of the focused colony do. Then each
    tour of the front is looked at, and what leads to a tour that the front lacks joins it: exchanges of two to five
    edges, under weights of the front's slope there. Last come tours that only few members dominate, and kicks. There
    are no trails and no selection by chance: what ants tell each other are whole tours, the archive.

    ``res.F`` (f, k) and ``res.X`` (f, n) are the front, one tour for each F, in order of the first objective. It is no
    part of pymoo's population: a generation hands out up to 100 tours that are new to the front, and ``algorithm.opt``
    is the whole front, put together when it is asked for. ``evaluator.n_eval`` counts all tours that were built.
    A generation is a fixed amount of work, whatever the machine. Up to 9 cities, the first looks at every tour.

    Parameters
    ----------
    n_weights : weighted sums that are solved, in [2, 100000]. None: of two objectives as many as it takes to find all
        supported tours (Aneja and Nair 1979), at most 2000 and from 100 cities on fewer, 200,000 / n but at least 100;
        of more about 100.
    archive_size : tours that the front may have, >= 4 and at least two for each objective. Beyond, those go without
        which it loses least: of two objectives the least hypervolume, of more those that lie closest to another. How
        many went is logged.
    ref_dirs : (d, k) directions, >= 0 and in no row all 0: the weights, as shares of what the objectives extend over on
        the front. Rows count by their shares of the sum. They take the place of ``n_weights``. None: pymoo's Das and
        Dennis for more than two objectives.
    candidate_list_size : nearest cities by each objective that make up a city's candidates, in [1, 1024]. After the
        first looks these are the edges of the front's tours (Lust and Jaszkiewicz 2010).
    sampling : tours to begin with, as `TourAlgorithm` says.
    backend : "auto" takes CUDA where it can run, up to 2,000 cities, else the CPU; "cuda" raises
        ``BackendUnavailable`` where it cannot.
    device : number of the CUDA device, >= 0.

    All arguments of ``TourAlgorithm`` besides; ``termination`` is one of pymoo's or a `FrontTermination`. Raises
    TypeError or ValueError, in ``setup``, for problems that `as_multi_objective` does not take, asymmetric ones among
    them.

    Where the objectives are not the tour's lengths under the distances, the search goes by distances; ``res.F`` are the
    objectives of the tours it finds, of which those stay that no other dominates.

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
    output: Any = field(default_factory=FrontOutput)
    backend: str = "auto"
    device: int = 0

    _after_generation = False  # whether pymoo has done with one, but for reading opt

    def _check(self) -> None:
        super()._check()
        check_backend(self.backend, self.device)
        checks.optional_integer("n_weights", get(self.n_weights), 2, _MOST_WEIGHTS)
        checks.integer("archive_size", get(self.archive_size), 4)
        checks.integer("candidate_list_size", get(self.candidate_list_size), 1, 1024)
        if self.ref_dirs is not None:
            _check_directions(self.ref_dirs)
            if get(self.n_weights) is not None:
                raise ValueError("n_weights and ref_dirs both say which weighted sums are solved: give one")
        if isinstance(self.termination, ColonyTermination) and not isinstance(
            self.termination, FrontTermination
        ):
            raise TypeError(
                "termination must be FrontTermination(..) or pymoo's: ColonyTermination is of one length"
            )

    def _forget_run(self) -> None:
        self._after_generation = False
        super()._forget_run()
        self._opt_of: tuple[int, int] | None = None  # what the archive counted when opt was put together
        self._told_dropped = 0

    def _usual_termination(self) -> Termination:
        return FrontTermination()

    @property
    def lower_bound(self) -> float | None:
        """None: a front has no one length."""
        return None

    # ---- the engine

    def _candidates(self) -> int:
        return int(get(self.candidate_list_size))

    def _lister(self) -> Callable[[], Any]:
        known, problem, k = self._instance, self.problem, self._candidates()
        return lambda: front_instance(as_multi_objective(problem), k) if known is None else known

    def _maker(self) -> Callable[[Any], Any]:
        k = as_multi_objective(self.problem).n_obj
        parameters = FrontParameters(
            n_weights=get(self.n_weights),
            size=checks.integer("archive_size", get(self.archive_size), max(4, 2 * k)),
            directions=self._directions(k),
        )
        backend, device = self.backend, int(self.device)
        return lambda instance: make_front(instance, parameters, backend, device)

    def _directions(self, k: int) -> NDArray[np.float64] | None:
        if self.ref_dirs is not None:
            given = _check_directions(self.ref_dirs)
            if given.shape[1] != k:
                raise ValueError(f"ref_dirs must have {k} columns, one an objective, got {given.shape[1]}")
            return given
        if k == 2:
            return None
        wanted, parts = get(self.n_weights) or _DIRECTIONS, 1
        while len(found := get_reference_directions("das-dennis", k, n_partitions=parts)) < wanted:
            parts += 1
        return np.ascontiguousarray(found)

    def __getstate__(self) -> dict[str, Any]:
        """As `TourAlgorithm`; the front is in the engine's state, and ``opt`` is put together again."""
        return {**super().__getstate__(), "_front": None, "_opt_of": None}

    def _adopt(self, engine: Any) -> None:
        self._size = _HANDED_OUT  # of a sampling that asks for a number

    def _begin(self) -> None:
        pass

    # ---- a generation

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        engine = self.engine
        before = engine.n_tours
        engine.search(key)
        archive = engine.archive
        if archive.dropped > self._told_dropped:
            self._told_dropped = archive.dropped
            _log.info(
                "pymoo_gpuaco: the front is larger than archive_size=%d: %d tours went",
                archive.size,
                archive.dropped,
            )
        rows = engine.joined if len(engine.joined) else archive.front[:1]
        if len(rows) > _HANDED_OUT:
            rows = rows[np.linspace(0, len(rows) - 1, _HANDED_OUT).astype(np.intp)]
        return (
            archive.tours[rows].astype(np.int32),
            archive.lengths[rows],
            max(engine.n_tours - before, len(rows)),
        )

    def _learn(self, told: Tours) -> None:
        """What the generation has found is in the archive."""

    def _accept(self, outside: Tours) -> None:
        self.engine.accept(outside.rows)

    def _start_from(self, told: Tours) -> None:
        self._compare_with_distances(told, 0)
        self.engine.accept(told.rows)

    def _compare_with_distances(self, tours: Tours, best: int) -> None:
        if self._other_objective:
            return
        told, own = tours.lengths, self.engine.instance.lengths(tours.rows)
        others = np.flatnonzero(~np.isclose(told, own, rtol=1e-6, atol=0.0).all(axis=1))
        if len(others):
            self._other_objective, self._opt_of = True, None
            one = others[0]
            warnings.warn(
                f"the problem's objectives ({told[one]}) are not the tour's lengths under its distances ({own[one]}): "
                "the search goes by distances, and res.F are the objectives of what it finds",
                stacklevel=2,
            )

    def _rescue(self) -> None:
        """What was found before an interrupt is in the archive."""

    # ---- the front

    @property
    def opt(self) -> Population | None:
        """The front, with the problem's objectives; None before the first generation."""
        if self._after_generation:
            return None  # pymoo reads it each time, and nobody what it then returns
        engine = self.__dict__.get("_engine")
        if engine is None and self.__dict__.get("_engine_state") is not None:
            engine = self.engine
        if engine is None or not len(engine.archive.front):
            return None
        stands = engine.archive.added, engine.archive.dropped
        if self._opt_of != stands:
            self._opt_of, self._front = stands, self._as_population(engine)
        return self._front

    @opt.setter
    def opt(self, value: Population | None) -> None:
        """Take what pymoo sets, of which the archive is the better copy."""
        self._front = value

    def _as_population(self, engine: Any) -> Population:
        tours, lengths = engine.front()
        rows = canonical(tours, symmetric=True)
        objectives = lengths
        if self._other_objective:
            objectives = np.asarray(self.problem.evaluate(rows, return_values_of=["F"]), np.float64)
            kept = np.flatnonzero(is_nondominated(objectives))
            kept = kept[np.lexsort(objectives[kept, ::-1].T)]
            rows, objectives = rows[kept], objectives[kept]
        front = Population.new("X", rows, "F", objectives)
        for one in front:
            one.evaluated.update(("F", "G", "H"))
        return front

    def advance(self, infills: Population | None = None, **kwargs: Any) -> Any:
        """Take in evaluated tours, as pymoo's ``advance``; return None where others return ``opt``."""
        try:
            return super().advance(infills=infills, **kwargs)
        finally:
            self._after_generation = False

    def tell(self, *args: Any, **kwargs: Any) -> Any:
        """Take in evaluated tours; return the front, or the result where the run has ended, as pymoo's ``tell``."""
        ended = self.advance(*args, **kwargs)
        return self.opt if ended is None else ended

    def _post_advance(self) -> None:
        super()._post_advance()
        self._after_generation = not self.termination.has_terminated()

    def _set_optimum(self) -> None:
        """The archive is kept up to date by the engine."""


def _check_directions(given: ArrayLike) -> NDArray[np.float64]:
    """Return directions (d, k) as float64, the sum of each 1; raise TypeError or ValueError for what is none."""
    directions = np.array(checks.finite("ref_dirs", given, 0.0), np.float64)
    if directions.ndim != 2 or len(directions) < 2 or not 2 <= directions.shape[1] <= 6:
        raise ValueError(
            f"ref_dirs must have shape (d, k), at least 2 rows of 2 to 6, got {directions.shape}"
        )
    if not directions.any(axis=1).all():
        raise ValueError(
            f"ref_dirs must not have a row of zeros, got one in row {int(directions.any(axis=1).argmin())}"
        )
    directions /= directions.max(axis=1, keepdims=True)  # the sum of the largest floats is infinite
    return np.ascontiguousarray(directions / directions.sum(axis=1, keepdims=True))
