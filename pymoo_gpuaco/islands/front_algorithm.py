"""Islands of an algorithm for several objectives: ``Islands(GPU2PPLS())`` makes these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.util.display.output import Output

from pymoo_gpuaco.algorithms.front_algorithm import FrontAlgorithm
from pymoo_gpuaco.islands.algorithm import Islands
from pymoo_gpuaco.islands.front_archipelago import FrontArchipelago
from pymoo_gpuaco.islands.leader import Leader, Rules
from pymoo_gpuaco.islands.output import FrontIslandsOutput
from pymoo_gpuaco.problems.multi_objective import as_multi_objective


@dataclass(eq=False, repr=False)
class FrontIslands(FrontAlgorithm, Islands):
    """What ``Islands`` of ``GPU2PPLS`` are: see there."""

    def _usual_output(self) -> Output:
        return FrontIslandsOutput()

    def _archipelago(self) -> Callable[[Any, bytes, Rules, int | None], Leader]:
        size = self.size_of(as_multi_objective(self.problem).n_obj)
        return partial(FrontArchipelago, size=size)

    def size_of(self, k: int) -> int:
        """Most tours of a front of k objectives, as the colony says."""
        return self.colony.size_of(k)

    def _adopt(self, engine: Leader) -> None:
        Islands._adopt(self, engine)

    def _begin(self) -> None:
        Islands._begin(self)

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        self._expect()
        return super()._build(key)


Islands.of_fronts = FrontIslands
