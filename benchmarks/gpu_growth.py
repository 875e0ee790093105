"""Time of GPUMemetic() to a good tour, by number of cities from 1,000 to 1,000,000.

    python benchmarks/gpu_growth.py FOLDER [--instances random:1000 d18512 ..] [--seeds 3] [--percent 1]

The default maps are generated, random:N. A run lasts 2 to 20 s, by size, and its best length is recorded after every
generation. The time to 1 % is that of the first tour at most 1 % longer than the map's reference. It starts at the
call, set-up included, compilation excluded. Three seeds take about five minutes.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from harness import Table, gap, parser_for, problems_of, reference, run_for, set_up_seconds

from pymoo_gpuaco import TSP

INSTANCES = [
    f"random:{n}" for n in (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
]
#: below, a map differs too much from the expected length: the best tour of all runs is the reference
EXPECTED_FROM = 200_000
HEADER = (
    "instance | cities | runs | set-up, s:3 | time to {:g} %, s:3 | fastest, s:3 | slowest, s:3 | "
    "microseconds a city:2 | seconds of a run | gap % at its end:3 | gap to"
)
NOTES = (
    "Means over the seeds, from the call on, set-up included, compilation excluded. A time is missing if a run did not "
    "reach the gap.",
    f"The reference of a random map below {EXPECTED_FROM:,} cities is the shortest tour of all its runs; above it is "
    "the expected length of uniform cities in a square of area A.",
)


class Trace:
    """Best lengths of a run, by seconds since the creation of this object."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self.points: list[tuple[float, float]] = []

    def __call__(self, algorithm: Any) -> None:
        self.points.append((time.perf_counter() - self._began, float(algorithm.opt[0].F[0])))

    def first_at(self, length: float) -> float | None:
        """Return the seconds to a tour of at most this length, or None."""
        return next((at for at, best in self.points if best <= length), None)


def row_for(problem: TSP, seeds: int, percent: float, backend: str) -> list[Any]:
    """Run all seeds on one map; return its row."""
    n = problem.n_cities
    set_up, seconds = set_up_seconds(problem, backend), min(20.0, max(2.0, n / 10_000))
    traces, lengths = [], []
    for seed in range(1, seeds + 1):
        traces.append(Trace())
        lengths.append(run_for(problem, seconds, seed, backend, traces[-1]).length)
    to, name = reference(problem)
    if problem.best_known is None and n < EXPECTED_FROM:
        to, name = min(lengths), "the best of the runs"
    times = [trace.first_at(to * (1.0 + percent / 100.0)) for trace in traces]
    reached = [at for at in times if at is not None]
    mean = slowest = a_city = None
    if len(reached) == seeds:
        mean, slowest = statistics.mean(reached), max(reached)
        a_city = 1e6 * mean / n
    end = statistics.mean(gap(length, to) for length in lengths)
    return [n, seeds, set_up, mean, min(reached, default=None), slowest, a_city, seconds, end, name]


def main() -> None:
    parser = parser_for(__doc__, seeds=3, backend="cuda")
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--percent", type=float, default=1.0)
    arguments = parser.parse_args()
    parameters = {"algorithm": "GPUMemetic()", "seeds": arguments.seeds}
    header = HEADER.format(arguments.percent)
    table = Table("gpu_growth", "Time to a good tour, by number of cities", header, parameters, NOTES)
    for name in arguments.instances:
        for problem in problems_of(arguments.folder, [name]).values():
            table.add(name, *row_for(problem, arguments.seeds, arguments.percent, arguments.backend))
            table.write()


if __name__ == "__main__":
    main()
