"""Gap over wall time: GPUMemetic() on a GPU, and fast-tsp on one core and on all cores of the same machine.

    python benchmarks/gpu_gap_over_time.py FOLDER [--seeds 5] [--instances pr2392 ..] [--limits 1 5] [--no-fast-tsp]

FOLDER contains the TSPLIB files; missing instances are skipped; random:N is a generated map of N cities. Every
combination of instance, time limit and seed is a separate run. The limit is that of the call of ``minimize`` and
includes set-up; only reading the file and compilation are excluded. The matrix of fast-tsp is computed before. Its runs
on one core, one per limit and seed, are concurrent with those of GPUMemetic; those on all cores follow, alone.

Five seeds of everything take about 22 minutes. The results are written after every instance. ``--add`` preserves those
of other instances and times, if they were measured with the same code on the same GPU: a plan can be measured in parts,
in sequence, or in parallel on the GPUs of a machine (CUDA_VISIBLE_DEVICES, and taskset to share its cores).
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from fast_tsp_runs import fast_tsp_tour, lacks_fast_tsp, whole_matrix
from harness import Table, alone, gap, parser_for, problems_of, reference, run_for, set_up_seconds

from pymoo_gpuaco import TSP

LIMITS = (0.5, 1.0, 5.0, 20.0, 60.0, 120.0)
USUAL = LIMITS[:4]  # of ``--limits``
#: limits of each instance, in the order of measurement
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
CONCURRENT = max(1, CORES // 4)  # concurrent runs on one core; GPU runs also need cores
MEMETIC = "GPUMemetic()"
ONE_CORE, ALL_CORES = "fast-tsp, 1 core", f"fast-tsp, {CORES} cores"
HEADER = (
    "instance | cities | solver | limit, s | runs | mean gap %:4 | median gap %:4 | best %:4 | worst %:4 | "
    "mean wall, s:3 | longest wall, s:3 | set-up, s:3 | gap to"
)
NOTES = (
    "Wall: of the whole call, set-up included, without reading the file and compilation; for fast-tsp without the "
    "computation of its matrix.",
    "Random cities have no best known length: gaps are relative to the expected length of uniform cities (last column; "
    "A: area), from which a single map differs by about 0.3 sqrt(A).",
)
SIDE_BY_SIDE_NOTES = (
    "Medians of separate runs for each time, set-up included, compilation excluded. A gap is missing if set-up alone "
    "takes as long, or if the time was not measured.",
    "fast-tsp: without the computation of its matrix. It stores distances in 16 bits: longer ones are scaled for it, "
    "and its tours are measured exactly. It needs n x n numbers and is not run above 20,000 cities.",
)


def side_by_side(rows: list[list[Any]]) -> list[list[Any]]:
    """Return one row per instance and solver: the median gaps at ``LIMITS``."""
    cells: dict[tuple[str, str], dict[float, tuple[int, float]]] = {}
    for name, _, solver, limit, runs, _, median, *_ in rows:
        cells.setdefault((name, solver), {})[limit] = (runs, median)
    wide = []
    for (name, solver), at in cells.items():
        medians = [round(at[limit][1], 3) if limit in at else None for limit in LIMITS]
        wide.append([name, solver, min(runs for runs, _ in at.values()), *medians])
    return wide


def write(rows: list[list[Any]], add: bool) -> None:
    """Write both results: one row per limit, and the median gaps side by side."""
    with alone("gpu_gap_over_time"):
        parameters = {"algorithm": MEMETIC, "cores": CORES}
        table = Table("gpu_gap_over_time_runs", "Gap over wall time: every limit", HEADER, parameters, NOTES)
        if add:
            table.keep_others({tuple(row[:4]) for row in rows}, keys=4)
        table.rows += rows
        instances, solvers = list(PLAN), [MEMETIC, ONE_CORE, ALL_CORES]
        table.write(lambda row: (instances.index(row[0]), [*solvers, row[2]].index(row[2]), row[3]))
        header = " | ".join(["instance | solver | fewest runs", *(f"{limit:g} s" for limit in LIMITS)])
        title = "Gap over wall time, percent"
        wide = Table("gpu_gap_over_time", title, header, table.parameters, SIDE_BY_SIDE_NOTES)
        wide.rows = side_by_side(table.rows)
        wide.write()


def row_of(
    name: str,
    problem: TSP,
    solver: str,
    limit: float,
    runs: Sequence[tuple[float, float]],
    set_up: float | None = None,
) -> list[list[Any]]:
    """Print and return the row of runs, given by lengths and wall times; without runs return no row."""
    if not runs:
        return []
    to, its_name = reference(problem)
    lengths, walls = zip(*runs, strict=True)
    gaps = [gap(length, to) for length in lengths]
    row = [name, problem.n_cities, solver, limit, len(runs)]
    row += [round(of(gaps), 4) for of in (statistics.mean, statistics.median, min, max)]
    row += [round(statistics.mean(walls), 3), round(max(walls), 3)]
    row += [None if set_up is None else round(set_up, 3), its_name]
    print(row, flush=True)
    return [row]


def measure(
    name: str, problem: TSP, limits: Sequence[float], seeds: int, backend: str, all_cores: int
) -> list[list[Any]]:
    """Run one instance; ``all_cores``: runs of fast-tsp on all cores per limit, -1: no fast-tsp."""
    lacking = lacks_fast_tsp(problem.n_cities) if all_cores >= 0 else "without fast-tsp"
    rows: list[list[Any]] = []
    matrix = None
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(CONCURRENT, mp_context=get_context("spawn")) as pool,
    ):
        jobs: dict[float, list[Future]] = {}
        set_up = set_up_seconds(problem, backend)
        if lacking is None:
            matrix, file = whole_matrix(problem), Path(folder) / "matrix.npy"
            np.save(file, matrix)
            for limit in reversed(limits):
                jobs[limit] = [pool.submit(fast_tsp_tour, file, limit, 1) for _ in range(seeds)]
        else:
            print(f"{name}: {lacking}")
        for limit in limits:
            wanted = range(1, seeds + 1 if limit > set_up else 1)
            runs = [run_for(problem, limit, seed, backend) for seed in wanted]
            rows += row_of(name, problem, MEMETIC, limit, runs, set_up)
        for limit in limits if jobs else ():
            ended = [job.result() for job in jobs[limit]]
            measured = [(problem.tour_length(tour), wall) for tour, wall in ended]
            rows += row_of(name, problem, ONE_CORE, limit, measured)
    for limit in limits if jobs else ():
        assert matrix is not None
        ended = [fast_tsp_tour(matrix, limit, CORES) for _ in range(all_cores)]
        measured = [(problem.tour_length(tour), wall) for tour, wall in ended]
        rows += row_of(name, problem, ALL_CORES, limit, measured)
    return rows


def main() -> None:
    parser = parser_for(__doc__, seeds=5, add=True, backend="cuda")
    parser.add_argument("--instances", nargs="+", choices=list(PLAN), default=list(PLAN))
    parser.add_argument("--limits", nargs="+", type=float, choices=LIMITS, default=list(USUAL))
    parser.add_argument("--all-cores", type=int, default=1, help="runs on all cores per limit")
    parser.add_argument("--no-fast-tsp", action="store_true")
    arguments = parser.parse_args()
    all_cores = -1 if arguments.no_fast_tsp else arguments.all_cores
    rows: list[list[Any]] = []
    for name in arguments.instances:
        limits = [limit for limit in PLAN[name] if limit in arguments.limits]
        for problem in problems_of(arguments.folder, [name] if limits else []).values():
            rows += measure(name, problem, limits, arguments.seeds, arguments.backend, all_cores)
            write(rows, arguments.add)


if __name__ == "__main__":
    main()
