"""Mutation of tours, for pymoo's own algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.mutation import Mutation
from pymoo.core.problem import Problem

from pymoo_gpuaco import checks


class DoubleBridgeMutation(Mutation):
    """Let two adjacent stretches of a tour change places: a double-bridge of small reach.

    It changes three edges and keeps directions, and no single 2-opt or Or-opt move of few cities takes it back, which
    makes it the mutation of choice beside `LocalSearchRepair` (Martin, Otto and Felten 1991).

    Parameters
    ----------
    prob : probability in [0, 1] that a tour is changed. Default 1.
    length : longest stretch in cities, >= 1. Default 30.
    """

    def __init__(self, prob: float = 1.0, length: int = 30) -> None:
        super().__init__()
        self.prob = checks.real("prob", prob, 0.0, 1.0)
        self.length = checks.integer("length", length, 1)

    def _do(
        self, problem: Problem, X: NDArray, *args: Any, random_state: Any = None, **kwargs: Any
    ) -> NDArray:
        n = X.shape[1]
        longest = min(self.length, (n - 1) // 2)
        mutated = X.copy()
        for row in mutated if longest else ():
            if random_state.random() < self.prob:
                first, second = random_state.integers(1, longest + 1, size=2)
                turned = np.roll(row, -int(random_state.integers(n)))
                row[:] = np.concatenate(
                    (turned[first : first + second], turned[:first], turned[first + second :])
                )
        return mutated
