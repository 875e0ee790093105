"""Memetic search on several CUDA devices of one host: each anneals a part of the population, or of one tour.

Annealing needs no communication between tours: the population is divided equally among the devices. Very large
instances have one tour, which every device stores. In each round a device searches its share of the windows and copies
the exchanges of the others; then all commit the same exchanges. Recombination of the whole population is on the host.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import permutations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.search_device import CudaWindows
from pymoo_gpuaco.backends.cuda.windows import tours_that_evolve, usual_layout
from pymoo_gpuaco.backends.errors import DeviceFailed
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.schedule import EARLIEST_END, Temperature
from pymoo_gpuaco.runtime.philox import fold_in
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.threads import thread_count

T = TypeVar("T")

# Annealing ends earlier on several devices, since evolution does not get faster with them: on four it may end at .45 of
# a run instead of .6.
EXPONENT_OF_END = -0.2


class MultiGpuDevice:
    """``SearchDevice`` on several CUDA devices.

    Parameters
    ----------
    instance, parameters : see ``CudaWindows``.
    devices : distinct indices of CUDA devices, at least one. The same number of devices of the same type gives the same
        tours for the same seed. A state can be resumed on other devices.

    If a device fails, a warning is issued and the others continue from the tours of the last generation. Errors are
    those of ``CudaWindows``, and DeviceFailed if the last device fails.
    """

    kind: str = "cuda"

    def __init__(
        self,
        instance: ListedInstance,
        parameters: MemeticParameters,
        devices: Sequence[int],
    ) -> None:
        self.instance, self.parameters = instance, parameters
        self._threads = ThreadPoolExecutor(len(devices), "pymoo_gpuaco-device")
        usual = replace(parameters, population_size=None)
        first = CudaWindows(instance, usual, devices[0])  # compiles for all devices
        others = self._threads.map(lambda index: CudaWindows(instance, usual, index, like=first), devices[1:])
        self.cards = [first, *others]
        self.scale, self.graph, self.penalties = first.scale, first.graph, first.penalties
        self.stop = first.stop
        for card in self.cards:
            card.penalties = self.penalties  # computed once
            card.stop = card.device.stop = self.stop
        for card, other in permutations(self.cards, 2):
            with card.working():
                card.device.enable_copies_from(other.device)
        self._lost_trials = 0  # trials of failed devices
        self._tours: NDArray[np.int32] | None = None  # (m, n) loaded or measured last
        self._lengths = np.empty(0)  # (m,) of these tours
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
        count = len(self.cards)
        self.n_tours = m
        shares = [m // count + (card < m % count) for card in range(count)] if m > 1 else [1] * count
        self._first = np.concatenate([[0], np.cumsum(shares)])  # first tour of each device
        self._used = [card for card, share in zip(self.cards, shares, strict=True) if share]
        self._on_each(
            lambda number, card: card.allocate(shares[number], (number, count) if m == 1 else (0, 1))
        )
        plan = self.cards[0].plan_of(m, min(card.plan.kicks for card in self._used))
        self.plan = replace(plan, earliest_end=EARLIEST_END * count**EXPONENT_OF_END)

    def _on_each(self, work: Callable[[int, CudaWindows], Any], launches: bool = False) -> list[Any]:
        """Return the results of ``work`` for each device in use, in parallel unless it only ``launches``.

        Raises _Redistributed if a device has failed.
        """
        failed: list[tuple[CudaWindows, DeviceFailed]] = []

        def one(number: int, card: CudaWindows) -> Any:
            try:
                with card.working():
                    return work(number, card)
            except DeviceFailed as error:
                failed.append((card, error))
                return None

        cards = self._used
        if launches or len(cards) == 1:
            results = [one(number, card) for number, card in enumerate(cards)]
        else:
            results = list(self._threads.map(one, range(len(cards)), cards))
        if failed:
            self._drop_devices(failed)
            raise _Redistributed
        return results

    def _repeated(self, work: Callable[[], T]) -> T:
        """Return ``work()``; repeat it on the remaining devices if one fails."""
        while True:
            with contextlib.suppress(_Redistributed):
                return work()

    def _on_first(self, work: Callable[[CudaWindows], Any]) -> Any:
        """Return the result of ``work`` for the first device, see ``_on_each``."""
        return self._on_each(lambda number, card: work(card) if number == 0 else None, launches=True)[0]

    def _drop_devices(self, failed: list[tuple[CudaWindows, DeviceFailed]]) -> None:
        """Redistribute the tours that were loaded or measured last over the remaining devices."""
        for card, error in failed:
            self.cards.remove(card)
            self._lost_trials += card.n_trials
            if not self.cards or self._tours is None:
                raise error
            left = ", ".join(str(other.device.index) for other in self.cards)
            warnings.warn(
                f"pymoo_gpuaco: {error}; the run continues on device {left} from the tours of the last generation",
                RuntimeWarning,
                stacklevel=2,
            )
        tours = self._tours
        assert tours is not None
        self._distribute(self.n_tours)
        self.load(tours, repaired=True)

    def working(self) -> AbstractContextManager[None]:
        """Return a null context: every call activates the devices that it uses."""
        return contextlib.nullcontext()

    # ---- tours

    def tours_in(self, seconds: float | None) -> int:
        """Return the number of tours that the host can recombine in ``seconds``, at least the usual number."""
        usual = self.parameters.population_size or self._usual_tours()
        if seconds is None or self.parameters.population_size or self.parameters.n_windows:
            return usual
        m = tours_that_evolve(seconds, self.instance.n, thread_count(), self._most_windows) or 0
        m = self._evenly(m) if m > usual else usual

        def fits(number: int, card: CudaWindows) -> bool:
            return card.fits(m // len(self.cards))

        while m > usual and not all(self._repeated(lambda: self._on_each(fits))):
            m = self._evenly(3 * m // 4)
        return max(usual, m)

    def allocate(self, m: int) -> None:
        """Allocate m tours and their windows, and free the previous ones."""
        if m != self.n_tours:
            self._tours = None
            self._distribute(m)

    def first_tour(self) -> NDArray[np.int32]:
        """Return a tour (n,) by greedy edge matching on the instance's lists."""
        return self.cards[0].first_tour()

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Continue from tours (m, n), see ``SearchDevice``."""
        self._tours = tours.copy()

        def load(number: int, card: CudaWindows) -> None:
            card.load(
                tours if self._shares_tour else tours[slice(*self._first[number : number + 2])], repaired
            )

        with contextlib.suppress(_Redistributed):  # which has loaded them
            self._on_each(load)

    def read(self) -> NDArray[np.int32]:
        """Return copies of the tours (m, n)."""
        return self._repeated(self._read)

    def _read(self) -> NDArray[np.int32]:
        if self._shares_tour:
            tours: NDArray[np.int32] = self._on_first(CudaWindows.read)
            return tours
        return np.concatenate(self._on_each(lambda number, card: card.read()))

    def measure(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours."""

        def measure() -> None:
            lengths = self._on_each(lambda number, card: card.measure())  # each also counts its trials
            self._lengths = lengths[0] if self._shares_tour else np.concatenate(lengths)
            self._tours = self._read()  # in the same attempt, so that tours and lengths match

        self._repeated(measure)
        return self._lengths

    def shortest(self) -> NDArray[np.int32]:
        """Return the shortest tour (n,) of those measured last."""
        assert self._tours is not None
        return self._tours[int(self._lengths.argmin())].copy()

    # ---- rounds

    @property
    def repairs_left(self) -> int:
        """Number of ``repair`` rounds before the first kick."""
        return max(card.repairs_left for card in self._used)

    def repair(self, key: int) -> None:
        """Launch a round of local search without kicks."""
        self._launch(key, lambda card, own_key: card.repair(own_key))

    def anneal(self, key: int, temperature: Temperature) -> None:
        """Launch a round of kicks, each followed by its repair."""
        self._launch(key, lambda card, own_key: card.anneal(own_key, temperature))

    def _launch(self, key: int, work: Callable[[CudaWindows, int], None]) -> None:
        with contextlib.suppress(_Redistributed):  # the next round continues from the last generation
            if not self._shares_tour:
                self._on_each(
                    lambda number, card: work(card, fold_in(key, number) if number else key), launches=True
                )
                return
            self._on_each(lambda number, card: work(card, key), launches=True)
            rows = self._on_each(lambda number, card: card.windows.wait_for_rows(), launches=True)
            found = [(card.windows, count) for card, count in zip(self._used, rows, strict=True)]

            def gather(number: int, card: CudaWindows) -> None:
                card.windows.gather(found[:number] + found[number + 1 :], rows[number])

            self._on_each(gather, launches=True)
            self._on_each(lambda number, card: card.wait(), launches=True)  # before any device searches again
            self._on_each(lambda number, card: card.windows.commit(), launches=True)

    def wait(self) -> None:
        """Wait for the launched rounds."""
        with contextlib.suppress(_Redistributed):
            self._on_each(lambda number, card: card.wait(), launches=True)

    def use_penalties(self, repaired: bool) -> None:
        """Use the lists of ``penalties`` in the next rounds, see ``SearchDevice``."""
        with contextlib.suppress(_Redistributed):
            self._on_each(lambda number, card: card.use_penalties(repaired))

    @property
    def n_trials(self) -> int:
        """Number of kicks since the devices were set up."""
        return self._lost_trials + sum(card.n_trials for card in self.cards)

    def improve(self, tours: NDArray[np.int32], key: int) -> None:
        """Improve tours (any number, n) in place, on the first device."""

        def improve() -> None:
            own, shares = self._tours, self._shares_tour
            if shares:
                self._on_first(lambda card: card.allocate(self.n_tours))  # with all windows of this device
            self._on_first(lambda card: card.improve(tours, key))
            if shares:
                self._distribute(self.n_tours)
                if own is not None:
                    self.load(own, repaired=True)

        self._repeated(improve)

    # ---- state

    def export_own(self) -> State:
        """Return the numbers of remaining repair rounds and of rounds until penalties are due."""
        return max(self._used, key=lambda card: card.repairs_left).export_own()

    def read_own(self, state: State | None) -> State:
        """Validate a state of ``export_own``, see ``SearchDevice``."""
        return self.cards[0].read_own(state)

    def import_own(self, own: State) -> None:
        """Continue from a state that ``read_own`` has validated."""
        self._repeated(lambda: self._on_each(lambda number, card: card.import_own(own)))


class _Redistributed(Exception):
    """A device has failed, and the tours have been redistributed over the others."""
