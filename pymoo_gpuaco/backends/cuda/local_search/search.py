"""Local search of tours on the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.backends.cuda.device import Device, Part, Source, words
from pymoo_gpuaco.backends.cuda.device.parts import DeviceLimits, round_up
from pymoo_gpuaco.backends.cuda.instance.cities import Cities
from pymoo_gpuaco.backends.cuda.instance.lists import node_bytes, node_type
from pymoo_gpuaco.colony.parameters import CLIMBS, NEIGHBOURS_WITH_DIRECTION, LocalSearch, number_of

# Neighbours that 2-opt with Or-opt searches: the nearest give nearly all moves. 2-opt alone searches the whole list, to
# repair long edges (section 5.7, paper 001: 32).
SEARCH_NEIGHBOURS = 16
LOG_CAPACITY = 96  # reversals of one kick and its repair, two integers each
BLOCKS_A_MULTIPROCESSOR = 16  # with tours in global memory


def _never() -> bool:
    """Never stop."""
    return False


def usual_kicks(symmetric: bool) -> float:
    """Return the default number of kicks per city.

    On symmetric instances hundreds of ants replace kicks. Asymmetric instances have fewer moves, and results depend
    more on the start: there kicks shorten tours.
    """
    return 0.0 if symmetric else 1.0


def move_definitions(moves: str) -> dict[str, int]:
    """Return the definitions of the kernel: its moves, and the codes of all moves."""
    numbers = {f"MOVES_{name.upper().replace('+', '_')}": number_of(name) for name in CLIMBS}
    return {"MOVES": number_of(moves), **numbers}


@dataclass(frozen=True)
class SearchPlan:
    """Plan of the search of tours of n cities, independent of their number."""

    in_shared: bool  # the tour is in shared memory
    tour_bytes: int
    most_blocks: int | None  # None: a block a tour

    def blocks(self, m: int) -> int:
        """Return the number of blocks for m tours."""
        return m if self.most_blocks is None else min(m, self.most_blocks)

    def memory(self, m: int) -> int:
        """Return the bytes of global memory for m tours."""
        return 0 if self.in_shared else self.blocks(m) * self.tour_bytes


def search_plan(n: int, limits: DeviceLimits) -> SearchPlan:
    """Plan the search of tours of n cities."""
    tour_bytes = round_up(8 * LOG_CAPACITY + 4 * -(-n // 32) + 3 * n * node_bytes(n), 16)
    in_shared = tour_bytes <= limits.shared_bytes
    return SearchPlan(
        in_shared, tour_bytes, None if in_shared else BLOCKS_A_MULTIPROCESSOR * limits.multiprocessors
    )


class Search:
    """2-opt and Or-opt with neighbour lists (section 4.4, paper 001); or-3opt for asymmetric instances.

    ``reference`` (n, 2): tour neighbours in the shortest tour so far, whose edges the search skips. ``nothing_known``
    (n, 2): no reference. Memory is allocated for m tours and grows if needed.
    """

    def __init__(self, device: Device, cities: Cities, how: LocalSearch, m: int = 0) -> None:
        self._device = device
        self._cities = cities
        self._how = how
        self._directed = not cities.instance.symmetric
        self.plan = search_plan(cities.n, device.limits)
        self._m = m
        self.reference_length = np.inf
        self.parts: list[Part] = []  # dependent parts

    def sources(self) -> list[Source]:
        """Return the search."""
        definitions = {
            **self._cities.definitions(),
            "NODE": node_type(self._cities.n),
            **move_definitions(self._how.moves),
            "IN_SHARED": int(self.plan.in_shared),
            "DIRECTED": int(self._directed),
            "LOG_CAPACITY": LOG_CAPACITY,
        }
        kernels = ["neighbour_distances", "improve_tours"]
        return [Source("local_search/local_search.cu", definitions, kernels)]

    def needed(self) -> dict[str, int]:
        """Return the bytes of every array."""
        n, k = self._cities.n, self._cities.instance.k
        needed = {"near": 4 * n * k, "reference": 8 * n, "nothing_known": 8 * n}
        if size := self.plan.memory(self._m):
            needed["searches"] = size
        return needed

    def prepare(self) -> None:
        """Compute the float distances (n, k) to the neighbours."""
        a, n, k = self._device.arrays, self._cities.n, self._cities.instance.k
        if self.plan.in_shared:
            self._device.allow_shared("improve_tours", self.plan.tour_bytes)
        nothing = np.full((n, 2), -1, np.int32)
        self._device.write("nothing_known", nothing)
        self.write(nothing, np.inf)
        cities = self._cities.arguments()
        self._device.call("neighbour_distances", n * k, *cities, a["neighbours"], k, a["near"])

    def reserve(self, m: int) -> None:
        """Allocate memory for m tours. Raises MemoryError."""
        if size := self.plan.memory(m):
            self._device.grow({"searches": size})

    def remember(self, tours: Any, ant: int, length: float) -> None:
        """Make tours[ant] the reference if it is the shortest so far."""
        if length < self.reference_length:
            self.reference_length = length
            n = self._cities.n
            self._device.call("tour_neighbours", n, tours, ant, n, self._device.arrays["reference"])

    def read(self) -> NDArray[np.int32]:
        """Return the reference (n, 2)."""
        reference = np.empty((self._cities.n, 2), np.int32)
        self._device.read(reference, "reference")
        return reference

    def write(self, reference: NDArray[np.int32], length: float) -> None:
        """Restore a reference of ``read`` and its length."""
        self._device.write("reference", reference)
        self.reference_length = length

    @property
    def neighbours(self) -> int:
        """Number of nearest neighbours that are searched."""
        k = self._cities.instance.k
        if self._directed:
            return min(k, NEIGHBOURS_WITH_DIRECTION)
        return k if self._how.moves == "2opt" else min(k, SEARCH_NEIGHBOURS)

    @property
    def kicks(self) -> int:
        """Number of kicks of a tour."""
        return self._how.number_of_kicks(self._cities.n, usual_kicks(not self._directed))

    def improve(
        self,
        key: int,
        tours: Any,
        m: int,
        kicks: int,
        reference: str = "reference",
        late: Callable[[], bool] = _never,
    ) -> None:
        """Launch the search of tours (m, n) on the device: local optima, then ``kicks`` kicks drawn from ``key``.

        The host may halt it, see ``Device.wait``. Later stages call ``late`` between their launches, which may wait for
        the launches before; True ends the search.
        """
        self._climb(key, tours, m, kicks, reference)
        self._go_on(key, tours, m, late)

    def _go_on(self, key: int, tours: Any, m: int, late: Callable[[], bool]) -> None:
        """Launch a later stage on the local optima (m, n); none here."""

    def _climb(self, key: int, tours: Any, m: int, kicks: int, reference: str) -> None:
        self.reserve(m)  # again after a failed allocation
        a, plan, how = self._device.arrays, self.plan, self._how
        n, k = self._cities.n, self._cities.instance.k
        self._device.launch(
            "improve_tours",
            plan.blocks(m),
            32,
            *self._cities.arguments(),
            a["neighbours"],
            a["near"],
            a[reference],
            k,
            self.neighbours,
            m,
            kicks,
            max(1, min(how.longest_kick(), (n - 2) // (3 if self._directed else 2))),
            *words(key),
            plan.tour_bytes,
            a.optional("searches"),
            a.address("halt"),
            tours,
            shared=plan.tour_bytes if plan.in_shared else 0,
        )
