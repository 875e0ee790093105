"""How soon is the optimum found on the CPU, beside LKH 3 (elkai) and what EAX is known to take?

    python benchmarks/time_to_optimum.py FOLDER [--runs 10] [--only pr2392] [--solver GPUMMAS] [--lkh 100] [--add]

FOLDER holds the TSPLIB files. A run of ``GPUMMAS`` is told how long it may take, set-up counted, and ends as soon as it
has a tour of the optimum's length; functions are compiled before. LKH makes one run on one core in a process of its
own, with nothing beside it, and is left where it is not done after --lkh seconds, or not begun with --lkh 0. EAX is not
run here: its rows are those measured with its authors' code, as the notes say. With --add the rows of other instances
and solvers stay, so that no part takes longer than its runs: 200 s for ten of fnl4461.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

from asymmetric_kinds import lkh
from folder import problems_of
from options import parser_for
from record import rows_of_others, write

from pymoo_gpuaco import GPUMMAS, TSP, solve

NAME = "cpu_time_to_optimum"
LIMITS = {"pr1002": 2.0, "pr2392": 5.0, "fnl4461": 20.0, "rl5915": 20.0}  # s that a run is told
GPUMMAS_ROW, LKH_ROW = "GPUMMAS", "LKH 3"
# Instance, tours and seconds of EAX; see the notes.
EAX = (("pr2392", 100, 8.0), ("fnl4461", 300, 203.0))
COLUMNS = ("instance", "solver", "cores", "runs", "limit, s", "at the optimum", "median, s", "mean gap %")
NOTES = (
    "median: wall seconds of the runs that found the optimum, set-up counted; compiling and the matrix of LKH are not.",
    "LKH 3: elkai, one run; no row where it was not done in time.",
    "EAX: one run each of the authors' code (Nagata and Kobayashi 2013, version 1.0, g++ -O3, 30 children) on one core "
    "of an H200's host, 2026-11-23; not measured in the same run as the others.",
)


def row_of(
    name: str,
    solver: str,
    cores: int,
    limit: float | None,
    runs: Sequence[tuple[float, float]],
    optimum: float,
) -> list[Any]:
    """A row of the table from each run's length and seconds."""
    found = [seconds for length, seconds in runs if length <= optimum]
    gap = 100.0 * (statistics.mean(length for length, _ in runs) / optimum - 1.0)
    median = round(statistics.median(found), 2) if found else None
    return [name, solver, cores, len(runs), limit, len(found), median, round(gap, 5)]


def colony_runs(problem: TSP, limit: float, runs: int) -> list[tuple[float, float]]:
    """Length and seconds of each run, which ends at the optimum or at its limit."""
    results = []
    for seed in range(1, runs + 1):
        before = time.perf_counter()
        found = solve(problem, limit, seed=seed, algorithm=GPUMMAS(backend="cpu"))
        results.append((found.length, time.perf_counter() - before))
    return results


def main() -> None:
    parser = parser_for(__doc__, only=LIMITS, add=True)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--solver", nargs="*", choices=(GPUMMAS_ROW, LKH_ROW), default=[GPUMMAS_ROW, LKH_ROW])
    parser.add_argument("--lkh", type=float, default=100.0, help="seconds that a run of LKH may take")
    arguments = parser.parse_args()
    os.environ["PYMOO_GPUACO_THREADS"] = str(arguments.threads)
    parameters = {"algorithm": "GPUMMAS(backend='cpu')", "threads": arguments.threads}
    eax = [row_of(name, f"EAX, {tours} tours", 1, None, [(1.0, s)], 1.0) for name, tours, s in EAX]
    own = {(name, solver) for name in arguments.only for solver in arguments.solver}
    own |= {(row[0], row[1]) for row in eax}
    rows = eax + (rows_of_others(NAME, own, parameters, keys=2) if arguments.add else [])
    for name, problem in problems_of(arguments.folder, arguments.only).items():
        assert problem.best_known is not None
        if GPUMMAS_ROW in arguments.solver:
            GPUMMAS(backend="cpu").setup(problem, seed=1)  # compiles
            runs = colony_runs(problem, LIMITS[name], arguments.runs)
            rows.append(row_of(name, GPUMMAS_ROW, arguments.threads, LIMITS[name], runs, problem.best_known))
            print(rows[-1], flush=True)
        if LKH_ROW in arguments.solver and arguments.lkh > 0.0:
            found = lkh(problem.D, arguments.lkh)
            if found is not None:
                rows.append(row_of(name, LKH_ROW, 1, None, [found], problem.best_known))
            print(name, LKH_ROW, found, flush=True)
        rows.sort(key=lambda row: (list(LIMITS).index(row[0]), -row[2], row[1]))
        write(NAME, "Time to the optimum on the CPU", COLUMNS, rows, parameters, NOTES)


if __name__ == "__main__":
    main()
