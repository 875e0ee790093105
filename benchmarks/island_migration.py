"""Islands with and without migration, compared with one process.

    python benchmarks/island_migration.py FOLDER [--instances fnl4461 ..] [--islands 2] [--tours 12] [--generations 30]
                                         [--seeds 3]

FOLDER contains the TSPLIB files. Results do not depend on the clock (deterministic mode): each tour gets the same
number of kicks in all rows, and recombination runs until it finds no better tours. One process has as many tours as all
islands together. Takes about three minutes on two cores.
"""

from __future__ import annotations

import statistics
from typing import Any

from harness import Table, gap, parser_for, problems_of, reference
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMemetic, Islands

HEADER = (
    "instance | cities | islands | tours of each | topology | runs | gap %:4 | worst %:4 | islands' gaps %:4"
)
NOTES = (
    "Gap to the best known length. Without islands: one process with as many tours as all islands together.",
    "Islands' gaps: mean over all islands of their own best tours.",
    "Deterministic mode, with the same number of kicks per tour in all rows.",
)


def main() -> None:
    parser = parser_for(__doc__, seeds=3)
    parser.add_argument("--instances", nargs="+", default=["fnl4461"])
    parser.add_argument("--islands", type=int, default=2)
    parser.add_argument("--tours", type=int, default=12, help="tours per island")
    parser.add_argument("--generations", type=int, default=30)
    arguments = parser.parse_args()
    title = "Islands that exchange tours, islands that do not, and one process"
    parameters = {"generations": arguments.generations, "seeds": arguments.seeds}
    parameters["migration interval"] = "1 generation"
    table = Table("islands_migration", title, HEADER, parameters, NOTES)
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        to = reference(problem)[0]
        for islands, topology in ((arguments.islands, "all"), (arguments.islands, "none"), (1, "none")):
            tours = arguments.tours * (1 if islands > 1 else arguments.islands)
            gaps: list[float] = []
            apart: list[float] = []
            for seed in range(1, arguments.seeds + 1):
                algorithm: Any = GPUMemetic(population_size=tours, backend="cpu")
                if islands > 1:
                    algorithm = Islands(
                        algorithm, islands, deterministic=True, exchange_every=1, topology=topology
                    )
                result = minimize(problem, algorithm, ("n_gen", arguments.generations), seed=seed)
                gaps.append(gap(float(result.F[0]), to))
                if islands > 1:
                    apart += [gap(value, to) for value in result.algorithm.engine.values]
            cells = len(gaps), statistics.mean(gaps), max(gaps), statistics.mean(apart) if apart else None
            table.add(name, problem.n_cities, islands, tours, topology, *cells)
    table.write()


if __name__ == "__main__":
    main()
