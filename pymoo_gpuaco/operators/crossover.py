"""Crossover that takes the better side of every difference between its parents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.crossover import Crossover
from pymoo.core.problem import Problem

from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.exchange import merge_all
from pymoo_gpuaco.operators.instances import KeepsInstance


class MergeCrossover(KeepsInstance, Crossover):
    """Merge tours by the components of their difference, as ``crossover=`` of pymoo's ``GA``.

    The one child is never longer than the shortest parent and has no edge that no parent has. Parents that agree
    in most edges (locally optimal tours) merge best: combine it with ``LocalSearchRepair`` and a mutation.

    Parameters
    ----------
    n_parents : tours merged, in [2, 1024]. Default 2.

    Raises
    ------
    ValueError : in use, for a problem whose distances are not symmetric.
    """

    def __init__(self, n_parents: int = 2, **kwargs: Any) -> None:
        super().__init__(checks.integer("n_parents", n_parents, 2, 1024), 1, **kwargs)

    def _do(self, problem: Problem, X: NDArray, *args: Any, **kwargs: Any) -> NDArray[np.int64]:
        instance = self._instance(problem, 1)
        if not instance.symmetric:
            raise ValueError("MergeCrossover turns stretches around and needs symmetric distances")
        children = [
            merge_all(X[:, mating].astype(np.int32), instance.distance)[0] for mating in range(X.shape[1])
        ]
        return np.array(children, dtype=np.int64).reshape(1, X.shape[1], X.shape[2])
