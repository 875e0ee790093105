"""Islands by their number: GPUs, or processes on the CPU.

    python benchmarks/islands.py FOLDER [--instances d18512 ..] [--islands 1 2 4] [--seconds 5 20] [--seeds 2]
                                 [--backend cpu]

Seconds are those of a run without set-up. The row without islands is ``GPUMemetic()`` in one process for the longest
time: on a CPU it uses all cores, which islands share. A column has the time to the gap that the fewest islands have at
the end of their longest runs. A run is only good at the end of its annealing: the time is interpolated between runs of
several lengths, linearly in the logarithms of time and gap. The overhead is the islands' time outside their rounds:
migration, waiting for the client process, and the end of the last round. The result is islands_cpu or islands_gpu.
"""

from __future__ import annotations

import math
import statistics
from itertools import pairwise
from typing import Any, NamedTuple

from harness import Table, gap, parser_for, problems_of, reference
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic, Islands
from pymoo_gpuaco.islands.cluster import layout

INSTANCES = ("d18512", "random:100000")
EQUAL = "s to the gap of the fewest"
HEADER = (
    f"instance | cities | islands | workers | seconds | runs | gap %:3 | worst %:3 | {EQUAL}:1 | tours/s:1 | "
    "tours/s over the fewest:3 | overhead %:2 | overhead a round, ms:1"
)


class Run(NamedTuple):
    """Results of one run."""

    gap: float  # percent
    rate: float  # tours per second
    overhead: float  # percent of the islands' time outside rounds
    overhead_per_round: float  # milliseconds
    kind: str


def run(problem: TSP, islands: int | None, seconds: float, seed: int, backend: str) -> Run:
    """Run islands, or ``GPUMemetic()`` alone."""
    colony = GPUMemetic(backend=backend)
    algorithm = colony if islands is None else Islands(colony, islands)
    result = minimize(problem, algorithm, ("time", seconds), seed=seed)
    engine, took = result.algorithm.engine, float(result.exec_time)
    reached = gap(float(result.F[0]), reference(problem)[0])
    rate = result.algorithm.evaluator.n_eval / took
    if islands is None:
        return Run(reached, rate, math.nan, math.nan, engine.kind)
    outside = engine.n_islands * took - engine.busy
    rounds = sum(member.round for member in engine.members)
    share = 100.0 * outside / (engine.n_islands * took)
    return Run(reached, rate, share, 1e3 * outside / max(1, rounds), engine.kind)


def seconds_to(wanted: float, gaps: dict[float, float]) -> float | None:
    """Return the seconds to a gap, interpolated in ``gaps`` by seconds; None outside their range."""
    for short, long in pairwise(sorted(gaps)):
        above, below = gaps[short], gaps[long]
        if above >= wanted >= below:
            if wanted == above:
                return short
            if wanted == below:
                return long
            if below <= 0.0:  # relative to an expected length
                return short + (long - short) * (above - wanted) / (above - below)
            return short * (long / short) ** (math.log(above / wanted) / math.log(above / below))
    return None


def main() -> None:
    parser = parser_for(__doc__, seeds=2)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--islands", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", nargs="+", type=float, default=[5.0, 20.0])
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto")
    arguments = parser.parse_args()
    numbers, lengths = sorted(set(arguments.islands)), sorted(set(arguments.seconds))
    seeds, backend = range(1, arguments.seeds + 1), arguments.backend
    rows: list[list[Any]] = []
    kind = "cpu"
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        run(problem, None, 0.1, 0, backend)  # compiles kernels
        runs: dict[tuple[int | None, float], list[Run]] = {}
        for islands in (*numbers, None):
            for seconds in lengths if islands is not None else lengths[-1:]:
                runs[islands, seconds] = [run(problem, islands, seconds, seed, backend) for seed in seeds]
                kind = runs[islands, seconds][0].kind
        means = {
            key: [statistics.mean(of) for of in zip(*(one[:4] for one in own), strict=True)]
            for key, own in runs.items()
        }
        wanted = means[numbers[0], lengths[-1]][0]
        for (islands, seconds), own in runs.items():
            reached, rate, *overheads = means[islands, seconds]
            to_equal = None
            if islands is not None and seconds == lengths[-1]:
                to_equal = seconds_to(wanted, {length: means[islands, length][0] for length in lengths})
            workers = 1 if islands is None else layout(islands, backend)[1]
            row = [name, problem.n_cities, islands, workers, seconds, len(own), reached]
            row += [max(one.gap for one in own), to_equal, rate, rate / means[numbers[0], seconds][1]]
            rows.append([*row, *(overheads if islands is not None else (None, None))])
    where = "processes of one CPU" if kind == "cpu" else "GPUs"
    table = Table(
        f"islands_{'cpu' if kind == 'cpu' else 'gpu'}",
        f"Islands of GPUMemetic() on {where}, by their number",
        HEADER,
        {"seconds": arguments.seconds, "seeds": arguments.seeds, "exchange every, s": 1.0},
        [
            "Gap to the best known length, for random maps to the expected length.",
            f"Workers: {'processes, which share the cores' if kind == 'cpu' else 'processes with a GPU each'}. "
            "Without islands: `GPUMemetic()` in one process.",
            "Time to the gap of the fewest: length of a run with the gap of the longest runs of the fewest islands, "
            "interpolated between runs of several lengths.",
            "tours/s: searched windows or tours per second.",
            "Overhead: the islands' time outside their rounds.",
        ],
    )
    for row in rows:
        table.add(*row)
    table.write()


if __name__ == "__main__":
    main()
