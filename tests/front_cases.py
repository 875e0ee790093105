"""Problems of several objectives, and their fronts by looking at every tour."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from pymoo_gpuaco import (
    GPU2PPLS,
    TSP,
    MultiObjectiveTSP,
)


def problem_of(n: int, k: int = 2, seed: int = 0, metric: str = "EUC_2D") -> MultiObjectiveTSP:
    places = np.random.default_rng(seed).integers(0, 1000, (k, n, 2))
    return MultiObjectiveTSP([TSP(part, metric) for part in places])


def dominated(lengths: np.ndarray) -> np.ndarray:
    """Return True for rows that another one dominates: nowhere longer, somewhere shorter."""
    no_longer = (lengths[None] <= lengths[:, None]).all(axis=2)
    shorter = (lengths[None] < lengths[:, None]).any(axis=2)
    return (no_longer & shorter).any(axis=1)


def beaten(lengths: np.ndarray, by: np.ndarray) -> np.ndarray:
    out = np.zeros(len(lengths), bool)
    for row in by:
        out |= (row <= lengths).all(axis=1) & (row < lengths).any(axis=1)
    return out


def exact_front(problem: MultiObjectiveTSP, directed: bool = False) -> np.ndarray:
    """Lengths of all tours that no other dominates, by enumeration."""
    orders = permutations(range(1, problem.n_cities))
    rows = [order for order in orders if directed or order[0] < order[-1]]
    tours = np.zeros((len(rows), problem.n_cities), int)
    tours[:, 1:] = rows
    left, front = np.unique(problem.tour_lengths(tours), axis=0), []
    while len(left):  # what is least by the sum, no other dominates
        front.append(left[left.sum(axis=1).argmin()])
        left = left[(left < front[-1]).any(axis=1)]
    return np.unique(front, axis=0)


def engine_of(problem: MultiObjectiveTSP, **given):
    algorithm = GPU2PPLS(**given)
    algorithm.setup(problem, termination=("n_gen", 50), seed=1)
    return algorithm.engine
