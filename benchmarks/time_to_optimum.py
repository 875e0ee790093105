"""How soon is the optimum found, beside LKH 3 (elkai) and what EAX is known to take?

    python benchmarks/time_to_optimum.py FOLDER [--backend cuda] [--runs 10] [--only pr2392] [--solver GPUMMAS]
        [--lkh 100] [--add]

FOLDER holds the TSPLIB files. A run of ``GPUMMAS`` is told how long it may take, set-up counted, and ends as soon as it
has a tour of the optimum's length; functions and kernels are compiled before, and a short run reads them. LKH makes one
run on one core in a process of its own, with nothing beside it, and is left where it is not done after --lkh seconds,
or not begun with --lkh 0, nor without elkai. EAX is not run here: its rows are those measured with its authors' code,
as the notes say. With --add the rows of other instances and solvers stay, so that no part takes longer than its runs:
200 s for ten of fnl4461 on the CPU, 110 s at most for all on a GPU.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from asymmetric_kinds import lkh
from folder import problems_of
from options import parser_for
from record import rows_of_others, write
from timed_runs import run_for

from pymoo_gpuaco import TSP, GPUMemetic, solve
from pymoo_gpuaco.runtime.threads import thread_count

#: s that a run is told
LIMITS = {
    "cpu": {"pr1002": 2.0, "pr2392": 5.0, "fnl4461": 20.0, "rl5915": 20.0},
    "cuda": {"pr1002": 1.0, "pr2392": 1.0, "fnl4461": 2.0, "rl5915": 2.0, "pla7397": 5.0},
}
INSTANCES = list(LIMITS["cuda"])
WARM_UP = 0.1  # s of a run that only compiles and reads
GPUMMAS_ROW, LKH_ROW = "GPUMMAS", "LKH 3"
# Instance, tours and seconds of EAX; see the notes.
EAX = (("pr2392", 100, 8.0), ("fnl4461", 300, 203.0))
COLUMNS = ("instance", "solver", "cores", "runs", "limit, s", "at the optimum", "median, s", "mean gap %")


def name_of(backend: str) -> str:
    """Name of a result."""
    return f"{'gpu' if backend == 'cuda' else 'cpu'}_time_to_optimum"


def notes_of(backend: str, runs_lkh: bool) -> list[str]:
    """What is to be known of the rows."""
    notes = [
        "median: wall seconds of the runs that found the optimum, set-up counted; compiling, and a first run that "
        "reads what was compiled, are not."
    ]
    if backend == "cuda":
        notes.append(f"{GPUMMAS_ROW}: on the GPU, and on so many cores of its host.")
    if runs_lkh:
        notes.append(
            f"{LKH_ROW}: elkai, one run, its matrix not counted; no row where it was not begun or not done in time."
        )
    else:
        notes.append(f"{LKH_ROW} was not run.")
    notes.append(
        "EAX: one run each of the authors' code (Nagata and Kobayashi 2013, version 1.0, g++ -O3, 30 children) on one "
        "core of an H200's host, 2026-11-23; not measured in the same run as the others."
    )
    return notes


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


def colony_runs(problem: TSP, limit: float, runs: int, backend: str) -> list[tuple[float, float]]:
    """Length and seconds of each run, which ends at the optimum or at its limit."""
    run_for(problem, WARM_UP, 0, backend)
    results = []
    for seed in range(1, runs + 1):
        before = time.perf_counter()
        found = solve(problem, limit, seed=seed, algorithm=GPUMemetic(backend=backend))
        results.append((found.length, time.perf_counter() - before))
    return results


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES, add=True, backend="cpu")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--threads", type=int, help="2 on the CPU, all beside a GPU")
    parser.add_argument("--solver", nargs="*", choices=(GPUMMAS_ROW, LKH_ROW), default=[GPUMMAS_ROW, LKH_ROW])
    parser.add_argument("--lkh", type=float, default=100.0, help="seconds that a run of LKH may take")
    arguments = parser.parse_args()
    backend, name = arguments.backend, name_of(arguments.backend)
    limits = LIMITS[backend]
    if backend == "cpu" or arguments.threads is not None:
        os.environ["PYMOO_GPUACO_THREADS"] = str(arguments.threads or 2)
    threads = thread_count()
    parameters = {"algorithm": f"GPUMemetic(backend={backend!r})", "threads": threads}
    eax = [row_of(instance, f"EAX, {tours} tours", 1, None, [(1.0, s)], 1.0) for instance, tours, s in EAX]
    own = {(instance, solver) for instance in arguments.only for solver in arguments.solver}
    own |= {(row[0], row[1]) for row in eax}
    rows = eax + (rows_of_others(name, own, parameters, keys=2) if arguments.add else [])
    runs_lkh = LKH_ROW in arguments.solver and arguments.lkh > 0.0
    if runs_lkh and find_spec("elkai") is None:
        print("elkai is not installed: no rows of LKH 3")
        runs_lkh = False
    wanted = [instance for instance in arguments.only if instance in limits]
    for instance, problem in problems_of(arguments.folder, wanted).items():
        assert problem.best_known is not None
        if GPUMMAS_ROW in arguments.solver:
            runs = colony_runs(problem, limits[instance], arguments.runs, backend)
            rows.append(row_of(instance, GPUMMAS_ROW, threads, limits[instance], runs, problem.best_known))
            print(rows[-1], flush=True)
        if runs_lkh:
            found = lkh(problem.D, arguments.lkh)
            if found is not None:
                rows.append(row_of(instance, LKH_ROW, 1, None, [found], problem.best_known))
            print(instance, LKH_ROW, found, flush=True)
        rows.sort(key=lambda row: (INSTANCES.index(row[0]), -row[2], row[1]))
        title = f"Time to the optimum on {'a GPU' if backend == 'cuda' else 'the CPU'}"
        of_lkh = runs_lkh or any(row[1] == LKH_ROW for row in rows)
        write(name, title, COLUMNS, rows, parameters, notes_of(backend, of_lkh))


if __name__ == "__main__":
    main()
