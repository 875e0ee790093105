"""The memetic search: a population of tours is annealed by window search and recombined.

A trial of window search is a kick, which forces a few new edges into a tour, and its repair by local search; that good
tours are changed in few places comes from Skinderowicz, "Improving Ant Colony Optimization efficiency for solving large
TSP instances", Applied Soft Computing 120 (2022). At the end of every cycle of annealing the tours are recombined. A
device makes the trials; all that is decided about a run is decided here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.memetic.device import SearchDevice
from pymoo_gpuaco.memetic.evolution import Evolution
from pymoo_gpuaco.memetic.pace import Pace
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.plan import Heat
from pymoo_gpuaco.memetic.population import first_tours, least_gain_at_first
from pymoo_gpuaco.memetic.schedule import Schedule
from pymoo_gpuaco.memetic.state import pack, unpack
from pymoo_gpuaco.memetic.tours import Tours
from pymoo_gpuaco.runtime.keys import fold_in
from pymoo_gpuaco.runtime.state import State

MOST_MATES = 200  # migrants that wait for a recombination

# Kinds of work whose durations a run notes, to know what still fits its time.
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
        self._pace = Pace(device.stop)
        self._evolution = Evolution(self._pace)
        with self._pace.noted(_MERGE):  # a guess: both go along tours once or twice, mostly on one core
            self._tours = Tours(device)
        self._annealed = 0  # rounds of the last generation, if nothing else took time in it
        self._only_anneals = True  # this generation, so far
        self._annealing = False  # the last round had a temperature above 0
        self._searched = self._offspring_before = (
            0  # tours searched in the last generation, offspring before it
        )
        self.exchanges = False
        self._mates = self._no_mates()  # migrants that the next recombination takes in
        self._evolves_next = False  # annealing is over, and evolution waits for migrants

    # ---- Engine

    @property
    def n_tours(self) -> int:
        """Size of the population."""
        return self.device.n_tours

    @property
    def n_built(self) -> int:
        """Tours of the last generation, >= 1: tours annealed or repaired (once per round) and offspring."""
        offspring = self._tours.population.n_offspring - self._offspring_before
        return max(1, self._searched + offspring)

    @property
    def may_stagnate(self) -> bool:
        """Whether a whole cycle of annealing has brought no shorter tour, or the last one has ended."""
        return self._schedule.may_stagnate

    @property
    def n_trials(self) -> int:
        """Kicks since the engine was made, each with its repair."""
        return self.device.n_trials

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours at hand; (0,) before there are any."""
        return self._tours.lengths.copy()

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """Tour by greedy edge matching, with which the search begins, and its length."""
        return self._tours.first_tour()

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """At most so many tours (e, n), the best of the run first, then those at hand by length; and lengths (e,)."""
        return self._tours.best_tours(most)

    # ---- a generation

    def expect(self, progress: float) -> None:
        """Note how far the run is, in [0, 1], or NaN where that is unknown; under another budget it anneals again."""
        self._schedule.expect(float(progress), self._annealed)
        if not self._schedule.finished:
            self._evolution.end()
            self._evolves_next = False

    def search(self, key: int) -> None:
        """Search some rounds, a fraction of a second, or seconds for hundreds of tours; ``key`` in [0, 2**64)."""
        self._searched = 0
        self._offspring_before = self._tours.population.n_offspring
        # rounds go on from what was reported, not from what was guessed
        self._schedule.progress = self._schedule.reported
        self._pace.expect(self._schedule.reported)
        share = self.device.parameters.annealing_share
        if share is None:
            share = self._evolution.end_of_annealing(self.device.plan.end, self.device.n_tours)
        self._schedule.end = share
        with self.device.working():
            if self.device.penalties is not None:
                self.device.penalties.begin(self.stop.until)
            if not len(self._tours.lengths):
                self._begin(key)
            before = self._tours.population.length
            self._search_rounds(key)
            if self._tours.population.length < before:
                self._schedule.improved = self._schedule.cycle

    def _begin(self, key: int) -> None:
        """Make the first tours; where time is over, they are the greedy one."""
        self._allocate()
        tours = first_tours(self.instance, self._tours.first, self.device.n_tours, key, self.stop)
        self._tours.take(tours, repaired=False)

    def _allocate(self, m: int | None = None) -> None:
        """Allocate m tours, or as many as pay in the time that is left, and plan the schedule that goes with them."""
        self.device.allocate(self.device.tours_in(self._pace.left) if m is None else m)
        self._schedule.follow(self.device.plan)

    def _search_rounds(self, key: int) -> None:
        device, plan = self.device, self.device.plan
        done, planned = 0, self._planned_rounds()
        self._only_anneals = device.repairs_left == 0
        if self._evolves_next or (
            self._schedule.finished and len(self._mates) and not self._evolution.goes_on
        ):
            self._evolves_next = False
            self._recombine(key)
        while (
            done < planned and not self._evolves_next and not self.stop.passed() and self._await_penalties()
        ):
            if self._evolution.due():
                break
            self._schedule.catch_up(self._pace.progress)
            together = min(plan.rounds_between_checks, planned - done)
            if plan.whole_rounds:
                together = self._pace.time_for(_ROUND, together, then=_MEASURE_AND_MERGE, late=0.5)
            if together == 0:
                break
            before = done
            with self._pace.noted(_ROUND) as noted:
                while done < before + together and not self._evolves_next:
                    done += 1
                    self._round(fold_in(key, done))
                device.wait()
                noted.times = done - before
        if done:
            with self._pace.noted(_MEASURE_AND_MERGE):
                self._measure_and_merge()
        if self._evolution.due():
            self._evolve_again(fold_in(key, done + 1))
        self._annealed = done if self._only_anneals else 0

    def _planned_rounds(self) -> int:
        """Rounds of this generation.

        New tours are repaired in a generation of their own: before it first tours are made and penalties waited for, so
        that the time of the others says how many more there will be. Where time is limited, this is known soon.
        """
        plan, repairs = self.device.plan, self.device.repairs_left
        if repairs > 0:
            return min(plan.rounds, repairs)
        if self.stop.until is None:
            return plan.rounds_without_limit
        return min(plan.rounds, max(plan.rounds_between_checks, self._schedule.rounds))

    def _await_penalties(self) -> bool:
        """Wait for the penalties that the next rounds need, if any, and use them; False if time is over before."""
        penalties = self.device.penalties
        if penalties is None or not penalties.are_due(self.stop.until):
            return True
        resumed = penalties.until < 0  # a state goes on whose tours had them
        if not resumed:  # a copy counts its rounds as the original does
            self._only_anneals = False
        if not penalties.wait(self.stop):
            return False
        self.device.use_penalties(repaired=resumed)
        penalties.take()
        return True

    def _round(self, key: int) -> None:
        """Launch a round; at the end of a cycle the tours are recombined."""
        device, schedule = self.device, self._schedule
        self._searched += device.n_tours
        if device.penalties is not None:
            device.penalties.count_round()
        if device.repairs_left > 0:
            device.repair(key)
            return
        device.anneal(key, self._next_heat())
        if schedule.at_end:
            schedule.begin_next()
            self._evolves_next = self.exchanges and schedule.finished and device.n_tours >= FEWEST_TO_EVOLVE
            if not self._evolves_next:
                self._recombine(key)

    def _next_heat(self) -> Heat:
        """The temperatures of the next round, which is counted."""
        schedule, plan, n = self._schedule, self.device.plan, self.instance.n
        cool = plan.cool_part
        first, last = (max(0.0, (share - cool) / (1.0 - cool)) for share in schedule.next())
        kicks = schedule.length * plan.kicks / n
        edge = self._tours.population.length * self.device.scale / n
        heat = plan.first_heat(kicks) * edge
        self._annealing = first > 0.0
        return Heat(first * heat, last * heat, edge, kicks)

    def _measure_and_merge(self) -> None:
        """Measure the tours and merge the best with the shortest of them, with as many as the plan says."""
        plan = self.device.plan
        if self._evolution.goes_on:
            self._tours.unite_copies()
        else:
            self._tours.measure(plan.merged_while_annealing if self._annealing else plan.merged_at_zero)

    def _recombine(self, key: int) -> None:
        """Recombine all tours and the best, with each other and with migrants, and go on from there.

        After the last cycle many tours evolve. What an interrupt ends early is due again in the next generation.
        """
        device, population, m = self.device, self._tours.population, self.device.n_tours
        self._only_anneals = False
        device.wait()
        self._tours.measure()
        self._evolves_next = self.stop.interrupted
        if self.stop.passed() or (m == 1 and not self._pace.time_for(_MERGE)):
            return
        if self._schedule.finished and m >= FEWEST_TO_EVOLVE:
            tours = self._evolution.first(population, device.read(), key, self._mates)
            self._tours.take(tours, repaired=True)
            if not self._evolution.goes_on:
                self._mates = self._no_mates()
                self._evolves_next = self.stop.interrupted
            return
        first = self._schedule.cycle == 1 and not self._schedule.finished
        with self._pace.noted(_MERGE):
            least_gain = least_gain_at_first(m) if first else 0.0
            tours = population.recombine(device.read(), key, self.stop, self._mates, least_gain)
            self._tours.take(tours, repaired=True)
            self._mates = self._no_mates()
        most = population.most_assembled(m)
        if first:
            self._evolution.assembly = self._pace.seconds(_MERGE) / min(most, m) if most else 0.0

    def _evolve_again(self, key: int) -> None:
        """Have one more round of evolution, of the annealed tours and what kicks have made of the best."""
        self._only_anneals = False
        self._evolution.again(self._tours.population, key, self._mates)
        self._tours.take_copies()

    # ---- Migrates

    def _no_mates(self) -> NDArray[np.int32]:
        return np.empty((0, self.instance.n), np.int32)

    @property
    def annealed(self) -> bool:
        """Whether all annealing is over, see ``Migrates``."""
        return self._schedule.finished

    @property
    def awaits_migrants(self) -> bool:
        """Whether the next generation begins with an evolution, see ``Migrates``."""
        return self._evolves_next

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (e, n) for other islands and their lengths (e,), see ``Migrates``."""
        many = self.device.n_tours >= FEWEST_TO_EVOLVE
        if not many or not self._schedule.finished:
            # where it is known when many tours will evolve, those of several islands stay different until then
            none = many and not math.isnan(self._schedule.progress)
            return (self._no_mates(), np.empty(0)) if none else self._tours.best_tours(1)
        if not self._evolution.goes_on:
            return self._tours.best_tours(most)
        best, length = self._tours.best()
        annealed, lengths = self._evolution.annealed(most - 1)
        return np.concatenate([best[None], annealed]), np.concatenate([[length], lengths])

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Take in tours (m, n) of other islands, see ``Migrates``."""
        rows = immigrants.in_order(tours, lengths, self.instance.n)
        if self.device.n_tours == 1 or not len(rows):
            return self.accept(tours, lengths)
        if self._tours.population.best is None:
            self._tours.population.merge(self._tours.first)
        self._tours.population.merge(rows[0])
        self._mates = np.concatenate([rows, self._mates])[:MOST_MATES]
        return None

    # ---- Stoppable

    def stop_at(self, moment: float | None) -> None:
        """Let the calls that follow end soon after this ``time.monotonic()``, see ``Stoppable``."""
        self.stop.until = moment
        if moment is None:
            self._evolution.end()

    # ---- Accepts, Improver

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n) into the best, which takes the place of the longest tour, see ``Accepts``."""
        rows = immigrants.in_order(tours, lengths, self.instance.n)
        if not len(rows):
            return
        with self.device.working():
            population = self._tours.population
            if population.best is None:  # given tours may be longer than the one there is
                population.merge(self._tours.first)
            for row in rows:
                population.merge(row)
            if not len(self._tours.lengths):
                self._allocate()
                self._tours.take_copies(repaired=False)
                return
            everyone = self.device.read()
            everyone[int(self._tours.lengths.argmax())] = self._tours.best()[0]
            self._tours.take(everyone, repaired=True)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Window search on any number of tours (m, n); return copies and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        self.stop.lower()
        with self.device.working():
            self.device.improve(rows, key)
        return rows, np.array([self._tours.population.measure(row) for row in rows])

    # ---- Stateful

    def export_state(self) -> State:
        """The tours, the best of all, and where the schedule is, see ``search.state``."""
        pace = self._annealed, self._annealing, self._evolves_next
        with self.device.working():
            tours = (
                self.device.read() if len(self._tours.lengths) else np.zeros((1, self.instance.n), np.int32)
            )
            return pack(self.device, tours, self._tours.population, self._schedule, pace, self._mates)

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a search of the same instance, of whichever kind of device."""
        device, n = self.device, self.instance.n
        stored = unpack(state, device)
        with device.working():
            self._tours.forget()
            self._evolution.end()
            self._allocate(len(stored.tours) if stored.own and len(stored.tours) else device.tours_in(None))
            stored.restore(self._schedule)
            self._annealed, self._annealing, self._evolves_next = stored.pace
            self._mates = stored.mates
            if stored.best is not None:
                # of another kind of device, its sum may be rounded differently
                length = stored.best_length if stored.own else self._tours.population.measure(stored.best)
                self._tours.population.keep(stored.best, length)
                tours = stored.tours if len(stored.tours) else stored.best
                self._tours.take(np.resize(tours, (device.n_tours, n)), repaired=stored.own)
            device.import_own(stored.of_device)
