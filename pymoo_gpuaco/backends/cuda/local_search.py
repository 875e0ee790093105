"""Local search of tours on the device: 2-opt and Or-opt, then window search; also of given tours from the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, round_up, words
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance, node_bytes, node_type
from pymoo_gpuaco.backends.cuda.tours import Measure
from pymoo_gpuaco.backends.cuda.windows import (
    ROUNDS_AT_ONCE,
    Trials,
    Windows,
    resident,
    rounds_of_repair,
    usual_layout,
    window_lists,
)
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import (
    CLIMBS,
    FEWEST_CITIES_TO_KICK,
    NEIGHBOURS_WITH_DIRECTION,
    LocalSearch,
    number_of,
)
from pymoo_gpuaco.memetic.penalties import PenalisedCandidates
from pymoo_gpuaco.memetic.units import float_units
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.stop import StoppableEngine

# Maximum neighbours that 2-opt with Or-opt searches: the nearest give nearly all moves. 2-opt alone searches the whole
# list, to repair long edges (section 5.7, Skinderowicz 2020: 32).
SEARCH_NEIGHBOURS = 16
LOG_CAPACITY = 96  # maximum reversals of one kick and its repair, two integers each
BLOCKS_PER_MULTIPROCESSOR = 16  # with tours in global memory
_TRIALS_PER_WINDOW = 10  # in a round, as in the memetic search at temperature 0
_TOURS_AT_ONCE = 16  # maximum tours of a batch of window search, each some 160 bytes per city
_REPAIR = Trials(trials=2, all_queued=True)


def usual_kicks(symmetric: bool) -> float:
    """Return the default number of kicks per city.

    On symmetric instances hundreds of ants replace kicks. On asymmetric instances there are fewer moves, results depend
    more on the start tour, and kicks shorten tours.
    """
    return 0.0 if symmetric else 1.0


def move_definitions(moves: str) -> dict[str, int]:
    """Return the definitions of a kernel's moves, and the codes of all moves."""
    numbers = {f"MOVES_{name.upper().replace('+', '_')}": number_of(name) for name in CLIMBS}
    return {"MOVES": number_of(moves), **numbers}


