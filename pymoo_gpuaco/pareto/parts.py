"""How several searches divide a front between them: by what its tours' lengths hash to, the same on every machine."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_MIX = np.uint64(0xBF58476D1CE4E5B9)  # of splitmix64 (Steele, Lea and Flood 2014)
_31 = np.uint64(31)


class Part(NamedTuple):
    """One of so many parts of about the same size."""

    number: int  # in [0, of)
    of: int  # >= 1

    def has(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of rows (m, ..) of numbers are in this part."""
        if self.of == 1:
            return np.ones(len(rows), bool)
        mixed = np.zeros(len(rows), np.uint64)
        for column in np.ascontiguousarray(rows.T).view(np.uint64):
            mixed = (mixed ^ column) * _MIX
            mixed ^= mixed >> _31
        return np.asarray(mixed % np.uint64(self.of) == self.number)


WHOLE = Part(0, 1)
