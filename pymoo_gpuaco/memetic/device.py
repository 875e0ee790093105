"""Protocol of a device of the memetic search: it stores tours and improves them by kicks and repairs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.penalties import Penalties
from pymoo_gpuaco.memetic.schedule import Plan, Temperature
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import Stop


class SearchDevice(Protocol):
    """Device-dependent part of the memetic search, of m tours of n cities.

    All other methods are called within the context of ``working``.
    """

    kind: str
    instance: ListedInstance
    graph: Graph  # of the instance, for compiled functions of the host
    plan: Plan
    parameters: MemeticParameters
    stop: Stop  # of the search; the device also checks it
    n_tours: int  # m, size of the population
    scale: float  # whole units of the search per unit of distance

    @property
    def penalties(self) -> Penalties | None:
        """Penalties that the host computes while the device searches; None if the device has them from the start."""

    def working(self) -> AbstractContextManager[None]:
        """Activate the device for the calls within the context."""

    # ---- tours

    def tours_in(self, seconds: float | None) -> int:
        """Return the number of tours for a run with ``seconds`` left; None: no deadline."""

    def allocate(self, m: int) -> None:
        """Allocate m tours and plan for them; current tours are lost. A device may ignore m not from ``tours_in``."""

    def first_tour(self) -> NDArray[np.int32]:
        """Return the tour (n,) by greedy edge matching with which a run begins."""

    def load(self, tours: NDArray[np.int32], repaired: bool) -> None:
        """Continue from tours (m, n); unless ``repaired``, local search from every city precedes the first kick."""

    def read(self) -> NDArray[np.int32]:
        """Return copies of the tours (m, n)."""

    def measure(self) -> NDArray[np.float64]:
        """Return the exact lengths (m,) of the tours."""

    def shortest(self) -> NDArray[np.int32]:
        """Return the shortest tour (n,) of the last measurement."""

    # ---- rounds

    @property
    def repairs_left(self) -> int:
        """Estimated number of rounds of ``repair`` before the first kick; 0 if the tours are repaired."""

    def repair(self, key: int) -> None:
        """Launch a round without kicks."""

    def anneal(self, key: int, temperature: Temperature) -> None:
        """Launch a round of kicks, each followed by its repair."""

    def wait(self) -> None:
        """Wait for the launched rounds."""

    def use_penalties(self, repaired: bool) -> None:
        """Use the lists of ``penalties`` in the next rounds.

        Unless the tours are ``repaired`` by these lists, local search from every city precedes the next kick.
        """

    @property
    def n_trials(self) -> int:
        """Number of kicks so far."""

    def improve(self, tours: NDArray[np.int32], key: int) -> None:
        """Search the given tours (any number, n) in place; the tours of the device do not change."""

    # ---- other state

    def export_own(self) -> State:
        """Export the state besides the tours, for a device of the same kind."""

    def read_own(self, state: State | None) -> State:
        """Check a state from ``export_own``; None: of another kind of device. Raises ValueError if it is invalid."""

    def import_own(self, own: State) -> None:
        """Continue from a state checked by ``read_own``."""
