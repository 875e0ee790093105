"""Cache of the arrays of a problem, since operators are called with the same problem every generation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pymoo.core.problem import Problem

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.operators.weights import drawn_weights, groups_of, own_weights, typical_lengths
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP, as_multi_objective

T = TypeVar("T")


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
