"""Ant colonies beside themselves without trails (``alpha=0``): gap to the best known, a run for each time and seed.

    python benchmarks/colony_strength.py FOLDER [--backend cuda] [--only pr2392] [--seconds 5 20] [--seeds 3] [--add]

FOLDER holds the TSPLIB files; instances that it lacks are left out. Every run is a call of ``minimize`` with its time
limit, set-up counted; functions or kernels are compiled before. Without ``--seconds`` each instance has the limits of
``PLAN``. With ``--add`` the rows of other instances and times stay, if they were measured with the same code on the
same device. The result is ``cpu_colony_strength`` or ``gpu_colony_strength``.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from folder import problems_of
from options import parser_for
from pymoo.optimize import minimize
from record import rows_of_others, write
from timed_runs import gap

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
#: colonies by name: how each is made for a backend and an exponent of trails
COLONIES = {
    "GPUMMAS": lambda backend, alpha: GPUMMAS(backend=backend, alpha=alpha),
    "GPUFACO": lambda backend, alpha: GPUFACO(backend=backend, alpha=alpha),
}
WITH, WITHOUT = 1.0, 0.0
COLUMNS = (
    "instance",
    "limit, s",
    "colony",
    "runs",
    "gap, %",
    "best, %",
    "worst, %",
    "gap with alpha = 0, %",
    "tours",
    "tours with alpha = 0",
)


class Run(NamedTuple):
    """Gap in percent and tours built."""

    gap: float
    tours: int


def run(colony: str, problem: TSP, seconds: float, seed: int, backend: str, alpha: float) -> Run:
    """One run of ``minimize`` that ends ``seconds`` after its call."""
    result = minimize(problem, COLONIES[colony](backend, alpha), ("time", seconds), seed=seed)
    return Run(gap(float(result.F[0]), float(problem.best_known)), result.algorithm.evaluator.n_eval)


def row(colony: str, problem: TSP, seconds: float, seeds: int, backend: str) -> list[Any]:
    """Runs with trails and without, as a row without the instance's name."""
    runs = {
        alpha: [run(colony, problem, seconds, seed, backend, alpha) for seed in range(1, seeds + 1)]
        for alpha in (WITH, WITHOUT)
    }
    gaps = {alpha: [one.gap for one in of] for alpha, of in runs.items()}
    tours = {alpha: int(statistics.median(one.tours for one in of)) for alpha, of in runs.items()}
    medians = {alpha: round(statistics.median(of), 3) for alpha, of in gaps.items()}
    spread = [round(min(gaps[WITH]), 3), round(max(gaps[WITH]), 3)]
    return [seconds, colony, seeds, medians[WITH], *spread, medians[WITHOUT], tours[WITH], tours[WITHOUT]]


def main() -> None:
    parser = parser_for(__doc__, seeds=3, only=PLAN, add=True, backend="cpu")
    parser.add_argument("--seconds", type=float, nargs="+", help="limits, for every instance")
    parser.add_argument("--colonies", nargs="+", choices=list(COLONIES), default=list(COLONIES))
    options = parser.parse_args()
    name = f"{'gpu' if options.backend == 'cuda' else 'cpu'}_colony_strength"
    limits = {i: tuple(options.seconds or PLAN[i][options.backend]) for i in options.only}
    own = {(i, s, colony) for i, of in limits.items() for s in of for colony in options.colonies}
    parameters: dict[str, Any] = {"arguments": "defaults", "backend": options.backend}
    rows = rows_of_others(name, own, parameters, keys=3) if options.add else []
    places = {instance: place for place, instance in enumerate(PLAN)}
    for instance, problem in problems_of(options.folder, limits).items():
        for colony in options.colonies:
            COLONIES[colony](options.backend, WITH).setup(problem, ("time", 60.0), seed=0)  # compiles
            for seconds in limits[instance]:
                rows.append([instance, *row(colony, problem, seconds, options.seeds, options.backend)])
                print(rows[-1], flush=True)
        rows.sort(key=lambda r: (places[r[0]], r[1], r[2]))
        write(
            name,
            "Ant colonies and what their trails are worth",
            COLUMNS,
            rows,
            parameters,
            [
                "Medians over the seeds, and the best and the worst run with trails. With alpha = 0 ants ignore "
                "trails: the same local search, with tours built by distance alone.",
            ],
        )


if __name__ == "__main__":
    main()
