"""Protocols of engines, one for each role. Engines work on arrays and parameters; they import no pymoo.

An engine is built from an ``Instance`` and parameters, and holds tours and trails on its device. Its methods return
NumPy arrays on the host. All randomness comes from the 64-bit key of each call, so equal keys repeat a run, and the
exported state needs no generator.

Every array passed in is checked before anything changes (``checks.py``, ``runtime/state.py``): tours must be
permutations of 0 .. n-1, trails finite and >= 0. A ValueError says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.pareto.instance import FrontInstance
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import Stop

Devices: TypeAlias = int | str | Sequence[int]  # number of a CUDA device, several numbers, or "all"


@runtime_checkable
class Engine(Protocol):
    """Attributes of all engines."""

    kind: str
    instance: ListedInstance


@runtime_checkable
class Improver(Protocol):
    """Local search on given tours; an engine's own tours and trails stay as they are."""

    stop: Stop  # see ``Stoppable``

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n), m >= 0; return copies and their exact lengths (m,).

        Row i depends on itself, the key and i alone. Raises ValueError unless rows are permutations of 0 .. n-1.
        """
        ...

    def stop_at(self, moment: float | None) -> None:
        """End the following calls soon after ``time.monotonic()`` shows ``moment``; None sets no limit.

        They return as usual; of tours that were not reached the copies are as they came.
        """
        ...


@runtime_checkable
class Trails(Protocol):
    """Pheromone trails, which the engine's ants follow."""

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
    """Access to single trails, and to the lengths of the ants' tours.

    Edges (e, 2) are pairs of different cities; where direction is free, (i, j) and (j, i) are one edge.
    """

    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the tours of the last construction, as ``tours`` hands them out."""
        ...

    def trails_of(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Trails (e,) of edges; all edges that the memory does not hold share one trail."""
        ...

    def set_trails(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges, none listed twice, to ``values`` (e,), where the memory holds them.

        Raises ValueError, before anything changes, for cities out of range and values that are negative or not finite.
        """
        ...


@runtime_checkable
class Stateful(Protocol):
    """Export of the state as plain arrays, and import into another engine."""

    def export_state(self) -> State:
        """Return everything that the next call depends on."""
        ...

    def import_state(self, state: State) -> None:
        """Continue from an exported state, of this engine kind or the other.

        Raises ValueError, before anything changes, for arrays that are missing, of another shape, or not what they
        should be: cities out of range, trails that are negative or not finite.
        """
        ...


@runtime_checkable
class Accepts(Protocol):
    """Use of good tours from outside: a user's, another island's; see ``Migrates`` for those of populations."""

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Add tours (m, n), m >= 0; where there is no room for all, the shortest.

        ``lengths`` (m,) come from the sender, finite, in any unit, and only order the tours; the engine measures the
        tours itself. In a colony whose ants build whole tours they replace its longest ones where they are shorter.
        Until the next construction they count in deposits by rank and by the colony. A memetic search merges
        them into its best tour.
        """
        ...


@runtime_checkable
class Stoppable(Protocol):
    """Calls that end early, within a fraction of a second, with the tours finished by then.

    A limit that is not reached changes no result. ``stop.interrupt`` ends the call under way from another thread.
    """

    stop: Stop

    def stop_at(self, moment: float | None) -> None:
        """End the following calls soon after ``time.monotonic()`` shows ``moment``; None sets no limit.

        They return as usual. An unfinished tour is replaced by the best finished one, or by the nearest-neighbour tour,
        and does not count in ``n_built``.
        """
        ...


@runtime_checkable
class ColonyEngine(Engine, Improver, Trails, Stateful, Accepts, Protocol):
    """A colony of m ants that build tours of n cities, each from nothing (all algorithms but GPU2OptIHC)."""

    n_ants: int  # m

    @property
    def n_built(self) -> int:
        """Tours that the last ``construct`` finished, in [1, m]."""
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
class FocusedColony(Engine, Improver, Stateful, Accepts, Stoppable, Protocol):
    """A colony of m ants that change a source tour of n cities in a few places (GPUFACO)."""

    n_ants: int  # m
    n_built: int  # tours that the last ``iterate`` or ``construct`` finished
    usual_iterations: int  # of a generation where the user gave no number

    @property
    def best(self) -> tuple[NDArray[np.int32], float]:
        """Best tour of the run, and its exact length."""
        ...

    def begin(self) -> float:
        """Take the tour by greedy edge matching after local search as source, reset the trails; return its length."""
        ...

    def iterate(self, key: int, iterations: int) -> None:
        """Run iterations, each a construction and what follows from it. ``key`` in [0, 2**64)."""
        ...

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build m tours from the source, which stays; return their lengths (m,).

        A tour that is not finished in time is the source, and does not count in ``n_built``.
        """
        ...

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Tours (len(ants), n) of the last construction."""
        ...

    def lengths(self) -> NDArray[np.float64]:
        """Lengths (m,) of the tours of the last construction."""
        ...

    def follow(self, update: TrailUpdate) -> None:
        """Let the tour of the one deposit be the source, and update the trails."""
        ...


@runtime_checkable
class SearchEngine(Engine, Improver, Stateful, Accepts, Stoppable, Protocol):
    """A memetic search: a population of tours of n cities is annealed and recombined (GPUMemetic)."""

    @property
    def n_tours(self) -> int:
        """Size of the population."""
        ...

    @property
    def may_stagnate(self) -> bool:
        """Whether a whole cycle of annealing has brought no shorter tour, or the last one has ended."""
        ...

    @property
    def n_trials(self) -> int:
        """Trials since the engine was made, each a kick and its repair."""
        ...

    @property
    def n_built(self) -> int:
        """Tours of the last generation, >= 1: tours annealed (once per round) and offspring measured."""
        ...

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the present tours; (0,) before there are any."""
        ...

    def first_tour(self) -> tuple[NDArray[np.int32], float]:
        """Tour by greedy edge matching, with which the search begins, and its length."""
        ...

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""
        ...

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """At most so many tours (e, n), the best of the run, then the present ones by length; and lengths (e,)."""
        ...

    def expect(self, progress: float) -> None:
        """Set the progress of the run before each generation: in [0, 1], or NaN where it is unknown."""
        ...


@runtime_checkable
class Migrates(Protocol):
    """A population that exchanges tours with those of other islands, which search the same problem elsewhere.

    Attributes
    ----------
    exchanges : when annealing is over, end the generation; the next one begins with an evolution among migrants.
    """

    exchanges: bool

    @property
    def annealed(self) -> bool:
        """Whether all annealing is over."""
        ...

    @property
    def awaits_migrants(self) -> bool:
        """Whether annealing is over, and the next generation begins with an evolution."""
        ...

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Tours (e, n), e in [0, most], that others can recombine with theirs, and lengths (e,), the best first."""
        ...

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Take in tours (m, n) of other islands and their lengths (m,).

        The best may be merged with the shortest of them at once. All take part in the next recombination as parents,
        and none replaces a tour of this population. Raises ValueError unless rows are permutations of 0 .. n-1.
        """
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
        """Start the first climbers at the given tours (rows of n) instead of random ones.

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
    """A search for the front of several objectives (GPU2PPLS)."""

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
