"""Runs of ``GPUMemetic()`` with a wall-time limit counted from the call, and the lengths they are compared with."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic
from pymoo_gpuaco.runtime import compiling

_SHORT = 0.1  # seconds of a first run that only compiles


class Run(NamedTuple):
    """What a call of ``minimize`` gave: the best length, and the seconds of the call."""

    length: float
    wall: float


def run_for(
    problem: TSP, seconds: float, seed: int, backend: str, note: Callable[[Any], None] | None = None
) -> Run:
    """Call ``minimize(problem, GPUMemetic(), ("time", seconds))``, whose set-up counts; ``note`` is called after every
    generation."""
    gc.collect()  # what the last run held on the device
    before = time.perf_counter()
    algorithm = GPUMemetic(backend=backend)
    result = minimize(problem, algorithm, ("time", seconds), seed=seed, callback=note)
    return Run(float(result.F[0]), time.perf_counter() - before)


def set_up_seconds(problem: TSP, backend: str) -> float:
    """How long the set-up of a run of limited time takes without compiling, once compiled code has been read."""
    run_for(problem, _SHORT, 0, backend)
    with compiling.timed() as took:
        GPUMemetic(backend=backend).setup(problem, ("time", 60.0), seed=0)
    return took.seconds


def reference(problem: TSP) -> tuple[float, str]:
    """The length that gaps are told to, and its name: the best known, or what is expected of random cities.

    n uniform cities in a square of area A need 0.7124 sqrt(n A) on a torus (Johnson, McGeoch and Rothberg, SODA 1996);
    the border adds 0.59 sqrt(A), as optimal tours of 1000 cities show (23.12 in the unit square). Maps of one size
    differ by about 0.3 sqrt(A). For a million cities it is the ratio of the best tour known of DIMACS E1M.0.
    """
    if problem.best_known is not None:
        return float(problem.best_known), "best known"
    n, side = problem.n_cities, 1e6  # of ``random_map``
    if n == 1_000_000:
        return 0.7132 * math.sqrt(n) * side, "0.7132 sqrt(nA)"
    return (0.7124 * math.sqrt(n) + 0.59) * side, "0.7124 sqrt(nA) + 0.59 sqrt(A)"


def gap(length: float, to: float) -> float:
    """Percent above a length."""
    return 100.0 * (length / to - 1.0)
