"""Short benchmark of the installed package: ``pymoo-gpuaco bench``."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from pymoo.core.termination import TerminateIfAny
from pymoo.termination.max_time import TimeBasedTermination

from pymoo_gpuaco.algorithms import GPUMMAS, GPUMemetic
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.problems.tsp import TSP

# Time of the measurement of construction, as a share of the time of the search.
_CONSTRUCTION = 0.2


class Measured(NamedTuple):
    """Result of a benchmark on one instance."""

    backend: str  # of the search: "cpu" or "cuda"
    # tours per second of ants, with candidate lists and without local search
    construction: float
    trials: float  # kicks with repair per second of GPUMemetic; 0 up to 12 cities
    gap: float | None  # percent above the best known length, or None
    length: float  # of the best tour
    seconds: float  # of the search, which ends early at the best known length


def measure(
    problem: TSP, backend: str = "auto", device: int = 0, seconds: float = 5.0, seed: int = 1
) -> Measured:
    """Measure GPUMemetic for at most ``seconds``, and construction by GPUMMAS for a fifth of them.

    Set-up and compilation are not counted. Raises ``BackendUnavailable`` as the algorithm does.
    """
    construction = _construction_speed(problem, backend, device, _CONSTRUCTION * seconds, seed)
    # only the time limit and the best known length end the run
    own = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
    termination = TerminateIfAny(own, TimeBasedTermination(seconds))
    algorithm = GPUMemetic(backend=backend, device=device)
    algorithm.setup(problem, termination=termination, seed=seed)
    used = algorithm.engine.kind
    before = time.perf_counter()
    length = float(algorithm.run().F[0])
    spent = time.perf_counter() - before
    gap = 100.0 * (length / problem.best_known - 1.0) if problem.best_known else None
    return Measured(used, construction, algorithm.engine.n_trials / spent, gap, length, spent)


def _construction_speed(problem: TSP, backend: str, device: int, seconds: float, seed: int) -> float:
    """Return tours per second without local search, on equal trails."""
    colony = GPUMMAS(local_search=False, backend=backend, device=device)
    engine = colony.setup(problem, seed=seed).engine
    engine.reset_trails(1.0)
    keys = np.random.default_rng(seed)

    def construct() -> None:
        engine.construct(int(keys.integers(0, 2**64, dtype=np.uint64)))

    construct()  # warm-up
    built, begin = 0, time.perf_counter()
    while built == 0 or time.perf_counter() - begin < seconds:
        construct()
        built += engine.n_ants
    return built / (time.perf_counter() - begin)
