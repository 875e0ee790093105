"""Pheromone trails on the device: dense (n, n), for candidate edges (n, k), or in a ring of a few entries per city."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, round_up
from pymoo_gpuaco.backends.cuda.instance import node_bytes, node_type
from pymoo_gpuaco.backends.cuda.tours import Tours
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import CANDIDATE, DENSE, SELECTIVE, TrailUpdate, check_memory
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers

_NO_LIMIT = np.float32(np.inf)
# Deposit of a colony on dense trails: threads per block, ants per group, rows per block.
THREADS, TOURS, ROWS = 512, 4, 4
# Maximum ants of a pass: its sums are 32-bit integers, in which the largest deposit has at least 20 bits.
ANTS_PER_PASS = 4096
# An entry of a ring, 64 bits as in ring.cuh; the highest bit of the city is the lap bit.
_ENTRY = np.dtype([("city", np.uint32), ("tau", np.float32)])
_LAP = np.uint32(1 << 31)
_EMPTY = np.uint32((1 << 31) - 1)


class Trails(KernelGroup):
    """Trails ``tau``, and ``default_trail``, the trail of all edges that ``tau`` does not contain."""

    def __init__(self, device: Device, instance: ListedInstance, dense: bool) -> None:
        self._device = device
        self._n, self._k = n, k = instance.n, instance.k
        self.dense = dense
        self.shape = (n, n if dense else k)  # of tau
        self._size = n * self.shape[1]
        self.default_trail = np.zeros(1, np.float32)
        self.tau0 = 0.0
        symmetric = {"SYMMETRIC": int(instance.symmetric)}
        kernels = ["fill_trails", "evaporate", "deposit", "read_edges", "set_edges"]
        if not dense:
            kernels += ["sum_deposits", "apply_sums"]
        self.sources = [Source("trails/trails.cu", {"DENSE": int(dense), **symmetric}, kernels)]
        self.needed = {"tau": 4 * self._size}
        if dense:
            # cities of a tile, such that four blocks of either kernel share a multiprocessor
            most = device.limits.shared_bytes // 4 // (TOURS * 2 * node_bytes(n)) - 72
            self._width = round_up(-(-n // -(-n // most)), 32) + 8
            definitions = {
                **symmetric,
                "NODE": node_type(n),
                "TILED": int(self._width < n),
                "THREADS": THREADS,
                "TOURS": TOURS,
                "ROWS": ROWS,
            }
            width = self._width
            shared = {"link_tours": TOURS * width * 2 * node_bytes(n), "deposit_links": ROWS * width * 4}
            self.sources.append(Source("trails/colony_deposit.cu", definitions, [*shared], shared))

    def prepare(self) -> None:
        """Prepare the arguments of all launches; ``reset`` sets the trails."""
        arrays = self._device.arrays
        self._places = arrays["tau"], arrays["neighbours"], self._n, self._k

    def reset(self, value: float) -> None:
        """Set every trail to ``value``."""
        self.tau0 = float(value)
        self.default_trail[0] = value
        device, size = self._device, self._size
        device.call(
            "fill_trails", device.grid_threads(size), device.arrays["tau"], size, self.default_trail[0]
        )

    def update(self, update: TrailUpdate, tours: Tours) -> None:
        """Evaporate and deposit, see ``TrailUpdate``; the colony is the last construction in ``tours``."""
        keep, low, high = np.float32(1.0 - update.rho), np.float32(update.tau_min), np.float32(update.tau_max)
        if update.on_tours_only:
            for tour, amount in update.deposits:
                self._deposit(tours.upload(tour), keep, update.rho * amount, np.float32(0.0), _NO_LIMIT)
            return
        self.default_trail[0] = min(high, max(low, self.default_trail[0] * keep))
        one = np.float32(1.0)
        added = [(tour, amount) for tour, amount in update.deposits if amount >= 0.0]
        by_ant = update.by_ant(tours.lengths)
        if added or update.colony_amount == 0.0:
            self._evaporate(keep, low, high)
            keep = one
        for tour, amount in added:
            self._deposit(tours.upload(tour), one, amount, low, high)
        if update.colony_amount > 0.0:
            shortest, share = float(tours.lengths.min()), float(update.colony_amount)
            largest = max(1.0, share) if shortest <= 0.0 else share / shortest
            deposit = self._deposit_all if self.dense else self._deposit_on_candidates
            deposit(len(tours.lengths), share, largest, keep, low, high)
        for ant, amount in by_ant:
            if amount > 0.0:
                self._deposit(tours.address_of(ant), one, amount, low, high)
        # negative deposits follow after the positive ones are clipped to tau_max
        for tour, amount in update.deposits:
            if amount < 0.0:
                self._deposit(tours.upload(tour), one, amount, low, high)
        for ant, amount in by_ant:
            if amount < 0.0:
                self._deposit(tours.address_of(ant), one, amount, low, high)

    def _evaporate(self, keep: np.float32, low: np.float32, high: np.float32) -> None:
        """Evaporate all trails."""
        device, size = self._device, self._size
        device.call("evaporate", device.grid_threads(size), device.arrays["tau"], size, keep, low, high)

    def _deposit(self, tour: int, keep: np.float32, amount: float, low: np.float32, high: np.float32) -> None:
        """Add ``amount``, positive or negative, to the edges of the tour at an address."""
        numbers = keep, np.float32(amount), low, high
        self._device.call("deposit", self._n, *self._places, tour, *numbers)

    def _deposit_all(
        self, m: int, share: float, largest: float, keep: np.float32, low: np.float32, high: np.float32
    ) -> None:
        """Evaporate dense trails by ``keep``, then add the deposits share / length <= ``largest`` of all m ants.

        ``links`` (ants, n) are the tour neighbours of every city; rows are summed (Eqs. (5), (6), Uchida et al. 2012).
        """
        device, n, width, each = self._device, self._n, self._width, node_bytes(self._n)
        a, ants = device.arrays, round_up(min(m, ANTS_PER_PASS), TOURS)
        device.grow({"links": 2 * each * ants * round_up(n, ROWS), "amounts": 4 * ants})
        colony, links, amounts = (a["tours"], a["lengths"], n), a["links"], a["amounts"]
        for first in range(0, m, ANTS_PER_PASS):
            count = min(ANTS_PER_PASS, m - first)
            units = (2**32 - 1) // count  # of the largest deposit: sums do not overflow
            groups = -(-count // TOURS)
            linked = (*colony, first, count, width, share, units / largest, links, amounts)
            device.launch("link_tours", groups * -(-n // width), THREADS, *linked)
            numbers = np.float32(largest / units), keep, low, high, width
            summed = (a["tau"], n, links, groups, amounts, *numbers)
            device.launch("deposit_links", -(-n // ROWS), THREADS, *summed)
            keep = np.float32(1.0)

    def _deposit_on_candidates(
        self, m: int, share: float, largest: float, keep: np.float32, low: np.float32, high: np.float32
    ) -> None:
        """Evaporate by ``keep``, then add ``sums`` (n, k) of the deposits of all ants on candidate edges."""
        device, (n, k), size = self._device, self.shape, self._size
        device.grow({"sums": 8 * size})  # first, so that a MemoryError leaves the trails unchanged
        a = device.arrays
        a.zero("sums", 8 * size)
        self._evaporate(keep, low, high)
        unit = largest * 2.0**-40  # 2^20 ants cannot overflow 64 bits
        ants = (a["tours"], a["lengths"], m, share)
        device.call("sum_deposits", device.grid_threads(m * n), a["sums"], a["neighbours"], n, k, *ants, unit)
        device.call("apply_sums", device.grid_threads(size), a["tau"], size, a["sums"], unit, high)

    def read_edges(self, edges: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the trails (e,) of edges (e, 2)."""
        device, trails = self._device, np.empty(len(edges), np.float32)
        if len(edges):
            device.grow({"edge_trails": trails.nbytes})
            pairs, values = device.put("edges", edges), device.arrays["edge_trails"]
            arguments = (*self._places, pairs, len(edges), self.default_trail[0], values)
            device.call("read_edges", len(edges), *arguments)
            device.read(trails, "edge_trails")
        return trails

    def set_edges(self, edges: NDArray[np.int32], trails: NDArray[np.float32]) -> None:
        """Set the trails of edges (e, 2) to (e,)."""
        device = self._device
        if len(edges):
            pairs, values = device.put("edges", edges), device.put("edge_trails", trails)
            device.call("set_edges", len(edges), *self._places, pairs, len(edges), values)

    def read(self) -> State:
        """Return the state of the trails."""
        tau = np.empty(self.shape, np.float32)
        self._device.read(tau, "tau")
        return {
            "memory": np.array([DENSE if self.dense else CANDIDATE]),
            "tau": tau,
            "ids": np.empty((0, 0), np.int32),
            "tail": np.empty(0, np.int32),
            "rest": self.default_trail.copy(),
            "tau0": np.array([self.tau0]),
        }

    def write(self, state: State) -> None:
        """Restore a state of ``read``.

        Raises ValueError, before anything changes, for another memory or shape and for negative or non-finite trails.
        """
        check_memory(state, DENSE if self.dense else CANDIDATE)
        tau = stored_numbers(state, "tau", self.shape, np.float32)
        default_trail = stored_numbers(state, "rest", (1,), np.float32)
        tau0 = stored_numbers(state, "tau0", (1,))
        self._device.write("tau", tau)
        self.default_trail = default_trail.copy()
        self.tau0 = float(tau0[0])


