"""Paths on the CPU or a GPU: how far from the best known is a run on a path, beside one on the round trip?

    python benchmarks/paths.py [--only trip|path] [--cities 100000] [--add] [--backend cpu]
        [--seeds 3] [--seconds 20] [--long 120]

A path begins at city 0, its end is free; the round trip is that of the same random cities. Gaps are to the shortest of
the runs of --seconds and one of --long, each kind's own. With --add what is written of the other kind stays. A kind
takes about 200 seconds.
"""

from __future__ import annotations

import statistics
from typing import Any

from options import parser_for
from record import rows_of_others, write
from timed_runs import gap, run_for

from pymoo_gpuaco import TSP, OpenPath, load_tsp

COLUMNS = (
    "kind",
    "cities",
    "seconds",
    "runs",
    "best known",
    "mean length",
    "mean gap %",
    "worst %",
    "wall, s",
)


def problem_of(kind: str, n: int) -> TSP:
    """Random cities as a round trip, or as a path from the first of them."""
    cities = load_tsp(f"random:{n}")
    return cities if kind == "trip" else OpenPath(cities.positions, metric=cities.metric, start=0)


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=3, add=True, backend="cuda")
    parser.add_argument("--only", choices=("trip", "path"))
    parser.add_argument("--cities", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--long", type=float, default=120.0)
    arguments = parser.parse_args()
    n, kinds = arguments.cities, (arguments.only,) if arguments.only else ("trip", "path")
    name = "gpu_paths" if arguments.backend == "cuda" else "cpu_paths"
    parameters: dict[str, Any] = {"algorithm": "GPUMemetic()", "long run, s": arguments.long}
    own = {(kind, n) for kind in kinds}
    rows = rows_of_others(name, own, parameters, keys=2) if arguments.add else []
    for kind in kinds:
        problem = problem_of(kind, n)
        run_for(problem, 0.1, 0, arguments.backend)  # compiles
        runs = [
            run_for(problem, arguments.seconds, seed, arguments.backend)
            for seed in range(1, arguments.seeds + 1)
        ]
        lengths = [run.length for run in runs]
        best = min([*lengths, run_for(problem, arguments.long, 99, arguments.backend).length])
        gaps = [gap(length, best) for length in lengths]
        mean, mean_gap, worst = statistics.mean(lengths), statistics.mean(gaps), max(gaps)
        wall = max(run.wall for run in runs)
        row = (kind, n, arguments.seconds, len(runs), best, round(mean), mean_gap, worst, wall)
        rows.append([round(cell, 3) if isinstance(cell, float) else cell for cell in row])
        print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    rows.sort(key=lambda row: (row[1], row[0] == "path"))
    notes = ["Best known: the shortest of these runs and of a long one, of each kind by itself."]
    write(name, "A path beside the round trip of the same random cities", COLUMNS, rows, parameters, notes)


if __name__ == "__main__":
    main()
