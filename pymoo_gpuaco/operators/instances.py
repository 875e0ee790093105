"""Cache of the arrays of a problem, and weighted sums for tours of several objectives.

Weights (m, k) of m tours apply to lengths divided by the typical length of each objective; each row has the sum 1.

Source: local search of each member under a weighted sum in the direction of its objectives: H. Ishibuchi, T. Yoshida
and T. Murata, "Balance between genetic search and local search in memetic algorithms for multiobjective permutation
flowshop scheduling", IEEE Transactions on Evolutionary Computation 7 (2003).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP, as_multi_objective

T = TypeVar("T")

_LEVELS = 8  # parts of [0, 1]; tours whose weights round to the same parts share one weighted sum
_TOURS = 16  # random tours for the typical length of each objective


class KeepsInstance:
    """Cache of the arrays of the last problem and an engine built on them, left out of copies and pickles.

    With several objectives, operators use a weighted sum for each group of tours with similar lengths.
    """

    _last: tuple[Problem, int, ListedInstance] | None = None
    _built: tuple[Hashable, Any] | None = None
    _several: tuple[Problem, MultiObjectiveTSP, NDArray[np.float64]] | None = None

    def _instance(self, problem: Problem, k: int) -> ListedInstance:
        if self._last is None or self._last[0] is not problem or self._last[1] != k:
            self._last = (problem, k, listed_instance(problem, k))
            self._built = None
        return self._last[2]

    def _engine(self, arguments: Hashable, make: Callable[[], T]) -> T:
        """Return the cached result of ``make`` for the last instance and these arguments, or call it."""
        if self._built is None or self._built[0] != arguments:
            self._built = (arguments, make())
        engine: T = self._built[1]
        return engine

    def _problems(
        self, problem: Problem, tours: NDArray[Any], random_state: Any
    ) -> Iterator[tuple[Problem, Any]]:
        """Yield problems of one objective, each with its indices of the second last axis of tours (.., m, n)."""
        if getattr(problem, "n_obj", 1) == 1:
            yield problem, slice(None)
            return
        several, scale = self._of_several(problem)
        m, n = tours.shape[-2:]
        lengths = several.tour_lengths(tours.reshape(-1, n)).reshape(-1, m, several.n_obj).mean(axis=0)
        yield from _weighted(several, own_weights(lengths, random_state), scale)

    def _drawn_problems(
        self, problem: Problem, count: int, random_state: Any
    ) -> Iterator[tuple[Problem, Any]]:
        """Yield the same for ``count`` new tours, with random weights."""
        if getattr(problem, "n_obj", 1) == 1:
            yield problem, np.arange(count)
            return
        several, scale = self._of_several(problem)
        yield from _weighted(several, drawn_weights(count, several.n_obj, random_state), scale)

    def _of_several(self, problem: Problem) -> tuple[MultiObjectiveTSP, NDArray[np.float64]]:
        if self._several is None or self._several[0] is not problem:
            taken = as_multi_objective(problem)
            self._several = (problem, taken, typical_lengths(taken))
        return self._several[1:]

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_last", "_built", "_several")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}


def _weighted(
    several: MultiObjectiveTSP, weights: NDArray[np.float64], scale: NDArray[np.float64]
) -> Iterator[tuple[Problem, NDArray[np.int64]]]:
    for rows in groups_of(weights):
        yield several.weighted(weights[rows].mean(axis=0) / scale), rows


def typical_lengths(problem: MultiObjectiveTSP) -> NDArray[np.float64]:
    """Return the mean lengths (k,) of some random tours; 1 if all distances are 0."""
    random = np.random.default_rng(1)
    lengths = problem.tour_lengths([random.permutation(problem.n_cities) for _ in range(_TOURS)]).mean(axis=0)
    return np.where(lengths > 0.0, lengths, 1.0)


def own_weights(lengths: NDArray[np.float64], random_state: Any) -> NDArray[np.float64]:
    """Return weights of tours with lengths (m, k): larger for objectives by which a tour is among the shortest.

    The weights of a single tour, as in steady-state algorithms, are random.
    """
    m, k = lengths.shape
    if m == 1 and random_state is not None:
        return drawn_weights(1, k, random_state)
    span = np.ptp(lengths, axis=0)
    best = (lengths.max(axis=0) - lengths) / np.where(span > 0.0, span, 1.0)
    total = best.sum(axis=1, keepdims=True)
    # like pymoo's pseudo weights, with equal weights for a population of equal members
    return np.where(total > 0.0, best / np.where(total > 0.0, total, 1.0), 1.0 / k)


def drawn_weights(count: int, k: int, random_state: Any) -> NDArray[np.float64]:
    """Return uniformly distributed random weights."""
    weights: NDArray[np.float64] = random_state.dirichlet(np.ones(k), count)
    return weights


def groups_of(weights: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Return groups of rows with similar weights; each row is in one group."""
    groups: dict[tuple[float, ...], list[int]] = {}
    for row, levels in enumerate(np.rint(weights * _LEVELS).tolist()):
        groups.setdefault(tuple(levels), []).append(row)
    return [np.array(rows) for _, rows in sorted(groups.items())]
