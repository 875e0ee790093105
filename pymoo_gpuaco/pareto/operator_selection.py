"""Adaptive operator selection: credit is the hypervolume gain of the last generation of each operator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.front_2d import area

EXPLORE, PATHS, KICKS, PAIRS = range(4)  # of equal credit, the first is chosen
KINDS = 4
_EVERY = 8  # generations after which an operator runs for any credit
# The same without credit, by operator. Pairs come sooner: they are drawn at random and find other tours.
_EVERY_IDLE = np.array([64, 64, 64, 8])


class OperatorSelection:
    """Credit and waiting time of each operator.

    With many cities no operator ever finishes, and the gain of each falls at a different rate; the last gain decides. A
    generation of each operator takes about as long, so no clock is needed.

    Attributes
    ----------
    gains : (KINDS,) hypervolume gain of the last generation of each operator, as a share of the box around the front.
    waits : (KINDS,) generations since then.
    """

    def __init__(self) -> None:
        self.gains = np.zeros(KINDS)
        self.waits = _EVERY_IDLE.copy()
        self.waits[PATHS] += 1  # comes first: exploration of a front with wide gaps is slow

    def choose(self, able: NDArray[np.bool_]) -> int:
        """Return the operator, of those ``able``, that has waited too long, or else the one with the most credit."""
        overdue = np.where(able, self.waits - np.where(self.gains > 0.0, _EVERY, _EVERY_IDLE), -1)
        if overdue.max() >= 0:
            return int(overdue.argmax())
        return int(np.where(able, self.gains, -1.0).argmax())

    def turn(self, able: NDArray[np.bool_]) -> int:
        """Return the operator, of those ``able``, that has waited longest."""
        return int(np.where(able, self.waits, -1).argmax())

    def note(self, kind: int, before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
        """Credit an operator for a generation with the front (f, 2) ``before`` and ``after`` it."""
        worst = np.maximum(before.max(axis=0), after.max(axis=0))
        box = float(np.prod(worst - after.min(axis=0)))
        self.gains[kind] = (area(after, worst) - area(before, worst)) / box if box > 0.0 else 0.0
        self.waits += 1
        self.waits[kind] = 0
