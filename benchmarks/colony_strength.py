"""Ant colonies with and without trails (``alpha=0``): gap to the best known length, one run per time limit and seed.

    python benchmarks/colony_strength.py FOLDER [--backend cuda] [--only pr2392] [--seconds 5 20] [--seeds 3] [--add]

FOLDER contains the TSPLIB files; missing instances are skipped. Every run is a call of ``minimize`` with a time limit
that includes set-up; kernels are compiled before. Without ``--seconds`` each instance has the limits of
``PLAN``. ``--add`` preserves the rows of other instances and times, if they were measured with the same code on the
same device. The result is ``cpu_colony_strength`` or ``gpu_colony_strength``.
"""

from __future__ import annotations

import statistics

from harness import Table, gap, parser_for, problems_of
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUFACO, GPUMMAS, TSP

#: instance and its time limits in seconds, for the CPU and for a GPU
PLAN: dict[str, dict[str, tuple[float, ...]]] = {
    "pcb442": {"cpu": (2.0,), "cuda": (1.0,)},
    "pr1002": {"cpu": (10.0, 30.0), "cuda": (1.0, 5.0)},
    "pr2392": {"cpu": (10.0, 30.0), "cuda": (1.0, 5.0)},
    "fnl4461": {"cpu": (30.0,), "cuda": (5.0, 10.0)},
    "rl5915": {"cpu": (30.0,), "cuda": (5.0, 10.0)},
    "pla7397": {"cpu": (30.0, 100.0), "cuda": (10.0, 20.0)},
    "d15112": {"cpu": (60.0,), "cuda": (20.0,)},
    "d18512": {"cpu": (60.0,), "cuda": (20.0,)},
    "pla85900": {"cpu": (60.0,), "cuda": (25.0, 60.0)},
}
COLONIES = {"GPUMMAS": GPUMMAS, "GPUFACO": GPUFACO}
HEADER = (
    "instance | limit, s | colony | runs | gap, %:3 | best, %:3 | worst, %:3 | gap with alpha = 0, %:3 | tours:0 | "
    "tours with alpha = 0:0"
)
NOTE = (
    "Medians over the seeds, and the best and the worst run with trails. With alpha = 0 ants ignore trails: they build "
    "tours by distance alone, with the same local search."
)


def run(colony: str, problem: TSP, seconds: float, seed: int, backend: str, alpha: float) -> list[float]:
    """Return gap in percent and number of tours of a run of ``minimize`` with a time limit."""
    algorithm = COLONIES[colony](backend=backend, alpha=alpha)
    result = minimize(problem, algorithm, ("time", seconds), seed=seed)
    return [gap(float(result.F[0]), problem.best_known), result.algorithm.evaluator.n_eval]


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=PLAN, add=True, backend="cpu")
    parser.add_argument("--seconds", type=float, nargs="+", help="limits, for every instance")
    parser.add_argument("--colonies", nargs="+", choices=list(COLONIES), default=list(COLONIES))
    options = parser.parse_args()
    backend, seeds = options.backend, range(1, options.seeds + 1)
    limits = {i: tuple(options.seconds or PLAN[i][backend]) for i in options.only}
    name = f"{'gpu' if backend == 'cuda' else 'cpu'}_colony_strength"
    title = "Ant colonies and what their trails are worth"
    table = Table(name, title, HEADER, {"arguments": "defaults", "backend": backend}, [NOTE])
    if options.add:
        own = {(i, s, colony) for i, of in limits.items() for s in of for colony in options.colonies}
        table.keep_others(own, keys=3)
    for instance, problem in problems_of(options.folder, limits).items():
        for colony in options.colonies:
            COLONIES[colony](backend=backend).setup(
                problem, termination=("time", 60.0), seed=0
            )  # compiles kernels
            for seconds in limits[instance]:
                gaps, tours = {}, {}
                for alpha in (1.0, 0.0):
                    runs = [run(colony, problem, seconds, seed, backend, alpha) for seed in seeds]
                    gaps[alpha], tours[alpha] = zip(*runs, strict=True)
                medians = [statistics.median(of) for of in (gaps[1.0], gaps[0.0], tours[1.0], tours[0.0])]
                best_and_worst = min(gaps[1.0]), max(gaps[1.0])
                table.add(instance, seconds, colony, len(seeds), medians[0], *best_and_worst, *medians[1:])
        table.write(lambda row: (list(PLAN).index(row[0]), row[1], row[2]))


if __name__ == "__main__":
    main()
