"""Node penalties of a run: computed by the host in a background thread, used by window search from a fixed round on.

K. Helsgaun, "An effective implementation of the Lin-Kernighan traveling salesman heuristic", European Journal of
Operational Research 126 (2000), section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import by_alpha, check_alpha
from pymoo_gpuaco.runtime.background import LONGEST_BLOCK, BackgroundTask
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import Stop

# Limits of the number of 1-trees and of cities. With a time limit the trees take SHARE of the rest of the run, at
# SECONDS_PER_TREE per city and tree, but their number is at least FEWEST_TREES.
MOST_TREES, MOST_CITIES = 50, 100_000
SHARE, SECONDS_PER_TREE, FEWEST_TREES = 0.15, 0.5e-6, 10
# From FEW_KICKS_FROM cities on, each city gets few kicks, and the device searches while the host computes: one round
# per CITIES_PER_ROUND cities, which takes about as long. Smaller instances wait, because their first rounds determine
# the long edges.
FEW_KICKS_FROM, CITIES_PER_ROUND = 50_000, 300
# Time that must remain when the penalties are due, in seconds: that of the host, for at most CITIES_WAITED_FOR cities
# (larger instances search meanwhile), and that of enough rounds to make the wait worthwhile.
SECONDS, SECONDS_PER_CITY, CITIES_WAITED_FOR = 0.2, 35e-6, 20_000
MOST_PENALTY = float(1 << 18)  # whole units: sums of six edges are exact in single precision


class PenalisedCandidates(NamedTuple):
    """Candidate lists of a window search, and the node penalties that it adds to distances."""

    near: NDArray[np.int32]  # (n, k) candidates, the nearest first
    penalties: NDArray[np.float32] | None = None  # (n,) per node, in whole units; None: all 0


def trees(n: int, seconds: float | None) -> int:
    """Return the number of 1-trees for the penalties of n cities in a run with ``seconds`` left; None: no limit."""
    most = min(MOST_TREES, max(1, 1_000_000 // n))
    if seconds is None:
        return most
    return min(most, max(FEWEST_TREES, int(SHARE * seconds / (SECONDS_PER_TREE * n))))


def penalised_lists(
    instance: ListedInstance, k: int, scale: float, iterations: int | None
) -> PenalisedCandidates:
    """Compute at most k candidates per city by alpha-nearness, and their penalties.

    Penalties that a whole cluster shares are omitted: they govern entering it, which windows do not decide.

    scale : whole units per unit of distance.
    """
    ascent, near = by_alpha(instance, k, iterations)
    penalties = np.rint((ascent.pi - ascent.shared) * scale)
    return PenalisedCandidates(
        near.in_order().ids, np.clip(penalties, -MOST_PENALTY, MOST_PENALTY).astype(np.float32)
    )


class Penalties:
    """Schedule of the lists with penalties in a run.

    The round that first uses them does not depend on the speed of the host, so runs of one seed are equal, except for
    runs that end before it.

    candidates : see ``ColonyParameters``. "auto": penalties for up to ``MOST_CITIES`` cities; "alpha": always, from the
        first round on; else none.
    find : returns the lists for a number of 1-trees (None: the default); called in a background thread.

    Raises
    ------
    ValueError : alpha-nearness is not defined for the instance, see ``check_alpha``.
    """

    def __init__(
        self, instance: ListedInstance, candidates: str, find: Callable[[int | None], PenalisedCandidates]
    ) -> None:
        n = instance.n
        if candidates == "alpha":
            check_alpha(instance.symmetric, n)
        self.wanted = candidates == "alpha" or (candidates == "auto" and n <= MOST_CITIES)
        self._n, self._candidates, self._find = n, candidates, find
        self._found: BackgroundTask[PenalisedCandidates] | None = None
        self.in_use = False
        #: rounds until penalties are due; -1 once they are in use, or if there are none
        self.until = self.planned

    @property
    def planned(self) -> int:
        """Rounds from the beginning of a run until penalties are due; -1 without penalties."""
        waits = self._candidates == "alpha" or self._n < FEW_KICKS_FROM
        return -1 if not self.wanted else 0 if waits else self._n // CITIES_PER_ROUND

    def begin(self, moment: float | None) -> None:
        """Start the computation in the background, once; do nothing if the run ends too soon, at ``moment``."""
        if self._found is None and self.wanted and self._has_time(moment):
            # the task must not refer to an engine, whose device memory it would keep alive
            find, iterations = self._find, None
            if self._candidates == "auto":
                iterations = trees(self._n, None if moment is None else moment - CLOCK.monotonic())
            self._found = BackgroundTask(lambda: find(iterations))

    def count_round(self) -> None:
        """Count a searched round."""
        if self.until > 0:
            self.until -= 1

    def are_due(self, moment: float | None) -> bool:
        """Return True if the next round needs penalties that are not yet in use."""
        return self.wanted and not self.in_use and self.until <= 0 and self._has_time(moment)

    def wait(self, stop: Stop) -> bool:
        """Wait for the lists; return False if ``stop`` ends the wait."""
        self.begin(stop.until)
        assert self._found is not None
        while not self._found.wait(CLOCK.monotonic() + LONGEST_BLOCK):
            if stop.passed():
                return False
        return True

    def take(self) -> None:
        """Mark the lists as in use."""
        self.in_use, self.until = True, -1

    @property
    def lists(self) -> PenalisedCandidates:
        """The lists; call ``wait`` before."""
        assert self._found is not None
        return self._found.result()

    def resume(self, until: int) -> None:
        """Continue a run ``until`` rounds before penalties are due."""
        self.until, self.in_use = until, False

    def _has_time(self, moment: float | None) -> bool:
        if moment is None or self._candidates == "alpha":
            return True
        needed = SECONDS + SECONDS_PER_CITY * min(self._n, CITIES_WAITED_FOR)
        return CLOCK.monotonic() + needed < moment
