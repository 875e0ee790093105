"""Exact lengths of tours on the device, and their transfer to the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.instance.cities import Cities

_THREADS = 256  # that measure a tour


class Measured(NamedTuple):
    """Result of a measurement: lengths (m,), index of the first shortest tour, and that tour."""

    lengths: NDArray[np.float64]
    shortest: int
    tour: NDArray[np.int32]


class Measure:
    """Measurement of any number of tours; kernels write the results to host memory."""

    def __init__(self, device: Device, cities: Cities) -> None:
        self._device = device
        self._cities = cities
        self._capacity = 0  # tours, of the host's memory

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the kernels on whole tours."""
        definitions = {**self._cities.definitions(), "THREADS": _THREADS}
        kernels = ["measure_tours", "tour_neighbours", "greedy_tour"]
        return [Source("tours/tours.cu", definitions, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"measured": 4, "visited": self._cities.n}

    def prepare(self) -> None:
        """Allocate the host memory."""
        arrays = self._device.arrays
        arrays.zero("measured", 4)
        shortest = arrays.share("host_shortest", 4 * (1 + self._cities.n))
        self._host_shortest = shortest.view(np.int32)
        self.reserve(1)

    # ---- tours

    def reserve(self, m: int) -> None:
        """Allocate host memory for the lengths of m tours, unless there is enough."""
        if m <= self._capacity:
            return
        arrays = self._device.arrays
        if self._capacity:
            self._device.wait()  # a kernel may still write to it
        self._host_lengths = arrays.share("host_lengths", 8 * m).view(np.float64)
        self._capacity = m
        address = arrays.address
        self._before = self._cities.arguments()
        self._after = address("measured"), address("host_lengths"), address("host_shortest")

    def start(self, tours: Any, m: int, lengths: Any) -> None:
        """Launch the measurement of tours (m, n); ``wait`` returns lengths (m,) and the shortest tour."""
        arguments = (*self._before, int(tours), m, int(lengths), *self._after)
        self._device.launch("measure_tours", m, _THREADS, *arguments)
        self._device.mark()

    def wait(self, m: int, early: bool = False) -> Measured:
        """Wait for the m tours measured last; ``early``: see ``Device.wait``."""
        self._device.wait(early)
        shortest = self._host_shortest
        return Measured(self._host_lengths[:m].copy(), int(shortest[0]), shortest[1:].copy())

    def build_greedy(self, start: int, tour: Any) -> None:
        """Launch: the nearest-neighbour tour (n,) from city ``start``, ties to the lower number."""
        a, instance = self._device.arrays, self._cities.instance
        a.zero("visited", instance.n)
        cities = self._cities.arguments()
        lists = (a["neighbours"], instance.k)
        self._device.launch("greedy_tour", 1, 512, *cities, *lists, start, a["visited"], int(tour))
