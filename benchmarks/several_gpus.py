"""Gap by the number of GPUs that anneal for one run, and the time to an equal gap.

    python benchmarks/several_gpus.py FOLDER [--instances d18512 ..] [--seconds 4 8] [--devices 1 2 4] [--seeds 3]

``minimize(problem, GPUMemetic(device=[0, ..]), ("time", seconds))`` on the first 1, 2, 4 GPUs of one host, all cores in
every row, set-up counted, kernels compiled before. The time to an equal gap is that to the mean gap of one GPU in its
longest run, on a straight line between runs of several lengths.
"""

from __future__ import annotations

import statistics
import time
from itertools import pairwise
from typing import Any

from folder import problems_of
from options import parser_for
from pymoo.optimize import minimize
from record import rows_of_others, write
from timed_runs import gap, reference

from pymoo_gpuaco import TSP, GPUMemetic

INSTANCES = ["d18512", "random:100000", "random:1000000"]
EQUAL = "seconds to an equal gap"
COLUMNS = ["instance", "cities", "GPUs", "seconds", "seeds", "gap %", "worst %", "tours", "overrun, s", EQUAL]


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
    parameters: dict[str, Any] = {}
    rows: list[list[Any]] = (
        rows_of_others("several_gpus", arguments.instances, parameters) if arguments.add else []
    )
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        for devices in arguments.devices:
            run(problem, devices, 0.5, 0)  # compiles
            for seconds in arguments.seconds:
                runs = [run(problem, devices, seconds, seed) for seed in range(1, arguments.seeds + 1)]
                gaps, late, tours = zip(*runs, strict=True)
                mean, worst = statistics.mean(gaps), max(gaps)
                row = [name, problem.n_cities, devices, seconds, len(runs), round(mean, 4), round(worst, 4)]
                rows.append([*row, tours[0], round(max(late), 2), None])
                print(rows[-1], flush=True)
    for name in arguments.instances:
        times = equal_gap(rows, name, arguments.devices)
        for row in rows:
            if row[0] == name and row[3] == max(arguments.seconds):
                row[-1] = times[row[2]]
        print(name, "seconds to the gap of the fewest GPUs:", times)
    write(
        "several_gpus",
        "GPUMemetic() on several GPUs of one host",
        COLUMNS,
        rows,
        parameters,
        [
            "Gap to the best known length, for random maps to what is expected of them.",
            f"{EQUAL}: to the mean gap that the fewest GPUs have after their longest run, on a straight line between "
            "the mean gaps of shorter and longer runs.",
        ],
    )


def equal_gap(rows: list[list[Any]], name: str, devices: list[int]) -> dict[int, float | None]:
    """Seconds to the gap that one GPU has after its longest run, by the number of GPUs; None outside of the runs."""
    found: dict[int, float | None] = {}
    gaps = {(row[2], row[3]): row[5] for row in rows if row[0] == name}
    longest = max(seconds for _, seconds in gaps)
    wanted = gaps[devices[0], longest]
    for count in devices:
        own = sorted((seconds, value) for (number, seconds), value in gaps.items() if number == count)
        found[count] = own[0][0] if own[0][1] <= wanted else None
        for (short, above), (long, below) in pairwise(own):
            if above > wanted >= below:
                found[count] = round(short + (long - short) * (above - wanted) / (above - below), 2)
    return found


if __name__ == "__main__":
    main()
