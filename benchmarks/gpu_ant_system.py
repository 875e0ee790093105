"""GPUAS on a GPU in the form of the two Hiroshima papers: each selection rule, the pheromone update, 100 iterations.

    python benchmarks/gpu_ant_system.py FOLDER

FOLDER holds the TSPLIB files. As the papers set it: m = n ants, alpha 1, beta 2, rho 0.5, all cities, no local search.
Writes five results:

gpu_as_construction     Tables I and II of paper 000, Tables II and III of paper 004: one tour construction
gpu_as_update           Tables III and IV: one pheromone update
gpu_as_total            Tables IV and V: initialisation and 100 iterations
gpu_as_trials           Fig. 8 of paper 000: stochastic trials that a step needs
gpu_as_tournament       what a tournament chooses beside the exact rule

CUDA events lie around the weights and the walk of each iteration of a run. An update alone is as short as a launch: its
time is that of 20 in a row that the device finds queued, as is that of a copy of as many bytes.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from ant_system_runs import ITERATIONS, SETTING, colony, iterate, keys
from ant_system_trials import measure_trials
from gpu_variants import AUTHOR
from options import parser_for
from record import write
from references import values

from pymoo_gpuaco import GPUAS, load_tsp
from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.colony.selection import offered_by
from pymoo_gpuaco.problems.tsp import TSP

INSTANCES = ("d198", "a280", "lin318", "pcb442", "rat783", "pr1002", "pr2392", "pcb3038", "fl3795")
PAPERS = INSTANCES[:8]
RULES = offered_by("GPUAS")
ON_LARGE = 20  # iterations timed from 2,000 cities on
CPU_SECONDS = 0.25  # a rule on the CPU: as many constructions as fit, at least one
IN_A_ROW = 20

# Milliseconds, GeForce GTX 580: Tables I to IV of paper 000.
RULES_000 = values("uchida_2012", "rules")
UPDATE_000 = values("uchida_2012", "update")
TOTAL_000 = values("uchida_2012", "total")
# GeForce GTX 1080: Tables I, II, IV and V of paper 004, which writes 3082 for 3038 cities; sums over its updates.
UPDATES_004 = values("murooka", "updates")
CONSTRUCTION_004 = values("murooka", "construction")
UPDATE_004 = values("murooka", "update")
TOTAL_004 = values("murooka", "total")
PAPER_HARDWARE = "Figures of the papers: a GeForce GTX 580 (paper 000) and a GeForce GTX 1080 (paper 004)."


class Clock:
    """CUDA events around one method of a part of an engine."""

    def __init__(self, engine: Any, part: Any, method: str) -> None:
        import pycuda.driver as cuda

        self._device = engine.device
        self._events: list[tuple[Any, Any]] = []
        inner = getattr(part, method)

        def timed(*arguments: Any) -> None:
            first, last = cuda.Event(), cuda.Event()
            first.record()
            inner(*arguments)
            last.record()
            self._events.append((first, last))

        setattr(part, method, timed)

    def milliseconds(self) -> np.ndarray:
        """Times of all but the first tenth."""
        with self._device.working():
            times = [last.time_since(first) for first, last in self._events]
            self._events.clear()  # events end where their context is current
        return np.array(times[len(times) // 10 :])


def cpu_times(problem: TSP, selection: str) -> tuple[float, float]:
    """Median milliseconds of a construction and of an update on the CPU engine."""
    algorithm = colony(problem, selection, "cpu")
    if problem.n_cities < 2000:
        iterate(algorithm, 0)  # loads the compiled functions
    built, updated = [], []
    while not built or sum(built) < CPU_SECONDS:
        start = time.perf_counter()
        lengths = algorithm.engine.construct(len(built))
        middle = time.perf_counter()
        best = int(lengths.argmin())
        algorithm._learn(Tours(algorithm.engine.tours([best]), lengths[[best]]))
        built.append(middle - start)
        updated.append(time.perf_counter() - middle)
    return 1000 * statistics.median(built), 1000 * statistics.median(updated)


def queued(engine: Any, work: Any) -> float:
    """Milliseconds of one of ``IN_A_ROW`` calls that the device finds queued behind a long fill."""
    import pycuda.driver as cuda

    with engine.device.working():
        room = cuda.mem_alloc(4 << 30)
        first, last = cuda.Event(), cuda.Event()
        times = []
        for _ in range(5):
            cuda.memset_d32_async(room, 0, 1 << 30, None)
            first.record()
            for _ in range(IN_A_ROW):
                work()
            last.record()
            last.synchronize()
            times.append(last.time_since(first) / IN_A_ROW)
        room.free()
        del first, last
    return statistics.median(times)


def update_times(algorithm: GPUAS) -> tuple[int, float, float]:
    """Bytes that an update must move, its milliseconds, and those of a copy of as many bytes."""
    import pycuda.driver as cuda

    from pymoo_gpuaco.colony.trails import TrailUpdate

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


def spread(times: np.ndarray) -> str:
    """The middle four fifths."""
    return f"{np.quantile(times, 0.1):.3f} .. {np.quantile(times, 0.9):.3f}"


def measure_constructions(problems: dict[str, TSP], cpu: bool) -> None:
    """Every rule on every instance; one update and 100 iterations on the way."""
    constructions, updates, totals = [], [], []
    for name, problem in problems.items():
        n = problem.n_cities
        processor: dict[str, tuple[float | None, float | None]] = dict.fromkeys(RULES, (None, None))
        if cpu and name in PAPERS:
            for selection in RULES if n <= 1002 else ("auto", "acceptance_tournament"):
                processor[selection] = cpu_times(problem, selection)
        for selection in RULES:
            algorithm = colony(problem, selection)
            clock = Clock(algorithm.engine, algorithm.engine.walk, "build")
            count = ITERATIONS if n < 2000 or selection == "auto" else ON_LARGE
            for key in keys(1, count):
                iterate(algorithm, key)
            times = clock.milliseconds()
            median = float(np.median(times))
            paper = RULES_000.get(selection, {}).get(name)
            if selection == "acceptance_tournament" and name in PAPERS:
                paper = round(CONSTRUCTION_004[name] / UPDATES_004[name], 3)
            author = AUTHOR["all"].get(name)
            ours = processor[selection][0]
            constructions.append(
                [
                    name,
                    selection,
                    round(median, 3),
                    spread(times),
                    None if ours is None else round(ours, 1),
                    paper,
                    author,
                    None if author is None else round(author / median, 2),
                ]
            )
            print(constructions[-1], flush=True)
            if selection == "auto":
                moved, updating, copying = update_times(algorithm)
                ours = processor["auto"][1]
                updates.append(
                    [
                        name,
                        round(updating, 4),
                        round(moved / 1e6, 2),
                        round(copying, 4),
                        round(moved / copying / 1e9, 2),
                        round(updating / copying, 2),
                        None if ours is None else round(ours, 2),
                        UPDATE_000.get(name),
                        round(UPDATE_004[name] / UPDATES_004[name], 3) if name in PAPERS else None,
                    ]
                )
                print(updates[-1], flush=True)
            del algorithm, clock
        if name in PAPERS:
            for selection in ("auto", "hybrid", "acceptance_tournament"):
                if n > 2000 and selection == "hybrid":
                    continue
                algorithm = colony(problem, selection)
                iterate(algorithm, 0)
                start = time.perf_counter()
                algorithm._begin()
                for key in keys(1, ITERATIONS):
                    iterate(algorithm, key)
                algorithm.engine.branching_factor(0.05)  # waits for the last update
                spent = 1000 * (time.perf_counter() - start)
                each = [x for x in processor[selection] if x is not None]
                totals.append(
                    [
                        name,
                        selection,
                        round(spent, 1),
                        round(ITERATIONS * sum(each)) if each else None,
                        TOTAL_000.get(name) if selection == "hybrid" else None,
                        TOTAL_004[name] if selection == "acceptance_tournament" else None,
                    ]
                )
                print(totals[-1], flush=True)
                del algorithm
    write(
        "gpu_as_construction",
        "Tour construction of Ant System over all cities, one iteration",
        (
            "instance",
            "selection",
            "GPU, ms",
            "10 % .. 90 %",
            "CPU engine, ms",
            "the rule's paper, ms",
            "author's WRS-CT, ms",
            "times faster than WRS-CT",
        ),
        constructions,
        SETTING | {"iterations": f"{ITERATIONS}; {ON_LARGE} from 2,000 cities on, but for auto"},
        [
            PAPER_HARDWARE + " Paper 004 gives sums, here divided by its numbers of updates.",
            "WRS-CT: the code of Skinderowicz 2020 over all cities, built for and run on an H200; a constant here.",
            f"CPU engine: the same rule on all threads of the same machine, median of {CPU_SECONDS:g} s.",
        ],
    )
    write(
        "gpu_as_update",
        "Pheromone update of Ant System: evaporation, deposit of all ants, both directions",
        (
            "instance",
            "GPU, ms",
            "bytes, MB",
            "copy of as many bytes, ms",
            "copy, TB/s",
            "update / copy",
            "CPU engine, ms",
            "paper 000, ms",
            "paper 004, ms",
        ),
        updates,
        {"rho": 0.5, "ants": "n", "in a row": IN_A_ROW},
        [
            "Bytes: trails read and written once, tours read once (8 n n + 4 m n). A copy reads half of the bytes and "
            "writes half; where it fits the second-level cache it runs from there, as the update does.",
            PAPER_HARDWARE + " Paper 004 gives sums, here divided by its numbers of updates.",
        ],
    )
    write(
        "gpu_as_total",
        "Ant System: initialisation and 100 iterations",
        (
            "instance",
            "selection",
            "GPU, ms",
            "CPU engine, 100 times one, ms",
            "paper 000, 100 iterations, ms",
            "paper 004, until equal quality, ms",
        ),
        totals,
        SETTING,
        ["Wall clock, with lengths and the best tour read back every iteration.", PAPER_HARDWARE],
    )


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--instances", nargs="+", default=INSTANCES, choices=INSTANCES)
    parser.add_argument("--no-cpu", action="store_true", help="leave out the CPU engine")
    arguments = parser.parse_args()
    problems = {name: load_tsp(arguments.folder / f"{name}.tsp") for name in arguments.instances}
    if "pr1002" in problems:
        measure_trials(problems["pr1002"], "pr1002")
    measure_constructions(problems, not arguments.no_cpu)


if __name__ == "__main__":
    main()
