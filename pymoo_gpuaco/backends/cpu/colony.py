"""Engine of an ant colony on all cores: arrays, division of work, and calls of compiled functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import construct, selection, workspace
from pymoo_gpuaco.backends.cpu import trails as trail_memory
from pymoo_gpuaco.backends.cpu.improver import MANY_CITIES, CpuImprover
from pymoo_gpuaco.backends.cpu.own_rule import build_tours
from pymoo_gpuaco.backends.cpu.selection import make_tabus
from pymoo_gpuaco.backends.cpu.trails import ColonyTrails
from pymoo_gpuaco.candidates.heuristic import with_heuristic
from pymoo_gpuaco.candidates.listed import ListedInstance, make_graph
from pymoo_gpuaco.candidates.nearest_tour import nearest_neighbour_tour
from pymoo_gpuaco.colony.parameters import ColonyParameters, usual_ants
from pymoo_gpuaco.colony.selection import ACS, CODES
from pymoo_gpuaco.colony.trails import TrailUpdate, eta_power, replacements
from pymoo_gpuaco.problems.metrics import graph_distances
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime.philox import STREAM_CONSTRUCTION, new_streams
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop, StoppableEngine
from pymoo_gpuaco.runtime.threads import in_slices, thread_count

# Default colony size with local search: a few tours per core use the whole machine.
ANTS_WITH_LOCAL_SEARCH = 24
ANTS_ON_MANY_CITIES = 8  # from 3,000 cities on: generations take long, and learning needs many of them


class CpuColony(StoppableEngine):
    """``ColonyEngine`` on all cores.

    Parameters
    ----------
    instance : the problem, with candidate lists of the length of the parameters.
    parameters : validated; ``n_ants=None`` gives 24 with local search (8 from 3,000 cities on), else
        ``usual_ants``.

    Raises
    ------
    ValueError : for a local search that reverses paths on an asymmetric instance.
    MemoryError : if matrices over all cities do not fit; the message names an alternative that does.
    """

    kind: str = "cpu"

    def __init__(self, instance: ListedInstance, parameters: ColonyParameters) -> None:
        n = instance.n
        self.instance = instance
        self.parameters = parameters
        self.n_ants = parameters.n_ants or default_ants(n, parameters)
        self._graph = make_graph(instance)
        self._all_cities = parameters.candidate_list_size is None
        self._acs = parameters.selection == ACS
        # among all cities, a stochastic trial reads a few numbers per step, a roulette reads all
        selection_rule = parameters.rule("hybrid" if self._all_cities else "rwm")
        memory = parameters.resolved_memory(n)
        self.stop = Stop()
        self._improver = CpuImprover(
            instance, parameters.local_search, self._graph, self.stop, parameters.candidates
        )
        self._check_memory(memory)
        # distances by which ants weigh edges
        self._weighed, self._walk_graph = instance, self._graph
        if parameters.heuristic is not None:
            self._weighed = weighed = with_heuristic(instance, parameters.heuristic)
            self._walk_graph = weighed.graph._replace(neighbour_distances=weighed.farthest[:, None].copy())
        self._rule = construct.Rule(
            selection=CODES[selection_rule.name],
            alpha=float(parameters.alpha),
            beta=float(parameters.beta),
            shortest=self._weighed.least_distance,  # replaces zero distances
            trials=int(parameters.trials),  # maximum number of draws of a trial rule
            switch_left=parameters.switch_left(n),  # unvisited cities at which a rule switches to another
            tournament_size=parameters.resolved_tournament_size(n),
            q0=float(parameters.q0),  # ACS: probability of the greedy choice
        )
        self._trails = ColonyTrails(
            memory, self._graph, parameters.trails_per_node, instance.symmetric, self.stop
        )
        self._tours = np.zeros((self.n_ants, n), np.int32)
        self._lengths = np.zeros(self.n_ants)
        # tour neighbours in the shortest tour so far; local search starts where neighbours differ
        self._reference = np.full((n, 2), -1, np.int32)
        self._reference_length = np.inf
        self._tau0 = 0.0
        self._threads = min(thread_count(), self.n_ants)
        self._improver.prepare(self._threads)
        self._greedy: tuple[NDArray[np.int32], float] | None = None
        self.n_built = self.n_ants
        # ants (m,) without a tour after the deadline of the last construction, and the tour that they get
        self._unfinished: tuple[NDArray[np.bool_], NDArray[np.int32]] | None = None
        # (n, k) for candidates or (n, n) for all cities; computed in the first construction, within its time limit
        self._eta_beta: NDArray[np.float64] | None = None
        k = self._graph.neighbours.shape[1]
        drawn = self._rule.tournament_size
        self._workspaces = [construct.make_walk_workspace(n, k, drawn) for _ in range(self._threads)]
        if self._all_cities:
            sums = np.empty((n, n) if selection_rule.sums else (0, 0))
            self._choice = selection.Choice(np.empty((n, n)), sums, np.empty(n))
        else:
            self._weights = np.empty((n, k))
        if self._acs:
            self._ant_tabus = make_tabus(self.n_ants, n)

    def _check_memory(self, memory: str) -> None:
        n = self.instance.n
        tables = 3 if self._all_cities else 0  # eta^beta, weights and their running sums, 8 bytes per entry
        needed = n * n * ((4 if memory == "dense" else 0) + 8 * tables)
        if self.parameters.heuristic is not None:  # 1 / eta
            needed += 8 * n * n
        free = _free_bytes()
        if free is not None and needed > free:
            instead = (
                "candidate_list_size=32 needs memory in proportion to n"
                if self._all_cities
                else "pheromone='candidate' needs memory in proportion to n"
            )
            if self.parameters.heuristic is not None:
                instead += " without heuristic="
            raise MemoryError(
                f"{n} cities need {needed / 1e9:.1f} GB for n x n matrices, {free / 1e9:.1f} GB are free; {instead}"
            )

    def _heuristic(self) -> NDArray[np.float64]:
        """Return eta^beta, computed once. After the deadline the result is incomplete and not stored.

        eta = distance to the nearest city / distance, see `eta_power`.
        """
        if self._eta_beta is not None:
            return self._eta_beta
        graph, shortest, beta = self._walk_graph, self._rule.shortest, self._rule.beta
        n, k = graph.neighbours.shape
        eta_beta = np.empty((n, n if self._all_cities else k))

        def rows(_: int, first: int, last: int) -> None:
            part = slice(first, last)
            near = np.maximum(self._weighed.nearest[part, None], shortest)
            if self._all_cities:
                distances = graph_distances(graph, n, np.arange(first, last)[:, None], np.arange(n))
            else:
                distances = self._weighed.neighbour_distances[part]
            eta_beta[part] = eta_power(distances, near, shortest, beta)

        self.stop.parallel_for(in_slices(rows, eta_beta.shape[1], self.stop.is_set), n, thread_count())
        if not self.stop.is_set():
            self._eta_beta = eta_beta
        return eta_beta

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Return the nearest-neighbour tour from city ``start`` and its length."""
        tour = nearest_neighbour_tour(self._graph, start, self.stop)
        self._greedy = tour, float(tour_length(self._graph, tour))
        return tour.copy(), self._greedy[1]

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``, also the tau_0 of ACS."""
        self._tau0 = float(value)
        self._trails.reset(value)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,)."""
        self.stop.reset()
        self._unfinished = None
        self._lengths[:] = np.inf  # until they are finished
        self._trails.fill()
        if self._acs:
            eta_beta = self._heuristic()
            self.stop.parallel_for(lambda *_: self._walk_with_local_update(key, eta_beta), 1, 1)
        else:
            self._refresh_weights()

        own_rule = self.parameters.own_rule
        if own_rule is not None:
            weights = self._choice.weights if self._all_cities else self._weights
            neighbours = None if self._all_cities else self._graph.neighbours
            build_tours(
                own_rule, weights, neighbours, self._best_remaining, key, self._tours, self.stop.is_set
            )

        def ants(thread: int, first: int, last: int) -> None:
            if not self._acs and own_rule is None:
                self._walk(thread, first, last, key)
            self._improver.work(thread, first, last, key, self._tours, self._lengths, self._reference)

        # a few ants at a time: an early end loses only unfinished tours
        work = in_slices(ants, self.instance.n, self.stop.is_set)
        self.stop.parallel_for(work, self.n_ants, self._threads)
        tour, length = self._best_of_construction()
        if length < self._reference_length:
            self._reference_length = length
            workspace.tour_neighbours(tour, self._reference)
        return self._lengths.copy()

    def _best_of_construction(self) -> tuple[NDArray[np.int32], float]:
        """Return the shortest tour of the construction and its length; unfinished tours become copies of it.

        If no tour was finished in time, use the nearest-neighbour tour.
        """
        best = int(self._lengths.argmin())
        tour, length = self.tours([best])[0], float(self._lengths[best])
        if length == np.inf:
            tour, length = self.greedy_tour() if self._greedy is None else self._greedy
        unfinished = self._lengths == np.inf
        if self._unfinished is None:  # else they have been counted
            self.n_built = max(1, self.n_ants - int(unfinished.sum()))
        if unfinished.any():
            self._unfinished = unfinished, tour.copy()
            self._lengths[unfinished] = length
        return tour.copy(), length

    def _replace_unfinished(self) -> None:
        """Fill in unfinished tours; deferred, because it may copy gigabytes."""
        if self._unfinished is not None:
            unfinished, tour = self._unfinished
            self._tours[unfinished] = tour
            self._unfinished = None

    def _refresh_weights(self) -> None:
        """Recompute tau^alpha eta^beta."""
        alpha, eta_beta = self._rule.alpha, self._heuristic()

        trails = self._trails.arrays

        def rows(_: int, first: int, last: int) -> None:
            if not self._all_cities:
                trail_memory.candidate_weights(
                    self._graph, trails, alpha, eta_beta, first, last, self._weights
                )
                return
            weights, prefix, row_max = self._choice
            trail_memory.all_weights(trails, alpha, eta_beta, first, last, weights)
            row_max[first:last] = weights[first:last].max(axis=1)
            if prefix.size:
                np.cumsum(weights[first:last], axis=1, out=prefix[first:last])

        work = in_slices(rows, eta_beta.shape[1], self.stop.is_set)
        self.stop.parallel_for(work, self.instance.n, thread_count())

    def _best_remaining(self, city: int, visited: NDArray[np.bool_]) -> int:
        """Return the unvisited city of largest weight, the nearest if all are 0, see ``construct.best_remaining``."""
        others, rule, graph = np.flatnonzero(~visited), self._rule, self._walk_graph
        trails = self._trails.of_edges(np.stack([np.full_like(others, city), others], axis=1)).astype(float)
        distances = graph_distances(graph, self.instance.n, city, others)
        near = max(float(graph.neighbour_distances[city, -1]), rule.shortest)
        weights = trails**rule.alpha * eta_power(distances, near, rule.shortest, rule.beta)
        return int(others[weights.argmax() if weights.any() else distances.argmin()])

    def _walk(self, thread: int, first: int, last: int, key: int) -> None:
        common = (self._rule, self._workspaces[thread], key, first, last, self._tours, self.stop.flag)
        if self._all_cities:
            construct.build_tours_from_all(self._walk_graph, self._trails.arrays, self._choice, *common)
        else:
            construct.build_tours_from_candidates(
                self._walk_graph, self._trails.arrays, self._weights, *common
            )

    def _walk_with_local_update(self, key: int, eta_beta: NDArray[np.float64]) -> None:
        """Build tours of ACS on one thread, because ants read trails that other ants have just written."""
        p = self.parameters
        xi = p.resolved_xi(self.n_ants)
        period = p.local_update_period if xi > 0.0 else self.instance.n + 1  # xi = 0: no update
        construct.build_tours_acs(
            self._walk_graph,
            self._trails.arrays,
            eta_beta,
            self._rule,
            self._ant_tabus,
            new_streams(key, self.n_ants, STREAM_CONSTRUCTION),
            self._workspaces[0],
            xi,
            self._tau0,
            int(period),
            bool(p.together),
            self.instance.symmetric,
            self._tours,
            self.stop.flag,
        )

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of given tours (m, n); return copies and their exact lengths (m,)."""
        return self._improver.improve(tours, key)

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Replace longer tours by tours (m, n), see ``Accepts``."""
        self._replace_unfinished()
        rows = checks.tours_by_length(tours, lengths, self.instance.n)
        measured = np.array([tour_length(self._graph, tour) for tour in rows])
        for ant, row in replacements(self._lengths, measured):
            self._tours[ant], self._lengths[ant] = rows[row], measured[row]

    def replace_tours(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Replace the tours of the last construction by tours (m, n); return their exact lengths (m,)."""
        self._replace_unfinished()
        self._tours[...] = checks.permutations("tours", tours, self.instance.n)
        self._lengths[...] = [tour_length(self._graph, tour) for tour in self._tours]
        return self._lengths.copy()

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Copy the tours (len(ants), n) of the last construction."""
        numbers = np.asarray(ants, dtype=np.intp)
        tours = self._tours[numbers]
        if self._unfinished is not None:
            unfinished, tour = self._unfinished
            tours[unfinished[numbers]] = tour
        return tours

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``."""
        if self.stop.passed():  # no ant reads these trails in this run
            return
        self._replace_unfinished()
        self._trails.update(update.written_out(self._tours, self._lengths))

    def lengths(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours of the last construction."""
        return self._lengths.copy()

    def trails_of(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Return the trails (e,) of edges (e, 2)."""
        return self._trails.of_edges(edges)

    def set_trails(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges (e, 2), see ``ColonyEngine``."""
        self._trails.set_edges(edges, values)

    def export_state(self) -> State:
        """Return copies of trails, the last tours and tau_0."""
        self._replace_unfinished()
        return {
            **self._trails.export_state(),
            "tau0": np.array([self._tau0]),
            "reference": self._reference.copy(),
            "reference_length": np.array([self._reference_length]),
            "tours": self._tours.copy(),
            "lengths": self._lengths.copy(),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        m, n = self.n_ants, self.instance.n
        trails = self._trails.read_state(state)
        tau0 = stored_numbers(state, "tau0", (1,))
        # zeros before the first construction
        tours = stored_tours(state, "tours", m, n, none=not np.any(state.get("tours", 0)))
        lengths = stored_numbers(state, "lengths", (m,))
        reference = stored_integers(state, "reference", (n, 2), -1, n - 1)
        reference_length = stored_numbers(state, "reference_length", (1,), infinity=True)
        self._trails.import_state(trails)
        self._tau0 = float(tau0[0])
        self._tours[...], self._lengths[...] = tours, lengths
        self._unfinished = None
        self._reference[...], self._reference_length = reference, float(reference_length[0])


def default_ants(n: int, parameters: ColonyParameters) -> int:
    """Return the default colony size."""
    if not parameters.is_searched:
        return usual_ants(n)
    return ANTS_WITH_LOCAL_SEARCH if n < MANY_CITIES else ANTS_ON_MANY_CITIES


def _free_bytes() -> int | None:
    """Return the available memory of the system in bytes, or None if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
