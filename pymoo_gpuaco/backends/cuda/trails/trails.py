"""Pheromone trails on the device: dense (n, n) or one for each candidate edge (n, k)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.tours.tours import Tours
from pymoo_gpuaco.backends.cuda.trails.deposit import CandidateDeposit, Colony, DenseDeposit
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.runtime.state import State, stored_numbers

_THREADS = 512  # of a block that evaporates rows
_NO_LIMIT = np.float32(np.inf)


class Trails:
    """Trails ``tau``, and ``default_trail``, the shared trail of all edges that ``tau`` does not contain."""

    def __init__(self, device: Device, instance: ListedInstance, dense: bool) -> None:
        self._device = device
        self._n, self._k = instance.n, instance.k
        self.dense = dense
        self.shape = (instance.n, instance.n if dense else instance.k)  # of tau
        self._symmetric = instance.symmetric
        self._colony = (
            DenseDeposit(device, instance.n, instance.symmetric)
            if dense
            else CandidateDeposit(device, self.shape, self._evaporate)
        )
        # rows of a block: a multiple of four, for as many blocks as can be resident
        held = device.limits.multiprocessors * device.limits.warps * 32 // _THREADS
        self._rows = 4 * -(-self._n // (4 * held))
        self.default_trail = np.zeros(1, np.float32)
        self.tau0 = 0.0

    @property
    def _size(self) -> int:
        return self.shape[0] * self.shape[1]

    def sources(self) -> list[Source]:
        """Return the kernels of evaporation and deposit."""
        kernels = ["fill_trails", "evaporate", "deposit", "count_branches", "read_edges", "set_edges"]
        if not self.dense:
            kernels += ["sum_deposits", "apply_sums"]
        definitions = {"DENSE": int(self.dense), "SYMMETRIC": int(self._symmetric)}
        return [Source("trails/trails.cu", definitions, kernels), *self._colony.sources()]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"tau": 4 * self._size, "branches": 8, "edges": 8 * self._n, "edge_trails": 4 * self._n}

    def prepare(self) -> None:
        """Clear the arrays; ``reset`` sets the trails."""
        arrays = self._device.arrays
        for name, size in self.needed().items():
            arrays.zero(name, size)
        self._places = arrays.address("tau"), arrays.address("neighbours"), self._n, self._k

    def reset(self, value: float) -> None:
        """Set every trail to ``value``."""
        self.tau0 = float(value)
        self.default_trail[0] = value
        a = self._device.arrays
        self._device.call(
            "fill_trails", self._device.spread(self._size), a["tau"], self._size, self.default_trail[0]
        )

    def update(self, update: TrailUpdate, tours: Tours) -> None:
        """Evaporate and deposit; the colony is the last construction in ``tours``.

        Its tours stay on the device: the engine ranks them by their lengths.
        """
        keep, low, high = np.float32(1.0 - update.rho), np.float32(update.tau_min), np.float32(update.tau_max)
        if update.on_tours_only:
            for tour, amount in update.deposits:
                self._deposit(tours.upload(tour), keep, update.rho * amount, np.float32(0.0), _NO_LIMIT)
            return
        self.default_trail[0] = min(high, max(low, self.default_trail[0] * keep))
        one = np.float32(1.0)
        added = [(tour, amount) for tour, amount in update.deposits if amount >= 0.0]
        by_ant = update.by_ant(tours.lengths)
        # all deposits but the colony's, whose kernel evaporates unless another one comes first
        if added:
            (tour, amount), *others = added
            self._evaporate(keep, low, high, tours.upload(tour), amount)
            for tour, amount in others:
                self._deposit(tours.upload(tour), one, amount, low, high)
            keep = one
        elif update.colony_amount == 0.0:
            self._evaporate(keep, low, high)
        if update.colony_amount > 0.0:
            shortest, share = float(tours.lengths.min()), float(update.colony_amount)
            largest = max(1.0, share) if shortest <= 0.0 else share / shortest
            a, m = self._device.arrays, len(tours.lengths)
            colony = Colony(a["tours"], a["lengths"], m, share, largest)
            self._colony.add(colony, keep, low, high)
        for ant, amount in by_ant:
            if amount > 0.0:
                self._deposit(tours.address_of(ant), one, amount, low, high)
        # negative deposits come last, after positive ones have been clipped to tau_max
        for tour, amount in update.deposits:
            if amount < 0.0:
                self._deposit(tours.upload(tour), one, amount, low, high)
        for ant, amount in by_ant:
            if amount < 0.0:
                self._deposit(tours.address_of(ant), one, amount, low, high)

    def _evaporate(
        self,
        keep: np.float32,
        low: np.float32,
        high: np.float32,
        tour: int = 0,
        amount: float = 0.0,
    ) -> None:
        """Evaporate, then add the deposit of the tour at an address, if not 0."""
        rows = self._rows
        arguments = (*self._places, rows, keep, low, high, tour, amount)
        self._device.launch("evaporate", -(-self._n // rows), _THREADS, *arguments)

    def _deposit(self, tour: int, keep: np.float32, amount: float, low: np.float32, high: np.float32) -> None:
        """Add ``amount``, positive or negative, to the edges of the tour at an address."""
        numbers = keep, np.float32(amount), low, high
        self._device.call("deposit", self._n, *self._places, tour, *numbers)

    def branching_factor(self, lam: float) -> float:
        """Return the mean number of candidates per city with a trail above min + lam (max - min)."""
        device, n, k = self._device, self._n, self._k
        a = device.arrays
        count = np.zeros(1, np.uint64)
        device.write("branches", count)
        device.call("count_branches", 32 * n, a["tau"], a["neighbours"], n, k, np.float32(lam), a["branches"])
        device.read(count, "branches")
        return float(count[0]) / n

    def read_edges(self, edges: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the trails (e,) of edges (e, 2), in batches of n."""
        device, a = self._device, self._device.arrays
        trails = np.empty(len(edges), np.float32)
        for first in range(0, len(edges), self._n):
            part = edges[first : first + self._n]
            device.write("edges", part)
            arguments = (*self._places, a["edges"], len(part), self.default_trail[0], a["edge_trails"])
            device.call("read_edges", len(part), *arguments)
            device.read(trails[first : first + self._n], "edge_trails")
        return trails

    def set_edges(self, edges: NDArray[np.int32], trails: NDArray[np.float32]) -> None:
        """Set the trails of edges (e, 2) to (e,), in batches of n."""
        device, a = self._device, self._device.arrays
        for first in range(0, len(edges), self._n):
            part = edges[first : first + self._n]
            device.write("edges", part)
            device.write("edge_trails", trails[first : first + self._n])
            device.call("set_edges", len(part), *self._places, a["edges"], len(part), a["edge_trails"])

    def read(self) -> State:
        """Return the trails' part of an engine's state."""
        tau = np.empty(self.shape, np.float32)
        self._device.read(tau, "tau")
        return {
            "tau": tau,
            "ids": np.empty((0, 0), np.int32),
            "tail": np.empty(0, np.int32),
            "rest": self.default_trail.copy(),
            "tau0": np.array([self.tau0]),
        }

    def write(self, state: State) -> None:
        """Restore a state of ``read``.

        Raises ValueError for other shapes and for negative or non-finite trails, before anything changes.
        """
        tau = stored_numbers(state, "tau", self.shape, np.float32)
        default_trail = stored_numbers(state, "rest", (1,), np.float32)
        tau0 = stored_numbers(state, "tau0", (1,))
        self._device.write("tau", tau)
        self.default_trail = default_trail.copy()
        self.tau0 = float(tau0[0])