class Search(KernelGroup):
    """2-opt and Or-opt with neighbour lists (section 4.4, Skinderowicz 2020); or-3opt for asymmetric instances.

    ``reference`` (n, 2): tour neighbours in the shortest tour so far; the search skips its edges. Memory is allocated
    for m tours and enlarged if needed. Rounds of window search follow if ``how`` contains it; it needs 8 cities, and
    ``candidates``: their kind, see ``ColonyParameters``.
    """

    def __init__(
        self,
        device: Device,
        cities: DeviceInstance,
        how: LocalSearch,
        candidates: str | None = None,
        m: int = 0,
    ) -> None:
        self._device = device
        self._cities = cities
        self._directed = not cities.instance.symmetric
        self.reference_length = np.inf
        self.parts: list[KernelGroup] = []  # dependent parts
        n, k = cities.n, cities.instance.k
        usual = k if how.moves == "2opt" else SEARCH_NEIGHBOURS
        self._searched = min(k, NEIGHBOURS_WITH_DIRECTION if self._directed else usual)
        self._longest = max(1, min(how.longest_kick(), (n - 2) // (3 if self._directed else 2)))
        self.kicks = how.number_of_kicks(n, usual_kicks(not self._directed))  #: of a tour
        self._tour_bytes = round_up(8 * LOG_CAPACITY + 4 * -(-n // 32) + 3 * n * node_bytes(n), 16)
        self.in_shared = self._tour_bytes <= device.limits.shared_bytes
        definitions = {
            **cities.definitions,
            "NODE": node_type(n),
            **move_definitions(how.moves),
            "IN_SHARED": int(self.in_shared),
            "DIRECTED": int(self._directed),
            "LOG_CAPACITY": LOG_CAPACITY,
        }
        kernels = ["neighbour_distances", "improve_tours"]
        shared = {"improve_tours": self._tour_bytes if self.in_shared else 0}
        self.sources = [Source("local_search/local_search.cu", definitions, kernels, shared)]
        self.needed = {"near": 4 * n * k, "reference": 8 * n, **self._memory(m)}
        if how.in_windows and candidates is not None and n >= FEWEST_CITIES_TO_KICK:
            self._add_windows(how, candidates)

    def _add_windows(self, how: LocalSearch, candidates: str) -> None:
        """Add window search in batches of at most ``_TOURS_AT_ONCE`` tours."""
        device, instance = self._device, self._cities.instance
        tours, windows = usual_layout(instance.n, resident(penalties=False) * device.limits.multiprocessors)
        tours = min(tours, _TOURS_AT_ONCE)
        lists, near = (
            PenalisedCandidates(window_lists(instance, candidates)),
            window_lists(instance, "nearest"),
        )
        self._windows = Windows(device, self._cities, lists, near, float_units(instance), tours, windows)
        self.parts.append(self._windows)
        kicks = how.trials_in_windows(instance.n)
        self._rounds = [_REPAIR] * rounds_of_repair(instance.n, windows)
        # all rounds have the same number of windows; the last may have fewer trials
        while kicks > 0:
            self._rounds.append(Trials(trials=min(_TRIALS_PER_WINDOW, -(-kicks // windows))))
            kicks -= windows * _TRIALS_PER_WINDOW

    def _blocks(self, m: int) -> int:
        """Return the number of blocks for m tours: one per tour in shared memory."""
        return (
            m if self.in_shared else min(m, BLOCKS_PER_MULTIPROCESSOR * self._device.limits.multiprocessors)
        )

    def _memory(self, m: int) -> dict[str, int]:
        """Return the workspace for m tours, if it is in global memory."""
        return {} if self.in_shared or m == 0 else {"searches": self._blocks(m) * self._tour_bytes}

    def prepare(self) -> None:
        """Compute the float distances (n, k) to the neighbours."""
        a, n, k = self._device.arrays, self._cities.n, self._cities.instance.k
        self.write(np.full((n, 2), -1, np.int32), np.inf)
        cities = self._cities.arguments
        self._device.call("neighbour_distances", n * k, *cities, a["neighbours"], k, a["near"])

    def remember(self, tour: NDArray[np.int32], length: float) -> None:
        """Make a tour the reference if it is the shortest so far."""
        if length < self.reference_length:
            reference = np.zeros((len(tour), 2), np.int32)
            reference[tour] = np.stack([np.roll(tour, 1), np.roll(tour, -1)], axis=1)
            self.write(reference, length)

    def read(self) -> NDArray[np.int32]:
        """Return the reference (n, 2)."""
        reference = np.empty((self._cities.n, 2), np.int32)
        self._device.read(reference, "reference")
        return reference

    def write(self, reference: NDArray[np.int32], length: float) -> None:
        """Set a reference and its length."""
        self._device.write("reference", reference)
        self.reference_length = length

    def improve(
        self,
        key: int,
        tours: Any,
        m: int,
        kicks: int,
        skips_reference: bool = True,
        early: bool = False,
    ) -> None:
        """Launch the search of tours (m, n) on the device: local optima, then ``kicks`` kicks drawn from ``key``.

        The host may halt it, see ``Device.wait``, also for ``early``. Window search ends between its launches.
        """
        self._device.grow(self._memory(m))
        a, k = self._device.arrays, self._cities.instance.k
        lists = (a["neighbours"], a["near"], a["reference"] * skips_reference, k, self._searched)
        numbers = (m, kicks, self._longest, *words(key), self._tour_bytes)
        memory = (a.optional("searches"), a["halt"], tours)
        arguments = (*self._cities.arguments, *lists, *numbers, *memory)
        self._device.launch("improve_tours", self._blocks(m), 32, *arguments)
        if self.parts:
            self._search_windows(key, tours, m, early)

    def _search_windows(self, key: int, tours: Any, m: int, early: bool) -> None:
        """Launch window search of tours (m, n); random numbers depend on ``key`` and the index of the batch.

        After the deadline, the remaining tours are the results of 2-opt and Or-opt.
        """
        windows = self._windows
        for first in range(0, m, windows.tours):
            if first > 0 and self._device.wait_and_check_deadline(early):
                break
            count = min(windows.tours, m - first)
            windows.load_from(tours, first, count)
            for number, how in enumerate(self._rounds):
                if (
                    number > 0
                    and number % ROUNDS_AT_ONCE == 0
                    and self._device.wait_and_check_deadline(early)
                ):
                    break
                windows.search(fold_in(key, number, first), how)
            windows.store_to(tours, first, count)


class TourEngine(StoppableEngine):
    """Base of engines that improve any number of given tours.

    Subclasses set ``_search``; with None, tours are only measured.
    """

    kind: str = "cuda"
    _search: Search | None

    def __init__(self, instance: ListedInstance, device: int) -> None:
        self.instance = instance
        self.device = Device(device)
        self.stop = self.device.stop
        self._cities = DeviceInstance(self.device, instance)
        self._measure = Measure(self.device, self._cities)

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n); return copies and their exact lengths (m,)."""
        rows = checks.permutations("tours", tours, self.instance.n).astype(np.int32)
        m, device = len(rows), self.device
        if m == 0:
            return rows, np.empty(0)
        with device.working():
            device.grow({"given": rows.nbytes, "given_lengths": 8 * m})
            a = device.arrays
            device.write("given", rows)
            if self._search is not None:
                kicks = self._search.kicks
                self._search.improve(key, a["given"], m, kicks, skips_reference=False, early=True)
            lengths = self._measure.run(a["given"], m, a["given_lengths"], early=True).lengths
            device.read(rows, "given")
        return rows, lengths


class CudaImprover(TourEngine):
    """``Improver`` on a CUDA device, compiled once for any number of tours.

    Parameters
    ----------
    instance : the problem with candidate lists.
    search : parameters of the local search.
    device : index of the CUDA device.
    candidates : kind of candidates of window search, see ``ColonyParameters``.

    Errors are those of ``Device``, and ValueError for a search that reverses paths on an asymmetric instance.
    """

    def __init__(
        self, instance: ListedInstance, search: LocalSearch, device: int = 0, candidates: str = "auto"
    ) -> None:
        search.check_for(instance.symmetric)
        super().__init__(instance, device)
        self._search = part = Search(self.device, self._cities, search, candidates)
        self.device.set_up([self._cities, self._measure, part, *part.parts], "fewer tours need less")
