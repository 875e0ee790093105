"""Tours on the device: exact lengths, and the tours of a colony."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance

_THREADS = 256  # threads per measured tour
_FEW = 16  # maximum number of tours that are read one by one


class Measured(NamedTuple):
    """Result of a measurement: lengths (m,), index of the first shortest tour, and that tour."""

    lengths: NDArray[np.float64]
    shortest: int
    tour: NDArray[np.int32]


class Measure(KernelGroup):
    """Exact lengths of any number of tours; the kernel writes the results to host memory."""

    def __init__(self, device: Device, cities: DeviceInstance) -> None:
        self._device = device
        self._cities = cities
        self._host_lengths = np.empty(0)  # grows
        definitions = {**cities.definitions, "THREADS": _THREADS}
        self.sources = [Source("tours/tours.cu", definitions, ["measure_tours"])]
        self.needed = {"measured": 4}

    def prepare(self) -> None:
        """Allocate host memory for the index and the cities of the shortest tour."""
        shortest = self._device.arrays.share("host_shortest", 4 * (1 + self._cities.n))
        self._host_shortest = shortest.view(np.int32)

    def run(self, tours: int, m: int, lengths: int, early: bool = False) -> Measured:
        """Measure tours (m, n) to ``lengths`` (m,), given by addresses; wait for it, see ``Device.wait``."""
        a, shortest = self._device.arrays, self._host_shortest
        if m > len(self._host_lengths):
            self._device.wait(early)  # after an interrupt a kernel may still write to the old memory
            self._host_lengths = a.share("host_lengths", 8 * m).view(np.float64)
        results = (lengths, a["measured"], a["host_lengths"], a["host_shortest"])
        self._device.launch("measure_tours", m, _THREADS, *self._cities.arguments, tours, m, *results)
        self._device.wait(early)
        return Measured(self._host_lengths[:m].copy(), int(shortest[0]), shortest[1:].copy())


class Tours(KernelGroup):
    """``tours`` (m, n) and ``lengths`` (m,) of the last construction, and of the next one."""

    def __init__(self, device: Device, measure: Measure, m: int, n: int) -> None:
        self._device = device
        self._measure = measure
        self._m, self._n = m, n
        self.needed = {
            "tours": 4 * m * n,
            "lengths": 8 * m,
            "next_tours": 4 * m * n,
            "next_lengths": 8 * m,
            "tour": 4 * n,
        }
        self.lengths = np.zeros(m)  #: exact lengths (m,) of the tours of the last construction
        self.measured: Measured | None = None  #: of the last construction; None after ``replace``

    def measure_next(self, m: int) -> Measured:
        """Measure the first m tours of the next construction."""
        a = self._device.arrays
        return self._measure.run(a["next_tours"], m, a["next_lengths"])

    def repeat_next(self, ant: int, first: int) -> None:
        """Copy an ant's tour to ants first .. m-1 of the next construction."""
        self._device.repeat("next_tours", 4 * self._n, ant, first, self._m)

    def fill_next(self, tour: NDArray[np.int32]) -> None:
        """Set all tours of the next construction to a tour (n,)."""
        self._device.write("next_tours", tour)
        self.repeat_next(0, 1)

    def measure_one(self, tour: NDArray[np.int32]) -> float:
        """Return the exact length of a tour (n,)."""
        measured = self._measure.run(self.upload(tour), 1, self._device.arrays["next_lengths"])
        return float(measured.lengths[0])

    def take_next(self) -> Measured:
        """Wait for the next construction, measure it, and make it the last one."""
        measured = self.measure_next(self._m)
        self._take_next(measured.lengths, measured)
        return measured

    def _take_next(self, lengths: NDArray[np.float64], measured: Measured | None) -> None:
        self._device.arrays.swap(("tours", "next_tours"), ("lengths", "next_lengths"))
        self.lengths, self.measured = lengths, measured

    def read(self, ants: NDArray[np.intp]) -> NDArray[np.int32]:
        """Return the tours (len(ants), n) of these ants of the last construction."""
        n, measured = self._n, self.measured
        if measured is not None and ants.size == 1 and ants.item() == measured.shortest:
            return measured.tour[None].copy()
        if len(ants) > _FEW:
            return self.read_all()[ants]
        found = np.empty((len(ants), n), np.int32)
        for row, ant in zip(found, ants, strict=True):
            self._device.read(row, "tours", 4 * n * int(ant))
        return found

    def read_all(self) -> NDArray[np.int32]:
        """Return all tours (m, n) of the last construction."""
        all_tours = np.empty((self._m, self._n), np.int32)
        self._device.read(all_tours, "tours")
        return all_tours

    def replace(self, tours: NDArray[np.int32], lengths: NDArray[np.float64]) -> None:
        """Replace the tours (m, n) and lengths (m,) of the last construction."""
        self._device.write("next_tours", tours)
        self._device.write("next_lengths", lengths)
        self._take_next(lengths.copy(), None)

    def upload(self, tour: NDArray[np.int32]) -> int:
        """Copy a tour (n,) to the device; return its address."""
        if tour.shape != (self._n,):
            raise ValueError(f"a tour to deposit must have shape ({self._n},), got {tour.shape}")
        self._device.write("tour", np.asarray(tour, np.int32))
        return self._device.arrays["tour"]

    def address_of(self, ant: int) -> int:
        """Return the address of an ant's tour of the last construction."""
        return self._device.arrays["tours"] + 4 * self._n * ant
