"""The deposit of a whole colony: every ant on every edge of its tour (Eqs. (5) and (6), paper 000)."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Source
from pymoo_gpuaco.backends.cuda.layout import Layout

# Of colony_deposit.cu: tours that a block of link_tours handles, which a row of links is a multiple of.
TOURS = 8
# Sums are integers of 31 bits: with so many ants the largest deposit still has 19 of them.
ANTS_A_PASS = 4096
# Columns of a row that a block sums up at once; they fit the shared memory that every device has.
COLUMNS = 10_240


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


class DenseDeposit:
    """On dense trails: ``links`` (n, ants) hold the tour neighbours of every city, then each row is summed up."""

    def __init__(self, device: Device, plan: Layout, symmetric: bool, advice: str) -> None:
        self._device = device
        self._plan = plan
        self._symmetric = symmetric
        self._advice = advice
        self._pitch = _round_up(min(plan.m, ANTS_A_PASS), TOURS)
        # cities of a block of link_tours: a quarter of a multiprocessor's memory, so that four share one
        link = 2 * plan.node_bytes
        most = device.limits.shared_bytes // 4 // (TOURS * link) - 64
        self._width = -(-plan.n // -(-plan.n // most))
        self._tile_row = _round_up(self._width, 32) + 4
        self._tile_bytes = TOURS * self._tile_row * link

    def sources(self) -> list[Source]:
        """Return the two kernels."""
        definitions = {
            "NODE": self._plan.node,
            "SYMMETRIC": int(self._symmetric),
            "TILED": int(self._plan.n > COLUMNS),
        }
        kernels = {"link_tours": "PPiiiiiddPiP", "deposit_links": "PPPiiPiPffffi"}
        return [Source("colony_deposit.cu", definitions, kernels)]

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
            needed = {"links": 2 * plan.node_bytes * n * self._pitch, "amounts": 4 * self._pitch}
            device.check(needed, self._advice)
            for name, size in needed.items():
                a.allocate(name, size)
            device.allow_shared("link_tours", self._tile_bytes)
        columns = min(n, COLUMNS)
        for first in range(0, plan.m, ANTS_A_PASS):
            count = min(ANTS_A_PASS, plan.m - first)
            units = (2**31 - 1) // count  # of the largest deposit: an edge is once in a tour
            pitch = _round_up(count, TOURS)
            device.launch(
                "link_tours",
                pitch // TOURS * -(-n // self._width),
                64 * TOURS,
                tours,
                lengths,
                n,
                first,
                count,
                self._width,
                self._tile_row,
                share,
                units / largest,
                a["links"],
                pitch,
                a["amounts"],
                shared=self._tile_bytes,
            )
            device.launch(
                "deposit_links",
                n,
                256,
                a["tau"],
                a["bound"],
                a["neighbours"],
                n,
                plan.k,
                a["links"],
                pitch,
                a["amounts"],
                np.float32(largest / units),
                keep,
                low,
                high,
                columns,
                shared=_round_up(4 * columns, 16),
            )
            keep = np.float32(1.0)


class CandidateDeposit:
    """On trails of candidate edges: ``sums`` (n, k) of all ants' deposits, then the trails take them.

    Its kernels are in trails.cu.
    """

    def __init__(self, device: Device, plan: Layout, advice: str) -> None:
        self._device = device
        self._plan = plan
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
        device.call("evaporate", device.spread(-(-size // 4)), a["tau"], size, keep, low, high)
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
