"""Engine of an ant colony on a CUDA device."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import MIN_SECONDS_BEFORE_HALT, DeviceLimits, KernelGroup
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance, ListPlan
from pymoo_gpuaco.backends.cuda.local_search import Search, TourEngine, usual_kicks
from pymoo_gpuaco.backends.cuda.tours import Tours
from pymoo_gpuaco.backends.cuda.trails import Rings, Trails
from pymoo_gpuaco.backends.cuda.walks.acs import RelaxedWalk, SelectiveWalk, SyncWalk
from pymoo_gpuaco.backends.cuda.walks.rules import RuleWalk
from pymoo_gpuaco.backends.cuda.walks.walk import RowWalk, Walk
from pymoo_gpuaco.backends.cuda.weights import WalkContext
from pymoo_gpuaco.backends.errors import BackendUnavailable
from pymoo_gpuaco.candidates.heuristic import with_heuristic
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.nearest_tour import nearest_neighbour_tour
from pymoo_gpuaco.colony.parameters import ColonyParameters, usual_ants
from pymoo_gpuaco.colony.selection import ACS
from pymoo_gpuaco.colony.trails import TrailUpdate, replacements
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours

# Long generations are divided into launches, between which the host checks the deadline, because only some kernels can
# be halted. The slices depend only on instance and parameters: the same seed gives the same tours with and without a
# time limit.
#
# Maximum work of a launch, in steps of walks over candidate lists: an H200 makes 9e9 of them per second
# (benchmarks/results/gpu_iteration.json, fl3795).
STEPS = 1 << 31
# Fewer ants do not fill a large device, and their launch is hardly shorter.
FEWEST_ANTS = 4096
# Other work in steps: cities that a warp evaluates in a step; steps per city of local search (gpu_local_search.json,
# pla7397); steps of a kick and its repair (an estimate).
CITIES_PER_STEP, STEPS_OF_A_SEARCH, STEPS_OF_A_KICK = 32, 13, 128
KICKS = 1 << 14  # maximum kicks of a tour in a launch: they are sequential
# Default ants with local search. A warp improves a tour; several warps per multiprocessor hide latency. Up to
# ``FEW_CITIES`` cities more ants give shorter tours.
ANTS_PER_MULTIPROCESSOR, ANTS_OF_FEW_CITIES, FEW_CITIES = 6, 32, 6000


class Slices(NamedTuple):
    """Division of a generation into launches."""

    ants: int  # per launch; the last launch may have fewer
    kicks: tuple[int, ...]  # of an ant, by launch of the search; the first launch also finds local optima


def slices(n: int, m: int, parameters: ColonyParameters, together: bool, symmetric: bool = True) -> Slices:
    """Divide generations of m ants over n cities; ``together``: synchronous ants, which cannot be divided."""
    search = parameters.local_search
    kicks = 0 if search is None else search.number_of_kicks(n, usual_kicks(symmetric))
    parts = [KICKS] * (kicks // KICKS)
    if kicks % KICKS or not parts:
        parts.append(kicks % KICKS)
    an_ant = n * (1 if parameters.candidate_list_size is not None else -(-n // CITIES_PER_STEP))
    if search is not None:
        an_ant += STEPS_OF_A_SEARCH * n + STEPS_OF_A_KICK * parts[0]
    return Slices(m if together else min(m, max(FEWEST_ANTS, STEPS // an_ant)), tuple(parts))


def default_ants(n: int, parameters: ColonyParameters, limits: DeviceLimits) -> int:
    """Return the default number of ants: a multiple of the multiprocessors with local search, else ``usual_ants``."""
    if not parameters.is_searched:
        return usual_ants(n)
    search = parameters.local_search
    few = n <= FEW_CITIES and search is not None and not search.in_windows
    return (ANTS_OF_FEW_CITIES if few else ANTS_PER_MULTIPROCESSOR) * limits.multiprocessors


class CudaColony(TourEngine):
    """``ColonyEngine`` and ``Stoppable`` on one CUDA device.

    A generation ends early only between its launches, see ``slices``, between rounds of window search, or within
    2-opt and Or-opt, see ``Device.wait``.

    Parameters
    ----------
    instance : the problem, with candidate lists of the length of the parameters.
    parameters : validated; ``n_ants=None``: 32 ants per multiprocessor with local search, 6 above 6,000 cities or with
        window search, and ``usual_ants`` without local search.
    device : index of the CUDA device.

    Errors are those of ``Device``, and BackendUnavailable for parameters that only the CPU engine supports (``lacks``).
    A local search that reverses paths on an asymmetric instance raises ValueError.
    """

    def __init__(self, instance: ListedInstance, parameters: ColonyParameters, device: int = 0) -> None:
        missing = lacks(instance, parameters)
        if missing is not None:
            raise BackendUnavailable(missing)
        if parameters.local_search is not None:
            parameters.local_search.check_for(instance.symmetric)
        super().__init__(instance, device)
        self.parameters = parameters
        self.n_ants = m = parameters.n_ants or default_ants(instance.n, parameters, self.device.limits)
        cities, search = self._cities, parameters.local_search
        self._tours = Tours(self.device, self._measure, m, instance.n)
        together = parameters.selection == ACS and parameters.together
        self._slices = slices(instance.n, m, parameters, together, instance.symmetric)
        ants = self._slices.ants
        weighed = cities  # by whose distances ants weigh edges
        if parameters.heuristic is not None:
            eta = with_heuristic(instance, parameters.heuristic)
            weighed = DeviceInstance(self.device, eta, listed=False, prefix="eta_")
        context = WalkContext(self.device, weighed, replace(parameters, n_ants=m), ants)
        self.trails: Trails | Rings
        self.walk: Walk
        if parameters.memory == "selective":
            rings = Rings(self.device, instance, parameters.trails_per_node)
            self.trails, self.walk = rings, SelectiveWalk(context, rings)
        else:
            dense = parameters.resolved_memory(instance.n) == "dense"
            trails = Trails(self.device, instance, dense)
            self.trails, self.walk = trails, _walk(context, trails)
        self.parts: list[KernelGroup] = [
            cities,
            *([] if weighed is cities else [weighed]),
            self._measure,
            self._tours,
            self.trails,
            *self.walk.parts,
            self.walk,
        ]
        self._search = None
        if search is not None:
            self._search = Search(self.device, cities, search, parameters.candidates, ants)
            self.parts += [self._search, *self._search.parts]
        self._greedy_from_0: NDArray[np.int32] | None = None
        self.device.set_up(self.parts, _advice(parameters, instance.n))
        self.device.ends_early = search is not None
        self._n_finished = m  # ants with complete tours in the current or last construction

    # ---- ColonyEngine

    @property
    def n_built(self) -> int:
        """Number of complete tours of the last construction, at least 1."""
        return max(1, self._n_finished)

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Return the nearest-neighbour tour from city ``start`` (ties: the lower city) and its length."""
        tour = self._greedy(checks.integer("start", start, 0, self.instance.n - 1))
        with self.device.working():
            return tour, self._tours.measure_one(tour)

    def _greedy(self, start: int) -> NDArray[np.int32]:
        """Return the nearest-neighbour tour, built on the host; the one from city 0 is cached."""
        if start > 0 or self._greedy_from_0 is None:
            tour = nearest_neighbour_tour(self.instance.graph, start, self.stop)
            if start > 0:
                return tour
            self._greedy_from_0 = tour
        return self._greedy_from_0.copy()

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``."""
        with self.device.working():
            self.trails.reset(value)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,). ``key`` in [0, 2**64)."""
        began = CLOCK.monotonic()
        with self.device.working():
            self._start(key)
            measured = self._tours.take_next()
            # tours of a halted search are not local optima, as a reference must be
            if self._search is not None and not self.device.halted:
                self._search.remember(measured.tour, float(measured.lengths[measured.shortest]))
        self.device.ends_early = (
            self._search is not None and CLOCK.monotonic() - began >= MIN_SECONDS_BEFORE_HALT
        )
        return measured.lengths.copy()

    def _start(self, key: int) -> None:
        """Launch a construction; the tours of the last construction are unchanged."""
        m = self.n_ants
        self._n_finished = 0
        self.device.halted = False
        for number, first in enumerate(range(0, m, self._slices.ants)):
            if number > 0 and self.device.wait_and_check_deadline():
                break
            self._launch_slice(key, number, first, min(self._slices.ants, m - first))
        if self._n_finished == 0:
            self._tours.fill_next(self._greedy(0))
        elif self._n_finished < m:
            self._tours.repeat_next(self._tours.measure_next(self._n_finished).shortest, self._n_finished)

    def _launch_slice(self, key: int, number: int, first: int, ants: int) -> None:
        """Launch the walk and the search of ants first .. first + ants - 1."""
        tours = self.device.arrays["next_tours"] + 4 * self.instance.n * first
        launches = self._slices.kicks
        number *= len(launches)
        self.walk.build(fold_in(key, number), tours, ants)
        # wait for a long walk: a search must not start on tours of a halted walk
        if self._search is not None and self.device.ends_early:
            self.device.wait()
        if self.device.halted:  # during the walk: no tour is complete
            return
        if self._search is None:
            self._n_finished = first + ants
            return
        for turn, kicks in enumerate(launches):
            if turn > 0 and self.device.wait_and_check_deadline():
                break
            self._search.improve(fold_in(key, number + turn), tours, ants, kicks)
            self._n_finished = first + ants

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Replace longer tours by the given tours (e, n), see ``Accepts``."""
        rows = checks.tours_by_length(tours, lengths, self.instance.n)
        measured = np.array([self.instance.tour_length(tour) for tour in rows])
        taken = replacements(self._tours.lengths, measured)
        if not taken:
            return
        all_tours, own = self.tours(np.arange(self.n_ants)), self._tours.lengths.copy()
        for ant, row in taken:
            all_tours[ant], own[ant] = rows[row], measured[row]
        with self.device.working():
            self._tours.replace(all_tours, own)

    def replace_tours(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Replace the tours of the last construction by tours (m, n); return their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        lengths = self.instance.tour_lengths(rows)
        with self.device.working():
            self._tours.replace(rows, lengths)
        return lengths

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Return the tours (len(ants), n) of the last construction."""
        wanted = np.arange(self.n_ants)[np.asarray(ants, dtype=np.intp)].reshape(-1)
        with self.device.working():
            return self._tours.read(wanted)

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``."""
        with self.device.working():
            self.trails.update(update, self._tours)

    def lengths(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours of the last construction."""
        return self._tours.lengths.copy()

    def trails_of(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Return the trails (e,) of edges (e, 2). Raises ValueError with the selective memory."""
        pairs, _ = checks.edge_trails(edges, np.zeros(np.size(edges) // 2), self.instance.n)
        with self.device.working():
            return self._rows_of_trails().read_edges(pairs)

    def set_trails(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges (e, 2), see ``ColonyEngine``. Raises ValueError with the selective memory."""
        pairs, trails = checks.edge_trails(edges, values, self.instance.n)
        rows = self._rows_of_trails()
        with self.device.working():
            rows.set_edges(pairs, trails)

    def _rows_of_trails(self) -> Trails:
        if not isinstance(self.trails, Trails):
            raise ValueError("single trails can be read and set with memory='dense' or 'candidate' only")
        return self.trails

    def export_state(self) -> State:
        """Return trails, reference of the search, and last tours and lengths, in the format of the CPU engine."""
        search = self._search
        nothing = np.full((self.instance.n, 2), -1, np.int32)
        with self.device.working():
            return {
                **self.trails.read(),
                "reference": nothing if search is None else search.read(),
                "reference_length": np.array([np.inf if search is None else search.reference_length]),
                "tours": self._tours.read_all(),
                "lengths": self._tours.lengths.copy(),
            }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        m, n = self.n_ants, self.instance.n
        # zeros before the first construction
        tours = stored_tours(state, "tours", m, n, none=not np.any(state.get("tours", 0)))
        lengths = stored_numbers(state, "lengths", (m,))
        reference = stored_integers(state, "reference", (n, 2), -1, n - 1)
        reference_length = stored_numbers(state, "reference_length", (1,), infinity=True)
        with self.device.working():
            self.trails.write(state)  # raises before anything changes
            self._tours.replace(tours, lengths)
            if self._search is not None:
                self._search.write(reference, float(reference_length[0]))


def _walk(context: WalkContext, trails: Trails) -> Walk:
    """Return the walk of the parameters."""
    p = context.parameters
    if p.selection == ACS:
        return SyncWalk(context, trails) if p.together else RelaxedWalk(context, trails)
    if p.candidate_list_size is not None or p.selection == "auto":
        return RowWalk(context, trails)
    return RuleWalk(context)


def _advice(parameters: ColonyParameters, n: int) -> str:
    """Return advice for memory errors."""
    if parameters.candidate_list_size is None:
        return "candidate_list_size=32 needs memory in proportion to n"
    if parameters.resolved_memory(n) == "dense":
        return "pheromone='candidate' (memory='candidate') needs memory in proportion to n"
    return "fewer ants (n_ants) need less"


def lacks(instance: ListedInstance, parameters: ColonyParameters) -> str | None:
    """Return a message about parameters that only the CPU engine supports, or None."""
    acs = parameters.selection == ACS
    if parameters.own_rule is not None:
        return "a function as selection runs on the CPU engine alone: backend='cpu'"
    if acs and parameters.candidate_list_size is None:
        return "the CUDA engine's ant colony system needs candidate lists"
    if parameters.memory == "selective" and (not acs or parameters.together):
        return "the CUDA engine has the selective pheromone memory for ACS ants that do not step together"
    if not ListPlan(instance.n, instance.k).countable:
        return (
            "the CUDA engine counts candidates in 32 bits: cities times candidate_list_size, rounded up to a multiple "
            f"of 32, must be below 2^31, got {instance.n} times {instance.k}"
        )
    return None
