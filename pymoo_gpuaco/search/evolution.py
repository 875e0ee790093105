"""Tours that evolve more than once, each time as they were annealed, among the best of the times before.

Which children come first decides where a population ends: 38 tours of rl5915 ended at .005 to .05 %, by the key alone.
So they evolve in rounds, and the shortest tours of the rounds before stand in the place of the longest ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# A round of evolution takes about so many times as long as the assembly of as many tours after a first, short cycle: of
# rl5915 2.6 times, of pla7397 2.9, of fnl4461 5.5, of d18512 8, on one core after half a kick a city.
ROUND_IN_ASSEMBLIES = 6.0
# Progress of a run. Annealed for .5, .6 and .7 of five seconds of two cores' worth, d18512 ended at .093, .076 and
# .064 %, rl5915 at .014, .024 and .014 (means of three runs).
EARLIEST_END = 0.6


def end_of_annealing(latest: float, round_share: float) -> float:
    """Progress at which annealing ends for the tours to evolve in time: ``latest``, in (0, 1], at most.

    round_share : of the run, that a round of evolution is expected to take, >= 0. How fast the host is at it depends on
        its cores, on who else uses them, and on how far the caches reach.
    """
    return min(latest, max(EARLIEST_END, 1.0 - round_share))


@dataclass(frozen=True)
class Rounds:
    """The annealed tours of a run, and the shortest of the rounds before the one at hand."""

    tours: NDArray[np.int32]  # (m, n)
    longest_first: NDArray[np.int64]  # (m,) the order in which they give way
    # (n,) each, of half as many rounds as there are tours at most
    winners: tuple[NDArray[np.int32], ...] = ()
    number: int = 0  # of the round at hand

    @classmethod
    def of(cls, tours: NDArray[np.int32], lengths: NDArray[np.float64]) -> Rounds:
        """The first round of tours (m, n) of these lengths (m,)."""
        return cls(tours, lengths.argsort(kind="stable")[::-1])

    def next(self, best: NDArray[np.int32]) -> Rounds:
        """The next round, once this one and what came after it have led to ``best`` (n,)."""
        new = not any(np.array_equal(best, winner) for winner in self.winners)
        winners = (*self.winners, best)[-(len(self.tours) // 2) :] if new else self.winners
        return replace(self, winners=winners, number=self.number + 1)

    def given(self) -> NDArray[np.int32]:
        """Tours (m, n) that evolve in it."""
        tours = self.tours.copy()
        for place, winner in zip(self.longest_first, self.winners, strict=False):
            tours[place] = winner
        return tours
