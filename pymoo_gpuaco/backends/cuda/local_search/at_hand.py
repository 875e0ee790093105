"""Tours at hand: from the host to the device, improved there, and back."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part
from pymoo_gpuaco.backends.cuda.local_search.search import Search
from pymoo_gpuaco.backends.cuda.tours.measure import Measure


class ToursAtHand(Part):
    """``given`` (m, n) and ``given_lengths`` (m,), taken when tours come; ``search=None`` only measures."""

    def __init__(self, device: Device, measure: Measure, search: Search | None, n: int) -> None:
        self._device = device
        self._measure = measure
        self._search = search
        self._n = n

    def _make_room(self, m: int) -> None:
        self._device.grow({"given": 4 * m * self._n, "given_lengths": 8 * m})
        self._measure.make_room(m)
        if self._search is not None:
            self._search.make_room(m)

    def improve(self, tours: NDArray[np.int32], key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return improved copies of tours (m, n), which are permutations, and their exact lengths (m,)."""
        m, device = len(tours), self._device
        if m == 0:
            return tours.copy(), np.empty(0)
        self._make_room(m)
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
