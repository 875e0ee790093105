"""GPUMMAS with local search through ``minimize`` on a GPU: wall time and error, as paper 001, section 5.7.

    python benchmarks/gpu_local_search.py FOLDER [--seeds 10] [--alike 3] [--only pr1002 ..] [--add]

FOLDER holds the TSPLIB files. 800 ants, 2000 iterations as in the paper. The author's code was measured on the same
kind of GPU, built for it, with the same ants and iterations. It has 2-opt alone. Two more rows for each instance, of
--alike seeds, have the same (docs/algorithms/mmas.md): one as in the paper, one as in the code, which deposits other
tours when it has local search. With --add the rows of other instances stay, if they were measured with the same code on
the same GPU, so that instances can be measured side by side on the GPUs of a machine (CUDA_VISIBLE_DEVICES, and taskset
to share its cores).
"""

from __future__ import annotations

import itertools
import statistics
import time
from typing import Any

from harness import Table, alone, gap, parser_for, problems_of, values
from kernel_clock import iterations
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, TSP

INSTANCES = ("pr1002", "pr2392", "fl3795", "fnl4461", "pla7397")
#: instance: author's mean error in percent, author's seconds
AUTHOR = values("skinderowicz_2020_code", "local_search")
ANTS, ITERATIONS = 800, 2000
_PAPER = {"rho": 0.1, "candidate_list_size": 32, "local_search": "2opt", "p_best": 0.01}
#: the colony with its defaults, and as the author's: by section 5.7 of the paper, and by his code (mmas.cu of
#: RSkinderowicz/GPU-based-MMAS at 8aac055), where the best tour since the last reset deposits, but in a tenth of the
#: iterations the iteration's best, in a tenth of the rest the best of all; after 500 idle iterations trails are reset
COLONIES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "as in the paper": {**_PAPER, "deposit": "iteration_best"},
    "as in his code": {**_PAPER, "deposit": "global_best", "restart_after": 500},
}
HEADER = (
    "instance | colony | seeds | mean error %:3 | worst %:3 | minimize, s (median):2 | spread, s | set-up, s:2 | "
    "bare engine loop, s:2 | minimize over bare:3 | author, mean error % | author, s"
)
NOTES = (
    "The author's figures are constants here: the code of Skinderowicz 2020, built for and run on an H200, 800 ants, "
    "2000 iterations.",
    "Defaults: 2-opt and Or-opt, rho 0.35, the schedule. As in the paper: 2-opt alone with the 32 nearest, rho 0.1, "
    "the iteration's best deposits. As in his code: the same, and the best of all deposits.",
)


def colony(name: str) -> GPUMMAS:
    """One of ``COLONIES``."""
    return GPUMMAS(n_ants=ANTS, backend="cuda", **COLONIES[name])


def bare_loop(problem: TSP, name: str) -> float:
    """Seconds of the same iterations without pymoo."""
    algorithm = colony(name).setup(problem, seed=1)
    before = time.perf_counter()
    for _ in iterations(algorithm, ITERATIONS, seed=1):
        pass
    return time.perf_counter() - before


def row_for(name: str, kind: str, problem: TSP, seeds: int) -> list[Any]:
    """Run one colony on one instance."""
    minimize(problem, colony(kind), ("n_gen", 5), seed=1)  # compiles
    gaps, runs, setups = [], [], []
    for seed in range(1, seeds + 1):
        before = time.perf_counter()
        run = minimize(problem, colony(kind), ("n_gen", ITERATIONS), seed=seed)
        runs.append(time.perf_counter() - before)
        setups.append(runs[-1] - run.exec_time)
        gaps.append(gap(float(run.F[0]), problem.best_known))
    bare, spread = bare_loop(problem, kind), f"{min(runs):.2f} .. {max(runs):.2f}"
    row = [name, kind, seeds, statistics.mean(gaps), max(gaps), statistics.median(runs), spread]
    # the tours of seed 1 are the same
    return [*row, statistics.median(setups), bare, (runs[0] - setups[0]) / bare, *AUTHOR[name]]


def main() -> None:
    parser = parser_for(__doc__, seeds=10, only=INSTANCES, add=True)
    parser.add_argument("--alike", type=int, default=3, help="seeds of the rows like the author (default 3)")
    arguments = parser.parse_args()
    rows: list[list[Any]] = []
    problems = problems_of(arguments.folder, arguments.only)
    for (name, problem), kind in itertools.product(problems.items(), COLONIES):
        seeds = arguments.seeds if kind == "defaults" else arguments.alike
        rows.append(row_for(name, kind, problem, seeds))
        with alone("gpu_local_search"):
            table = Table(
                "gpu_local_search",
                "GPUMMAS with local search on a GPU, beside the author's code on the same kind of GPU",
                HEADER,
                {"ants": ANTS, "iterations": ITERATIONS, "algorithm": f"GPUMMAS(n_ants={ANTS})"},
                NOTES,
            )
            if arguments.add:
                table.keep_others(arguments.only)
            for row in rows:
                table.add(*row)
            table.write(lambda row: INSTANCES.index(row[0]))


if __name__ == "__main__":
    main()
