"""The ant colony on all cores: it holds the arrays, cuts the work into ranges and calls the compiled functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import acs, construct, selection, workspace
from pymoo_gpuaco.backends.cpu import trails as trail_memory
from pymoo_gpuaco.backends.cpu.improver import MANY_CITIES, CpuImprover
from pymoo_gpuaco.backends.cpu.tabu import Tabu, make_tabu
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.colony.parameters import ColonyParameters, usual_ants
from pymoo_gpuaco.colony.selection import ACS, CODES
from pymoo_gpuaco.colony.trails import HIGHEST_TRAIL, TrailUpdate
from pymoo_gpuaco.host.distances import tour_length
from pymoo_gpuaco.host.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.host.threads import spread, thread_count

# Default colony with local search: a few tours a core already fill the machine.
ANTS_WITH_LOCAL_SEARCH = 24
ANTS_ON_MANY_CITIES = 8  # from 3,000 cities on: a generation is long, and learning needs generations
# Steps or rows that a thread takes on at once, in cities: some milliseconds, after which it asks whether to stop.
_SLICE = 50_000

_MEMORY = {
    "dense": trail_memory.DENSE,
    "candidate": trail_memory.CANDIDATE,
    "selective": trail_memory.SELECTIVE,
}


class CpuColony:
    """``ColonyEngine`` on all cores.

    Parameters
    ----------
    instance : the problem, with candidate lists of the length the parameters ask for.
    parameters : validated; ``n_ants=None`` gives 24 with local search (8 from 3,000 cities on), else
        ``usual_ants``.

    Raises
    ------
    ValueError : for a local search that reverses paths on an asymmetric instance.
    MemoryError : when a dense memory over all cities would not fit; the message says what would.
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
        # over all cities trials read a few numbers a step where a roulette reads all
        selection_rule = parameters.rule("hybrid" if self._all_cities else "rwm")
        memory = parameters.resolved_memory(n)
        self._stop = Stop()
        self._improver = CpuImprover(
            instance, parameters.local_search, self._graph, self._stop, parameters.candidates
        )
        self._check_memory(memory)
        self._rule = construct.Rule(
            selection=CODES[selection_rule.name],
            alpha=float(parameters.alpha),
            beta=float(parameters.beta),
            shortest=instance.least_distance,
            trials=int(parameters.trials),
            switch_left=parameters.switch_left(n),
            tournament_size=parameters.resolved_tournament_size(n),
            q0=float(parameters.q0),
        )
        self._trails = trail_memory.make_trails(
            _MEMORY[memory], self._graph.neighbours, parameters.trails_per_node
        )
        self._tours = np.zeros((self.n_ants, n), np.int32)
        self._lengths = np.zeros(self.n_ants)
        # tour neighbours of the shortest tour so far, where the local search need not look again
        self._reference = np.full((n, 2), -1, np.int32)
        self._reference_length = np.inf
        self._tau0 = 0.0
        self._unfilled: np.float32 | None = None  # what all trails are to be set to before they are read
        self._threads = min(thread_count(), self.n_ants)
        self._tabus = [make_tabu(n) for _ in range(self._threads)]
        self._improver.prepare(self._threads)
        self._greedy: tuple[NDArray[np.int32], float] | None = None
        self._rescued: tuple[NDArray[np.int32], float] | None = None
        self._n_built = self.n_ants
        # which ants (m,) were not home when the last construction had to end, and the tour that stands for theirs
        self._absent: tuple[NDArray[np.bool_], NDArray[np.int32]] | None = None
        # (n, k) of the candidate lists or (n, n) over all cities; made by the first ants, so that time limits them
        self._eta_beta: NDArray[np.float64] | None = None
        k = self._graph.neighbours.shape[1]
        if self._all_cities:
            sums = np.empty((n, n) if selection_rule.sums else (0, 0))
            self._choice = selection.Choice(np.empty((n, n)), sums, np.empty(n))
        else:
            self._weights = np.empty((n, k))
        if self._acs:
            shape = (self.n_ants, n)
            self._ant_tabus = Tabu(
                np.zeros(shape, np.uint8),
                np.zeros(shape, np.int32),
                np.zeros(shape, np.int32),
                np.zeros(self.n_ants, np.int64),
            )

    def _check_memory(self, memory: str) -> None:
        n = self.instance.n
        tables = 3 if self._all_cities else 0  # eta^beta, weights and their sums, 8 bytes each
        needed = n * n * ((4 if memory == "dense" else 0) + 8 * tables)
        free = _free_bytes()
        if free is not None and needed > free:
            instead = (
                "candidate_list_size=32 needs memory in proportion to n"
                if self._all_cities
                else "pheromone='candidate' needs memory in proportion to n"
            )
            raise MemoryError(
                f"{n} cities need {needed / 1e9:.1f} GB for matrices of n x n, {free / 1e9:.1f} GB are free; {instead}"
            )

    def _heuristic(self) -> NDArray[np.float64]:
        """eta^beta where it is made already, else made now; unfinished work is dropped when the time is over.

        eta = distance of the nearest / distance.

        A factor a row changes no choice; with this one no unit and no beta makes it over- or underflow.
        """
        if self._eta_beta is not None:
            return self._eta_beta
        graph, shortest, beta = self._graph, self._rule.shortest, self._rule.beta
        n, k = graph.neighbours.shape
        eta_beta = np.empty((n, n if self._all_cities else k))
        together = max(1, _SLICE // eta_beta.shape[1])

        def rows(_: int, first: int, last: int) -> None:
            for row in range(first, last, together):
                part = slice(row, min(row + together, last))
                near = np.maximum(graph.neighbour_distances[part, :1], shortest)
                if self._all_cities:
                    construct.fill_distances(graph, part.start, part.stop, eta_beta)
                else:
                    eta_beta[part] = graph.neighbour_distances[part]
                with np.errstate(
                    over="ignore", under="ignore"
                ):  # over: only on the diagonal, which no ant reads
                    eta_beta[part] = (near / np.maximum(eta_beta[part], shortest)) ** beta
                if self._stop.flag[0]:
                    break

        self._stop.spread(rows, n, thread_count())
        if not self._stop.raised():
            self._eta_beta = eta_beta
        return eta_beta

    @property
    def n_built(self) -> int:
        """Tours of a construction: one an ant that came home, at least 1."""
        return self._n_built

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start`` and its length."""
        tour = np.empty(self.instance.n, np.int32)
        graph, flag = self._graph, self._stop.flag
        self._stop.lower()
        self._stop.spread(
            lambda *_: construct.nearest_neighbour_tour(graph, start, self._tabus[0], tour, flag), 1, 1
        )
        self._greedy = tour, float(tour_length(graph, tour))
        return tour.copy(), self._greedy[1]

    def stop_at(self, moment: float | None) -> None:
        """End the calls that follow soon after ``time.monotonic()`` shows ``moment``, see ``Stoppable``."""
        self._stop.until = moment

    def rescued(self) -> tuple[NDArray[np.int32], float] | None:
        """Shortest tour of a construction that an interrupt ended, see ``Stoppable``."""
        return self._rescued

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``, which ACS also takes as its tau_0."""
        self._tau0 = float(value)
        self._unfilled = np.float32(value)

    def _fill(self) -> None:
        """Set every trail to what ``reset_trails`` was told, if that is still to do.

        Of all pairs of cities these are gigabytes: so the first ants do it, or whoever else reads trails, and a time
        limit ends it. Who is behind time has no use for trails.
        """
        value = self._unfilled
        if value is None:
            return
        together = max(1, _SLICE // self._trails.tau.shape[1])

        def rows(_: int, first: int, last: int) -> None:
            for row in range(first, last, together):
                if self._stop.flag[0]:
                    break
                trail_memory.fill_rows(self._trails, row, min(row + together, last), value)

        self._stop.spread(rows, self.instance.n, thread_count())
        if not self._stop.raised():
            self._trails.rest[0], self._unfilled = value, None

    @property
    def _laid(self) -> trail_memory.Trails:
        """The trails, every one of them set, whatever the time."""
        if self._unfilled is not None:
            trail_memory.fill(self._trails, self._unfilled)
            self._unfilled = None
        return self._trails

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,)."""
        seed = np.uint64(key)
        self._stop.lower()
        self._rescued = self._absent = None
        self._lengths[:] = np.inf  # until they are home
        try:
            self._fill()
            if self._acs:
                eta_beta = self._heuristic()
                self._stop.spread(lambda *_: self._walk_with_local_update(seed, eta_beta), 1, 1)
            else:
                self._refresh_weights()
            self._stop.spread(
                lambda thread, a, b: self._send_ants(thread, a, b, seed), self.n_ants, self._threads
            )
        except KeyboardInterrupt:
            self._rescued = self._bring_home()
            raise
        tour, length = self._bring_home()
        if length < self._reference_length:
            self._reference_length = length
            workspace.tour_neighbours(tour, self._reference)
        return self._lengths.copy()

    def _send_ants(self, thread: int, first: int, last: int, seed: np.uint64) -> None:
        """Walk and improve, a few ants at a time: those that are home when work is to end count."""
        together = max(1, _SLICE // self.instance.n)
        for ant in range(first, last, together):
            if self._stop.flag[0]:
                break
            end = min(ant + together, last)
            if not self._acs:
                self._walk(thread, ant, end, seed)
            self._improver.work(thread, ant, end, seed, self._tours, self._lengths, self._reference)

    def _bring_home(self) -> tuple[NDArray[np.int32], float]:
        """Shortest tour of the construction, and its length. Ants that were not home when it had to end take it too.

        Where nobody was home in time, it is the nearest-neighbour tour.
        """
        best = int(self._lengths.argmin())
        tour, length = self._tours[best], float(self._lengths[best])
        if length == np.inf:
            tour, length = self.greedy_tour() if self._greedy is None else self._greedy
        absent = self._lengths == np.inf
        self._n_built = max(1, self.n_ants - int(absent.sum()))
        if absent.any():
            self._absent = absent, tour.copy()
            self._lengths[absent] = length
        return tour.copy(), length

    def _write_out(self) -> None:
        """Give absent ants their tour: apart, as it may be gigabytes and most often nobody asks for it."""
        if self._absent is not None:
            absent, tour = self._absent
            self._tours[absent] = tour
            self._absent = None

    def _refresh_weights(self) -> None:
        """Recompute tau^alpha eta^beta."""
        alpha, eta_beta = self._rule.alpha, self._heuristic()

        def rows(first: int, last: int) -> None:
            if not self._all_cities:
                trail_memory.candidate_weights(
                    self._graph, self._trails, alpha, eta_beta, first, last, self._weights
                )
                return
            everyone, prefix, row_max = self._choice
            trail_memory.all_weights(self._trails, alpha, eta_beta, first, last, everyone)
            row_max[first:last] = everyone[first:last].max(axis=1)
            if prefix.size:
                np.cumsum(everyone[first:last], axis=1, out=prefix[first:last])

        together = max(1, _SLICE // eta_beta.shape[1])

        def slices(_: int, first: int, last: int) -> None:
            for row in range(first, last, together):
                if not self._stop.flag[0]:
                    rows(row, min(row + together, last))

        self._stop.spread(slices, self.instance.n, thread_count())

    def _walk(self, thread: int, first: int, last: int, seed: np.uint64) -> None:
        common = (self._rule, self._tabus[thread], seed, first, last, self._tours, self._stop.flag)
        if self._all_cities:
            construct.build_tours_from_all(self._graph, self._trails, self._choice, *common)
        else:
            construct.build_tours_from_candidates(self._graph, self._trails, self._weights, *common)

    def _walk_with_local_update(self, seed: np.uint64, eta_beta: NDArray[np.float64]) -> None:
        """One thread: the ants of ACS read what the others have just written, in a fixed order."""
        p = self.parameters
        xi = p.resolved_xi(self.n_ants)
        period = p.local_update_period if xi > 0.0 else self.instance.n + 1  # xi = 0: no update
        acs.build_tours_acs(
            self._graph,
            self._trails,
            eta_beta,
            self._rule,
            self._ant_tabus,
            seed,
            xi,
            self._tau0,
            int(period),
            bool(p.together),
            self.instance.symmetric,
            self._tours,
            self._stop.flag,
        )

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Local search on any number of given tours (m, n); return copies and their exact lengths (m,)."""
        return self._improver.improve(tours, key)

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Let tours (m, n) take the places of longer ones, see ``Accepts``."""
        self._write_out()
        rows = immigrants.in_order(tours, lengths, self.instance.n)
        measured = np.array([tour_length(self._graph, tour) for tour in rows])
        for ant, row in immigrants.places(self._lengths, measured):
            self._tours[ant], self._lengths[ant] = rows[row], measured[row]

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Copy the tours (len(ants), n) of the last construction."""
        numbers = np.asarray(ants, dtype=np.intp)
        tours = self._tours[numbers]
        if self._absent is not None:
            absent, tour = self._absent
            tours[absent[numbers]] = tour
        return tours

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``."""
        if self._stop.passed():  # nobody will walk on these trails in this run
            return
        self._write_out()
        t, symmetric = self._laid, self.instance.symmetric
        deposits = update.written_out(self._tours, self._lengths).deposits
        amounts = [(np.ascontiguousarray(tour, np.int32), float(amount)) for tour, amount in deposits]
        if update.on_tours_only:
            for tour, amount in amounts:
                trail_memory.blend_tour(t, tour, float(update.rho), amount, symmetric)
            return
        low, rho = float(update.tau_min), float(update.rho)
        high = min(float(update.tau_max), HIGHEST_TRAIL)
        together = max(1, _SLICE // t.tau.shape[1])

        def rows(_: int, first: int, last: int) -> None:
            for row in range(first, last, together):
                if self._stop.passed():
                    break
                trail_memory.evaporate_rows(t, row, min(row + together, last), rho, low, high)

        spread(rows, self.instance.n, thread_count())
        trail_memory.evaporate_rest(t, rho, low, high)
        # what is added comes first: it is cut to tau_max before anything is taken away
        for tour, amount in sorted(amounts, key=lambda pair: pair[1] < 0.0):
            if self._stop.passed():
                break
            trail_memory.deposit(t, tour, amount, low, high, symmetric)

    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours of the last construction."""
        return self._lengths.copy()

    def trails_of(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Trails (e,) of edges (e, 2)."""
        pairs, _ = checks.edge_trails(edges, np.zeros(np.size(edges) // 2), self.instance.n)
        t = self._laid
        slots = trail_memory.slots_of(t, pairs)
        return np.where(slots < 0, t.rest[0], t.tau[pairs[:, 0], slots])

    def set_trails(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges (e, 2), see ``EditsTrails``."""
        pairs, trails = checks.edge_trails(edges, values, self.instance.n)
        for ends in (pairs, pairs[:, ::-1]) if self.instance.symmetric else (pairs,):
            slots = trail_memory.slots_of(self._laid, ends)
            kept = slots >= 0
            self._trails.tau[ends[kept, 0], slots[kept]] = trails[kept]

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        return float(trail_memory.branching_factor(self._graph, self._laid, float(lam)))

    def export_state(self) -> State:
        """Trails, the last tours and tau_0, as copies."""
        self._write_out()
        t = self._laid
        return {
            "tau": t.tau.copy(),
            "ids": t.ids.copy() if t.kind == trail_memory.SELECTIVE else np.empty((0, 0), np.int32),
            "tail": t.tail.copy(),
            "rest": t.rest.copy(),
            "tau0": np.array([self._tau0]),
            "reference": self._reference.copy(),
            "reference_length": np.array([self._reference_length]),
            "tours": self._tours.copy(),
            "lengths": self._lengths.copy(),
        }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        t, m, n = self._trails, self.n_ants, self.instance.n
        tau = stored_numbers(state, "tau", t.tau.shape, np.float32)
        rest = stored_numbers(state, "rest", t.rest.shape, np.float32)
        tau0 = stored_numbers(state, "tau0", (1,))
        tours = stored_tours(state, "tours", m, n)
        lengths = stored_numbers(state, "lengths", (m,))
        reference = stored_integers(state, "reference", (n, 2), -1, n - 1)
        reference_length = stored_numbers(state, "reference_length", (1,), infinity=True)
        if t.kind == trail_memory.SELECTIVE:
            ids = stored_integers(state, "ids", t.ids.shape, -1, n - 1)
            tail = stored_integers(state, "tail", t.tail.shape, 0, t.ids.shape[1] - 1)
            t.ids[...], t.tail[...] = ids, tail
        t.tau[...], t.rest[...], self._tau0, self._unfilled = tau, rest, float(tau0[0]), None
        self._tours[...], self._lengths[...] = tours, lengths
        self._absent = None
        self._reference[...], self._reference_length = reference, float(reference_length[0])


def default_ants(n: int, parameters: ColonyParameters) -> int:
    """Colony size where the user gave none."""
    if parameters.local_search is None:
        return usual_ants(n)
    return ANTS_WITH_LOCAL_SEARCH if n < MANY_CITIES else ANTS_ON_MANY_CITIES


def _free_bytes() -> int | None:
    """Memory the system can still give, or None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None
