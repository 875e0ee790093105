"""Random-restart 2-opt hill climbers on all cores."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import hill_climbing
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems.summation import tour_length
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers, stored_tours
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

CLIMBERS = 32
# Pairs that all climbers evaluate in one call: well under a second on one core.
PAIRS_PER_CALL = 100_000_000
_LAST_RESTART = 2**62


class CpuClimbers:
    """``ClimberEngine`` on all cores; ``n_climbers=None`` gives 32.

    Raises
    ------
    ValueError : for an asymmetric instance, which reversing a path would change in length.
    """

    kind: str = "cpu"

    def __init__(self, instance: ListedInstance, parameters: ClimberParameters) -> None:
        parameters.check_for(instance.symmetric)
        self.instance = instance
        self.n_climbers = parameters.n_climbers or CLIMBERS
        self._graph = make_graph(instance)
        self._climbers = hill_climbing.make_climbers(self.n_climbers, instance.n, parameters.moves == "batch")
        self._best_tours = np.zeros((self.n_climbers, instance.n), np.int32)
        self._best_lengths = np.full(self.n_climbers, np.inf)
        self._threads = min(thread_count(), self.n_climbers)
        self.stop = Stop()

    def stop_at(self, moment: float | None) -> None:
        """End the following calls soon after ``time.monotonic()`` shows ``moment``, see ``Stoppable``."""
        self.stop.until = moment

    def climb(self, key: int, pairs: int = PAIRS_PER_CALL) -> int:
        """Work for about ``pairs`` evaluated pairs, all climbers together; return the climbs finished."""
        finished = [0] * self._threads
        budget = max(1, pairs // self.n_climbers)

        def work(thread: int, first: int, last: int) -> None:
            finished[thread] = hill_climbing.climb(
                self._graph,
                self._climbers,
                np.uint64(key),
                first,
                last,
                budget,
                self._best_tours,
                self._best_lengths,
                self.stop.flag,
            )

        self.stop.lower()
        self.stop.spread(work, self.n_climbers, self._threads)
        return sum(finished)

    def start_from(self, tours: ArrayLike) -> None:
        """Start the first climbers at the given tours (rows of n) instead of random ones."""
        c = self._climbers
        given = checks.permutations("tours", tours, self.instance.n)
        for climber, tour in enumerate(given[: self.n_climbers]):
            c.tours[climber] = tour
            c.lengths[climber] = tour_length(self._graph, c.tours[climber])
            c.restart[climber] = climber
            c.row[climber] = 0
            c.gain[climber] = 0.0

    def best(self) -> tuple[NDArray[np.int32], float]:
        """Return the shortest tour of the last call of ``climb`` and its exact length."""
        climber = int(self._best_lengths.argmin())
        return self._best_tours[climber].copy(), float(self._best_lengths[climber])

    def lengths(self) -> NDArray[np.float64]:
        """Return the exact lengths (n_climbers,) of the current tours."""
        return self._climbers.lengths.copy()

    def export_state(self) -> State:
        """Return copies of the state of all climbers."""
        state = {name: array.copy() for name, array in self._climbers._asdict().items()}
        return {**state, "best_tours": self._best_tours.copy(), "best_lengths": self._best_lengths.copy()}

    def import_state(self, state: State) -> None:
        """Continue the climbs of an exported state.

        Only an engine with batches can use stored moves of a batch; others restart the scan.
        """
        c, m, n = self._climbers, self.n_climbers, self.instance.n
        given = {
            "tours": stored_tours(state, "tours", m, n),
            "lengths": stored_numbers(state, "lengths", (m,)),
            "restart": stored_integers(state, "restart", (m,), -m, _LAST_RESTART, np.int64),
            "row": stored_integers(state, "row", (m,), hill_climbing.START_AGAIN, n, np.int64),
            "gain": stored_numbers(state, "gain", (m,), low=-np.inf),
            "move": stored_integers(state, "move", (m, 2), 0, n - 1, np.int64),
        }
        best_tours = stored_tours(state, "best_tours", m, n)
        best_lengths = stored_numbers(state, "best_lengths", (m,), infinity=True)
        noted = {"own_gain", "own_move"} <= state.keys() and np.shape(state["own_gain"]) == c.own_gain.shape
        if noted:
            given["own_gain"] = stored_numbers(state, "own_gain", c.own_gain.shape, low=-np.inf)
            given["own_move"] = stored_integers(state, "own_move", c.own_move.shape, 0, n - 1)
        for name, array in given.items():
            getattr(c, name)[...] = array
        if c.own_gain.size and not noted:
            c.gain[c.row > 0] = 0.0
            c.row[c.row > 0] = 0
        self._best_tours[...], self._best_lengths[...] = best_tours, best_lengths
