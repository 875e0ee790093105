"""Node penalties of a run: the host finds them in a thread of its own, and windows count them from some round on.

K. Helsgaun, "An effective implementation of the Lin-Kernighan traveling salesman heuristic", European Journal of
Operational Research 126 (2000), section 4.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.alpha import check_alpha
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import by_alpha
from pymoo_gpuaco.runtime.background import LONGEST_BLOCK, BackgroundTask
from pymoo_gpuaco.runtime.stop import Stop

# A minimum 1-tree for every million of cities and trees, but no more than these; where time is limited they have this
# share of what is left, at so many seconds a city.
MOST_TREES, MOST_CITIES = 50, 100_000
SHARE, SECONDS_A_TREE, FEWEST_TREES = 0.15, 0.5e-6, 10
# From so many cities on each gets few kicks. There rounds are searched meanwhile, one for so many cities: the host
# needs about as long. Other tours wait: in the first rounds it is decided which long edges they will have.
FEW_KICKS_FROM, CITIES_A_ROUND = 50_000, 300
# What must be left of a run when they are due: what the host needs, for so many cities at most (where there are more,
# it has had the rounds before), and time for rounds that make it worth waiting.
SECONDS, SECONDS_A_CITY, CITIES_WAITED_FOR = 0.2, 35e-6, 20_000
MOST_PENALTY = float(1 << 18)  # units: sums of six edges stay exact in single precision


class Lists(NamedTuple):
    """Candidate lists of a window search, and node penalties that are added to its distances."""

    near: NDArray[np.int32]  # (n, k) candidates, the nearest first
    penalties: NDArray[np.float32] | None = None  # (n,) of nodes, whole units; None: all 0


def trees(n: int, seconds: float | None) -> int:
    """Minimum 1-trees made for the penalties of n cities in a run that has so many seconds left, or any number."""
    most = min(MOST_TREES, max(1, 1_000_000 // n))
    if seconds is None:
        return most
    return min(most, max(FEWEST_TREES, int(SHARE * seconds / (SECONDS_A_TREE * n))))


def penalised_lists(instance: ListedInstance, k: int, scale: float, iterations: int | None) -> Lists:
    """At most k candidates a city by alpha-nearness and the penalties they come with; both take the host a while.

    What clusters share of the penalties is left out. It says how often a tour enters them, which a window does not
    decide, and as searches walk out of a cluster or into it, it would end all of them at once, or none.

    scale : whole units a unit of distance.
    """
    ascent, near = by_alpha(instance, k, iterations)
    penalties = np.rint((ascent.pi - ascent.shared) * scale)
    return Lists(near.ids, np.clip(penalties, -MOST_PENALTY, MOST_PENALTY).astype(np.float32))


class Penalties:
    """When the rounds of a run get lists with penalties, if they are to get any.

    After how many rounds does not depend on when the host has found them: runs of one seed are alike, but for those
    that end too soon.

    candidates : see ``ColonyParameters``. "auto" has penalties on up to ``MOST_CITIES``, "alpha" always, and from the
        first round on.
    find : returns the lists, for a number of 1-trees or the usual one; called in a thread of its own.

    Raises
    ------
    ValueError : alpha-nearness of an instance that has none, see ``check_alpha``.
    """

    def __init__(
        self, instance: ListedInstance, candidates: str, find: Callable[[int | None], Lists]
    ) -> None:
        n = instance.n
        if candidates == "alpha":
            check_alpha(instance.symmetric, n)
        self.wanted = candidates == "alpha" or (candidates == "auto" and n <= MOST_CITIES)
        self._n, self._candidates, self._find = n, candidates, find
        self._found: BackgroundTask[Lists] | None = None
        self.in_use = False
        #: rounds until penalties are due; -1 once they have been taken, and where there are none
        self.until = self.planned

    @property
    def planned(self) -> int:
        """Rounds until penalties are due, counted from the beginning of a run; -1 where there are to be none."""
        waits = self._candidates == "alpha" or self._n < FEW_KICKS_FROM
        return -1 if not self.wanted else 0 if waits else self._n // CITIES_A_ROUND

    def begin(self, moment: float | None) -> None:
        """Start to find penalties in the background, once, unless the run ends, at this ``moment``, too soon."""
        if self._found is None and self.wanted and self._has_time(moment):
            # which must not keep an engine, and with it the device's memory, alive
            find, iterations = self._find, None
            if self._candidates == "auto":
                iterations = trees(self._n, None if moment is None else moment - time.monotonic())
            self._found = BackgroundTask(lambda: find(iterations))

    def count_round(self) -> None:
        """Note that a round has been searched."""
        if self.until > 0:
            self.until -= 1

    def are_due(self, moment: float | None) -> bool:
        """Whether the next round is to have penalties and has none yet."""
        return self.wanted and not self.in_use and self.until <= 0 and self._has_time(moment)

    def wait(self, stop: Stop) -> bool:
        """Wait for the lists that are due; False if ``stop`` ends the wait."""
        self.begin(stop.until)
        assert self._found is not None
        while not self._found.wait(time.monotonic() + LONGEST_BLOCK):
            if stop.passed():
                return False
        return True

    def take(self) -> None:
        """Count the lists as in use: rounds have them from now on."""
        self.in_use, self.until = True, -1

    @property
    def lists(self) -> Lists:
        """The lists that were found; call ``wait`` before."""
        assert self._found is not None
        return self._found.result()

    def resume(self, until: int) -> None:
        """Go on so many rounds before penalties are due."""
        self.until, self.in_use = until, False

    def _has_time(self, moment: float | None) -> bool:
        if moment is None or self._candidates == "alpha":
            return True
        needed = SECONDS + SECONDS_A_CITY * min(self._n, CITIES_WAITED_FOR)
        return time.monotonic() + needed < moment
