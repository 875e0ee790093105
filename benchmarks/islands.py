"""What several islands bring over one colony, by their number: GPUs, or processes on the CPU.

    python benchmarks/islands.py FOLDER [--instances d18512 ..] [--islands 1 2 4] [--seconds 20] [--seeds 2]
                                 [--backend cpu] [--no-result]

Every run has the same time, set-up not counted. The row without islands is ``GPUMMAS()`` alone, as one process runs
it: on a CPU it uses all cores, which islands share. Beside the gap in equal time stands the time to an equal gap: the
one that every run of the fewest islands has reached at its end. Of the islands' time the part outside their rounds is
the overhead: what the exchange costs, the waiting for the process that leads the run, and the last round's end. The
result is islands_cpu or islands_gpu, by where the islands ran.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

from folder import problems_of
from pymoo.optimize import minimize
from record import write
from timed_runs import gap, reference

from pymoo_gpuaco import GPUMMAS, TSP, Islands
from pymoo_gpuaco.islands.local_workers import layout

INSTANCES = ("d18512", "random:100000")
COLUMNS = (
    "instance",
    "cities",
    "islands",
    "workers",
    "runs",
    "gap %",
    "worst %",
    "s to the gap of the fewest",
    "tours/s",
    "tours/s over the fewest",
    "overhead %",
    "overhead a round, ms",
)


class Run(NamedTuple):
    """One run: gaps in percent after so many seconds, the last at its end, and what its engine says."""

    seconds: list[float]
    gaps: list[float]
    rate: float  # tours a second
    overhead: float | None  # percent of the islands' time outside rounds
    overhead_a_round: float | None  # milliseconds
    kind: str

    def seconds_to(self, wanted: float) -> float | None:
        """First time at which the gap was no larger."""
        return next((s for s, g in zip(self.seconds, self.gaps, strict=True) if g <= wanted), None)


def run(problem: TSP, islands: int | None, seconds: float, seed: int, backend: str) -> Run:
    """Search with so many islands, or with ``GPUMMAS()`` alone."""
    to, _ = reference(problem)
    after: list[float] = []
    gaps: list[float] = []

    def note(algorithm: Any) -> None:
        after.append(time.time() - algorithm.start_time)
        gaps.append(gap(float(algorithm.opt.get("F").min()), to))

    colony = GPUMMAS(backend=backend)
    algorithm = colony if islands is None else Islands(colony, islands)
    result = minimize(problem, algorithm, ("time", seconds), seed=seed, callback=note)
    engine, took = result.algorithm.engine, float(result.exec_time)
    rate = result.algorithm.evaluator.n_eval / took
    if islands is None:
        return Run(after, gaps, rate, None, None, engine.kind)
    outside = engine.n_islands * took - engine.busy
    rounds = sum(member.round for member in engine.members)
    share = 100.0 * outside / (engine.n_islands * took)
    return Run(after, gaps, rate, share, 1e3 * outside / max(1, rounds), engine.kind)


def row(
    name: str, n: int, islands: int | None, workers: int, runs: list[Run], fewest: list[Run]
) -> list[Any]:
    """A line of the table; ``fewest`` are the runs of the fewest islands."""
    last = [one.gaps[-1] for one in runs]
    wanted = max(one.gaps[-1] for one in fewest)
    to_wanted = [one.seconds_to(wanted) for one in runs]
    reached = [seconds for seconds in to_wanted if seconds is not None]
    rate, rate_of_fewest = (statistics.mean(one.rate for one in some) for some in (runs, fewest))
    overhead = [one.overhead for one in runs if one.overhead is not None]
    a_round = [one.overhead_a_round for one in runs if one.overhead_a_round is not None]
    return [
        name,
        n,
        islands,
        workers,
        len(runs),
        round(statistics.mean(last), 3),
        round(max(last), 3),
        round(statistics.mean(reached), 1) if len(reached) == len(runs) else None,
        round(rate, 1),
        round(rate / rate_of_fewest, 3),
        round(statistics.mean(overhead), 2) if overhead else None,
        round(statistics.mean(a_round), 1) if a_round else None,
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--islands", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--no-result", action="store_true", help="print, and write no result")
    arguments = parser.parse_args()
    numbers = sorted(set(arguments.islands))
    rows: list[list[Any]] = []
    kind = "cpu"
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        run(problem, None, 0.1, 0, arguments.backend)  # compiles what is not compiled yet
        runs: dict[int | None, list[Run]] = {}
        for islands in (*numbers, None):
            runs[islands] = [
                run(problem, islands, arguments.seconds, seed, arguments.backend)
                for seed in range(1, arguments.seeds + 1)
            ]
            kind = runs[islands][0].kind
            workers = 1 if islands is None else layout(islands, arguments.backend).workers
            line = row(name, problem.n_cities, islands, workers, runs[islands], runs[numbers[0]])
            print(line, flush=True)
            rows.append(line)
    if arguments.no_result:
        return
    write(
        f"islands_{'cpu' if kind == 'cpu' else 'gpu'}",
        f"Islands of GPUMMAS() on {'processes of one CPU' if kind == 'cpu' else 'GPUs'}, by their number",
        COLUMNS,
        rows,
        {"seconds": arguments.seconds, "seeds": arguments.seeds, "exchange every, s": 1.0},
        [
            "Gap to the best known length, for random maps to what is expected of them.",
            f"Workers: {'processes, which share the cores' if kind == 'cpu' else 'processes with a GPU each'}. "
            "Without islands: `GPUMMAS()` in one process.",
            "Time to the gap of the fewest: until the gap was what every run of the fewest islands had at its end.",
            "A tour of focused ants is a window or a tour searched.",
            "Overhead: the islands' time outside their rounds.",
        ],
    )


if __name__ == "__main__":
    main()
