"""Memetic search on one CUDA device: batches of thousands of windows of several tours."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.windows.search import WindowSearch
from pymoo_gpuaco.backends.cpu.windows.window import make_units
from pymoo_gpuaco.backends.cuda.device import RESERVE, Device, KernelGroup
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance
from pymoo_gpuaco.backends.cuda.tours import Measure, Measured
from pymoo_gpuaco.backends.cuda.windows import (
    END_OF_MANY,
    MARGIN,
    ROUNDS_AT_ONCE,
    Layout,
    Trials,
    Windows,
    resident,
    rounds_of_repair,
    tours_that_evolve,
    usual_layout,
    window_lists,
)
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE, MOST_CANDIDATES, MemeticParameters
from pymoo_gpuaco.memetic.penalties import FEW_KICKS_FROM, PenalisedCandidates, Penalties, penalised_lists
from pymoo_gpuaco.memetic.schedule import END, Plan, Temperature
from pymoo_gpuaco.memetic.units import float_units
from pymoo_gpuaco.runtime.state import State, stored_integers
from pymoo_gpuaco.runtime.threads import thread_count

ROUNDS = 32  # maximum rounds of a generation
# Rounds of the first annealing cycle, for several tours and for one. Tours are recombined at the end of each cycle,
# therefore early cycles are short; a single tour cannot be recombined.
FIRST_CYCLE, FIRST_CYCLE_OF_ONE = 16, 128
CYCLES_IN_ONE = 3
# Trials of a window in an annealing round, one per 8 cities of the tour per window: more trials conflict more often.
LEAST_HOT_TRIALS, MOST_HOT_TRIALS, CITIES_PER_TRIAL = 8, 32, 8
# A single tour has very many cities and few kicks per city: with a known end of the run there is one cycle.
CYCLES_IN_ONE_OF_ONE = 1 << 40
# Recombination after a first, short cycle repairs many tours. With a known end of the run the next cycle takes the rest
# of the time: more cycles would make the tours too similar before the final recombination.
LATER_IN_ONE_OF_MANY = 1 << 40
# Initial temperature, in mean edge lengths, of a cycle of ``KICKS`` kicks per city; longer cycles start at a higher
# one, up to a limit above which tours get longer.
TEMPERATURE, KICKS, LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.8, 30.0, 0.5, 1.5
# The limit for a single tour, which gets many kicks and is not recombined.
MOST_TEMPERATURE_OF_ONE = 0.7
# Part of a cycle, at its end, at temperature 0; with a time limit, part of its time.
COOL_PART, COOL_PART_OF_ONE = 0.2, 0.1
SLACK = 0.5  # mean edge lengths by which a window may exceed its best length
# At temperature 0 few trials succeed; a window makes COOL_TRIALS times as many. A round takes as long as its slowest
# window, and some trials take much longer than others. Therefore a window ends after the mean number of move searches
# of its trials, and the current trial may use that of one more.
COOL_TRIALS = 2.5
MOVE_SEARCHES_PER_TRIAL, MOST_TRIALS = 60, 4
FEW_TO_REPAIR = 5_000  # cities of a first tour that the host repairs in 10 ms
_ADVICE = "a smaller population (population_size) needs less"


class CudaWindows:
    """``SearchDevice`` on CUDA: kicks and their repairs in windows of the tours.

    Parameters
    ----------
    instance : the problem, symmetric, with at least 8 cities.
    parameters : of the search. ``n_windows=None``: 14 windows per multiprocessor, or 16 without node penalties, which
        are used up to 100,000 cities with the default ``candidates``.
    device : index of the CUDA device.
    like : engine of the same instance and parameters on another device; its lists are shared.

    Errors are those of ``Device``.
    """

    kind: str = "cuda"

    def __init__(
        self,
        instance: ListedInstance,
        parameters: MemeticParameters,
        device: int = 0,
        like: CudaWindows | None = None,
    ) -> None:
        n = instance.n
        self.instance, self.parameters = instance, parameters
        self.scale = float_units(instance)
        k = parameters.candidate_list_size or MOST_CANDIDATES
        find = partial(penalised_lists, instance, k, self.scale)
        self.penalties = Penalties(instance, parameters.candidates, find)
        self.device = Device(device)
        self.stop = self.device.stop
        most = resident(self.penalties.wanted) * self.device.limits.multiprocessors
        self.most_windows = parameters.n_windows or most
        self._share = (0, 1)  # index of this device, and number of devices that share its tour
        self._usual = usual_layout(n, self.most_windows)
        if parameters.population_size is not None:
            self._usual = self._layout(parameters.population_size)
        self._cities = cities = DeviceInstance(self.device, instance)
        self._measure = Measure(self.device, cities)
        if like is None:
            wanted = self.penalties.wanted  # quadrant candidates are used until penalties are available
            near = window_lists(instance, "quadrant" if wanted else parameters.candidates, k)
            self._lists = (
                PenalisedCandidates(near, np.zeros(n, np.float32)) if wanted else PenalisedCandidates(near)
            )
            self._nearest = window_lists(instance, "nearest")
            self.graph = instance.graph
        else:
            self._lists, self._nearest, self.graph = like._lists, like._nearest, like.graph
        self._measured: Measured | None = None
        self._laid_out = True  # the arrays match the plan
        self._lay_out(self._usual, self._lists)
        parts: list[KernelGroup] = [cities, self._measure, self.windows]
        self.device.set_up(parts, _ADVICE)
        self._margin = MARGIN if n >= FEW_KICKS_FROM else 0.0
        self.n_trials = self._trials_before = 0  # in all, and before the last allocation

    def _layout(self, m: int) -> Layout:
        """Return the layout of m tours with the usual number of windows; for a shared tour, that of all devices."""
        tours, windows = self._usual
        return Layout.of_tours(m, self.instance.n, tours * windows * self._share[1])

    def _windows(self, layout: Layout, lists: PenalisedCandidates) -> Windows:
        """Create the part of tours and windows without allocating its arrays."""
        return Windows(self.device, self._cities, lists, self._nearest, self.scale, *layout)

    def _lay_out(self, layout: Layout, lists: PenalisedCandidates) -> None:
        """Plan tours and windows without allocating their arrays."""
        self.windows = self._windows(layout, lists)
        n, (m, w) = self.instance.n, layout
        self.n_tours = m
        number, count = self._share
        if count > 1:
            first = w * number // count
            self.windows.share = (first, w * (number + 1) // count - first)
        # as many as on one device: a round of a shared tour commits the exchanges of all devices on each of them
        wanted = n // (w // count) // CITIES_PER_TRIAL
        self._hot_trials = min(MOST_HOT_TRIALS, max(LEAST_HOT_TRIALS, wanted))
        self.plan = self.plan_of(m, w * self._hot_trials)
        self.repairs_left = rounds_of_repair(n, w)

    def plan_of(self, m: int, kicks: int) -> Plan:
        """Return the plan for m tours with ``kicks`` kicks per tour and round."""
        given = self.parameters.initial_temperature
        most = MOST_TEMPERATURE if m > 1 else MOST_TEMPERATURE_OF_ONE
        return Plan(
            rounds=ROUNDS,
            rounds_without_limit=ROUNDS_AT_ONCE,
            rounds_between_checks=ROUNDS_AT_ONCE,
            first_cycle=FIRST_CYCLE if m > 1 else FIRST_CYCLE_OF_ONE,
            cycles_in_one=CYCLES_IN_ONE if m > 1 else CYCLES_IN_ONE_OF_ONE,
            later_in_one=CYCLES_IN_ONE if m < FEWEST_TO_EVOLVE else LATER_IN_ONE_OF_MANY,
            kicks=kicks,
            end=END if m < FEWEST_TO_EVOLVE else END_OF_MANY,
            temperature=TEMPERATURE if given is None else given,
            kicks_for_temperature=KICKS,
            least_temperature=LEAST_TEMPERATURE if given is None else given,
            most_temperature=most if given is None else given,
            cool_part=COOL_PART if m > 1 else COOL_PART_OF_ONE,
            whole_rounds=True,
        )

    def working(self) -> AbstractContextManager[None]:
        """Make the device current, see ``Device.working``."""
        return self.device.working()

    # ---- tours

    def tours_in(self, seconds: float | None) -> int:
        """Return the number of tours that the host can recombine in ``seconds``, at least the usual number."""
        if seconds is None or self.parameters.population_size or self.parameters.n_windows:
            return self._usual.tours
        m = tours_that_evolve(seconds, self.instance.n, thread_count(), self.most_windows) or 0
        while m > self._usual.tours and not self.fits(m):
            m = 3 * m // 4
        return max(self._usual.tours, m)

    def fits(self, m: int) -> bool:
        """Return True if m tours fit into device memory after freeing the current ones."""
        wanted = self._windows(self._layout(m), self.windows.lists).needed
        held = self.device.free_memory() + sum(self.windows.needed.values())
        return sum(wanted.values()) + RESERVE <= held

    def allocate(self, m: int, share: tuple[int, int] = (0, 1)) -> None:
        """Allocate m tours and their windows, and free the previous ones.

        ``share``: index of this device and number of devices that share one tour; m = 1 with several.
        """
        if m == self.n_tours and share == self._share and self._laid_out:
            return
        self._share = share
        self._trials_before, self._laid_out = self.n_trials, False
        self._lay_out(self._layout(m), self.windows.lists)
        self.device.take(self.windows.needed)
        self.windows.prepare()
        self._laid_out = True  # not after a MemoryError

    def first_tour(self) -> NDArray[np.int32]:
        """Return a tour (n,) by greedy edge matching on the instance's lists; of few cities, repaired by the host."""
        tour = greedy_tour(self.instance)
        if len(tour) <= FEW_TO_REPAIR:
            parameters = MemeticParameters(candidates="quadrant")
            units, _ = make_units(self.instance, self.graph, parameters)
            WindowSearch(self.instance, units, parameters).repair(tour)
        return tour

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Continue from tours (m, n), see ``SearchDevice``."""
        if not repaired:
            self.repairs_left = rounds_of_repair(self.instance.n, self.windows.windows)
        self.windows.load(tours)

    def read(self) -> NDArray[np.int32]:
        """Return copies of the tours (m, n)."""
        return self.windows.read()

    def measure(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours."""
        a = self.device.arrays
        self._measured = self._measure.run(a["window_tours"], self.n_tours, a["window_lengths"])
        self.n_trials = self._trials_before + int(self.windows.statistics()[0])
        return self._measured.lengths

    def shortest(self) -> NDArray[np.int32]:
        """Return the shortest tour (n,) of those measured last."""
        assert self._measured is not None
        return self._measured.tour

    # ---- rounds

    def repair(self, key: int) -> None:
        """Launch a round of local search without kicks."""
        self.repairs_left -= 1
        self.windows.search(key, Trials(trials=2, all_queued=True))

    def anneal(self, key: int, temperature: Temperature) -> None:
        """Launch a round of kicks at the first temperature, each followed by its repair."""
        trials = self._hot_trials if temperature.start > 0.0 else round(COOL_TRIALS * self._hot_trials)
        how = Trials(
            trials=MOST_TRIALS * trials,
            move_searches=MOVE_SEARCHES_PER_TRIAL * trials,
            overtime=MOVE_SEARCHES_PER_TRIAL,
            temperature=temperature.start,
            slack=SLACK * temperature.mean_edge,
            margin=self._margin * temperature.mean_edge,
        )
        self.windows.search(key, how)

    def wait(self) -> None:
        """Wait for the launched rounds."""
        self.device.wait()

    def use_penalties(self, repaired: bool) -> None:
        """Use the lists of ``penalties`` in the next rounds, see ``SearchDevice``."""
        self.windows.use(self.penalties.lists)
        if not repaired:
            self.repairs_left = rounds_of_repair(self.instance.n, self.windows.windows)

    def improve(self, tours: NDArray[np.int32], key: int) -> None:
        """Search given tours (any number, n) in place."""
        own = self.windows.read()
        tours[...] = self.windows.improve(tours, key)
        self.windows.load(own)

    # ---- state

    def export_own(self) -> State:
        """Return the numbers of remaining repair rounds and of rounds until penalties are due."""
        return {"counts": np.array([self.repairs_left, self.penalties.until], np.int64)}

    def read_own(self, state: State | None) -> State:
        """Validate a state of ``export_own``; None: tours without a state are repaired and have no penalties yet."""
        if state is None:
            repairs = rounds_of_repair(self.instance.n, self.windows.windows)
            return {"counts": np.array([repairs, self.penalties.planned])}
        counts = stored_integers(state, "counts", (2,), -1, 2**62, np.int64)
        if counts[0] < 0:
            raise ValueError(f"state['counts'] must begin with an integer >= 0, got {counts[0]}")
        return {"counts": counts}

    def import_own(self, own: State) -> None:
        """Continue from a state that ``read_own`` has validated."""
        self.repairs_left, until = (int(count) for count in own["counts"])
        if self.penalties.in_use:
            self.windows.use(self._lists)
        self.penalties.resume(until)
