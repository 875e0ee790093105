"""When windows anneal and when tours are merged: a schedule of rounds; pure numbers, shared by the engines.

A run is cut into epochs, each twice as long as the one before. In an epoch the windows anneal: exchanges that make a
tour longer are accepted by Metropolis' rule at a temperature that falls to zero, then only better ones; at its end all
tours are merged into the best. So a run gets better the longer it is, whoever stops it; and where it is known how far it
is, the last epoch ends with it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

FIRST_EPOCH = 128  # rounds
HOT_PART = 0.8  # of an epoch; then the tours cool down


class Epochs:
    """Counts rounds, and says how hot the next one is.

    Parameters
    ----------
    descent : rounds before the first epoch, in which the first tours become local optima, >= 1.
    """

    def __init__(self, descent: int) -> None:
        self._descent = descent
        self.rounds = 0  # of the run
        self._planned = FIRST_EPOCH  # rounds of the next epoch
        self._begun = 0  # round at which this epoch began
        self._length = descent  # of this epoch; the descent comes before the first
        self._last = False  # whether this epoch ends with the run
        self._descending = True

    def expect(self, progress: float, margin: int) -> None:
        """Be told how far the run is, in [0, 1] or NaN, before a generation of ``margin`` rounds."""
        if self._last and 0.0 < progress < 1.0:
            left = self.rounds * (1.0 - progress) / progress - margin
            self._length = max(1, self.rounds - self._begun + int(left))
        self._left = self.rounds * (1.0 - progress) / progress - margin if 0.0 < progress < 1.0 else math.nan

    _left = math.nan  # rounds until the run ends

    @property
    def descending(self) -> bool:
        """Whether the first tours are still on their way to a local optimum."""
        return self._descending

    def heat(self) -> float:
        """Temperature of the next round, from 1 at the beginning of an epoch to 0."""
        if self._descending:
            return 0.0
        return max(0.0, 1.0 - (self.rounds - self._begun) / (HOT_PART * self._length))

    def advance(self) -> bool:
        """Count a round; whether the tours are to be merged now, and a new epoch begins."""
        self.rounds += 1
        if self.rounds - self._begun < self._length:
            return False
        merge = not self._descending
        self._begun = self.rounds
        self._descending = False
        self._length = self._planned
        self._last = self._left < 2 * self._length
        if self._last:
            self._length = max(1, int(self._left))
        else:
            self._planned *= 2
        return merge

    def read(self) -> NDArray[np.float64]:
        """Return everything as numbers (6,)."""
        return np.array(
            [self.rounds, self._planned, self._begun, self._length, self._last, self._descending], np.float64
        )

    def write(self, numbers: NDArray[np.float64]) -> None:
        """Take over what ``read`` gave."""
        rounds, planned, begun, length, last, descending = numbers
        self.rounds, self._planned, self._begun, self._length = int(rounds), int(planned), int(begun), int(length)
        self._last, self._descending = bool(last), bool(descending)
