"""What an engine must do. Engines know arrays and parameters; they import no pymoo.

An engine is built from an ``Instance`` and parameters, keeps its tours and trails to itself, and hands out what is
asked for as numpy arrays on the host. All randomness comes from the 64-bit key of each call, so a run is repeated
by repeating its keys, and the exported state needs no generator.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco.colony.trails import TrailUpdate

State = dict[str, NDArray]  # plain arrays by name; an engine of the other kind can import it


@runtime_checkable
class ColonyEngine(Protocol):
    """A colony of m ants over n cities (GPUAS, GPUMMAS, GPUACS)."""

    n_ants: int

    def greedy_tour(self, start: int = 0) -> tuple[NDArray[np.int32], float]:
        """Nearest-neighbour tour from city ``start``, ties to the lower number, and its length."""
        ...

    def reset_trails(self, value: float) -> None:
        """Set every trail to ``value``; ACS pulls trails back towards it (tau_0)."""
        ...

    def construct(self, key: int) -> NDArray[np.float64]:
        """Build and improve m tours; return their exact lengths (m,). ``key`` in [0, 2**64)."""
        ...

    def improve(self, tours: ArrayLike, key: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Local search on m given tours (m, n); return copies and their exact lengths (m,)."""
        ...

    def tours(self, ants: ArrayLike) -> NDArray[np.int32]:
        """Tours (len(ants), n) of the last construction."""
        ...

    def update_trails(self, update: TrailUpdate) -> None:
        """Evaporate and deposit."""
        ...

    def branching_factor(self, lam: float) -> float:
        """Mean number of candidates a city whose trail exceeds min + lam (max - min) of its candidates."""
        ...

    def export_state(self) -> State:
        """Everything that the next call depends on."""
        ...

    def import_state(self, state: State) -> None:
        """Continue from an exported state, of this engine kind or the other."""
        ...


@runtime_checkable
class AheadEngine(ColonyEngine, Protocol):
    """A colony that builds beside its caller, on a device of its own."""

    works_ahead: bool  # whether it can: construction must leave the trails alone, and they must fit twice

    def begin(self, key: int) -> None:
        """Start ``construct(key)``, which then only waits for its end.

        Until then all else that the engine hands out stays what it was. The work is dropped if the trails are
        changed, a state is imported or ``construct`` is called with another key.
        """
        ...

    def hold_trails(self) -> None:
        """Keep the trails as they are now for ``restore_trails``; nothing to do if they were kept as they are."""
        ...

    def restore_trails(self) -> None:
        """Bring back the trails that ``hold_trails`` kept; only once for each time."""
        ...


@runtime_checkable
class ClimberEngine(Protocol):
    """Random-restart 2-opt hill climbers (GPU2OptIHC)."""

    n_climbers: int

    def climb(self, key: int) -> int:
        """Work for a bounded time; climbers at a local optimum restart. Return the climbs finished.

        ``key`` must be the same in every call of a run: restart r draws its start tour from (key, r).
        """
        ...

    def start_from(self, tours: ArrayLike) -> None:
        """Let the first climbers begin at the given tours (rows of n) instead of random ones."""
        ...

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Shortest tour seen since the last call of ``climb`` began, and its exact length."""
        ...

    def lengths(self) -> NDArray[np.float64]:
        """Exact lengths (n_climbers,) of the tours as they stand."""
        ...

    def export_state(self) -> State:
        """Everything that the next call depends on."""
        ...

    def import_state(self, state: State) -> None:
        """Continue from an exported state."""
        ...
