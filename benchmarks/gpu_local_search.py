"""GPUMMAS with local search by ``minimize`` on a GPU: wall time and error, as in Skinderowicz 2020, section 5.7.

    python benchmarks/gpu_local_search.py FOLDER [--seeds 10] [--alike 3] [--only pr1002 ..] [--add]

FOLDER contains the TSPLIB files. 800 ants, 2000 iterations as in the paper. The author's code, compiled for the same
type of GPU, was measured with the same ants and iterations. It has 2-opt only. Two more rows per instance, of --alike
seeds, also have 2-opt only (docs/algorithms/mmas.md): one with the deposits of the paper, one with those of the code
with local search. --add preserves the rows of other instances, if they were measured with the same code on the same
GPU: instances can be measured in parallel on the GPUs of a machine (CUDA_VISIBLE_DEVICES, and taskset to share its
cores).
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
#: the colony with its defaults, as in section 5.7 of the paper, and as in the author's code (mmas.cu of
#: RSkinderowicz/GPU-based-MMAS at 8aac055). There the best tour since the last reset deposits; in a tenth of the
#: iterations the iteration's best; in a tenth of the others the best of all. Trails are reset after 500 iterations
#: without improvement.
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
    "The author's figures are constants: the code of Skinderowicz 2020, compiled for and run on an H200, 800 ants, "
    "2000 iterations.",
    "Defaults: 2-opt and Or-opt, rho 0.35, deposit schedule. As in the paper: 2-opt only with the 32 nearest, rho 0.1, "
    "the iteration's best deposits. As in his code: as in the paper, but the best of all deposits.",
)


def colony(name: str) -> GPUMMAS:
    """Create one of ``COLONIES``."""
    return GPUMMAS(n_ants=ANTS, backend="cuda", **COLONIES[name])


def bare_loop(problem: TSP, name: str) -> float:
    """Return the seconds of the same iterations without pymoo."""
    algorithm = colony(name).setup(problem, seed=1)
    before = time.perf_counter()
    for _ in iterations(algorithm, ITERATIONS, seed=1):
        pass
    return time.perf_counter() - before


def row_for(name: str, kind: str, problem: TSP, seeds: int) -> list[Any]:
    """Run one colony on one instance; return its row."""
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
    # the first run and the bare loop have the same seed and tours
    return [*row, statistics.median(setups), bare, (runs[0] - setups[0]) / bare, *AUTHOR[name]]


def main() -> None:
    parser = parser_for(__doc__, seeds=10, only=INSTANCES, add=True)
    parser.add_argument(
        "--alike", type=int, default=3, help="seeds of the rows like the author's (default 3)"
    )
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
