"""Gap over wall time: GPUMemetic() on a GPU beside fast-tsp on one core and on all cores of the same machine.

    python benchmarks/gpu_gap_over_time.py FOLDER [--seeds 5] [--instances pr2392 ..] [--limits 1 5] [--budget 500]

FOLDER holds the TSPLIB files; instances that it lacks are left out, random:N is a map of N cities that is made. Every
instance, time limit and seed is a run of its own. The limit is on the whole call of ``minimize``, set-up counted;
nothing but reading the file and compilation comes before. fast-tsp gets its matrix ready made.
Its runs on one core go on beside those of GPUMMAS, some at a time, as many for each limit as there are seeds; those on
all cores come after, alone.

Five seeds of everything take about 22 minutes, of which ``--budget`` takes fewer: as many seeds as fit, and no run that
would end later. The results are written after every instance. With ``--add`` those of other instances and times stay,
if they were measured with the same code on the same GPU, so that a plan can be measured in parts: one after another, or
side by side on the GPUs of a machine (CUDA_VISIBLE_DEVICES, and taskset to share its cores). ``--colony-only`` runs no
fast-tsp: what was measured of it stays, whatever the package was then, and the result says when that was.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fast_tsp_runs import fast_tsp_tour, lacks_fast_tsp, whole_matrix
from folder import problems_of
from options import parser_for
from record import RESULTS, alone, processor, rows_of_others, write
from timed_runs import gap, reference, run_for, set_up_seconds

from pymoo_gpuaco import TSP
from pymoo_gpuaco.backends import cuda_devices

LIMITS = (0.5, 1.0, 5.0, 20.0, 60.0, 120.0)
USUAL = LIMITS[:4]  # of ``--limits``
#: instance and its limits, in the order in which they are measured
PLAN = {
    "pr1002": LIMITS[:2],
    "pr2392": LIMITS[:3],
    "fnl4461": LIMITS[:4],
    "pla7397": LIMITS[:4],
    "rl11849": LIMITS[:5],
    "d15112": LIMITS[:5],
    "d18512": LIMITS[:5],
    "pla85900": LIMITS[:5],
    "random:100000": LIMITS[1:5],
    "random:1000000": LIMITS[2:5],
    "random:10000000": LIMITS[5:],
}
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
BESIDE = max(1, CORES // 4)  # runs on one core at a time while a GPU run needs the host too
COLONY = "GPUMemetic()"
ONE_CORE, ALL_CORES = "fast-tsp, 1 core", f"fast-tsp, {CORES} cores"
COLUMNS = (
    "instance",
    "cities",
    "solver",
    "limit, s",
    "runs",
    "mean gap %",
    "median gap %",
    "best %",
    "worst %",
    "mean wall, s",
    "longest wall, s",
    "set-up, s",
    "gap to",
)
#: what ``expected_seconds`` reckons with beside the runs: for an instance, a city and an entry of a matrix
FIXED, A_CITY, AN_ENTRY = 5.0, 1.5e-5, 3e-8


class Budget:
    """Seconds of device time, counted from its making."""

    def __init__(self, seconds: float) -> None:
        self._end = time.perf_counter() + seconds

    def has(self, seconds: float) -> bool:
        """Whether so much is left."""
        return time.perf_counter() + seconds <= self._end


class Ended(NamedTuple):
    """A run of any solver."""

    gap: float
    wall: float


def cities_of(name: str) -> int:
    """Number of cities by an instance's name, where its file has not been read."""
    return int("".join(c for c in name.replace("random:", "") if c.isdigit()))


def expected_seconds(
    plan: dict[str, Sequence[float]], seeds: int, all_cores: int, colony_only: bool = False
) -> float:
    """About how long a plan takes; the runs on one core hide behind those of GPUMMAS."""
    total = 0.0
    for name, limits in plan.items():
        n = cities_of(name)
        beside = not colony_only and lacks_fast_tsp(n) is None
        colony = seeds * sum(limits)
        one_core = max(limits[-1], colony / BESIDE) if beside else 0.0
        total += FIXED + A_CITY * n + max(colony, one_core)
        if beside:
            total += AN_ENTRY * n * n + all_cores * sum(limits)
    return total


