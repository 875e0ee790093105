"""GPUACS on a GPU: times and quality of its three variants, in the form of the tables of paper 003.

    python benchmarks/gpu_acs.py FOLDER [--only time memory period ants limit large]

FOLDER holds the TSPLIB files. beta 3, rho 0.2 and xi 0.01 are the defaults of the author's code; q0 = 1 - 20 / n leaves
some twenty random choices a tour, without which his errors are out of reach (0.9 leaves n / 10). Lists of 32, no local
search; m = n ants where nothing else is said. Every part writes a result of its own:

time    milliseconds of a construction (CUDA events around it) and of a whole iteration (Tables 3 and 4)
memory  of the selective variant, on random clouds of up to 100,000 cities
period  mean error by the period of the local update, relaxed (Table 5)
ants    mean error and time by the number of ants, for the same number of tours (Tables 7 and 8)
limit   relaxed and selective in the same time (Table 9); the time is what the relaxed variant takes for 1000
        iterations of n ants, as in the paper
large   both in the same time on larger instances (Table 10)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from options import parser_for
from record import write
from references import values

from pymoo_gpuaco import GPUACS, GPUMMAS, TSP, load_tsp
from pymoo_gpuaco.algorithms.ask_tell import Tours

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
#: milliseconds an iteration of the author's synchronous kernel, built for and run on an H200, ants = n
AUTHOR_SYNC = values("skinderowicz_2016_code", "iteration")
#: the same on the GK104 of the paper: ACS-GPU and ACS-GPU-Alt, Table 3
PAPER_TIMES = values("skinderowicz_2016", "table_3")
PERIODS = (1, 2, 4, 8, 16)
#: mean error in percent by period, Table 5
PAPER_PERIODS = values("skinderowicz_2016", "table_5")
#: mean error by ants, Table 7
PAPER_ANTS = values("skinderowicz_2016", "table_7")
#: mean error of ACS-GPU-Alt and ACS-GPU-SPM in the same time, Table 9
PAPER_LIMIT = values("skinderowicz_2016", "table_9")
#: best of five runs of ACS-GPU-SPM: error in percent, and seconds, Table 10
PAPER_LARGE = values("skinderowicz_2016", "table_10")


def acs(problem: TSP, seed: int, **arguments: Any) -> GPUACS:
    """A colony ready to begin."""
    n = problem.n_cities
    algorithm = GPUACS(**{**PAPER, "n_ants": n, "q0": 1.0 - 20.0 / n, "backend": "cuda", **arguments})
    algorithm.setup(problem, seed=seed)
    algorithm._begin()
    return algorithm


def mmas(problem: TSP) -> GPUMMAS:
    """A colony of ``benchmarks/gpu_variants.py``, for its construction."""
    algorithm = GPUMMAS(
        problem.n_cities, rho=0.5, p_best=0.01, local_search=False, deposit="iteration_best", backend="cuda"
    ).setup(problem, seed=1)
    algorithm._begin()
    return algorithm


def run(algorithm: Any, seed: int, ends: Callable[[int, float], bool]) -> tuple[float, int]:
    """Engine and trail updates without pymoo around them, until ``ends``; seconds and iterations."""
    keys = np.random.default_rng(seed)
    begin = time.perf_counter()
    count = 0
    while not ends(count, time.perf_counter() - begin):
        lengths = algorithm.engine.construct(int(keys.integers(0, 2**64, dtype=np.uint64)))
        best = int(lengths.argmin())
        algorithm._learn(Tours(algorithm.engine.tours([best]), lengths[[best]]))
        count += 1
    return time.perf_counter() - begin, count


def iterations(number: int) -> Callable[[int, float], bool]:
    return lambda count, _: count >= number


def seconds(limit: float) -> Callable[[int, float], bool]:
    return lambda _, spent: spent >= limit


def construction(algorithm: Any, number: int) -> np.ndarray:
    """Milliseconds of each construction but the first tenth, by CUDA events around its kernels."""
    import pycuda.driver as cuda

    way = algorithm.engine.walk
    inner, times = way.build, []

    def timed(key: int, tours: Any) -> None:
        first, last = cuda.Event(), cuda.Event()
        first.record()
        inner(key, tours)
        last.record()
        last.synchronize()
        times.append(last.time_since(first))

    way.build = timed
    run(algorithm, 1, iterations(number))
    way.build = inner
    return np.array(times[number // 10 :])


def error(problem: TSP, length: float) -> float:
    """Percent above the best known length."""
    return 100.0 * (length / problem.best_known - 1.0)


def spread(values: Any) -> str:
    return f"{np.quantile(values, 0.1):.3f} .. {np.quantile(values, 0.9):.3f}"


def measure_time(folder: Path) -> None:
    rows: list[list[Any]] = []
    for name in NAMES:
        problem = load_tsp(folder / f"{name}.tsp")
        base = float(np.median(construction(mmas(problem), 100)))
        author, paper = AUTHOR_SYNC.get(name), PAPER_TIMES[name]
        for variant, period in [(v, p) for v in VARIANTS for p in (1, 4)]:
            algorithm = acs(problem, 1, variant=variant, local_update_period=period)
            times = construction(algorithm, 60)
            whole, _ = run(algorithm, 1, iterations(60))
            median = float(np.median(times))
            same = variant == "sync" and period == 1
            old = None if period > 1 else {"sync": paper[0], "relaxed": paper[1]}.get(variant)
            rows.append(
                [
                    name,
                    variant,
                    period,
                    round(median, 3),
                    spread(times),
                    round(1000.0 * whole / 60, 3),
                    round(base, 3),
                    round(median / base, 2),
                    author if same else None,
                    round(author / median, 1) if same and author else None,
                    old,
                ]
            )
            print(rows[-1], flush=True)
    write(
        "gpu_acs_time",
        "GPUACS: tour construction on a GPU, ants = n, milliseconds an iteration",
        (
            "instance",
            "variant",
            "update period",
            "construction, ms",
            "10 % .. 90 %",
            "whole iteration, ms",
            "GPUMMAS construction, ms",
            "times GPUMMAS",
            "author's ACS-GPU on an H200, ms",
            "times faster",
            "paper (GK104), ms",
        ),
        rows,
        {**PAPER, "ants": "n", "GPUMMAS": "wrs, lists of 32, same run"},
        [
            "Author's figures on an H200 are constants here: the code of Skinderowicz 2016, built for it; his relaxed "
            "and selective kernels do not finish on this GPU.",
            "A whole iteration takes the walk, lengths, their way to the host and the trail update.",
        ],
    )


def measure_memory() -> None:
    rows: list[list[Any]] = []
    for n in (10_000, 25_000, 50_000, 100_000):
        problem = TSP(np.random.default_rng(n).uniform(0, 1e6, (n, 2)), metric="EUC_2D")
        algorithm = acs(problem, 1, n_ants=256, variant="selective")
        engine = algorithm.engine
        trails = sum(engine.trails.needed().values())
        total = sum(size for part in engine.parts for size in part.needed().values())
        tours = 2 * 4 * 256 * n
        times = construction(algorithm, 5)
        median = float(np.median(times))
        rows.append(
            [n, round(trails / n, 1), round((total - tours) / n, 1), round(total / 1e6, 1), round(median, 1)]
        )
        print(rows[-1], flush=True)
    write(
        "gpu_acs_memory",
        "GPUACS, selective variant: device memory on random clouds, 256 ants",
        ("cities", "trails, bytes a city", "all but tours, bytes a city", "all, MB", "construction, ms"),
        rows,
        {**PAPER, "ants": 256, "trails_per_node": 8},
        [
            "Bytes that the engine allocates, without the CUDA context; dense trails of 100,000 cities take 40 GB."
        ],
    )


def measure_period(folder: Path, seeds: int) -> None:
    rows: list[list[Any]] = []
    for name in NAMES:
        problem = load_tsp(folder / f"{name}.tsp")
        for period, paper in zip(PERIODS, PAPER_PERIODS[name], strict=True):
            errors = []
            for seed in range(1, seeds + 1):
                algorithm = acs(problem, seed, variant="relaxed", local_update_period=period)
                run(algorithm, seed, iterations(1000))
                errors.append(error(problem, algorithm._best_length))
            rows.append([name, period, round(float(np.mean(errors)), 3), round(min(errors), 3), paper])
            print(rows[-1], flush=True)
    write(
        "gpu_acs_period",
        "GPUACS, relaxed variant: error by the period of the local update, 1000 iterations",
        ("instance", "update period", "mean error, %", "best, %", "paper: mean error, %"),
        rows,
        {**PAPER, "ants": "n", "iterations": 1000, "seeds": seeds},
        [f"Means of {seeds} seeds; the paper's (Table 5) are of 30."],
    )


def measure_ants(folder: Path, seeds: int, share: int) -> None:
    rows: list[list[Any]] = []
    for name, paper in PAPER_ANTS.items():
        problem = load_tsp(folder / f"{name}.tsp")
        for variant in ("relaxed", "selective"):
            for ants, old in paper.items():
                number = share * problem.n_cities // ants
                errors, spent = [], []
                for seed in range(1, seeds + 1):
                    algorithm = acs(problem, seed, variant=variant, n_ants=ants)
                    took, _ = run(algorithm, seed, iterations(number))
                    errors.append(error(problem, algorithm._best_length))
                    spent.append(took)
                row = [name, variant, ants, number, round(float(np.mean(errors)), 3), round(min(errors), 3)]
                rows.append([*row, round(float(np.median(spent)), 2), old if variant == "relaxed" else None])
                print(rows[-1], flush=True)
    write(
        "gpu_acs_ants",
        "GPUACS: error by the number of ants, for the same number of tours",
        (
            "instance",
            "variant",
            "ants",
            "iterations",
            "mean error, %",
            "best, %",
            "seconds",
            "paper, relaxed: mean error, %",
        ),
        rows,
        {**PAPER, "update period": 1, "tours": f"{share} n", "seeds": seeds},
        [f"The paper (Table 7) builds 1000 n tours, here {share} n; {seeds} seeds against 30."],
    )


def measure_limit(folder: Path, seeds: int) -> None:
    rows: list[list[Any]] = []
    for name, paper in PAPER_LIMIT.items():
        problem = load_tsp(folder / f"{name}.tsp")
        limit, _ = run(acs(problem, 1, variant="relaxed"), 1, iterations(200))
        limit *= 5.0
        found = {}
        for variant in ("relaxed", "selective"):
            errors, counts = [], []
            for seed in range(1, seeds + 1):
                algorithm = acs(problem, seed, variant=variant, n_ants=256, local_update_period=4)
                counts.append(run(algorithm, seed, seconds(limit))[1])
                errors.append(error(problem, algorithm._best_length))
            found[variant] = [round(float(np.mean(errors)), 3), round(min(errors), 3), int(np.median(counts))]
        rows.append([name, round(limit, 2), *found["relaxed"], *found["selective"], *paper])
        print(rows[-1], flush=True)
    write(
        "gpu_acs_limit",
        "GPUACS: relaxed and selective in the same time",
        (
            "instance",
            "seconds",
            "relaxed: mean error, %",
            "best, %",
            "iterations",
            "selective: mean error, %",
            "best, %",
            "iterations",
            "paper, relaxed, %",
            "paper, selective, %",
        ),
        rows,
        {**PAPER, "ants": 256, "update period": 4, "seeds": seeds},
        [
            "The time is that of 1000 iterations of the relaxed variant with n ants and period 1 on this GPU, "
            "as in the paper on its own (Table 9, 2.5 to 175 s).",
            f"Means of {seeds} seeds; the paper's are of 30.",
        ],
    )


def measure_large(folder: Path, limit: float) -> None:
    rows: list[list[Any]] = []
    for name, paper in PAPER_LARGE.items():
        problem = load_tsp(folder / f"{name}.tsp")
        found = []
        for variant in ("relaxed", "selective"):
            algorithm = acs(problem, 1, variant=variant, n_ants=256, local_update_period=4)
            _, count = run(algorithm, 1, seconds(limit))
            found += [round(error(problem, algorithm._best_length), 2), count]
        rows.append([name, *found, *paper])
        print(rows[-1], flush=True)
    write(
        "gpu_acs_large",
        f"GPUACS: relaxed and selective on larger instances, {limit:g} s each",
        (
            "instance",
            "relaxed: error, %",
            "iterations",
            "selective: error, %",
            "iterations",
            "paper, selective: error, %",
            "paper: seconds",
        ),
        rows,
        {**PAPER, "ants": 256, "update period": 4, "seconds": limit, "seeds": 1},
        ["One seed each; the paper (Table 10) gives the best of five runs, on a GK104, and has no d15112."],
    )


def main() -> None:
    parts = ("time", "memory", "period", "ants", "limit", "large")
    parser = parser_for(__doc__, seeds=3, only=parts)
    parser.add_argument("--share", type=int, default=200, help="tours over n in the part `ants`")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run in the part `large`")
    arguments = parser.parse_args()
    folder = arguments.folder
    work: dict[str, Callable[[], None]] = {
        "time": lambda: measure_time(folder),
        "memory": measure_memory,
        "period": lambda: measure_period(folder, arguments.seeds),
        "ants": lambda: measure_ants(folder, arguments.seeds, arguments.share),
        "limit": lambda: measure_limit(folder, arguments.seeds),
        "large": lambda: measure_large(folder, arguments.seconds),
    }
    for part in parts:
        if part in arguments.only:
            work[part]()


if __name__ == "__main__":
    main()
