"""What a device does for focused ants: it holds tours, searches windows of them and applies what was found."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.host.state import State
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.search.penalties import Penalties
from pymoo_gpuaco.search.plan import Heat, Plan


class SearchDevice(Protocol):
    """The parts of a focused colony that differ from device to device; letters: m tours, n cities, k candidates.

    All but ``working`` are called within it.
    """

    kind: str
    instance: ListedInstance
    graph: Graph  # the same for compiled functions of the host
    plan: Plan
    stop: Stop  # the colony's, which work on the device reads as well
    n_ants: int  # tours or windows searched at a time
    n_tours: int  # m, tours at hand
    scale: float  # whole units of the search a unit of distance
    candidates: NDArray[np.int32]  # (n, k) cities to which trails lead

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

    def weigh(self) -> None:
        """Let ants follow the trails as they are now."""
        ...

    def repair(self, key: int) -> int:
        """Launch a round without kicks; return the ants that it has sent."""
        ...

    def anneal(self, key: int, heat: Heat) -> int:
        """Launch a round of kicks, each followed by its repair; return the ants that it has sent."""
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

    # ---- trails

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``."""
        ...

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit; all deposits are ``update.deposits``."""
        ...

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city with a trail above min + lam (max - min)."""
        ...

    def trails(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Copies of the trails (n, k) on ``candidates``, and of that (1,) of all other edges."""
        ...

    def set_trails(self, tau: NDArray[np.float32], default_trail: NDArray[np.float32]) -> None:
        """Go on from what ``trails`` gave."""
        ...

    # ---- what else the next round depends on

    def snapshot(self) -> State:
        """Copies of all that a round changes, for ``restore`` after an interrupt; empty where rounds end whole."""
        ...

    def restore(self, snapshot: State) -> None:
        """Be as before the rounds since ``snapshot``."""
        ...

    def export_own(self) -> State:
        """What a device of this kind needs besides tours and trails to go on."""
        ...

    def read_own(self, state: State | None) -> State:
        """Check what ``export_own`` gave; None: as for tours that come from elsewhere. ValueError as all readers."""
        ...

    def import_own(self, own: State) -> None:
        """Go on from what ``read_own`` has checked."""
        ...
