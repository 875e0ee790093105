"""Memetic search on several CUDA devices of one host: each anneals a part of the population, or of one tour.

Annealing needs no communication between tours: the population is divided equally among the devices. Very large
instances have one tour, which every device stores. In each round a device searches its share of the windows and copies
the exchanges of the others; then all commit the same exchanges. Recombination of the whole population is on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import count, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.cuda.windows import tours_that_evolve, usual_layout
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.schedule import Temperature
from pymoo_gpuaco.runtime.keys import fold_in
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.threads import thread_count


class CudaCards:
    """``SearchDevice`` on several CUDA devices.

    Parameters
    ----------
    instance, parameters : see ``CudaWindows``.
    devices : distinct indices of CUDA devices, at least one. The same number of devices of the same type gives the same
        tours for the same seed. A state can be resumed on other devices.
    meanwhile : called while the kernels are compiled.

    Errors are those of ``CudaWindows``.
    """

    kind: str = "cuda"

    def __init__(
        self,
        instance: ListedInstance,
        parameters: MemeticParameters,
        devices: Sequence[int],
        meanwhile: Callable[[CudaWindows], object] = lambda windows: None,
    ) -> None:
        self.instance, self.parameters = instance, parameters
        self._threads = ThreadPoolExecutor(len(devices), "pymoo_gpuaco-device")
        usual = replace(parameters, population_size=None)
        first = CudaWindows(instance, usual, devices[0], meanwhile)  # compiles for all devices
        others = self._threads.map(lambda index: CudaWindows(instance, usual, index, like=first), devices[1:])
        self.cards = [first, *others]
        self.scale, self.graph, self.penalties = first.scale, first.graph, first.penalties
        self.stop = first.stop
        for card in self.cards:
            card.penalties = self.penalties  # computed once
            card.stop = card.device.stop = self.stop
        self._lengths = np.empty(0)  # (m,) measured last
        self.n_tours = 0
        self._distribute(parameters.population_size or self._usual_tours())

    # ---- the devices

    @property
    def _most_windows(self) -> int:
        return sum(card.most_windows for card in self.cards)

    def _usual_tours(self) -> int:
        """Return the number of tours that uses all windows of all devices, equally many on each."""
        return self._evenly(usual_layout(self.instance.n, self._most_windows).tours)

    def _evenly(self, m: int) -> int:
        """Round down to a multiple of the number of devices; 1 if they share one tour."""
        if usual_layout(self.instance.n, self.cards[0].most_windows).tours == 1 and m < 2 * len(self.cards):
            return 1
        return max(m - m % len(self.cards), len(self.cards))

    @property
    def _shares_tour(self) -> bool:
        return self.n_tours == 1 and len(self.cards) > 1

    def _distribute(self, m: int) -> None:
        """Distribute m tours over the devices, and allocate them."""
        k = len(self.cards)
        self.n_tours = m
        shares = [m // k + (card < m % k) for card in range(k)] if m > 1 else [1] * k
        self._first = np.concatenate([[0], np.cumsum(shares)])  # first tour of each device
        self._used = [card for card, share in zip(self.cards, shares, strict=True) if share]
        self._on_each(CudaWindows.allocate, shares, [(i, k) if m == 1 else (0, 1) for i in range(k)])
        self.plan = self.cards[0].plan_of(m, min(card.plan.kicks for card in self._used))

    def _on_each(self, work: Callable[..., Any], *values: Iterable[Any]) -> list[Any]:
        """Return the results of ``work(card, *values)`` for each device in use, in parallel."""

        def one(card: CudaWindows, *own: Any) -> Any:
            with card.working():
                return work(card, *own)

        return list(self._threads.map(one, self._used, *values))

    def _launch_on_each(self, work: Callable[..., Any], *values: Iterable[Any]) -> list[Any]:
        """Like ``_on_each`` for work that only launches: one after the other, because a thread would take longer."""
        results = []
        for card, *own in zip(self._used, *values, strict=False):
            with card.working():
                results.append(work(card, *own))
        return results

    def working(self) -> AbstractContextManager[None]:
        """Return a null context: every call activates the devices that it uses."""
        return nullcontext()

    # ---- tours

    def tours_in(self, seconds: float | None) -> int:
        """Return the number of tours that the host can recombine in ``seconds``, at least the usual number."""
        usual = self.parameters.population_size or self._usual_tours()
        if seconds is None or self.parameters.population_size or self.parameters.n_windows:
            return usual
        m = tours_that_evolve(seconds, self.instance.n, thread_count(), self._most_windows) or 0
        m = self._evenly(m) if m > usual else usual
        while m > usual and not all(self._on_each(CudaWindows.fits, repeat(m // len(self.cards)))):
            m = self._evenly(3 * m // 4)
        return max(usual, m)

    def allocate(self, m: int) -> None:
        """Allocate m tours and their windows, and free the previous ones."""
        if m != self.n_tours:
            self._distribute(m)

    def first_tour(self) -> NDArray[np.int32]:
        """Return a tour (n,) by greedy edge matching on the instance's lists."""
        return self.cards[0].first_tour()

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Continue from tours (m, n), see ``SearchDevice``."""
        rows = repeat(tours) if self._shares_tour else np.split(tours, self._first[1:-1])
        self._on_each(CudaWindows.load, rows, repeat(repaired))

    def read(self) -> NDArray[np.int32]:
        """Return copies of the tours (m, n)."""
        return np.concatenate(self._on_each(CudaWindows.read))[: self.n_tours]

    def measure(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours."""
        self._lengths = np.concatenate(self._on_each(CudaWindows.measure))[: self.n_tours]
        return self._lengths

    def shortest(self) -> NDArray[np.int32]:
        """Return the shortest tour (n,) of those measured last."""
        card = np.searchsorted(self._first, self._lengths.argmin(), side="right") - 1
        return self._used[card].shortest()

    # ---- rounds

    @property
    def repairs_left(self) -> int:
        """Number of ``repair`` rounds before the first kick."""
        return max(card.repairs_left for card in self._used)

    def repair(self, key: int) -> None:
        """Launch a round of local search without kicks."""
        self._launch(key, CudaWindows.repair)

    def anneal(self, key: int, temperature: Temperature) -> None:
        """Launch a round of kicks, each followed by its repair."""
        self._launch(key, CudaWindows.anneal, temperature)

    def _launch(self, key: int, work: Callable[..., None], *how: Temperature) -> None:
        own_keys = [key, *(fold_in(key, number) for number in range(1, len(self._used)))]
        self._launch_on_each(work, repeat(key) if self._shares_tour else own_keys, *map(repeat, how))
        if not self._shares_tour:
            return
        rows = self._launch_on_each(lambda card: card.windows.wait_for_rows())
        found = [(card.windows, own) for card, own in zip(self._used, rows, strict=True)]
        self._launch_on_each(
            lambda card, i: card.windows.gather(found[:i] + found[i + 1 :], rows[i]), count()
        )
        self._launch_on_each(CudaWindows.wait)  # before any device searches again
        self._launch_on_each(lambda card: card.windows.commit())

    def wait(self) -> None:
        """Wait for the launched rounds."""
        self._launch_on_each(CudaWindows.wait)

    def use_penalties(self, repaired: bool) -> None:
        """Use the lists of ``penalties`` in the next rounds, see ``SearchDevice``."""
        self._on_each(CudaWindows.use_penalties, repeat(repaired))

    @property
    def n_trials(self) -> int:
        """Number of kicks since the devices were set up."""
        return sum(card.n_trials for card in self.cards)

    def improve(self, tours: NDArray[np.int32], key: int) -> None:
        """Improve tours (any number, n) in place, on the first device."""
        with self.cards[0].working():
            self.cards[0].improve(tours, key)

    # ---- state

    def export_own(self) -> State:
        """Return the numbers of remaining repair rounds and of rounds until penalties are due."""
        return max(self._used, key=lambda card: card.repairs_left).export_own()

    def read_own(self, state: State | None) -> State:
        """Validate a state of ``export_own``, see ``SearchDevice``."""
        return self.cards[0].read_own(state)

    def import_own(self, own: State) -> None:
        """Continue from a state that ``read_own`` has validated."""
        self._on_each(CudaWindows.import_own, repeat(own))
