"""Rounds of window search on several tours: search all windows in parallel, then commit their exchanges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.memetic.penalties import Lists
from pymoo_gpuaco.runtime.keys import fold_in

NEAR = 8  # candidate neighbours of a city (NEAR of window.cuh)
MOST_EDGES = 511  # of an exchange, as many as cities of a window (MOST_EDGES of search.cu)
ROUNDS_AT_ONCE = 4  # between checks of the clock
_WARPS = 2  # windows a block: more would need more shared memory than every block has
_EXCHANGE_BYTES = 8  # WindowExchange of commit.cuh
_ROW_BYTES = {"window_removed": 8, "window_added": 8, "window_owners": 4}  # of a changed edge
_COMMIT_THREADS = 1024
# Blocks that commit the exchanges of one tour, one for every 64 windows: they often synchronise. A block fills a
# multiprocessor. The blocks of all tours use a quarter of the multiprocessors at most: a block whose group is not
# resident, because kernels of other engines run, fails after ten seconds (commit.cuh).
_MOST_COMMIT_BLOCKS, _WINDOWS_A_COMMIT_BLOCK, _MULTIPROCESSORS_A_COMMIT_BLOCK = 16, 64, 4
_BARRIER_STATE_BYTES = 32 + 4 * _MOST_COMMIT_BLOCKS  # BarrierState of commit.cuh


def resident(penalties: bool) -> int:
    """Return the number of windows that fit into the shared memory of a multiprocessor."""
    return 14 if penalties else 16


def window_bytes(axes: int, penalties: bool) -> int:
    """Return the size of ``Window`` (window.cuh); the kernel does not compile with another size."""
    point = 8 if axes == 2 else 16
    of_cities = (MOST_EDGES + 1) * (point + 4 + NEAR + 1 + 2 + 2 + 4 * penalties)
    of_lanes, of_runs = 32 * (8 + 2), 128 * (4 + 2)
    return of_cities + of_lanes + of_runs


@dataclass(frozen=True)
class Trials:
    """Trials of the windows in a round; lengths in whole units of the search."""

    trials: int  # a window at most
    move_searches: int = 1 << 29  # move searches after which a window begins no further trial
    overtime: int = 1 << 29  # move searches that the current trial still gets then
    all_queued: bool = False  # repair every city before the first trial: the tour is not yet a local optimum
    slack: float = 0.0  # excess over its best length that a window may have in between
    temperature: float = 0.0  # 0: a window changes nothing if it ends longer
    margin: float = 0.0  # partial moves continue while their partial gain exceeds this
    successes: int = 1 << 30  # improvements after which a window ends


_IMPROVEMENT = [Trials(trials=2, all_queued=True)] * 8 + [Trials(trials=10)] * 16


class Windows:
    """Tours ``window_tours`` (tours, n) on the device, and the kernels that find and commit exchanges on them.

    lists : candidates, and penalties if they will be used; ``use`` replaces them.
    nearest : (n, NEAR) int32 nearest cities; windows grow over these or over the candidates.
    scale : whole units per unit of distance.
    """

    def __init__(
        self,
        device: Device,
        cities: Cities,
        lists: Lists,
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
        self.windows = windows  # of each tour
        self._most = windows * MOST_EDGES  # capacity for changed edges of a tour
        #: if devices share one tour: the first window of this device and its number of windows
        self.share: tuple[int, int] | None = None

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the search and the commit."""
        cities = self._cities.definitions()
        commit = ["commit_exchanges", "lay_out", "find_positions"]
        together = {
            "THREADS": _COMMIT_THREADS,
            "MOST_BLOCKS": _MOST_COMMIT_BLOCKS,
            "BARRIER_STATE_BYTES": _BARRIER_STATE_BYTES,
        }
        layout = {
            "WARPS": _WARPS,
            "RESIDENT": resident(self._penalised),
            "SCALED": int(self.scale != 1.0),
            "PENALTIES": int(self._penalised),
            "FIXED": int(self._partner is not None),
            "WINDOW_BYTES": self._window_bytes,
            "EXCHANGE_BYTES": _EXCHANGE_BYTES,
        }
        return [
            Source("windows/search.cu", {**cities, **layout}, ["search_windows"]),
            Source("windows/commit.cu", together, commit),
        ]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, tours, windows = self._cities.n, self.tours, self.tours * self.windows
        words = -(-n // 32)
        return {
            "window_near": self.lists.near.nbytes,
            "window_nearest": self._nearest.nbytes,
            **({"window_penalties": 4 * n} if self._penalised else {}),
            **({} if self._partner is None else {"window_partner": 4 * n}),
            "window_tours": 4 * n * tours,
            "window_next": 4 * n * tours,
            "window_positions": 4 * n * tours,
            "window_exchanges": _EXCHANGE_BYTES * windows,
            "window_removed": 8 * windows * MOST_EDGES,
            "window_added": 8 * windows * MOST_EDGES,
            "window_owners": 4 * windows * MOST_EDGES,
            "window_edges": 4 * tours,
            "window_statistics": 32,
            "window_states": 4 * windows,
            "window_barriers": _BARRIER_STATE_BYTES * tours,
            "window_claims": 8 * n * tours,
            "window_bits": 4 * words * tours,
            "window_ranks": 4 * words * tours,
            "window_cuts": 4 * n * tours,
            "window_links": 8 * n * tours,
            "window_link_owners": 8 * n * tours,
            "window_firsts": 4 * n * tours,
            "window_jumps": 32 * n * tours,
            "window_jumped": 32 * n * tours,
            "window_sizes": 8 * n * tours,
            "window_weakest": 16 * n * tours,
            "window_counts": 4 * tours,
            "window_segments": 16 * self._most * tours,
        }

    def prepare(self) -> None:
        """Upload the lists."""
        self._device.write("window_nearest", self._nearest)
        if self._partner is not None:
            self._device.write("window_partner", self._partner)
        self.use(self.lists)
        needed = self.needed()
        for name in ("window_statistics", "window_positions"):
            self._device.arrays.zero(name, needed[name])
        self._clear_marks()

    def _clear_marks(self) -> None:
        """Clear the marks that a failed commit leaves behind."""
        needed = self.needed()
        for name in ("window_claims", "window_bits"):
            self._device.arrays.zero(name, needed[name])
        self._faults = self._device.faults

    @property
    def _penalised(self) -> bool:
        return self.lists.penalties is not None

    @property
    def _commit_blocks(self) -> int:
        """Number of blocks that commit the exchanges of a tour."""
        wanted = min(_MOST_COMMIT_BLOCKS, self.windows // _WINDOWS_A_COMMIT_BLOCK)
        places = self._device.limits.multiprocessors // _MULTIPROCESSORS_A_COMMIT_BLOCK
        return max(1, min(wanted, places // self.tours))

    @property
    def _window_bytes(self) -> int:
        return window_bytes(self._cities.axes, self._penalised)

    def use(self, lists: Lists) -> None:
        """Use these lists in the next rounds; with penalties if the first lists had them."""
        self.lists = lists
        self._device.write("window_near", lists.near)
        if lists.penalties is not None:
            self._device.write("window_penalties", lists.penalties)

    # ---- tours

    def load(self, tours: NDArray[np.int32]) -> None:
        """Upload tours (tours, n)."""
        self._device.write("window_tours", tours)
        self.find_positions()

    def find_positions(self) -> None:
        """Launch the kernel that computes the positions of all cities."""
        device, a, n = self._device, self._device.arrays, self._cities.n
        device.call("find_positions", self.tours * n, n, self.tours, a["window_tours"], a["window_positions"])

    def load_from(self, tours: Any, first: int, count: int) -> None:
        """Launch a copy of tours ``first`` .. ``first + count - 1`` of an array (m, n) on the device, count >= 1.

        Unused rows get copies of the first of them.
        """
        device, a, size = self._device, self._device.arrays, 4 * self._cities.n
        own, given = a.address("window_tours"), int(tours) + size * first
        device.cuda.memcpy_dtod_async(own, given, size * count)
        for slot in range(count, self.tours):
            device.cuda.memcpy_dtod_async(own + size * slot, given, size)
        self.find_positions()

    def store_to(self, tours: Any, first: int, count: int) -> None:
        """Launch a copy of the improved tours back to such an array."""
        size = 4 * self._cities.n
        source = self._device.arrays.address("window_tours")
        self._device.cuda.memcpy_dtod_async(int(tours) + size * first, source, size * count)

    def read(self) -> NDArray[np.int32]:
        """Return the tours (tours, n)."""
        tours = np.empty((self.tours, self._cities.n), np.int32)
        self._device.read(tours, "window_tours")
        return tours

    def statistics(self) -> NDArray[np.uint64]:
        """Return the numbers of trials, move searches, cities and windows since the start."""
        counted = np.empty(4, np.uint64)
        self._device.read(counted, "window_statistics")
        return counted

    def improve(
        self, tours: NDArray[np.int32], key: int, late: Callable[[], bool] | None = None
    ) -> NDArray[np.int32]:
        """Return improved copies of tours (m, n), any m, searched in batches.

        ``late`` is called before each round, after the rounds before have ended; True ends the search.
        """
        improved = np.empty_like(tours)
        for first in range(0, len(tours), self.tours):
            some = tours[first : first + self.tours]
            rows = np.resize(some, (self.tours, tours.shape[1]))
            self.load(rows)
            for number, how in enumerate(_IMPROVEMENT):
                if late is not None:
                    self._device.mark()
                    self._device.wait()
                    if late():
                        break
                self.search(fold_in(key, number, first), how)
            improved[first : first + self.tours] = self.read()[: len(some)]
        return improved

    # ---- rounds

    def search(self, key: int, how: Trials) -> None:
        """Launch one round: search all windows and commit their exchanges.

        If devices share a tour, only search; ``gather`` and ``commit`` follow.
        """
        device, a = self._device, self._device.arrays
        first, count = self.share or (0, self.windows)
        a.zero("window_edges", 4 * self.tours)
        device.launch(
            "search_windows",
            max(1, -(-self.tours * count // _WARPS)),
            32 * _WARPS,
            *self._cities.arguments(),
            np.float32(self.scale),
            a["window_near"],
            a["window_nearest"],
            a.optional("window_penalties"),
            a.optional("window_partner"),
            a["window_tours"],
            a["window_positions"],
            self.tours,
            self.windows,
            first,
            count,
            *words(key),
            how.trials,
            how.move_searches,
            how.overtime,
            int(how.all_queued),
            np.float32(how.slack),
            np.float32(how.temperature),
            np.float32(how.margin),
            how.successes,
            a["window_exchanges"],
            a["window_removed"],
            a["window_added"],
            a["window_owners"],
            a["window_edges"],
            a["window_statistics"],
            shared=_WARPS * self._window_bytes,
        )
        if self.share is None:
            self.commit()

    def wait_for_rows(self) -> int:
        """Wait for the search of a shared tour; return the number of edges that its windows change."""
        rows = np.empty(1, np.int32)
        self._device.read(rows, "window_edges")
        return int(rows[0])

    def gather(self, others: Sequence[tuple[Windows, int]], own_rows: int) -> None:
        """Launch copies of the exchanges of a shared tour from other devices, each with its number of rows."""
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
        if self._faults != device.faults:
            self._clear_marks()
        device.launch(
            "commit_exchanges",
            blocks * self.tours,
            _COMMIT_THREADS,
            blocks,
            n,
            self.windows,
            self._most,
            a["window_barriers"],
            a["window_exchanges"],
            a["window_removed"],
            a["window_added"],
            a["window_owners"],
            a["window_edges"],
            a["window_states"],
            a["window_claims"],
            a["window_bits"],
            a["window_ranks"],
            a["window_cuts"],
            a["window_links"],
            a["window_link_owners"],
            a["window_firsts"],
            a["window_jumps"],
            a["window_jumped"],
            a["window_sizes"],
            a["window_weakest"],
            a["window_counts"],
            a["window_segments"],
            a.address("fault"),
        )
        device.call(
            "lay_out",
            self.tours * n,
            n,
            self.tours,
            self._most,
            a["window_counts"],
            a["window_segments"],
            a["window_tours"],
            a["window_next"],
            a["window_positions"],
            a["window_barriers"],
        )
        a.swap(("window_tours", "window_next"))
