"""Rounds of window search over several tours: windows search side by side, their exchanges are committed together."""

from __future__ import annotations

from dataclasses import dataclass
import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities

NEAR = 8  # neighbours a city that windows look at (NEAR of window.cuh)
MOST_EDGES = 255  # of an exchange (MOST_EDGES of search.cu)
_WARPS = 4  # windows a block
_WINDOW_BYTES = {2: 7744, 3: 9792}  # sizeof(Window), by the axes of a city
_COMMIT_THREADS = 512


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

    near : (lists, n, NEAR) int32 neighbours, nearest first; -1 where there are fewer. Each window draws a list.
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
        self._most = min(cities.n, windows * MOST_EDGES)  # segments that a tour is cut into

    # ---- Part

    def sources(self) -> list[Source]:
        """Return the search and the commit."""
        search = {"search_windows": CITIES + "fPiPPPiiIIiiiiiiffiPPPPP"}
        commit = {"commit_exchanges": "iiPPPPPPPPPPPPPPPiPPP", "lay_out": "iiiPPPPP"}
        return [
            Source("windows/search.cu", {**self._cities.definitions(), "WARPS": _WARPS}, search),
            Source("windows/commit.cu", {"THREADS": _COMMIT_THREADS}, commit),
        ]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, tours, windows = self._cities.n, self.tours, self.tours * self.windows
        words = -(-n // 32)
        return {
            "window_near": self._near.nbytes,
            "window_weights": 4 * n * NEAR,
            "window_tours": 4 * n * tours,
            "window_next": 4 * n * tours,
            "window_positions": 4 * n * tours,
            "window_found": 16 * windows,
            "window_removed": 8 * windows * MOST_EDGES,
            "window_added": 8 * windows * MOST_EDGES,
            "window_edges": 4,
            "window_statistics": 32,
            "window_states": windows,
            "window_claims": 8 * n * tours,
            "window_bits": 4 * words * tours,
            "window_ranks": 4 * words * tours,
            "window_cuts": 4 * n * tours,
            "window_links": 8 * n * tours,
            "window_owners": 8 * n * tours,
            "window_used": 4 * n * tours,
            "window_jumps": 32 * n * tours,
            "window_jumped": 32 * n * tours,
            "window_sizes": 8 * n * tours,
            "window_weakest": 16 * n * tours,
            "window_counts": 4 * tours,
            "window_segments": 16 * self._most * tours,
            "window_gains": 8 * tours,
        }

    def prepare(self) -> None:
        """Upload the neighbours."""
        self._device.write("window_near", self._near)
        needed = self.needed()
        for name in ("window_statistics", "window_claims", "window_bits"):
            self._device.arrays.zero(name, needed[name])

    # ---- tours

    def load(self, tours: NDArray[np.int32]) -> None:
        """Take over tours (tours, n)."""
        positions = np.empty_like(tours)
        np.put_along_axis(positions, tours, np.arange(tours.shape[1], dtype=np.int32)[None, :], axis=1)
        self._device.write("window_tours", tours)
        self._device.write("window_positions", positions)
        self._device.arrays.zero("window_gains", 8 * self.tours)

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

    def search(self, key: int, how: Trials, guided: bool) -> None:
        """Launch one round: search all windows and commit what they found."""
        device, a, n = self._device, self._device.arrays, self._cities.n
        a.zero("window_edges", 4)
        size = _WARPS * _WINDOW_BYTES[self._cities.definitions()["DIMENSIONS"]]  # type: ignore[index]
        device.launch(
            "search_windows",
            -(-self.tours * self.windows // _WARPS),
            32 * _WARPS,
            *self._cities.arguments(),
            self._scale,
            a["window_near"],
            len(self._near),
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
        device.launch(
            "commit_exchanges",
            self.tours,
            _COMMIT_THREADS,
            n,
            self.windows,
            a["window_found"],
            a["window_removed"],
            a["window_added"],
            a["window_states"],
            a["window_claims"],
            a["window_bits"],
            a["window_ranks"],
            a["window_cuts"],
            a["window_links"],
            a["window_owners"],
            a["window_used"],
            a["window_jumps"],
            a["window_jumped"],
            a["window_sizes"],
            a["window_weakest"],
            self._most,
            a["window_counts"],
            a["window_segments"],
            a["window_gains"],
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
        )
        a.swap("window_tours", "window_next")

    def gains(self) -> NDArray[np.float64]:
        """By how much each tour (tours,) got shorter since the last call; waits for all rounds."""
        gains = np.empty(self.tours)
        self._device.read(gains, "window_gains")
        self._device.arrays.zero("window_gains", 8 * self.tours)
        return gains
