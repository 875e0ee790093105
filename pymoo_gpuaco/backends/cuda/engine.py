"""The CUDA colony: parts on one device, put together as the engine that the algorithms ask."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.backends.cuda import layout
from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.instance.lists import Lists
from pymoo_gpuaco.backends.cuda.search.search import Search
from pymoo_gpuaco.backends.cuda.states import fitting
from pymoo_gpuaco.backends.cuda.tours.tours import Tours
from pymoo_gpuaco.backends.cuda.trails.rings import Rings
from pymoo_gpuaco.backends.cuda.trails.trails import Trails
from pymoo_gpuaco.backends.cuda.walks.acs import RelaxedWalk, SelectiveWalk, SyncWalk
from pymoo_gpuaco.backends.cuda.walks.rules import RULES, RuleWalk
from pymoo_gpuaco.backends.cuda.walks.walk import AllCitiesWalk, Construction, RowWalk, WholeRowWalk
from pymoo_gpuaco.backends.protocol import Kind
from pymoo_gpuaco.backends.state import State
from pymoo_gpuaco.colony import immigrants
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems.instance import Instance


class CudaColony:
    """``AheadEngine`` on one CUDA device.

    Parameters
    ----------
    instance : the problem, with candidate lists of the length the parameters ask for.
    parameters : validated; ``n_ants=None`` gives 6 ants a multiprocessor with local search, else min(n, 4096).
    device : index of the CUDA device.

    Raises
    ------
    BackendUnavailable : without a driver, PyCUDA or nvcc; the message says what to install.
    ValueError : for what this engine does not have and ``backend="cpu"`` has: the selective memory but for ACS ants
        that walk one by one, and local search on asymmetric instances.
    MemoryError : when the colony does not fit the device; the message says what would.
    """

    kind: Kind = "cuda"

    def __init__(self, instance: Instance, parameters: ColonyParameters, device: int = 0) -> None:
        missing = lacks(instance, parameters)
        if missing is not None:
            raise ValueError(f"{missing}; backend='cpu' does")
        self.instance = instance
        self.parameters = parameters
        self._device = Device(device)
        self._layout = plan = layout.plan(instance, parameters, self._device.limits)
        self.n_ants = plan.m
        positive = instance.neighbour_distances[instance.neighbour_distances > 0]
        # eta = 1 / d has no value at d = 0: cities at one place count as half the shortest distance apart
        shortest = float(positive.min()) / 2.0 if positive.size else 1.0
        self._cities = Cities(self._device, instance)
        self._tours = Tours(self._device, self._cities, plan)
        self._lists = Lists(self._device, instance, plan, float(parameters.beta), shortest)
        self._trails: Trails | Rings
        self._construction: Construction
        if plan.selective:
            rings = Rings(self._device, plan, instance.symmetric, parameters.trails_per_node)
            self._trails = rings
            self._construction = SelectiveWalk(self._device, self._cities, rings, plan, parameters, shortest)
        else:
            trails = Trails(self._device, plan, instance.symmetric, _advice(plan))
            self._trails = trails
            if parameters.selection == layout.ACS:
                acs = SyncWalk if parameters.together else RelaxedWalk
                self._construction = acs(self._device, self._cities, trails, plan, parameters, shortest)
            elif plan.all_cities and parameters.selection in RULES:
                self._construction = RuleWalk(self._device, self._cities, plan, parameters, shortest)
            else:
                way = WholeRowWalk if plan.whole else RowWalk if plan.tiered else AllCitiesWalk
                self._construction = way(self._device, self._cities, trails, plan, parameters, shortest)
        self._search = (
            None
            if parameters.local_search is None
            else Search(self._device, self._cities, plan, parameters.local_search)
        )
        parts: list[Part] = [self._cities, self._tours, self._lists, self._trails, self._construction]
        if self._search is not None:
            parts.append(self._search)
        self.parts = tuple(parts)
        self._device.set_up(parts, _advice(plan))
        self._begun: int | None = None  # key of the construction that ``begin`` has started
        # ants of ACS change the trails
        self.works_ahead = False
        if isinstance(self._trails, Trails) and parameters.selection != layout.ACS:
            with self._device.working():
                self.works_ahead = self._trails.make_room_to_hold()

    # ---- AheadEngine

    def begin(self, key: int) -> None:
        """Start ``construct(key)``; results and all else stay the same."""
        with self._device.working():
            self._start(key)
        self._begun = key

    def hold_trails(self) -> None:
        """Keep the trails for ``restore_trails``."""
        assert isinstance(self._trails, Trails)
        with self._device.working():
            self._trails.hold()

    def restore_trails(self) -> None:
        """Bring back what ``hold_trails`` kept."""
        assert isinstance(self._trails, Trails)
        self._begun = None
        with self._device.working():
            self._trails.restore()

    # ---- ColonyEngine

    @property
    def n_built(self) -> int:
        """Tours of a construction: one an ant."""
        return self.n_ants

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start``, ties to the lower number, and its length."""
        with self._device.working():
            neighbours = self._device.arrays["neighbours"]
            self._begun = None
            return self._tours.greedy_tour(neighbours, self._layout.k, int(start))

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``."""
        self._begun = None
        with self._device.working():
            self._trails.reset(value)

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,). ``key`` in [0, 2**64)."""
        with self._device.working():
            if self._begun != key:
                self._start(key)
            self._begun = None
            told = self._tours.take_next()
            if self._search is not None:
                length = float(told.lengths[told.shortest])
                self._search.remember(self._device.arrays["tours"], told.shortest, length)
        return told.lengths.copy()

    def _start(self, key: int) -> None:
        """Launch all of a construction; the tours of the last one stay."""
        a = self._device.arrays
        self._construction.build(key, a["next_tours"])
        if self._search is not None:
            self._search.improve(key, a["next_tours"])
        self._tours.measure(a["next_tours"], self._layout.m, a["next_lengths"])

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Local search on m given tours (m, n); return copies and their exact lengths (m,)."""
        plan = self._layout
        given = fitting({"tours": np.asarray(tours)}, "tours", (plan.m, plan.n), np.int32)
        result = np.empty_like(given)
        self._begun = self._tours.told = None
        with self._device.working():
            self._device.write("tours", given)
            if self._search is not None:
                self._search.forget()
                self._search.improve(key, self._device.arrays["tours"])
            a = self._device.arrays
            self._tours.measure(a["tours"], plan.m, a["lengths"])
            self._tours.lengths = self._tours.wait(plan.m).lengths
            self._device.read(result, "tours")
        return result, self._tours.lengths.copy()

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Let tours (m, n) take the places of longer ones, see ``Accepts``."""
        rows = immigrants.in_order(tours, lengths, self.instance.n)
        measured = np.array([self.instance.tour_length(tour) for tour in rows])
        taken = immigrants.places(self._tours.lengths, measured)
        self._begun = None
        if not taken:
            return
        everyone, own = self.tours(np.arange(self.n_ants)), self._tours.lengths.copy()
        for ant, row in taken:
            everyone[ant], own[ant] = rows[row], measured[row]
        with self._device.working():
            self._device.write("tours", everyone)
            self._device.write("lengths", own)
        self._tours.told, self._tours.lengths = None, own

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Tours (len(ants), n) of the last construction."""
        m, n, told = self._layout.m, self._layout.n, self._tours.told
        chosen = np.asarray(ants, dtype=np.intp)
        if told is not None and chosen.size == 1 and chosen.item() == told.shortest:
            return told.tour[None].copy()
        wanted = np.arange(m)[chosen].reshape(-1)
        found = np.empty((len(wanted), n), np.int32)
        with self._device.working():
            if len(wanted) > 16:
                everyone = np.empty((m, n), np.int32)
                self._device.read(everyone, "tours")
                return everyone[wanted]
            for row, ant in zip(found, wanted, strict=True):
                self._device.read(row, "tours", 4 * n * int(ant))
        return found

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit, see ``TrailUpdate``."""
        self._begun = None
        with self._device.working():
            self._trails.update(update, self._tours)

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        with self._device.working():
            return self._trails.branching_factor(lam)

    def export_state(self) -> State:
        """Trails, the last tours and lengths, in the form of the CPU engine."""
        plan, search = self._layout, self._search
        tours = np.empty((plan.m, plan.n), np.int32)
        with self._device.working():
            self._device.read(tours, "tours")
            return {
                **self._trails.read(),
                "reference": np.full((plan.n, 2), -1, np.int32) if search is None else search.read(),
                "reference_length": np.array([np.inf if search is None else search.reference_length]),
                "tours": tours,
                "lengths": self._tours.lengths.copy(),
            }

    def import_state(self, state: State) -> None:
        """Continue from an exported state of a colony with the same instance and parameters."""
        plan = self._layout
        tours = fitting(state, "tours", (plan.m, plan.n), np.int32)
        lengths = fitting(state, "lengths", (plan.m,), np.float64)
        reference = fitting(state, "reference", (plan.n, 2), np.int32)
        self._begun = None
        with self._device.working():
            self._trails.write(state)
            self._device.write("tours", tours)
            self._device.write("lengths", lengths)
            self._tours.told = None
            self._tours.lengths = lengths.copy()
            if self._search is not None:
                self._search.write(reference, float(np.asarray(state["reference_length"])[0]))


def _advice(plan: layout.Layout) -> str:
    """What to ask for where the memory is short."""
    if plan.all_cities:
        return "candidate_list_size=32 needs memory in proportion to n"
    if plan.dense:
        return "pheromone='candidate' (memory='candidate') needs memory in proportion to n"
    return "fewer ants (n_ants) need less"


def lacks(instance: Instance, parameters: ColonyParameters) -> str | None:
    """What the parameters ask for and only the CPU engine has, or None."""
    acs = parameters.selection == layout.ACS
    if acs and parameters.candidate_list_size is None:
        return "the CUDA engine's ant colony system needs candidate lists"
    if parameters.memory == "selective" and (not acs or parameters.together):
        return "the CUDA engine has the selective pheromone memory for ACS ants that do not step together"
    if parameters.local_search is not None and not instance.symmetric:
        return "the CUDA engine's local search reverses paths and needs a symmetric instance"
    return None
