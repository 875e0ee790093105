"""Pheromone trails on the device: dense (n, n) or one for each candidate edge (n, k)."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.layout import Layout
from pymoo_gpuaco.backends.cuda.states import fitting
from pymoo_gpuaco.backends.cuda.tours.tours import Tours
from pymoo_gpuaco.backends.cuda.trails.deposit import CandidateDeposit, DenseDeposit
from pymoo_gpuaco.backends.state import State
from pymoo_gpuaco.colony.trails import TrailUpdate

_THREADS = 512  # that evaporate some rows


class Trails:
    """``tau``, and ``rest``, the trail of all edges without a place of their own."""

    def __init__(self, device: Device, plan: Layout, symmetric: bool, advice: str) -> None:
        self._device = device
        self._plan = plan
        self._symmetric = symmetric
        self._advice = advice
        self._colony = (
            DenseDeposit(device, plan, symmetric, advice)
            if plan.dense
            else CandidateDeposit(device, plan, self._evaporate, advice)
        )
        # rows that a block evaporates: as many blocks as the device holds, and a multiple of four
        held = device.limits.multiprocessors * device.limits.warps * 32 // _THREADS
        self._rows = 4 * -(-plan.n // (4 * held))
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
            "evaporate": "PPiiifffPf",
            "deposit": "PPiiPfff",
            "count_branches": "PPiifP",
        }
        if not self._plan.dense:
            kernels |= {"sum_deposits": "PPiiPPidd", "apply_sums": "PiiPdf"}
        definitions = {"DENSE": int(self._plan.dense), "SYMMETRIC": int(self._symmetric)}
        return [Source("trails/trails.cu", definitions, kernels), *self._colony.sources()]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        return {"tau": 4 * self._size, "branches": 8}

    def prepare(self) -> None:
        """No trails until they are reset."""
        arrays, plan = self._device.arrays, self._plan
        for name, size in self.needed().items():
            arrays.zero(name, size)
        self._places = arrays.address("tau"), arrays.address("neighbours"), plan.n, plan.k

    def reset(self, value: float) -> None:
        """Set every trail to ``value``."""
        self._changed = True
        self.tau0 = float(value)
        self.rest[0] = value
        a = self._device.arrays
        self._device.call("fill_trails", self._device.spread(self._size), a["tau"], self._size, self.rest[0])

    def make_room_to_hold(self) -> bool:
        """Take memory for ``hold``; return whether there is enough."""
        device, memory = self._device, {"held_tau": 4 * self._size}
        try:
            device.check(memory, self._advice)
            device.arrays.allocate("held_tau", memory["held_tau"])
        except (MemoryError, device.cuda.MemoryError):
            return False
        return True

    def hold(self) -> None:
        """Keep the trails as they are now."""
        if not self._changed:
            return
        self._changed = False
        self._held = self.rest.copy(), self.tau0
        self._device.copy("held_tau", "tau", 4 * self._size)

    def restore(self) -> None:
        """Bring back what ``hold`` kept."""
        self._changed = True
        rest, self.tau0 = self._held
        self.rest = rest.copy()
        self._device.copy("tau", "held_tau", 4 * self._size)

    def update(self, update: TrailUpdate, tours: Tours) -> None:
        """Evaporate and deposit; the colony is what ``tours`` holds of the last construction."""
        self._changed = True
        keep, low, high = np.float32(1.0 - update.rho), np.float32(update.tau_min), np.float32(update.tau_max)
        if update.on_tours_only:
            for tour, amount in update.deposits:
                self._deposit(tours.place(tour), keep, np.float32(update.rho * amount), np.float32(np.inf))
            return
        self.rest[0] = min(high, max(low, self.rest[0] * keep))
        by_colony, one = update.colony_amount > 0.0, np.float32(1.0)
        # all but the colony's deposit, which evaporates on its way where no other deposit lies between
        if update.deposits:
            (tour, amount), *others = update.deposits
            self._evaporate(keep, low, high, tours.place(tour), amount)
            for tour, amount in others:
                self._deposit(tours.place(tour), one, np.float32(amount), high)
            keep = one
        elif not by_colony:
            self._evaporate(keep, low, high)
        if by_colony:
            shortest, share = float(tours.lengths.min()), float(update.colony_amount)
            largest = max(1.0, share) if shortest <= 0.0 else share / shortest
            a = self._device.arrays
            self._colony.add(a["tours"], a["lengths"], share, largest, keep, low, high)

    def _evaporate(
        self,
        keep: np.float32,
        low: np.float32,
        high: np.float32,
        tour: int = 0,
        amount: float = 0.0,
    ) -> None:
        """Evaporate, then let the tour at an address deposit, if there is one."""
        rows = self._rows
        arguments = (*self._places, rows, keep, low, high, tour, amount)
        self._device.launch("evaporate", -(-self._plan.n // rows), _THREADS, *arguments)

    def _deposit(self, tour: int, keep: np.float32, amount: np.float32, high: np.float32) -> None:
        self._device.call("deposit", self._plan.n, *self._places, tour, keep, amount, high)

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        device, n, k = self._device, self._plan.n, self._plan.k
        a = device.arrays
        count = np.zeros(1, np.uint64)
        device.write("branches", count)
        device.call("count_branches", 32 * n, a["tau"], a["neighbours"], n, k, np.float32(lam), a["branches"])
        device.read(count, "branches")
        return float(count[0]) / n

    def read(self) -> State:
        """Return the trails' part of an engine's state."""
        tau = np.empty(self._plan.trails, np.float32)
        self._device.read(tau, "tau")
        return {
            "tau": tau,
            "ids": np.empty((0, 0), np.int32),
            "tail": np.empty(0, np.int32),
            "rest": self.rest.copy(),
            "tau0": np.array([self.tau0]),
        }

    def write(self, state: State) -> None:
        """Take over what ``read`` gave. Raises ValueError, before anything changes, for another shape."""
        tau = fitting(state, "tau", self._plan.trails, np.float32)
        rest = fitting(state, "rest", (1,), np.float32)
        self._changed = True
        self._device.write("tau", tau)
        self.rest = rest.copy()
        self.tau0 = float(np.asarray(state["tau0"])[0])
