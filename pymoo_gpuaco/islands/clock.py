"""The progress of a run and the time left for rounds."""

from __future__ import annotations

import math
import time

# A round that would have less time than SHORTEST is not begun. Rounds end MARGIN before the run's time is over, and are
# waited for until GRACE after it.
SHORTEST, MARGIN, GRACE = 0.1, 0.03, 0.25


class Clock:
    """The progress of a run, and the time at which it ends.

    Parameters
    ----------
    generations : of a round where islands are in lock step; None where rounds have seconds.
    """

    def __init__(self, generations: int | None) -> None:
        self.generations = generations
        self.end: float | None = None  # by time.monotonic()
        self.pace = 0.0  # how much progress a second adds, or in lock step a generation of an island
        self._progress = math.nan  # of the run, in [0, 1], at the last `expect`
        self._expected_at = 0.0  # time of the last `expect`

    def expect(self, progress: float, rounds: int, seconds: float) -> None:
        """Set the progress of the run, in [0, 1] or NaN, after so many rounds and seconds.

        The rest of the run is expected at the same pace, or to last until the time limit where there is one.
        """
        self._progress, self._expected_at, self.pace = progress, time.monotonic(), 0.0
        if math.isnan(progress):
            return
        if self.generations is not None:
            if rounds > 0:
                self.pace = progress / (rounds * self.generations)
        elif self.end is not None:
            self.pace = (1.0 - progress) / max(1e-3, self.end - self._expected_at)
        elif seconds > 0.0:
            self.pace = progress / seconds

    @property
    def progress(self) -> float:
        """Progress of the run now, in [0, 1] or NaN, extrapolated from the last `expect`."""
        if self.generations is not None:
            return self._progress
        now = self._progress + self.pace * (time.monotonic() - self._expected_at)
        return 1.0 if now > 1.0 else now  # NaN stays

    @property
    def left(self) -> float | None:
        """Seconds that a round sent now may take."""
        return None if self.end is None else max(0.0, self.end - MARGIN - time.monotonic())

    @property
    def has_time(self) -> bool:
        """Whether another round is worth its while."""
        return self.end is None or self.end - time.monotonic() >= SHORTEST

    @property
    def latest(self) -> float | None:
        """Time until which reports are awaited."""
        return None if self.end is None else self.end + GRACE
