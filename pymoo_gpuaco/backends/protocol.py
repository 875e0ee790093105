"""What an engine can do, as small roles. Engines know arrays and parameters; they import no pymoo.

An engine is built from an ``Instance`` and parameters, keeps its tours and trails to itself, and hands out what is
asked for as numpy arrays on the host. All randomness comes from the 64-bit key of each call, so a run is repeated
by repeating its keys, and the exported state needs no generator.

Every array that comes in is checked before anything changes (``colony/checks.py``, ``backends/state.py``): tours must
be permutations of 0 .. n-1, trails finite and >= 0; ValueError says what is wrong.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.fronts.archive import Archive
from pymoo_gpuaco.fronts.instance import FrontInstance
from pymoo_gpuaco.host.state import State


@runtime_checkable
class Engine(Protocol):
    """What all engines tell about themselves."""

    kind: str
    instance: ListedInstance


@runtime_checkable
class Improver(Protocol):
    """Local search on tours at hand; an engine's own tours and trails stay as they are."""

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n), m >= 0; return copies and their exact lengths (m,).

        Row i depends on itself, the key and i alone. Raises ValueError unless rows are permutations of 0 .. n-1.
        """
        ...


@runtime_checkable
class Trails(Protocol):
    """Pheromone, which an engine's own ants follow."""

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``; ACS pulls trails back towards it (tau_0)."""
        ...

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit."""
        ...

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city whose trail exceeds min + lam (max - min) of its candidates."""
        ...


@runtime_checkable
class EditsTrails(Protocol):
    """Lets single trails be read and set, and tells how long its ants' tours are.

    Edges (e, 2) are pairs of different cities; where direction is free, (i, j) and (j, i) are one edge.
    """

    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours of the last construction, as ``tours`` hands them out."""
        ...

    def trails_of(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Trails (e,) of edges; those that the memory keeps none of have what all such edges share."""
        ...

    def set_trails(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges, none listed twice, to ``values`` (e,); edges that the memory keeps none of stay.

        Raises ValueError, before anything changes, for cities out of range and values that are negative or not finite.
        """
        ...


@runtime_checkable
class Stateful(Protocol):
    """Can be put away as plain arrays and go on elsewhere."""

    def export_state(self) -> State:
        """Everything that the next call depends on."""
        ...

    def import_state(self, state: State) -> None:
        """Continue from an exported state, of this engine kind or the other.

        Raises ValueError, before anything changes, for arrays that are missing, of another shape, or not what they
        should be: cities out of range, trails that are negative or not finite.
        """
        ...


@runtime_checkable
class Accepts(Protocol):
    """Takes in good tours from outside: a user's, another island's."""

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Take in tours (m, n), m >= 0, the shortest first where there is no room for all.

        ``lengths`` (m,) are what the sender measured, finite, in any unit: they order the tours. What the engine keeps
        it measures itself. A colony whose ants build from nothing lets them take the places of its longest tours
        where they are shorter, so that they count in deposits by rank and by the colony until the next construction.
        A colony whose ants change tours merges them into the best.
        """
        ...


@runtime_checkable
class Stoppable(Protocol):
    """Ends a call early, in a fraction of a second: what is finished by then counts.

    A call that runs to its end gives the same whether it could have been stopped or not.
    """

    def stop_at(self, moment: float | None) -> None:
        """Let the calls that follow end soon after ``time.monotonic()`` shows ``moment``; None: as late as they like.

        They then return as ever: ants that were not home take the best tour that was, or the nearest-neighbour tour,
        and ``n_built`` does not count them.
        """
        ...

    def rescued(self) -> tuple[NDArray[np.int32], float] | None:
        """Shortest tour, and its exact length, of a ``construct`` or ``climb`` that a KeyboardInterrupt ended.

        None if the last one came to its end. The next call begins as if this one had not been made, but for trails that
        ants change as they walk and for climbs, which go on.
        """
        ...


@runtime_checkable
class ColonyEngine(Engine, Improver, Trails, Stateful, Accepts, Protocol):
    """A colony of m ants that build tours of n cities, each from nothing (all algorithms but GPU2OptIHC)."""

    n_ants: int  # m

    @property
    def n_built(self) -> int:
        """Tours that the last ``construct`` built, in [1, m]: ants that were not home in time do not count."""
        ...

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start``, ties to the lower number, and its length."""
        ...

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,). ``key`` in [0, 2**64)."""
        ...

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Tours (len(ants), n) of the last construction; ``ants`` number the lengths that it returned."""
        ...


@runtime_checkable
class SearchEngine(Engine, Improver, Trails, Stateful, Accepts, Stoppable, Protocol):
    """A focused colony: ants change good tours of n cities in a few places, in many generations (GPUMMAS)."""

    @property
    def n_ants(self) -> int:
        """Windows or tours that are searched at a time."""
        ...

    @property
    def n_trials(self) -> int:
        """Trials since the engine was made, each a kick and its repair."""
        ...

    @property
    def n_searched(self) -> int:
        """Ants of the last generation, >= 1: each has searched a window of a tour, or a whole one."""
        ...

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours at hand; (0,) before there are any."""
        ...

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """Tour by greedy edge matching, with which the ants begin, and its length."""
        ...

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        ...

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """At most so many tours (e, n), the best of the run first, then those at hand by length; and lengths (e,)."""
        ...

    def expect(self, progress: float) -> None:
        """Be told before each generation how far the run is, in [0, 1], or NaN where nobody knows."""
        ...


@runtime_checkable
class ClimberEngine(Engine, Stateful, Protocol):
    """Random-restart 2-opt hill climbers (GPU2OptIHC)."""

    n_climbers: int

    def climb(self, key: int) -> int:
        """Work for a bounded time; climbers at a local optimum restart. Return the climbs finished.

        ``key`` must be the same in every call of a run: restart r draws its start tour from (key, r).
        """
        ...

    def start_from(self, tours: ArrayLike) -> None:
        """Let the first climbers begin at the given tours (rows of n) instead of random ones.

        Raises ValueError unless rows are permutations of 0 .. n-1.
        """
        ...

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Shortest tour seen since the last call of ``climb`` began, and its exact length."""
        ...

    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (n_climbers,) of the tours as they stand."""
        ...


@runtime_checkable
class FrontEngine(Stateful, Stoppable, Protocol):
    """A search for the front of several objectives (GPUMOACO)."""

    kind: str
    instance: FrontInstance
    archive: Archive
    joined: NDArray[np.intp]  # rows of the archive that the last generation has added to the front
    n_tours: int  # built so far
    n_sums: int  # weighted sums solved so far

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        ...

    def front(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (f, n) of the front, and their lengths (f, k), in order of the first objective."""
        ...

    def accept(self, tours: ArrayLike) -> None:
        """Take in tours (m, n) from outside. Raises ValueError unless rows are permutations of 0 .. n-1."""
        ...
