"""Gap to the best known over time on the CPU: focused GPUMMAS beside fast-tsp on as many threads.

    python benchmarks/cpu_gap_over_time.py FOLDER [--seeds 3] [--threads 2] [--only pr2392] [--add] [--seconds 20]

FOLDER holds the TSPLIB files; instances that it lacks are left out, and ``random200000`` is made here (gap to
0.7124 sqrt(n A) + 0.59 sqrt(A), what the best tours of random cities come to). Both are told their time and run
once for each time and seed: what a user gets who has so long. Set-up counts on both sides, and the last column says how
much longer than told a call took at most; functions are compiled and the matrix of fast-tsp (package ``fast-tsp``) is
made before. It needs n^2 distances and is left out above 10,000 cities. Runs follow one another, each alone on its
threads. An instance takes 77 s a seed where fast-tsp takes part, and 38 s where it does not; with --add the rows of
other instances stay, if commit and machine are the same. ``--quick`` is a trial of the script: one seed, times of up to
2 s, pr1002, nothing written.
"""

from __future__ import annotations

import math
import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from folder import problems_of
from options import parser_for
from pymoo.optimize import minimize
from pymoo.termination.max_time import TimeBasedTermination
from record import rows_of_others, write

from pymoo_gpuaco import TSP, GPUMemetic

try:
    import fast_tsp
except ImportError:
    fast_tsp = None
    NO_FAST_TSP = "fast-tsp is not installed (python -m pip install fast-tsp): its rows are left out"

TIMES = (1.0, 2.0, 5.0, 10.0, 20.0)
INSTANCES = ("pr1002", "pr2392", "fnl4461", "pla7397", "d15112", "d18512", "pla85900", "random200000")
NAME = "cpu_gap_over_time"
FAST_TSP_CITIES = 10_000
RANDOM_CITIES, SIDE = 200_000, 1_000_000


def random_problem() -> TSP:
    """Cities at whole coordinates of a square; its ``best_known`` is what the best tours come to on average."""
    coords = np.random.default_rng(1).integers(0, SIDE, (RANDOM_CITIES, 2))
    expected = (0.7124 * math.sqrt(RANDOM_CITIES) + 0.59) * SIDE  # see timed_runs.reference
    return TSP(coords, metric="EUC_2D", name="random200000", best_known=round(expected))


def colony_gap(problem: TSP, seconds: float, seed: int) -> float:
    """Gap of a run that is told to take ``seconds``, set-up counted."""
    result = minimize(
        problem,
        GPUMemetic(backend="cpu"),
        TimeBasedTermination(seconds),
        seed=seed,
    )
    return 100.0 * (float(result.F[0]) / problem.best_known - 1.0)


def fast_tsp_gap(problem: TSP, distances: list[list[int]], seconds: float, threads: int) -> float:
    """Gap of fast-tsp after ``seconds``."""
    tour = fast_tsp.find_tour(distances, duration_seconds=seconds, max_threads=threads)
    return 100.0 * (problem.tour_length(tour) / problem.best_known - 1.0)


def timed(run: Callable[[float], float], times: list[float]) -> tuple[list[float], float]:
    """What ``run`` gives for each time, and how many seconds longer than told it took at most."""
    gaps, over = [], 0.0
    for told in times:
        before = time.perf_counter()
        gaps.append(run(told))
        over = max(over, time.perf_counter() - before - told)
    return gaps, over


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=INSTANCES, add=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for every instance")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.only, arguments.seeds, arguments.seconds = ["pr1002"], 1, 2.0
    os.environ["PYMOO_GPUACO_THREADS"] = str(arguments.threads)
    if fast_tsp is None:
        print(NO_FAST_TSP)
    seeds = range(1, arguments.seeds + 1)
    parameters = {
        "algorithm": "GPUMemetic(backend='cpu')",
        "threads": arguments.threads,
    }
    rows: list[list[Any]] = rows_of_others(NAME, arguments.only, parameters) if arguments.add else []

    def add(name: str, solver: str, run: Callable[[float, int], float], times: list[float]) -> None:
        runs, overs = zip(*(timed(lambda t, s=seed: run(t, s), times) for seed in seeds), strict=True)
        means = [round(statistics.mean(at), 3) for at in zip(*runs, strict=True)]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        rows.append(
            [
                name,
                solver,
                len(runs),
                *means,
                *[None] * (len(TIMES) - len(means)),
                memory,
                round(max(overs), 2),
            ]
        )
        print(rows[-1], flush=True)
        rows.sort(key=lambda row: INSTANCES.index(row[0]))  # solvers of one stay in order

    names = [name for name in arguments.only if name != "random200000"]
    problems = problems_of(arguments.folder, names)
    if "random200000" in arguments.only:
        problems["random200000"] = random_problem()
    for name, problem in problems.items():
        GPUMemetic(backend="cpu").setup(problem, seed=1)  # compiles
        times = [t for t in TIMES if t <= arguments.seconds]
        add(name, "GPUMemetic", lambda t, seed, p=problem: colony_gap(p, t, seed), times)
        if fast_tsp is not None and problem.n_cities <= FAST_TSP_CITIES:
            # it stores distances in 16 bits: longer edges are scaled for it and its tours measured in full
            scale = max(1.0, float(problem.D.max()) / 65_000.0)
            distances = (problem.D / scale).round().astype(np.int64).tolist()

            def fast(t: float, _: int, problem: TSP = problem, distances: Any = distances) -> float:
                return fast_tsp_gap(problem, distances, t, arguments.threads)

            add(name, "fast-tsp", fast, times)
        if arguments.quick:
            continue
        write(
            NAME,
            "Gap to the best known over time on the CPU, percent",
            (
                "instance",
                "solver",
                "runs",
                *(f"{t:g} s" for t in TIMES),
                "peak MiB of all so far",
                "longest over, s",
            ),
            rows,
            parameters,
            [
                "One run for each time and seed, told its time; means over the seeds.",
                "GPUMMAS: functions compiled before, set-up counted. fast-tsp: without its matrix, made beforehand.",
            ],
        )


if __name__ == "__main__":
    main()
