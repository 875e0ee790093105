"""Gap beside one GPU by number of cores: the GPU anneals the tours, the cores recombine them.

    python benchmarks/cores_beside_gpu.py FOLDER [--instances usa13509 ..] [--seconds 1 5] [--cores 2 4 16] [--seeds 3]

``minimize(problem, GPUMemetic(), ("time", seconds))`` in a process that may use the first 2, 4, 16 cores, set-up
included, compilation excluded.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
from pathlib import Path

from harness import Table, gap, parser_for, problems_of, reference
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic

INSTANCES = ["d18512", "random:100000"]
HEADER = "instance | cities | cores | seconds | seeds | gap %:4 | least %:4 | most %:4 | tours"


def gaps_of(folder: Path, name: str, cores: int, seconds: float, seeds: int) -> tuple[list[float], int]:
    """Return the gaps in percent of runs on the first cores, and the number of tours of the last one."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    (problem,) = problems_of(folder, [name]).values()
    minimize(problem, GPUMemetic(), ("time", 0.5), seed=0)  # compiles
    gaps, tours = [], 0
    for seed in range(1, seeds + 1):
        result = minimize(problem, GPUMemetic(), ("time", seconds), seed=seed)
        gaps.append(gap(float(result.F[0]), reference(problem)[0]))
        tours = result.algorithm.engine.n_tours
    return gaps, tours


def main() -> None:
    parser = parser_for(__doc__, seeds=3)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 5.0])
    parser.add_argument("--cores", type=int, nargs="+", default=[2, 4, 16])
    arguments = parser.parse_args()
    table = Table("gpu_cores", "GPUMemetic() beside one GPU, by number of cores", HEADER, {})
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        for seconds in arguments.seconds:
            for cores in (cores for cores in arguments.cores if cores <= len(os.sched_getaffinity(0))):
                of_child = arguments.folder, name, cores, seconds, arguments.seeds
                # threads keep the cores that a process had when it started them
                with multiprocessing.get_context("spawn").Pool(1) as child:
                    gaps, tours = child.apply(gaps_of, of_child)
                spread = statistics.median(gaps), min(gaps), max(gaps)
                table.add(name, problem.n_cities, cores, seconds, len(gaps), *spread, tours)
    table.write()


if __name__ == "__main__":
    main()
