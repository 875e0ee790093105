"""Evolution at the end of a run: after all annealing, the annealed tours evolve in several rounds.

The result of a round depends on the random order of children. Every round therefore begins with the annealed tours, in
which the winners of earlier rounds replace the longest ones. In a run with a time limit, window search improves copies
of the best tour between two rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.memetic.eax import Evolved, Evolving
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.memetic.schedule import Plan, TimeBudget
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.philox import fold_in

MOST_ROUNDS = 8  # without a time limit
# Duration of kicks between two rounds of evolution, relative to the round before them.
KICKED = 0.4
# Share of a round that may exceed the deadline: with one more winner a round ends sooner.
OVERRUN = 0.3
# Upper bound of one round of evolution, in durations of the first assembly. It grows with the number of cities and of
# cores, because threads wait less for each other in an assembly.
ROUND_IN_ASSEMBLIES = 16.0

_ROUND = "a round of evolution"
# Seconds of a round after which it pauses, so that the run can report its progress and save its state.
PAUSE = 10.0


class EvolutionState(NamedTuple):
    """State of an evolution between two generations of the run."""

    is_running: bool
    number: int  # of the round
    blocks: bool  # True if the paused round is in its second stage
    annealed: NDArray[np.int32]  # (m, n) the longest first; m = 0 unless it is running
    winners: NDArray[np.int32]  # (w, n) of earlier rounds
    paused: NDArray[np.int32]  # (p, n) tours of a paused round, or p = 0


class Evolution:
    """Rounds of evolution of a population.

    Without a deadline, `first` runs rounds until one finds nothing shorter. With a deadline, a round pauses every
    ``PAUSE`` seconds: `first` and `again` begin one, and `proceed` continues it.

    Attributes
    ----------
    assembly : seconds per tour of the assembly at the end of the first cycle; 0: unknown.
    is_running : True if more rounds may follow, between which copies of the best tour are kicked.
    """

    def __init__(self, budget: TimeBudget) -> None:
        self._budget = budget
        self.assembly = 0.0
        self.reset()

    def reset(self, stored: EvolutionState | None = None, population: Population | None = None) -> None:
        """Return to the state before the first round, or continue from a stored state of a population."""
        if stored is None:
            no_tours = np.empty((0, 0), np.int32)
            stored = EvolutionState(False, 0, False, no_tours, no_tours, no_tours)
        self.is_running, self._number = stored.is_running, stored.number
        self._tours = stored.annealed  # (m, n) the annealed tours, the longest first
        self._lengths = np.empty(0) if population is None else population.lengths_of(self._tours)  # (m,)
        self._places = np.arange(len(stored.annealed))  # (m,) in the population
        self._winners: list[NDArray[np.int32]] = list(stored.winners)  # (n,) each, of earlier rounds
        self._due_at = 0.0  # by CLOCK.monotonic()
        self._lasted = 0.0  # seconds of the round
        self._rest: Evolving | None = None  # of a paused round
        self._paused = stored.paused  # tours (m, n) of a round that was cut, or m = 0
        self._blocks = stored.blocks  # it was in its second stage

    def end_of_annealing(self, plan: Plan, m: int) -> float:
        """Return the progress, in (0, 1], at which annealing ends to leave time to evolve m tours.

        The estimate uses the measured speed of the host, which depends on its cores, their load and their caches.
        """
        seconds = self._budget.run_seconds
        if seconds is None or m < FEWEST_TO_EVOLVE:
            return plan.end
        share = ROUND_IN_ASSEMBLIES * m * self.assembly / seconds
        return min(plan.end, max(plan.earliest_end, 1.0 - share))

    def first(
        self,
        population: Population,
        tours: NDArray[np.int32],
        key: int,
        migrants: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """Evolve annealed tours (m, n) with the best one; return tours (m, n) to continue from.

        With a deadline these are copies of the best tour.

        migrants : tours (e, n) of other islands.
        """
        assert population.best is not None
        own, stop = np.concatenate([tours, population.best[None]]), self._budget.stop
        self.reset()
        lengths = population.lengths_of(own)
        self._places = lengths.argsort(kind="stable")[::-1]
        self._tours, self._lengths = own[self._places], lengths[self._places]
        before = population.length
        taken = self._evolve(population, key, migrants)
        if stop.until is not None:
            self.is_running = True
            return np.tile(population.best, (len(tours), 1))
        most = min(MOST_ROUNDS, len(own) // 2)
        while population.length < before and self._number + 1 < most and not stop.interrupted:
            before = population.length
            self._follow(population.best)
            taken = self._evolve(population, key, migrants)
        return taken[:-1]

    def given(self, population: Population, tours: NDArray[np.int32], key: int) -> None:
        """Evolve tours (m, n) in one round, before any annealing."""
        self.reset()
        self._round(population, tours, key)

    def again(self, population: Population, key: int, migrants: NDArray[np.int32] | None = None) -> None:
        """Run the next round, of the annealed tours and the best one so far, which may become shorter."""
        assert population.best is not None
        self._follow(population.best)
        self._evolve(population, key, migrants)

    @property
    def is_paused(self) -> bool:
        """True if the latest round has not ended: call `proceed`."""
        return self._rest is not None or len(self._paused) > 0

    def proceed(self, population: Population, key: int) -> None:
        """Continue a paused round."""
        if self._rest is None:
            paused, self._paused = self._paused, self._paused[:0]
            self._round(population, paused, key, blocks=self._blocks)
            return
        rest = self._rest
        with self._timed():
            self._keep(population.keep_evolved(rest.proceed(self._pause_after)))

    def _follow(self, best: NDArray[np.int32]) -> None:
        """Begin the next round; ``best`` (n,) is the winner of this one and of the kicks after it."""
        if not any(np.array_equal(best, winner) for winner in self._winners):
            self._winners = [*self._winners, best][-(len(self._tours) // 2) :]
        self._number += 1

    def _evolve(
        self, population: Population, key: int, migrants: NDArray[np.int32] | None
    ) -> NDArray[np.int32]:
        """Evolve the annealed tours, the longest of them replaced by winners; return the tours (m, n)."""
        parents = np.empty_like(self._tours)
        parents[self._places] = [*self._winners, *self._tours[len(self._winners) :]]
        evolved = self._round(population, parents, fold_in(key, self._number), migrants)
        if self._budget.stop.until is None:  # the run repeats a round that an interrupt ended
            self._paused = self._paused[:0]
        return evolved

    def _round(
        self,
        population: Population,
        tours: NDArray[np.int32],
        key: int,
        migrants: NDArray[np.int32] | None = None,
        blocks: bool = False,
    ) -> NDArray[np.int32]:
        """Evolve tours (m, n) until the round ends or pauses; return tours (m, n)."""
        stop, self._lasted = self._budget.stop, 0.0
        with self._timed():
            evolved = population.evolve(tours, key, stop, migrants, self._pause_after, blocks)
            self._keep(evolved)
        return evolved.tours

    def _keep(self, evolved: Evolved) -> None:
        """Keep the rest of a round; only its tours if the run may end here, because its arrays are large."""
        self._rest, self._paused = evolved.rest, self._paused[:0]
        if self._rest is not None and self._budget.stop.passed():
            self._blocks, self._rest, self._paused = self._rest.blocks, None, evolved.tours

    @property
    def _pause_after(self) -> float | None:
        return None if self._budget.stop.until is None else PAUSE

    def due(self) -> bool:
        """Return True if the next round is due: the kicks have lasted long enough, and the remaining time suffices."""
        if not self.is_running or self.is_paused or CLOCK.monotonic() < self._due_at:
            return False
        return self._budget.n_in_time(_ROUND, overrun=OVERRUN) > 0

    def annealed(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return at most ``most`` of the annealed tours (e, n) and their lengths (e,), the shortest first."""
        return self._tours[::-1][:most], self._lengths[::-1][:most]

    def end(self) -> None:
        """Begin no more rounds, because the run anneals again or has no deadline any more."""
        self.is_running = False

    def stored(self) -> EvolutionState:
        """Return the state, from which `reset` continues."""
        if self._rest is None:
            paused, blocks = self._paused, self._blocks
        else:
            paused, blocks = self._rest.tours, self._rest.blocks
        if not self.is_running:
            return EvolutionState(False, self._number, blocks, self._tours[:0], self._tours[:0], paused)
        winners = np.array(self._winners or self._tours[:0], np.int32)
        return EvolutionState(True, self._number, blocks, self._tours, winners, paused)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        """Measure a part of a round, and set the time at which the next round is due."""
        began = CLOCK.monotonic()
        with self._budget.timed(_ROUND) as block:
            block.earlier = self._lasted
            yield
        now = CLOCK.monotonic()
        self._lasted += now - began
        self._due_at = now + KICKED * self._lasted
