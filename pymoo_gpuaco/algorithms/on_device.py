"""What algorithms of one objective share: an engine on a device that the user chooses."""

from __future__ import annotations

from dataclasses import dataclass

from pymoo.core.variable import get

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.arguments import Count
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.backends import check_backend


@dataclass(kw_only=True, eq=False, repr=False)
class EngineAlgorithm(TourAlgorithm):
    """An algorithm with one engine, on a device that the user may choose.

    Parameters
    ----------
    n_elites : best tours of each generation that pymoo gets to see, >= 1. None (default): one, and all of a colony's
        where the problem's objective is not the tour's length.
    backend : "auto" (CUDA where a device is usable, else CPU), "cpu" or "cuda".
    device : number of the CUDA device, >= 0.

    All arguments of ``TourAlgorithm`` besides.
    """

    n_elites: Count | None = None
    backend: str = "auto"
    device: int = 0

    def _check(self) -> None:
        super()._check()
        checks.optional_integer("n_elites", get(self.n_elites), 1)
        self._check_device()

    def _check_device(self) -> None:
        check_backend(self.backend, self.device)
