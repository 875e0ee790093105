"""Runs of Ant System as the two Hiroshima papers set it: all cities, no local search."""

from __future__ import annotations

from typing import Any

import numpy as np

from pymoo_gpuaco import GPUAS
from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.problems.tsp import TSP

ITERATIONS = 100
SETTING = {
    "alpha": 1,
    "beta": 2,
    "rho": 0.5,
    "ants": "n",
    "trials": 8,
    "switch": "0.85 for the hybrid, 0.99 for the tournament",
    "tournament": "4, 8, 16",
}


def colony(problem: TSP, selection: str, backend: str = "cuda", seed: int = 1, **more: Any) -> GPUAS:
    """Return an Ant System that is ready to iterate."""
    algorithm = GPUAS(problem.n_cities, selection=selection, backend=backend, **more)
    algorithm.setup(problem, seed=seed)
    algorithm._begin()
    return algorithm


def keys(seed: int, count: int) -> list[int]:
    """Return the keys of a run's constructions."""
    return [int(k) for k in np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)]


def iterate(algorithm: GPUAS, key: int) -> float:
    """One construction and one update; the best length."""
    lengths = algorithm.engine.construct(key)
    best = int(lengths.argmin())
    algorithm._learn(Tours(algorithm.engine.tours([best]), lengths[[best]]))
    return float(lengths[best])
