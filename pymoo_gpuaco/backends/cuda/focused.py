"""Focused ants on one CUDA device: several good tours, changed in thousands of windows at a time and assembled."""

from __future__ import annotations

import functools
import math
import time

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.instance.lists import Neighbours
from pymoo_gpuaco.backends.cuda.tours.measure import Measure
from pymoo_gpuaco.backends.cuda.tours.tours import Tours
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.backends.cuda.windows.plan import (
    hot_trials,
    margin,
    nearest_lists,
    rounds_of_repair,
    shape,
    unit_scale,
)
from pymoo_gpuaco.backends.cuda.windows.windows import ROUNDS_AT_ONCE, Ant, Trials, Windows, resident
from pymoo_gpuaco.backends.protocol import Kind
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.candidates.start import greedy_tour, varied_tours
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_FOCUS, ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.exchange import assemble, merge
from pymoo_gpuaco.host.distances import tour_length
from pymoo_gpuaco.host.keys import key_of_part
from pymoo_gpuaco.host.state import State, stored_integers, stored_numbers
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.search.penalties import ListsOfARun, penalised_lists
from pymoo_gpuaco.search.schedule import Cooling
from pymoo_gpuaco.search.state import pack, unpack

ROUNDS = 32  # a generation, at most
# Rounds of the first cycle of annealing. At the end of each tours take over from each other, soon and often; one that
# is alone has nobody to take over from.
FIRST_CYCLE, FIRST_CYCLE_ALONE = 16, 128
# Temperature, in mean edges, at the beginning of a cycle that makes ``KICKS`` kicks a city; longer ones start hotter,
# as far as it helps: above the most, what the heat has broken costs more than it opens.
HEAT, KICKS, LEAST_HEAT, MOST_HEAT = 0.8, 30.0, 0.5, 1.5
# The last part of a cycle is cool, and a window may get so many mean edges longer than its best in between.
COOL_PART, SLACK = 0.1, 0.5
# When it is cool few trials change anything, so a window makes so many times as many. Some trials take much longer than
# others, so what ends a window is the number of searches for a move that so many take in the mean: a round lasts as
# long as its slowest window.
COOL_TRIALS = 2.5
LOOKS_A_TRIAL, MOST_TRIALS = 60, 4
MOST_STARTS, CITIES_OF_STARTS = 16, 200_000
GUIDED = 10  # windows of a hundred whose ants follow the trails; more or fewer do no better, see the docs


