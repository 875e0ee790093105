"""Memetic search on all cores: threads anneal whole tours that fit into a cache, or parts of one tour."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.windows.search import Kicks, WindowSearch
from pymoo_gpuaco.backends.cpu.windows.window import make_units
from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic.parameters import (
    DOUBLED_TIME_FACTOR,
    FEWEST_TO_EVOLVE,
    FULL_TEMPERATURE,
    KICKS_AT_FULL_TEMPERATURE,
    MemeticParameters,
)
from pymoo_gpuaco.memetic.schedule import CYCLES_IN_ONE as LATER_IN_ONE
from pymoo_gpuaco.memetic.schedule import END, Plan, Temperature
from pymoo_gpuaco.problems.summation import lengths_of
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.state import State, stored_integers
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import processor_share, thread_count

_TO_MEASURE = 0.01  # share of a run in which the share of the cores is measured
PARTS = 8  # maximum number of stretches, and of windows, of one tour in a generation
# Share of the kicks of one tour in windows, which cross the bounds of stretches; the others are in stretches, whose
# changes are all accepted.
SHARE_IN_WINDOWS = 0.2
# Number of the shortest tours merged with the best one before the last generation of a cycle: one thread merges while
# the others wait, and tours at a high temperature contribute little.
MERGED_WHILE_ANNEALING = 4
REPAIRED = 0.01  # share of dirty cities below which kicks begin
# Progress at which annealing ends if the population is large enough to evolve; one to four rounds of evolution follow.
END_OF_MANY = 0.7
# With a known end, a run shorter than this number of first cycles is one cycle: better than several short ones.
CYCLES_IN_ONE = 12
IMPROVER_TRIALS = 1  # kicks per city of given tours


class CpuWindows:
    """``SearchDevice`` on all cores.

    Parameters
    ----------
    instance : symmetric.
    parameters : of the search. At most 8 parts of one tour are searched at a time.

    Raises
    ------
    ValueError : for an asymmetric instance, because moves reverse paths.
    """

    kind: str = "cpu"
    penalties = None  # computed before the first round

    def __init__(self, instance: ListedInstance, parameters: MemeticParameters | None = None) -> None:
        if not instance.symmetric:
            raise ValueError("window search reverses paths: the instance must be symmetric")
        n = instance.n
        self.instance = instance
        self.stop = Stop()
        self.graph = make_graph(instance)
        self.parameters = parameters = parameters or MemeticParameters()
        units, self._near = make_units(instance, self.graph, parameters)
        self.scale = units.scale
        self.search = WindowSearch(instance, units, parameters, self.stop)
        self._threads = thread_count()
        self.allocate(self.tours_in(None))
        self._dirty = np.ones(n, np.uint8)
        self._windows_done = 0
        self.n_trials = 0

    def working(self) -> AbstractContextManager[None]:
        """Do nothing: the CPU needs no activation."""
        return nullcontext()

    # ---- tours

    def tours_in(self, seconds: float | None) -> int:
        """Return the number of whole tours, or 1 if the search divides one tour; see `MemeticParameters.tours_in`."""
        n, parameters = self.instance.n, self.parameters
        if parameters.population_size is not None:
            return parameters.population_size
        evolving = None
        if seconds is not None:
            doubled = self.instance.form is not None and self.instance.form.doubled
            counted = (DOUBLED_TIME_FACTOR if doubled else 1.0) * max(0.0, seconds)
            evolving = parameters.tours_in(counted, n, self._threads)
            # other processes may use the cores: count only the share of the time that the threads get
            if evolving is not None:
                counted *= processor_share(self._threads, _TO_MEASURE * seconds)
                evolving = parameters.tours_in(counted, n, self._threads)
        if not parameters.whole(n):
            return evolving or 1
        return evolving or parameters.tours(self._threads)

    def allocate(self, m: int) -> None:
        """Allocate m tours and plan their search."""
        n, parameters = self.instance.n, self.parameters
        if m > 1 and not parameters.whole(n):
            parameters = replace(parameters, whole_up_to=n)
        whole = parameters.whole(n)
        if whole != self.search.whole:
            self.search = WindowSearch(self.instance, self.search.units, parameters, self.stop)
        self.n_tours = m
        self.n_windows = m if whole else min(parameters.n_windows or PARTS, self.search.stretches)
        self._trials = parameters.trials_per_tour(n, self.n_windows, self.stop.until is not None)
        kicks = self._trials if whole else self._trials * self.n_windows
        evolves, given = m >= FEWEST_TO_EVOLVE, parameters.initial_temperature
        self.plan = Plan(
            rounds=1,
            rounds_without_limit=1,
            rounds_between_checks=1,
            first_cycle=max(1, round(parameters.kicks_of_first_cycle(n) * n / kicks)),
            cycles_in_one=CYCLES_IN_ONE,
            later_in_one=LATER_IN_ONE,
            kicks=kicks,
            end=END_OF_MANY if evolves else END,
            temperature=FULL_TEMPERATURE if given is None else given,
            kicks_for_temperature=KICKS_AT_FULL_TEMPERATURE,
            least_temperature=0.0 if given is None else given,
            most_temperature=FULL_TEMPERATURE if given is None else given,
            merged_while_annealing=MERGED_WHILE_ANNEALING if whole and not evolves else 0,
            merged_at_zero=m if whole and not evolves else 0,
        )
        self._tours = np.zeros((m, n), np.int32)
        self._lengths = np.zeros(m)

    def first_tour(self) -> NDArray[np.int32]:
        """Return a tour (n,) by greedy edge matching, repaired unless it is searched in parts."""
        tour = greedy_tour(self.instance, self._near.ids, self._near.distances)
        self.search.repair(tour)
        return tour

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Continue from tours (m, n), see ``SearchDevice``."""
        if not repaired:
            self._dirty[:] = 1
        self._tours[...] = tours

    def read(self) -> NDArray[np.int32]:
        """Return copies of the tours (m, n)."""
        return self._tours.copy()

    def measure(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours."""
        self._lengths = lengths_of(self.graph, self._tours)
        return self._lengths

    def shortest(self) -> NDArray[np.int32]:
        """Return the shortest tour (n,) of those measured last."""
        return self._tours[int(self._lengths.argmin())]

    # ---- rounds

    @property
    def repairs_left(self) -> int:
        """1 while the one tour needs repair before kicks, else 0; ``anneal`` repairs whole tours."""
        if self.search.whole:
            return 0
        return int(self._windows_done < 2 * self.search.stretches or self._dirty.mean() >= REPAIRED)

    def repair(self, key: int) -> None:
        """Repair stretches of the one tour, then windows, without kicks."""
        self.stop.reset()
        if self._windows_done >= 2 * self.search.stretches:
            self._search_windows(Kicks(0, key))
            return
        self._windows_done += self.search.repair_stretches(
            self._tours[0], self._dirty, self._windows_done, PARTS
        )

    def anneal(self, key: int, temperature: Temperature) -> None:
        """Anneal all tours, or parts of the one tour."""
        self.stop.reset()
        longest = self.parameters.longest_stretch(temperature.kicks_per_city)
        if not self.search.whole:
            self._anneal_parts(key, temperature, longest)
            return
        kicks = Kicks(self._trials, key, temperature.start, temperature.end, longest)
        self.search.search_tours(self._tours, kicks, everything=bool(self._dirty.any()))
        self.n_trials += self._trials * self.n_tours
        if not self.stop.is_set():
            self._dirty[:] = 0

    def _anneal_parts(self, key: int, temperature: Temperature, longest: int) -> None:
        """Anneal stretches of the one tour, then windows."""
        in_windows = round(SHARE_IN_WINDOWS * self._trials)
        trials = self._trials - in_windows
        between = temperature.start + (temperature.end - temperature.start) * trials / self._trials
        kicks = Kicks(trials, fold_in(key, 1), temperature.start, between, longest)
        searched = self.search.anneal_stretches(
            self._tours[0], self._dirty, self._windows_done, self.n_windows, kicks
        )
        self.n_trials += trials * searched
        self._search_windows(Kicks(in_windows, key, between, temperature.end, longest))

    def _search_windows(self, kicks: Kicks) -> None:
        self._tours[0], searched = self.search.round(
            self._tours[0], self._dirty, self._windows_done, self.n_windows, kicks
        )
        self.n_trials += kicks.trials * searched
        self._windows_done += self.n_windows

    def wait(self) -> None:
        """Do nothing: rounds are synchronous."""

    def use_penalties(self, repaired: bool) -> None:
        """Do nothing: penalties are used from the start."""

    def improve(self, tours: NDArray[np.int32], key: int) -> None:
        """Improve tours (any number, n) in place."""
        trials = IMPROVER_TRIALS * self.instance.n
        if self.search.whole:
            self.search.search_tours(tours, Kicks(trials, key), everything=True)
            return
        for number, tour in enumerate(tours):  # all threads search windows of one tour
            self.search.improve(tour, trials, key, number)

    # ---- state

    def export_own(self) -> State:
        """Return the dirty cities, which are repaired before kicks, and the number of searched windows."""
        return {"dirty": self._dirty.copy(), "counts": np.array([self._windows_done], np.int64)}

    def read_own(self, state: State | None) -> State:
        """Return a checked state of ``export_own``; without one, every city is dirty."""
        n = self.instance.n
        if state is None:
            return {"dirty": np.ones(n, np.uint8), "counts": np.zeros(1, np.int64)}
        return {
            "dirty": stored_integers(state, "dirty", (n,), 0, 1, np.uint8),
            "counts": stored_integers(state, "counts", (1,), 0, 2**62, np.int64),
        }

    def import_own(self, own: State) -> None:
        """Continue from a state that ``read_own`` has checked."""
        self._dirty, self._windows_done = own["dirty"].copy(), int(own["counts"][0])
