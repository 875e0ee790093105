"""Local search of every ant's tour on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Source, words
from pymoo_gpuaco.backends.cuda.instance.cities import CITIES, Cities
from pymoo_gpuaco.backends.cuda.layout import KICKS_A_CITY, SEARCH_NEIGHBOURS, Layout
from pymoo_gpuaco.colony.parameters import LocalSearch


class Search:
    """2-opt and Or-opt with neighbour lists (section 4.4, paper 001).

    ``reference`` (n, 2) are the tour neighbours in the shortest tour so far: around its edges the search need not
    look again.
    """

    def __init__(self, device: Device, cities: Cities, plan: Layout, how: LocalSearch) -> None:
        self._device = device
        self._cities = cities
        self._plan = plan
        self._how = how
        self.reference_length = np.inf

    def sources(self) -> list[Source]:
        """Return the search."""
        plan = self._plan
        definitions = {
            **self._cities.definitions(),
            "NODE": plan.node,
            "OR_OPT": int(self._how.moves == "2opt+oropt"),
            "IN_SHARED": int(plan.search_in_shared),
        }
        kernels = {"neighbour_distances": CITIES + "PiP", "improve_tours": CITIES + "PPPiiiiiIIqPP"}
        return [Source("search/local_search.cu", definitions, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        plan = self._plan
        needed = {"near": 4 * plan.n * plan.k, "reference": 8 * plan.n}
        if not plan.search_in_shared:
            needed["searches"] = plan.search_blocks * plan.search_bytes
        return needed

    def prepare(self) -> None:
        """Compute the float distances (n, k) to the neighbours."""
        a, plan = self._device.arrays, self._plan
        if plan.search_in_shared:
            self._device.allow_shared("improve_tours", plan.search_bytes)
        self.forget()
        self._device.call(
            "neighbour_distances",
            plan.n * plan.k,
            *self._cities.arguments(),
            a["neighbours"],
            plan.k,
            a["near"],
        )

    def forget(self) -> None:
        """Look around all edges again."""
        self.write(np.full((self._plan.n, 2), -1, np.int32), np.inf)

    def remember(self, tours: Any, ant: int, length: float) -> None:
        """Let tours[ant] be the reference if it is the shortest so far."""
        if length < self.reference_length:
            self.reference_length = length
            n = self._plan.n
            self._device.call("tour_neighbours", n, tours, ant, n, self._device.arrays["reference"])

    def read(self) -> NDArray[np.int32]:
        """Return the reference (n, 2)."""
        reference = np.empty((self._plan.n, 2), np.int32)
        self._device.read(reference, "reference")
        return reference

    def write(self, reference: NDArray[np.int32], length: float) -> None:
        """Take over what ``read`` gave, and the tour's length."""
        self._device.write("reference", reference)
        self.reference_length = length

    def improve(self, key: int, tours: Any) -> None:
        """Launch: tours (m, n) on the device become local optima; kicks draw from ``key``."""
        a, plan, how = self._device.arrays, self._plan, self._how
        self._device.launch(
            "improve_tours",
            plan.search_blocks,
            32,
            *self._cities.arguments(),
            a["neighbours"],
            a["near"],
            a["reference"],
            plan.k,
            min(plan.k, SEARCH_NEIGHBOURS),
            plan.m,
            how.number_of_kicks(plan.n, KICKS_A_CITY),
            max(1, min(int(how.kick_length), (plan.n - 2) // 2)),
            *words(key),
            plan.search_bytes,
            a["searches"],
            tours,
            shared=plan.search_bytes if plan.search_in_shared else 0,
        )
