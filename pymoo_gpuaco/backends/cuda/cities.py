"""The instance on the device: what distances are computed from, and what is said of whole tours."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.problems.instance import Instance
from pymoo_gpuaco.problems.metrics import Metric, distances

CITIES = "PPPPi"  # argument types of CITIES_PARAMETERS, metric.cuh
# GEO takes six trigonometric functions; up to this many cities a table is used, as in the CPU engine.
GEO_TABLE_LIMIT = 4000


class Cities:
    """Coordinates (n, 3) or a matrix (n, n) in double, and their float copies that searches read."""

    def __init__(self, device: Device, instance: Instance) -> None:
        self._device = device
        self.instance = instance
        self.n = instance.n
        self.table = uses_table(instance)

    def definitions(self) -> dict[str, object]:
        """What every kernel that computes distances is compiled with."""
        instance = self.instance
        three = instance.metric != Metric.EXPLICIT and instance.coords[:, 2].any()
        return {
            "METRIC": int(instance.metric),
            "DIMENSIONS": 3 if three else 2,
            "TABLE": int(self.table),
        }

    def arguments(self) -> tuple[Any, Any, Any, Any, int]:
        """CITIES_PARAMETERS of such a kernel."""
        a = self._device.arrays
        return a["coords"], a["matrix"], a["points"], a["table"], self.n

    def addresses(self) -> tuple[int, int, int, int, int]:
        """The same as plain numbers, once the arrays are there."""
        address = self._device.arrays.address
        return address("coords"), address("matrix"), address("points"), address("table"), self.n

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the kernels of whole tours."""
        kernels = {
            "measure_tours": CITIES + "PiP",
            "shortest_tour": "PiPiP",
            "tour_neighbours": "PiiP",
            "greedy_tour": CITIES + "PiiPP",
        }
        return [Source("tours.cu", {"METRIC": int(self.instance.metric)}, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n = self.n
        needed = {"visited": n, "tour": 4 * n, "length": 8}
        if self.instance.metric == Metric.EXPLICIT:
            needed["matrix"] = 8 * n * n
        else:
            needed["coords"] = 24 * n
        if self.table:
            needed["table"] = 4 * n * n
        else:
            needed["points"] = 16 * n
        return needed

    def prepare(self) -> None:
        """Upload."""
        instance, device = self.instance, self._device
        if instance.metric == Metric.EXPLICIT:
            device.write("matrix", np.asarray(instance.matrix, np.float64))
            device.write("table", np.asarray(instance.matrix, np.float32))
            return
        device.write("coords", np.asarray(instance.coords, np.float64))
        if self.table:
            everyone = np.arange(self.n)
            table = distances(instance.metric, instance.coords, everyone[:, None], everyone[None, :])
            device.write("table", table.astype(np.float32))
        else:
            device.write("points", points(instance.coords))

    # ---- whole tours

    def measure(self, tours: Any, m: int, lengths: Any) -> None:
        """Exact lengths (m,) of tours (m, n), both on the device."""
        self._device.call("measure_tours", 32 * m, *self.arguments(), tours, m, lengths)

    def find_shortest(self, tours: Any, m: int, lengths: Any, shortest: Any) -> None:
        """Copy the first of the shortest of tours (m, n) to ``shortest`` (n,)."""
        self._device.launch("shortest_tour", 1, 1024, lengths, m, tours, self.n, shortest)

    def greedy_tour(self, neighbours: Any, k: int, start: int) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start``, ties to the lower number, and its length."""
        device, n = self._device, self.n
        a = device.arrays
        tour, length = np.empty(n, np.int32), np.empty(1)
        a.zero("visited", n)
        device.launch("greedy_tour", 1, 512, *self.arguments(), neighbours, k, start, a["visited"], a["tour"])
        self.measure(a["tour"], 1, a["length"])
        device.read(tour, "tour")
        device.read(length, "length")
        return tour, float(length[0])


def uses_table(instance: Instance) -> bool:
    """Whether searches look distances up: a matrix, or GEO where the table is small."""
    return instance.metric == Metric.EXPLICIT or (
        instance.metric == Metric.GEO and instance.n <= GEO_TABLE_LIMIT
    )


def points(coords: NDArray[np.float64]) -> NDArray[np.float32]:
    """Float coordinates (n, 2) or (n, 4), relative to the least so that they keep their digits."""
    moved = coords - coords.min(axis=0)
    if not coords[:, 2].any():
        return np.ascontiguousarray(moved[:, :2], np.float32)
    padded = np.zeros((len(coords), 4), np.float32)
    padded[:, :3] = moved
    return padded
