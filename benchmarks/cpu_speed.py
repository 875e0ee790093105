"""Tours a second against scikit-opt's ACA_TSP, and what pymoo costs on top of the bare engine.

    python benchmarks/cpu_speed.py

Everything is measured side by side in one process, repeated, and given as medians with the spread.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from typing import Any

import numpy as np
from kernel_clock import iterate
from pymoo.optimize import minimize
from record import write

from pymoo_gpuaco import GPUMMAS, TSP, load_tsp
from pymoo_gpuaco.algorithms.base import TourAlgorithm

REPEATS = 5


def spread(values: list[float]) -> str:
    return f"{min(values):.3g} .. {max(values):.3g}"


def scikit_opt_tours_a_second(problem: TSP) -> float:
    """One iteration of ten ants: its cost an ant does not depend on their number."""
    setattr(np, "int", int)  # noqa: B010 - scikit-opt 0.6.6 still uses the name that numpy 1.24 removed
    with contextlib.redirect_stdout(io.StringIO()):
        from sko.ACA import ACA_TSP

    def length(tour: np.ndarray) -> float:
        return problem.tour_length(tour)

    ants = 10
    colony = ACA_TSP(
        func=length, n_dim=problem.n_cities, size_pop=ants, max_iter=1, distance_matrix=problem.D + 1e-9
    )
    before = time.perf_counter()
    colony.run()
    return ants / (time.perf_counter() - before)


def our_tours_a_second(problem: TSP, **arguments: Any) -> float:
    """Tours of ten generations through ``minimize``, set-up left out."""
    result = minimize(problem, GPUMMAS(backend="cpu", **arguments), ("n_gen", 10), seed=1)
    return result.algorithm.evaluator.n_eval / result.exec_time


def rate_table() -> None:
    problem = load_tsp("pcb442")
    kinds = {
        "construction only (all ants)": {"local_search": False},
        "construction, all cities weighed": {"local_search": False, "candidate_list_size": None},
        "with local search (default)": {},
    }
    rows = []
    ours: dict[str, list[float]] = {kind: [] for kind in kinds}
    theirs = []
    for _ in range(REPEATS):  # interleaved, so that a busy moment of the machine hits all alike
        theirs.append(scikit_opt_tours_a_second(problem))
        for kind, arguments in kinds.items():
            ours[kind].append(our_tours_a_second(problem, **arguments))
    reference = statistics.median(theirs)
    rows.append(["scikit-opt ACA_TSP", round(reference, 2), spread(theirs), 1])
    for kind, speeds in ours.items():
        rows.append(
            [
                kind,
                round(statistics.median(speeds)),
                spread(speeds),
                round(statistics.median(speeds) / reference),
            ]
        )
    columns = ("pcb442", "tours/s", "spread", "ratio to scikit-opt")
    parameters = {"repeats": REPEATS, "instance": "pcb442"}
    print(*rows, sep="\n")
    print(write("cpu_rate", "Tours a second on the CPU, pcb442", columns, rows, parameters))


def bare_loop(algorithm: TourAlgorithm, keys: list[int]) -> float:
    """The engine's own iterations, with the trail update and nothing of pymoo."""
    algorithm._begin()
    before = time.perf_counter()
    for key in keys:
        iterate(algorithm, key)
    return time.perf_counter() - before


def overhead_table() -> None:
    rows = []
    generations = 30
    rng = np.random.default_rng(0)
    for n in (200, 442, 1000, 2000):
        problem = load_tsp("pcb442") if n == 442 else TSP(rng.integers(0, 10_000, (n, 2)), "EUC_2D")
        for search in (True, False):
            bare, whole = [], []
            for _ in range(REPEATS):
                result = minimize(
                    problem, GPUMMAS(local_search=search, backend="cpu"), ("n_gen", generations), seed=1
                )
                whole.append(result.exec_time)
                keys = np.random.default_rng(1).integers(0, 2**64, generations, dtype=np.uint64)
                algorithm = GPUMMAS(local_search=search, backend="cpu").setup(problem, seed=1)
                bare.append(bare_loop(algorithm, [int(k) for k in keys]))
            ratio = [w / b for w, b in zip(whole, bare, strict=True)]
            rows.append(
                [
                    n,
                    "yes" if search else "no",
                    round(1000 * statistics.median(bare) / generations, 3),
                    round(1000 * statistics.median(whole) / generations, 3),
                    round(statistics.median(ratio), 3),
                    spread(ratio),
                ]
            )
            print(rows[-1], flush=True)
    columns = (
        "cities",
        "local search",
        "engine, ms a generation",
        "minimize, ms a generation",
        "ratio",
        "spread",
    )
    parameters = {"repeats": REPEATS, "generations": generations, "algorithm": "GPUMMAS"}
    print(
        write("cpu_overhead", "Time of minimize over time of the bare engine loop", columns, rows, parameters)
    )


if __name__ == "__main__":
    rate_table()
    overhead_table()
