"""GPUMMAS with local search through ``minimize`` on a GPU: wall time and error, as paper 001, section 5.7.

    python benchmarks/gpu_local_search.py FOLDER [--seeds 10] [--alike 3] [--only pr1002 ..] [--add]

FOLDER holds the TSPLIB files. 800 ants, 2000 iterations as in the paper. The author's code was measured on the same
kind of GPU, built for it, with the same ants and iterations. It has 2-opt alone. Two more rows for each instance, of
--alike seeds, have the same (docs/algorithms/mmas.md), so that like stands beside like: one as the paper says it, one
as his code does it, which deposits other tours when it has local search. With --add the rows of other instances stay,
if they were measured with the same code on the same GPU, so that instances can be measured side by side on the GPUs of
a machine (CUDA_VISIBLE_DEVICES, and taskset to share its cores).
"""

from __future__ import annotations

import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from options import parser_for
from pymoo.optimize import minimize
from record import alone, rows_of_others, write
from references import values

from pymoo_gpuaco import GPUMMAS, TSP, load_tsp
from pymoo_gpuaco.algorithms.ask_tell import Tours

#: instance: seeds at most
SEEDS = {"pr1002": 10, "pr2392": 10, "fl3795": 10, "fnl4461": 10, "pla7397": 10}
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
COLUMNS = (
    "instance",
    "colony",
    "seeds",
    "mean error %",
    "worst %",
    "minimize, s (median)",
    "spread, s",
    "set-up, s",
    "bare engine loop, s",
    "minimize over bare",
    "author, mean error %",
    "author, s",
)


def colony(name: str) -> GPUMMAS:
    """One of ``COLONIES``."""
    return GPUMMAS(n_ants=ANTS, backend="cuda", **COLONIES[name])


def bare_loop(problem: TSP, name: str, seed: int) -> float:
    """The same iterations with nothing of pymoo."""
    algorithm = colony(name).setup(problem, seed=seed)
    algorithm._begin()
    keys = np.random.default_rng(seed).integers(0, 2**64, ITERATIONS, dtype=np.uint64)
    before = time.perf_counter()
    for key in keys:
        lengths = algorithm.engine.construct(int(key))
        best = int(lengths.argmin())
        algorithm._learn(Tours(algorithm.engine.tours([best]), lengths[[best]]))
    return time.perf_counter() - before


def result(rows: list[list[Any]], only: list[str] | None) -> Path:
    """Write the rows; with ``only`` beside those of other instances."""
    parameters: dict[str, Any] = {
        "ants": ANTS,
        "iterations": ITERATIONS,
        "algorithm": f"GPUMMAS(n_ants={ANTS})",
    }
    with alone("gpu_local_search"):
        others = [] if only is None else rows_of_others("gpu_local_search", only, parameters)
        return write(
            "gpu_local_search",
            "GPUMMAS with local search on a GPU, beside the author's code on the same kind of GPU",
            COLUMNS,
            sorted(rows + others, key=lambda row: list(SEEDS).index(row[0])),
            parameters,
            [
                "The author's figures are constants here: "
                "the code of Skinderowicz 2020, built for and run on an H200, 800 ants, 2000 iterations.",
                "Defaults: 2-opt and Or-opt, rho 0.35, the schedule. As in the paper: 2-opt alone with the 32 nearest, "
                "rho 0.1, the iteration's best deposits. As in his code: the same, and the best of all deposits.",
            ],
        )


def main() -> None:
    parser = parser_for(__doc__, seeds=10, only=SEEDS, add=True)
    parser.add_argument("--alike", type=int, default=3, help="seeds of the rows like the author (default 3)")
    arguments = parser.parse_args()
    if arguments.add:  # what cannot be added to is said before measuring
        rows_of_others("gpu_local_search", arguments.only, {})
    rows: list[list[Any]] = []
    for name, kind in itertools.product(arguments.only, COLONIES):
        most, (error, seconds) = SEEDS[name], AUTHOR[name]
        problem = load_tsp(arguments.folder / f"{name}.tsp")
        minimize(problem, colony(kind), ("n_gen", 5), seed=1)  # compiles
        gaps, runs, setups = [], [], []
        for seed in range(1, min(most, arguments.seeds if kind == "defaults" else arguments.alike) + 1):
            before = time.perf_counter()
            run = minimize(problem, colony(kind), ("n_gen", ITERATIONS), seed=seed)
            whole = time.perf_counter() - before
            runs.append(whole)
            setups.append(whole - run.exec_time)
            gaps.append(100.0 * (float(run.F[0]) / problem.best_known - 1.0))
        bare = bare_loop(problem, kind, 1)
        median = statistics.median(runs)
        rows.append(
            [
                name,
                kind,
                len(gaps),
                round(statistics.mean(gaps), 3),
                round(max(gaps), 3),
                round(median, 2),
                f"{min(runs):.2f} .. {max(runs):.2f}",
                round(statistics.median(setups), 2),
                round(bare, 2),
                round((runs[0] - setups[0]) / bare, 3),  # the same tours: seed 1
                error,
                seconds,
            ]
        )
        print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
        path = result(rows, arguments.only if arguments.add else None)
    print(path)


if __name__ == "__main__":
    main()
