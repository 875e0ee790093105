"""Window search: a round searches thousands of windows of several tours in parallel, then commits their exchanges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, KernelGroup, Source, round_up, words
from pymoo_gpuaco.backends.cuda.instance import DeviceInstance
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import Kind, check_alpha, lists
from pymoo_gpuaco.memetic.commit import LOCAL_ROUNDS, SINGLE_DROP_ROUNDS
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE, MOST_CANDIDATES, scaled_population_size
from pymoo_gpuaco.memetic.penalties import PenalisedCandidates
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.threads import runs_in_progress

MOST_EDGES = 511  # maximum removed edges of an exchange, one per city of a window
ROUNDS_AT_ONCE = 4  # rounds between checks of the deadline
_WARPS = 2  # windows per block, limited by its shared memory
_EXCHANGE_BYTES = 8  # sizeof(WindowExchange) of exchange.cuh
_ROW_BYTES = {"window_removed": 8, "window_added": 8, "window_owners": 4}  # per changed edge
_COMMIT_THREADS = 1024
# Blocks that commit the exchanges of one tour, one per 64 windows, because they synchronise often. A block fills a
# multiprocessor. At most a quarter of the multiprocessors commit, so that groups can become resident: a group fails
# after ten seconds (commit.cu).
_MOST_COMMIT_BLOCKS, _WINDOWS_PER_COMMIT_BLOCK, _MULTIPROCESSORS_PER_COMMIT_BLOCK = 16, 64, 4
_BARRIER_STATE_BYTES = 16 + 4 * _MOST_COMMIT_BLOCKS  # BarrierState of commit.cu

# Cities of a tour per window. Windows have 511 cities: they overlap, and of two exchanges that touch the same city one
# is rejected. Very large instances have one tour, unless the time suffices for several, see ``tours_that_evolve``.
CITIES_PER_WINDOW, FEWEST_CITIES_PER_WINDOW, ONE_TOUR_FROM = 140, 60, 150_000
MOST_TOURS, MOST_TOURS_OF_MANY, MANY = 128, 32, 3000
# Cities of all tours that a host thread can recombine per second of a run with a time limit.
CITIES_THAT_EVOLVE = 18_000.0
# Progress at which the last cycle ends if there are enough tours for recombination, which takes the rest of the run;
# `tours_that_evolve` limits their number accordingly.
END_OF_MANY = 0.7
# Recombination of very many cities is bound by memory.
CITIES_THAT_EVOLVE_OF_VERY_MANY, VERY_MANY = 9_000.0, 500_000
KICKS_PER_SECOND = 2_000.0  # per window on an H200
# Kicks per city, over all tours, below which one tour is better than several, from ``ONE_TOUR_FROM`` cities on.
LEAST_KICKS, LEAST_KICKS_OF_VERY_MANY = 80.0, 500.0

# Minimum gain of partial moves in mean edge lengths, if each city gets few kicks: more kicks in the same time shorten
# tours more than better repair.
MARGIN = 0.2


class Layout(NamedTuple):
    """Number of tours in a batch, and of windows per tour, both >= 1."""

    tours: int
    windows: int

    @classmethod
    def of_tours(cls, tours: int, n: int, in_all: int) -> Layout:
        """Distribute at most ``in_all`` windows over tours of n cities, limited by their overlap."""
        return cls(tours, max(1, min(in_all // tours, n // FEWEST_CITIES_PER_WINDOW)))


def usual_layout(n: int, in_all: int) -> Layout:
    """Return the layout with the number of tours of n cities that ``in_all`` windows can search."""
    cities = CITIES_PER_WINDOW if n < ONE_TOUR_FROM else FEWEST_CITIES_PER_WINDOW
    windows = min(in_all, max(1, n // cities))
    tours = max(1, min(in_all // windows, MOST_TOURS if n < MANY else MOST_TOURS_OF_MANY))
    return Layout.of_tours(tours, n, in_all)


def tours_that_evolve(seconds: float, n: int, threads: int, windows: int) -> int | None:
    """Return the best number of tours in a run of ``seconds``, by host threads (recombination) and windows (annealing).

    Return None if that number is too small; then the usual number is better. The runs of this process share the time.
    """
    seconds /= runs_in_progress()
    very_many = n >= VERY_MANY
    pace = CITIES_THAT_EVOLVE_OF_VERY_MANY if very_many else CITIES_THAT_EVOLVE
    least = 0.0 if n < ONE_TOUR_FROM else LEAST_KICKS_OF_VERY_MANY if very_many else LEAST_KICKS
    wanted = pace * seconds * threads / n
    kicks = KICKS_PER_SECOND * windows * END_OF_MANY * seconds / n
    return int(scaled_population_size(wanted, n)) if wanted >= FEWEST_TO_EVOLVE and kicks >= least else None


def rounds_of_repair(n: int, windows: int) -> int:
    """Return the number of rounds in which the windows of a tour cover every city several times."""
    return 4 + math.ceil(3 * n / (windows * 240))


def window_lists(instance: ListedInstance, candidates: str, k: int = MOST_CANDIDATES) -> NDArray[np.int32]:
    """Return k <= MOST_CANDIDATES candidates of each city; "auto": by quadrant.

    Raises
    ------
    ValueError : alpha-nearness of an instance that has none, see ``check_alpha``.
    """
    kind: Kind = "quadrant" if candidates == "auto" else candidates  # type: ignore[assignment]
    if kind == "alpha":
        check_alpha(instance.symmetric, instance.n)
    return lists(instance, kind, k).ids


def resident(penalties: bool) -> int:
    """Return the number of windows that fit into the shared memory of a multiprocessor."""
    return 14 if penalties else 16


@dataclass(frozen=True)
class Trials:
    """Trials of the windows in a round; lengths in whole units of the search."""

    trials: int  # maximum trials of a window
    move_searches: int = 1 << 29  # after these a window begins no further trial
    overtime: int = 1 << 29  # additional move searches of the current trial
    # search from every city before the first trial, for tours that are not local optima
    all_queued: bool = False
    slack: float = 0.0  # maximum excess of a window over its best length between trials
    temperature: float = 0.0  # 0: a window that ends longer changes nothing
    margin: float = 0.0  # minimum partial gain of partial moves


_IMPROVEMENT = [Trials(trials=2, all_queued=True)] * 8 + [Trials(trials=10)] * 16


class Windows(KernelGroup):
    """Tours ``window_tours`` (tours, n) on the device, and the kernels that find and commit exchanges on them.

    lists : candidates, and penalties if they will be used; ``use`` replaces them.
    nearest : nearest cities (n, ..); half of the windows grow over these, the others over the candidates. Shorter
        lists are repeated to a length of MOST_CANDIDATES.
    scale : see ``float_units``.
    """

    def __init__(
        self,
        device: Device,
        cities: DeviceInstance,
        lists: PenalisedCandidates,
        nearest: NDArray[np.int32],
        scale: float,
        tours: int,
        windows: int,
    ) -> None:
        self._device = device
        self._cities = cities
        self.lists = lists
        self._nearest = nearest
        self._partner = cities.instance.partner
        self.scale = float(scale)
        self.tours = tours
        self.windows = windows  # per tour
        self._most = windows * MOST_EDGES  # maximum changed edges of a tour
        #: if devices share one tour: first window and number of windows of this device
        self.share: tuple[int, int] | None = None
        # blocks per tour that commit its exchanges
        wanted = min(_MOST_COMMIT_BLOCKS, windows // _WINDOWS_PER_COMMIT_BLOCK)
        places = device.limits.multiprocessors // _MULTIPROCESSORS_PER_COMMIT_BLOCK
        self._commit_blocks = max(1, min(wanted, places // tours))
        # in the order of the parameters of search_windows and of commit_exchanges
        self._exchanges = {
            "window_exchanges": _EXCHANGE_BYTES * windows * tours,
            **{name: size * self._most * tours for name, size in _ROW_BYTES.items()},
            "window_edges": 4 * tours,
        }
        self.sources, self.needed = self._files(), self._arrays()

    def _files(self) -> list[Source]:
        """Return the kernels and their definitions."""
        penalised = self.lists.penalties is not None
        search = {
            **self._cities.definitions,
            "NEAR": MOST_CANDIDATES,
            "MOST_EDGES": MOST_EDGES,
            "WARPS": _WARPS,
            "RESIDENT": resident(penalised),
            "SCALED": int(self.scale != 1.0),
            "PENALTIES": int(penalised),
            "FIXED": int(self._partner is not None),
        }
        commit = {
            "THREADS": _COMMIT_THREADS,
            "MOST_BLOCKS": _MOST_COMMIT_BLOCKS,
            "SINGLE_DROP_ROUNDS": SINGLE_DROP_ROUNDS,
            "LOCAL_ROUNDS": LOCAL_ROUNDS,
        }
        kernels = ["commit_exchanges", "lay_out", "find_positions"]
        return [
            Source("windows/search.cu", search, ["search_windows"]),
            Source("windows/commit.cu", commit, kernels),
        ]

    def _arrays(self) -> dict[str, int]:
        """Return the bytes of all arrays."""
        n, tours = self._cities.n, self.tours
        return {
            **self._exchanges,
            "window_states": 4 * self.windows * tours,
            "window_workspace": 128 * tours * round_up(n, 4),
            "window_counts": 4 * tours,
            "window_segments": 16 * self._most * tours,
            "window_near": 4 * MOST_CANDIDATES * n,
            "window_nearest": 4 * MOST_CANDIDATES * n,
            **({"window_penalties": 4 * n} if self.lists.penalties is not None else {}),
            **({"window_partner": 4 * n} if self._partner is not None else {}),
            "window_tours": 4 * n * tours,
            "window_next": 4 * n * tours,
            "window_positions": 4 * n * tours,
            "window_lengths": 8 * tours,
            "window_statistics": 16,
            "window_barriers": _BARRIER_STATE_BYTES * tours,
        }

    def prepare(self) -> None:
        """Upload the lists."""
        self._write_lists("window_nearest", self._nearest)
        if self._partner is not None:
            self._device.write("window_partner", self._partner)
        self.use(self.lists)

    def use(self, lists: PenalisedCandidates) -> None:
        """Use these lists in the next rounds; they have penalties if the first lists had."""
        self.lists = lists
        self._write_lists("window_near", lists.near)
        if lists.penalties is not None:
            self._device.write("window_penalties", lists.penalties)

    def _write_lists(self, name: str, ids: NDArray[np.int32]) -> None:
        whole = ids.shape[1] == MOST_CANDIDATES
        self._device.write(name, ids if whole else ids[:, np.arange(MOST_CANDIDATES) % ids.shape[1]])

    def load(self, tours: NDArray[np.int32]) -> None:
        """Upload tours (tours, n)."""
        self._device.write("window_tours", tours)
        self.find_positions()

    def find_positions(self) -> None:
        """Launch the computation of the positions of all cities."""
        device, a, n = self._device, self._device.arrays, self._cities.n
        device.call("find_positions", self.tours * n, n, self.tours, a["window_tours"], a["window_positions"])

    def load_from(self, tours: Any, first: int, count: int) -> None:
        """Launch a copy of rows ``first`` .. ``first + count - 1`` of device array ``tours`` (m, n), count >= 1.

        The remaining tours become copies of the first of these rows.
        """
        device, a, size = self._device, self._device.arrays, 4 * self._cities.n
        own, given = a["window_tours"], tours + size * first
        device.cuda.memcpy_dtod_async(own, given, size * count)
        device.repeat("window_tours", size, 0, count, self.tours)
        self.find_positions()

    def store_to(self, tours: Any, first: int, count: int) -> None:
        """Launch the copy back to rows ``first`` .. ``first + count - 1`` of device array ``tours`` (m, n)."""
        size = 4 * self._cities.n
        source = self._device.arrays["window_tours"]
        self._device.cuda.memcpy_dtod_async(tours + size * first, source, size * count)

    def read(self) -> NDArray[np.int32]:
        """Return the tours (tours, n)."""
        tours = np.empty((self.tours, self._cities.n), np.int32)
        self._device.read(tours, "window_tours")
        return tours

    def statistics(self) -> NDArray[np.uint64]:
        """Return the numbers of trials and move searches since the start."""
        counted = np.empty(2, np.uint64)
        self._device.read(counted, "window_statistics")
        return counted

    def improve(self, tours: NDArray[np.int32], key: int) -> NDArray[np.int32]:
        """Return improved copies of tours (m, n), any m, searched in batches until the deadline."""
        improved = np.empty_like(tours)
        for first in range(0, len(tours), self.tours):
            batch = tours[first : first + self.tours]
            rows = np.resize(batch, (self.tours, tours.shape[1]))
            self.load(rows)
            for number, how in enumerate(_IMPROVEMENT):
                if self._device.wait_and_check_deadline():
                    break
                self.search(fold_in(key, number, first), how)
            improved[first : first + self.tours] = self.read()[: len(batch)]
        return improved

    def search(self, key: int, how: Trials) -> None:
        """Launch one round: search all windows and commit their exchanges.

        If devices share a tour, it only searches; the caller calls ``gather`` and ``commit``.
        """
        device, a = self._device, self._device.arrays
        first, count = self.share or (0, self.windows)
        a.zero("window_edges", 4 * self.tours)
        names = ("window_near", "window_nearest", "window_penalties", "window_partner", "window_tours")
        inputs = (*map(a.optional, names), a["window_positions"])
        effort = (how.trials, how.move_searches, how.overtime, int(how.all_queued))
        lengths = map(np.float32, (how.slack, how.temperature, how.margin))
        device.launch(
            "search_windows",
            max(1, -(-self.tours * count // _WARPS)),
            32 * _WARPS,
            *self._cities.arguments,
            np.float32(self.scale),
            *inputs,
            *(self.tours, self.windows, first, count),
            *words(key),
            *effort,
            *lengths,
            *(a[name] for name in self._exchanges),
            a["window_statistics"],
        )
        if self.share is None:
            self.commit()

    def wait_for_rows(self) -> int:
        """Wait for the search of a shared tour; return the number of changed edges of this device's windows."""
        rows = np.empty(1, np.int32)
        self._device.read(rows, "window_edges")
        return int(rows[0])

    def gather(self, others: Sequence[tuple[Windows, int]], own_rows: int) -> None:
        """Launch copies of the exchanges of a shared tour from other devices, given with their numbers of edges."""
        rows = own_rows
        for other, count in others:
            assert other.share is not None
            first, windows = other.share
            self._device.copy_from(
                other._device,
                "window_exchanges",
                _EXCHANGE_BYTES * first,
                _EXCHANGE_BYTES * first,
                _EXCHANGE_BYTES * windows,
            )
            for name, size in _ROW_BYTES.items():
                self._device.copy_from(other._device, name, size * rows, 0, size * count)
            rows += count
        self._device.write("window_edges", np.array([rows], np.int32))

    def commit(self) -> None:
        """Launch the commit of all exchanges."""
        device, a, n, blocks = self._device, self._device.arrays, self._cities.n, self._commit_blocks
        a.zero("window_barriers", _BARRIER_STATE_BYTES * self.tours)
        sizes = (blocks, n, self.windows, self._most, a["window_barriers"])
        names = ("window_states", "window_workspace", "window_counts", "window_segments", "fault")
        buffers = (a[name] for name in (*self._exchanges, *names))
        launch = (
            device.launch_together if blocks > 1 else device.launch
        )  # a single block needs no barrier between blocks
        launch("commit_exchanges", blocks * self.tours, _COMMIT_THREADS, *sizes, *buffers)
        names = ("window_counts", "window_segments", "window_tours", "window_next", "window_positions")
        tours = (*(a[name] for name in names), a["window_barriers"])
        device.call("lay_out", self.tours * n, n, self.tours, self._most, *tours)
        a.swap(("window_tours", "window_next"))
