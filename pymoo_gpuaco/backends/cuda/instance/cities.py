"""Coordinates and distances on the device."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.candidates.graph import GEO_TABLE_LIMIT
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.problems.metrics import Metric

# Extent of coordinates below which they are scaled, and the least unit: floats end at 2^-126.
_TINY, _LEAST_UNIT = 2.0**-30, 2.0**-100


class Cities(Part):
    """Coordinates (n, 2 or 4) or a matrix (n, n) in double, and float copies for searches.

    With ``listed`` also ``neighbours`` (n, k): candidates of each city, ascending by distance.
    """

    def __init__(self, device: Device, instance: ListedInstance, listed: bool = True) -> None:
        self._device = device
        self._listed = listed
        self.instance = instance
        self.n = instance.n
        self.table = uses_table(instance)
        self._three = instance.metric != Metric.EXPLICIT and bool(instance.coords[:, 2].any())
        form = instance.form
        self._doubled = form is not None and form.doubled
        self._has_dummy = form is not None and form.has_dummy
        self.axes = 3 if self._three else 2  # of a city

    def definitions(self) -> dict[str, object]:
        """Return the definitions of kernels that compute distances."""
        unit = point_unit(self.instance)
        return {
            "METRIC": int(self.instance.metric),
            "DIMENSIONS": self.axes,
            "TABLE": int(self.table),
            "DUMMY": int(self._has_dummy),
            "DOUBLED": int(self._doubled),
            **({} if unit == 1.0 else {"POINT_UNIT": f"{unit.hex()}f"}),
        }

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return CITIES_PARAMETERS of such a kernel, once the arrays are allocated."""
        optional = self._device.arrays.optional
        return optional("coords"), optional("matrix"), optional("points"), optional("table"), self.n

    # ---- Part

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n = self.n
        needed = {"neighbours": 4 * n * self.instance.k} if self._listed else {}
        if self._doubled:
            n //= 2
            return {**needed, "matrix": 8 * n * n, "table": 4 * n * n, "coords": 8, "points": 4}
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
        if self._listed:
            device.write("neighbours", np.asarray(instance.neighbours, np.int32))
        if self._doubled:
            assert instance.form is not None
            matrix, far = instance.matrix, instance.form.far
            if np.isinf(matrix).any():
                matrix = np.minimum(matrix, far)
            device.write("matrix", matrix)
            device.write("table", matrix.astype(np.float32))
            device.write("coords", np.array([far]))
            device.write("points", np.array([far], np.float32))
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
            device.write("points", self._sites(points_of(instance)).astype(np.float32))

    def _sites(self, coords: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates (n, 3) in the layout of kernels: (n, 2) in a plane, else (n, 4)."""
        return np.pad(coords, ((0, 0), (0, 1))) if self._three else coords[:, :2]


def points_of(instance: ListedInstance) -> NDArray[np.float64]:
    """Return coordinates (n, 3) for single precision: relative to the least, in ``point_unit``."""
    moved: NDArray[np.float64] = instance.coords - instance.real_coords.min(axis=0)
    return moved / point_unit(instance)


def point_unit(instance: ListedInstance) -> float:
    """Return the unit of float coordinates: 1, or a power of two for tiny coordinates and exact distances.

    Squares of distances below 1e-19 are 0 in single precision, distances only below 1e-37. So the extent of the cities
    may be as small as 1e-30.
    """
    if instance.metric != Metric.EXACT:
        return 1.0
    extent = float(np.ptp(instance.real_coords, axis=0).max())
    return 1.0 if not 0.0 < extent < _TINY else max(_LEAST_UNIT, math.ldexp(1.0, math.frexp(extent)[1]))


def uses_table(instance: ListedInstance) -> bool:
    """Return whether searches use a distance table: a matrix, or GEO if the table is small."""
    return instance.metric == Metric.EXPLICIT or (
        instance.metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT
    )
