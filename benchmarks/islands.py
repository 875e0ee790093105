"""What several islands bring over one colony, by their number: GPUs, or processes on the CPU.

    python benchmarks/islands.py FOLDER [--instances d18512 ..] [--islands 1 2 4] [--seconds 5 20] [--seeds 2]
                                 [--backend cpu] [--no-result]

A run has so many seconds, set-up not counted. The row without islands is ``GPUMemetic()`` alone for the longest time,
as one process runs it: on a CPU it uses all cores, which islands share. Beside the gap in equal time stands the time to
an equal gap: the one that the fewest islands have at the end of their longest runs. It is read off runs of several
lengths, as a straight line between the logarithms of both, for annealing is good at its end alone. Of the islands' time
the part outside their rounds is the overhead: what the exchange costs, the waiting for the process that leads the run,
and the last round's end. The result is islands_cpu or islands_gpu, by where the islands ran.
"""

from __future__ import annotations

import argparse
import math
import statistics
from itertools import pairwise
from typing import Any, NamedTuple

from folder import problems_of
from options import parser_for
from pymoo.optimize import minimize
from record import write
from timed_runs import gap, reference

from pymoo_gpuaco import TSP, GPUMemetic, Islands
from pymoo_gpuaco.islands.cluster import layout

INSTANCES = ("d18512", "random:100000")
EQUAL = "s to the gap of the fewest"
COLUMNS = (
    "instance",
    "cities",
    "islands",
    "workers",
    "seconds",
    "runs",
    "gap %",
    "worst %",
    EQUAL,
    "tours/s",
    "tours/s over the fewest",
    "overhead %",
    "overhead a round, ms",
)


class Run(NamedTuple):
    """One run: its gap in percent, and what its engine says."""

    gap: float
    rate: float  # tours a second
    overhead: float | None  # percent of the islands' time outside rounds
    overhead_a_round: float | None  # milliseconds
    kind: str


def run(problem: TSP, islands: int | None, seconds: float, seed: int, backend: str) -> Run:
    """Search with so many islands, or with ``GPUMemetic()`` alone."""
    colony = GPUMemetic(backend=backend)
    algorithm = colony if islands is None else Islands(colony, islands)
    result = minimize(problem, algorithm, ("time", seconds), seed=seed)
    engine, took = result.algorithm.engine, float(result.exec_time)
    reached = gap(float(result.F[0]), reference(problem)[0])
    rate = result.algorithm.evaluator.n_eval / took
    if islands is None:
        return Run(reached, rate, None, None, engine.kind)
    outside = engine.n_islands * took - engine.busy
    rounds = sum(member.round for member in engine.members)
    share = 100.0 * outside / (engine.n_islands * took)
    return Run(reached, rate, share, 1e3 * outside / max(1, rounds), engine.kind)


def seconds_to(wanted: float, gaps: dict[float, float]) -> float | None:
    """Seconds to a gap, between the lengths of runs whose gaps are given by it; None outside of them."""
    for short, long in pairwise(sorted(gaps)):
        above, below = gaps[short], gaps[long]
        if above >= wanted >= below:
            if wanted == above:
                return short
            if below <= 0.0 or wanted == below:
                return long
            return short * (long / short) ** (math.log(above / wanted) / math.log(above / below))
    return None


def row(
    name: str, n: int, islands: int | None, workers: int, seconds: float, runs: list[Run], fewest: list[Run]
) -> list[Any]:
    """A line of the table but for the time to an equal gap; ``fewest`` are as long runs of the fewest islands."""
    gaps = [one.gap for one in runs]
    rate, rate_of_fewest = (statistics.mean(one.rate for one in some) for some in (runs, fewest))
    overhead = [one.overhead for one in runs if one.overhead is not None]
    a_round = [one.overhead_a_round for one in runs if one.overhead_a_round is not None]
    return [
        name,
        n,
        islands,
        workers,
        seconds,
        len(runs),
        round(statistics.mean(gaps), 3),
        round(max(gaps), 3),
        None,
        round(rate, 1),
        round(rate / rate_of_fewest, 3),
        round(statistics.mean(overhead), 2) if overhead else None,
        round(statistics.mean(a_round), 1) if a_round else None,
    ]


def measure(name: str, problem: TSP, arguments: argparse.Namespace) -> tuple[list[list[Any]], str]:
    """The lines of an instance, and the backend that it ran on."""
    numbers, lengths = sorted(set(arguments.islands)), sorted(set(arguments.seconds))
    seeds, backend = range(1, arguments.seeds + 1), arguments.backend
    run(problem, None, 0.1, 0, backend)  # compiles what is not compiled yet
    runs: dict[tuple[int | None, float], list[Run]] = {}
    lines = []
    for islands in (*numbers, None):
        workers = 1 if islands is None else layout(islands, backend)[1]
        for seconds in lengths if islands is not None else lengths[-1:]:
            own = runs[islands, seconds] = [run(problem, islands, seconds, seed, backend) for seed in seeds]
            fewest = runs[numbers[0], seconds]
            lines.append(row(name, problem.n_cities, islands, workers, seconds, own, fewest))
            print(lines[-1], flush=True)
    means = {key: statistics.mean(one.gap for one in own) for key, own in runs.items()}
    wanted = means[numbers[0], lengths[-1]]
    for line in lines:
        islands, seconds = line[COLUMNS.index("islands")], line[COLUMNS.index("seconds")]
        if islands is not None and seconds == lengths[-1]:
            time_to = seconds_to(wanted, {length: means[islands, length] for length in lengths})
            line[COLUMNS.index(EQUAL)] = None if time_to is None else round(time_to, 1)
    return lines, runs[numbers[0], lengths[-1]][0].kind


def main() -> None:
    parser = parser_for(__doc__, seeds=2)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--islands", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", nargs="+", type=float, default=[5.0, 20.0])
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--no-result", action="store_true", help="print, and write no result")
    arguments = parser.parse_args()
    rows: list[list[Any]] = []
    kind = "cpu"
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        lines, kind = measure(name, problem, arguments)
        rows += lines
    if arguments.no_result:
        return
    write(
        f"islands_{'cpu' if kind == 'cpu' else 'gpu'}",
        f"Islands of GPUMemetic() on {'processes of one CPU' if kind == 'cpu' else 'GPUs'}, by their number",
        COLUMNS,
        rows,
        {"seconds": arguments.seconds, "seeds": arguments.seeds, "exchange every, s": 1.0},
        [
            "Gap to the best known length, for random maps to what is expected of them.",
            f"Workers: {'processes, which share the cores' if kind == 'cpu' else 'processes with a GPU each'}. "
            "Without islands: `GPUMemetic()` in one process.",
            "Time to the gap of the fewest: how long a run must be for the gap that the longest of the fewest islands "
            "have, read off runs of several lengths.",
            "A tour of focused ants is a window or a tour searched.",
            "Overhead: the islands' time outside their rounds.",
        ],
    )


if __name__ == "__main__":
    main()
