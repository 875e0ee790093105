"""What migration brings: islands that exchange tours, beside islands that do not and one process.

    python benchmarks/island_migration.py FOLDER [--instances fnl4461 ..] [--islands 2] [--tours 12] [--generations 30]
                                         [--seeds 3] [--no-result]

FOLDER holds the TSPLIB files. The reproducible mode is used, so nothing depends on the clock: each tour gets the same
kicks in all rows, and all evolve until they find nothing more. One process has as many tours as all islands together.
Takes about three minutes on two cores.
"""

from __future__ import annotations

import statistics
from typing import Any

from folder import problems_of
from options import parser_for
from pymoo.optimize import minimize
from record import write
from timed_runs import gap, reference

from pymoo_gpuaco import TSP, GPUMemetic, Islands

COLUMNS = (
    "instance",
    "cities",
    "islands",
    "tours of each",
    "topology",
    "runs",
    "gap %",
    "worst %",
    "islands' gaps %",
)


def memetic(tours: int) -> GPUMemetic:
    """An algorithm with a population of so many tours."""
    return GPUMemetic(population_size=tours, backend="cpu")


def measure(
    problem: TSP, islands: int | None, topology: str | None, tours: int, generations: int, seeds: int
) -> tuple[list[float], list[list[float]]]:
    """Gaps in percent of each run, and of its islands."""
    wanted, gaps, apart = reference(problem)[0], [], []
    for seed in range(1, seeds + 1):
        algorithm: Any = memetic(tours)
        if islands is not None:
            algorithm = Islands(algorithm, islands, deterministic=True, exchange_every=1, topology=topology)
        result = minimize(problem, algorithm, ("n_gen", generations), seed=seed)
        gaps.append(gap(float(result.F[0]), wanted))
        if islands is not None:
            apart.append([gap(value, wanted) for value in result.algorithm.engine.values])
    return gaps, apart


def main() -> None:
    parser = parser_for(__doc__, seeds=3)
    parser.add_argument("--instances", nargs="+", default=["fnl4461"])
    parser.add_argument("--islands", type=int, default=2)
    parser.add_argument("--tours", type=int, default=12, help="of each island")
    parser.add_argument("--generations", type=int, default=30)
    parser.add_argument("--no-result", action="store_true", help="print, and write no result")
    arguments = parser.parse_args()
    islands, tours = arguments.islands, arguments.tours
    rows = []
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        for number, topology in ((islands, "all"), (islands, "none"), (None, None)):
            own = tours if number else tours * islands
            gaps, apart = measure(problem, number, topology, own, arguments.generations, arguments.seeds)
            mean = statistics.mean(value for run in apart for value in run) if apart else None
            rows.append(
                [
                    name,
                    problem.n_cities,
                    number,
                    own,
                    topology,
                    len(gaps),
                    round(statistics.mean(gaps), 4),
                    round(max(gaps), 4),
                    None if mean is None else round(mean, 4),
                ]
            )
            print(rows[-1], flush=True)
    if arguments.no_result:
        return
    write(
        "islands_migration",
        "Islands that exchange tours, islands that do not, and one process",
        COLUMNS,
        rows,
        {
            "generations": arguments.generations,
            "seeds": arguments.seeds,
            "migration interval": "1 generation",
        },
        [
            "Gap to the best known length. Without islands: one process with as many tours as all islands together.",
            "Islands' gaps: mean over all islands of their own best tours.",
            "Reproducible mode, with as many kicks a tour in all rows; no row depends on the clock.",
        ],
    )


if __name__ == "__main__":
    main()