class Rings(KernelGroup):
    """The selective memory (section 3.2, Skinderowicz 2016): entries ``ring`` (n, trails_per_node).

    ``default_trail`` is the trail of all other edges.
    """

    def __init__(self, device: Device, instance: ListedInstance, trails_per_node: int) -> None:
        self._device = device
        self._n = instance.n
        self.width = trails_per_node
        self.default_trail = np.zeros(1, np.float32)
        self.tau0 = 0.0
        definitions = {"TRAILS": self.width, "SYMMETRIC": int(instance.symmetric)}
        self.sources = [Source("trails/ring_trails.cu", definitions, ["blend_tour"])]
        self.needed = {"ring": 8 * self._n * self.width}

    def prepare(self) -> None:
        """Clear the rings."""
        self.reset(0.0)

    def reset(self, value: float) -> None:
        """Set every trail to ``value`` and remove all entries."""
        self.tau0 = float(value)
        self.default_trail[0] = value
        entries = np.full((self._n, self.width), np.array((_EMPTY, value), _ENTRY))
        entries["city"][:, 0] |= _LAP  # slot 0 counts as the last written one
        self._device.write("ring", entries)

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

    def read(self) -> State:
        """Return the state of the trails."""
        entries = np.empty((self._n, self.width), _ENTRY)
        self._device.read(entries, "ring")
        cities = entries["city"] & ~_LAP
        lap = entries["city"] & _LAP
        oldest = (lap != lap[:, :1]).argmax(axis=1)  # the slot after the last written one
        return {
            "memory": np.array([SELECTIVE]),
            "tau": entries["tau"].copy(),
            "ids": np.where(cities == _EMPTY, -1, cities.astype(np.int32)),
            "tail": ((oldest - 1) % self.width).astype(np.int32),
            "rest": self.default_trail.copy(),
            "tau0": np.array([self.tau0]),
        }

    def write(self, state: State) -> None:
        """Restore a state of ``read``. Raises ValueError like ``Trails.write``."""
        check_memory(state, SELECTIVE)
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