def seeds_that_fit(
    plan: dict[str, Sequence[float]], most: int, all_cores: int, seconds: float, colony_only: bool = False
) -> int:
    """Seeds, at least one and no more than ``most``, that take no longer than ``seconds``."""
    fitting = (s for s in range(most, 1, -1) if expected_seconds(plan, s, all_cores, colony_only) <= seconds)
    return next(fitting, 1)


def rows_of_fast_tsp(parameters: dict[str, Any]) -> list[list[Any]]:
    """What was measured of fast-tsp on such a machine, at any commit; ``parameters`` get when that was."""
    path = RESULTS / "gpu_gap_over_time_runs.json"
    if not path.is_file():
        return []
    earlier = json.loads(path.read_text(encoding="utf-8"))
    machine = earlier["machine"]
    devices = [line for key, line in machine.items() if key.startswith("gpu ")]
    if (machine["processor"], machine["threads"], devices) != (processor(), str(CORES), cuda_devices()):
        raise SystemExit(
            f"--colony-only: {path.name} was measured on another machine; fast-tsp has to run here"
        )
    told = f"measured at commit {earlier['commit']} on {earlier['date']}"
    parameters["fast-tsp"] = earlier["parameters"].get("fast-tsp", told)
    return [row for row in earlier["rows"] if row[2] != COLONY]


class Measured:
    """The rows so far, in both forms that are written."""

    def __init__(
        self, parameters: dict[str, Any], plan: dict[str, Sequence[float]], add: bool, colony_only: bool
    ) -> None:
        self._parameters = parameters
        solvers = [COLONY] if colony_only else [COLONY, ONE_CORE, ALL_CORES]
        self._planned = {
            (name, cities_of(name), solver, limit)
            for name, limits in plan.items()
            for solver in solvers
            for limit in limits
        }
        self._add, self._colony_only = add, colony_only
        self._own: list[list[Any]] = []
        self._others: list[list[Any]] = []
        self._keep_others()

    def _keep_others(self) -> None:
        """Take over what was measured of other instances, times and solvers."""
        if self._add:
            self._others = rows_of_others("gpu_gap_over_time_runs", self._planned, self._parameters, keys=4)
        elif self._colony_only and not self._own:
            self._others = rows_of_fast_tsp(self._parameters)

    def add(
        self,
        name: str,
        problem: TSP,
        solver: str,
        limit: float,
        runs: list[Ended],
        set_up: float | None = None,
    ) -> None:
        """Add and print a row; without runs there is none."""
        if not runs:
            return
        gaps, walls = zip(*runs, strict=True)
        row = [name, problem.n_cities, solver, limit, len(runs)]
        row += [round(of(gaps), 4) for of in (statistics.mean, statistics.median, min, max)]
        row += [round(statistics.mean(walls), 3), round(max(walls), 3)]
        row += [None if set_up is None else round(set_up, 3), reference(problem)[1]]
        self._own.append(row)
        print(row, flush=True)

    def write(self) -> None:
        """Write both results: every limit with its times, and the means side by side."""
        with alone("gpu_gap_over_time"):
            self._keep_others()
            instances = {name: place for place, name in enumerate(PLAN)}
            solvers = {COLONY: 0, ONE_CORE: 1, ALL_CORES: 2}
            rows = sorted(
                self._own + self._others,
                key=lambda row: (instances.get(row[0], len(instances)), solvers.get(row[2], 3), row[3]),
            )
            self._write(rows)
        self._add = True  # from now on others may add theirs

    def _write(self, rows: list[list[Any]]) -> None:
        write(
            "gpu_gap_over_time_runs",
            "Gap over wall time: every limit",
            COLUMNS,
            rows,
            self._parameters,
            [
                "Wall: of the whole call, set-up counted; the file was read and kernels were compiled before. fast-tsp "
                "got its matrix ready made.",
                "Random cities have no best known length: gaps are to what is expected of so many uniform cities (the "
                "last column, A being the area), from which a single map differs by about 0.3 sqrt(A).",
            ],
        )
        write(
            "gpu_gap_over_time",
            "Gap over wall time, percent",
            ("instance", "solver", "fewest runs", *(f"{limit:g} s" for limit in LIMITS)),
            side_by_side(rows),
            self._parameters,
            [
                "Means of runs of their own for each time, set-up counted, kernels compiled before. A gap is missing "
                "where the set-up alone takes as long, or where the time was not measured.",
                "fast-tsp: its matrix was made before and not counted. It stores distances in 16 bits: instances with "
                "longer edges are scaled for it and measured in full. It needs n x n numbers and is left out above "
                "20,000 cities.",
            ],
        )


