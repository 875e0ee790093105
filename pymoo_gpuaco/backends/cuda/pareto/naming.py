"""How a chain is one number of 64 bits, by which chains are in order: ``finds.cuh`` has the same. No device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.device import MOST_EXCHANGES

_OPEN = MOST_EXCHANGES - 1
_BITS = 64
_EXCHANGES_BITS = 3


class Naming(NamedTuple):
    """From the top: member, city and direction of the beginning, exchanges, and a candidate for each but the last."""

    step_bits: int
    index_bits: int

    @classmethod
    def of(cls, n: int, c: int) -> Naming:
        """That for n cities, each with c candidates, of whose edges one of two leaves."""
        return cls((2 * n - 1).bit_length(), (2 * c - 1).bit_length())

    @property
    def _below(self) -> int:
        """Bits below the member."""
        return self.step_bits + _EXCHANGES_BITS + _OPEN * self.index_bits

    @property
    def members(self) -> int:
        """Members that there are numbers for."""
        return 1 << min(30, _BITS - self._below)

    def member(self, names: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Members (e,) of chains."""
        return (names >> np.uint64(self._below)).astype(np.int32)

    def exchanges(self, names: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Exchanges (e,) of chains."""
        return ((names >> np.uint64(_OPEN * self.index_bits)) & np.uint64(7)).astype(np.int32)
