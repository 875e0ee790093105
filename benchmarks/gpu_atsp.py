"""Gaps and time to the optimum on asymmetric instances: GPUMemetic() on either backend, and GPUMMAS.

    python benchmarks/gpu_atsp.py FOLDER [--seeds 10] [--whole 3] [--only rbg443] [--add] [--backend cpu]

FOLDER contains the TSPLIB files; missing instances are skipped. A run has two seconds on a GPU and five on the CPU,
set-up included, and ends at the optimum. --whole: number of additional runs of GPUMMAS with the same time limit, with
and without local search. --add preserves the rows of other instances.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from harness import Table, gap, parser_for, problems_of, run_for
from pymoo.core.termination import TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination.fmin import MinimumFunctionValueTermination
from pymoo.termination.max_time import TimeBasedTermination

from pymoo_gpuaco import GPUMMAS, TSP, GPUMemetic

INSTANCES = (
    "br17", "ftv33", "ftv38", "p43", "ry48p", "ft53", "ftv55", "ft70", "ftv70", "kro124p", "ftv170", "rbg443",
)  # fmt: skip
SECONDS = {"cuda": 2.0, "cpu": 5.0}
HEADER = (
    "instance | cities | seconds | seeds | at the optimum | mean gap %:3 | worst %:3 | "
    "last better tour after s (median):2 | generations a second:0 | whole tours, mean gap %:3 | "
    "whole tours without local search, mean gap %:3"
)
NOTES = (
    "A run ends at the optimum; times start at the call and include set-up.",
    "Whole tours: GPUMMAS(), and with local_search=False, in the same seconds.",
)


def climb(problem: TSP, seconds: float, seed: int, algorithm: Any) -> tuple[float, float, float]:
    """Return the gap in percent, seconds from the call to the last improvement, and generations per second."""
    best = [float("inf"), 0.0]
    before = time.perf_counter()

    def note(algorithm: Any) -> None:
        length = float(algorithm.opt[0].F[0])
        if length < best[0]:
            best[:] = length, time.perf_counter() - before

    ends = TerminateIfAny(MinimumFunctionValueTermination(problem.best_known), TimeBasedTermination(seconds))
    result = minimize(problem, algorithm, ends, seed=seed, callback=note)
    assert result.F[0] == best[0]
    return gap(best[0], problem.best_known), best[1], result.algorithm.n_gen / float(result.exec_time)


def main() -> None:
    parser = parser_for(__doc__, seeds=10, only=INSTANCES, add=True, backend="cuda")
    parser.add_argument("--whole", type=int, default=3, help="seeds of the runs of GPUMMAS, >= 1")
    arguments = parser.parse_args()
    backend, seconds = arguments.backend, SECONDS[arguments.backend]
    on, kind = ("a GPU", "gpu") if backend == "cuda" else ("the CPU", "cpu")
    parameters = {
        "algorithm": "GPUMemetic()",
        "seeds": arguments.seeds,
        "seeds of whole tours": arguments.whole,
    }
    table = Table(f"{kind}_atsp", f"Asymmetric instances: GPUMemetic on {on}", HEADER, parameters, NOTES)
    if arguments.add:
        table.keep_others(arguments.only)
    for name, problem in problems_of(arguments.folder, arguments.only).items():
        run_for(problem, 0.1, 0, backend)  # compiles
        seeds = range(1, arguments.seeds + 1)
        runs = [climb(problem, seconds, seed, GPUMemetic(backend=backend)) for seed in seeds]
        gaps, last, rates = zip(*runs, strict=True)
        whole = [
            statistics.mean(
                climb(problem, seconds, seed, GPUMMAS(backend=backend, local_search=search))[0]
                for seed in range(1, arguments.whole + 1)
            )
            for search in (True, False)
        ]
        optimal, mean = sum(g <= 0.0 for g in gaps), statistics.mean(gaps)
        pace = statistics.median(last), statistics.mean(rates)
        table.add(name, problem.n_cities, seconds, len(runs), optimal, mean, max(gaps), *pace, *whole)
    table.write(lambda row: INSTANCES.index(row[0]))


if __name__ == "__main__":
    main()
