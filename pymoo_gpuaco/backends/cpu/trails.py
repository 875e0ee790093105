"""Pheromone memory with one set of functions: dense, candidate edges only, or selective.

Selection and deposit find the trail of an edge by ``find_slot``, for every kind of memory.
Letters: n cities, width = trails per city (n dense, k candidate, trails_per_node selective).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.colony.trails import (
    CANDIDATE,
    DENSE,
    HIGHEST_TRAIL,
    MEMORY_CODES,
    SELECTIVE,
    TrailUpdate,
    check_memory,
)
from pymoo_gpuaco.problems.metrics import Graph
from pymoo_gpuaco.runtime.compiled import (
    Float32_1d,
    Float32_2d,
    Float64_2d,
    Int32_1d,
    Int32_2d,
    compiled,
    compiled_callee,
    inlined,
    struct,
)
from pymoo_gpuaco.runtime.state import State, stored_integers, stored_numbers
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import in_slices, parallel_for, thread_count


@struct
class Trails(NamedTuple):
    """Pheromone memory, see `make_trails`."""

    kind: int
    tau: Float32_2d
    ids: Int32_2d
    tail: Int32_1d
    default_trail: Float32_1d


def make_trails(kind: int, neighbours: np.ndarray, trails_per_node: int) -> Trails:
    """Allocate a memory in which all trails are 0; ``neighbours``: candidate lists (n, k).

    ``tau[i, s]`` is the trail of the edge from i to the city of slot s.
    """
    n, selective, ids = len(neighbours), kind == SELECTIVE, np.empty((0, 0), np.int32)
    if kind == CANDIDATE:
        ids = neighbours
    elif selective:
        ids = np.full((n, trails_per_node), -1, np.int32)
    return Trails(
        kind=kind,
        tau=np.zeros((n, n) if kind == DENSE else ids.shape, np.float32),
        ids=ids,  # (n, width) city of each slot, -1 = empty; (0, 0) if dense
        tail=np.zeros(n if selective else 0, np.int32),  # last written slot of a selective memory
        default_trail=np.zeros(1, np.float32),  # trail of all edges without a slot
    )


@inlined
def find_slot(t, i, j):  # type: ignore[no-untyped-def]
    """Return the slot of the edge i -> j, or -1."""
    if t.kind == DENSE:
        return np.int64(j)
    for s in range(t.ids.shape[1]):
        if t.ids[i, s] == j:
            return np.int64(s)
    return np.int64(-1)


@inlined
def read_trail(t, i, j):  # type: ignore[no-untyped-def]
    """Return the trail of the edge i -> j."""
    s = find_slot(t, i, j)
    return t.default_trail[0] if s < 0 else t.tau[i, s]


@compiled_callee
def write_trail(t, i, j, value):  # type: ignore[no-untyped-def]
    """Set the trail of i -> j.

    If the edge has no slot, the selective memory overwrites the oldest slot (Skinderowicz 2016, Fig. 5); the candidate
    memory does nothing.
    """
    s = find_slot(t, i, j)
    if s < 0:
        if t.kind != SELECTIVE:
            return
        s = t.tail[i] + 1
        if s == t.ids.shape[1]:
            s = 0
        t.tail[i] = s
        t.ids[i, s] = j
    t.tau[i, s] = value


def fill(t: Trails, value: np.float32) -> None:
    """Set every trail to ``value`` and empty the selective memory."""
    fill_rows(t, 0, t.tau.shape[0], value)
    t.default_trail[0] = value


def fill_rows(t: Trails, first: int, last: int, value: np.float32) -> None:
    """Fill rows first .. last-1."""
    t.tau[first:last] = value
    if t.kind == SELECTIVE:
        t.ids[first:last] = -1
        t.tail[first:last] = 0


def evaporate(trails: NDArray[np.float32], rho: float, tau_min: float, tau_max: float) -> None:
    """Evaporate: tau <- (1 - rho) tau, clipped (Eq. (4), Uchida et al. 2012; section 2.1, Skinderowicz 2020)."""
    np.clip(trails * np.float32(1.0 - rho), np.float32(tau_min), np.float32(tau_max), out=trails)


@compiled
def deposit(
    t: Trails, tour: Int32_1d, amount: float, tau_min: float, tau_max: float, symmetric: bool
) -> None:
    """Deposit on the edges of a tour: tau <- tau + amount, clipped (Eqs. (5) and (6), Uchida et al. 2012)."""
    n = tour.shape[0]
    low, high, add = np.float32(tau_min), np.float32(tau_max), np.float32(amount)
    i = tour[n - 1]
    for p in range(n):
        j = tour[p]
        s = find_slot(t, i, j)
        if s >= 0:
            t.tau[i, s] = min(high, max(low, t.tau[i, s] + add))
        if symmetric:
            s = find_slot(t, j, i)
            if s >= 0:
                t.tau[j, s] = min(high, max(low, t.tau[j, s] + add))
        i = j


@compiled_callee
def blend_edge(t, i, j, share, target, symmetric):  # type: ignore[no-untyped-def]
    """Blend an edge: tau <- (1 - share) tau + share target; updates of ACS (Eqs. (3) and (4), Skinderowicz 2016)."""
    keep, add = np.float32(1.0 - share), np.float32(share * target)
    write_trail(t, i, j, read_trail(t, i, j) * keep + add)
    if symmetric:
        write_trail(t, j, i, read_trail(t, j, i) * keep + add)


@compiled
def blend_tour(t: Trails, tour: Int32_1d, share: float, target: float, symmetric: bool) -> None:
    """Apply ``blend_edge`` to every edge of a tour: the global update of ACS (Eq. (4), Skinderowicz 2016)."""
    i = tour[tour.shape[0] - 1]
    for p in range(tour.shape[0]):
        blend_edge(t, i, tour[p], share, target, symmetric)
        i = tour[p]


@inlined
def power(x, exponent):  # type: ignore[no-untyped-def]
    """Return x ** exponent, without a library call for exponents 1 and 2."""
    if exponent == 1.0:
        return x
    if exponent == 2.0:
        return x * x
    return x**exponent


@compiled_callee
def weigh_candidates(graph, t, alpha, eta_beta, i, weights):  # type: ignore[no-untyped-def]
    """Compute weights[r] = tau^alpha eta^beta of the r-th candidate of city i (Eq. (1), Skinderowicz 2020)."""
    for r in range(weights.shape[0]):
        tau = t.tau[i, r] if t.kind == CANDIDATE else read_trail(t, i, graph.neighbours[i, r])
        weights[r] = power(np.float64(tau), alpha) * eta_beta[i, r]


@compiled
def candidate_weights(
    graph: Graph, t: Trails, alpha: float, eta_beta: Float64_2d, first: int, last: int, weights: Float64_2d
) -> None:
    """Apply `weigh_candidates` to cities first .. last-1; ``eta_beta`` and ``weights`` are (n, k) float64."""
    for i in range(first, last):
        weigh_candidates(graph, t, alpha, eta_beta, i, weights[i])


@compiled
def all_weights(
    t: Trails, alpha: float, eta_beta: Float64_2d, first: int, last: int, weights: Float64_2d
) -> None:
    """Compute weights[i, j] = tau^alpha eta^beta of all edges, 0 on the diagonal; ``weights`` is (n, n) float64."""
    n = weights.shape[0]
    for i in range(first, last):
        for j in range(n):
            weights[i, j] = power(np.float64(t.tau[i, j]), alpha) * eta_beta[i, j]
        weights[i, i] = 0.0


def slots_of(t: Trails, edges: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the slots (e,) of edges (e, 2), -1 for edges without one."""
    if t.kind == DENSE:
        return edges[:, 1].astype(np.intp)
    matches = t.ids[edges[:, 0]] == edges[:, 1, None]  # (e, width)
    return np.where(matches.any(axis=1), matches.argmax(axis=1), -1)


