"""Hill climbers on a GPU: 2-opt moves per second, climbs per second, and the error of the best of many climbs.

    python benchmarks/gpu_climbers.py FOLDER [--seconds 1] [--only speed moves quality]

FOLDER contains the TSPLIB files. A step evaluates (n-1)(n-2)/2 moves (section 4, O'Neil and Burtscher 2015).
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import Table, gap, parser_for, values
from numpy.typing import NDArray

from pymoo_gpuaco.backends import make_climbers
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.colony.parameters import ClimberParameters
from pymoo_gpuaco.problems import TSP, load_tsp

#: the first n points of d18512, as in the paper
SIZES = (100, 200, 318, 493, 700, 1002, 1500, 2392, 3795, 5000, 7397, 11849, 18512)
LEVELS = ("intra", "tiled", "tuned")
#: the authors' code, version 2.3, compiled for and run on the same type of GPU: 10^9 moves per second, on d493, pr1002
#: and pr2392
AUTHORS = values("oneil_burtscher_code", "moves")
CPU_SIZES = (100, 493, 1002, 2392, 5000, 18512)
WHOLE_CLIMBS = ("d198", "d493", "pr1002", "pr2392")
FEW = 132  # climbers
#: per multiprocessor, on compute capability 7.0 to 12.0; about 8 instructions per move have the same limit
ROOTS_PER_CYCLE = 16
CLIMBS = 100_000
QUALITY = (
    "berlin52", "d198", "a280", "lin318", "pcb442", "d493", "rat783", "pr1002", "nrw1379", "pr2392",
)  # fmt: skip


def engine(problem: TSP, backend: str = "cuda", n_climbers: int | None = None, **parameters: str) -> Any:
    return make_climbers(
        with_lists(problem.instance, 1), ClimberParameters(n_climbers, **parameters), backend
    )


def rate(problem: TSP, calls: int, kernel: str) -> float:
    """Return the median of 10^9 moves per second, after a short warm-up call."""
    climbers, n, found = engine(problem, kernel=kernel), problem.n_cities, []
    climbers.climb(1, pairs=1 << 34)
    for _ in range(calls):
        scans, before = climbers.scans, time.perf_counter()
        climbers.climb(1)
        seconds = time.perf_counter() - before
        found.append((climbers.scans - scans) * (n - 1) * (n - 2) / 2 / seconds / 1e9)
    return statistics.median(found)


def cpu_rate(problem: TSP, seconds: float) -> float:
    """Return 10^9 moves per second of the CPU engine, whose calls evaluate a given number of pairs."""
    climbers = engine(problem, "cpu")
    climbers.climb(1, pairs=10**6)
    pairs, before = 0, time.perf_counter()
    while time.perf_counter() - before < seconds:
        climbers.climb(1, pairs=10**8)
        pairs += 10**8
    return pairs / (time.perf_counter() - before) / 1e9


def bound() -> float:
    """Return an upper bound of 10^9 moves per second for kernels with one square root per move."""
    import pycuda.driver as cuda

    cuda.init()
    of = cuda.Device(0).get_attribute
    kilohertz = of(cuda.device_attribute.CLOCK_RATE)
    return ROOTS_PER_CYCLE * of(cuda.device_attribute.MULTIPROCESSOR_COUNT) * kilohertz / 1e6


def speed(folder: Path, seconds: float) -> None:
    big, most = load_tsp(folder / "d18512.tsp"), bound()
    table = Table(
        "gpu_climbers",
        "2-opt moves evaluated a second by the hill climbers on a GPU",
        f"cities | {' | '.join(f'{level}, 10^9/s:0' for level in LEVELS)} | tuned, % of the bound:0 | "
        "authors' code, 10^9/s | tuned over it:2 | CPU, 10^9/s:2",
        {"instance": "first n points of d18512", "metric": "EUC_2D, rounded", "climbers": "n_climbers=None"},
        [
            "From random starts; up to 1002 cities the calls include whole climbs, above only their beginning. "
            "tuned: median of 3 calls.",
            "The authors' figures are constants: version 2.3 of their code, compiled for the same type of GPU, on "
            "d493, pr1002 and pr2392; it truncates distances, the kernels here round them.",
            f"The bound is one square root per move: {ROOTS_PER_CYCLE} per cycle and multiprocessor at the highest "
            f"clock, {most:.0f} 10^9/s.",
            "Both kernels make the best move of all: climbs per second have the same ratio as moves per second.",
            "CPU: this package's CPU engine with its 32 climbers; its pairs include the cost of interrupted scans.",
        ],
    )
    assert big.coords is not None
    for n in SIZES:
        problem = TSP(big.coords[:n, :2], metric="EUC_2D")
        rates = [rate(problem, 3 if level == "tuned" else 1, level) for level in LEVELS]
        cpu, authors = cpu_rate(problem, seconds / 4) if n in CPU_SIZES else None, AUTHORS.get(n)
        over = None if authors is None else rates[-1] / authors
        table.add(n, *rates, 100.0 * rates[-1] / most, authors, over, cpu)
    table.write()


def first_climbs(problem: TSP) -> tuple[float, NDArray[np.float64]]:
    """Return the seconds until each of a few climbers ends its first climb, and the lengths of these climbs."""
    climbers, n = engine(problem, n_climbers=FEW), problem.n_cities
    own, lengths = np.arange(FEW), np.full(FEW, np.inf)
    # calls are short, so that a climber does not end two climbs in one call
    scans_per_call = max(1, n // 8)
    spent = 0.0
    climbing = np.ones(FEW, bool)
    while climbing.any():
        before = time.perf_counter()
        climbers.climb(1, pairs=max(FEW, 128) * scans_per_call * n * n // 2)
        spent += time.perf_counter() - before
        state = climbers.export_state()
        lengths[climbing] = np.minimum(lengths, state["best_lengths"])[climbing]
        climbing &= state["restart"] == own
    return spent, lengths


def whole_climbs(folder: Path, seconds: float) -> None:
    table = Table(
        "gpu_climbers_moves",
        "Climbs to local optima",
        f"instance | climbers | climbs a second:1 | evaluations a climb:1 | {FEW} climbs, s:3 | "
        "their mean error %:2 | least error %:2",
        {"seconds": seconds},
        [
            "An evaluation is of all (n-1)(n-2)/2 moves. Climbs per second: with all climbers that fill the device; "
            "empty if they finished fewer climbs than climbers in the time.",
            f"{FEW} climbs: time until each of {FEW} climbers reaches its first local optimum.",
        ],
    )
    for name in WHOLE_CLIMBS:
        problem = load_tsp(folder / f"{name}.tsp")
        climbers = engine(problem)
        climbers.climb(1)
        finished, scans, before = 0, climbers.scans, time.perf_counter()
        while (spent := time.perf_counter() - before) < seconds or (finished == 0 and spent < 4 * seconds):
            finished += climbers.climb(1)
        scans = climbers.scans - scans
        speeds: tuple[float | None, float | None] = (None, None)
        if finished >= climbers.n_climbers:
            speeds = finished / spent, scans / finished
        until, lengths = first_climbs(problem)
        gaps = gap(lengths, problem.best_known)
        table.add(name, climbers.n_climbers, *speeds, until, gaps.mean(), gaps.min())
    table.write()


def quality(folder: Path, seconds: float) -> None:
    table = Table(
        "gpu_climbers_quality",
        "Error of the best of many climbs",
        "instance | cities | climbs | s:2 | error %:3",
        {"climbs wanted": CLIMBS, "seconds at most": 2 * seconds},
        ["Each run ends at the wanted number of climbs or at the time limit."],
    )
    for name in QUALITY:
        problem = load_tsp(folder / f"{name}.tsp")
        climbers, finished, shortest = engine(problem), 0, np.inf
        climbers.climb(1, pairs=1 << 30)
        before = time.perf_counter()
        while finished < CLIMBS and time.perf_counter() - before < 2 * seconds:
            finished += climbers.climb(1)
            shortest = min(shortest, climbers.best()[1])
        spent = time.perf_counter() - before
        table.add(name, problem.n_cities, finished, spent, gap(shortest, problem.best_known))
    table.write()


PARTS = {"speed": speed, "moves": whole_climbs, "quality": quality}


def main() -> None:
    parser = parser_for(__doc__, only=PARTS)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    for part in arguments.only:
        PARTS[part](arguments.folder, arguments.seconds)


if __name__ == "__main__":
    main()
