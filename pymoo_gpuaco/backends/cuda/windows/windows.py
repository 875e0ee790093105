"""Rounds of window search over several tours: windows search side by side, their exchanges are committed together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.exchange.many import Found, select_many

NEAR = 8  # neighbours a city that windows look at (NEAR of window.cuh)
MOST_EDGES = 255  # of an exchange (MOST_EDGES of search.cu)
_WARPS = 4  # windows a block
_WINDOW_BYTES = {2: 6464, 3: 8512}  # sizeof(Window), by the axes of a city
_FOUND = np.dtype([("gain", np.float64), ("edges", np.int32), ("first", np.int32)])


@dataclass(frozen=True)
class Trials:
    """How the windows of a round make their trials; lengths in whole units of the search."""

    trials: int  # a window at most
    all_queued: bool = False  # repair every city before the first trial: the tour is no local optimum yet
    longest: int = 50  # cities of a stretch that a kick moves
    walk: int = 12  # steps of the longest walks that gather a window's cities
    around: tuple[int, int] = (3, 12)  # positions before and behind each city that join it
    slack: float = 0.0  # how much longer than its best a window may get in between
    heat: float = 0.0  # temperature; 0: only what is not longer leaves a window
    successes: int = 1 << 30  # a window ends after so many improvements


class Windows:
    """``window_tours`` (tours, n) on the device, and what finds and commits exchanges on them.

    near : (n, NEAR) int32 neighbours, nearest first; -1 where there are fewer.
    scale : whole units a unit of distance.
    """

    def __init__(
        self, device: Device, cities: Cities, near: NDArray[np.int32], scale: float, tours: int, windows: int
    ) -> None:
        self._device = device
        self._cities = cities
        self._near = near
        self._scale = np.float32(scale)
        self.tours = tours
        self.windows = windows  # of each tour
        self._found = np.empty(tours * windows, _FOUND)
        self._owner = np.repeat(np.arange(tours, dtype=np.int32), windows)

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the search and the commit."""
        search = {"search_windows": CITIES + "fPPPPiiIIiiiiiiffiPPPPP"}
        return [
            Source("windows/search.cu", {**self._cities.definitions(), "WARPS": _WARPS}, search),
            Source("windows/commit.cu", {}, {"lay_out": "iiPPPPPP"}),
        ]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, tours, all_windows = self._cities.n, self.tours, self.tours * self.windows
        edges = all_windows * MOST_EDGES
        return {
            "window_near": 4 * n * NEAR,
            "window_weights": 4 * n * NEAR,
            "window_tours": 4 * n * tours,
            "window_next": 4 * n * tours,
            "window_positions": 4 * n * tours,
            "window_found": _FOUND.itemsize * all_windows,
            "window_removed": 8 * edges,
            "window_added": 8 * edges,
            "window_edges": 4,
            "window_statistics": 32,
            "window_begins": 4 * tours,
            "window_counts": 4 * tours,
            "window_segments": 16 * (edges + tours),
        }

    def prepare(self) -> None:
        """Upload the neighbours."""
        self._device.write("window_near", self._near)
        self._device.arrays.zero("window_statistics", 32)

    # ---- tours

    def load(self, tours: NDArray[np.int32]) -> None:
        """Take over tours (tours, n)."""
        positions = np.empty_like(tours)
        np.put_along_axis(positions, tours, np.arange(tours.shape[1], dtype=np.int32)[None, :], axis=1)
        self._device.write("window_tours", tours)
        self._device.write("window_positions", positions)

    def read(self) -> NDArray[np.int32]:
        """Return the tours (tours, n)."""
        tours = np.empty((self.tours, self._cities.n), np.int32)
        self._device.read(tours, "window_tours")
        return tours

    def statistics(self) -> NDArray[np.uint64]:
        """Return trials, looks, cities and windows, all counted from the beginning."""
        counted = np.empty(4, np.uint64)
        self._device.read(counted, "window_statistics")
        return counted

    # ---- rounds

    def search(self, key: int, how: Trials, guided: bool) -> NDArray[np.float64]:
        """One round: search all windows and commit what they found; by how much each tour (tours,) got shorter."""
        device, a = self._device, self._device.arrays
        a.zero("window_edges", 4)
        count = self.tours * self.windows
        size = _WARPS * _WINDOW_BYTES[self._cities.definitions()["DIMENSIONS"]]  # type: ignore[index]
        device.launch(
            "search_windows",
            -(-count // _WARPS),
            32 * _WARPS,
            *self._cities.arguments(),
            self._scale,
            a["window_near"],
            a["window_weights"] if guided else np.intp(0),
            a["window_tours"],
            a["window_positions"],
            self.tours,
            self.windows,
            *words(key),
            how.trials,
            int(how.all_queued),
            how.longest,
            how.walk,
            *how.around,
            np.float32(how.slack),
            np.float32(how.heat),
            how.successes,
            a["window_found"],
            a["window_removed"],
            a["window_added"],
            a["window_edges"],
            a["window_statistics"],
            shared=size,
        )
        device.read(self._found, "window_found")
        return self._commit()

    def _commit(self) -> NDArray[np.float64]:
        device, a, found, n = self._device, self._device.arrays, self._found, self._cities.n
        edges = int(found["edges"].sum())
        if edges == 0:
            return np.zeros(self.tours)
        removed, added = np.empty((edges, 2), np.int32), np.empty((edges, 2), np.int32)
        device.read(removed, "window_removed")
        device.read(added, "window_added")
        exchanges = Found(self._owner, found["gain"], found["edges"], found["first"], removed, added)
        commit = select_many(n, self.tours, exchanges)
        device.write("window_begins", commit.begins)
        device.write("window_counts", commit.counts)
        device.write("window_segments", commit.segments)
        arguments: tuple[Any, ...] = (
            a["window_begins"],
            a["window_counts"],
            a["window_segments"],
            a["window_tours"],
            a["window_next"],
            a["window_positions"],
        )
        device.call("lay_out", self.tours * n, n, self.tours, *arguments)
        a.swap("window_tours", "window_next")
        return commit.gain