def side_by_side(rows: list[list[Any]]) -> list[list[Any]]:
    """One row an instance and solver: the mean gaps at ``LIMITS``."""
    cells: dict[tuple[str, str], dict[float, tuple[int, float]]] = {}
    for name, _, solver, limit, runs, mean, *_ in rows:
        cells.setdefault((name, solver), {})[limit] = (runs, mean)
    wide = []
    for (name, solver), at in cells.items():
        means = [round(at[limit][1], 3) if limit in at else None for limit in LIMITS]
        wide.append([name, solver, min(runs for runs, _ in at.values()), *means])
    return wide


def measure(
    name: str,
    problem: TSP,
    limits: Sequence[float],
    seeds: int,
    all_cores: int,
    budget: Budget,
    backend: str,
    measured: Measured,
    colony_only: bool,
) -> None:
    """All runs on one instance."""
    to, _ = reference(problem)
    lacking = "no fast-tsp was asked for" if colony_only else lacks_fast_tsp(problem.n_cities)
    if lacking is not None and not colony_only:
        print(f"{name}: {lacking}")
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(BESIDE, mp_context=get_context("spawn")) as pool,
    ):
        jobs: dict[float, list[Future]] = {}
        matrix = None
        set_up = set_up_seconds(problem, backend)
        if lacking is None:
            matrix = whole_matrix(problem)
            file = Path(folder) / "matrix.npy"
            np.save(file, matrix)
            for limit in reversed(limits):
                jobs[limit] = [pool.submit(fast_tsp_tour, file, limit, 1) for _ in range(seeds)]
        for limit in limits:
            runs = []
            for seed in range(1, seeds + 1):
                if limit > set_up and budget.has(limit):
                    run = run_for(problem, limit, seed, backend)
                    runs.append(Ended(gap(run.length, to), run.wall))
            measured.add(name, problem, COLONY, limit, runs, set_up)
        for limit in limits if jobs else ():
            ended = [job.result() for job in jobs[limit]]
            runs = [Ended(gap(problem.tour_length(tour), to), wall) for tour, wall in ended]
            measured.add(name, problem, ONE_CORE, limit, runs)
    for limit in limits if matrix is not None else ():
        runs = []
        for _ in range(all_cores):
            if budget.has(limit):
                tour, wall = fast_tsp_tour(matrix, limit, CORES)
                runs.append(Ended(gap(problem.tour_length(tour), to), wall))
        measured.add(name, problem, ALL_CORES, limit, runs)


def main() -> None:
    parser = parser_for(__doc__, seeds=5, add=True, backend="cuda")
    parser.add_argument("--instances", nargs="+", default=list(PLAN), help="names in FOLDER, or random:N")
    parser.add_argument("--limits", nargs="+", type=float, choices=LIMITS, default=list(USUAL))
    parser.add_argument(
        "--all-cores", type=int, default=1, help="runs of fast-tsp on all cores for each limit"
    )
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds that it may take in all")
    parser.add_argument(
        "--colony-only", action="store_true", help="run no fast-tsp, keep what there is of it"
    )
    arguments = parser.parse_args()
    budget = Budget(arguments.budget)
    plan = {
        name: limits
        for name in arguments.instances
        if (limits := [limit for limit in PLAN.get(name, LIMITS) if limit in arguments.limits])
    }
    how = arguments.all_cores, arguments.colony_only
    seeds = seeds_that_fit(
        plan, arguments.seeds, arguments.all_cores, arguments.budget, arguments.colony_only
    )
    print(f"{seeds} seeds: about {expected_seconds(plan, seeds, *how):.0f} s", flush=True)
    measured = Measured({"algorithm": COLONY, "cores": CORES}, plan, arguments.add, arguments.colony_only)
    for name, limits in plan.items():
        if not budget.has(FIXED):
            print(f"{name}: no time left")
            continue
        for problem in problems_of(arguments.folder, [name]).values():
            measure(
                name,
                problem,
                limits,
                seeds,
                arguments.all_cores,
                budget,
                arguments.backend,
                measured,
                arguments.colony_only,
            )
            measured.write()


if __name__ == "__main__":
    main()
