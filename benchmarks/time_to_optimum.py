"""Time to the optimum, compared with LKH 3 (elkai) and published code of EAX.

    python benchmarks/time_to_optimum.py FOLDER [--backend cuda] [--runs 10] [--only pr2392] [--solver GPUMemetic]
        [--lkh 100] [--add]

FOLDER contains the TSPLIB files. A run of ``GPUMemetic`` has a time limit, set-up included, and ends at the optimum;
kernels are compiled and code is loaded before. LKH runs once, alone, in a separate process on one core; there is
no row if it does not end within --lkh seconds, with --lkh 0, or without elkai. EAX is not run: its rows were measured
with its authors' code, see the notes. --add preserves the rows of other instances and solvers: ten runs of fnl4461 take
200 s on the CPU, all runs on a GPU at most 110 s.
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
    "median: wall seconds of the runs that found the optimum, set-up included; compilation and loading of compiled "
    "code are excluded. On a GPU, GPUMemetic uses the given number of cores of its host.",
    "LKH 3: elkai, one run, without the computation of its matrix; no row if it was not run or did not end in time.",
    "EAX: one run each of the authors' code (Nagata and Kobayashi 2013, version 1.0, g++ -O3, 30 children) on one "
    "core of an H200's host, 2026-11-23; not measured in the same run as the others.",
)


def run_lkh(matrix: NDArray[Any], answer: Any) -> None:
    """Run LKH 3 once on a matrix; put length and seconds into ``answer``. Called in a separate process."""
    import elkai

    before = time.perf_counter()
    tour = elkai.DistanceMatrix(matrix.astype(int).tolist()).solve_tsp(runs=1)
    answer.put((float(matrix[tour[:-1], tour[1:]].sum()), time.perf_counter() - before))


def lkh(matrix: NDArray[Any], most: float) -> tuple[float, float] | None:
    """Return length and seconds of LKH, or None if it does not end within ``most`` seconds."""
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
    """Return a row of the table from the length and the seconds of each run."""
    found = [seconds for length, seconds in runs if length <= optimum]
    mean = gap(statistics.mean(length for length, _ in runs), optimum)
    median = statistics.median(found) if found else None
    return [name, solver, cores, len(runs), limit, len(found), median, mean]


def timed_runs(problem: TSP, limit: float, runs: int, backend: str) -> list[tuple[float, float]]:
    """Return length and seconds of each run, which ends at the optimum or at its limit."""
    run_for(problem, 0.1, 0, backend)  # compiles kernels, loads machine code
    results = []
    for seed in range(1, runs + 1):
        before = time.perf_counter()
        found = solve(problem, limit, seed=seed, algorithm=GPUMemetic(backend=backend))
        results.append((found.length, time.perf_counter() - before))
    return results


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES, add=True, backend="cpu")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--threads", type=int, help="default: 2 on the CPU, all with a GPU")
    parser.add_argument("--solver", nargs="*", choices=(OURS, LKH), default=[OURS, LKH])
    parser.add_argument("--lkh", type=float, default=100.0, help="time limit of a run of LKH, s")
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
