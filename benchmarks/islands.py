"""What several islands bring over one colony, by their number: processes on the CPU, or GPUs.

    python benchmarks/islands.py FOLDER [--instances random:1000 ..] [--islands 1 2 4] [--seconds 10] [--seeds 3]
                                 [--backend cpu] [--no-result]

Every run has the same time, set-up not counted. The row without islands is ``GPUMMAS()`` alone, as one process runs
it: on a CPU it uses all cores, which islands share. Of the islands' time the part outside their rounds is the overhead:
what the exchange costs, the waiting for the process that leads the run, and the last round's end. The result is
islands_cpu or islands_gpu, by where the islands ran.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from folder import problems_of
from pymoo.optimize import minimize
from record import write
from timed_runs import gap, reference

from pymoo_gpuaco import GPUMMAS, TSP, Islands

INSTANCES = ("random:1000", "random:5000", "random:20000", "random:100000")
COLUMNS = (
    "instance",
    "cities",
    "islands",
    "runs",
    "gap %",
    "worst %",
    "tours/s",
    "tours/s over one island's",
    "overhead %",
)


def run(problem: TSP, islands: int | None, seconds: float, seed: int, backend: str) -> Any:
    """One run, and what its engine says."""
    colony = GPUMMAS(backend=backend)
    algorithm = colony if islands is None else Islands(colony, islands)
    return minimize(problem, algorithm, ("time", seconds), seed=seed)


def overhead(result: Any) -> float:
    """Percent of the islands' time that they spent outside rounds."""
    engine = result.algorithm.engine
    return 100.0 * (1.0 - engine.busy / (engine.n_islands * float(result.exec_time)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--instances", nargs="+", default=INSTANCES)
    parser.add_argument("--islands", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--backend", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--no-result", action="store_true", help="print, and write no result")
    arguments = parser.parse_args()
    rows: list[list[Any]] = []
    kind = "cpu"
    for name, problem in problems_of(arguments.folder, arguments.instances).items():
        to, _ = reference(problem)
        rates: dict[int | None, float] = {}
        for islands in (None, *arguments.islands):
            results = [
                run(problem, islands, arguments.seconds, seed, arguments.backend)
                for seed in range(1, arguments.seeds + 1)
            ]
            kind = results[0].algorithm.engine.kind
            gaps = [gap(float(result.F[0]), to) for result in results]
            rates[islands] = statistics.mean(
                result.algorithm.evaluator.n_eval / float(result.exec_time) for result in results
            )
            rows.append(
                [
                    name,
                    problem.n_cities,
                    islands,
                    len(results),
                    round(statistics.mean(gaps), 3),
                    round(max(gaps), 3),
                    round(rates[islands], 1),
                    round(rates[islands] / rates[1], 3) if 1 in rates and islands is not None else None,
                    None if islands is None else round(statistics.mean(map(overhead, results)), 2),
                ]
            )
            print(rows[-1], flush=True)
        if arguments.no_result:
            continue
        write(
            f"islands_{'cpu' if kind == 'cpu' else 'gpu'}",
            f"Islands of GPUMMAS() on {'processes of one CPU' if kind == 'cpu' else 'several GPUs'}, by their number",
            COLUMNS,
            rows,
            {"seconds": arguments.seconds, "seeds": arguments.seeds, "exchange every, s": 1.0},
            [
                "Gap to the best known length, for random maps to what is expected of them.",
                "Without islands: GPUMMAS() in one process. A tour of focused ants is a window or a tour searched.",
                "Overhead: share of the islands' time outside their rounds.",
            ],
        )


if __name__ == "__main__":
    main()
