"""Whole tours on the device: those of the colony, their exact lengths, and what the host is told of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import Layout

_THREADS = 256  # that measure a tour


class Told(NamedTuple):
    """What the host hears of measured tours: their lengths (m,), and the first of the shortest with its number."""

    lengths: NDArray[np.float64]
    shortest: int
    tour: NDArray[np.int32]


class Tours:
    """``tours`` (m, n) and ``lengths`` (m,) of the last construction, and those of the next."""

    def __init__(self, device: Device, cities: Cities, plan: Layout) -> None:
        self._device = device
        self._cities = cities
        self._plan = plan
        self.lengths = np.zeros(plan.m)
        self.told: Told | None = None  # of the last construction, while its tours are as they were built
        self._uploaded: bytes | None = None  # what ``tour`` holds

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the kernels of whole tours."""
        definitions = {**self._cities.definitions(), "THREADS": _THREADS}
        kernels = {
            "measure_tours": CITIES + "PiPPPP",
            "tour_neighbours": "PiiP",
            "greedy_tour": CITIES + "PiiPP",
        }
        return [Source("tours/tours.cu", definitions, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        m, n = self._plan.m, self._plan.n
        return {
            "tours": 4 * m * n,
            "lengths": 8 * m,
            "next_tours": 4 * m * n,
            "next_lengths": 8 * m,
            "tour": 4 * n,
            "visited": n,
            "measured": 4,
        }

    def prepare(self) -> None:
        """Nothing is built yet."""
        for name, size in self.needed().items():
            self._device.arrays.zero(name, size)
        m, n = self._plan.m, self._plan.n
        share, address = self._device.arrays.share, self._device.arrays.address
        self._told_lengths = share("told_lengths", 8 * m).view(np.float64)
        self._told_shortest = share("told_shortest", 4 * (1 + n)).view(np.int32)
        self._after = address("measured"), address("told_lengths"), address("told_shortest")
        self._before = self._cities.addresses()

    # ---- whole tours

    def measure(self, tours: Any, m: int, lengths: Any) -> None:
        """Launch: the exact lengths (m,) of tours (m, n), and let ``wait`` have them and the shortest."""
        arguments = (*self._before, int(tours), m, int(lengths), *self._after)
        self._device.launch("measure_tours", m, _THREADS, *arguments)
        self._device.mark()

    def wait(self, m: int) -> Told:
        """Wait for the m tours measured last."""
        self._device.wait()
        shortest = self._told_shortest
        return Told(self._told_lengths[:m].copy(), int(shortest[0]), shortest[1:].copy())

    def take_next(self) -> Told:
        """Wait for the next construction and let it be the last."""
        self._device.arrays.swap("tours", "next_tours")
        self._device.arrays.swap("lengths", "next_lengths")
        self.told = told = self.wait(self._plan.m)
        self.lengths = told.lengths
        return told

    def place(self, tour: NDArray[np.int32]) -> int:
        """Address of a tour (n,) on the device, which has it already or gets it."""
        n, a, told = self._plan.n, self._device.arrays, self.told
        if tour.shape != (n,):
            raise ValueError(f"a tour to deposit must have shape ({n},), got {tour.shape}")
        wanted = np.asarray(tour, np.int32).tobytes()
        if told is not None and wanted == told.tour.tobytes():
            return a.address("tours") + 4 * n * told.shortest
        if wanted != self._uploaded:
            self._device.write("tour", np.frombuffer(wanted, np.int32))
            self._uploaded = wanted
        return a.address("tour")

    def greedy_tour(self, neighbours: Any, k: int, start: int) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start``, ties to the lower number, and its length."""
        device, n = self._device, self._plan.n
        a, cities = device.arrays, self._cities.arguments()
        self._uploaded = None
        a.zero("visited", n)
        device.launch("greedy_tour", 1, 512, *cities, neighbours, k, start, a["visited"], a["tour"])
        self.measure(a["tour"], 1, a["next_lengths"])
        told = self.wait(1)
        return told.tour, float(told.lengths[0])
