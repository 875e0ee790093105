"""An instance on the device: cities, distances, and lists of near cities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup
from pymoo_gpuaco.candidates.listed import GEO_TABLE_LIMIT, ListedInstance
from pymoo_gpuaco.candidates.lists import near_cities
from pymoo_gpuaco.problems.metrics import Metric

# Extent of coordinates below which they are scaled, and the minimum unit; the least normal float is 2^-126.
_TINY, _LEAST_UNIT = 2.0**-30, 2.0**-100
# Length of the list of near cities, a multiple of 128, up to MANY cities and above. Longer lists avoid scans of all
# open cities but take longer to build.
NEAR, NEAR_OF_MANY, MANY = 512, 128, 8192
MOST_PLACES = 2**31 - 1  # maximum entries of the padded rows of all cities: kernels index them with 32 bits


class DeviceInstance(KernelGroup):
    """Coordinates (n, 2 or 4) or a matrix (n, n) in double, and float copies for searches.

    With ``listed`` also ``neighbours`` (n, k): candidates of each city, nearest first. ``prefix`` begins the names of
    the matrix and its float copy.
    """

    def __init__(
        self, device: Device, instance: ListedInstance, listed: bool = True, prefix: str = ""
    ) -> None:
        self._prefix = prefix
        self._device = device
        self.instance = instance
        self.n = n = instance.n
        explicit, form = instance.metric == Metric.EXPLICIT, instance.form
        table = uses_table(instance)
        self._three = not explicit and bool(instance.coords[:, 2].any())
        self._doubled = form is not None and form.doubled
        unit = point_unit(instance)
        #: definitions of kernels that compute distances
        self.definitions: dict[str, object] = {
            "METRIC": int(instance.metric),
            "DIMENSIONS": 3 if self._three else 2,
            "TABLE": int(table),
            "DUMMY": int(form is not None and form.has_dummy),
            "DOUBLED": int(self._doubled),
            "POINT_UNIT": f"{unit.hex()}f",
        }
        self.needed = {"neighbours": 4 * n * instance.k} if listed else {}
        if self._doubled:
            self.needed |= {"matrix": 2 * n * n, "table": n * n, "coords": 8, "points": 4}
            return
        self.needed |= (
            {f"{prefix}matrix": 8 * n * n} if explicit else {"coords": (32 if self._three else 16) * n}
        )
        self.needed |= {f"{prefix}table": 4 * n * n} if table else {"points": 16 * n}

    @cached_property
    def arguments(self) -> tuple[int, int, int, int, int]:
        """Arguments of CITIES_PARAMETERS; the arrays must be allocated."""
        coords, matrix, points, table = (
            self._device.arrays.optional(self._prefix + name)
            for name in ("coords", "matrix", "points", "table")
        )
        return coords, matrix, points, table, self.n

    def prepare(self) -> None:
        """Upload the arrays."""
        instance, device = self.instance, self._device
        if "neighbours" in self.needed:
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
            device.write(f"{self._prefix}matrix", np.asarray(instance.matrix, np.float64))
            device.write(f"{self._prefix}table", np.asarray(instance.matrix, np.float32))
            return
        device.write("coords", self._sites(instance.coords))
        if "table" in self.needed:
            cities = np.arange(self.n)
            table = instance.distance(cities[:, None], cities[None, :])
            device.write("table", table.astype(np.float32))
        else:
            device.write("points", self._sites(points_of(instance)).astype(np.float32))

    def _sites(self, coords: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return coordinates (n, 3) in the layout of kernels: (n, 2) in a plane, else (n, 4)."""
        return np.pad(coords, ((0, 0), (0, 1))) if self._three else coords[:, :2]


def points_of(instance: ListedInstance) -> NDArray[np.float64]:
    """Return coordinates (n, 3) for single precision: relative to the minimum, in ``point_unit``."""
    moved: NDArray[np.float64] = instance.coords - instance.real_coords.min(axis=0)
    return moved / point_unit(instance)


def point_unit(instance: ListedInstance) -> float:
    """Return the unit of float coordinates: 1, or a power of two for tiny coordinates and exact distances.

    In single precision, squares of distances below 1e-19 underflow, distances only below 1e-37. The unit allows extents
    of the cities down to 1e-30.
    """
    if instance.metric != Metric.EXACT:
        return 1.0
    extent = float(np.ptp(instance.real_coords, axis=0).max())
    return 1.0 if not 0.0 < extent < _TINY else max(_LEAST_UNIT, math.ldexp(1.0, math.frexp(extent)[1]))


def uses_table(instance: ListedInstance) -> bool:
    """Return True if searches use a distance table: for a matrix, or for GEO if the table is small."""
    return instance.metric == Metric.EXPLICIT or (
        instance.metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT
    )


def node_bytes(n: int) -> int:
    """Return the bytes of a city's index for n cities."""
    return 2 if n < 1 << 16 else 4


def node_type(n: int) -> str:
    """Return the C type of a city's index (NODE)."""
    return "unsigned short" if node_bytes(n) == 2 else "unsigned int"


@dataclass(frozen=True)
class ListPlan:
    """Shapes of the lists of n cities with k candidates each."""

    n: int
    k: int

    @property
    def slots(self) -> int:
        """Number of candidates per lane."""
        return -(-self.k // 32)

    @property
    def stride(self) -> int:
        """Length of a padded candidate row."""
        return 32 * self.slots

    @property
    def countable(self) -> bool:
        """True if kernels can index all rows with 32 bits."""
        return self.n * self.stride <= MOST_PLACES

    @property
    def near(self) -> int:
        """Length of the list of near cities."""
        return NEAR if self.n <= MANY else NEAR_OF_MANY

    def definitions(self) -> dict[str, object]:
        """Return the definitions of kernels that read padded rows."""
        return {"SLOTS": self.slots, "NODE": node_type(self.n)}


class CandidateRows(KernelGroup):
    """``candidates`` (n, stride), rows padded with the row's own city, and ``near_cities`` (n, near)."""

    def __init__(self, device: Device, instance: ListedInstance) -> None:
        self._device = device
        self._instance = instance
        self.plan = plan = ListPlan(instance.n, instance.k)
        each = node_bytes(plan.n) * plan.n
        self.needed = {"candidates": each * plan.stride, "near_cities": each * plan.near}

    def prepare(self) -> None:
        """Upload the lists."""
        plan, instance = self.plan, self._instance
        node = np.uint16 if node_bytes(plan.n) == 2 else np.uint32
        rows = np.repeat(np.arange(plan.n, dtype=node)[:, None], plan.stride, axis=1)
        rows[:, : plan.k] = instance.neighbours
        self._device.write("candidates", rows)
        self._device.write("near_cities", near_cities(instance, plan.near).astype(node))
