"""What edges cost by every objective, on the device, and the candidates that chains are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.pareto.costs import make_costs
from pymoo_gpuaco.pareto.instance import FrontInstance


class Edges(Part):
    """A table of all edges (n, n, k), and c candidates a city; kernels take both as ``COSTS_PARAMETERS``."""

    def __init__(self, device: Device, instance: FrontInstance) -> None:
        self._device, self._instance = device, instance
        table = instance.costs.table
        with np.errstate(over="ignore"):
            floats = table.astype(np.float32)
        exact = bool((floats == table).all())  # what lengths are made of must not be rounded
        self._table: NDArray[Any] = floats if exact else table
        self.c = instance.costs.near.shape[1]

    def definitions(self) -> dict[str, object]:
        """Return the definitions of every kernel that reads costs."""
        kind = "float" if self._table.dtype == np.float32 else "double"
        return {"OBJECTIVES": self._instance.k, "COST": kind}

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"costs": self._table.nbytes}

    def prepare(self) -> None:
        """Copy the costs."""
        self._device.write("costs", self._table)
        self._list(self._instance.costs.neighbours, self._instance.costs.near)

    def use(self, candidates: NDArray[np.int32]) -> None:
        """Take other candidates (n, ..) from now on."""
        instance = self._instance
        self._list(candidates, make_costs(instance.parts, candidates, instance.costs.table).near)

    def _list(self, candidates: NDArray[np.int32], near: NDArray[np.float64]) -> None:
        lists = candidates.astype(np.uint16)
        costs = near.astype(self._table.dtype)
        self._device.take({"candidates": lists.nbytes, "candidate_costs": costs.nbytes})
        self._device.write("candidates", lists)
        self._device.write("candidate_costs", costs)
        self.c = lists.shape[1]

    def arguments(self) -> tuple[Any, ...]:
        """``COSTS_PARAMETERS`` of a launch."""
        a = self._device.arrays
        return a["costs"], a["candidate_costs"], a["candidates"], self._instance.n, self.c
