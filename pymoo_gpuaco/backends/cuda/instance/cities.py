"""The instance on the device: what distances are computed from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.candidates.graph import GEO_TABLE_LIMIT
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.metrics import Metric, distances


class Cities(Part):
    """Coordinates (n, 2 or 4) or a matrix (n, n) in double, and their float copies that searches read.

    With ``listed`` also ``neighbours`` (n, k): the nearest cities of each, ascending by distance.
    """

    def __init__(self, device: Device, instance: ListedInstance, listed: bool = True) -> None:
        self._device = device
        self._listed = listed
        self.instance = instance
        self.n = instance.n
        self.table = uses_table(instance)
        self._three = instance.metric != Metric.EXPLICIT and bool(instance.coords[:, 2].any())
        self.axes = 3 if self._three else 2  # of a city

    def definitions(self) -> dict[str, object]:
        """What every kernel that computes distances is compiled with."""
        return {
            "METRIC": int(self.instance.metric),
            "DIMENSIONS": self.axes,
            "TABLE": int(self.table),
        }

    def arguments(self) -> tuple[int, int, int, int, int]:
        """CITIES_PARAMETERS of such a kernel, once the arrays are there."""
        optional = self._device.arrays.optional
        return optional("coords"), optional("matrix"), optional("points"), optional("table"), self.n

    # ---- Part

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n = self.n
        needed = {}
        if self.instance.metric == Metric.EXPLICIT:
            needed["matrix"] = 8 * n * n
        else:
            needed["coords"] = (32 if self._three else 16) * n
        if self.table:
            needed["table"] = 4 * n * n
        else:
            needed["points"] = 16 * n
        if self._listed:
            needed["neighbours"] = 4 * n * self.instance.k
        return needed

    def prepare(self) -> None:
        """Upload."""
        instance, device = self.instance, self._device
        if self._listed:
            device.write("neighbours", np.asarray(instance.neighbours, np.int32))
        if instance.metric == Metric.EXPLICIT:
            device.write("matrix", np.asarray(instance.matrix, np.float64))
            device.write("table", np.asarray(instance.matrix, np.float32))
            return
        device.write("coords", self._sites(instance.coords))
        if self.table:
            everyone = np.arange(self.n)
            table = distances(instance.metric, instance.coords, everyone[:, None], everyone[None, :])
            device.write("table", table.astype(np.float32))
        else:
            # relative to the least, so that they keep their digits
            moved = instance.coords - instance.coords.min(axis=0)
            device.write("points", self._sites(moved).astype(np.float32))

    def _sites(self, coords: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates (n, 3) as kernels read them, a city at once: (n, 2) in a plane, else (n, 4)."""
        return np.pad(coords, ((0, 0), (0, 1))) if self._three else coords[:, :2]


def uses_table(instance: ListedInstance) -> bool:
    """Whether searches look distances up: a matrix, or GEO where the table is small."""
    return instance.metric == Metric.EXPLICIT or (
        instance.metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT
    )
