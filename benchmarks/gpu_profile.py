"""Bounds of each hot kernel of the CUDA engines, by Nsight Compute: ``ncu`` profiles one launch of each.

    python benchmarks/gpu_profile.py FOLDER [--instances pr2392 fl3795] [--focused d18512] [--csv FILE]

FOLDER contains the TSPLIB files. It takes about 90 seconds on an H200, most of it for ncu's replays. Clocks are not
fixed and caches are not flushed. A colony runs 20 iterations, then one iteration is profiled: GPUMMAS with candidate
lists and with all cities, ants = n, and with local search and 800 ants; on the first instance also GPUAS, the three
variants of GPUACS and the climbers. Window search (GPUMemetic) is profiled on the instances of ``--focused``: a few
rounds at a temperature > 0 in the second cycle.

The same is done with one ant per multiprocessor. No ant waits for another one there: the time is the *chain*, the
latency of the sequential steps of one tour. The time t of a launch has two lower bounds: the chain, and t times the
utilisation of the busiest unit. The larger one is the bound. A kernel without a chain and without a busy unit is bound
by the latency of its single pass, which is not measured. An empty ``--instances`` profiles window search alone, with a
separate result.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness import Table, parser_for
from kernel_clock import iterations

from pymoo_gpuaco import GPUACS, GPUAS, GPUMMAS, GPU2OptIHC, GPUMemetic, load_tsp
from pymoo_gpuaco.backends.cuda import search_device

INSTANCES = ("pr2392", "fl3795")
#: profiled on every instance
COLONIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "GPUMMAS, candidate lists": (GPUMMAS, {"local_search": False}),
    "GPUMMAS, all cities": (GPUMMAS, {"local_search": False, "candidate_list_size": None}),
    "GPUMMAS, local search": (GPUMMAS, {}),
}
#: profiled on the first instance only
OTHERS_TOO: dict[str, tuple[Any, dict[str, Any]]] = {
    "GPUAS": (GPUAS, {}),
    "GPUAS, roulette": (GPUAS, {"selection": "roulette"}),
    **{
        f"GPUACS, {v}": (GPUACS, {"variant": v, "local_search": False})
        for v in ("sync", "relaxed", "selective")
    },
    "GPU2OptIHC": (GPU2OptIHC, {}),
}
MEMETIC = "GPUMemetic"
MEMETIC_INSTANCES = ("d18512",)
EVERY_KIND: dict[str, Any] = {MEMETIC: (GPUMemetic, {})} | COLONIES | OTHERS_TOO
#: their default number of tours or climbers is used, not n
OWN_SIZE = ("GPU2OptIHC", MEMETIC)
LOCAL_SEARCH_ANTS = 800
WARM_UP = 20
MOST_GENERATIONS = 10_000  # upper bound of the generations of GPUMemetic
#: evaluated in the profiled call of the climbers
PAIRS = 1 << 35
SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "LaunchStats",
    "Occupancy",
)
#: hardware units: name in the table, utilisation in percent of the peak
UNITS = {
    "issue": "sm__issue_active.avg.pct_of_peak_sustained_elapsed",
    "L1 and shared": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "DRAM": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "roots and powers": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
}
#: units whose metric covers only the cycles in which a multiprocessor is active
WHILE_ACTIVE = ("L1 and shared", "roots and powers")
OTHERS = {
    "time": "gpu__time_duration.sum",
    "active": "sm__cycles_active.avg",
    "cycles": "gpc__cycles_elapsed.avg",
    "warps": "sm__warps_active.avg.per_cycle_active",
    "registers": "launch__registers_per_thread",
    "dynamic": "launch__shared_mem_per_block_dynamic",
    "static": "launch__shared_mem_per_block_static",
}
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "short_scoreboard",
    "sleeping", "tex_throttle", "wait",
)  # fmt: skip
#: kernels with sequential steps along the tour of an ant, whose time is a chain
WORK_OF_ANTS = ("construct", "acs_", "improve", "measure", "search")
#: kernels that differ between colonies
WALKS = ("construct", "acs_")
#: percent of its peak below which a unit does not bound a kernel
BUSY = 40.0
MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
KIB = {"byte": 1 / 1024, "Kbyte": 1000 / 1024, "Mbyte": 1e6 / 1024}
HEADER = (
    "instance | algorithm | ants or climbers | kernel | time, us:1 | chain, us:1 | chain, cycles a step:0 | "
    "issue %:1 | L1 and shared %:1 | L2 %:1 | DRAM %:1 | roots and powers %:1 | warps a multiprocessor:1 | "
    "registers:0 | shared, KiB a block:1 | first stall reason | bound | time over bound:2"
)
NOTES = (
    "Nsight Compute, one launch each, clocks not fixed, caches warm; percentages are of the unit's peak.",
    "Roots and powers: the special function unit.",
    "Chain: the same kernel with one ant per multiprocessor. Bound: the larger of the chain and of the time that the "
    "busiest unit needs at its peak. Without a chain and without a busy unit, the bound is the latency of a single "
    "pass.",
)


def plan(names: list[str], focused: list[str], multiprocessors: int) -> list[tuple[str, str, int]]:
    """Return instance, algorithm and ants (0: n) of all profiles: whole colonies, and one ant per multiprocessor."""
    profiles = [(name, MEMETIC, ants) for name in focused for ants in (0, multiprocessors)]
    for name in names:
        for kind in (*COLONIES, *OTHERS_TOO) if name == names[0] else COLONIES:
            sizes = (0,) if kind == "GPU2OptIHC" else (whole(kind), multiprocessors)
            profiles += [(name, kind, ants) for ants in sizes]
    return profiles


def whole(kind: str) -> int:
    """Return the number of ants of the whole colony, 0 for n."""
    return LOCAL_SEARCH_ANTS if kind == "GPUMMAS, local search" else 0


def rounds(algorithm: Any) -> Iterator[None]:
    """Run the warm-up (20 iterations of a colony, one call of climbers), then the profiled iteration or call."""
    engine = algorithm.engine
    if isinstance(algorithm, GPUMemetic):
        generations = iterations(algorithm, MOST_GENERATIONS, seed=1)
        while engine._schedule.cycle < 1:
            next(generations)
        for _ in range(2):
            next(generations)
            yield
    elif isinstance(algorithm, GPU2OptIHC):
        for key in range(2):
            algorithm.engine.climb(key, pairs=PAIRS)
            yield
    else:
        for _ in iterations(algorithm, WARM_UP + 1, seed=1):
            yield


def profiled_run(folder: Path, names: list[str], focused: list[str], log: Path) -> None:
    """Profile one iteration of each plan, and log the launches in their order; called in a process under ncu."""
    import pycuda.driver as cuda

    launches: list[dict[str, Any]] = []
    problems = {name: load_tsp(folder / f"{name}.tsp") for name in (*names, *focused)}
    # short generations of GPUMemetic, because ncu replays each launch several times
    search_device.ROUNDS = search_device.ROUNDS_AT_ONCE
    cuda.init()
    multiprocessors = cuda.Device(0).get_attribute(cuda.device_attribute.MULTIPROCESSOR_COUNT)
    for name, kind, ants in plan(names, focused, multiprocessors):
        problem = problems[name]
        cities = problem.n_cities
        method, arguments = EVERY_KIND[kind]
        size = ants or (None if kind in OWN_SIZE else cities)
        algorithm = method(size, backend="cuda", **arguments).setup(problem, seed=1)
        last = 1 if kind in OWN_SIZE else WARM_UP
        device = algorithm.engine.device
        if isinstance(algorithm, GPUMemetic):
            device = device.device
        inner = device.launch
        begin = len(launches)

        def logged(kernel: str, *arguments: Any, **options: Any) -> None:
            launch = {"instance": name, "cities": cities, "kind": kind, "ants": ants, "kernel": kernel}  # noqa: B023
            launches.append(launch)
            inner(kernel, *arguments, **options)  # noqa: B023

        device.launch = logged
        for number, _ in enumerate(rounds(algorithm)):
            if number == last - 1:
                del launches[begin:]
                with device.working():
                    cuda.Context.synchronize()
                    cuda.start_profiler()
        with device.working():
            cuda.stop_profiler()
    log.write_text(json.dumps(launches))


def run_ncu(folder: Path, names: list[str], focused: list[str], log: Path) -> str:
    """Run the profiled process under ncu; return the raw CSV page of all launches."""
    ncu = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if ncu is None:
        raise SystemExit(
            "gpu_profile.py: ncu is not on the PATH; it comes with the CUDA toolkit as Nsight Compute "
            "(https://developer.nvidia.com/nsight-compute)"
        )
    command = [ncu, "--clock-control", "none", "--cache-control", "none", "--profile-from-start", "off"]
    command += ["--csv", "--page", "raw", "--print-units", "base"]
    for section in SECTIONS:
        command += ["--section", section]
    metrics = [*UNITS.values(), *OTHERS.values(), *(STALL.format(s) for s in STALLS)]
    command += ["--metrics", ",".join(metrics)]
    command += [sys.executable, __file__, str(folder), "--instances", *names]
    command += ["--focused", *focused, "--profiled", str(log)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"gpu_profile.py: ncu failed:\n{answer.stdout[-2000:]}\n{answer.stderr[-2000:]}")
    return answer.stdout


def read_csv(text: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """Return the units by metric, and one row of values per launch; lines before the header are program output."""
    lines = text.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise SystemExit(f"gpu_profile.py: ncu profiled nothing:\n{text[-2000:]}")
    rows = list(csv.DictReader(io.StringIO("".join(lines[first:]))))
    return rows[0], rows[1:]


def number(row: dict[str, str], metric: str) -> float:
    """Return the value of a metric; 0 if the GPU lacks it."""
    try:
        return float(row[metric].replace(",", ""))
    except (KeyError, ValueError):
        return 0.0


def used_units(row: dict[str, str]) -> dict[str, float]:
    """Return the utilisation of each unit over the whole launch, in percent of its peak."""
    used = {unit: number(row, metric) for unit, metric in UNITS.items()}
    for unit in WHILE_ACTIVE:
        used[unit] *= number(row, OTHERS["active"]) / number(row, OTHERS["cycles"])
    return used


def longest_by_kernel(
    launches: list[dict[str, Any]], rows: list[dict[str, str]]
) -> dict[tuple, dict[str, str]]:
    """Return the longest launch of each kernel by (instance, cities, kind, ants, kernel)."""
    if len(launches) != len(rows):
        raise SystemExit(f"gpu_profile.py: {len(launches)} launches, but ncu reports {len(rows)}")
    longest: dict[tuple, dict[str, str]] = {}
    for launch, row in zip(launches, rows, strict=True):
        key = tuple(launch.values())
        if key not in longest or number(row, OTHERS["time"]) > number(longest[key], OTHERS["time"]):
            longest[key] = row
    return longest


def add_rows(table: Table, launches: list[dict[str, Any]], text: str) -> None:
    """Add a row for each kernel of the whole colonies, with its chain."""
    units, rows = read_csv(text)
    microseconds = MICROSECONDS[units[OTHERS["time"]]]
    longest = longest_by_kernel(launches, rows)
    of_one_ant = {
        (instance, kind, kernel): row
        for (instance, _, kind, ants, kernel), row in longest.items()
        if ants != whole(kind) and kernel.startswith(WORK_OF_ANTS)
    }
    seen = set()
    for (instance, cities, kind, ants, kernel), row in longest.items():
        # all colonies have the same kernels except walks: one row for each
        name = instance, kernel, kind if kernel.startswith(WALKS) else None
        if ants != whole(kind) or name in seen:
            continue
        seen.add(name)
        time = microseconds * number(row, OTHERS["time"])
        used = used_units(row)
        busiest = max(used, key=lambda unit: used[unit])
        bound, lower = f"{busiest} {used[busiest]:.0f} %", time * used[busiest] / 100.0
        alone = of_one_ant.get((instance, kind, kernel))
        chain = None if alone is None else microseconds * number(alone, OTHERS["time"])
        steps = None if alone is None else number(alone, OTHERS["cycles"]) / (cities - 1)
        if chain is not None and chain > lower:
            bound, lower = "latency chain", chain
        elif used[busiest] < BUSY:
            bound, lower = f"latency; {busiest} {used[busiest]:.0f} %", float("nan")
        stalls = {s: number(row, STALL.format(s)) for s in STALLS}
        shared = sum(
            KIB[units[OTHERS[s]].split("/")[0]] * number(row, OTHERS[s]) for s in ("dynamic", "static")
        )
        table.add(
            instance,
            kind,
            ants or (None if kind in OWN_SIZE else cities),
            kernel,
            time,
            chain,
            steps if kernel.startswith(WALKS) else None,
            *used.values(),
            number(row, OTHERS["warps"]),
            number(row, OTHERS["registers"]),
            shared,
            max(stalls, key=lambda s: stalls[s]).replace("_", " "),
            bound,
            None if lower != lower else time / lower,
        )


def main() -> None:
    parser = parser_for(__doc__)
    parser.add_argument("--instances", nargs="*", default=list(INSTANCES))
    parser.add_argument(
        "--focused", nargs="*", default=list(MEMETIC_INSTANCES), help="instances of GPUMemetic"
    )
    parser.add_argument("--csv", type=Path, help="write ncu's table to this file")
    parser.add_argument("--profiled", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.profiled:
        profiled_run(arguments.folder, arguments.instances, arguments.focused, arguments.profiled)
        return
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "launches.json"
        text = run_ncu(arguments.folder, arguments.instances, arguments.focused, log)
        launches = json.loads(log.read_text())
    if arguments.csv:
        arguments.csv.write_text(text)
    alone = not arguments.instances
    table = Table(
        "gpu_profile_windows" if alone else "gpu_profile",
        "What bounds window search" if alone else "What bounds each kernel",
        HEADER,
        {"warm-up iterations": WARM_UP, "pairs that the climbers evaluate": PAIRS},
        NOTES,
    )
    add_rows(table, launches, text)
    table.write()


if __name__ == "__main__":
    main()
