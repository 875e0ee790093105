"""Deposits of all ants of a colony (Eqs. (5) and (6), paper 000)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pymoo_gpuaco.backends.cuda.device import Device, Part, Source
from pymoo_gpuaco.backends.cuda.device.parts import round_up
from pymoo_gpuaco.backends.cuda.instance.lists import node_bytes, node_type

# Threads of a block, ants of a group, rows of a block.
THREADS, TOURS, ROWS = 512, 4, 4
# Sums are integers of 32 bits: with this number of ants the largest deposit still has 20 bits.
ANTS_A_PASS = 4096


class Colony(NamedTuple):
    """m ants and their deposits share / length <= ``largest``: tours (m, n) and lengths (m,) on the device."""

    tours: object
    lengths: object
    m: int
    share: float
    largest: float


Evaporate = Callable[[np.float32, np.float32, np.float32], None]  # by the factor, down and up to the limits


class DenseDeposit:
    """Deposit on dense trails: compute ``links`` (ants, n), the tour neighbours of every city, then sum each row."""

    def __init__(self, device: Device, n: int, symmetric: bool) -> None:
        self._device = device
        self._n = n
        self._each = node_bytes(n)
        self._symmetric = symmetric
        # cities of a tile, so that four blocks of either kernel share a multiprocessor
        most = device.limits.shared_bytes // 4 // (TOURS * 2 * self._each) - 72
        parts = -(-n // most)
        self._width = round_up(-(-n // parts), 32) + 8

    def sources(self) -> list[Source]:
        """Return the two kernels."""
        definitions = {
            "NODE": node_type(self._n),
            "SYMMETRIC": int(self._symmetric),
            "TILED": int(self._width < self._n),
            "THREADS": THREADS,
            "TOURS": TOURS,
            "ROWS": ROWS,
        }
        kernels = ["link_tours", "deposit_links"]
        return [Source("trails/colony_deposit.cu", definitions, kernels)]

    def _reserve(self, m: int) -> None:
        """Allocate the workspace at the first deposit."""
        device, ants = self._device, round_up(min(m, ANTS_A_PASS), TOURS)
        if device.grow({"links": 2 * self._each * ants * round_up(self._n, ROWS), "amounts": 4 * ants}):
            device.allow_shared("link_tours", self._tile_bytes)
            device.allow_shared("deposit_links", self._sums_bytes)

    @property
    def _tile_bytes(self) -> int:
        return TOURS * self._width * 2 * self._each

    @property
    def _sums_bytes(self) -> int:
        return ROWS * self._width * 4

    def add(self, colony: Colony, keep: np.float32, low: np.float32, high: np.float32) -> None:
        """Evaporate by ``keep``, then add the deposits of all ants."""
        device, n = self._device, self._n
        a = device.arrays
        self._reserve(colony.m)
        for first in range(0, colony.m, ANTS_A_PASS):
            count = min(ANTS_A_PASS, colony.m - first)
            units = (2**32 - 1) // count  # per largest deposit; a tour contains an edge once
            groups = -(-count // TOURS)
            device.launch(
                "link_tours",
                groups * -(-n // self._width),
                THREADS,
                colony.tours,
                colony.lengths,
                n,
                first,
                count,
                self._width,
                colony.share,
                units / colony.largest,
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
                np.float32(colony.largest / units),
                keep,
                low,
                high,
                self._width,
                shared=self._sums_bytes,
            )
            keep = np.float32(1.0)


class CandidateDeposit(Part):
    """Deposit on candidate edges: compute ``sums`` (n, k) of all deposits, then add them to the trails.

    The kernels are in trails.cu.
    """

    def __init__(self, device: Device, shape: tuple[int, int], evaporate: Evaporate) -> None:
        self._device = device
        self._shape = shape
        self._evaporate = evaporate
        self._summed = True  # whether an unfinished deposit may have left sums

    def add(self, colony: Colony, keep: np.float32, low: np.float32, high: np.float32) -> None:
        """Evaporate by ``keep``, then add the deposits of all ants."""
        device, (n, k) = self._device, self._shape
        a, size = device.arrays, n * k
        if "sums" not in a:  # first, so that a MemoryError leaves the trails unchanged
            device.take({"sums": 8 * size})
        if self._summed:
            a.zero("sums", 8 * size)
        self._summed = True
        self._evaporate(keep, low, high)
        unit = colony.largest * 2.0**-40  # 2^20 ants cannot overflow 64 bits
        ants = (colony.tours, colony.lengths, colony.m, colony.share)
        threads = device.spread(colony.m * n)
        device.call("sum_deposits", threads, a["sums"], a["neighbours"], n, k, *ants, unit)
        device.call("apply_sums", device.spread(size), a["tau"], n, k, a["sums"], unit, high)
        self._summed = False
