"""Two-phase Pareto local search for several objectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pymoo.core.variable import get
from pymoo.util.ref_dirs import get_reference_directions

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count
from pymoo_gpuaco.algorithms.front_algorithm import FrontAlgorithm
from pymoo_gpuaco.backends import check_backend, make_front
from pymoo_gpuaco.pareto.parameters import FrontParameters
from pymoo_gpuaco.problems.multi_objective import as_multi_objective

_DIRECTIONS = 100  # of more than two objectives, about
_MOST_WEIGHTS = 100_000


@dataclass(eq=False, repr=False)
class GPU2PPLS(FrontAlgorithm):
    """Two-phase Pareto local search (2PPLS): the Pareto front of tours of 2 to 6 objectives.

    Phase one solves weighted sums of the objectives by iterated local search, each from the tour of a neighbouring
    weight. Phase two explores the neighbourhood of every tour of the front: exchanges of two to five edges, under
    weights of the front's slope there. Tours of the front are also kicked and, for two symmetric objectives, recombined
    by edge assembly; for two objectives chains of exchanges go along the front while their weights slide. There is no
    pheromone: the search keeps an archive of non-dominated tours.

    ``res.F`` (f, k) and ``res.X`` (f, n) are the front, one tour for each F, in order of the first objective. It is no
    part of pymoo's population: a generation hands out up to 100 tours that are new to the front, and ``algorithm.opt``
    is the whole front, put together when it is asked for. ``evaluator.n_eval`` counts all tours that were built.
    A generation is a fixed amount of work, whatever the machine. Up to 9 cities, the first looks at every tour.

    Parameters
    ----------
    n_weights : weighted sums that are solved at first, in [2, 100000]. None: of two objectives as many as it takes to
        find all supported tours (Aneja and Nair 1979), at most 2000 and from 100 cities on fewer, 200,000 / n but at
        least 100; of more about 100.
    archive_size : tours that the front may have, each of 2 n bytes, >= 4 and at least two for each objective. Beyond,
        those go without which it loses least: of two objectives the least hypervolume, of more those that lie closest
        to another. How many went is logged.
    ref_dirs : (d, k) directions, >= 0 and in no row all 0: the weights, as shares of what the objectives extend over on
        the front. Rows count by their shares of the sum. They take the place of ``n_weights``. None: pymoo's Das and
        Dennis for more than two objectives.
    candidate_list_size : nearest cities by each objective that make up a city's candidates, in [1, 1024]. After the
        first looks these are the edges of the front's tours (Lust and Jaszkiewicz 2010).
    sampling : tours to begin with, as `TourAlgorithm` says.
    backend : "auto" takes CUDA where it can run, up to 2,000 cities with symmetric distances, else the CPU; "cuda"
        raises ``BackendUnavailable`` where it cannot.
    device : number of the CUDA device, >= 0.

    All arguments of ``TourAlgorithm`` besides; ``termination`` is one of pymoo's or a `FrontTermination`. Raises
    TypeError or ValueError, in ``setup``, for problems that `as_multi_objective` does not take.

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
    backend: str = "auto"
    device: int = 0

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

    # ---- the engine

    def _candidates(self) -> int:
        return int(get(self.candidate_list_size))

    def _maker(self) -> Callable[[Any], Any]:
        k = as_multi_objective(self.problem).n_obj
        parameters = FrontParameters(
            n_weights=get(self.n_weights),
            size=self.size_of(k),
            directions=self._directions(k),
        )
        backend, device = self.backend, int(self.device)
        return lambda instance: make_front(instance, parameters, backend, device)

    def size_of(self, k: int) -> int:
        """Most tours of a front of k objectives."""
        return checks.integer("archive_size", get(self.archive_size), max(4, 2 * k))

    def _directions(self, k: int) -> NDArray[np.float64] | None:
        if self.ref_dirs is not None:
            given = _check_directions(self.ref_dirs)
            if given.shape[1] != k:
                raise ValueError(f"ref_dirs must have {k} columns, one an objective, got {given.shape[1]}")
            return given
        return usual_directions(k, get(self.n_weights) or _DIRECTIONS)


def usual_directions(k: int, wanted: int = _DIRECTIONS) -> NDArray[np.float64] | None:
    """Directions (.., k) of Das and Dennis, about as many as are wanted; None for two objectives, which find theirs."""
    if k == 2:
        return None
    parts = 1
    while len(found := get_reference_directions("das-dennis", k, n_partitions=parts)) < wanted:
        parts += 1
    return np.ascontiguousarray(found)


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
