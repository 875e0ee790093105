"""What islands bring to a front: two islands, each on half of the cores, beside one colony on all of them.

    python benchmarks/island_fronts.py FOLDER [--names kroA100+kroB100 ..] [--islands 2] [--seconds 10] [--seeds 3]

FOLDER holds the TSPLIB files. Each run is measured by the best front known (`front_references.py`). Takes about two
minutes.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from front_problems import problem_of
from front_references import read_reference
from front_runs import Quality
from pymoo.optimize import minimize
from record import write

from pymoo_gpuaco import GPU2PPLS, Islands, MultiObjectiveTSP

COLUMNS = (
    "instance",
    "islands",
    "seconds",
    "runs",
    "points",
    "% of the best points",
    "% of the best hypervolume",
)


def measure(
    problem: MultiObjectiveTSP, name: str, islands: int | None, seconds: float, seeds: int
) -> list[Quality]:
    """Return how good the front of each run is."""
    reference, found = read_reference(name), []
    for seed in range(1, seeds + 1):
        colony = GPU2PPLS(backend="cpu")
        algorithm = colony if islands is None else Islands(colony, islands)
        result = minimize(problem, algorithm, ("time", seconds), seed=seed)
        found.append(Quality.of(result.F, reference))
    return found


def main() -> None:
    """Measure, and write benchmarks/results/islands_fronts.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--names", nargs="+", default=["kroA100+kroB100"])
    parser.add_argument("--islands", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    rows = []
    for name in given.names:
        problem = problem_of(given.folder, name)
        for islands in (None, given.islands):
            found = measure(problem, name, islands, given.seconds, given.seeds)
            means = [statistics.mean(column) for column in zip(*found, strict=True)]
            rows.append(
                [
                    name,
                    islands,
                    given.seconds,
                    len(found),
                    round(means[0]),
                    round(means[1], 2),
                    round(means[2], 4),
                ]
            )
            print(*rows[-1], sep="\t", flush=True)
    write(
        "islands_fronts",
        "A front by islands, and by one colony on as many cores",
        COLUMNS,
        rows,
        {"seconds": given.seconds, "seeds": given.seeds, "exchange every": "1 s"},
        [
            "Means of the runs; best: the united front of many runs in benchmarks/references/fronts; points found or "
            "dominated.",
            "Without islands: one colony on all cores; islands have equal shares of them.",
        ],
    )


if __name__ == "__main__":
    main()
