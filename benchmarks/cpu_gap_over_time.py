"""Gap to the best known length over time on the CPU: GPUMemetic and fast-tsp on the same number of threads.

    python benchmarks/cpu_gap_over_time.py FOLDER [--seeds 3] [--threads 2] [--only pr2392] [--add] [--seconds 20]

FOLDER contains the TSPLIB files; missing instances are skipped. Both solvers run once per time limit and seed. The
limits include set-up, except the matrix of fast-tsp (package ``fast-tsp``). It needs n^2 distances and
is skipped above 10,000 cities. The last column is the worst overrun of a limit. Runs are sequential, each alone on its
threads. An instance takes 77 s per seed with fast-tsp, and 38 s without; --add preserves the rows of other instances,
if commit and machine are the same.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

from fast_tsp_runs import fast_tsp_tour, lacks_fast_tsp, whole_matrix
from harness import Table, gap, parser_for, problems_of, reference, run_for

from pymoo_gpuaco import TSP

TIMES = (1.0, 2.0, 5.0, 10.0, 20.0)
INSTANCES = ("pr1002", "pr2392", "fnl4461", "pla7397", "d15112", "d18512", "pla85900", "random:200000")
FAST_TSP_CITIES = 10_000
NOTES = (
    "One run for each time limit and seed; means over the seeds.",
    "GPUMemetic: set-up included. fast-tsp: without the computation of its matrix.",
)


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=INSTANCES, add=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="maximum time limit")
    arguments = parser.parse_args()
    threads = arguments.threads
    os.environ["PYMOO_GPUACO_THREADS"] = str(threads)
    limits = " | ".join(f"{t:g} s:3" for t in TIMES)
    table = Table(
        "cpu_gap_over_time",
        "Gap to the best known over time on the CPU, percent",
        f"instance | solver | runs | {limits} | peak MiB of all so far | longest over, s:2",
        {"algorithm": "GPUMemetic(backend='cpu')", "threads": threads},
        NOTES,
    )
    if arguments.add:
        table.keep_others(arguments.only)

    def add(name: str, solver: str, length: Callable[[float, int], float], to: float) -> None:
        gaps: list[float | None] = []
        overrun = 0.0
        for seconds in [t for t in TIMES if t <= arguments.seconds]:
            of_seeds = []
            for seed in range(1, arguments.seeds + 1):
                before = time.perf_counter()
                of_seeds.append(gap(length(seconds, seed), to))
                overrun = max(overrun, time.perf_counter() - before - seconds)
            gaps.append(statistics.mean(of_seeds))
        gaps += [None] * (len(TIMES) - len(gaps))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        table.add(name, solver, arguments.seeds, *gaps, memory, overrun)

    for name, problem in problems_of(arguments.folder, arguments.only).items():
        to = reference(problem)[0]

        def ours(t: float, seed: int, problem: TSP = problem) -> float:
            return run_for(problem, t, seed, "cpu").length

        add(name, "GPUMemetic", ours, to)
        lacking = lacks_fast_tsp(problem.n_cities)
        if lacking is None and problem.n_cities <= FAST_TSP_CITIES:
            distances = whole_matrix(problem)

            def fast(t: float, _: int, problem: TSP = problem, distances: Any = distances) -> float:
                return problem.tour_length(fast_tsp_tour(distances, t, threads)[0])

            add(name, "fast-tsp", fast, to)
        elif lacking is not None:
            print(lacking)
        table.write(lambda row: INSTANCES.index(row[0]))  # the sort preserves the order of solvers


if __name__ == "__main__":
    main()
