"""The instance on the device: what distances are computed from."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.metrics import Metric

# GEO takes six trigonometric functions; up to this many cities a table is used, as in the CPU engine.
GEO_TABLE_LIMIT = 4000


class Cities:
    """Coordinates (n, 2 or 4) or a matrix (n, n) in double, and their float copies that searches read."""

    def __init__(self, device: Device, instance: ListedInstance) -> None:
        self._device = device
        self.instance = instance
        self.n = instance.n
        self.table = uses_table(instance)
        self._three = instance.metric != Metric.EXPLICIT and bool(instance.coords[:, 2].any())
        form = instance.form
        self._doubled = form is not None and form.doubled
        self._has_dummy = form is not None and form.has_dummy
        self.axes = 3 if self._three else 2  # of a city

    @cached_property
    def shortest(self) -> float:
        """What a distance of 0 counts as where eta = 1 / d is taken: half the shortest distance of neighbours."""
        distances = self.instance.neighbour_distances
        positive = distances[distances > 0]
        return float(positive.min()) / 2.0 if positive.size else 1.0

    def definitions(self) -> dict[str, object]:
        """What every kernel that computes distances is compiled with."""
        return {
            "METRIC": int(self.instance.metric),
            "DIMENSIONS": self.axes,
            "TABLE": int(self.table),
            "DUMMY": int(self._has_dummy),
            "DOUBLED": int(self._doubled),
        }

    def arguments(self) -> tuple[int, int, int, int, int]:
        """CITIES_PARAMETERS of such a kernel, once the arrays are there."""
        optional = self._device.arrays.optional
        return optional("coords"), optional("matrix"), optional("points"), optional("table"), self.n

    # ---- Part

    def sources(self) -> list[Source]:
        """Return nothing: no kernels of its own."""
        return []

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n = self.n
        if self._doubled:
            n //= 2
            return {"matrix": 8 * n * n, "table": 4 * n * n, "coords": 8, "points": 4}
        needed = {}
        if self.instance.metric == Metric.EXPLICIT:
            needed["matrix"] = 8 * n * n
        else:
            needed["coords"] = (32 if self._three else 16) * n
        if self.table:
            needed["table"] = 4 * n * n
        else:
            needed["points"] = 16 * n
        return needed

    def prepare(self) -> None:
        """Upload."""
        instance, device = self.instance, self._device
        if self._doubled:
            assert instance.form is not None
            matrix = np.minimum(instance.matrix, instance.form.far)
            device.write("matrix", matrix)
            device.write("table", matrix.astype(np.float32))
            device.write("coords", np.array([instance.form.far]))
            device.write("points", np.array([instance.form.far], np.float32))
            return
        if instance.metric == Metric.EXPLICIT:
            device.write("matrix", np.asarray(instance.matrix, np.float64))
            device.write("table", np.asarray(instance.matrix, np.float32))
            return
        device.write("coords", self._sites(instance.coords))
        if self.table:
            everyone = np.arange(self.n)
            table = instance.distance(everyone[:, None], everyone[None, :])
            device.write("table", table.astype(np.float32))
        else:
            # relative to the least, so that they keep their digits
            moved = instance.coords - instance.real_coords.min(axis=0)
            device.write("points", self._sites(moved).astype(np.float32))

    def _sites(self, coords: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coordinates (n, 3) as kernels read them, a city at once: (n, 2) in a plane, else (n, 4)."""
        return np.pad(coords, ((0, 0), (0, 1))) if self._three else coords[:, :2]


def uses_table(instance: ListedInstance) -> bool:
    """Whether searches look distances up: a matrix, or GEO where the table is small."""
    return instance.metric == Metric.EXPLICIT or (
        instance.metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT
    )
