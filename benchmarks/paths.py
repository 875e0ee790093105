"""Paths on the CPU or a GPU: gaps of runs on a path and on the round trip.

    python benchmarks/paths.py [--only trip|path] [--cities 100000] [--add] [--backend cpu]
        [--seeds 3] [--seconds 20] [--long 120]

A path begins at city 0, its end is free; the round trip has the same random cities. Gaps are relative to the shortest
of the runs of --seconds and one of --long of the same kind. --add preserves the rows of the other kind. A kind takes
about 200 seconds.
"""

from __future__ import annotations

import statistics

from harness import Table, gap, parser_for, run_for, runs_for

from pymoo_gpuaco import TSP, OpenPath, load_tsp

HEADER = "kind | cities | seconds | runs | best known | mean length:0 | mean gap %:3 | worst %:3 | wall, s:3"
NOTE = "Best known: the shortest of these runs and of a long one, separately for each kind."


def problem_of(kind: str, n: int) -> TSP:
    """Return random cities as a round trip, or as a path from city 0."""
    cities = load_tsp(f"random:{n}")
    return cities if kind == "trip" else OpenPath(cities.positions, metric=cities.metric, start=0)


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=3, only=("trip", "path"), add=True, backend="cuda")
    parser.add_argument("--cities", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--long", type=float, default=120.0)
    arguments = parser.parse_args()
    n, seconds, backend = arguments.cities, arguments.seconds, arguments.backend
    title = "A path beside the round trip of the same random cities"
    parameters = {"algorithm": "GPUMemetic()", "long run, s": arguments.long}
    name = "gpu_paths" if backend == "cuda" else "cpu_paths"
    table = Table(name, title, HEADER, parameters, [NOTE])
    if arguments.add:
        table.keep_others({(kind, n) for kind in arguments.only}, keys=2)
    for kind in arguments.only:
        problem = problem_of(kind, n)
        runs = runs_for(problem, seconds, arguments.seeds, backend)
        lengths = [run.length for run in runs]
        best = min(*lengths, run_for(problem, arguments.long, 99, backend).length)
        gaps, wall = [gap(length, best) for length in lengths], max(run.wall for run in runs)
        mean = statistics.mean(lengths)
        table.add(kind, n, seconds, len(runs), best, mean, statistics.mean(gaps), max(gaps), wall)
    table.write(lambda row: (row[1], row[0] == "path"))


if __name__ == "__main__":
    main()
