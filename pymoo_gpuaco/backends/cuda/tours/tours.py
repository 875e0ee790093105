"""Tours of a colony on the device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.tours.measure import Measure, Measured

_FEW = 16  # tours up to which rows are read singly


class Tours(Part):
    """``tours`` (m, n) and ``lengths`` (m,) of the last construction, and of the next one."""

    def __init__(self, device: Device, measure: Measure, m: int, n: int) -> None:
        self._device = device
        self._measure = measure
        self._m, self._n = m, n
        # What is known of the tours in an array, by its address: their lengths and, while they are as they were built,
        # how they were measured.
        self._known: dict[int, tuple[NDArray[np.float64], Measured | None]] = {}
        self._uploaded: bytes | None = None  # what ``tour`` holds

    # ---- Part

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        m, n = self._m, self._n
        tours, lengths = 4 * m * n, 8 * m
        return {
            "tours": tours,
            "lengths": lengths,
            "next_tours": tours,
            "next_lengths": lengths,
            "tour": 4 * n,
        }

    def prepare(self) -> None:
        """Clear the arrays."""
        self._known.clear()
        for name, size in self.needed().items():
            self._device.arrays.zero(name, size)
        self._measure.reserve(self._m)

    # ---- tours

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours of the last construction."""
        known = self._known.get(self._address("tours"))
        return np.zeros(self._m) if known is None else known[0]

    @property
    def measured(self) -> Measured | None:
        """Measurement of the last construction, unless tours have been replaced."""
        known = self._known.get(self._address("tours"))
        return None if known is None else known[1]

    def _address(self, name: str) -> int:
        return self._device.arrays.address(name) if name in self._device.arrays else 0

    def measure_next(self) -> None:
        """Launch the measurement of the next construction; ``take_next`` waits for it."""
        a = self._device.arrays
        self._measure.start(a["next_tours"], self._m, a["next_lengths"])

    def measure_some(self, m: int) -> Measured:
        """Measure the first m tours of the next construction."""
        a = self._device.arrays
        self._measure.start(a["next_tours"], m, a["next_lengths"])
        return self._measure.wait(m)

    def repeat_next(self, ant: int, first: int) -> None:
        """Copy an ant's tour to the ants from ``first`` on, in the next construction."""
        self._device.repeat("next_tours", 4 * self._n, ant, first, self._m)

    def greedy_next(self) -> None:
        """Set all tours of the next construction to the nearest-neighbour tour from city 0."""
        self._measure.build_greedy(0, self._device.arrays["next_tours"])
        self.repeat_next(0, 1)

    def take_next(self) -> Measured:
        """Wait for the next construction and make it the last one."""
        measured = self._measure.wait(self._m)
        self._take_next(measured.lengths, measured)
        return measured

    def _take_next(self, lengths: NDArray[np.float64], measured: Measured | None) -> None:
        self._known[self._address("next_tours")] = lengths, measured
        self._device.arrays.swap(("tours", "next_tours"), ("lengths", "next_lengths"))

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
        everyone = np.empty((self._m, self._n), np.int32)
        self._device.read(everyone, "tours")
        return everyone

    def replace(self, tours: NDArray[np.int32], lengths: NDArray[np.float64]) -> None:
        """Replace the tours (m, n) and lengths (m,) of the last construction."""
        self._device.write("next_tours", tours)
        self._device.write("next_lengths", lengths)
        self._take_next(lengths.copy(), None)

    def upload(self, tour: NDArray[np.int32]) -> int:
        """Return the device address of a tour (n,), copied there unless it is the shortest or was uploaded last."""
        n, a, measured = self._n, self._device.arrays, self.measured
        if tour.shape != (n,):
            raise ValueError(f"a tour to deposit must have shape ({n},), got {tour.shape}")
        wanted = np.asarray(tour, np.int32).tobytes()
        if measured is not None and wanted == measured.tour.tobytes():
            return self.address_of(measured.shortest)
        if wanted != self._uploaded:
            self._device.write("tour", np.frombuffer(wanted, np.int32))
            self._uploaded = wanted
        return a.address("tour")

    def address_of(self, ant: int) -> int:
        """Return the address of an ant's tour of the last construction."""
        return self._device.arrays.address("tours") + 4 * self._n * ant

    def greedy(self, start: int) -> tuple[NDArray[np.int32], float]:
        """Return the nearest-neighbour tour from city ``start`` (ties: the lower city) and its length."""
        a = self._device.arrays
        self._uploaded = None
        self._measure.build_greedy(start, a["tour"])
        self._measure.start(a["tour"], 1, a["next_lengths"])
        measured = self._measure.wait(1)
        return measured.tour, float(measured.lengths[0])
