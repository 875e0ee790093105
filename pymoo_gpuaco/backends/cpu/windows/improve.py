"""Window search on a given tour: local search everywhere, then a number of kicks; the tour never gets longer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.windows.search import WindowSearch
from pymoo_gpuaco.backends.cpu.windows.trials import repair_queued, try_out, unload
from pymoo_gpuaco.backends.cpu.windows.window import load, make_window
from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_KICK
from pymoo_gpuaco.memetic.parameters import SHORT_STRETCH
from pymoo_gpuaco.runtime.keys import fold_in
from pymoo_gpuaco.runtime.philox import STREAM_KICKS, new_stream

# Windows or stretches between two checks of the deadline, for any number of threads.
TOGETHER = 8
_TRIALS_AT_ONCE = 512  # between two checks, for a tour in one window


class TourImprover:
    """Improvement of tours in place, one at a time, on all threads.

    A tour that fits into one window is loaded whole; a longer one is searched in windows, no city in two at a time.
    """

    def __init__(self, search: WindowSearch, late: Callable[[], bool]) -> None:
        n = search.instance.n
        self._search = search
        self._late = late  # called often; True ends the search soon, and its result counts
        self._dirty = np.empty(n, np.uint8)
        if search.whole:
            self._window = make_window(n, search.units.candidates.shape[1], search.stop.flag)
            self._number = np.full(n, -1, np.int32)
            self._positions = np.arange(n, dtype=np.int32)

    def improve(self, tour: NDArray[np.int32], trials: int, key: int, number: int) -> None:
        """Improve a tour (n,) by ``trials`` kicks; random numbers depend on ``key`` and the tour's ``number``."""
        self._dirty[:] = 1
        if self._search.whole:
            self._improve_whole(tour, trials, key, number)
        else:
            self._improve_windows(tour, trials, key, number)

    def _improve_whole(self, tour: NDArray[np.int32], trials: int, key: int, number: int) -> None:
        units, w, n = self._search.units, self._window, len(tour)
        stream = new_stream(np.uint64(key), number, STREAM_KICKS)
        load(units, tour, self._positions, n, self._number, w)
        if not self._late():
            repair_queued(units, w, n, self._dirty)
        if n >= FEWEST_CITIES_TO_KICK:
            for first in range(0, trials, _TRIALS_AT_ONCE):
                if self._late():
                    break
                try_out(units, w, n, min(_TRIALS_AT_ONCE, trials - first), 0.0, 0.0, SHORT_STRETCH, stream)
        unload(w, n, tour)

    def _improve_windows(self, tour: NDArray[np.int32], trials: int, key: int, number: int) -> None:
        search, dirty = self._search, self._dirty
        stretches = search.stretches
        for over in (0, stretches):  # the second time across the bounds of the first stretches
            for first in range(0, stretches, TOGETHER):
                if self._late():
                    return
                search.repair_stretches(tour, dirty, over + first, min(TOGETHER, stretches - first))
        kicked = 2 * stretches
        each = -(-trials // kicked)
        for done in range(0, 2 * kicked, TOGETHER):
            if self._late():
                return
            # first windows across the bounds of stretches, then windows with kicks
            kicks = each if done >= kicked else 0
            tour[:], _ = search.round(
                tour,
                dirty,
                done,
                TOGETHER,
                kicks,
                0.0,
                0.0,
                SHORT_STRETCH,
                fold_in(key, done + 1, number),
            )
