"""Initial tours better than random permutations."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem
from pymoo.core.sampling import Sampling

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends import check_backend, make_colony
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.operators.instances import KeepsInstance


class _TourSampling(KeepsInstance, Sampling):
    """Sampling of tours for one objective, or for weighted sums of several."""

    def _do(
        self, problem: Problem, n_samples: int, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray[np.int64]:
        made: NDArray[np.int64] = np.empty((n_samples, problem.n_var), np.int64)
        for one, rows in self._drawn_problems(problem, n_samples, random_state):
            made[rows] = self._sample(one, len(rows), random_state)
        return made

    @abstractmethod
    def _sample(self, problem: Problem, n_samples: int, random_state: Any) -> NDArray[np.int64]:
        """Return tours (n_samples, n) of a problem of one objective."""


class NearestNeighbourSampling(_TourSampling):
    """Greedy tours from different random cities; with more samples than cities, first cities repeat.

    With several objectives they are greedy by weighted sums with random weights.

    Parameters
    ----------
    candidate_list_size : candidate cities per city, in [1, 1024]. Default 32. It affects speed, not tours.
    """

    def __init__(self, candidate_list_size: int = 32) -> None:
        super().__init__()
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1, 1024)

    def _sample(self, problem: Problem, n_samples: int, random_state: Any) -> NDArray[np.int64]:
        instance = self._instance(problem, self.candidate_list_size)
        parameters = ColonyParameters(
            n_ants=1, candidate_list_size=self.candidate_list_size, memory="candidate"
        )
        colony = self._engine(parameters, lambda: make_colony(instance, parameters, "cpu"))
        starts = random_state.permutation(np.resize(random_state.permutation(instance.n), n_samples))
        return np.array([colony.greedy_tour(int(start))[0] for start in starts], dtype=np.int64)


class AntColonySampling(_TourSampling):
    """Tours of ants with equal trails: random, with a preference for short edges (beta).

    With several objectives lengths are weighted sums with random weights.

    Parameters
    ----------
    beta : exponent of 1 / distance in [0, 20]. Default 3.
    candidate_list_size : nearest cities an ant chooses from first, in [1, 1024]. Default 32.
    local_search : as in ``GPUMMAS``; default False.
    backend, device : as in ``GPUMMAS``.
    """

    def __init__(
        self,
        beta: float = 3.0,
        candidate_list_size: int = 32,
        local_search: Any = False,
        backend: str = "auto",
        device: int = 0,
    ) -> None:
        super().__init__()
        check_backend(backend, device)
        self.beta = checks.real("beta", beta, 0.0, 20.0)
        self.candidate_list_size = checks.integer("candidate_list_size", candidate_list_size, 1, 1024)
        self.local_search = LocalSearch.of(local_search)
        self.backend = backend
        self.device = device

    def _sample(self, problem: Problem, n_samples: int, random_state: Any) -> NDArray[np.int64]:
        instance = self._instance(problem, self.candidate_list_size)
        parameters = ColonyParameters(
            n_ants=int(n_samples),
            beta=self.beta,
            candidate_list_size=self.candidate_list_size,
            local_search=self.local_search,
            memory="candidate",
        )
        colony = make_colony(instance, parameters, self.backend, self.device)
        colony.reset_trails(1.0)
        colony.construct(int(random_state.integers(0, 2**64, dtype=np.uint64)))
        return colony.tours(np.arange(n_samples)).astype(np.int64)
