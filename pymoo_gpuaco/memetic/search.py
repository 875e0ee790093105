"""Memetic search: a population of tours is annealed by window search and recombined.

A trial of window search is a kick, which forces a few new edges into a tour, and its repair by local search. Changing
good tours in few places follows Skinderowicz, "Improving Ant Colony Optimization efficiency for solving large TSP
instances", Applied Soft Computing 120 (2022). At the end of every annealing cycle the tours are recombined. A device
runs the trials; this module makes all decisions about a run.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.evolution import Evolution
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE, MOST_TOURS
from pymoo_gpuaco.memetic.population import DeviceTours, first_tours, least_gain_at_first
from pymoo_gpuaco.memetic.schedule import Schedule, Temperature, TimeBudget
from pymoo_gpuaco.memetic.state import pack, unpack
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.state import State

MOST_MIGRANTS = 200  # migrants that wait for a recombination

# Tasks whose durations are measured, to decide which of them can end before the deadline.
_ROUND, _MEASURE_AND_MERGE, _MERGE = "a round", "measuring and merging", "a merge"


class MemeticSearch:
    """``SearchEngine`` on any device.

    Parameters
    ----------
    device : set up for one instance; no other search may use it.
    """

    def __init__(self, device: SearchDevice) -> None:
        self.device = device
        self.instance = device.instance
        self.kind = device.kind
        plan = device.plan
        self.stop = device.stop
        self._schedule = Schedule(plan.first_cycle)
        self._schedule.follow(plan)
        self._budget = TimeBudget(device.stop)
        self._evolution = Evolution(self._budget)
        # first estimate of a merge, which also reads tours once or twice, mostly on one core
        with self._budget.timed(_MERGE):
            self._tours = DeviceTours(device)
        self._annealed = 0  # rounds of the last generation; 0 if it did other work
        self._only_anneals = True  # False once this generation has done other work
        self._annealing = False  # the last round had a temperature above 0
        # tours searched in the last generation, offspring before it
        self._searched = self._offspring_before = 0
        self.exchanges = False  # True: islands exchange tours
        self._migrants = self._no_migrants()  # for the next recombination
        self._given = self._no_migrants()  # good tours to evolve before any annealing
        self._evolves_next = False  # annealing is over, and evolution waits for migrants

    # ---- Engine

    @property
    def n_tours(self) -> int:
        """Size of the population."""
        return self.device.n_tours

    def describe(self) -> str:
        """Return population size and kind of recombination."""
        m = self.n_tours
        crossover = "edge assembly" if m >= FEWEST_TO_EVOLVE else "partition"
        return "windows of one tour" if m == 1 else f"{m} tours, {crossover} crossover"

    @property
    def n_built(self) -> int:
        """Number of tours of the last generation, >= 1: annealed or repaired (once per round), and offspring."""
        offspring = self._tours.population.n_offspring - self._offspring_before
        return max(1, self._searched + offspring)

    @property
    def may_stagnate(self) -> bool:
        """True if a whole cycle of annealing has found no shorter tour, or all annealing and evolution have ended."""
        return self._schedule.may_stagnate and not self._evolution.is_paused

    @property
    def n_trials(self) -> int:
        """Number of kicks so far, each with its repair."""
        return self.device.n_trials

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the current tours; (0,) before the first tours."""
        return self._tours.lengths.copy()

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return up to ``most`` tours (e, n), the best of the run first, then by length; and lengths (e,)."""
        return self._tours.best_tours(most)

    # ---- a generation

    def expect(self, progress: float) -> None:
        """Set the progress of the run, in [0, 1], or NaN if unknown; under another budget the run anneals again."""
        self._schedule.expect(float(progress), self._annealed)
        if not self._schedule.finished:
            self._evolution.end()
            self._evolves_next = False

    def search(self, key: int) -> None:
        """Run one generation: a batch of window-search rounds, then recombination if a cycle ends.

        It takes a fraction of a second, or seconds with hundreds of tours. ``key`` in [0, 2**64).
        """
        self._searched = self._annealed = 0
        self._offspring_before = self._tours.population.n_offspring
        # begin with the reported progress instead of the estimate
        self._schedule.progress = self._schedule.reported
        self._budget.expect(self._schedule.reported)
        share = self.device.parameters.annealing_share
        if share is None:
            share = self._evolution.end_of_annealing(self.device.plan, self.device.n_tours)
        self._schedule.end = share
        with self.device.working():
            if self.device.penalties is not None:
                self.device.penalties.begin(self.stop.until)
            if self._evolution.is_paused:
                self._continue_evolution(key)
                return
            if len(self._given):
                self._evolve_given(key)
                if self._evolution.is_paused:
                    return
            if not len(self._tours.lengths):
                self._begin(key)
            before = self._tours.population.length
            self._search_rounds(key)
            if self._tours.population.length < before:
                self._schedule.improved = self._schedule.cycle

    def _evolve_given(self, key: int) -> None:
        """Begin an evolution of the given tours, after which the run anneals copies of the best one."""
        given, self._given = self._given, self._no_migrants()
        self._evolution.given(self._tours.population, given, key)
        self._tours.load_copies_of_best(repaired=False)

    def _continue_evolution(self, key: int) -> None:
        """Continue a paused round of evolution; after its end, continue from copies of the best tour."""
        self._evolution.proceed(self._tours.population, key)
        if not self._evolution.is_paused:
            self._tours.load_copies_of_best(repaired=self._evolution.is_running)

    def _begin(self, key: int) -> None:
        """Load the first tours; after the deadline, copies of the greedy one."""
        self._allocate()
        tours = first_tours(self.instance, self._tours.first, self.device.n_tours, key, self.stop)
        self._tours.load(tours, repaired=False)

    def _allocate(self, m: int | None = None) -> None:
        """Allocate m tours (None: the number for the remaining time), and follow the plan of the device for them."""
        self.device.allocate(self.device.tours_in(self._budget.remaining) if m is None else m)
        self._schedule.follow(self.device.plan)

    def _search_rounds(self, key: int) -> None:
        device, plan = self.device, self.device.plan
        done, planned = 0, self._planned_rounds()
        self._only_anneals = device.repairs_left == 0
        if self._evolves_next or (
            self._schedule.finished and len(self._migrants) and not self._evolution.is_running
        ):
            self._evolves_next = False
            self._recombine(key)
        while (
            done < planned and not self._evolves_next and not self.stop.passed() and self._await_penalties()
        ):
            if self._evolution.is_paused or self._evolution.due():
                break
            progress = self._budget.progress
            if progress > self._schedule.progress:  # rounds took longer than earlier ones
                self._schedule.progress = progress
            together = min(plan.rounds_between_checks, planned - done)
            if plan.whole_rounds:
                together = self._budget.n_in_time(_ROUND, together, then=_MEASURE_AND_MERGE, overrun=0.5)
            if together == 0:
                break
            before = done
            with self._budget.timed(_ROUND) as block:
                while done < before + together and not (self._evolves_next or self._evolution.is_paused):
                    done += 1
                    self._round(fold_in(key, done))
                device.wait()
                block.times = done - before
        if done:
            with self._budget.timed(_MEASURE_AND_MERGE):
                self._measure_and_merge()
        if self._evolution.due():
            self._evolve_again(fold_in(key, done + 1))
        self._annealed = done if self._only_anneals else 0

    def _planned_rounds(self) -> int:
        """Return the number of rounds of this generation.

        New tours are repaired in a separate generation, which also makes the first tours and waits for penalties. The
        durations of later generations then show how many more rounds fit. With a deadline, the first of these
        generations are short.
        """
        plan, repairs = self.device.plan, self.device.repairs_left
        if repairs > 0:
            return min(plan.rounds, repairs)
        if self.stop.until is None:
            return plan.rounds_without_limit
        return min(plan.rounds, max(plan.rounds_between_checks, self._schedule.rounds))

    def _await_penalties(self) -> bool:
        """Wait for the penalties that the next rounds need, if any, and use them; return False at the deadline."""
        penalties = self.device.penalties
        if penalties is None or not penalties.are_due(self.stop.until):
            return True
        resumed = penalties.until < 0  # the tours are from a state that used penalties
        if not resumed:  # a resumed search counts its rounds like the original one
            self._only_anneals = False
        if not penalties.wait(self.stop):
            return False
        self.device.use_penalties(repaired=resumed)
        penalties.take()
        return True

    def _round(self, key: int) -> None:
        """Launch a round, and recombine the tours at the end of a cycle."""
        device, schedule = self.device, self._schedule
        self._searched += device.n_tours
        if device.penalties is not None:
            device.penalties.count_round()
        if device.repairs_left > 0:
            device.repair(key)
            return
        device.anneal(key, self._next_temperature())
        if schedule.at_end:
            schedule.begin_next()
            self._evolves_next = self.exchanges and schedule.finished and device.n_tours >= FEWEST_TO_EVOLVE
            if not self._evolves_next:
                self._recombine(key)

    def _next_temperature(self) -> Temperature:
        """Count the next round and return its temperatures."""
        schedule, plan, n = self._schedule, self.device.plan, self.instance.n
        cool = plan.cool_part
        first, last = (max(0.0, (share - cool) / (1.0 - cool)) for share in schedule.next())
        kicks = schedule.length * plan.kicks / n
        edge = self._tours.population.length * self.device.scale / n
        highest = plan.first_temperature(kicks) * edge
        self._annealing = first > 0.0
        return Temperature(first * highest, last * highest, edge, kicks)

    def _measure_and_merge(self) -> None:
        """Measure the tours, and merge the planned number of the shortest into the best."""
        plan = self.device.plan
        if self._evolution.is_running:
            self._tours.merge_copies()
        else:
            self._tours.measure(plan.merged_while_annealing if self._annealing else plan.merged_at_zero)

    def _recombine(self, key: int) -> None:
        """Recombine all tours, the best one and the migrants, and continue from the result.

        After the last cycle large populations evolve. If an interrupt ends a recombination early, the next generation
        repeats it.
        """
        device, population, m = self.device, self._tours.population, self.device.n_tours
        self._only_anneals = False
        device.wait()
        self._tours.measure()
        self._evolves_next = self.stop.interrupted
        if self.stop.passed() or (m == 1 and not self._budget.n_in_time(_MERGE)):
            return
        if self._schedule.finished and m >= FEWEST_TO_EVOLVE:
            tours = self._evolution.first(population, device.read(), key, self._migrants)
            self._tours.load(tours, repaired=True)
            if not self._evolution.is_running:
                self._migrants = self._no_migrants()
                self._evolves_next = self.stop.interrupted
            return
        first = self._schedule.cycle == 1 and not self._schedule.finished
        with self._budget.timed(_MERGE):
            least_gain = least_gain_at_first(m) if first else 0.0
            tours = population.recombine(device.read(), key, self.stop, self._migrants, least_gain)
            self._tours.load(tours, repaired=True)
            self._migrants = self._no_migrants()
        most = population.most_assembled(m)
        if first:
            self._evolution.assembly = self._budget.seconds(_MERGE) / min(most, m) if most else 0.0

    def _evolve_again(self, key: int) -> None:
        """Run one more round of evolution, with the annealed tours and the best tour after its kicks."""
        self._only_anneals = False
        self._evolution.again(self._tours.population, key, self._migrants)
        self._tours.load_copies_of_best()

    # ---- Migrates

    def _no_migrants(self) -> NDArray[np.int32]:
        return np.empty((0, self.instance.n), np.int32)

    @property
    def annealed(self) -> bool:
        """True if all annealing is over, see ``Migrates``."""
        return self._schedule.finished

    @property
    def awaits_migrants(self) -> bool:
        """True if the next generation begins with an evolution, see ``Migrates``."""
        return self._evolves_next

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return tours (e, n) for other islands and their lengths (e,), see ``Migrates``."""
        can_evolve = self.device.n_tours >= FEWEST_TO_EVOLVE
        if not can_evolve or not self._schedule.finished:
            # if the end of the run is known, islands stay different by sending no tours until annealing ends
            none = can_evolve and not math.isnan(self._schedule.progress)
            return (self._no_migrants(), np.empty(0)) if none else self._tours.best_tours(1)
        if not self._evolution.is_running:
            return self._tours.best_tours(most)
        best, length = self._tours.best()
        annealed, lengths = self._evolution.annealed(most - 1)
        return np.concatenate([best[None], annealed]), np.concatenate([[length], lengths])

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Add tours (m, n) of other islands, see ``Migrates``."""
        rows = checks.tours_by_length(tours, lengths, self.instance.n)
        if self.device.n_tours == 1 or not len(rows):
            return self.accept(tours, lengths)
        if self._tours.population.best is None:
            self._tours.population.merge(self._tours.first)
        self._tours.population.merge(rows[0])
        self._migrants = np.concatenate([rows, self._migrants])[:MOST_MIGRANTS]
        return None

    # ---- Stoppable

    def stop_at(self, moment: float | None) -> None:
        """Set the deadline of the calls that follow, by ``CLOCK.monotonic()``, see ``Stoppable``."""
        self.stop.until = moment
        if moment is None:
            self._evolution.end()

    # ---- Accepts, Improver

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n) into the best one, and replace the longest tour by the result, see ``Accepts``."""
        rows = checks.tours_by_length(tours, lengths, self.instance.n)
        if not len(rows):
            return
        with self.device.working():
            population = self._tours.population
            begun = len(self._tours.lengths) > 0
            if population.best is None:  # the given tours may be longer than the first tour
                population.merge(self._tours.first)
                good = rows[population.lengths_of(rows) < population.length]
                self._given = good[:MOST_TOURS] if len(good) >= FEWEST_TO_EVOLVE else self._given
            for row in rows[: 1 if len(self._given) else None]:
                population.merge(row)
            if not begun:
                self._allocate()
                self._tours.load_copies_of_best(repaired=False)
                return
            current = self.device.read()
            current[int(self._tours.lengths.argmax())] = self._tours.best()[0]
            self._tours.load(current, repaired=True)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve copies of any number of tours (m, n) by window search; return them and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        self.stop.reset()
        with self.device.working():
            self.device.improve(rows, key)
        return rows, self._tours.population.lengths_of(rows)

    # ---- state

    def export_state(self) -> State:
        """Return the tours, the best one, and the position in the schedule, see ``memetic.state``."""
        pace = self._annealed, self._annealing, self._evolves_next
        with self.device.working():
            tours = (
                self.device.read() if len(self._tours.lengths) else np.zeros((1, self.instance.n), np.int32)
            )
            others = self._migrants, self._given, self._evolution.stored()
            return pack(self.device, tours, self._tours.population, self._schedule, pace, *others)

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a search of the same instance, on any kind of device."""
        device, n = self.device, self.instance.n
        stored = unpack(state, device)
        with device.working():
            self._tours.reset()
            self._given = stored.given
            self._evolution.reset(stored.evolution, self._tours.population)
            self._allocate(len(stored.tours) if stored.own and len(stored.tours) else device.tours_in(None))
            stored.restore(self._schedule)
            self._annealed, self._annealing, self._evolves_next = stored.pace
            self._migrants = stored.migrants
            if stored.best is not None:
                # another kind of device may have rounded the length differently
                length = stored.best_length if stored.own else self._tours.population.measure(stored.best)
                self._tours.population.keep(stored.best, length)
                tours = stored.tours if len(stored.tours) else stored.best
                self._tours.load(np.resize(tours, (device.n_tours, n)), repaired=stored.own)
            device.import_own(stored.of_device)
