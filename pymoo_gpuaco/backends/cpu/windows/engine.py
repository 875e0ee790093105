"""The focused colony on the CPU: ants change good tours in a few places instead of building new ones.

Skinderowicz, "Improving Ant Colony Optimization efficiency for solving large TSP instances", Applied Soft Computing
120 (2022), lets each ant change the best tour in few edges and repair it. Here an ant makes many such trials, on a tour
of its own where that fits a cache, else in a window of one tour that all share.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import trails as trail_memory
from pymoo_gpuaco.backends.cpu.windows.improve import TourImprover
from pymoo_gpuaco.backends.cpu.windows.search import WindowSearch
from pymoo_gpuaco.backends.cpu.windows.units import make_units
from pymoo_gpuaco.backends.protocol import Kind
from pymoo_gpuaco.candidates import greedy_tour, varied_tours
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate, per_length
from pymoo_gpuaco.exchange import assemble, merge
from pymoo_gpuaco.host.distances import tour_length
from pymoo_gpuaco.host.state import State, stored_integers
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.host.threads import spread, thread_count
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.search.parameters import SHORT_STRETCH, FocusedParameters
from pymoo_gpuaco.search.schedule import Cooling
from pymoo_gpuaco.search.state import pack, unpack

WINDOWS = 8  # of one tour in a generation
# Shortest tours that the best one takes from in a generation that is not the last of its cycle: one thread merges
# while all others wait, and tours that are still hot have little for it.
MERGED_WHILE_HOT = 4
REPAIRED = 0.01  # share of dirty cities below which kicks begin
CYCLES_IN_ONE = 12  # first cycles: one long annealing beats several short ones where the end is known
# So many tours or more begin as different ones, to have more to take over from each other. A tour that begins by other
# lengths than the true ones needs more kicks, which fewer tours do not make up for.
FEWEST_APART = 4
IMPROVER_TRIALS = 1  # kicks a city when tours are improved that were given


class CpuFocused:
    """``ColonyEngine`` that improves one tour, on all cores. It hands out one tour, the best it has found.

    Parameters
    ----------
    instance : symmetric.
    parameters : of the colony; ``n_ants=None`` gives a whole tour for each thread, 2 to 64, up to 25,000 cities, and
        8 windows above.
    focused : how ants work; None for the defaults.

    Raises
    ------
    ValueError : for an asymmetric instance: moves turn stretches of a tour around.
    """

    kind: Kind = "cpu"

    def __init__(
        self, instance: ListedInstance, parameters: ColonyParameters, focused: FocusedParameters | None = None
    ) -> None:
        if not instance.symmetric:
            raise ValueError(
                "construction='focused' turns stretches of a tour around and needs a symmetric instance; "
                "construction='full' works on asymmetric ones"
            )
        n = instance.n
        self.instance = instance
        self.parameters = parameters
        focused = focused or FocusedParameters()
        self._focused = focused
        self._graph = make_graph(instance)
        units, lengths, near = make_units(instance, self._graph, focused, parameters.candidates)
        self._search = WindowSearch(instance, units, focused)
        self.n_ants = parameters.n_ants or (focused.tours(thread_count()) if self._search.whole else WINDOWS)
        self._trials = max(1, focused.trials_a_generation(n, self.n_ants) // self.n_ants)
        self._alpha = float(parameters.alpha)
        self._eta_beta = _heuristic(lengths, float(parameters.beta))
        self._weights_are_old = True
        self._trails = trail_memory.make_trails(trail_memory.CANDIDATE, units.candidates, 0)
        self._start = greedy_tour(instance, near.ids, near.distances)
        own = self.n_ants if self._search.whole else 1
        self._tours = np.tile(self._start, (own, 1))  # on which the ants work
        self._best, self._best_length = self._start.copy(), self._measure(self._start)
        self._dirty = np.ones(n, np.uint8)
        self._windows_done = 0
        trials_a_cycle = focused.kicks_of_first_cycle(n) * n
        trials_a_generation = self._trials if self._search.whole else self._trials * self.n_ants
        self._cooling = Cooling(max(1, round(trials_a_cycle / trials_a_generation)), alone=CYCLES_IN_ONE)
        self._built = 0
        self.n_trials = 0  # see ``CountsTrials``
        self._stop = Stop()
        self._rescued: tuple[NDArray[np.int32], float] | None = None

    @property
    def n_built(self) -> int:
        """Ants of the last generation: tours or windows searched."""
        return max(1, self._built)

    def _refresh_weights(self) -> None:
        """Recompute tau^alpha eta^beta if the trails have changed."""
        if self._weights_are_old:
            units, t = self._search.units, self._trails
            graph = self._graph._replace(neighbours=units.candidates)

            def rows(_: int, first: int, last: int) -> None:
                trail_memory.candidate_weights(
                    graph, t, self._alpha, self._eta_beta, first, last, units.weights
                )

            spread(rows, self.instance.n, thread_count())
            self._weights_are_old = False

    def _measure(self, tour: NDArray[np.int32]) -> float:
        return float(tour_length(self._graph, tour))

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Tour by greedy edge matching and its length: what the ants begin with, whatever city is ``start``."""
        checks.integer("start", start, 0, self.instance.n - 1)
        return self._start.copy(), self._measure(self._start)

    def expect(self, progress: float) -> None:
        """Be told how far the run is, so that the last cycle of annealing ends with it."""
        self._cooling.progress = float(progress)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Run one generation of trials, a fraction of a second; return the length (1,) of the best tour so far."""
        self._rescued = None
        if self._stop.passed():
            self._built = 0
            return np.array([self._best_length])
        before = self._tours.copy(), self._best.copy(), self._dirty.copy(), self._windows_done
        length, cooling = self._best_length, replace(self._cooling)
        try:
            self._refresh_weights()
            if self._search.whole:
                self._search_whole_tours(key)
            else:
                self._search_windows(key)
        except KeyboardInterrupt:
            tour = self._best.copy()
            self._rescued = tour, self._measure(tour)
            self._tours, self._best, self._dirty, self._windows_done = before
            self._best_length, self._cooling = length, cooling
            raise
        return np.array([self._best_length])

    def stop_at(self, moment: float | None) -> None:
        """Let the calls that follow end soon after this ``time.monotonic()``, see ``Stoppable``."""
        self._stop.until = moment

    def rescued(self) -> tuple[NDArray[np.int32], float] | None:
        """Shortest tour of a generation that an interrupt ended, see ``Stoppable``."""
        return self._rescued

    def _search_whole_tours(self, key: int) -> None:
        """Each ant anneals a tour of its own; the best takes over whatever is better in any of them."""
        if self._cooling.generations == 0 and len(self._tours) >= FEWEST_APART:
            self._tours[1:] = varied_tours(self.instance, len(self._tours) - 1, key)
        hot, cold, longest = self._next_trials()
        everything = bool(self._dirty.any())
        self._search.search_tours(self._tours, key, self._trials, hot, cold, longest, everything)
        self.n_trials += self._trials * len(self._tours)
        self._dirty[:] = 0
        if self._cooling.at_end:
            self._cooling.begin_next()
            self._assemble(key)
        else:
            tours = self._tours
            if hot > 0.0 and len(tours) > MERGED_WHILE_HOT:
                order = np.argsort([self._measure(tour) for tour in tours], kind="stable")
                tours = tours[order[:MERGED_WHILE_HOT]]
            for tour in tours:
                self._merge(tour)
        self._built = len(self._tours)

    def _assemble(self, key: int) -> None:
        """Let all tours, and the best, take over from each other what is better."""
        given = np.concatenate([self._tours, self._best[None]])
        assembled = assemble(self._graph, given, key, self._stop.until)
        self._tours = assembled[:-1]
        for tour in assembled:
            self._merge(tour)

    def _search_windows(self, key: int) -> None:
        """Each ant anneals a window of the one tour, once all of it has been repaired."""
        tour = self._tours[0]
        if self._windows_done < 2 * self._search.stretches:
            self._built = self._search.repair_stretches(tour, self._dirty, self._windows_done, WINDOWS)
            self._windows_done += self._built
            self._keep(tour)
            return
        trials, hot, cold, longest = 0, 0.0, 0.0, SHORT_STRETCH
        if self._dirty.mean() < REPAIRED:
            trials = self._trials
            hot, cold, longest = self._next_trials()
        self._tours[0], self._built = self._search.round(
            tour, self._dirty, self._windows_done, self.n_ants, trials, hot, cold, longest, key
        )
        self.n_trials += trials * self._built
        self._windows_done += self.n_ants
        self._keep(self._tours[0])
        if trials and self._cooling.at_end:
            self._cooling.begin_next()
            self._merge(self._tours[0])
            self._tours[0] = self._best

    def _keep(self, tour: NDArray[np.int32]) -> None:
        """Make a tour the best one if it is shorter."""
        length = self._measure(tour)
        if length < self._best_length:
            self._best[:], self._best_length = tour, length

    def _next_trials(self) -> tuple[float, float, int]:
        """First and last temperature of this generation, in whole units, and its kicks' longest stretch."""
        hot, cold = self._cooling.next()
        n = self.instance.n
        kicks = self._cooling.length * self._trials * (1 if self._search.whole else self.n_ants) / n
        mean = self._best_length * self._search.units.scale / n
        heat = self._focused.first_heat(kicks) * mean
        return hot * heat, cold * heat, self._focused.longest_stretch(kicks)

    def _merge(self, tour: NDArray[np.int32]) -> None:
        """Let the best tour take over what is better in another."""
        merged, gain = merge(self._best, tour, self._search.distance)
        if gain > 0.0:
            self._best, self._best_length = merged, self._measure(merged)

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Copy the best tour for each of ``ants``, which are all 0."""
        return self._best[None][np.asarray(ants, dtype=np.intp)]

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Window search on any number of given tours (m, n); return copies and their exact lengths (m,)."""
        n = self.instance.n
        rows = checks.permutations("tours", tours, n).astype(np.int32)
        self._refresh_weights()
        self._stop.lower()
        trials = IMPROVER_TRIALS * n
        if self._search.whole:
            # a thread a tour; longer tours, in windows, take all threads each
            def work(_: int, first: int, last: int) -> None:
                search = WindowSearch(self.instance, self._search.units, self._focused, threads=1)
                improver = TourImprover(search, self._stop.raised)
                for number in range(first, last):
                    improver.improve(rows[number], trials, key, number)

            if len(rows):
                self._stop.spread(work, len(rows), thread_count())
        else:
            improver = TourImprover(self._search, self._stop.passed)
            for number, row in enumerate(rows):
                improver.improve(row, trials, key, number)
        return rows, np.array([self._measure(row) for row in rows])

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Merge tours (m, n) into the best one; the ants go on from it, see ``Accepts``."""
        for row in immigrants.in_order(tours, lengths, self.instance.n):
            self._merge(row)
            if self._cooling.generations == 0 or not self._search.whole:
                self._tours[:] = self._best
                self._dirty[:] = 1

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``."""
        trail_memory.fill(self._trails, np.float32(value))
        self._weights_are_old = True

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``; the colony's one tour is the best so far."""
        t, n = self._trails, self.instance.n
        self._weights_are_old = True
        amounts = [(np.ascontiguousarray(tour, np.int32), float(amount)) for tour, amount in update.deposits]
        if update.on_tours_only:
            for tour, amount in amounts:
                trail_memory.blend_tour(t, tour, float(update.rho), amount, True)
            return
        low, high, rho = float(update.tau_min), float(update.tau_max), float(update.rho)
        spread(lambda _, a, b: trail_memory.evaporate_rows(t, a, b, rho, low, high), n, thread_count())
        trail_memory.evaporate_rest(t, rho, low, high)
        if update.colony_amount > 0.0:
            amounts.append((self._best, per_length(update.colony_amount, self._best_length)))
        amounts += [(self._best, amount) for _, amount in update.by_ant(np.array([self._best_length]))]
        for tour, amount in sorted(amounts, key=lambda pair: pair[1] < 0.0):
            trail_memory.deposit(t, tour, amount, low, high, True)

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        graph = self._graph._replace(neighbours=self._search.units.candidates)
        return float(trail_memory.branching_factor(graph, self._trails, float(lam)))

    def export_state(self) -> State:
        """Trails, tours and where the run is, as copies, see ``focused_state``."""
        trails, best = self._trails, (self._best, self._best_length)
        candidates, c = self._search.units.candidates, self._cooling
        return {
            **pack(self.kind, candidates, trails.tau, trails.rest, self._tours, best, c, c.progress),
            "dirty": self._dirty.copy(),
            "counts": np.array([self._windows_done, self._built], np.int64),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a focused colony on the same instance, of whichever engine."""
        n = self.instance.n
        told = unpack(state, self.kind, self._search.units.candidates)
        # for another engine's state: every city is looked at anew
        dirty, windows_done, built = np.ones(n, np.uint8), 0, 0
        if told.own:
            dirty = stored_integers(state, "dirty", (n,), 0, 1, np.uint8)
            windows_done, built = (int(c) for c in stored_integers(state, "counts", (2,), 0, 2**62, np.int64))
        self._trails.tau[...], self._trails.rest[...] = told.tau, told.rest
        self._weights_are_old = True
        self._best = (self._start if told.best is None else told.best).copy()
        self._best_length = self._measure(self._best)
        self._tours[...] = np.resize(told.tours if len(told.tours) else self._best, self._tours.shape)
        self._dirty, self._windows_done, self._built = dirty.copy(), windows_done, built
        self._cooling.progress = told.expected
        told.restore(self._cooling)


def _heuristic(lengths: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    """eta^beta (n, k) of candidate edges of these lengths; at distance 0 the shortest other edge counts, halved."""
    positive = lengths[lengths > 0.0]
    return np.maximum(lengths, float(positive.min()) / 2.0 if positive.size else 1.0) ** -beta


def warm_up_focused(n: int) -> None:
    """Compile what focused ants call on an instance of n cities, and nothing else."""
    usual = FocusedParameters()
    _warm_up(n <= usual.whole_up_to, usual.iterations(n) > 0)


@functools.cache
def _warm_up(whole: bool, ascends: bool) -> None:
    """The same on a few cities, as one tour or by windows, with penalties or without."""
    places = np.random.default_rng(0).random((80, 2))
    focused = FocusedParameters(
        whole_up_to=80 if whole else 8, ascent=1 if ascends else 0, trials=64, window=64
    )
    engine = CpuFocused(listed_instance(TSP(places, metric="EXACT"), 8), ColonyParameters(), focused)
    engine.reset_trails(1.0)
    for key in range(3):
        engine.construct(key)
    if whole:
        tours = np.array([np.arange(80), np.random.default_rng(0).permutation(80)], np.int32)
        assemble(engine._graph, tours, 0)
    engine._dirty[:] = 0  # kicks begin
    engine.construct(3)
    engine.update_trails(TrailUpdate(0.5, ((engine.tours([0])[0], 1.0),)))
    engine.branching_factor(0.05)
