"""Tours per second compared with scikit-opt's ACA_TSP, and the overhead of pymoo over the bare engine.

    python benchmarks/cpu_speed.py

Measurements alternate in one process and are repeated; results are medians with the spread.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import time
from typing import Any

import numpy as np
from harness import Table, spread
from kernel_clock import iterate
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, TSP, load_tsp
from pymoo_gpuaco.algorithms.tour import TourAlgorithm

REPEATS = 5
GENERATIONS = 30


def scikit_opt_tours_a_second(problem: TSP) -> float:
    """Return the tours per second of one iteration of ten ants; time per ant does not depend on their number."""
    setattr(np, "int", int)  # noqa: B010 - scikit-opt 0.6.6 uses the name that numpy 1.24 removed
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
    """Return the tours per second of ten generations of ``minimize``, without set-up."""
    result = minimize(problem, GPUMMAS(backend="cpu", **arguments), ("n_gen", 10), seed=1)
    return result.algorithm.evaluator.n_eval / result.exec_time


def rate_table() -> None:
    problem = load_tsp("pcb442")
    kinds: dict[str, dict[str, Any]] = {
        "construction only (all ants)": {"local_search": False},
        "construction, all cities weighed": {"local_search": False, "candidate_list_size": None},
        "with local search (default)": {},
    }
    ours: dict[str, list[float]] = {kind: [] for kind in kinds}
    theirs = []
    for _ in range(REPEATS):  # alternating, so that other load on the machine affects all equally
        theirs.append(scikit_opt_tours_a_second(problem))
        for kind, arguments in kinds.items():
            ours[kind].append(our_tours_a_second(problem, **arguments))
    parameters = {"repeats": REPEATS, "instance": "pcb442"}
    header = "pcb442 | tours/s:2 | spread | ratio to scikit-opt:0"
    table = Table("cpu_rate", "Tours a second on the CPU, pcb442", header, parameters)
    for kind, speeds in {"scikit-opt ACA_TSP": theirs, **ours}.items():
        median = statistics.median(speeds)
        table.add(kind, median, spread(speeds), median / statistics.median(theirs))
    table.write()


def bare_loop(algorithm: TourAlgorithm, keys: list[int]) -> float:
    """Return the seconds of the engine's iterations and trail updates, without pymoo."""
    algorithm._begin()
    before = time.perf_counter()
    for key in keys:
        iterate(algorithm, key)
    return time.perf_counter() - before


def overhead_table() -> None:
    header = (
        "cities | local search | engine, ms a generation:3 | minimize, ms a generation:3 | ratio:3 | spread"
    )
    parameters = {"repeats": REPEATS, "generations": GENERATIONS, "algorithm": "GPUMMAS"}
    title = "Time of minimize over time of the bare engine loop"
    table = Table("cpu_overhead", title, header, parameters)
    rng = np.random.default_rng(0)
    for n in (200, 442, 1000, 2000):
        problem = load_tsp("pcb442") if n == 442 else TSP(rng.integers(0, 10_000, (n, 2)), "EUC_2D")
        for search in (True, False):
            bare, whole = [], []
            for _ in range(REPEATS):
                colony = GPUMMAS(local_search=search, backend="cpu")
                whole.append(minimize(problem, colony, ("n_gen", GENERATIONS), seed=1).exec_time)
                keys = np.random.default_rng(1).integers(0, 2**64, GENERATIONS, dtype=np.uint64)
                algorithm = GPUMMAS(local_search=search, backend="cpu").setup(problem, seed=1)
                bare.append(bare_loop(algorithm, [int(k) for k in keys]))
            ratio = [w / b for w, b in zip(whole, bare, strict=True)]
            times = [1000 * statistics.median(of) / GENERATIONS for of in (bare, whole)]
            table.add(n, "yes" if search else "no", *times, statistics.median(ratio), spread(ratio))
    table.write()


if __name__ == "__main__":
    rate_table()
    overhead_table()
