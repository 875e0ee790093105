"""What the quality of GPUACS depends on: ants a generation, local updates, ants in flight; and beside GPUMMAS.

    python benchmarks/cpu_acs.py FOLDER [--only updates flight time] [--seeds 3] [--tours 6000] [--seconds 5]

FOLDER holds the TSPLIB files; instances that it lacks are left out. On the CPU:

updates  the same number of tours with local search, by the number of ants and by xi
flight   d198, the same number of tours without local search: all ants on their way at once (sync), or one at a time
         (relaxed on the CPU); q0, rho and beta as in benchmarks/gpu_acs.py
time     GPUACS() and GPUMemetic(), with their defaults and in the same time
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from folder import problems_of
from options import parser_for
from pymoo.optimize import minimize
from record import write

from pymoo_gpuaco import GPUACS, GPUMMAS, TSP, GPUMemetic

INSTANCES = ("pcb442", "rat783", "pr1002")
ANTS = (10, 24, 100, 792)  # the last is the default of a GPU with 132 multiprocessors
IN_FLIGHT = (10, 100, None)  # None: n
#: instance and tours a city of ``flight``: without local search they are many
SMALL, TOURS_IN_FLIGHT = "d198", 200


def gaps(problem: TSP, make: Callable[[], Any], end: tuple[str, float], seeds: int) -> list[Any]:
    """Mean and worst gap in percent over the seeds, tours and seconds of a run (medians)."""
    found, tours, seconds = [], [], []
    for seed in range(1, seeds + 1):
        before = time.perf_counter()
        result = minimize(problem, make(), end, seed=seed)
        seconds.append(time.perf_counter() - before)
        found.append(100.0 * (float(result.F[0]) / problem.best_known - 1.0))
        tours.append(result.algorithm.evaluator.n_eval)
    mean, worst = round(float(np.mean(found)), 3), round(max(found), 3)
    return [mean, worst, int(np.median(tours)), round(float(np.median(seconds)), 1)]


def row(
    labels: tuple[Any, ...], problem: TSP, make: Callable[[], Any], end: tuple[str, float], seeds: int
) -> list[Any]:
    """A row of a table, labels and gaps, on the screen as soon as it is there."""
    found = [*labels, *gaps(problem, make, end, seeds)]
    print(found, flush=True)
    return found


COLUMNS = ("mean gap, %", "worst, %", "tours", "seconds")


def measure_updates(problems: dict[str, TSP], options: argparse.Namespace) -> None:
    rows: list[list[Any]] = []
    for name, problem in problems.items():
        for ants in ANTS:
            usual = 0.1 * min(1.0, 24 / ants)  # the default of GPUACS
            for xi in sorted({0.1, 1.0 / ants, usual}, reverse=True):
                make = partial(GPUACS, ants, xi=xi, backend="cpu")
                kept = round((1.0 - xi) ** ants, 3)
                labels = (name, ants, round(xi, 4), "yes" if xi == usual else "no", kept)
                rows.append(row(labels, problem, make, ("n_eval", options.tours), options.seeds))
    write(
        "cpu_acs_updates",
        "GPUACS with local search, the same number of tours: ants and local evaporation",
        ("instance", "ants", "xi", "default", "trail kept, share", *COLUMNS),
        rows,
        {"seeds": options.seeds, "tours": options.tours},
        [
            "Trail kept: what an edge that all ants of a generation take keeps of its trail above tau_0, "
            "(1 - xi)^ants, until the best tour is reinforced."
        ],
    )


def measure_flight(_: dict[str, TSP], options: argparse.Namespace) -> None:
    rows: list[list[Any]] = []
    for name, problem in problems_of(options.folder, [SMALL]).items():
        n = problem.n_cities
        bare = partial(GPUACS, beta=3.0, rho=0.2, q0=1.0 - 20.0 / n, local_search=False, backend="cpu")
        for ants in (n if m is None else m for m in IN_FLIGHT):
            for variant, in_flight in (("sync", ants), ("relaxed", 1)):
                for xi in (0.01, min(0.1, 2.4 / ants)):
                    make = partial(bare, ants, xi=xi, variant=variant)
                    labels = (name, ants, variant, in_flight, round(xi, 4))
                    rows.append(row(labels, problem, make, ("n_eval", TOURS_IN_FLIGHT * n), options.seeds))
    write(
        "cpu_acs_flight",
        "GPUACS without local search, the same number of tours: ants on their way at once",
        ("instance", "ants", "variant", "at once", "xi", *COLUMNS),
        rows,
        {"seeds": options.seeds, "tours": f"{TOURS_IN_FLIGHT} n"},
    )


def measure_time(problems: dict[str, TSP], options: argparse.Namespace) -> None:
    ways: dict[str, Callable[[], Any]] = {
        "GPUMemetic()": partial(GPUMemetic, backend="cpu"),
        "GPUMMAS()": partial(GPUMMAS, backend="cpu"),
        "GPUACS()": partial(GPUACS, backend="cpu"),
        'GPUACS(variant="relaxed")': partial(GPUACS, variant="relaxed", backend="cpu"),
        'GPUACS(variant="selective")': partial(GPUACS, variant="selective", backend="cpu"),
    }
    rows = []
    for name, problem in problems.items():
        for way, make in ways.items():
            rows.append(row((name, way), problem, make, ("time", options.seconds), options.seeds))
    write(
        "cpu_acs_time",
        "GPUACS beside GPUMMAS in the same time, with defaults",
        ("instance", "algorithm", *COLUMNS),
        rows,
        {"seeds": options.seeds, "seconds": options.seconds},
        ["Of GPUMemetic() a tour counts for many small changes."],
    )


def main() -> None:
    parts: dict[str, Callable[[dict[str, TSP], argparse.Namespace], None]] = {
        "updates": measure_updates,
        "flight": measure_flight,
        "time": measure_time,
    }
    parser = parser_for(__doc__, folder="optional", seeds=3, only=parts)
    parser.add_argument("--instances", nargs="*", default=INSTANCES)
    parser.add_argument("--tours", type=int, default=6000, help="of a run in the part `updates`")
    parser.add_argument("--seconds", type=float, default=5.0, help="of a run in the part `time`")
    options = parser.parse_args()
    problems = problems_of(options.folder, options.instances)
    for part in options.only:
        parts[part](problems, options)


if __name__ == "__main__":
    main()
