"""How long what a run does takes: of millions of cities a round, or what follows the last one, takes seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pymoo_gpuaco.runtime.stop import Stop


@dataclass
class Noted:
    """How often a block has done what is noted, >= 1."""

    times: int = 1


class Pace:
    """Seconds that each kind of work took when it was done last, and whether there is time for it once more.

    Without a moment at which the run ends there is time for everything.
    """

    def __init__(self, stop: Stop) -> None:
        self.stop = stop
        self._seconds: dict[str, float] = {}
        self._apart = 0.0  # seconds of the block at hand that blocks within it have noted
        #: seconds of the whole run, by its progress so far, > 0; None: nobody knows
        self.whole: float | None = None

    @property
    def until(self) -> float | None:
        """The moment at which the run ends, by time.monotonic(); None: nobody knows."""
        return self.stop.until

    @property
    def left(self) -> float | None:
        """Seconds until then."""
        return None if self.until is None else self.until - time.monotonic()

    def expect(self, progress: float) -> None:
        """Note how far the run is now, in [0, 1], or NaN where nobody knows."""
        left = self.left
        self.whole = None
        if left is not None and left > 0.0 and progress < 1.0:
            self.whole = left / (1.0 - progress)

    @property
    def progress(self) -> float:
        """How far the run is by the clock, at most 1; NaN where nobody knows."""
        left = self.left
        return math.nan if left is None or self.whole is None else 1.0 - max(0.0, left) / self.whole

    @contextmanager
    def noted(self, what: str) -> Iterator[Noted]:
        """Note how long ``what`` takes, which the block does so many times, without the blocks within it."""
        began, outer, self._apart = time.monotonic(), self._apart, 0.0
        noted = Noted()
        yield noted
        took = time.monotonic() - began
        self._seconds[what] = (took - self._apart) / noted.times
        self._apart = outer + took

    def seconds(self, what: str) -> float:
        """Seconds that it took last; 0 where it was not done yet."""
        return self._seconds.get(what, 0.0)

    def time_for(self, what: str, most: int = 1, then: str | None = None, late: float = 0.0) -> int:
        """How many of ``what``, up to ``most``, end in time, and ``then`` something else once.

        The last of them may be late by the share ``late`` of it. As long as nobody knows how long ``what`` takes, 1.
        """
        if self.left is None:
            return most
        left = self.left - self.seconds(then or "")
        if what not in self._seconds:
            return int(left > 0.0)
        return max(0, min(most, int(left / max(self._seconds[what], 1e-9) + late)))
