"""Protocols of engines, one for each role. Engines work on arrays and parameters; they import no pymoo.

An engine is created from an ``Instance`` and parameters, and stores tours and trails on its device. Its methods return
NumPy arrays on the host. All randomness comes from the 64-bit key of each call, so that equal keys repeat a run and the
exported state needs no generator.

Every input array is checked before anything changes (``checks.py``, ``runtime/state.py``): tours must be
permutations of 0 .. n-1, trails finite and >= 0. A ValueError says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.pareto.archive import Archive
from pymoo_gpuaco.runtime.state import State
from pymoo_gpuaco.runtime.stop import Stop

Devices: TypeAlias = int | str | Sequence[int]  # index of a CUDA device, several indices, or "all"


@runtime_checkable
class Stoppable(Protocol):
    """Calls with a deadline; they end within a fraction of a second after it, with the finished tours.

    A deadline changes results only when it is reached. ``stop.interrupt`` ends the current call from another thread.
    """

    stop: Stop

    def stop_at(self, moment: float | None) -> None:
        """End the following calls soon after ``CLOCK.monotonic()`` reaches ``moment``; None: no limit.

        They return as usual. An unfinished tour is replaced by the best finished one, or by the nearest-neighbour tour,
        and does not count in ``n_built``. Given tours that are not processed by then are unchanged.
        """


class Improver(Stoppable, Protocol):
    """Local search of given tours; the engine's own tours and trails are unchanged."""

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Improve any number of tours (m, n), m >= 0; return copies and their exact lengths (m,).

        Row i depends only on itself, the key and i. Raises ValueError unless rows are permutations of 0 .. n-1.
        """


class Engine(Stoppable, Protocol):
    """Common methods of all engines: the state can be exported as plain arrays, and imported by another engine."""

    kind: str
    instance: Any

    def export_state(self) -> State:
        """Return all data that later calls depend on."""

    def import_state(self, state: State) -> None:
        """Continue from an exported state of any engine kind.

        Raises ValueError, before anything changes, for missing arrays, other shapes and invalid values: cities out of
        range, trails that are negative or not finite.
        """


class Accepts(Protocol):
    """Import of good tours, from a user or another island; for populations see ``Migrates``."""

    def accept(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Add tours (m, n), m >= 0; if there are too many, the shortest.

        ``lengths`` (m,) of the sender, finite, in any unit, only order the tours; the engine computes exact lengths. In
        an ant colony the tours replace longer ones, and take part in deposits until the next construction. A memetic
        search merges them into its best tour.
        """


class Ants(Engine, Improver, Accepts, Protocol):
    """A colony of m ants that build tours of n cities."""

    n_ants: int  # m

    @property
    def n_built(self) -> int:
        """Number of tours that the last call finished."""

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build m tours; return their exact lengths (m,). ``key`` in [0, 2**64)."""

    def lengths(self) -> NDArray[np.float64]:
        """Return the lengths (m,) of the tours of the last construction."""

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Return tours (len(ants), n) of the last construction; ``ants`` are indices of its lengths."""


@runtime_checkable
class ColonyEngine(Ants, Protocol):
    """Ants that build and improve complete tours by trails (all ant colonies but GPUFACO).

    Edges (e, 2) are pairs of different cities; in symmetric instances (i, j) and (j, i) are one edge.
    """

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Return the nearest-neighbour tour from city ``start`` (ties: the lower city) and its length."""

    def replace_tours(self, tours: ArrayLike) -> NDArray[np.float64]:
        """Replace the tours of the last construction by tours (m, n), as after a local search; return their lengths."""

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``; ACS pulls trails back towards it (tau_0)."""

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit."""

    def trails_of(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Return the trails (e,) of edges; all edges that the memory does not contain share one trail."""

    def set_trails(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of distinct edges that the memory contains to ``values`` (e,).

        Raises ValueError, before anything changes, for cities out of range and values that are negative or not finite.
        """


@runtime_checkable
class FocusedColony(Ants, Protocol):
    """Ants that change a source tour in a few places (GPUFACO).

    A tour that is not finished in time is the source, and does not count in ``n_built``.
    """

    usual_iterations: int  # default number of iterations of a generation

    @property
    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the best tour of the run and its exact length."""

    def begin(self) -> float:
        """Make the tour of greedy edge matching and local search the source, reset the trails; return its length."""

    def iterate(self, key: int, iterations: int) -> None:
        """Run iterations of construction and update. ``key`` in [0, 2**64)."""

    def follow(self, update: TrailUpdate) -> None:
        """Make the tour of the one deposit the source, and update the trails."""


@runtime_checkable
class SearchEngine(Engine, Improver, Accepts, Protocol):
    """A memetic search: a population of tours of n cities is annealed and recombined (GPUMemetic)."""

    def describe(self) -> str:
        """Return size of the population and kind of recombination, for the header of a run."""

    @property
    def n_tours(self) -> int:
        """Size of the population."""

    @property
    def may_stagnate(self) -> bool:
        """True if a complete annealing cycle has found no shorter tour, or the last cycle has ended."""

    @property
    def n_trials(self) -> int:
        """Number of trials, each a kick and its repair, since the engine was created."""

    @property
    def n_built(self) -> int:
        """Tours of the last generation, >= 1: annealed tours (once per round) and evaluated offspring."""

    @property
    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (m,) of the current tours; (0,) before the first ones."""

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""

    def best_tours(self, most: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return at most ``most`` tours (e, n), the best of the run, then current ones by length; and lengths.

        Before the first generation it is the tour with which the search begins.
        """

    def expect(self, progress: float) -> None:
        """Set the progress of the run before each generation: in [0, 1], or NaN if unknown."""


@runtime_checkable
class Migrates(Protocol):
    """A population that exchanges tours with those of other islands.

    Attributes
    ----------
    exchanges : True ends the generation when annealing ends; the next one begins with a recombination with migrants.
    """

    exchanges: bool

    @property
    def annealed(self) -> bool:
        """True after the end of annealing."""

    @property
    def awaits_migrants(self) -> bool:
        """True if annealing has ended and the next generation begins with a recombination with migrants."""

    def emigrants(self, most: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return tours (e, n), e in [0, most], for recombination by others, and lengths (e,), the best first."""

    def immigrate(self, tours: ArrayLike, lengths: ArrayLike) -> None:
        """Add tours (m, n) of other islands, with lengths (m,), as parents of the next recombination.

        None replaces a tour of this population; the shortest may be merged into the best tour at once. Raises
        ValueError unless rows are permutations of 0 .. n-1.
        """


@runtime_checkable
class ClimberEngine(Engine, Protocol):
    """Random-restart 2-opt hill climbers (GPU2OptIHC)."""

    n_climbers: int

    def climb(self, key: int) -> int:
        """Run climbers for a bounded time, with restarts at local optima; return the number of finished climbs.

        ``key`` must be the same in every call of a run: restart r draws its start tour from (key, r).
        """

    def start_from(self, tours: ArrayLike) -> None:
        """Start the first climbers at the given tours (rows of n) instead of random ones.

        Raises ValueError unless rows are permutations of 0 .. n-1.
        """

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the shortest tour of the last call of ``climb`` and its exact length."""


class FrontEngine(Engine, Protocol):
    """A search for the front of several objectives (GPU2PPLS)."""

    archive: Archive
    n_tours: int  # number of tours built so far
    n_sums: int  # number of solved weighted sums

    def search(self, key: int) -> None:
        """Run one generation. ``key`` in [0, 2**64)."""

    def accept(self, tours: ArrayLike) -> None:
        """Add given tours (m, n). Raises ValueError unless rows are permutations of 0 .. n-1."""
