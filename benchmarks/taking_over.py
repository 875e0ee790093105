"""What many good tours are worth together: merged by components, and assembled by AB-cycles.

    python benchmarks/taking_over.py FOLDER [--instances pla7397 ..] [--tours 16] [--seeds 3]

FOLDER holds the TSPLIB files; random:N is a map of N cities that is made. Each tour begins as a greedy one of its own
and is improved alone by window search, one kick a city. Both ways then get the same tours, and are compiled before.
Takes about three minutes on two cores.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
from folder import problems_of
from numpy.typing import NDArray
from options import parser_for
from record import write
from timed_runs import gap, reference

from pymoo_gpuaco import TSP
from pymoo_gpuaco.backends import make_search
from pymoo_gpuaco.candidates import greedy_tour, varied_tours
from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.exchange import assemble, merge_all
from pymoo_gpuaco.host.threads import thread_count
from pymoo_gpuaco.search.population import whole_units

INSTANCES = ("pr2392", "pla7397", "rl11849", "d15112")
COLUMNS = (
    "instance",
    "tours",
    "runs",
    "mean gap %",
    "shortest %",
    "merged %",
    "assembled %",
    "mean of assembled %",
    "merged, s",
    "assembled, s",
)


def improved_tours(instance: ListedInstance, count: int, seed: int) -> NDArray[np.int32]:
    """Tours (count, n) that know nothing of each other, the shortest first."""
    engine = make_search(instance, ColonyParameters(construction="focused"), "cpu")
    engine.reset_trails(1.0)
    first = np.concatenate([greedy_tour(instance)[None], varied_tours(instance, count - 1, seed)])
    tours, lengths = engine.improve(first, seed)
    return tours[np.argsort(lengths, kind="stable")]


def timed(work: Callable[[], NDArray[np.int32]]) -> tuple[NDArray[np.int32], float]:
    """What the work returns, and its seconds."""
    begun = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begun


def measure(name: str, problem: TSP, count: int, seeds: int) -> list[object]:
    """A row of means over the seeds."""
    instance = listed_instance(problem, 8, "quadrant")
    graph, to, scale = make_graph(instance), reference(problem)[0], whole_units(instance)
    few = improved_tours(instance, 2, 0)
    merge_all(few, instance.distance)
    assemble(graph, few, 0, scale=scale)
    rows = []
    for seed in range(1, seeds + 1):
        tours = improved_tours(instance, count, seed)
        merged, merging = timed(lambda tours=tours: merge_all(tours, instance.distance)[0])
        assembled, assembling = timed(
            lambda tours=tours, seed=seed: assemble(graph, tours, seed, scale=scale)
        )
        before, after = (
            [gap(length, to) for length in problem.tour_lengths(some)] for some in (tours, assembled)
        )
        together = gap(problem.tour_length(merged), to)
        rows.append((statistics.mean(before), before[0], together, min(after), statistics.mean(after)))
        rows[-1] += (merging, assembling)
    means = [round(statistics.mean(column), 4) for column in zip(*rows, strict=True)]
    return [name, count, seeds, *means]


def main() -> None:
    parser = parser_for(__doc__, seeds=3)
    parser.add_argument("--instances", nargs="+", default=list(INSTANCES))
    parser.add_argument("--tours", type=int, default=16)
    arguments = parser.parse_args()
    rows = []
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        rows.append(measure(name, problem, arguments.tours, arguments.seeds))
        print(rows[-1], flush=True)
    write(
        "taking_over",
        "What good tours are worth together",
        COLUMNS,
        rows,
        {"threads": thread_count()},
        ["Means over the seeds. Merging is done by one thread, assembly by all."],
    )


if __name__ == "__main__":
    main()
