"""Colony of Focused ACO on all cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import faco_walk
from pymoo_gpuaco.backends.cpu import trails as trail_memory
from pymoo_gpuaco.backends.cpu.improver import CpuImprover
from pymoo_gpuaco.backends.cpu.trails import ColonyTrails
from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.candidates.lists import near_cities
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.colony.faco import FacoParameters
from pymoo_gpuaco.colony.trails import TrailUpdate, per_length, relative_eta_power
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime.philox import fold_in, generator
from pymoo_gpuaco.runtime.state import SMALLEST, State, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine
from pymoo_gpuaco.runtime.threads import parallel_for, thread_count


class CpuFaco(StoppableEngine):
    """``FocusedColony`` on all cores.

    Parameters
    ----------
    instance : the problem with its candidate lists.
    parameters : validated.

    Raises
    ------
    ValueError : for an asymmetric instance, because moves reverse paths.
    """

    kind: str = "cpu"
    usual_iterations = 1

    def __init__(self, instance: ListedInstance, parameters: FacoParameters) -> None:
        checks.may_reverse("GPUFACO", instance.symmetric, "another ant colony")
        n, m = instance.n, parameters.resolved_ants(instance.n)
        self.instance = instance
        self.parameters = parameters
        self.n_ants = m
        self.n_built = 0
        self.stop = Stop()
        self._graph = make_graph(instance)
        self._backup = near_cities(instance, 1 + instance.k + int(parameters.backup_list_size))
        self._improver = CpuImprover(instance, parameters.local_search, self._graph, self.stop)
        self._trails = ColonyTrails("candidate", self._graph, 1, True, self.stop)
        self._eta_beta = relative_eta_power(
            self._graph.neighbour_distances, instance.least_distance, float(parameters.beta)
        )
        self._weights = np.empty((n, instance.k))
        self._source, self._position = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
        self._source_length = np.inf
        self._best, self._best_length = self._source.copy(), np.inf
        self._built_from, self._built_from_length = self._source.copy(), np.inf  # of the last construction
        self._unit = 1.0
        capacity = parameters.capacity
        self._built = faco_walk.make_built(m, capacity)
        self._threads = min(thread_count(), m)
        self._tours = [
            faco_walk.make_segments(self._source, self._position, capacity, instance.k)
            for _ in range(self._threads)
        ]

    # ---- FocusedColony

    @property
    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the best tour so far and its exact length."""
        return self._best.copy(), self._best_length

    def begin(self) -> float:
        """Start from the locally optimised greedy tour, with all trails at tau_max; return the length of the tour."""
        tour = greedy_tour(self.instance)
        improved, lengths = self._improver.improve(tour[None], 0)
        self._unit = float(lengths[0]) or 1.0
        self._best, self._best_length = improved[0].copy(), float(lengths[0])
        self._set_source(improved[0], float(lengths[0]))
        self._trails.reset(self.parameters.limits(self._best_length / self._unit, self.instance.k)[1])
        return self._best_length

    def iterate(self, key: int, iterations: int) -> None:
        """Run iterations: construct, choose the next source, update the trails. ``key`` in [0, 2**64)."""
        built = 0
        for number in range(iterations):
            iteration_key = fold_in(key, number)
            self.construct(iteration_key)
            built += self.n_built
            if self.n_built == 0:
                break
            tour = self.tours([int(self._built.longer.argmin())])[0]
            length = float(tour_length(self._graph, tour))
            self._update_best(tour, length)
            if self.n_built < self.n_ants:
                break  # an incomplete iteration does not change trails
            if generator(iteration_key, 0).random() < self.parameters.best_as_source:
                tour, length = self._best, self._best_length
            self._set_source(tour, length)
            limits = self.parameters.limits(self._best_length / self._unit, self.instance.k)
            self._trails.update(self.parameters.update(tour, per_length(self._unit, length), limits))
        self.n_built = built

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build m tours from the source; return their lengths (m,). Ants stopped by the deadline return the source."""
        self.stop.reset()
        built = self._built
        built.longer[:] = np.inf
        self._built_from[:], self._built_from_length = self._source, self._source_length
        trails, alpha, threads = self._trails.filled(), float(self.parameters.alpha), thread_count()
        parallel_for(
            lambda _, first, last: trail_memory.candidate_weights(
                self._graph, trails, alpha, self._eta_beta, first, last, self._weights
            ),
            self.instance.n,
            threads,
        )

        def ants(thread: int, first: int, last: int) -> None:
            faco_walk.build_tours(
                self._graph,
                self._backup,
                self._tours[thread],
                self._weights,
                int(self.parameters.min_new_edges),
                self.parameters.moves,
                key,
                first,
                last,
                built,
                self.stop.flag,
            )

        self.stop.parallel_for(ants, self.n_ants, self._threads)
        unfinished = np.isinf(built.longer)  # ants stopped by the deadline: their tour is the source
        self.n_built = self.n_ants - int(unfinished.sum())
        built.first[unfinished, 0], built.last[unfinished, 0] = 0, self.instance.n - 1
        built.used[unfinished], built.longer[unfinished] = 1, 0.0
        return self.lengths()

    def lengths(self) -> NDArray[np.float64]:
        """Return the lengths (m,) of the tours of the last construction."""
        return self._built_from_length + self._built.longer

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Return the tours (len(ants), n) of the last construction."""
        numbers = np.asarray(ants, dtype=np.intp)
        tours = np.empty((len(numbers), self.instance.n), np.int32)
        for row, ant in zip(tours, numbers, strict=True):
            used = self._built.used[ant]
            ends = zip(self._built.first[ant, :used], self._built.last[ant, :used], strict=True)
            pieces = [
                self._built_from[a : b + 1] if a <= b else self._built_from[b : a + 1][::-1] for a, b in ends
            ]
            row[:] = np.concatenate(pieces)
        return tours

    def follow(self, update: TrailUpdate) -> None:
        """Make the first tour of ``update.deposits`` the source, and update the trails."""
        tour = update.deposits[0][0]
        self._set_source(tour, float(tour_length(self._graph, tour)))
        self._trails.update(update)

    def _update_best(self, tour: NDArray[np.int32], length: float) -> None:
        """Store a tour as the best if it is shorter than the best so far."""
        if length < self._best_length:
            self._best, self._best_length = tour.astype(np.int32), length

    def _set_source(self, tour: NDArray[np.int32], length: float) -> None:
        self._source[:], self._source_length = tour, length
        self._position[self._source] = np.arange(self.instance.n, dtype=np.int32)

    # ---- Improver, Accepts, Stoppable

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of given tours (m, n); return copies and their exact lengths (m,)."""
        return self._improver.improve(tours, key)

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Make the shortest of tours (m, n) the best tour and the source if it is shorter than the best so far."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        for row in rows:
            length = float(tour_length(self._graph, row))
            if length < self._best_length:
                self._update_best(row, length)
                self._set_source(row, length)

    # ---- state

    def export_state(self) -> State:
        """Return copies of trails, source, best tour and unit."""
        return {
            **self._trails.export_state(),
            "tours": np.stack([self._source, self._best]),
            "lengths": np.array([self._source_length, self._best_length]),
            "unit": np.array([self._unit]),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        n = self.instance.n
        trails = self._trails.read_state(state)
        source, best = stored_tours(state, "tours", 2, n)
        lengths = stored_numbers(state, "lengths", (2,), infinity=True)
        unit = stored_numbers(state, "unit", (1,), low=SMALLEST)
        self._trails.import_state(trails)
        self._set_source(source, float(lengths[0]))
        self._best, self._best_length, self._unit = best.copy(), float(lengths[1]), float(unit[0])
