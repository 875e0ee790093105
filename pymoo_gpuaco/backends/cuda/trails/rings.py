"""The selective pheromone memory on the device: a ring of a few trails a city (section 3.2, paper 003)."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.tours.tours import Tours
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers

# An entry of a ring, packed into 64 bits as in ring.cuh: the city's highest bit is the lap.
_ENTRY = np.dtype([("city", np.uint32), ("tau", np.float32)])
_LAP = np.uint32(1 << 31)
_EMPTY = np.uint32((1 << 31) - 1)


class Rings:
    """Entries ``ring`` (n, trails_per_node), and ``default_trail``, the trail of all other edges."""

    def __init__(self, device: Device, instance: ListedInstance, trails_per_node: int) -> None:
        self._device = device
        self._n, self._k = instance.n, instance.k
        self._symmetric = instance.symmetric
        self.width = trails_per_node
        self.default_trail = np.zeros(1, np.float32)
        self.tau0 = 0.0

    def sources(self) -> list[Source]:
        """Return the kernels of the global update."""
        kernels = ["fill_ring", "blend_tour", "count_ring_branches"]
        definitions = {"TRAILS": self.width, "SYMMETRIC": int(self._symmetric)}
        return [Source("trails/ring_trails.cu", definitions, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"ring": 8 * self._n * self.width, "branches": 8}

    def prepare(self) -> None:
        """Clear the rings."""
        self.reset(0.0)

    def reset(self, value: float) -> None:
        """Set every trail to ``value`` and remove all entries."""
        self.tau0 = float(value)
        self.default_trail[0] = value
        a, n = self._device.arrays, self._n
        self._device.call("fill_ring", n * self.width, a["ring"], n, self.default_trail[0])

    def update(self, update: TrailUpdate, tours: Tours) -> None:
        """Apply the global update of ACS. Raises ValueError for deposits of a colony."""
        if not update.on_tours_only:
            raise ValueError(
                "the selective pheromone memory on CUDA takes the updates of ACS alone: on_tours_only must be True"
            )
        device, n = self._device, self._n
        a = device.arrays
        keep = np.float32(1.0 - update.rho)
        for tour, amount in update.deposits:
            share = np.float32(update.rho * amount)
            device.call("blend_tour", n, a["ring"], tours.upload(tour), n, keep, share, self.default_trail[0])

    def branching_factor(self, lam: float) -> float:
        """Return the mean number of candidates per city with a trail above min + lam (max - min)."""
        device = self._device
        a, count = device.arrays, np.zeros(1, np.uint64)
        device.write("branches", count)
        device.call(
            "count_ring_branches",
            32 * self._n,
            a["ring"],
            a["neighbours"],
            self._n,
            self._k,
            self.default_trail[0],
            np.float32(lam),
            a["branches"],
        )
        device.read(count, "branches")
        return float(count[0]) / self._n

    def read(self) -> State:
        """Return the trails' part of an engine's state."""
        entries = np.empty((self._n, self.width), _ENTRY)
        self._device.read(entries, "ring")
        cities = entries["city"] & ~_LAP
        lap = entries["city"] & _LAP
        oldest = (lap != lap[:, :1]).argmax(axis=1)  # the slot after the last written one
        return {
            "tau": entries["tau"].copy(),
            "ids": np.where(cities == _EMPTY, -1, cities.astype(np.int32)),
            "tail": ((oldest - 1) % self.width).astype(np.int32),
            "rest": self.default_trail.copy(),
            "tau0": np.array([self.tau0]),
        }

    def write(self, state: State) -> None:
        """Restore a state of ``read``. Raises ValueError for another shape, before anything changes."""
        shape = (self._n, self.width)
        entries = np.empty(shape, _ENTRY)
        entries["tau"] = stored_numbers(state, "tau", shape, np.float32)
        ids = stored_integers(state, "ids", shape, -1, self._n - 1)
        tail = stored_integers(state, "tail", (self._n,), 0, self.width - 1)
        default_trail = stored_numbers(state, "rest", (1,), np.float32)
        tau0 = stored_numbers(state, "tau0", (1,))
        lap = np.where(np.arange(self.width) <= tail[:, None], _LAP, np.uint32(0))
        entries["city"] = np.where(ids < 0, _EMPTY, ids.astype(np.uint32)) | lap
        self._device.write("ring", entries)
        self.default_trail = default_trail.copy()
        self.tau0 = float(tau0[0])
