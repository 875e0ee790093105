"""How far a run is, and what its islands are told of that."""

from __future__ import annotations

import math
import time

# A round that would have less time than SHORTEST is not begun. Rounds end MARGIN before the run's time is over, and are
# waited for until GRACE after it.
SHORTEST, MARGIN, GRACE = 0.1, 0.03, 0.25


class Clock:
    """The progress of a run, and the moment at which its time is over.

    Parameters
    ----------
    generations : of a round where islands are in lock step; None where rounds have seconds.
    """

    def __init__(self, generations: int | None) -> None:
        self.generations = generations
        self.end: float | None = None  # by time.monotonic()
        self.pace = 0.0  # how much progress a second adds, or in lock step a generation of an island
        self._progress = math.nan  # of the run, in [0, 1], when it was told
        self._told = 0.0  # moment of that

    def expect(self, progress: float, rounds: int, seconds: float) -> None:
        """Be told how far the run is, in [0, 1] or NaN, after so many rounds and seconds.

        What is left is reckoned to go on likewise, or to take until the end where that is known.
        """
        self._progress, self._told, self.pace = progress, time.monotonic(), 0.0
        if math.isnan(progress):
            return
        if self.generations is not None:
            if rounds > 0:
                self.pace = progress / (rounds * self.generations)
        elif self.end is not None:
            self.pace = (1.0 - progress) / max(1e-3, self.end - self._told)
        elif seconds > 0.0:
            self.pace = progress / seconds

    @property
    def progress(self) -> float:
        """How far the run is now, in [0, 1] or NaN; rounds are sent long after the last telling."""
        if self.generations is not None:
            return self._progress
        now = self._progress + self.pace * (time.monotonic() - self._told)
        return 1.0 if now > 1.0 else now  # NaN stays

    @property
    def left(self) -> float | None:
        """Seconds after which an island that is sent a round now must have ended it."""
        return None if self.end is None else max(0.0, self.end - MARGIN - time.monotonic())

    @property
    def has_time(self) -> bool:
        """Whether another round is worth its while."""
        return self.end is None or self.end - time.monotonic() >= SHORTEST

    @property
    def latest(self) -> float | None:
        """Moment until which reports are waited for."""
        return None if self.end is None else self.end + GRACE
