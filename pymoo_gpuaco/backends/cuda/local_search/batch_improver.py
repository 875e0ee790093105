"""Local search of batches: window search after 2-opt and Or-opt, and improvement of tours from the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.local_search.search import Search
from pymoo_gpuaco.backends.cuda.tours.measure import Measure
from pymoo_gpuaco.backends.cuda.windows.plan import (
    nearest_lists,
    rounds_of_repair,
    unit_scale,
    usual_layout,
    window_lists,
)
from pymoo_gpuaco.backends.cuda.windows.windows import ROUNDS_AT_ONCE, Trials, Windows, resident
from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_KICK, LocalSearch
from pymoo_gpuaco.memetic.penalties import Lists
from pymoo_gpuaco.runtime.keys import fold_in

_TRIALS_A_WINDOW = 10  # of a round, as in the memetic search at temperature 0
_TOURS_AT_ONCE = 16  # a tour takes some 160 bytes per city
_REPAIR = Trials(trials=2, all_queued=True)


def make_search(
    device: Device, cities: Cities, how: LocalSearch, candidates: str = "auto", m: int = 0
) -> Search:
    """Create the local search ``how`` with memory for m tours; windows need 8 cities."""
    if how.in_windows and cities.n >= FEWEST_CITIES_TO_KICK:
        return SearchByWindows(device, cities, how, candidates, m)
    return Search(device, cities, how, m)


class SearchByWindows(Search):
    """2-opt and Or-opt, then rounds of window search in batches of at most ``_TOURS_AT_ONCE`` tours."""

    def __init__(self, device: Device, cities: Cities, how: LocalSearch, candidates: str, m: int = 0) -> None:
        super().__init__(device, cities, how, m)
        instance = cities.instance
        tours, windows = usual_layout(instance.n, resident(penalties=False) * device.limits.multiprocessors)
        tours = min(tours, _TOURS_AT_ONCE)
        lists = Lists(window_lists(instance, candidates))
        self._windows = Windows(
            device, cities, lists, nearest_lists(instance), unit_scale(instance), tours, windows
        )
        self.parts.append(self._windows)
        kicks = how.trials_in_windows(instance.n)
        self._rounds = [_REPAIR] * rounds_of_repair(instance.n, windows)
        # the last round has as many windows, but possibly fewer trials
        while kicks > 0:
            self._rounds.append(Trials(trials=min(_TRIALS_A_WINDOW, -(-kicks // windows))))
            kicks -= windows * _TRIALS_A_WINDOW

    def _go_on(self, key: int, tours: Any, m: int, late: Callable[[], bool]) -> None:
        """Launch window search of tours (m, n); kicks draw numbers from ``key`` and a tour's index.

        At the deadline, the remaining tours keep the result of 2-opt and Or-opt.
        """
        windows = self._windows
        for first in range(0, m, windows.tours):
            if first > 0 and late():
                break
            count = min(windows.tours, m - first)
            windows.load_from(tours, first, count)
            for number, how in enumerate(self._rounds):
                if number > 0 and number % ROUNDS_AT_ONCE == 0 and late():
                    break
                windows.search(fold_in(key, number, first), how)
            windows.store_to(tours, first, count)


class BatchImprover(Part):
    """Local search of tours from the host; ``search=None`` only measures."""

    def __init__(self, device: Device, measure: Measure, search: Search | None, n: int) -> None:
        self._device = device
        self._measure = measure
        self._search = search
        self._n = n

    def _reserve(self, m: int) -> None:
        self._device.grow({"given": 4 * m * self._n, "given_lengths": 8 * m})
        self._measure.reserve(m)
        if self._search is not None:
            self._search.reserve(m)

    def improve(self, tours: NDArray[np.int32], key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return improved copies of tours (m, n), which are permutations, and their exact lengths (m,)."""
        m, device = len(tours), self._device
        if m == 0:
            return tours.copy(), np.empty(0)
        self._reserve(m)
        a = device.arrays
        device.write("given", tours)
        if self._search is not None:
            late = partial(device.late, early=True)
            self._search.improve(key, a["given"], m, self._search.kicks, "nothing_known", late)
        self._measure.start(a["given"], m, a["given_lengths"])
        lengths = self._measure.wait(m, early=True).lengths
        result = np.empty_like(tours)
        device.read(result, "given")
        return result, lengths
