"""Quality of GPUACS on the CPU by number of ants and local evaporation, with the same number of tours.

    python benchmarks/cpu_acs.py FOLDER [--seeds 3] [--tours 6000]

FOLDER contains the TSPLIB files; missing instances are skipped.
"""

from __future__ import annotations

import statistics
import time

from harness import Table, gap, parser_for, problems_of
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUACS

INSTANCES = ("pcb442", "rat783", "pr1002")
ANTS = (10, 24, 100, 792)  # the last is the default of a GPU with 132 multiprocessors
HEADER = "instance | ants | xi:4 | default | trail kept, share:3 | mean gap, %:3 | worst, %:3 | tours:0 | seconds:1"
NOTE = (
    "Trail kept: share (1 - xi)^ants of the trail above tau_0 that is left on an edge of all ants before the global "
    "update."
)


def main() -> None:
    parser = parser_for(__doc__, folder="optional", seeds=3, only=INSTANCES)
    parser.add_argument("--tours", type=int, default=6000, help="of a run")
    options = parser.parse_args()
    table = Table(
        "cpu_acs_updates",
        "GPUACS with local search, the same number of tours: ants and local evaporation",
        HEADER,
        {"seeds": options.seeds, "tours": options.tours},
        [NOTE],
    )
    for name, problem in problems_of(options.folder, options.only).items():
        for ants in ANTS:
            usual = 0.1 * min(1.0, 24 / ants)  # the default of GPUACS
            for xi in sorted({0.1, 1.0 / ants, usual}, reverse=True):
                gaps, tours, seconds = [], [], []
                for seed in range(1, options.seeds + 1):
                    before = time.perf_counter()
                    colony = GPUACS(ants, xi=xi, backend="cpu")
                    result = minimize(problem, colony, ("n_eval", options.tours), seed=seed)
                    seconds.append(time.perf_counter() - before)
                    gaps.append(gap(float(result.F[0]), problem.best_known))
                    tours.append(result.algorithm.evaluator.n_eval)
                medians = statistics.median(tours), statistics.median(seconds)
                is_default = "yes" if xi == usual else "no"
                table.add(
                    name, ants, xi, is_default, (1.0 - xi) ** ants, statistics.mean(gaps), max(gaps), *medians
                )
    table.write()


if __name__ == "__main__":
    main()
