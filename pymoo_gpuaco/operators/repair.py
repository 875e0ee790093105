"""Local search on a whole population."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem
from pymoo.core.repair import Repair

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends import check_backend, make_improver
from pymoo_gpuaco.colony.parameters import MOVES, LocalSearch
from pymoo_gpuaco.operators.instances import KeepsInstance
from pymoo_gpuaco.runtime.stop import end_on_interrupt


class LocalSearchRepair(KeepsInstance, Repair):
    """Improve every tour of a population to a local optimum, as ``repair=`` of pymoo's ``GA``: a memetic algorithm.

    Parameters
    ----------
    local_search : True, "2opt", "2opt+oropt" (default), "windows" or a ``LocalSearch``.
    candidate_list_size : candidate neighbours of the search, in [1, 1024]. Default 16.
    backend, device : as in ``GPUMMAS``.

    With several objectives each tour is improved under a weighted sum, with larger weights for objectives by which it
    is among the shortest of the population (Ishibuchi, Yoshida and Murata 2003).

    Raises ValueError if some X is not a permutation of the cities, for "2opt" on asymmetric distances, and for paths
    and fixed or forbidden edges. "windows" takes all of these and repairs tours that violate constraints.
    """

    def __init__(
        self,
        local_search: Any = "2opt+oropt",
        candidate_list_size: int = 16,
        backend: str = "auto",
        device: int = 0,
    ) -> None:
        super().__init__()
        check_backend(backend, device)
        search = LocalSearch.of(local_search)
        if search is None:
            raise ValueError(
                f"local_search must be True, {', '.join(map(repr, MOVES))} or a LocalSearch, got {local_search!r}"
            )
        self.local_search = search
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1, 1024)
        self.backend = backend
        self.device = device

    def _do(self, problem: Problem, X: NDArray, random_state: Any = None, **kwargs: Any) -> NDArray[np.int64]:
        if len(X) == 0:
            return X
        improved = np.empty(X.shape, np.int64)
        for one, rows in self._problems(problem, X, random_state):
            improved[rows] = self._improve(one, X[rows], random_state)
        return improved

    def _improve(self, problem: Problem, X: NDArray, random_state: Any) -> NDArray[np.int64]:
        instance = self._instance(problem, self.candidate_list_size)
        arguments = self.local_search, self.backend, self.device
        improver = self._engine(arguments, lambda: make_improver(instance, *arguments))
        key = 0 if random_state is None else int(random_state.integers(0, 2**64, dtype=np.uint64))
        return end_on_interrupt(lambda: improver.improve(X, key), improver.stop)[0].astype(np.int64)
