"""Mutation of permutations, for pymoo's own algorithms."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem

from pymoo_gpuaco import checks


class _TourMutation(Mutation):
    """Mutation of each permutation with a probability; pymoo's base class would apply its ``prob`` a second time."""

    def __init__(self, prob: float = 1.0) -> None:
        super().__init__()
        self.probability = checks.real("prob", prob, 0.0, 1.0)

    _least = 2  # minimum items of a permutation

    @abstractmethod
    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        """Return a changed copy of a permutation (n,)."""

    def _do(
        self, problem: Problem, X: NDArray, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray:
        mutated = X.copy()
        for row in mutated if self._least <= X.shape[1] else ():
            if random_state.random() < self.probability:
                row[:] = self._changed(row, random_state)
        return mutated


class DoubleBridgeMutation(_TourMutation):
    """Swap two adjacent stretches of a tour: a local double bridge.

    It changes three edges, preserves directions, and is not undone by a single 2-opt or Or-opt move of few cities. It
    is therefore the mutation to use with `LocalSearchRepair` (Martin, Otto and Felten 1991).

    Parameters
    ----------
    prob : probability in [0, 1] that a tour is changed. Default 1.
    length : longest stretch in cities, >= 1. Default 30.
    """

    _least = 3

    def __init__(self, prob: float = 1.0, length: int = 30) -> None:
        super().__init__(prob)
        self.length = checks.integer("length", length, 1)

    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        n = len(row)
        longest = min(self.length, (n - 1) // 2)
        first, second = random_state.integers(1, longest + 1, size=2)
        turned = np.roll(row, -int(random_state.integers(n)))
        return np.concatenate((turned[first : first + second], turned[:first], turned[first + second :]))


class InsertionMutation(_TourMutation):
    """Move one item of a permutation to another random position; the items between shift by one.

    It preserves the relative order of all other items: the mutation for flow shops, sequencing and linear ordering.

    Parameters
    ----------
    prob : probability in [0, 1] that a permutation is changed. Default 1.
    """

    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        source, target = _two_positions(len(row), random_state)
        return np.insert(np.delete(row, source), target, row[source])


class SwapMutation(_TourMutation):
    """Exchange two random items of a permutation; all others keep their positions.

    It is the mutation for objectives of positions, such as quadratic assignment.

    Parameters
    ----------
    prob : probability in [0, 1] that a permutation is changed. Default 1.
    """

    def _changed(self, row: NDArray[Any], random_state: Any) -> NDArray[Any]:
        one, other = _two_positions(len(row), random_state)
        changed = row.copy()
        changed[[one, other]] = row[[other, one]]
        return changed


def _two_positions(n: int, random_state: Any) -> tuple[int, int]:
    """Draw two different positions of n >= 2."""
    one, other = int(random_state.integers(n)), int(random_state.integers(n - 1))
    return one, other + (other >= one)
