"""How much memory and time does a large asymmetric instance take, besides the caller's matrix?

    python benchmarks/asymmetric_memory.py [--cities 10000] [--seconds 60] [--seed 1] [--backend cpu]

The instance is a disk's, as in ``asymmetric_kinds.py``. What is measured is the peak of the process's memory less what
it held when the matrix was made and everything was imported and compiled; set-up counts in the time. Linux only.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from options import parser_for
from pymoo.optimize import minimize
from record import write
from timed_runs import run_for

from pymoo_gpuaco import TSP, GPUMemetic

COLUMNS = (
    "cities",
    "seconds told",
    "set-up, s",
    "wall, s",
    "matrix, MiB",
    "peak besides it, MiB",
    "bytes / n^2",
    "first tour",
    "length",
    "generations",
)
SIDE, ROWS = 1_000_000, 500  # of the matrix so many rows are made at a time


def disk(n: int) -> NDArray[np.float64]:
    """The matrix of files on a turning disk, see ``asymmetric_kinds.disk``, some rows at a time."""
    rng = np.random.default_rng(n)
    start, end, from_track, to_track = (rng.integers(0, SIDE, n).astype(float) for _ in range(4))
    matrix = np.empty((n, n))
    for first in range(0, n, ROWS):
        rows = slice(first, first + ROWS)
        turn = (start[None, :] - end[rows, None]) % SIDE
        seek = np.abs(to_track[rows, None] - from_track) / 10.0
        matrix[rows] = turn + SIDE * np.maximum(0.0, np.ceil((seek - turn) / SIDE))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def resident() -> int:
    """Bytes of memory that this process holds now."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))


def main() -> None:
    parser = parser_for(__doc__, folder="none", backend="cuda")
    parser.add_argument("--cities", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    n = arguments.cities
    run_for(TSP(matrix=disk(500)), 0.5, 0, arguments.backend)  # compiles
    matrix = disk(n)
    before, began = resident(), time.perf_counter()
    lengths: list[float] = []
    result = minimize(
        TSP(matrix=matrix),
        GPUMemetic(backend=arguments.backend),
        ("time", arguments.seconds),
        seed=arguments.seed,
        callback=lambda algorithm: lengths.append(float(algorithm.opt[0].F[0])),
    )
    wall = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    row = [
        n,
        arguments.seconds,
        round(result.algorithm._setup_seconds, 1),
        round(wall, 1),
        round(matrix.nbytes / 2**20),
        round(peak / 2**20),
        round(peak / n**2, 1),
        lengths[0],
        float(result.F[0]),
        len(lengths),
    ]
    print(dict(zip(COLUMNS, row, strict=True)))
    write(
        "gpu_asymmetric_memory" if arguments.backend == "cuda" else "cpu_asymmetric_memory",
        "Memory of a large asymmetric instance",
        COLUMNS,
        [row],
        {"algorithm": "GPUMemetic()", "seed": arguments.seed},
        ["Peak: of the host's memory, less what the process held when the matrix was there."],
    )


if __name__ == "__main__":
    main()
