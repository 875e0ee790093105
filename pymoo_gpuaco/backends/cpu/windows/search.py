"""Rounds of windows on one tour, and searches of whole tours, on all cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cpu.windows.cut import cut_windows, place_of, without_fixed_ends
from pymoo_gpuaco.backends.cpu.windows.trials import search_window, unload_stretch
from pymoo_gpuaco.backends.cpu.windows.window import Units, Window, load, make_window
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import FEWEST_CITIES_TO_KICK
from pymoo_gpuaco.memetic.commit import Exchanges, commit
from pymoo_gpuaco.memetic.parameters import SHORT_STRETCH, MemeticParameters
from pymoo_gpuaco.memetic.partition_crossover import difference
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

# Windows or stretches of a given tour between two checks of the deadline, for any number of threads.
_PER_CHECK = 8
_FIRST_KICKS = 5_000  # of the first tour, times its cities; without them short paths are far too long


class Kicks(NamedTuple):
    """Kicks of each window or tour in a round; temperatures are in whole units."""

    trials: int  # number, >= 0
    key: int
    first_temperature: float = 0.0
    last_temperature: float = 0.0
    longest: int = SHORT_STRETCH  # maximum number of cities of a stretch that a kick moves


class WindowSearch:
    """Window search of one engine: windows of its threads, and costs of edges.

    ``stop``, which the caller resets, ends windows within a few trials; changes made before stay in the tours.
    """

    def __init__(
        self,
        instance: ListedInstance,
        units: Units,
        parameters: MemeticParameters,
        stop: Stop | None = None,
        threads: int | None = None,
    ) -> None:
        n = instance.n
        self.instance, self.units, self.parameters = instance, units, parameters
        self.whole = parameters.whole(n)
        self._threads = threads or thread_count()
        self._size = n if self.whole else parameters.cities_per_window(n, self._threads)
        self._windows: list[Window] = []
        self.stop = Stop() if stop is None else stop
        self._numbers: list[NDArray[np.int32]] = []

    def distance(self, i: NDArray[np.int32], j: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return distances in whole units."""
        return np.floor(self.instance.distance(i, j) * self.units.scale + 0.5)

    def _prepare(self, tasks: int) -> int:
        """Allocate a window for each thread; return the number of threads."""
        n, k = self.units.candidates.shape
        threads = min(self._threads, tasks)
        while len(self._windows) < threads:
            self._numbers.append(np.full(n, -1, np.int32))
            self._windows.append(make_window(self._size, k, self.stop.flag))
        return threads

    def _search(self, w: Window, m: int, dirty: NDArray[np.uint8], number: int, kicks: Kicks | None) -> None:
        """Repair m cities and run trials; random numbers depend on the key and the ``number`` of the window."""
        trials, key, first, last, longest = kicks or Kicks(0, 0)
        trials = trials if m >= FEWEST_CITIES_TO_KICK else 0
        search_window(self.units, w, m, dirty, trials, first, last, longest, key, number)

    def search_tours(self, tours: NDArray[np.int32], kicks: Kicks, everything: bool) -> None:
        """Search whole tours (m, n) in place.

        With ``everything``, all cities are repaired first; otherwise the tours must already be repaired.
        """

        def work(thread: int, numbers: Iterator[int]) -> None:
            for t in numbers:
                self._search_whole(thread, tours[t], t, kicks, everything)

        # shared dynamically: a slow thread processes fewer tours
        self.stop.parallel_dynamic(work, len(tours), self._prepare(len(tours)))

    def _search_whole(
        self, thread: int, tour: NDArray[np.int32], number: int, kicks: Kicks, everything: bool
    ) -> None:
        """Search a whole tour (n,) in place; random numbers depend on the key and the ``number`` of the tour."""
        w, n = self._windows[thread], len(tour)
        load(self.units, tour, np.arange(n, dtype=np.int32), n, self._numbers[thread], w)
        self._search(w, n, np.full(n, everything, np.uint8), number, kicks)
        tour[:] = w.city[w.order[:n]]

    def repair(self, tour: NDArray[np.int32]) -> None:
        """Repair all cities of a tour (n,) in place, and kick a few, if it is searched whole: 1 ms, and 2 us a city."""
        if self.whole:
            self.search_tours(tour[None], Kicks(_FIRST_KICKS // len(tour), 0), everything=True)

    @property
    def stretches(self) -> int:
        """Number of stretches of a tour for ``repair_stretches``."""
        return -(-self.instance.n // self._size)

    def repair_stretches(
        self, tour: NDArray[np.int32], dirty: NDArray[np.uint8], first: int, count: int
    ) -> int:
        """Repair stretches ``first`` .. ``first + count - 1`` of a tour in place; return their number.

        Stretches are disjoint windows of one run, so all their changes can be accepted. Those from index ``stretches``
        on cross the bounds of the first ones.
        """
        total = self.stretches
        passes, low = divmod(first, total)
        offset = self.instance.n // total // 2 * (passes % 2)
        return self._search_stretches(tour, dirty, offset, range(low, min(low + count, total)))

    def anneal_stretches(
        self,
        tour: NDArray[np.int32],
        dirty: NDArray[np.uint8],
        first: int,
        count: int,
        kicks: Kicks,
    ) -> int:
        """Anneal at most ``count`` consecutive stretches of a tour in place; return their number.

        The first begins at the centre of window ``first`` of a run. Stretches are disjoint, so all their
        changes are accepted, also those that lengthen the tour.
        """
        offset = place_of(first, self.instance.n)
        return self._search_stretches(tour, dirty, offset, range(min(count, self.stretches)), kicks)

    def _search_stretches(
        self,
        tour: NDArray[np.int32],
        dirty: NDArray[np.uint8],
        offset: int,
        wanted: range,
        kicks: Kicks | None = None,
    ) -> int:
        """Repair ``wanted`` stretches of a tour and run trials in them; stretch 0 begins at position ``offset``."""
        n, total = self.instance.n, self.stretches

        def work(thread: int, begin: int, end: int) -> None:
            w, number = self._windows[thread], self._numbers[thread]
            for s in wanted[begin:end]:
                if self.stop.is_set():
                    break
                positions = ((np.arange(n * s // total, n * (s + 1) // total) + offset) % n).astype(np.int32)
                if self.instance.partner is not None:
                    positions = without_fixed_ends(positions, tour, self.instance.partner)
                m = len(positions)
                load(self.units, tour, positions, m, number, w)
                self._search(w, m, dirty, s, kicks)
                unload_stretch(w, m, tour, positions)

        self.stop.parallel_for(work, len(wanted), self._prepare(len(wanted)))
        return len(wanted)

    def round(
        self,
        tour: NDArray[np.int32],
        dirty: NDArray[np.uint8],
        first: int,
        windows: int,
        kicks: Kicks,
    ) -> tuple[NDArray[np.int32], int]:
        """Search windows ``first`` .. ``first + windows - 1`` of a run and commit their exchanges.

        ``dirty`` (n,) marks cities to repair before kicks; repair clears the marks. Returns the new tour and the number
        of searched windows.
        """
        n = len(tour)
        position = np.empty(n, np.int32)
        position[tour] = np.arange(n, dtype=np.int32)
        lists, partner = self.units.candidates, self.instance.partner
        cuts = cut_windows(
            lists, self._size, tour, position, first, windows, dirty, partner, everywhere=kicks.trials > 0
        )
        orders = [np.empty(len(positions), np.int32) for positions in cuts]

        def work(thread: int, begin: int, end: int) -> None:
            w, number = self._windows[thread], self._numbers[thread]
            for t in range(begin, end):
                m = len(cuts[t])
                if self.stop.is_set():  # loading and storing windows would take long
                    orders[t][:] = np.arange(m)
                    continue
                load(self.units, tour, cuts[t], m, number, w)
                self._search(w, m, dirty, t, kicks)
                orders[t][:] = w.order[:m]

        if not cuts:
            return tour, 0
        self.stop.parallel_for(work, len(cuts), self._prepare(len(cuts)))
        exchanges = self._exchanges(tour, cuts, orders)
        accepted, new = commit(tour, exchanges)
        refused = np.repeat(~accepted, np.diff(exchanges.first))
        dirty[tour[exchanges.removed[refused].ravel()]] = 1
        return new, len(cuts)

    def _exchanges(
        self, tour: NDArray[np.int32], cuts: list[NDArray[np.int32]], orders: list[NDArray[np.int32]]
    ) -> Exchanges:
        """Return the changes of the windows, one exchange per connected component."""
        found = []
        for positions, order in zip(cuts, orders, strict=True):
            cities = tour[positions]
            local = difference(
                np.arange(len(order), dtype=np.int32),
                order,
                lambda i, j, cities=cities: self.distance(cities[i], cities[j]),  # type: ignore[misc]
            )
            found.append((local, positions))
        sizes = np.concatenate([np.diff(local.first) for local, _ in found])
        first = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=first[1:])
        return Exchanges(
            np.concatenate([local.gain for local, _ in found]),
            first,
            np.concatenate([positions[local.removed] for local, positions in found]),
            np.concatenate([positions[local.added] for local, positions in found]),
        )

    def improve(self, tour: NDArray[np.int32], trials: int, key: int, number: int) -> None:
        """Improve a tour (n,) in place by repair of all cities, then ``trials`` kicks; it never gets longer.

        A tour that fits into one window is searched whole, a longer one in disjoint windows. Random numbers depend on
        the key and the number of the tour.
        """
        if self.whole:
            self._prepare(1)
            self._search_whole(0, tour, number, Kicks(trials, key), True)
            return
        dirty, stretches = np.ones(len(tour), np.uint8), self.stretches
        for origin in (0, stretches):  # stretches of the second pass cross the bounds of the first ones
            for first in range(0, stretches, _PER_CHECK):
                if self.stop.ended():
                    return
                self.repair_stretches(tour, dirty, origin + first, min(_PER_CHECK, stretches - first))
        kicked = 2 * stretches
        each = -(-trials // kicked)
        for done in range(0, 2 * kicked, _PER_CHECK):
            if self.stop.ended():
                return
            # windows without kicks first, which cross the bounds of stretches
            kicks = Kicks(each if done >= kicked else 0, fold_in(key, done + 1, number))
            tour[:], _ = self.round(tour, dirty, done, _PER_CHECK, kicks)
