"""Random-restart 2-opt hill climbing."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.variable import get

from pymoo_gpuaco.algorithms.arguments import Count, Word, as_parameters
from pymoo_gpuaco.algorithms.individuals import Permutations
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.backends import make_climbers
from pymoo_gpuaco.colony.parameters import ClimberParameters


@dataclass(eq=False, repr=False)
class GPU2OptIHC(TourAlgorithm):
    """Iterated hill climbing: best-improvement 2-opt from random tours (O'Neil and Burtscher 2015).

    Every climber makes the best of all (n-2)(n-1)/2 moves until none shortens its tour, then restarts. Moves are
    compared by the problem's own distances, on the GPU too. A generation is a bounded amount of work: small instances
    finish many climbs in it, large ones a part of one. ``evaluator.n_eval`` counts finished
    climbs, and at least one a generation.

    Parameters
    ----------
    n_climbers : tours that climb in parallel, >= 1. None: 32 on the CPU, on CUDA the number that runs at once.
    kernel : GPU code: "intra", "tiled" or "tuned", the steps of sections 3.1 to 3.3 of the paper, or "auto", the
        fastest. It changes no result.
    sampling : the first climbs start from these tours.

    All arguments of ``PermutationAlgorithm`` are also available.

    Source: M. A. O'Neil, M. Burtscher, "Rethinking the parallelization of random-restart hill climbing: a case study
    in optimizing a 2-opt TSP solver for GPU execution", GPGPU-8 (2015), doi:10.1145/2716282.2716287.
    """

    n_climbers: Count | None = None
    _: KW_ONLY
    kernel: Word = "auto"

    _make_engine = staticmethod(make_climbers)

    def _check(self) -> None:
        super()._check()
        self._parameters()

    def _parameters(self) -> ClimberParameters:
        n_climbers = get(self.n_climbers)
        return as_parameters(
            self, ClimberParameters, n_climbers=self._size if n_climbers is None else n_climbers
        )

    def _candidates(self) -> tuple[int, str]:
        return 1, "nearest"  # all pairs are evaluated; no list is read

    def _adopt(self, engine: Any) -> None:
        self._size = engine.n_climbers  # fixed for the run, also if a copy continues with another engine

    def _begin(self) -> None:
        self._run_key = self._draw_key()

    def _build(self, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64], int]:
        # climb number r of a run starts from (run key, r): the generation's key is not used
        finished = self.engine.climb(self._run_key)
        tour, length = self.engine.best()
        return tour[None, :], np.array([length]), max(1, finished)

    def _accept(self, outside: Permutations) -> None:
        if self._asked_permutations is None:  # tours of ``sampling``; climbers do not learn from others
            self.engine.start_from(outside.rows[np.argsort(outside.values, kind="stable")])
