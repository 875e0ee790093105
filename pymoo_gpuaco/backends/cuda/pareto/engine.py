"""Multi-objective search on one CUDA device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.pareto.engine import CpuFronts
from pymoo_gpuaco.backends.cuda.device import Device
from pymoo_gpuaco.backends.cuda.pareto.parts import Descents, Edges, Exploration
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.pareto.costs import MOST_FOR_TABLE
from pymoo_gpuaco.pareto.device import Children, Front, Members
from pymoo_gpuaco.pareto.instance import FrontInstance

_ADVICE = "fewer cities need less"


class CudaFronts:
    """``FrontDevice`` on one CUDA device.

    Parameters
    ----------
    instance : the problem, symmetric, of at most ``MOST_FOR_TABLE`` cities.
    device : index of the CUDA device.

    Raises
    ------
    BackendUnavailable : for other instances, and without a driver, PyCUDA or nvcc; the message says what to install.
    MemoryError : if the costs of all edges do not fit into device memory.
    """

    kind: str = "cuda"
    times = 8

    def __init__(self, instance: FrontInstance, device: int = 0) -> None:
        if instance.n > MOST_FOR_TABLE:
            raise BackendUnavailable(
                f"several objectives on CUDA: at most {MOST_FOR_TABLE} cities, got {instance.n}; use backend='cpu'"
            )
        if not instance.symmetric:
            raise BackendUnavailable("several objectives on CUDA need symmetric distances; use backend='cpu'")
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        self._edges = Edges(self.device, instance)
        self._descents = Descents(self.device, self._edges)
        self._exploration = Exploration(self.device, instance, self._edges)
        self._cores = CpuFronts(instance)
        self._cores.stop = self.stop
        self.slide = self._cores.slide  # sequential: each step depends on the one before
        self.device.set_up([self._edges, self._descents, self._exploration], _ADVICE)

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Replace the candidates (n, ..)."""
        with self.device.working():
            self._edges.use(candidates)
        self._cores.use(candidates)

    def descend(
        self, tours: NDArray[np.int32], weights: NDArray[np.float64], kicks: int, key: int
    ) -> NDArray[np.int32]:
        """Return tours (m, n) improved by ``kicks`` kicks, each under its weights (m, k)."""
        with self.device.working():
            return self._descents.descend(tours, weights, kicks, key)

    def explore(self, members: Members, front: Front) -> Children:
        """Return the children of members."""
        with self.device.working():
            return self._exploration.explore(members, front)

    def follow(self, members: Members, children: Children) -> NDArray[np.int32]:
        """Return the tours (e, n) of children."""
        with self.device.working():
            return self._exploration.follow(members, children)
