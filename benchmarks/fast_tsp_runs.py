"""Runs of fast-tsp (package ``fast-tsp``), an iterated local search on the CPU, for comparison."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import TSP

fast_tsp: Any = import_module("fast_tsp") if find_spec("fast_tsp") else None

#: fast-tsp needs an n x n matrix of 16 bits and a copy of it: 1.6 GB at this size
MOST_CITIES = 20_000
LONGEST = 65_000
_EDGES_AT_ONCE = 1 << 24


def lacks_fast_tsp(n: int) -> str | None:
    """Return why fast-tsp cannot run on ``n`` cities, or None."""
    if fast_tsp is None:
        return "fast-tsp is not installed (python -m pip install fast-tsp)"
    if n > MOST_CITIES:
        return f"fast-tsp needs an n x n matrix and is not run on more than {MOST_CITIES} cities"
    return None


def whole_matrix(problem: TSP) -> NDArray[np.uint16]:
    """Return the matrix (n, n) for fast-tsp: distances, scaled if the longest exceeds 16 bits."""
    n = problem.n_cities
    lengths = np.empty((n, n), np.float32)  # exact for integers up to 2**24
    problem.instance.write_distances(lengths)
    rows = max(1, _EDGES_AT_ONCE // n)
    scale = max(1.0, float(lengths.max()) / LONGEST)
    matrix = np.empty((n, n), np.uint16)
    for start in range(0, n, rows):
        matrix[start : start + rows] = np.rint(lengths[start : start + rows] / scale)
    return matrix


def fast_tsp_tour(
    matrix: NDArray[np.uint16] | Path, seconds: float, threads: int
) -> tuple[Sequence[int], float]:
    """Return the tour of fast-tsp after ``seconds`` on ``threads``, and its wall time.

    ``matrix`` may be a NumPy file, for a separate process; reading it does not count.
    """
    distances = np.load(matrix) if isinstance(matrix, Path) else matrix
    before = time.perf_counter()
    tour = fast_tsp.find_tour(distances, duration_seconds=seconds, max_threads=threads)
    return tour, time.perf_counter() - before
