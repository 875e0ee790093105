"""How the time that GPUMemetic() needs for a good tour grows with the number of cities, from 1,000 to 1,000,000.

    python benchmarks/gpu_growth.py FOLDER [--instances random:1000 d18512 ..] [--seeds 3] [--percent 1] [--budget 300]

The maps are random:N, which are made, unless instances of FOLDER are named. A run lasts 2 to 20 s, by size, and its
best length is noted after every generation: the time to 1 % is that of the first which is at most 1 % longer than the
map's reference, from the call on, set-up counted, compilation not. Three seeds take about five minutes; the budget
leaves large maps out.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from folder import problems_of
from options import parser_for
from record import write
from timed_runs import gap, reference, run_for, set_up_seconds

from pymoo_gpuaco import TSP

INSTANCES = [
    f"random:{n}" for n in (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
]
#: below, one map differs from what is expected of its size by too much: its best tour of all runs is the reference
EXPECTED_FROM = 200_000
COLUMNS = (
    "instance",
    "cities",
    "runs",
    "set-up, s",
    "time to {:g} %, s",
    "fastest, s",
    "slowest, s",
    "microseconds a city",
    "seconds of a run",
    "gap % at its end",
    "gap to",
)


def seconds_for(n: int) -> float:
    """How long a run on ``n`` cities lasts, set-up counted."""
    return min(20.0, max(2.0, n / 10_000))


class Trace:
    """The best lengths of a run, by seconds since this was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.points: list[tuple[float, float]] = []

    def __call__(self, algorithm: Any) -> None:
        self.points.append((time.perf_counter() - self._began, float(algorithm.opt[0].F[0])))

    def first_at(self, length: float) -> float | None:
        """Seconds to a tour of at most this length, None if there was none."""
        return next((at for at, best in self.points if best <= length), None)


def row_for(problem: TSP, seeds: int, percent: float, backend: str) -> list[Any]:
    """Run all seeds on one map."""
    n = problem.n_cities
    set_up, seconds = set_up_seconds(problem, backend), seconds_for(n)
    traces, lengths = [], []
    for seed in range(1, seeds + 1):
        trace = Trace()
        lengths.append(run_for(problem, seconds, seed, backend, trace).length)
        traces.append(trace)
    to, name = reference(problem)
    if problem.best_known is None and n < EXPECTED_FROM:
        to, name = min(lengths), "the best of the runs"
    times = [trace.first_at(to * (1.0 + percent / 100.0)) for trace in traces]
    reached = [at for at in times if at is not None]
    all_reached = len(reached) == seeds
    return [
        n,
        seeds,
        round(set_up, 3),
        round(statistics.mean(reached), 3) if all_reached else None,
        round(min(reached), 3) if reached else None,
        round(max(reached), 3) if all_reached else None,
        round(1e6 * statistics.mean(reached) / n, 2) if all_reached else None,
        seconds,
        round(statistics.mean(gap(length, to) for length in lengths), 3),
        name,
    ]


def main() -> None:
    parser = parser_for(__doc__, seeds=3, backend="cuda")
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--percent", type=float, default=1.0)
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds that it may take in all")
    arguments = parser.parse_args()
    began = time.perf_counter()
    rows: list[list[Any]] = []
    for name in arguments.instances:
        problem = next(iter(problems_of(arguments.folder, [name]).values()), None)
        if problem is None:
            continue
        n = problem.n_cities
        needed = arguments.seeds * seconds_for(n) + (arguments.seeds + 2) * 4e-6 * n + 2.0
        if time.perf_counter() - began + needed > arguments.budget:
            print(f"{name}: no time left")
            continue
        rows.append([name, *row_for(problem, arguments.seeds, arguments.percent, arguments.backend)])
        print(rows[-1], flush=True)
        write(
            "gpu_growth",
            "Time to a good tour, by number of cities",
            [column.format(arguments.percent) for column in COLUMNS],
            rows,
            {"algorithm": "GPUMemetic()", "seeds": arguments.seeds},
            [
                "Means over the seeds, from the call on, set-up counted, kernels compiled before. A time is missing "
                "where a run did not get there.",
                f"The reference of a random map below {EXPECTED_FROM:,} cities is the shortest tour of all its "
                "runs; from there on it is what is expected of so many uniform cities in a square of area A.",
            ],
        )


if __name__ == "__main__":
    main()
