"""Local search whose tours go on through window search: some at a time, with no way back over the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pymoo_gpuaco.backends.cuda.device import Device
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.local_search.search import Search
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

_TRIALS_A_WINDOW = 10  # of a round, as in a cool round of the memetic search
_TOURS_AT_ONCE = 16  # at most: each takes some 160 bytes a city beside those of the colony
_REPAIR = Trials(trials=2, all_queued=True)


def make_search(
    device: Device, cities: Cities, how: LocalSearch, candidates: str = "auto", m: int = 0
) -> Search:
    """The search that ``how`` asks for, with memory for m tours; below 8 cities windows have nothing to find."""
    if how.in_windows and cities.n >= FEWEST_CITIES_TO_KICK:
        return SearchByWindows(device, cities, how, candidates, m)
    return Search(device, cities, how, m)


class SearchByWindows(Search):
    """2-opt and Or-opt, then rounds of window search on ``_TOURS_AT_ONCE`` tours or fewer at a time."""

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
        # the last round may be a smaller one, but has as many windows
        while kicks > 0:
            self._rounds.append(Trials(trials=min(_TRIALS_A_WINDOW, -(-kicks // windows))))
            kicks -= windows * _TRIALS_A_WINDOW

    def _go_on(self, key: int, tours: Any, m: int, late: Callable[[], bool]) -> None:
        """Launch: window search of tours (m, n), whose kicks draw from ``key`` and a tour's number.

        Tours that have not had theirs when time is over stay as 2-opt and Or-opt have left them.
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
