"""The end of a run, when all annealing is over: many tours evolve, in rounds, each time as they were annealed.

Which children come first decides where a population ends: 38 tours of rl5915 ended at .005 to .05 %, by the key alone.
So they evolve in rounds, and the shortest tours of the rounds before stand in the place of the longest ones. Where time
is limited, copies of the best tour are kicked between two rounds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.pace import Pace
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.runtime.keys import fold_in

MOST_ROUNDS = 8  # where time is not limited
# How long the best tour is kicked between two rounds of evolution, beside the first of them. After 20 s of two cores'
# worth d18512 ended at .0113 %, with as much time for kicks as for rounds at .0126, with kicks after all rounds at
# .0116; pla7397 (two runs) at .008, .011 and .011.
KICKED = 0.4
# Share of a round that need not fit any more: with the winner of the last one it has less to find.
LESS_TO_FIND = 0.3
# A round of evolution takes up to so many times as long as the assembly of as many tours after a first, short cycle: of
# rl5915 3.1 times, of pla7397 5.9, of fnl4461 8, of d18512 10, on one core after half a kick a city. On sixteen it is
# 14 times or more of d18512: where tours are assembled, threads wait less for each other.
ROUND_IN_ASSEMBLIES = 16.0
# Progress of a run. Annealed for .5, .6 and .7 of five seconds of two cores' worth, d18512 ended at .093, .076 and
# .064 %, rl5915 at .014, .024 and .014 (means of three runs).
EARLIEST_END = 0.6

_ROUND = "a round of evolution"  # as its pace is noted


@dataclass(frozen=True)
class Rounds:
    """The annealed tours of a run, and the shortest of the rounds before the one at hand."""

    tours: NDArray[np.int32]  # (m, n)
    lengths: NDArray[np.float64]  # (m,)
    longest_first: NDArray[np.int64]  # (m,) the order in which they give way
    # (n,) each, of half as many rounds as there are tours at most
    winners: tuple[NDArray[np.int32], ...] = ()
    number: int = 0  # of the round at hand

    @classmethod
    def of(cls, tours: NDArray[np.int32], lengths: NDArray[np.float64]) -> Rounds:
        """The first round of tours (m, n) of these lengths (m,)."""
        return cls(tours, lengths, lengths.argsort(kind="stable")[::-1])

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


class Evolution:
    """Rounds of evolution of a population, which each call is given.

    Without a limit of time they follow one another until one finds nothing shorter. Where ``pace`` has a limit there is
    one, and others for as long as there is time.

    Attributes
    ----------
    assembly : s that the host has taken for a tour that was assembled at the end of the first cycle; 0: unknown.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.assembly = 0.0
        self._rounds: Rounds | None = None  # of a run of limited time, where more may follow
        self._due_at = 0.0  # by time.monotonic()

    def end_of_annealing(self, latest: float, m: int) -> float:
        """Progress of a run at which annealing ends for m tours to evolve in time: ``latest``, in (0, 1], at most.

        It ends as soon as the host asks for it: how fast that is depends on its cores, on who else uses them, and on
        how far the caches reach.
        """
        seconds = self._pace.whole
        if seconds is None or m < FEWEST_TO_EVOLVE:
            return latest
        share = ROUND_IN_ASSEMBLIES * m * self.assembly / seconds
        return min(latest, max(EARLIEST_END, 1.0 - share))

    def first(
        self,
        population: Population,
        tours: NDArray[np.int32],
        key: int,
        mates: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """Let annealed tours (m, n) evolve with the best one; return tours (m, n) to go on from.

        Where time is limited these are copies of the best tour.

        mates : tours (e, n) of other islands.
        """
        assert population.best is not None
        own, stop = np.concatenate([tours, population.best[None]]), self._pace.stop
        self.end()
        with self._timed():
            rounds = Rounds.of(own, population.lengths_of(own))
            if stop.until is None:
                return self._until_nothing_is_found(population, rounds, key, mates)[:-1]
            population.evolve(rounds.given(), fold_in(key, rounds.number), stop, mates)
            self._rounds = rounds
            return np.tile(population.best, (len(tours), 1))

    def _until_nothing_is_found(
        self, population: Population, rounds: Rounds, key: int, mates: NDArray[np.int32] | None
    ) -> NDArray[np.int32]:
        most = min(MOST_ROUNDS, len(rounds.tours) // 2)
        while True:
            before = population.length
            taken = population.evolve(rounds.given(), fold_in(key, rounds.number), self._pace.stop, mates)
            if population.length == before or rounds.number + 1 == most or self._pace.stop.interrupted:
                return taken
            assert population.best is not None
            rounds = rounds.next(population.best)

    @property
    def goes_on(self) -> bool:
        """Whether more rounds may follow, between which copies of the best tour are kicked."""
        return self._rounds is not None

    def due(self) -> bool:
        """Whether the next round is due: the best has been kicked for long enough, and there is time."""
        if not self.goes_on or time.monotonic() < self._due_at:
            return False
        return self._pace.time_for(_ROUND, late=LESS_TO_FIND) > 0

    def annealed(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The annealed tours (e, n) that evolve, at most ``most``, and their lengths (e,), the shortest first."""
        assert self._rounds is not None
        shortest = self._rounds.longest_first[::-1][:most]
        return self._rounds.tours[shortest], self._rounds.lengths[shortest]

    def again(self, population: Population, key: int, mates: NDArray[np.int32] | None = None) -> None:
        """Have the next round, of the annealed tours and the best so far, which may become shorter."""
        assert self._rounds is not None
        assert population.best is not None
        self._rounds = self._rounds.next(population.best)
        with self._timed():
            population.evolve(self._rounds.given(), fold_in(key, self._rounds.number), self._pace.stop, mates)

    def end(self) -> None:
        """Have no more rounds: the run anneals again, or its time is not limited any more."""
        self._rounds = None

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Note how long a round takes, and until when the best is kicked after it."""
        began = time.monotonic()
        with self._pace.noted(_ROUND):
            yield
        now = time.monotonic()
        self._due_at = now + KICKED * (now - began)
