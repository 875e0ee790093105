"""Pheromone memory: dense, candidate edges only, or selective, behind one set of functions.

Selection and deposit use ``find_slot``, independent of the memory.
Letters: n cities, width = trails per city (n dense, k candidate, trails_per_node selective).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.runtime.compiled import compiled, compiled_callee, inlined

DENSE, CANDIDATE, SELECTIVE = 0, 1, 2


class Trails(NamedTuple):
    """Trails of a colony; ``tau[i, s]`` belongs to the edge from i to the city of slot s."""

    kind: int
    tau: np.ndarray  # (n, width) float32
    ids: np.ndarray  # (n, width) int32, city of each slot, -1 = empty; (0, 0) when dense
    tail: np.ndarray  # (n,) int32, last written slot (selective); (0,) otherwise
    default_trail: np.ndarray  # (1,) float32, trail of all edges without a slot


def make_trails(kind: int, neighbours: np.ndarray, trails_per_node: int) -> Trails:
    """Allocate a memory with all trails 0; ``neighbours``: candidate lists (n, k)."""
    n = neighbours.shape[0]
    no_ids, no_tail = np.empty((0, 0), np.int32), np.empty(0, np.int32)
    default_trail = np.zeros(1, np.float32)
    if kind == DENSE:
        return Trails(kind, np.zeros((n, n), np.float32), no_ids, no_tail, default_trail)
    if kind == CANDIDATE:
        return Trails(kind, np.zeros(neighbours.shape, np.float32), neighbours, no_tail, default_trail)
    shape = (n, trails_per_node)
    return Trails(
        kind, np.zeros(shape, np.float32), np.full(shape, -1, np.int32), np.zeros(n, np.int32), default_trail
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

    Without a slot, the selective memory overwrites its oldest one (paper 003, Fig. 5); the candidate memory does
    nothing.
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


@compiled
def evaporate_rows(t, first, last, rho, tau_min, tau_max):  # type: ignore[no-untyped-def]
    """Evaporate rows first .. last-1: tau <- (1 - rho) tau, clipped (Eq. (4), paper 000; section 2.1, paper 001)."""
    keep = np.float32(1.0 - rho)
    low, high = np.float32(tau_min), np.float32(tau_max)
    for i in range(first, last):
        for s in range(t.tau.shape[1]):
            t.tau[i, s] = min(high, max(low, t.tau[i, s] * keep))


def evaporate_rest(t: Trails, rho: float, tau_min: float, tau_max: float) -> None:
    """Evaporate the trail that all edges without a slot share."""
    t.default_trail[0] = min(
        np.float32(tau_max), max(np.float32(tau_min), t.default_trail[0] * np.float32(1.0 - rho))
    )


@compiled
def deposit(t, tour, amount, tau_min, tau_max, symmetric):  # type: ignore[no-untyped-def]
    """Deposit on the edges of a tour: tau <- tau + amount, clipped (Eqs. (5) and (6), paper 000)."""
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
    """Blend an edge: tau <- (1 - share) tau + share target; both updates of ACS (Eqs. (3) and (4), paper 003)."""
    keep, add = np.float32(1.0 - share), np.float32(share * target)
    write_trail(t, i, j, read_trail(t, i, j) * keep + add)
    if symmetric:
        write_trail(t, j, i, read_trail(t, j, i) * keep + add)


@compiled
def blend_tour(t, tour, share, target, symmetric):  # type: ignore[no-untyped-def]
    """Apply ``blend_edge`` to every edge of a tour: the global update of ACS (Eq. (4), paper 003)."""
    i = tour[tour.shape[0] - 1]
    for p in range(tour.shape[0]):
        blend_edge(t, i, tour[p], share, target, symmetric)
        i = tour[p]


@compiled
def candidate_weights(graph, t, alpha, eta_beta, first, last, weights):  # type: ignore[no-untyped-def]
    """Compute weights[i, r] = tau^alpha eta^beta of i's r-th candidate, rows first .. last-1 (Eq. (1), paper 001).

    ``eta_beta`` and ``weights`` are (n, k) float64.
    """
    k = graph.neighbours.shape[1]
    for i in range(first, last):
        for r in range(k):
            tau = np.float64(t.tau[i, r] if t.kind == CANDIDATE else read_trail(t, i, graph.neighbours[i, r]))
            weights[i, r] = (tau if alpha == 1.0 else tau**alpha) * eta_beta[i, r]


@compiled
def all_weights(t, alpha, eta_beta, first, last, weights):  # type: ignore[no-untyped-def]
    """Compute weights[i, j] = tau^alpha eta^beta of all edges, 0 on the diagonal; ``weights`` is (n, n) float64."""
    n = weights.shape[0]
    for i in range(first, last):
        for j in range(n):
            tau = np.float64(t.tau[i, j])
            weights[i, j] = (tau if alpha == 1.0 else tau**alpha) * eta_beta[i, j]
        weights[i, i] = 0.0


@compiled
def branching_factor(graph, t, lam):  # type: ignore[no-untyped-def]
    """Return the mean number of candidates per city with a trail above min + lam (max - min) of its candidates.

    Source: Gambardella and Dorigo, "Ant-Q", ICML 1995; Stuetzle and Hoos (2000) detect stagnation by it.
    """
    n, k = graph.neighbours.shape
    total = 0
    for i in range(n):
        low, high = np.float32(np.inf), np.float32(0.0)
        for r in range(k):
            tau = read_trail(t, i, graph.neighbours[i, r])
            low, high = min(low, tau), max(high, tau)
        cut = low + np.float32(lam) * (high - low)
        for r in range(k):
            if read_trail(t, i, graph.neighbours[i, r]) > cut:
                total += 1
    return total / n


def slots_of(t: Trails, edges: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the slots (e,) of edges (e, 2), -1 for edges without one."""
    if t.kind == DENSE:
        return edges[:, 1].astype(np.intp)
    held = t.ids[edges[:, 0]] == edges[:, 1, None]  # (e, width)
    return np.where(held.any(axis=1), held.argmax(axis=1), -1)
