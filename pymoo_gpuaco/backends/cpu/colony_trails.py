"""Pheromone trails of a colony on all cores: reset, update, access and export."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.cpu import trails as memory
from pymoo_gpuaco.candidates.graph import Graph
from pymoo_gpuaco.colony.trails import HIGHEST_TRAIL, TrailUpdate
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import in_slices, spread, thread_count

_MEMORY = {"dense": memory.DENSE, "candidate": memory.CANDIDATE, "selective": memory.SELECTIVE}


class ColonyTrails:
    """Trails of n cities in one kind of memory.

    A reset is lazy, because a dense memory may take gigabytes: it is executed at the next read, within the time limit.
    """

    def __init__(self, kind: str, graph: Graph, trails_per_node: int, symmetric: bool, stop: Stop) -> None:
        self.arrays = memory.make_trails(_MEMORY[kind], graph.neighbours, trails_per_node)
        self._graph = graph
        self._n, self._symmetric, self._stop = len(graph.neighbours), symmetric, stop
        self._reset_to: np.float32 | None = None  # a pending reset

    def reset(self, value: float) -> None:
        """Set every trail to ``value``, at the next read."""
        self._reset_to = np.float32(value)

    def fill(self) -> None:
        """Execute a pending reset until the deadline."""
        value, t = self._reset_to, self.arrays
        if value is None:
            return

        def rows(_: int, first: int, last: int) -> None:
            memory.fill_rows(t, first, last, value)

        self._stop.spread(in_slices(rows, t.tau.shape[1], self._stop.raised), self._n, thread_count())
        if not self._stop.raised():
            t.default_trail[0], self._reset_to = value, None

    def filled(self) -> memory.Trails:
        """Complete a pending reset, and return the trails."""
        if self._reset_to is not None:
            memory.fill(self.arrays, self._reset_to)
            self._reset_to = None
        return self.arrays

    def update(self, update: TrailUpdate) -> None:
        """Evaporate, and deposit ``update.deposits``, until the deadline: no ant reads trails after it."""
        if self._stop.passed():
            return
        t = self.filled()
        amounts = [(np.ascontiguousarray(tour, np.int32), float(amount)) for tour, amount in update.deposits]
        if update.on_tours_only:
            for tour, amount in amounts:
                memory.blend_tour(t, tour, float(update.rho), amount, self._symmetric)
            return
        low, rho = float(update.tau_min), float(update.rho)
        high = min(float(update.tau_max), HIGHEST_TRAIL)

        def rows(_: int, first: int, last: int) -> None:
            memory.evaporate_rows(t, first, last, rho, low, high)

        spread(in_slices(rows, t.tau.shape[1], self._stop.passed), self._n, thread_count())
        memory.evaporate_rest(t, rho, low, high)
        # positive deposits first: they are clipped to tau_max before negative ones
        for tour, amount in sorted(amounts, key=lambda pair: pair[1] < 0.0):
            if self._stop.passed():
                break
            memory.deposit(t, tour, amount, low, high, self._symmetric)

    def of_edges(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Return the trails (e,) of edges (e, 2)."""
        pairs, _ = checks.edge_trails(edges, np.zeros(np.size(edges) // 2), self._n)
        t = self.filled()
        slots = memory.slots_of(t, pairs)
        return np.where(slots < 0, t.default_trail[0], t.tau[pairs[:, 0], slots])

    def set_edges(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges (e, 2) that the memory contains."""
        pairs, trails = checks.edge_trails(edges, values, self._n)
        t = self.filled()
        for ends in (pairs, pairs[:, ::-1]) if self._symmetric else (pairs,):
            slots = memory.slots_of(t, ends)
            kept = slots >= 0
            t.tau[ends[kept, 0], slots[kept]] = trails[kept]

    def branching_factor(self, lam: float) -> float:
        """Return the mean number of candidates per city with a trail above min + lam (max - min)."""
        return float(memory.branching_factor(self._graph, self.filled(), float(lam)))

    def export_state(self) -> State:
        """Return copies of the arrays."""
        t = self.filled()
        return {
            "tau": t.tau.copy(),
            "ids": t.ids.copy() if t.kind == memory.SELECTIVE else np.empty((0, 0), np.int32),
            "tail": t.tail.copy(),
            "rest": t.default_trail.copy(),
        }

    def read_state(self, state: State) -> State:
        """Return the checked arrays of an exported state under the names of `Trails`.

        Raises ValueError or KeyError for invalid arrays.
        """
        t = self.arrays
        own: State = {
            "tau": stored_numbers(state, "tau", t.tau.shape, np.float32),
            "default_trail": stored_numbers(state, "rest", t.default_trail.shape, np.float32),
        }
        if t.kind == memory.SELECTIVE:
            own["ids"] = stored_integers(state, "ids", t.ids.shape, -1, self._n - 1)
            own["tail"] = stored_integers(state, "tail", t.tail.shape, 0, t.ids.shape[1] - 1)
        return own

    def import_state(self, own: State) -> None:
        """Continue from arrays that ``read_state`` returned."""
        for name, array in own.items():
            getattr(self.arrays, name)[...] = array
        self._reset_to = None
