"""GPUAS on a GPU, as in papers 000 and 004: each selection rule, the pheromone update, 100 iterations.

    python benchmarks/gpu_ant_system.py FOLDER

FOLDER contains the TSPLIB files. As in the papers: m = n ants, alpha 1, beta 2, rho 0.5, all cities, no local search.
Writes three results:

gpu_as_construction     Tables I and II of paper 000, Tables II and III of paper 004: one tour construction
gpu_as_update           Tables III and IV: one pheromone update
gpu_as_total            Tables IV and V: initialisation and 100 iterations

CUDA events measure the weights and the walk of each iteration of a run. An update takes about as long as a launch:
therefore 20 of them are queued on the device and measured together, and likewise copies of the same number of bytes.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from gpu_variants import AUTHOR
from harness import Table, parser_for, values
from kernel_clock import EventClock, build, iterate, iterations

from pymoo_gpuaco import GPUAS, load_tsp
from pymoo_gpuaco.colony.selection import offered_by
from pymoo_gpuaco.colony.trails import TrailUpdate
from pymoo_gpuaco.problems.tsp import TSP

INSTANCES = ("d198", "a280", "lin318", "pcb442", "rat783", "pr1002", "pr2392", "pcb3038", "fl3795")
PAPERS = INSTANCES[:8]
RULES = offered_by("GPUAS")
ITERATIONS = 100
ON_LARGE = 20  # iterations from 2,000 cities on
CPU_SECONDS = 0.25  # time per rule on the CPU, for at least one construction
IN_A_ROW = 20
SETTING = {
    "alpha": 1,
    "beta": 2,
    "rho": 0.5,
    "ants": "n",
    "trials": 8,
    "switch": "0.85 for the hybrid, 0.99 for the tournament",
    "tournament": "4, 8, 16",
}

# Milliseconds, GeForce GTX 580: Tables I to IV of paper 000.
RULES_000 = values("uchida_2012", "rules")
UPDATE_000 = values("uchida_2012", "update")
TOTAL_000 = values("uchida_2012", "total")
# GeForce GTX 1080: Tables I, II, IV and V of paper 004 (there 3082 instead of 3038 cities); sums over its updates.
UPDATES_004 = values("murooka", "updates")
CONSTRUCTION_004 = values("murooka", "construction")
UPDATE_004 = values("murooka", "update")
TOTAL_004 = values("murooka", "total")
PAPER_HARDWARE = "Figures of the papers: GeForce GTX 580 (paper 000) and GeForce GTX 1080 (paper 004)."
SUMS_004 = PAPER_HARDWARE + " Paper 004 has sums, which are divided by its numbers of updates."


def colony(problem: TSP, selection: str, backend: str = "cuda") -> GPUAS:
    """Create an Ant System, set up for the first iteration."""
    algorithm = GPUAS(problem.n_cities, selection=selection, backend=backend)
    algorithm.setup(problem, seed=1)
    algorithm._begin()
    return algorithm


def cpu_times(problem: TSP, selection: str) -> tuple[float, float]:
    """Return the median milliseconds of a construction and of an update of the CPU engine."""
    algorithm = colony(problem, selection, "cpu")
    if problem.n_cities < 2000:
        iterate(algorithm, 0)  # loads the compiled functions
    built: list[float] = []
    updated: list[float] = []
    while not built or sum(built) < CPU_SECONDS:
        start = time.perf_counter()
        elites = build(algorithm, len(built))
        middle = time.perf_counter()
        algorithm._learn(elites)
        built.append(middle - start)
        updated.append(time.perf_counter() - middle)
    return 1000 * statistics.median(built), 1000 * statistics.median(updated)


def queued(engine: Any, work: Any) -> float:
    """Return the milliseconds per call of ``IN_A_ROW`` calls, which are queued on the device after a long fill."""
    import pycuda.driver as cuda

    with engine.device.working():
        filled = cuda.mem_alloc(4 << 30)
        first, last = cuda.Event(), cuda.Event()
        times = []
        for _ in range(5):
            cuda.memset_d32_async(filled, 0, 1 << 30, None)
            first.record()
            for _ in range(IN_A_ROW):
                work()
            last.record()
            last.synchronize()
            times.append(last.time_since(first) / IN_A_ROW)
        filled.free()
        del first, last
    return statistics.median(times)


def update_times(algorithm: GPUAS) -> tuple[int, float, float]:
    """Return the bytes that an update must move, its milliseconds, and those of a copy of the same size."""
    import pycuda.driver as cuda

    engine = algorithm.engine
    n = engine.instance.n
    moved = 8 * n * n + 4 * engine.n_ants * n  # trails in and out, tours in
    update = TrailUpdate(rho=0.5, colony_amount=algorithm._unit)
    updating = queued(engine, lambda: engine.trails.update(update, engine._tours))
    with engine.device.working():
        source, target = cuda.mem_alloc(moved // 2), cuda.mem_alloc(moved // 2)
        cuda.memset_d8(source, 1, moved // 2)
    copying = queued(engine, lambda: cuda.memcpy_dtod_async(target, source, moved // 2, None))
    with engine.device.working():
        source.free()
        target.free()
    return moved, updating, copying


def total_milliseconds(problem: TSP, selection: str) -> float:
    """Return the wall time of initialisation and 100 iterations."""
    algorithm = colony(problem, selection)
    iterate(algorithm, 0)
    start = time.perf_counter()
    for _ in iterations(algorithm, ITERATIONS, seed=1):
        pass
    with algorithm.engine.device.working():
        algorithm.engine.device.wait()  # for the last update
    return 1000 * (time.perf_counter() - start)


CONSTRUCTIONS = Table(
    "gpu_as_construction",
    "Tour construction of Ant System over all cities, one iteration",
    "instance | selection | GPU, ms:3 | 10 % .. 90 % | CPU engine, ms:1 | the rule's paper, ms:3 | "
    "author's WRS-CT, ms | times faster than WRS-CT:2",
    SETTING | {"iterations": f"{ITERATIONS}; {ON_LARGE} from 2,000 cities on, except for auto"},
    [
        SUMS_004,
        "WRS-CT: the code of Skinderowicz 2020 over all cities, compiled for and run on an H200; constants.",
        f"CPU engine: the same rule on all threads of the same machine, median of {CPU_SECONDS:g} s.",
    ],
)
UPDATES = Table(
    "gpu_as_update",
    "Pheromone update of Ant System: evaporation, deposit of all ants, both directions",
    "instance | GPU, ms:4 | bytes, MB:2 | copy of as many bytes, ms:4 | copy, TB/s:2 | update / copy:2 | "
    "CPU engine, ms:2 | paper 000, ms | paper 004, ms:3",
    {"rho": 0.5, "ants": "n", "in a row": IN_A_ROW},
    [
        "Bytes: trails read and written once, tours read once (8 n n + 4 m n). A copy reads half of the bytes and "
        "writes half; if it fits into the L2 cache, its data is there, as that of the update.",
        SUMS_004,
    ],
)
TOTALS = Table(
    "gpu_as_total",
    "Ant System: initialisation and 100 iterations",
    "instance | selection | GPU, ms:1 | CPU engine, 100 times one, ms:0 | paper 000, 100 iterations, ms | "
    "paper 004, until equal quality, ms",
    SETTING,
    ["Wall time, with lengths and the best tour read by the host in every iteration.", PAPER_HARDWARE],
)


def measure(name: str, problem: TSP, cpu: bool) -> None:
    """Measure one instance and add its rows."""
    n, in_papers = problem.n_cities, name in PAPERS
    processor: dict[str, tuple[float, float]] = {}
    if cpu and in_papers:
        for selection in RULES if n <= 1002 else ("auto", "acceptance_tournament"):
            processor[selection] = cpu_times(problem, selection)
    for selection in RULES:
        algorithm = colony(problem, selection)
        clock = EventClock(algorithm.engine, algorithm.engine.walk, "build")
        for _ in iterations(algorithm, ITERATIONS if n < 2000 or selection == "auto" else ON_LARGE, seed=1):
            pass
        times = clock.milliseconds()
        median, author = float(np.median(times)), AUTHOR["all"].get(name)
        paper = RULES_000.get(selection, {}).get(name)
        if selection == "acceptance_tournament" and in_papers:
            paper = CONSTRUCTION_004[name] / UPDATES_004[name]
        spread = f"{np.quantile(times, 0.1):.3f} .. {np.quantile(times, 0.9):.3f}"
        ours = processor.get(selection, (None, None))
        faster = None if author is None else author / median
        CONSTRUCTIONS.add(name, selection, median, spread, ours[0], paper, author, faster)
        if selection == "auto":
            moved, updating, copying = update_times(algorithm)
            of_copy = copying, moved / copying / 1e9, updating / copying
            paper = UPDATE_004[name] / UPDATES_004[name] if in_papers else None
            UPDATES.add(name, updating, moved / 1e6, *of_copy, ours[1], UPDATE_000.get(name), paper)
    for selection in ("auto", "hybrid", "acceptance_tournament") if in_papers else ():
        if n > 2000 and selection == "hybrid":
            continue
        ours_in_all = ITERATIONS * sum(processor[selection]) if selection in processor else None
        paper_000 = TOTAL_000.get(name) if selection == "hybrid" else None
        paper_004 = TOTAL_004[name] if selection == "acceptance_tournament" else None
        spent = total_milliseconds(problem, selection)
        TOTALS.add(name, selection, spent, ours_in_all, paper_000, paper_004)


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES)
    parser.add_argument("--no-cpu", action="store_true", help="skip the CPU engine")
    arguments = parser.parse_args()
    for name in arguments.only:
        measure(name, load_tsp(arguments.folder / f"{name}.tsp"), not arguments.no_cpu)
    for table in (CONSTRUCTIONS, UPDATES, TOTALS):
        table.write()


if __name__ == "__main__":
    main()
