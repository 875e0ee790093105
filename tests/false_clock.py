"""A clock that tests step, in the place of the clocks of the machine."""

from __future__ import annotations

from types import SimpleNamespace

import pymoo.core.algorithm
import pymoo.termination.max_time
import pytest

from pymoo_gpuaco.runtime.clock import CLOCK

WALL = 1e9  # wall() - monotonic(): reading the wrong one shows


class FalseClock:
    """Stands still but for ``step`` and for ``CLOCK.sleep``; whole seconds and powers of two are exact.

    To threads that measure their share of a core, each look at their work is a second of it.

    Attributes
    ----------
    per_look : seconds by which each look at ``CLOCK.monotonic`` puts the clock forward.
    """

    per_look = 0.0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self._worked = 100.0, 0.0
        monkeypatch.setattr(CLOCK, "monotonic", self._look)
        monkeypatch.setattr(CLOCK, "wall", self.wall)
        monkeypatch.setattr(CLOCK, "thread_time", self._work)
        monkeypatch.setattr(CLOCK, "sleep", self.step)
        for module in (pymoo.core.algorithm, pymoo.termination.max_time):
            monkeypatch.setattr(module, "time", SimpleNamespace(time=self.wall))

    def wall(self) -> float:
        """Return what time.time() shows to pymoo."""
        return WALL + self.now

    def step(self, seconds: float) -> None:
        """Put the clock forward."""
        self.now += seconds

    def _look(self) -> float:
        self.now += self.per_look
        return self.now

    def _work(self) -> float:
        self._worked += 1.0
        return self._worked
