"""How good are tours of asymmetric instances, and how soon is the optimum found? GPUMMAS on either engine.

    python benchmarks/gpu_atsp.py FOLDER [--seeds 10] [--whole 3] [--only rbg443] [--add] [--backend cpu]

FOLDER holds the TSPLIB files; instances that it lacks are left out. A run has two seconds on a GPU and five on the CPU,
set-up counted, and it ends where it reaches the optimum. --whole runs more have the same time and build whole tours as
the paper's colony does, with its local search and without. With --add the rows of other instances stay.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from folder import problems_of
from options import parser_for
from pymoo.core.termination import TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination.fmin import MinimumFunctionValueTermination
from pymoo.termination.max_time import TimeBasedTermination
from record import rows_of_others, write
from timed_runs import gap, run_for

from pymoo_gpuaco import GPUMMAS, TSP, GPUMemetic

INSTANCES = (
    "br17", "ftv33", "ftv38", "p43", "ry48p", "ft53", "ftv55", "ft70", "ftv70", "kro124p", "ftv170", "rbg443",
)  # fmt: skip
SECONDS = {"cuda": 2.0, "cpu": 5.0}
COLUMNS = (
    "instance",
    "cities",
    "seconds",
    "seeds",
    "at the optimum",
    "mean gap %",
    "worst %",
    "last better tour after s (median)",
    "generations a second",
    "whole tours, mean gap %",
    "whole tours without local search, mean gap %",
)


def climb(
    problem: TSP, seconds: float, seed: int, backend: str, **arguments: Any
) -> tuple[float, float, float]:
    """Gap in percent, seconds from the call to the last better tour, generations a second.

    Of GPUMMAS with the arguments; without any, of GPUMemetic.
    """
    best = [float("inf"), 0.0]
    before = time.perf_counter()

    def note(algorithm: Any) -> None:
        length = float(algorithm.opt[0].F[0])
        if length < best[0]:
            best[:] = length, time.perf_counter() - before

    ends = TerminateIfAny(MinimumFunctionValueTermination(problem.best_known), TimeBasedTermination(seconds))
    algorithm = (GPUMMAS if arguments else GPUMemetic)(backend=backend, **arguments)
    result = minimize(problem, algorithm, ends, seed=seed, callback=note)
    assert result.F[0] == best[0]
    generations = result.algorithm.n_gen
    return gap(best[0], problem.best_known), best[1], generations / float(result.exec_time)


def main() -> None:
    parser = parser_for(__doc__, seeds=10, only=INSTANCES, add=True, backend="cuda")
    parser.add_argument("--whole", type=int, default=3, help="seeds of the runs that build whole tours, >= 1")
    arguments = parser.parse_args()
    kind = "gpu" if arguments.backend == "cuda" else "cpu"
    parameters = {
        "algorithm": "GPUMemetic()",
        "seeds": arguments.seeds,
        "seeds of whole tours": arguments.whole,
    }
    rows = rows_of_others(f"{kind}_atsp", arguments.only, parameters) if arguments.add else []
    for name, problem in problems_of(arguments.folder, arguments.only).items():
        run_for(problem, 0.1, 0, arguments.backend)  # compiles
        seconds = SECONDS[arguments.backend]
        runs = [climb(problem, seconds, seed, arguments.backend) for seed in range(1, arguments.seeds + 1)]
        gaps = [run[0] for run in runs]
        whole = [
            statistics.mean(
                climb(problem, seconds, seed, arguments.backend, local_search=search)[0]
                for seed in range(1, arguments.whole + 1)
            )
            for search in (True, False)
        ]
        rows.append(
            [
                name,
                problem.n_cities,
                seconds,
                len(runs),
                sum(g <= 0.0 for g in gaps),
                round(statistics.mean(gaps), 3),
                round(max(gaps), 3),
                round(statistics.median(run[1] for run in runs), 2),
                round(statistics.mean(run[2] for run in runs)),
                *(round(mean, 3) for mean in whole),
            ]
        )
        print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    on = "a GPU" if arguments.backend == "cuda" else "the CPU"
    rows.sort(key=lambda row: INSTANCES.index(row[0]))
    print(
        write(
            f"{kind}_atsp",
            f"Asymmetric instances: GPUMMAS on {on}",
            COLUMNS,
            rows,
            parameters,
            [
                "A run ends where it reaches the optimum; times are counted from the call, set-up included.",
                "Whole tours: GPUMMAS(), and with local_search=False, in the same seconds.",
            ],
        )
    )


if __name__ == "__main__":
    main()
