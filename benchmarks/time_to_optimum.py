"""Time to the optimum, beside LKH 3 (elkai) and what EAX is known to take.

    python benchmarks/time_to_optimum.py FOLDER [--backend cuda] [--runs 10] [--only pr2392] [--solver GPUMemetic]
        [--lkh 100] [--add]

FOLDER holds the TSPLIB files. A run of ``GPUMemetic`` has a time limit, set-up counted, and ends as soon as it has a
tour of the optimum's length; functions and kernels are compiled before, and a short run reads them. LKH makes one run
on one core in a process of its own, with nothing beside it; there is no row where it does not end within --lkh seconds,
with --lkh 0, and without elkai. EAX is not run here: its rows are those measured with its authors' code, as the notes
say. With --add the rows of other instances and solvers stay, so that no part takes longer than its runs: 200 s for ten
of fnl4461 on the CPU, 110 s at most for all on a GPU.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import statistics
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from harness import Table, gap, parser_for, problems_of, run_for
from numpy.typing import NDArray

from pymoo_gpuaco import TSP, GPUMemetic, solve
from pymoo_gpuaco.runtime.threads import thread_count

#: time limits in seconds
LIMITS = {
    "cpu": {"pr1002": 2.0, "pr2392": 5.0, "fnl4461": 20.0, "rl5915": 20.0},
    "cuda": {"pr1002": 1.0, "pr2392": 1.0, "fnl4461": 2.0, "rl5915": 2.0, "pla7397": 5.0},
}
INSTANCES = list(LIMITS["cuda"])
OURS, LKH = "GPUMemetic", "LKH 3"
# Instance, tours and seconds of EAX; see the notes.
EAX = (("pr2392", 100, 8.0), ("fnl4461", 300, 203.0))
HEADER = "instance | solver | cores | runs | limit, s | at the optimum | median, s:2 | mean gap %:5"
NOTES = (
    "median: wall seconds of the runs that found the optimum, set-up counted; compiling, and a first run that reads "
    "what was compiled, are not. On a GPU, GPUMemetic uses as many cores of its host.",
    "LKH 3: elkai, one run, its matrix not counted; no row where it was not run or did not end in time.",
    "EAX: one run each of the authors' code (Nagata and Kobayashi 2013, version 1.0, g++ -O3, 30 children) on one "
    "core of an H200's host, 2026-11-23; not measured in the same run as the others.",
)


def run_lkh(matrix: NDArray[Any], answer: Any) -> None:
    """One run of LKH 3 on a matrix, in a process of its own."""
    import elkai

    before = time.perf_counter()
    tour = elkai.DistanceMatrix(matrix.astype(int).tolist()).solve_tsp(runs=1)
    answer.put((float(matrix[tour[:-1], tour[1:]].sum()), time.perf_counter() - before))


def lkh(matrix: NDArray[Any], most: float) -> tuple[float, float] | None:
    """Length and seconds of LKH, None if it does not end within ``most`` seconds."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=run_lkh, args=(matrix, answer), daemon=True)
    process.start()
    try:
        return answer.get(timeout=most)
    except queue.Empty:
        return None
    finally:
        process.terminate()
        process.join()


def row_of(
    name: str,
    solver: str,
    cores: int,
    limit: float | None,
    runs: Sequence[tuple[float, float]],
    optimum: float,
) -> list[Any]:
    """A row of the table from length and seconds of each run."""
    found = [seconds for length, seconds in runs if length <= optimum]
    mean = gap(statistics.mean(length for length, _ in runs), optimum)
    median = statistics.median(found) if found else None
    return [name, solver, cores, len(runs), limit, len(found), median, mean]


def timed_runs(problem: TSP, limit: float, runs: int, backend: str) -> list[tuple[float, float]]:
    """Length and seconds of each run, which ends at the optimum or at its limit."""
    run_for(problem, 0.1, 0, backend)  # compiles and reads
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
    parser.add_argument("--solver", nargs="*", choices=(OURS, LKH), default=[OURS, LKH])
    parser.add_argument("--lkh", type=float, default=100.0, help="seconds that a run of LKH may take")
    arguments = parser.parse_args()
    backend, limits = arguments.backend, LIMITS[arguments.backend]
    if backend == "cpu" or arguments.threads is not None:
        os.environ["PYMOO_GPUACO_THREADS"] = str(arguments.threads or 2)
    threads = thread_count()
    table = Table(
        f"{'gpu' if backend == 'cuda' else 'cpu'}_time_to_optimum",
        f"Time to the optimum on {'a GPU' if backend == 'cuda' else 'the CPU'}",
        HEADER,
        {"algorithm": f"GPUMemetic(backend={backend!r})", "threads": threads},
        NOTES,
    )
    if arguments.add:
        own = {(instance, solver) for instance in arguments.only for solver in arguments.solver}
        table.keep_others(own | {(instance, f"EAX, {tours} tours") for instance, tours, _ in EAX}, keys=2)
    for instance, tours, seconds in EAX:
        table.add(*row_of(instance, f"EAX, {tours} tours", 1, None, [(1.0, seconds)], 1.0))
    runs_lkh = LKH in arguments.solver and arguments.lkh > 0.0 and find_spec("elkai") is not None
    wanted = [instance for instance in arguments.only if instance in limits]
    for instance, problem in problems_of(arguments.folder, wanted).items():
        assert problem.best_known is not None
        if OURS in arguments.solver:
            runs = timed_runs(problem, limits[instance], arguments.runs, backend)
            table.add(*row_of(instance, OURS, threads, limits[instance], runs, problem.best_known))
        found = lkh(problem.D, arguments.lkh) if runs_lkh else None
        if found is not None:
            table.add(*row_of(instance, LKH, 1, None, [found], problem.best_known))
        table.write(lambda row: (INSTANCES.index(row[0]), -row[2], row[1]))


if __name__ == "__main__":
    main()
