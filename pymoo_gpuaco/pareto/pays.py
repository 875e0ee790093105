"""Which kind of work pays: what the last generation of each has added to the area that a front dominates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.pareto.stairs import area

LOOKS, WAYS, KICKS, PAIRS = range(4)  # of equal ones the first
KINDS = 4
_EVERY = 8  # generations after which a kind gets its turn whatever it has paid
# and after which one that has paid nothing, by kind: pairs are drawn anew, and find what looks do not
_EVERY_IDLE = np.array([64, 64, 64, 8])


class Pays:
    """What each kind has paid, and for how long it has waited.

    With many cities no kind of work ever comes to its end: each gives less and less, at its own pace, and what it gave
    last decides. A generation of one kind takes about as long as one of another, so that no clock is needed.

    Attributes
    ----------
    gains : (KINDS,) shares of the box around the front that its last generation has added.
    waits : (KINDS,) generations since.
    """

    def __init__(self) -> None:
        self.gains = np.zeros(KINDS)
        self.waits = _EVERY_IDLE.copy()
        self.waits[WAYS] += 1  # comes first: looks at a front with wide gaps take long

    def choose(self, able: NDArray[np.bool_]) -> int:
        """The kind, of those that are ``able``, that has waited for too long, or else has paid most."""
        late = np.where(able, self.waits - np.where(self.gains > 0.0, _EVERY, _EVERY_IDLE), -1)
        if late.max() >= 0:
            return int(late.argmax())
        return int(np.where(able, self.gains, -1.0).argmax())

    def turn(self, able: NDArray[np.bool_]) -> int:
        """The kind, of those that are ``able``, that has waited for longest."""
        return int(np.where(able, self.waits, -1).argmax())

    def note(self, kind: int, before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
        """Learn what a generation has made of the front (f, 2): ``before`` and ``after`` it."""
        worst = np.maximum(before.max(axis=0), after.max(axis=0))
        box = float(np.prod(worst - after.min(axis=0)))
        self.gains[kind] = (area(after, worst) - area(before, worst)) / box if box > 0.0 else 0.0
        self.waits += 1
        self.waits[kind] = 0
