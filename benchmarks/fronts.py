"""Fronts over time, beside the best front known: GPUMOACO, a plain two-phase search, pymoo's NSGA-II and MOEA/D.

    python benchmarks/fronts.py FOLDER kroA100+kroB100 --seconds 1 5 30 --methods GPUMOACO "two phases" NSGA-II MOEA/D
    python benchmarks/fronts.py FOLDER kroA100+kroB100 --backend cuda    # GPUMOACO alone, into gpu_fronts.json

One run is looked at at all of the moments. A call adds its rows to those of earlier ones of the same code, so that a
measurement can be made in pieces: one instance, one method at a time. `front_references.py` comes first.
"""

from __future__ import annotations

from front_references import problem_of, read_reference
from front_runs import METHODS, POPULATION, WORST, Quality, record
from options import parser_for
from record import rows_of_others, write

ON_CUDA = "GPUMOACO, CUDA"
ON_CORES = [method for method in METHODS if method != ON_CUDA]
COLUMNS = ("instance", "method", "seconds", "points", "% of the best points", "% of the best hypervolume")


def main() -> None:
    """Measure, and write benchmarks/results/fronts.json, or gpu_fronts.json."""
    parser = parser_for(__doc__, backend="cpu")
    parser.add_argument("names", nargs="+", help="such as kroA100+kroB100")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 5.0, 30.0])
    parser.add_argument("--methods", nargs="+", choices=ON_CORES, default=ON_CORES)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    moments = sorted(given.seconds)
    on_cuda = given.backend == "cuda"
    table = "gpu_fronts" if on_cuda else "fronts"
    for name in given.names:
        problem, reference = problem_of(given.folder, name), read_reference(name)
        for method in [ON_CUDA] if on_cuda else given.methods:
            rows = []
            for moment, points in zip(
                moments, record(METHODS[method](problem, given.seed), moments), strict=True
            ):
                found = Quality.of(points, reference)
                cells = (found.points, round(found.found, 2), round(found.hypervolume, 4))
                rows.append([name, method, moment, *cells])
                print(*rows[-1], sep="\t", flush=True)
            parameters = {"seed": given.seed, "population of NSGA-II and MOEA/D": POPULATION}
            # of a method that is measured again, for instance for longer, the earlier rows go
            own = {(name, method)}
            others = rows_of_others(table, own, parameters, keys=2)
            notes: tuple[str, ...] = (
                "Best: the united front of many runs in benchmarks/references/fronts; points found or dominated.",
                f"Hypervolume from {WORST} times the worst lengths of that front.",
            )
            if not on_cuda:
                notes += (
                    "Two phases: the same weighted sums, then Pareto local search by chains of up to three exchanges.",
                    "NSGA-II and MOEA/D: pymoo's, order crossover and inversion.",
                )
            title = f"Fronts of two objectives over time, {'on CUDA' if on_cuda else 'all cores'}"
            write(table, title, COLUMNS, sorted(others + rows), parameters, notes)


if __name__ == "__main__":
    main()
