"""Pareto fronts over time: GPU2PPLS, two-phase search, and pymoo's NSGA-II, NSGA-III and MOEA/D.

    python benchmarks/fronts.py FOLDER kroA100+kroB100 --seconds 1 5 30 --methods GPU2PPLS "two phases" NSGA-II MOEA/D
    python benchmarks/fronts.py FOLDER kroA100+kroB100 --backend cuda    # GPU2PPLS alone, into gpu_fronts.json

One run is measured at all times. A call adds its rows to earlier ones of the same code: instances and methods can be
measured by separate calls, also in parallel. Run `front_references.py` first.

    python benchmarks/fronts.py FOLDER kroA100+kroB100+kroC100 clustered100-1+clustered100-2 --union

With --union, for any number of objectives and without a reference: points are compared with the union of the fronts of
all runs of the call, in fronts_united.json. A call measures all methods of an instance. Names: see `front_problems.py`.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from front_problems import problem_of
from front_references import read_reference
from front_runs import METHODS, POPULATION, WORST, Points, Quality, record, united
from harness import Table, alone, parser_for

ON_CUDA = "GPU2PPLS, CUDA"
ON_CORES = [method for method in METHODS if method != ON_CUDA]
OF_TWO = ["GPU2PPLS", "two phases", "NSGA-II", "MOEA/D"]
OF_MANY = ["GPU2PPLS", "NSGA-II", "NSGA-III"]
_BEST = (
    "Best: the united front of many runs in benchmarks/references/fronts; points found or dominated.",
    f"Hypervolume relative to {WORST} times the worst lengths of that front.",
)
_PYMOO = "NSGA-II, NSGA-III and MOEA/D of pymoo with order crossover and inversion."
ABOUT: dict[str, tuple[str, tuple[str, ...]]] = {
    "gpu_fronts": ("Fronts of two objectives over time, on CUDA", _BEST),
    "fronts": (
        "Fronts of two objectives over time, all cores",
        (
            *_BEST,
            "Two phases: the same weighted sums, then Pareto local search by chains of up to three exchanges.",
            _PYMOO,
        ),
    ),
    "fronts_united": (
        "Fronts of other problems: more objectives, roads, clusters, many cities, all cores",
        (
            "Best: the united front of only the runs in these rows of an instance; points found or dominated.",
            f"Hypervolume relative to {WORST} times the worst lengths of that front; approximate from four objectives "
            "on (moocore's hv_approx).",
            "random100-1, clustered100-1, roads100-1 (asymmetric): seed 1, see benchmarks/front_problems.py.",
            _PYMOO,
        ),
    ),
}
HEADER = "instance | method | seconds | points | % of the best points:2 | % of the best hypervolume:4"


def main() -> None:
    """Measure, and write benchmarks/results/fronts.json, or fronts_united.json, or gpu_fronts.json."""
    parser = parser_for(__doc__, backend="cpu")
    parser.add_argument("names", nargs="+", help="such as kroA100+kroB100")
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 5.0, 30.0])
    parser.add_argument(
        "--methods", nargs="+", choices=ON_CORES, help=f"default {OF_TWO}, with --union {OF_MANY}"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--union", action="store_true", help="compare with the union of all runs of the call")
    given = parser.parse_args()
    moments, seed = sorted(given.seconds), given.seed
    on_cuda = given.backend == "cuda"
    if on_cuda and given.union:
        parser.error("--union compares methods on the CPU")
    for name in given.names:
        problem = problem_of(given.folder, name)
        if given.union:
            runs = {m: record(METHODS[m](problem, seed), moments) for m in given.methods or OF_MANY}
            reference = united([points for run in runs.values() for points in run])
            rows = [row for m, run in runs.items() for row in _rows(name, m, moments, run, reference)]
            _write("fronts_united", rows, {name}, 1, seed)
            continue
        reference = read_reference(name)
        for method in [ON_CUDA] if on_cuda else given.methods or OF_TWO:
            rows = _rows(name, method, moments, record(METHODS[method](problem, seed), moments), reference)
            # replaces earlier rows of the method
            _write("gpu_fronts" if on_cuda else "fronts", rows, {(name, method)}, 2, seed)


def _rows(
    name: str, method: str, moments: Sequence[float], run: Sequence[Points], reference: Points
) -> list[list[Any]]:
    return [
        [name, method, moment, *Quality.of(points, reference)]
        for moment, points in zip(moments, run, strict=True)
    ]


def _write(name: str, rows: list[list[Any]], own: Container[Any], keys: int, seed: int) -> None:
    """Add rows to a result, and remove its rows ``own``, identified by their first ``keys`` cells."""
    title, notes = ABOUT[name]
    table = Table(name, title, HEADER, {"seed": seed, "population of pymoo's": POPULATION}, notes)
    for row in rows:
        table.add(*row)
    with alone(name):
        table.keep_others(own, keys)
        table.write(lambda row: row)


if __name__ == "__main__":
    main()
