"""What a device does for the memetic search: it holds tours and searches them by kicks and repairs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.penalties import Penalties
from pymoo_gpuaco.memetic.plan import Heat, Plan
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import Stop


class SearchDevice(Protocol):
    """The parts of the memetic search that differ from device to device; letters: m tours, n cities.

    All but ``working`` are called within it.
    """

    kind: str
    instance: ListedInstance
    graph: Graph  # the same for compiled functions of the host
    plan: Plan
    parameters: MemeticParameters
    stop: Stop  # the search's, which work on the device reads as well
    n_tours: int  # m, size of the population
    scale: float  # whole units of the search a unit of distance

    @property
    def penalties(self) -> Penalties | None:
        """Those that the host finds while rounds are searched; None where they are there from the start."""
        ...

    def working(self) -> AbstractContextManager[None]:
        """Hold the device for the calls that follow."""
        ...

    # ---- tours

    def tours_in(self, seconds: float | None) -> int:
        """Number of tours that suits a run with so many seconds left; None: that is unknown."""
        ...

    def allocate(self, m: int) -> None:
        """Allocate m tours, m from ``tours_in``, and plan for them; those at hand are lost. Other m may be ignored."""
        ...

    def first_tour(self) -> NDArray[np.int32]:
        """Tour (n,) by greedy edge matching, with which a run begins."""
        ...

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Go on from tours (m, n); unless ``repaired``, every city is searched once before the first kick."""
        ...

    def read(self) -> NDArray[np.int32]:
        """Copies of the tours (m, n)."""
        ...

    def measure(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours."""
        ...

    def shortest(self) -> NDArray[np.int32]:
        """The shortest tour (n,) of those measured last."""
        ...

    # ---- rounds

    @property
    def repairs_left(self) -> int:
        """Rounds of ``repair`` to make before the first kick, as far as known; 0 when the tours are repaired."""
        ...

    def repair(self, key: int) -> None:
        """Launch a round without kicks."""
        ...

    def anneal(self, key: int, heat: Heat) -> None:
        """Launch a round of kicks, each followed by its repair."""
        ...

    def wait(self) -> None:
        """Wait for the rounds that have been launched."""
        ...

    def use_penalties(self, repaired: bool) -> None:
        """Search the next rounds by the lists that ``penalties`` has found.

        Unless the tours have been ``repaired`` by these lists, every city is searched once before the next kick.
        """
        ...

    @property
    def n_trials(self) -> int:
        """Kicks made since the device was set up."""
        ...

    def improve(self, tours: NDArray[np.int32], key: int) -> None:
        """Search given tours (any number, n) in place; the device's own stay as they are."""
        ...

    # ---- what else the next round depends on

    def export_own(self) -> State:
        """What a device of this kind needs besides its tours to go on."""
        ...

    def read_own(self, state: State | None) -> State:
        """Check what ``export_own`` gave; None: as for tours that come from elsewhere. ValueError as all readers."""
        ...

    def import_own(self, own: State) -> None:
        """Go on from what ``read_own`` has checked."""
        ...