class ColonyTrails:
    """Trails of n cities in one kind of memory.
    A reset is lazy, because a dense memory may take gigabytes: it is executed at the next read, within the time limit.
    """

    def __init__(self, kind: str, graph: Graph, trails_per_node: int, symmetric: bool, stop: Stop) -> None:
        self.arrays = make_trails(MEMORY_CODES[kind], graph.neighbours, trails_per_node)
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
            fill_rows(t, first, last, value)

        self._stop.parallel_for(in_slices(rows, t.tau.shape[1], self._stop.is_set), self._n, thread_count())
        if not self._stop.is_set():
            t.default_trail[0], self._reset_to = value, None

    def filled(self) -> Trails:
        """Complete a pending reset, and return the trails."""
        if self._reset_to is not None:
            fill(self.arrays, self._reset_to)
            self._reset_to = None
        return self.arrays

    def update(self, update: TrailUpdate) -> None:
        """Evaporate and apply ``update.deposits``, until the deadline: no ant reads trails after it."""
        if self._stop.passed():
            return
        t = self.filled()
        amounts = [(np.ascontiguousarray(tour, np.int32), float(amount)) for tour, amount in update.deposits]
        if update.on_tours_only:
            for tour, amount in amounts:
                blend_tour(t, tour, float(update.rho), amount, self._symmetric)
            return
        low, rho = float(update.tau_min), float(update.rho)
        high = min(float(update.tau_max), HIGHEST_TRAIL)

        def rows(_: int, first: int, last: int) -> None:
            evaporate(t.tau[first:last], rho, low, high)

        parallel_for(in_slices(rows, t.tau.shape[1], self._stop.passed), self._n, thread_count())
        evaporate(t.default_trail, rho, low, high)
        # positive deposits first, so that they are clipped to tau_max before negative ones
        for tour, amount in sorted(amounts, key=lambda pair: pair[1] < 0.0):
            if self._stop.passed():
                break
            deposit(t, tour, amount, low, high, self._symmetric)

    def of_edges(self, edges: ArrayLike) -> NDArray[np.float32]:
        """Return the trails (e,) of edges (e, 2)."""
        pairs, _ = checks.edge_trails(edges, np.zeros(np.size(edges) // 2), self._n)
        t = self.filled()
        slots = slots_of(t, pairs)
        return np.where(slots < 0, t.default_trail[0], t.tau[pairs[:, 0], slots])

    def set_edges(self, edges: ArrayLike, values: ArrayLike) -> None:
        """Set the trails of edges (e, 2) that the memory contains."""
        pairs, trails = checks.edge_trails(edges, values, self._n)
        t = self.filled()
        for ends in (pairs, pairs[:, ::-1]) if self._symmetric else (pairs,):
            slots = slots_of(t, ends)
            has_slot = slots >= 0
            t.tau[ends[has_slot, 0], slots[has_slot]] = trails[has_slot]

    def export_state(self) -> State:
        """Return copies of the arrays."""
        t = self.filled()
        return {
            "memory": np.array([t.kind]),
            "tau": t.tau.copy(),
            "ids": t.ids.copy() if t.kind == SELECTIVE else np.empty((0, 0), np.int32),
            "tail": t.tail.copy(),
            "rest": t.default_trail.copy(),
        }

    def read_state(self, state: State) -> State:
        """Return the checked arrays of an exported state under the names of `Trails`.

        Raises ValueError or KeyError for invalid arrays.
        """
        t = self.arrays
        check_memory(state, t.kind)
        own: State = {
            "tau": stored_numbers(state, "tau", t.tau.shape, np.float32),
            "default_trail": stored_numbers(state, "rest", t.default_trail.shape, np.float32),
        }
        if t.kind == SELECTIVE:
            own["ids"] = stored_integers(state, "ids", t.ids.shape, -1, self._n - 1)
            own["tail"] = stored_integers(state, "tail", t.tail.shape, 0, t.ids.shape[1] - 1)
        return own

    def import_state(self, own: State) -> None:
        """Continue from arrays that ``read_state`` returned."""
        for name, array in own.items():
            getattr(self.arrays, name)[...] = array
        self._reset_to = None
