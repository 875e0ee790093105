"""Gap over time of one long run on all GPUs of a host.

    python benchmarks/record_run.py FOLDER [--instances pla85900 random:100000] [--seconds 240] [--seed 1]
        [--population-size 400] [--annealing-share 0.5]

One run of ``minimize(problem, GPUMemetic(device="all"), ("time", seconds))`` per instance, set-up included, compilation
excluded. A row is the best tour at one of ``MARKS``. Every instance has a result of its own, ``record_run_pla85900``.
"""

from __future__ import annotations

import bisect

from harness import Table, gap, parser_for, problems_of, reference
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, Recorder
from pymoo_gpuaco.backends import cuda_devices

INSTANCES = ["pla85900", "random:100000"]
MARKS = (5.0, 10.0, 20.0, 40.0, 60.0, 90.0, 120.0, 180.0, 240.0)  # seconds
HEADER = "instance | cities | GPUs | seconds:1 | length | gap %:4 | tours | gap to"


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--population-size", type=int)
    parser.add_argument("--annealing-share", type=float)
    arguments = parser.parse_args()
    of_search = {
        "population_size": arguments.population_size,
        "annealing_share": arguments.annealing_share,
    }
    parameters = {"seconds": arguments.seconds, "seed": arguments.seed, **of_search}
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        table = Table(
            f"record_run_{name.replace(':', '')}",
            f'GPUMemetic(device="all"), one long run of {name}',
            HEADER,
            parameters,
        )
        minimize(problem, GPUMemetic(device="all"), ("time", 0.5), seed=0)  # compiles
        recorder, algorithm = Recorder(), GPUMemetic(device="all", **of_search)
        limit = ("time", arguments.seconds)
        result = minimize(problem, algorithm, limit, seed=arguments.seed, callback=recorder)
        times, best = recorder.records["seconds"], recorder.records["best"]
        marks = [mark for mark in MARKS if times[0] <= mark < times[-1]]
        (to, of), tours = reference(problem), result.algorithm.engine.n_tours
        for seconds in [*marks, times[-1]]:
            length = float(best[bisect.bisect_right(times, seconds) - 1])
            row = name, problem.n_cities, len(cuda_devices()), seconds, round(length), gap(length, to)
            table.add(*row, tours, of)
        table.write()


if __name__ == "__main__":
    main()
