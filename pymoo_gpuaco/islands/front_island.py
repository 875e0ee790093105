"""An island of several objectives on its worker: it tells what is new to its front, and takes in what others find."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.islands.island import Island
from pymoo_gpuaco.islands.messages import Order, Report
from pymoo_gpuaco.search.meeting import Meeting

MOST_CITIES = 1 << 21  # of the tours of one message: 8 MB


def most_tours(n: int) -> int:
    """Tours of n cities that one message brings at most."""
    return max(1, MOST_CITIES // n)


class FrontIsland(Island):
    """A colony for several objectives. What it has told, or been told, is known by its lengths."""

    def __init__(self, colony: Any, problem: Any, state: bytes | None, round_number: int) -> None:
        super().__init__(colony, problem, state, round_number)
        self._known = {row.tobytes() for row in self.colony.exchanged}

    def _meet(self, order: Order) -> None:
        engine, mates = self.colony.engine, order["mates"]
        engine.divide(order["island"], order["parts"])
        if len(mates):
            self._known.update(row.tobytes() for row in engine.instance.lengths(mates))
            engine.accept(mates)

    def _value(self) -> float:
        return float(len(self.colony.engine.archive.front))

    def _report(self, order: Order, generations: int, built: int, seconds: float) -> Report:
        report = super()._report(order, generations, built, seconds)
        return {**report, "sums": self.colony.engine.n_sums}

    def _tours_to_tell(self, meeting: Meeting | None) -> NDArray[np.int32] | None:
        """Return the members of the front that nobody else knows, evenly along it where they are too many at once."""
        archive = self.colony.engine.archive
        names = [row.tobytes() for row in archive.points]
        new = np.array([i for i, name in enumerate(names) if name not in self._known], np.intp)
        most = most_tours(archive.n)
        if len(new) > most:
            new = new[np.linspace(0, len(new) - 1, most).astype(np.intp)]
        self._known.update(names[i] for i in new)
        return archive.tours[archive.front[new]].astype(np.int32)

    def _state(self) -> bytes:
        names = b"".join(sorted(self._known))
        self.colony.exchanged = np.frombuffer(names).reshape(-1, self.colony.engine.instance.k)
        return super()._state()