class CudaFocused:
    """``ColonyEngine`` whose ants change good tours in a few places (Focused ACO) and repair them in windows.

    Parameters
    ----------
    instance : the problem, symmetric, with at least 8 cities; its candidates are what trails lie on.
    parameters : validated; ``n_ants`` are the windows searched at a time, None gives 14 a multiprocessor, or
        16 where they count no node penalties: above 100,000 cities, or where other ``candidates`` are asked for.
    device : index of the CUDA device.

    Raises
    ------
    BackendUnavailable : without a driver, PyCUDA or nvcc; the message says what to install.
    ValueError : for an asymmetric instance or fewer than 8 cities.
    MemoryError : when it does not fit the device.

    Source: R. Skinderowicz, "Improving Ant Colony Optimization efficiency for solving large TSP instances", Applied
    Soft Computing 120 (2022), for ants that change a tour in a few places.
    """

    kind: Kind = "cuda"

    def __init__(self, instance: ListedInstance, parameters: ColonyParameters, device: int = 0) -> None:
        missing = lacks_focused(instance)
        if missing is not None:
            raise ValueError(missing)
        self.instance = instance
        self.parameters = parameters
        self.device = Device(device)
        n = instance.n
        self._lists = ListsOfARun(instance, parameters.candidates)
        most = resident(self._lists.penalised) * self.device.limits.multiprocessors
        m, w = shape(n, parameters.n_ants or most)
        self.n_ants = m * w
        cities = Cities(self.device, instance)
        measure = Measure(self.device, cities)
        self._tours = Tours(self.device, measure, m, n)
        self.trails = Trails(self.device, instance, False, _ADVICE)
        nearest, scale = nearest_lists(instance), unit_scale(instance)
        self.windows = Windows(self.device, cities, self._lists.first, nearest, scale, m, w)
        neighbours = Neighbours(self.device, instance)
        parts: list[Part] = [cities, neighbours, measure, self._tours, self.trails, self.windows]
        self.device.set_up(parts, _ADVICE)
        positive = instance.neighbour_distances[instance.neighbour_distances > 0]
        shortest = float(positive.min()) / 2.0 if positive.size else 1.0
        self._ant = Ant(float(parameters.alpha), float(parameters.beta), shortest)
        # rounds of repair to begin with
        self._descent = rounds_of_repair(n, w)
        self._cooling = Cooling(FIRST_CYCLE if m > 1 else FIRST_CYCLE_ALONE)
        self._expected = math.nan  # progress of the run
        self._step = 0.0  # of a round
        self._only_anneals = True  # this generation, so far
        self._annealed = 0  # rounds of the last generation, if nothing else took time in it
        self._finished = False  # the last cycle has come to its end
        self._hot_trials = hot_trials(n, w)
        self._best: NDArray[np.int32] | None = None
        self._best_length = math.inf
        self._start = greedy_tour(instance)
        self._graph = make_graph(instance, table=False)
        self._rounds = 0  # of the last generation
        self.n_trials = 0  # see ``CountsTrials``
        self._moment: float | None = None
        self._interrupted = False
        _warm_up(self._lists.penalised)

    # ---- FollowsProgress, Builder

    def expect(self, progress: float) -> None:
        """Be told how far the run is."""
        before, self._expected = self._expected, float(progress)
        self._cooling.progress = self._expected
        # and how far each round of the next generation will bring it, as those of the last one did that only annealed
        if self._annealed > 0 and self._expected > before:
            self._step = (self._expected - before) / self._annealed

    @property
    def n_built(self) -> int:
        """Windows of the last generation: each is an ant."""
        return max(1, self._rounds * self.n_ants)

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Tour by greedy edge matching, turned to begin at city ``start``, and its length."""
        first = checks.integer("start", start, 0, self.instance.n - 1)
        tour = np.roll(self._start, -int(np.argmax(self._start == first)))
        return tour, self.instance.tour_length(tour)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Search some rounds of windows; return the exact lengths of all tours. ``key`` in [0, 2**64)."""
        self._interrupted = True  # until it comes to its end
        self._rounds = 0
        self._lists.begin(self._moment)
        if self._best is None:
            self._take(self._first_tours(key))
        rounds = self._planned_rounds()
        self._only_anneals = self._descent == 0
        with self.device.working():
            self._weigh()
            while self._rounds < rounds and not self._late() and self._lists_are_there():
                for _ in range(min(ROUNDS_AT_ONCE, rounds - self._rounds)):
                    self._round(key_of_part(key, self._rounds + 1))
                self.device.mark()
                self.device.wait()
            self._measure()
            self.n_trials = int(self.windows.statistics()[0])
        self._annealed = self._rounds if self._only_anneals else 0
        self._interrupted = False
        return self._tours.lengths.copy()

    def _planned_rounds(self) -> int:
        """Rounds of this generation.

        New tours are repaired in a generation of their own: before it first tours are made and penalties waited for, so
        that the time of the others says how many more there will be. Where time is limited, this is known soon.
        """
        if self._descent > 0:
            return min(ROUNDS, self._descent)
        if self._moment is None:
            return ROUNDS
        return min(ROUNDS, max(ROUNDS_AT_ONCE, self._cooling.generations))

    def _round(self, key: int) -> None:
        """Launch a round; at the end of a cycle the tours take over from each other."""
        self.windows.search(key, self._trials())
        self._rounds += 1
        self._lists.count_round()
        cooling = self._cooling
        if cooling.generations == 0 or not cooling.at_end:
            self._finished = False
        elif not self._finished:
            self._finished = not math.isnan(cooling.begun)
            cooling.begin_next()
            self._assemble(key)

    def _lists_are_there(self) -> bool:
        """See to it that the next rounds have the lists that they are to have; False if time is over before."""
        if not self._lists.are_due(self._moment):
            return True
        self._only_anneals = False
        resumed = self._lists.until < 0
        lists = self._lists.wait(self._moment)
        if lists is None:
            return False
        self.windows.use(lists)
        self._weigh()
        if not resumed:  # by these lists the tours are no local optima
            self._descent = rounds_of_repair(self.instance.n, self.windows.windows)
        return True

    # ---- Stoppable

    def stop_at(self, moment: float | None) -> None:
        """Let the calls that follow end soon after this ``time.monotonic()``."""
        self._moment = moment

    def _passed(self) -> bool:
        return self._moment is not None and time.monotonic() >= self._moment

    def _late(self) -> bool:
        return self._rounds > 0 and self._passed()

    def rescued(self) -> tuple[NDArray[np.int32], float] | None:
        """Return the best tour and its length if the last ``construct`` was interrupted."""
        if not self._interrupted or self._best is None:
            return None
        return self._best.copy(), self._best_length

    def _weigh(self) -> None:
        a = self.device.arrays
        self.windows.weigh(a["neighbours"], self.instance.k, a["tau"], float(self.trails.rest[0]), self._ant)

    def _trials(self) -> Trials:
        """What the windows of the next round do."""
        if self._descent > 0:
            self._descent -= 1
            return Trials(trials=2, all_queued=True)
        hot, _ = self._cooling.next()
        self._cooling.progress += self._step
        heat = (hot - COOL_PART) / (1.0 - COOL_PART)
        edge = self._best_length / self.instance.n * self.windows.scale
        trials = self._hot_trials if heat > 0.0 else round(COOL_TRIALS * self._hot_trials)
        return Trials(
            trials=MOST_TRIALS * trials,
            looks=LOOKS_A_TRIAL * trials,
            heat=max(0.0, self._first_heat() * heat * edge),
            slack=SLACK * edge,
            margin=margin(self.instance.n) * edge,
            guided=GUIDED,
        )

    def _first_heat(self) -> float:
        """Temperature at the beginning of this cycle, in mean edges."""
        kicks = self._cooling.length * self.windows.windows * self._hot_trials / self.instance.n
        return min(MOST_HEAT, max(LEAST_HEAT, HEAT * math.sqrt(kicks / KICKS)))

    def _measure(self) -> None:
        """Let the windows' tours be those of the last construction; the shortest may be the best."""
        tours = self.windows
        self.device.copy("next_tours", "window_tours", 4 * tours.tours * self.instance.n)
        self._tours.measure_next()
        told = self._tours.take_next()
        length = float(told.lengths[told.shortest])
        if length < self._best_length:
            self._best, self._best_length = told.tour, length

    def _assemble(self, key: int) -> None:
        """Let all tours, and the best, take over from each other what is better, and go on from there."""
        self._only_anneals = False
        self._measure()
        assert self._best is not None
        tours = self._tours.read_all()
        if len(tours) == 1:  # long ones differ in too many places to look at one after another
            tours[0], _ = merge(self._best, tours[0], self.instance.distance)
        else:
            if self._best_length < self._tours.lengths.min():
                tours[int(self._tours.lengths.argmax())] = self._best
            tours = assemble(self._graph, tours, key, self._moment)
        lengths = [float(tour_length(self._graph, tour)) for tour in tours]
        shortest = int(np.argmin(lengths))
        self._best, self._best_length = tours[shortest].copy(), lengths[shortest]
        self.windows.load(tours)

    def _first_tours(self, key: int) -> NDArray[np.int32]:
        """Tours (m, n) to begin with, some of them more than once where many would take long."""
        few = max(1, min(self.windows.tours, MOST_STARTS, CITIES_OF_STARTS // self.instance.n))
        tours = np.concatenate([self._start[None], varied_tours(self.instance, few - 1, key)])
        return np.resize(tours, (self.windows.tours, self.instance.n))

    def _take(self, tours: NDArray[np.int32]) -> None:
        """Go on from tours (m, n)."""
        with self.device.working():
            self.windows.load(tours)
            self._measure()

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Tours (len(ants), n) of the last construction."""
        wanted = np.arange(self.windows.tours)[np.asarray(ants, dtype=np.intp)].reshape(-1)
        with self.device.working():
            return self._tours.read(wanted)

    # ---- Trails

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``."""
        with self.device.working():
            self.trails.reset(value)

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``."""
        with self.device.working():
            self.trails.update(update, self._tours)

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        with self.device.working():
            return self.trails.branching_factor(lam)

    # ---- Accepts, Improver

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n) into the best, which takes the place of the longest tour, see ``Accepts``."""
        rows = immigrants.in_order(tours, lengths, self.instance.n)
        if len(rows) == 0:
            return
        merged = rows[0] if self._best is None else self._best
        for row in rows:
            merged, _ = merge(merged, row, self.instance.distance)
        if self._best is None:
            self._take(np.tile(merged, (self.windows.tours, 1)))
            return
        with self.device.working():
            everyone = self.windows.read()
        everyone[int(self._tours.lengths.argmax())] = merged
        self._take(everyone)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Window search on any number of tours (m, n); return copies and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        with self.device.working():
            own = None if self._best is None else self.windows.read()
            try:
                improved = self.windows.improve(rows, key, None if self._moment is None else self._passed)
            finally:  # also where an interrupt from the keyboard ends it
                if own is not None:
                    self.windows.load(own)
        return improved, np.array([self.instance.tour_length(tour) for tour in improved])

    # ---- Stateful

    def export_state(self) -> State:
        """Trails, the tours, the best of all, and where the schedule is, see ``focused_state``."""
        n = self.instance.n
        best = np.zeros(n, np.int32) if self._best is None else self._best
        with self.device.working():
            trails = self.trails.read()
            tours = np.zeros((1, n), np.int32) if self._best is None else self.windows.read()
        common = pack(
            self.kind,
            self.instance.neighbours,
            trails["tau"],
            trails["rest"],
            tours,
            (best, self._best_length),
            self._cooling,
            self._expected,
        )
        return {
            **common,
            "counts": np.array([self._descent, self._finished, self._annealed], np.int64),
            "step": np.array([self._step]),
            "until_lists": np.array([self._lists.until], np.int64),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a focused colony on the same instance, of whichever engine."""
        told = unpack(state, self.kind, self.instance.neighbours)
        # for another engine's state: every city is looked at anew
        descent, finished, annealed = rounds_of_repair(self.instance.n, self.windows.windows), 0, 0
        step, until_lists = 0.0, self._lists.planned
        if told.own:
            counts = stored_integers(state, "counts", (3,), 0, 2**62, np.int64)
            descent, finished, annealed = (int(count) for count in counts)
            step = float(stored_numbers(state, "step", (1,))[0])
            until_lists = int(stored_integers(state, "until_lists", (1,), -1, 2**62, np.int64)[0])
        with self.device.working():
            self.trails.write({"tau": told.tau, "rest": told.rest, "tau0": np.zeros(1)})
        self._best, self._best_length = None, math.inf
        self._descent, self._finished, self._expected = descent, bool(finished), told.expected
        self._annealed, self._step = annealed, step
        first_lists = self._lists.resume(until_lists)
        if first_lists is not None:
            with self.device.working():
                self.windows.use(first_lists)
        told.restore(self._cooling)
        if told.best is not None:
            # the engine's own length is what the device summed up, which rounding may tell from the host's sum
            own = told.best_length if told.own else self.instance.tour_length(told.best)
            self._best, self._best_length = told.best, own
            tours = told.tours if len(told.tours) else told.best
            self._take(np.resize(tours, (self.windows.tours, self.instance.n)))


_ADVICE = "fewer ants (n_ants) need less"


def lacks_focused(instance: ListedInstance) -> str | None:
    """Why ants cannot be focused on an instance, or None."""
    if not instance.symmetric:
        return "focused ants reverse paths and need a symmetric instance; construction='full' does not"
    if instance.n < FEWEST_CITIES_TO_FOCUS:
        return (
            f"focused ants need at least {FEWEST_CITIES_TO_FOCUS} cities, got {instance.n}; "
            "construction='full' does not"
        )
    return None


@functools.cache
def _warm_up(penalised: bool) -> None:
    """Compile what the host does of a run and set-up has not called, on a few cities."""
    instance = listed_instance(TSP(np.random.default_rng(0).random((40, 2)), metric="EXACT"), 8)
    if penalised:
        penalised_lists(instance, 1)
    tours = np.array([np.arange(40), np.random.default_rng(0).permutation(40)], np.int32)
    merge(tours[0], tours[1], instance.distance)
    graph = make_graph(instance)
    tour_length(graph, assemble(graph, tours, 0)[0])
