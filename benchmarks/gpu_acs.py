"""GPUACS on a GPU: times and quality of its three variants, as in the tables of Skinderowicz 2016.

    python benchmarks/gpu_acs.py FOLDER [--only time memory period ants limit]

FOLDER contains the TSPLIB files. beta 3, rho 0.2 and xi 0.01 are the defaults of the author's code. q0 = 1 - 20 / n
gives about twenty random choices per tour (0.9 gives n / 10), which his errors require. Lists of 32, no local search;
m = n ants unless stated otherwise. Every part writes a separate result:

time    milliseconds of a construction (CUDA events around it) and of a whole iteration (Tables 3 and 4)
memory  device memory of the selective variant, on random clouds of up to 100,000 cities
period  mean error by the period of the local update, relaxed (Table 5)
ants    mean error and time by the number of ants, for the same number of tours (Tables 7 and 8)
limit   relaxed and selective in the same time (Table 9), that of 1000 iterations of the relaxed variant with n ants,
        as in the paper
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Table, gap, parser_for, values
from kernel_clock import EventClock, iterate

from pymoo_gpuaco import GPUACS, GPUMMAS, TSP, load_tsp

PAPER = {
    "beta": 3.0,
    "rho": 0.2,
    "xi": 0.01,
    "q0": "1 - 20 / n",
    "candidate_list_size": 32,
    "local_search": False,
}
NAMES = ("d198", "pcb442", "pr1002", "nrw1379", "pr2392")
VARIANTS = ("sync", "relaxed", "selective")
#: milliseconds per iteration of the author's synchronous kernel, compiled for and run on an H200, ants = n
AUTHOR_SYNC = values("skinderowicz_2016_code", "iteration")
#: milliseconds per iteration on the GK104 of the paper: ACS-GPU and ACS-GPU-Alt, Table 3
PAPER_TIMES = values("skinderowicz_2016", "table_3")
PERIODS = (1, 2, 4, 8, 16)
#: mean error in percent by period, Table 5
PAPER_PERIODS = values("skinderowicz_2016", "table_5")
#: mean error by ants, Table 7
PAPER_ANTS = values("skinderowicz_2016", "table_7")
#: mean error of ACS-GPU-Alt and ACS-GPU-SPM in the same time, Table 9
PAPER_LIMIT = values("skinderowicz_2016", "table_9")


def acs(problem: TSP, seed: int, **arguments: Any) -> GPUACS:
    """Create a colony, set up for the first iteration."""
    n = problem.n_cities
    algorithm = GPUACS(**{**PAPER, "n_ants": n, "q0": 1.0 - 20.0 / n, "backend": "cuda", **arguments})
    algorithm.setup(problem, seed=seed)
    algorithm._begin()
    return algorithm


def mmas(problem: TSP) -> GPUMMAS:
    """Create a GPUMMAS with the parameters of ``gpu_variants.py``, to compare the construction."""
    algorithm = GPUMMAS(
        problem.n_cities, rho=0.5, p_best=0.01, local_search=False, deposit="iteration_best", backend="cuda"
    ).setup(problem, seed=1)
    algorithm._begin()
    return algorithm


def run(algorithm: Any, seed: int, number: float, seconds: float = np.inf) -> tuple[float, int]:
    """Run at most ``number`` iterations of engine and trail updates; return seconds and number of iterations."""
    keys = np.random.default_rng(seed)
    begin = time.perf_counter()
    count = 0
    while count < number and time.perf_counter() - begin < seconds:
        iterate(algorithm, int(keys.integers(0, 2**64, dtype=np.uint64)))
        count += 1
    return time.perf_counter() - begin, count


def construction(algorithm: Any, number: int) -> np.ndarray:
    """Return the milliseconds of each construction, without the first tenth."""
    clock = EventClock(algorithm.engine, algorithm.engine.walk, "build")
    run(algorithm, 1, number)
    return clock.milliseconds()


def error(problem: TSP, algorithm: Any) -> float:
    """Return the gap of the best tour to the best known length in percent."""
    return gap(algorithm._best_length, problem.best_known)


def measure_time(folder: Path, _: Any) -> None:
    table = Table(
        "gpu_acs_time",
        "GPUACS: tour construction on a GPU, ants = n, milliseconds an iteration",
        "instance | variant | update period | construction, ms:3 | 10 % .. 90 % | whole iteration, ms:3 | "
        "GPUMMAS construction, ms:3 | times GPUMMAS:2 | author's ACS-GPU on an H200, ms | times faster:1 | "
        "paper (GK104), ms",
        {**PAPER, "ants": "n", "GPUMMAS": "wrs, lists of 32, same run"},
        [
            "The author's figures on an H200 are constants: the code of Skinderowicz 2016, compiled for it; its "
            "relaxed and selective kernels do not end on this GPU.",
            "A whole iteration: walk, lengths, their copy to the host, and trail update.",
        ],
    )
    for name in NAMES:
        problem = load_tsp(folder / f"{name}.tsp")
        base = float(np.median(construction(mmas(problem), 100)))
        for variant, period in [(v, p) for v in VARIANTS for p in (1, 4)]:
            algorithm = acs(problem, 1, variant=variant, local_update_period=period)
            times = construction(algorithm, 60)
            whole, _ = run(algorithm, 1, 60)
            median = float(np.median(times))
            author = AUTHOR_SYNC.get(name) if (variant, period) == ("sync", 1) else None
            faster = author / median if author else None
            papers = dict(zip(("sync", "relaxed"), PAPER_TIMES[name], strict=False))
            old = papers.get(variant) if period == 1 else None
            spread = f"{np.quantile(times, 0.1):.3f} .. {np.quantile(times, 0.9):.3f}"
            cells = median, spread, 1000.0 * whole / 60, base, median / base, author, faster, old
            table.add(name, variant, period, *cells)
    table.write()


def measure_memory(_: Path, __: Any) -> None:
    table = Table(
        "gpu_acs_memory",
        "GPUACS, selective variant: device memory on random clouds, 256 ants",
        "cities | trails, bytes a city:1 | all but tours, bytes a city:1 | all, MB:1 | construction, ms:1",
        {**PAPER, "ants": 256, "trails_per_node": 8},
        [
            "Bytes that the engine allocates, without the CUDA context; dense trails of 100,000 cities take 40 GB."
        ],
    )
    for n in (10_000, 25_000, 50_000, 100_000):
        problem = TSP(np.random.default_rng(n).uniform(0, 1e6, (n, 2)), metric="EUC_2D")
        algorithm = acs(problem, 1, n_ants=256, variant="selective")
        engine = algorithm.engine
        trails = sum(engine.trails.needed.values())
        total = sum(size for part in engine.parts for size in part.needed.values())
        median = float(np.median(construction(algorithm, 5)))
        table.add(n, trails / n, (total - 2 * 4 * 256 * n) / n, total / 1e6, median)
    table.write()


def measure_period(folder: Path, options: Any) -> None:
    table = Table(
        "gpu_acs_period",
        "GPUACS, relaxed variant: error by the period of the local update, 1000 iterations",
        "instance | update period | mean error, %:3 | best, %:3 | paper: mean error, %",
        {**PAPER, "ants": "n", "iterations": 1000, "seeds": options.seeds},
        [f"Means of {options.seeds} seeds; the paper's (Table 5) are of 30."],
    )
    for name in NAMES:
        problem = load_tsp(folder / f"{name}.tsp")
        for period, paper in zip(PERIODS, PAPER_PERIODS[name], strict=True):
            errors = []
            for seed in range(1, options.seeds + 1):
                algorithm = acs(problem, seed, variant="relaxed", local_update_period=period)
                run(algorithm, seed, 1000)
                errors.append(error(problem, algorithm))
            table.add(name, period, statistics.mean(errors), min(errors), paper)
    table.write()


def measure_ants(folder: Path, options: Any) -> None:
    share, seeds = options.share, options.seeds
    table = Table(
        "gpu_acs_ants",
        "GPUACS: error by the number of ants, for the same number of tours",
        "instance | variant | ants | iterations | mean error, %:3 | best, %:3 | seconds:2 | "
        "paper, relaxed: mean error, %",
        {**PAPER, "update period": 1, "tours": f"{share} n", "seeds": seeds},
        [f"The paper (Table 7) builds 1000 n tours, here {share} n; {seeds} seeds against 30."],
    )
    for name, paper in PAPER_ANTS.items():
        problem = load_tsp(folder / f"{name}.tsp")
        for variant in ("relaxed", "selective"):
            for ants, old in paper.items():
                number = share * problem.n_cities // ants
                errors, spent = [], []
                for seed in range(1, seeds + 1):
                    algorithm = acs(problem, seed, variant=variant, n_ants=ants)
                    spent.append(run(algorithm, seed, number)[0])
                    errors.append(error(problem, algorithm))
                cells = statistics.mean(errors), min(errors), statistics.median(spent)
                table.add(name, variant, ants, number, *cells, old if variant == "relaxed" else None)
    table.write()


def measure_limit(folder: Path, options: Any) -> None:
    seeds = options.seeds
    table = Table(
        "gpu_acs_limit",
        "GPUACS: relaxed and selective in the same time",
        "instance | seconds:2 | relaxed: mean error, %:3 | best, %:3 | iterations:0 | "
        "selective: mean error, %:3 | best, %:3 | iterations:0 | paper, relaxed, % | paper, selective, %",
        {**PAPER, "ants": 256, "update period": 4, "seeds": seeds},
        [
            "The time is that of 1000 iterations of the relaxed variant with n ants and period 1 on this GPU, "
            "as in the paper on its GPU (Table 9, 2.5 to 175 s).",
            f"Means of {seeds} seeds; the paper's are of 30.",
        ],
    )
    for name, paper in PAPER_LIMIT.items():
        problem = load_tsp(folder / f"{name}.tsp")
        limit = 5.0 * run(acs(problem, 1, variant="relaxed"), 1, 200)[0]
        found: list[float] = []
        for variant in ("relaxed", "selective"):
            errors, counts = [], []
            for seed in range(1, seeds + 1):
                algorithm = acs(problem, seed, variant=variant, n_ants=256, local_update_period=4)
                counts.append(run(algorithm, seed, np.inf, limit)[1])
                errors.append(error(problem, algorithm))
            found += [statistics.mean(errors), min(errors), statistics.median(counts)]
        table.add(name, limit, *found, *paper)
    table.write()


PARTS: dict[str, Callable[[Path, Any], None]] = {
    "time": measure_time,
    "memory": measure_memory,
    "period": measure_period,
    "ants": measure_ants,
    "limit": measure_limit,
}


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=PARTS)
    parser.add_argument("--share", type=int, default=200, help="tours / n in the part `ants`")
    arguments = parser.parse_args()
    for part in arguments.only:
        PARTS[part](arguments.folder, arguments)


if __name__ == "__main__":
    main()
