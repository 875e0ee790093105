"""Local search on tours at hand, on the device."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.backends.cuda.engine import CudaColony, lacks
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.backends.protocol import Kind
from pymoo_gpuaco.colony import checks
from pymoo_gpuaco.colony.parameters import ColonyParameters, LocalSearch
from pymoo_gpuaco.problems.instance import Instance


class CudaImprover:
    """``Improver`` on a device: a colony of as many ants as there are tours, kept while their number stays.

    Raises
    ------
    BackendUnavailable : if the device cannot be set up or its search has not got what is asked for.
    MemoryError : when the tours do not fit the device.
    """

    kind: Kind = "cuda"

    def __init__(self, instance: Instance, search: LocalSearch, device: int = 0) -> None:
        self.instance = instance
        self._search = search
        self._device = device
        self._colony = self._make(1)

    def _make(self, m: int) -> CudaColony:
        k = self.instance.neighbours.shape[1]
        parameters = ColonyParameters(
            n_ants=m, candidate_list_size=k, local_search=self._search, memory="candidate"
        )
        missing = lacks(self.instance, parameters)
        if missing is not None:
            raise BackendUnavailable(missing)
        return CudaColony(self.instance, parameters, self._device)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n); return copies and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        if not len(rows):
            return rows, np.empty(0)
        if len(rows) != self._colony.n_ants:
            self._colony = self._make(len(rows))
        return self._colony.improve(rows, key)
