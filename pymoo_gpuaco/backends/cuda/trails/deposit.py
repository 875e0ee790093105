"""The deposit of a whole colony: every ant on every edge of its tour (Eqs. (5) and (6), paper 000)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.layout import Layout

# Of colony_deposit.cu: threads of a block, ants of a group, rows that a block sums up.
THREADS, TOURS, ROWS = 512, 4, 4
# Sums are integers of 32 bits: with so many ants the largest deposit still has 20 of them.
ANTS_A_PASS = 4096

Evaporate = Callable[[np.float32, np.float32, np.float32], None]  # by the factor, down and up to the limits


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class DenseDeposit:
    """On dense trails: ``links`` (ants, n) hold the tour neighbours of every city, then each row is summed up."""

    def __init__(self, device: Device, plan: Layout, symmetric: bool, advice: str) -> None:
        self._device = device
        self._plan = plan
        self._symmetric = symmetric
        self._advice = advice
        # cities that a block of either kernel takes at a time, so that four blocks share a multiprocessor
        most = device.limits.shared_bytes // 4 // (TOURS * 2 * plan.node_bytes) - 72
        parts = -(-plan.n // most)
        self._width = _round_up(-(-plan.n // parts), 32) + 8

    def sources(self) -> list[Source]:
        """Return the two kernels."""
        definitions = {
            "NODE": self._plan.node,
            "SYMMETRIC": int(self._symmetric),
            "TILED": int(self._width < self._plan.n),
        }
        kernels = {"link_tours": "PPiiiiddPP", "deposit_links": "PiPiPffffi"}
        return [Source("trails/colony_deposit.cu", definitions, kernels)]

    def _make_room(self) -> None:
        """Take the memory, which a colony needs that deposits as a whole."""
        device, plan = self._device, self._plan
        ants = _round_up(min(plan.m, ANTS_A_PASS), TOURS)
        needed = {"links": 2 * plan.node_bytes * ants * _round_up(plan.n, ROWS), "amounts": 4 * ants}
        device.check(needed, self._advice)
        for name, size in needed.items():
            device.arrays.allocate(name, size)
        device.allow_shared("link_tours", self._tile_bytes)
        device.allow_shared("deposit_links", self._sums_bytes)

    @property
    def _tile_bytes(self) -> int:
        return TOURS * self._width * 2 * self._plan.node_bytes

    @property
    def _sums_bytes(self) -> int:
        return ROWS * self._width * 4

    def add(
        self,
        tours: object,
        lengths: object,
        share: float,
        largest: float,
        keep: np.float32,
        low: np.float32,
        high: np.float32,
    ) -> None:
        """Evaporate by ``keep``, then every ant deposits share / its length, at most ``largest``."""
        device, plan = self._device, self._plan
        a, n = device.arrays, plan.n
        if "links" not in a:
            self._make_room()
        for first in range(0, plan.m, ANTS_A_PASS):
            count = min(ANTS_A_PASS, plan.m - first)
            units = (2**32 - 1) // count  # of the largest deposit: an edge is once in a tour
            groups = -(-count // TOURS)
            device.launch(
                "link_tours",
                groups * -(-n // self._width),
                THREADS,
                tours,
                lengths,
                n,
                first,
                count,
                self._width,
                share,
                units / largest,
                a["links"],
                a["amounts"],
                shared=self._tile_bytes,
            )
            device.launch(
                "deposit_links",
                -(-n // ROWS),
                THREADS,
                a["tau"],
                n,
                a["links"],
                groups,
                a["amounts"],
                np.float32(largest / units),
                keep,
                low,
                high,
                self._width,
                shared=self._sums_bytes,
            )
            keep = np.float32(1.0)


class CandidateDeposit:
    """On trails of candidate edges: ``sums`` (n, k) of all ants' deposits, then the trails take them.

    Its kernels are in trails.cu.
    """

    def __init__(self, device: Device, plan: Layout, evaporate: Evaporate, advice: str) -> None:
        self._device = device
        self._plan = plan
        self._evaporate = evaporate
        self._advice = advice

    def sources(self) -> list[Source]:
        """Return nothing: no file of its own."""
        return []

    def add(
        self,
        tours: object,
        lengths: object,
        share: float,
        largest: float,
        keep: np.float32,
        low: np.float32,
        high: np.float32,
    ) -> None:
        """Evaporate by ``keep``, then every ant deposits share / its length, at most ``largest``."""
        device, plan = self._device, self._plan
        a, size = device.arrays, plan.n * plan.k
        self._evaporate(keep, low, high)
        if "sums" not in a:
            device.check({"sums of deposits": 8 * size}, self._advice)
            a.allocate("sums", 8 * size)
            a.zero("sums", 8 * size)
        unit = largest * 2.0**-40  # 2^20 ants cannot overflow 64 bits
        device.call(
            "sum_deposits",
            device.spread(plan.m * plan.n),
            a["sums"],
            a["neighbours"],
            plan.n,
            plan.k,
            tours,
            lengths,
            plan.m,
            share,
            unit,
        )
        device.call("apply_sums", device.spread(size), a["tau"], plan.n, plan.k, a["sums"], unit, high)
