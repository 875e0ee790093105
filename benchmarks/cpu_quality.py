"""Gap to the best known over time: GPUMMAS on the CPU beside fast-tsp, in one run on one machine.

    python benchmarks/cpu_quality.py FOLDER [--seeds 5]

FOLDER holds TSPLIB files by name (d198.tsp, pr1002.tsp, ..); instances it lacks are left out, shipped ones are always
measured. fast-tsp (Python package, iterated local search, one core) gets the same wall time.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import fast_tsp
import numpy as np
from folder import problems_of
from options import parser_for
from pymoo.core.termination import TerminateIfAny
from pymoo.termination.max_time import TimeBasedTermination
from record import write

from pymoo_gpuaco import TSP, ColonyTermination, GPUMemetic

#: instance and seconds
PLAN = {"d198": 10, "pcb442": 30, "att532": 20, "gr666": 20, "pr1002": 60, "pr2392": 30}
COLUMNS = (
    "instance",
    "seconds",
    "gap % after 10 %",
    "after 25 %",
    "after 50 %",
    "at the end",
    "worst seed",
    "stopped after s",
    "tours/s",
    "fast-tsp gap %, 1 s",
    "fast-tsp gap %, same time",
)


def climb(problem: TSP, seconds: float, seed: int) -> tuple[list[float], float, float]:
    """Gaps after 10, 25, 50, 100 % of the time, seconds used, tours a second."""
    own = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
    termination = TerminateIfAny(own, TimeBasedTermination(seconds))
    trace: list[tuple[float, float]] = []

    def note(algorithm: Any) -> None:
        trace.append((time.time() - algorithm.start_time, float(algorithm.opt[0].F[0])))

    algorithm = GPUMemetic(backend="cpu")
    algorithm.setup(problem, termination=termination, seed=seed, callback=note)
    algorithm.run()
    gaps = []
    for share in (0.1, 0.25, 0.5, 1.0):
        lengths = [length for at, length in trace if at <= share * seconds] or [trace[0][1]]
        gaps.append(100.0 * (lengths[-1] / problem.best_known - 1.0))
    gaps[-1] = 100.0 * (trace[-1][1] / problem.best_known - 1.0)
    return gaps, trace[-1][0], algorithm.evaluator.n_eval / trace[-1][0]


def fast_tsp_gap(problem: TSP, seconds: float) -> float:
    """Gap of fast-tsp, which takes whole distances below 2**16 only."""
    matrix = problem.D
    scale = max(1.0, float(matrix.max()) / 65_000.0)
    tour = fast_tsp.find_tour((matrix / scale).round().astype(np.int64).tolist(), duration_seconds=seconds)
    return 100.0 * (problem.tour_length(tour) / problem.best_known - 1.0)


def main() -> None:
    parser = parser_for(__doc__, folder="optional", seeds=5, only=PLAN)
    arguments = parser.parse_args()
    rows = []
    for name, problem in problems_of(arguments.folder, arguments.only).items():
        seconds = PLAN[name]
        runs = [climb(problem, seconds, seed) for seed in range(1, arguments.seeds + 1)]
        means = [statistics.mean(gaps[i] for gaps, _, _ in runs) for i in range(4)]
        row = [
            name,
            seconds,
            *(round(m, 3) for m in means),
            round(max(gaps[3] for gaps, _, _ in runs), 3),
            round(statistics.mean(used for _, used, _ in runs), 1),
            round(statistics.median(speed for _, _, speed in runs)),
            round(fast_tsp_gap(problem, 1.0), 3),
            round(fast_tsp_gap(problem, float(seconds)), 3),
        ]
        rows.append(row)
        print(dict(zip(COLUMNS, row, strict=True)), flush=True)
    path = write(
        "cpu_quality",
        "GPUMMAS on the CPU: mean gap to the best known over time, beside fast-tsp",
        COLUMNS,
        rows,
        {"seeds": arguments.seeds, "algorithm": "GPUMemetic()", "fast-tsp": "one run, one core"},
        [
            "A run ends early when it reaches the best known length.",
            "fast-tsp stores distances in 16 bits: instances with longer edges are scaled for it and measured in full.",
        ],
    )
    print(path)


if __name__ == "__main__":
    main()
