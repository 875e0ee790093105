"""Pareto fronts of two islands, each on half of the cores, compared with one GPU2PPLS on all of them.

    python benchmarks/island_fronts.py FOLDER [--names kroA100+kroB100 ..] [--islands 2] [--seconds 10] [--seeds 3]

FOLDER contains the TSPLIB files. Each run is compared with the best known front (`front_references.py`). Takes about
two minutes.
"""

from __future__ import annotations

import statistics

from front_problems import problem_of
from front_references import read_reference
from front_runs import Quality
from harness import Table, parser_for
from pymoo.optimize import minimize

from pymoo_gpuaco import GPU2PPLS, Islands

HEADER = (
    "instance | islands | seconds | runs | points:0 | % of the best points:2 | % of the best hypervolume:4"
)
NOTES = (
    "Means of the runs; best: the united front of many runs in benchmarks/references/fronts; points found or "
    "dominated.",
    "Without islands: one colony on all cores; islands have equal shares of them.",
)


def main() -> None:
    """Measure, and write benchmarks/results/islands_fronts.json."""
    parser = parser_for(__doc__, seeds=3)
    parser.add_argument("--names", nargs="+", default=["kroA100+kroB100"])
    parser.add_argument("--islands", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    parameters = {"seconds": given.seconds, "seeds": given.seeds, "exchange every": "1 s"}
    title = "A front by islands, and by one colony on as many cores"
    table = Table("islands_fronts", title, HEADER, parameters, NOTES)
    for name in given.names:
        problem, reference = problem_of(given.folder, name), read_reference(name)
        for islands in (None, given.islands):
            found = []
            for seed in range(1, given.seeds + 1):
                search = GPU2PPLS(backend="cpu")
                algorithm = search if islands is None else Islands(search, islands)
                result = minimize(problem, algorithm, ("time", given.seconds), seed=seed)
                found.append(Quality.of(result.F, reference))
            means = map(statistics.mean, zip(*found, strict=True))
            table.add(name, islands, given.seconds, len(found), *means)
    table.write()


if __name__ == "__main__":
    main()
