"""Ant Colony System step by step on the host: the references of the CUDA walks."""

from __future__ import annotations

import numpy as np

from pymoo_gpuaco.backends.cpu import trails as trail_memory
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.instance import Instance
from tests.cuda_cases import distances_of
from tests.instances import listed_instance

ACS = {"selection": "pseudo_random_proportional"}
SYNC = {**ACS, "together": True}
RELAXED = {**ACS, "together": False}
SELECTIVE = {**RELAXED, "memory": "selective"}
VARIANTS = {"sync": SYNC, "relaxed": RELAXED, "selective": SELECTIVE}


def matrix_instance(n: int, k: int, seed: int = 4) -> Instance:
    return listed_instance(TSP(matrix=np.random.default_rng(seed).uniform(1, 100, (n, n))), k)


def edges_updated(tours: np.ndarray, period: int, symmetric: bool) -> np.ndarray:
    """Count the local updates of each edge (n, n): every period-th of a tour, the closing one being the nth."""
    n = tours.shape[1]
    counts = np.zeros((n, n), int)
    for p in range(period, n + 1, period):
        here, there = tours[:, p - 1], tours[:, p % n]
        np.add.at(counts, (here, there), 1)
        if symmetric:
            np.add.at(counts, (there, here), 1)
    return counts


class Memory:
    """A CPU memory with the weights of a row, to walk over step by step."""

    def __init__(self, instance: Instance, kind: str, width: int, tau0: float) -> None:
        kinds = {
            "dense": trail_memory.DENSE,
            "candidate": trail_memory.CANDIDATE,
            "selective": trail_memory.SELECTIVE,
        }
        self.trails = trail_memory.make_trails(kinds[kind], instance.neighbours, width)
        trail_memory.fill(self.trails, np.float32(tau0))
        self.dense = kind == "dense"
        self.neighbours = instance.neighbours
        self.d = distances_of(instance)

    def weight(self, i: int, j: int) -> float:
        return float(trail_memory.read_trail(self.trails, i, j)) / self.d[i, j] ** 2

    def greedy(self, i: int, is_open: np.ndarray) -> int:
        """Eq. (1), Skinderowicz 2016, with q0 = 1; then the best of all open cities."""
        candidates = [j for j in self.neighbours[i] if is_open[j]]
        if not candidates:
            candidates = [j for j in np.flatnonzero(is_open) if j != i]
        return int(max(candidates, key=lambda j: self.weight(i, j)))


def walk_in_order(memory: Memory, starts, xi: float, tau0: float, period: int, symmetric: bool) -> np.ndarray:
    """Greedy ants, each walking its whole tour before the next."""
    n = len(memory.neighbours)
    tours = []
    for start in starts:
        is_open, tour = np.ones(n, bool), [int(start)]
        for p in range(1, n + 1):
            is_open[tour[-1]] = False
            j = memory.greedy(tour[-1], is_open) if p < n else tour[0]
            if p % period == 0:
                trail_memory.blend_edge(memory.trails, tour[-1], j, xi, tau0, symmetric)
            tour.append(j)
        tours.append(tour[:n])
    return np.array(tours)


def walk_together(d, neighbours, tau, dense, starts, xi, tau0, period, symmetric):
    """Greedy ants in two phases: all choose, then all update candidate edges. ``tau`` (n, n) changes.

    All other edges are updated at the end.
    """
    m, n = len(starts), len(d)
    everyone = np.arange(m)
    is_open = np.ones((m, n), bool)
    tours = np.empty((m, n), int)
    tours[:, 0] = starts
    listed = np.zeros((n, n), bool)
    np.put_along_axis(listed, neighbours, True, axis=1)
    outside = np.zeros((n, n))
    for p in range(1, n + 1):
        here = tours[:, p - 1]
        is_open[everyone, here] = False
        if p < n:
            allowed = is_open & listed[here]
            stuck = ~allowed.any(axis=1)
            weight = np.where(allowed, tau[here] / d[here] ** 2, -1.0)
            anywhere = tau[here] / d[here] ** 2 if dense else 1.0 / d[here]
            weight[stuck] = np.where(is_open[stuck], anywhere[stuck], -1.0)
            chosen = weight.argmax(axis=1)
            tours[:, p] = chosen
        else:
            chosen = tours[:, 0]
        if p % period == 0:
            counts = np.zeros((n, n))
            np.add.at(counts, (here, chosen), 1)
            if symmetric:
                np.add.at(counts, (chosen, here), 1)
            tau += (tau0 - tau) * (1.0 - (1.0 - xi) ** (counts * listed))
            outside += counts * ~listed
    tau += (tau0 - tau) * (1.0 - (1.0 - xi) ** outside)
    return tours
