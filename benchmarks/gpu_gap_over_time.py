"""Gap to the best known over wall time: GPUMMAS on a GPU beside fast-tsp on the same machine.

    python benchmarks/gpu_gap_over_time.py FOLDER [--seeds 2] [--ants 800] [--only pr2392] [--seconds 5]

FOLDER holds the TSPLIB files; instances that it lacks are left out. With two seeds it takes about three
minutes (a run ends at the best known length). GPUMMAS runs with its defaults, and with ``--ants`` in another size too;
one run a seed, its best length noted after every generation. fast-tsp (package ``fast-tsp``, iterated local search)
tells nothing before its end, so it runs once for each time, on one core as it does by default and on all cores. The
runs on one core go on at the same time as GPUMMAS, the others alone. Without the package its rows are left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from folder import problems_of
from pymoo.core.termination import TerminateIfAny
from pymoo.termination.max_time import TimeBasedTermination
from record import write

from pymoo_gpuaco import GPUMMAS, TSP, ColonyTermination

try:
    import fast_tsp
except ImportError:
    fast_tsp = None
    NO_FAST_TSP = "fast-tsp is not installed (python -m pip install fast-tsp): its rows are left out"

#: seconds at which gaps are told, and at most for an instance
TIMES = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
PLAN = {"pr1002": 2.0, "pr2392": 5.0, "fnl4461": 10.0, "pla7397": 20.0, "d18512": 20.0}
#: fast-tsp wants the whole matrix as Python's integers
FAST_TSP_CITIES = 10_000
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def colony_gaps(problem: TSP, seconds: float, seed: int, ants: int | None) -> list[float]:
    """Gap at each of ``TIMES`` up to ``seconds``; the set-up counts, compiled kernels are there."""
    own = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
    trace: list[tuple[float, float]] = []
    before = time.perf_counter()

    def note(algorithm: Any) -> None:
        trace.append((time.perf_counter() - before, float(algorithm.opt[0].F[0])))

    algorithm = GPUMMAS(ants, backend="cuda").setup(
        problem,
        termination=TerminateIfAny(own, TimeBasedTermination(seconds)),
        seed=seed,
        callback=note,
    )
    algorithm.run()
    gaps = []
    for at in (t for t in TIMES if t <= seconds):
        lengths = [length for when, length in trace if when <= at]
        gaps.append(100.0 * (lengths[-1] / problem.best_known - 1.0) if lengths else float("nan"))
    return gaps


def fast_tsp_gap(problem: TSP, seconds: float, cores: int) -> float:
    """Gap of fast-tsp after ``seconds``; it takes whole distances below 2**16 only."""
    matrix = problem.D
    scale = max(1.0, float(matrix.max()) / 65_000.0)
    distances = (matrix / scale).round().astype(np.int64)
    tour = fast_tsp.find_tour(distances, duration_seconds=seconds, max_threads=cores)
    return 100.0 * (problem.tour_length(tour) / problem.best_known - 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=list(PLAN), default=list(PLAN))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--ants", type=int, nargs="*", default=[], help="colony sizes beside the default")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, for every instance")
    arguments = parser.parse_args()
    if fast_tsp is None:
        print(NO_FAST_TSP)
    began = time.perf_counter()
    rows: list[list[Any]] = []

    def add(name: str, solver: str, runs: list[list[float]]) -> None:
        means = [round(statistics.mean(at), 3) for at in zip(*runs, strict=True)]
        rows.append([name, solver, len(runs), *means, *[None] * (len(TIMES) - len(means))])
        print(f"{time.perf_counter() - began:6.1f} s", rows[-1], flush=True)

    for name, problem in problems_of(arguments.folder, arguments.only).items():
        seconds = min(PLAN[name], arguments.seconds)
        times = [t for t in TIMES if t <= seconds]
        beside = fast_tsp is not None and problem.n_cities <= FAST_TSP_CITIES
        sizes = [None, *arguments.ants]
        for ants in sizes:
            GPUMMAS(ants, backend="cuda").setup(problem, seed=1)  # compiles
        with ProcessPoolExecutor(len(TIMES), mp_context=get_context("spawn")) as pool:
            jobs = [pool.submit(fast_tsp_gap, problem, t, 1) for t in times] if beside else []
            for ants in sizes:
                gaps = [colony_gaps(problem, seconds, seed, ants) for seed in range(1, arguments.seeds + 1)]
                add(name, "GPUMMAS()" if ants is None else f"GPUMMAS({ants})", gaps)
            if beside:
                add(name, "fast-tsp, 1 core", [[job.result() for job in jobs]])
        if beside:
            add(name, f"fast-tsp, {CORES} cores", [[fast_tsp_gap(problem, t, CORES) for t in times]])
        write(
            "gpu_gap_over_time",
            "Gap to the best known over wall time, percent",
            ("instance", "solver", "runs", *(f"{t:g} s" for t in TIMES)),
            rows,
            {"algorithm": "GPUMMAS()", "seeds": arguments.seeds, "cores": CORES},
            [
                "GPUMMAS: means over the seeds, from the start of the set-up, kernels compiled before. "
                "It stops at the best known length.",
                "fast-tsp: one run for each time, set-up counted. It stores distances in 16 bits: instances with "
                "longer edges are scaled for it and measured in full; "
                f"it does not run on more than {FAST_TSP_CITIES} cities here.",
            ],
        )


if __name__ == "__main__":
    main()
