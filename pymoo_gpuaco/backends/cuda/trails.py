"""Pheromone trails on the device: dense (n, n) or one for each candidate edge (n, k)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.deposit import CandidateDeposit, DenseDeposit
from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.colony.trails import TrailUpdate


class Trails:
    """``tau``; dense ones with ``bound`` (n,), above which no trail outside a city's candidate list lies."""

    def __init__(self, device: Device, plan: Layout, symmetric: bool, advice: str) -> None:
        self._device = device
        self._plan = plan
        self._symmetric = symmetric
        self._advice = advice
        self._colony = (
            DenseDeposit(device, plan, symmetric, advice)
            if plan.dense
            else CandidateDeposit(device, plan, advice)
        )
        self.rest = np.zeros(1, np.float32)  # the trail of all edges without a place of their own
        self.tau0 = 0.0
        self._held = self.rest, self.tau0
        self._changed = True  # since they were held

    @property
    def _size(self) -> int:
        return self._plan.trails[0] * self._plan.trails[1]

    def sources(self) -> list[Source]:
        """Return the kernels of evaporation and deposit."""
        kernels = {
            "fill_trails": "PQf",
            "evaporate": "PQfff",
            "find_bounds": "PPiiP",
            "deposit": "PPPiiPfff",
            "count_branches": "PPiifP",
        }
        if not self._plan.dense:
            kernels |= {"sum_deposits": "PPiiPPidd", "apply_sums": "PiiPdf"}
        definitions = {"DENSE": int(self._plan.dense), "SYMMETRIC": int(self._symmetric)}
        return [Source("trails.cu", definitions, kernels), *self._colony.sources()]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {**self._memory(), "branches": 8}

    def _memory(self) -> dict[str, int]:
        """Arrays that remember, and their bytes."""
        memory = {"tau": 4 * self._size}
        if self._plan.dense:
            memory["bound"] = 4 * self._plan.n
        return memory

    def prepare(self) -> None:
        """No trails until they are reset."""
        for name, size in self.needed().items():
            self._device.arrays.zero(name, size)

    def reset(self, value: float) -> None:
        """Set every trail to ``value``."""
        self._changed = True
        self.tau0 = float(value)
        self.rest[0] = value
        a = self._device.arrays
        self._device.call("fill_trails", self._device.spread(self._size), a["tau"], self._size, self.rest[0])
        self._find_bounds()

    def _find_bounds(self) -> None:
        a, plan = self._device.arrays, self._plan
        if plan.dense:
            self._device.call(
                "find_bounds", 32 * plan.n, a["tau"], a["neighbours"], plan.n, plan.k, a["bound"]
            )

    def make_room_to_hold(self) -> bool:
        """Take memory for ``hold``; return whether there is enough."""
        device, memory = self._device, self._memory()
        try:
            device.check(memory, self._advice)
            for name, size in memory.items():
                device.arrays.allocate(f"held_{name}", size)
        except (MemoryError, device.cuda.MemoryError):
            return False
        return True

    def hold(self) -> None:
        """Keep the trails as they are now."""
        if not self._changed:
            return
        self._changed = False
        self._held = self.rest.copy(), self.tau0
        for name, size in self._memory().items():
            self._device.copy(f"held_{name}", name, size)

    def restore(self) -> None:
        """Bring back what ``hold`` kept."""
        self._changed = True
        rest, self.tau0 = self._held
        self.rest = rest.copy()
        for name, size in self._memory().items():
            self._device.copy(name, f"held_{name}", size)

    def update(self, update: TrailUpdate, tours: object, lengths: object, shortest: float) -> None:
        """Evaporate and deposit; the colony is ``tours`` (m, n) and ``lengths`` (m,) on the device."""
        self._changed = True
        keep, low, high = np.float32(1.0 - update.rho), np.float32(update.tau_min), np.float32(update.tau_max)
        if update.on_tours_only:
            for tour, amount in update.deposits:
                self._deposit(tour, keep, np.float32(update.rho * amount), np.float32(np.inf))
            return
        self.rest[0] = min(high, max(low, self.rest[0] * keep))
        by_colony, one = update.colony_amount > 0.0, np.float32(1.0)
        # the colony's deposit evaporates on its way, where no other deposit lies between
        if update.deposits or not by_colony:
            self._evaporate(keep, low, high)
            keep = one
        for tour, amount in update.deposits:
            self._deposit(tour, one, np.float32(amount), high)
        if by_colony:
            share = float(update.colony_amount)
            largest = max(1.0, share) if shortest <= 0.0 else share / shortest
            self._colony.add(tours, lengths, share, largest, keep, low, high)

    def _evaporate(self, keep: np.float32, low: np.float32, high: np.float32) -> None:
        device, n = self._device, self._plan.n
        a, size = device.arrays, self._size
        device.call("evaporate", device.spread(-(-size // 4)), a["tau"], size, keep, low, high)
        if self._plan.dense:
            device.call("evaporate", n, a["bound"], n, keep, low, high)

    def _deposit(
        self, tour: NDArray[np.int32], keep: np.float32, amount: np.float32, high: np.float32
    ) -> None:
        a, n, k = self._device.arrays, self._plan.n, self._plan.k
        if tour.shape != (n,):
            raise ValueError(f"a tour to deposit must have shape ({n},), got {tour.shape}")
        self._device.write("tour", np.asarray(tour, np.int32))
        self._device.call(
            "deposit", n, a["tau"], a["bound"], a["neighbours"], n, k, a["tour"], keep, amount, high
        )

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        device, n, k = self._device, self._plan.n, self._plan.k
        a = device.arrays
        count = np.zeros(1, np.uint64)
        device.write("branches", count)
        device.call("count_branches", 32 * n, a["tau"], a["neighbours"], n, k, np.float32(lam), a["branches"])
        device.read(count, "branches")
        return float(count[0]) / n

    def read(self) -> NDArray[np.float32]:
        """Return tau (n, n) or (n, k)."""
        tau = np.empty(self._plan.trails, np.float32)
        self._device.read(tau, "tau")
        return tau

    def write(self, tau: NDArray[np.float32], rest: NDArray[np.float32], tau0: float) -> None:
        """Take over what ``read`` gave, and the two numbers beside it."""
        self._changed = True
        self._device.write("tau", tau)
        self.rest = rest.copy()
        self.tau0 = tau0
        self._find_bounds()
