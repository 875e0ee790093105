"""Local search of given tours on a CUDA device."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import Device
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.local_search.batch_improver import BatchImprover, make_search
from pymoo_gpuaco.backends.cuda.tours.measure import Measure
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import LocalSearch

_ADVICE = "fewer tours need less"


class CudaImprover:
    """``Improver`` on a CUDA device, compiled once for any number of tours.

    Parameters
    ----------
    instance : the problem with candidate lists.
    search : parameters of the local search.
    device : index of the CUDA device.
    candidates : of window search, see ``ColonyParameters``.

    Raises
    ------
    BackendUnavailable : if the device cannot be set up.
    ValueError : for a search that reverses paths on an asymmetric instance, or for a missing device.
    MemoryError : if the tours do not fit into device memory.
    """

    kind: str = "cuda"

    def __init__(
        self, instance: ListedInstance, search: LocalSearch, device: int = 0, candidates: str = "auto"
    ) -> None:
        search.check_for(instance.symmetric)
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        cities = Cities(self.device, instance)
        measure = Measure(self.device, cities)
        part = make_search(self.device, cities, search, candidates)
        self._batch_improver = BatchImprover(self.device, measure, part, instance.n)
        self.device.set_up([cities, measure, part, *part.parts, self._batch_improver], _ADVICE)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n); return copies and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        with self.device.working():
            return self._batch_improver.improve(rows, key)

    def stop_at(self, moment: float | None) -> None:
        """End the following calls soon after this ``time.monotonic()``, see ``Improver``."""
        self.device.stop.until = moment
