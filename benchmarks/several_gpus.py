"""Gap by number of GPUs of a run, and the time to an equal gap.

    python benchmarks/several_gpus.py FOLDER [--instances d18512 ..] [--seconds 4 8] [--devices 1 2 4] [--seeds 3]

``minimize(problem, GPUMemetic(device=[0, ..]), ("time", seconds))`` on the first 1, 2, 4 GPUs of one host, all cores in
every row, set-up included, compilation excluded. The time to an equal gap is that to the mean gap of one GPU in its
longest run. It is interpolated between runs of several lengths (see islands.py).
"""

from __future__ import annotations

import statistics
import time

from harness import Table, gap, parser_for, problems_of, reference
from islands import seconds_to
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, GPUMemetic

INSTANCES = ["d18512", "random:100000", "random:1000000"]
EQUAL = "seconds to an equal gap"
HEADER = (
    f"instance | cities | GPUs | seconds | seeds | gap %:4 | worst %:4 | tours | overrun, s:2 | {EQUAL}:2"
)
NOTES = (
    "Gap to the best known length, for random maps to the expected length.",
    f"{EQUAL}: to the mean gap that the fewest GPUs have after their longest run, interpolated linearly between the "
    "logarithms of the mean gaps and seconds of shorter and longer runs; without logarithms if a gap is negative. No "
    "number if no run reaches that gap, or all runs do.",
)


def run(problem: TSP, devices: int, seconds: float, seed: int) -> tuple[float, float, int]:
    """Return the gap in percent, the seconds beyond the limit and the number of tours of a run."""
    algorithm = GPUMemetic(device=list(range(devices)), backend="cuda")
    began = time.perf_counter()
    result = minimize(problem, algorithm, ("time", seconds), seed=seed)
    late = time.perf_counter() - began - seconds
    return gap(float(result.F[0]), reference(problem)[0]), late, result.algorithm.engine.n_tours


def main() -> None:
    parser = parser_for(__doc__, seeds=3, add=True)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--seconds", type=float, nargs="+", default=[4.0, 8.0])
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4])
    arguments = parser.parse_args()
    numbers, lengths = arguments.devices, sorted(arguments.seconds)
    table = Table("several_gpus", "GPUMemetic() on several GPUs of one host", HEADER, {}, NOTES)
    if arguments.add:
        table.keep_others(arguments.instances)
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        means: dict[int, dict[float, float]] = {}
        for devices in numbers:
            run(problem, devices, 0.5, 0)  # compiles
            means[devices] = {}
            for seconds in lengths:
                runs = [run(problem, devices, seconds, seed) for seed in range(1, arguments.seeds + 1)]
                gaps, late, tours = zip(*runs, strict=True)
                mean = means[devices][seconds] = statistics.mean(gaps)
                to_equal = None
                if seconds == lengths[-1]:
                    to_equal = seconds_to(means[numbers[0]][seconds], means[devices])
                row = name, problem.n_cities, devices, seconds, len(runs), mean, max(gaps), tours[0]
                table.add(*row, max(late), to_equal)
    table.write()


if __name__ == "__main__":
    main()
