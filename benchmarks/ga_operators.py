"""pymoo's GA with pymoo's operators and with those of this package, in equal processor time.

    python benchmarks/ga_operators.py [--seconds 10] [--seeds 3]

Time is the processor time of all threads, which other load on the machine does not affect.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from harness import Table, gap, parser_for
from pymoo.algorithms.soo.nonconvex.ga import GA
from pymoo.core.termination import Termination
from pymoo.operators.crossover.erx import EdgeRecombinationCrossover
from pymoo.operators.crossover.ox import OrderCrossover
from pymoo.operators.mutation.inversion import InversionMutation
from pymoo.optimize import minimize

from pymoo_gpuaco import TSP, load_tsp
from pymoo_gpuaco.operators import (
    AssemblyCrossover,
    DoubleBridgeMutation,
    LocalSearchRepair,
    MergeCrossover,
    NearestNeighbourSampling,
)

INSTANCES = ("pcb442", "att532", "gr666")
#: combined with local search as a repair and each mutation
CROSSOVERS: dict[str, Any] = {
    "pymoo's order": OrderCrossover,
    "merge": MergeCrossover,
    "edge assembly": AssemblyCrossover,
}
MUTATIONS: dict[str, Any] = {"pymoo's inversion": InversionMutation, "double bridge": DoubleBridgeMutation}
VARIANTS: dict[tuple[str, str, str], tuple[Any, Any, Any]] = {
    ("pymoo's order", "pymoo's inversion", "-"): (OrderCrossover, InversionMutation, None),
    ("pymoo's edge recombination", "pymoo's inversion", "-"): (
        EdgeRecombinationCrossover,
        InversionMutation,
        None,
    ),
    **{
        (crossover, mutation, "2-opt + Or-opt"): (
            CROSSOVERS[crossover],
            MUTATIONS[mutation],
            LocalSearchRepair,
        )
        for crossover in CROSSOVERS
        for mutation in MUTATIONS
    },
}
POPULATION = 50


class ProcessorTime(Termination):
    """Termination after ``seconds`` of processor time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.begin = time.process_time()

    def _update(self, algorithm: Any) -> float:
        return (time.process_time() - self.begin) / self.seconds


def gap_of(problem: TSP, parts: tuple[Any, Any, Any], seconds: float, seed: int) -> float:
    """Return the gap in percent of the best tour after ``seconds`` of processor time."""
    crossover, mutation, repair = parts
    algorithm = GA(
        pop_size=POPULATION,
        sampling=NearestNeighbourSampling(),
        crossover=crossover(),
        mutation=mutation(),
        eliminate_duplicates=False,
        **({} if repair is None else {"repair": repair(backend="cpu")}),
    )
    result = minimize(problem, algorithm, ProcessorTime(seconds), seed=seed, copy_termination=False)
    return gap(float(result.F[0]), problem.best_known)


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=3)
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    problems = {name: load_tsp(name) for name in INSTANCES}
    seconds, seeds = arguments.seconds, range(1, arguments.seeds + 1)
    table = Table(
        "ga_operators",
        "pymoo's GA with other operators: mean gap in percent, equal processor time",
        " | ".join(["crossover", "mutation", "repair", *(f"{name}:3" for name in INSTANCES)]),
        {"seeds": len(seeds), "processor seconds": seconds, "population": POPULATION},
        ["All start with nearest-neighbour tours from different cities; duplicates are not eliminated."],
    )
    for names, parts in VARIANTS.items():
        gaps = [[gap_of(problem, parts, seconds, seed) for seed in seeds] for problem in problems.values()]
        table.add(*names, *map(statistics.mean, gaps))
    table.write()


if __name__ == "__main__":
    main()
