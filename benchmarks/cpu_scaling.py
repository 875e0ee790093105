"""Kicks per second of the CPU's window search by number of threads, and memory per city.

    python benchmarks/cpu_scaling.py [--only memory] [--threads 1 2 ..] [--seconds 1] [--cities 200000]

Linux only, for the memory. Takes about a minute and a half on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import Table, parser_for, run_for, spread

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.runtime.threads import thread_count

REPEATS = 5
SIZES = (10_000, 20_000)  # searched as whole tours, and in windows
RUN = 10  # s of the run whose memory is measured
THREADS = (
    "instance | searched as | tours or windows | threads | kicks/s:0 | spread | over the fewest threads:2 | "
    "spread of that"
)
THREADS_NOTES = (
    "Wall time of whole generations after the repair of the first tour; recombination is included.",
    "A thread searches one tour or window at a time. `GPUMemetic()` has one tour per thread, at least 2, up to 25,000 "
    "cities, and 8 windows of one tour above.",
)
MEMORY_NOTE = (
    "Resident memory of a new process: after a run on 200 cities, and the peak during the measured run, which includes "
    "set-up and the creation of the problem."
)


def engine_with(n: int, threads: int, tours: int | None) -> tuple[MemeticSearch, CpuWindows]:
    """Return an engine on n random cities after the repair of its first tour: all further trials are kicks."""
    os.environ["PYMOO_GPUACO_THREADS"] = str(threads)
    windows = CpuWindows(
        with_lists(load_tsp(f"random:{n}").instance, 8), MemeticParameters(population_size=tours)
    )
    engine = MemeticSearch(windows)
    key = 0
    while not engine.n_trials or windows.repairs_left:
        engine.search(key)
        key += 1
    return engine, windows


def kicks_a_second(engine: MemeticSearch, seconds: float) -> float:
    """Return the kicks per second of whole generations, measured for about ``seconds``."""
    before, kicks, key = time.perf_counter(), engine.n_trials, 0
    while (spent := time.perf_counter() - before) < seconds:
        engine.search(key)
        key += 1
    return (engine.n_trials - kicks) / spent


def threads_table(numbers: list[int], seconds: float) -> None:
    """Measure kicks per second by threads, with the default number of tours, and for whole tours one per thread."""
    parameters = {"repeats": REPEATS, "seconds": seconds, "algorithm": "GPUMemetic()"}
    table = Table("cpu_threads", "Kicks a second over cores", THREADS, parameters, THREADS_NOTES)
    # up to two threads, the default is at least one tour or window per thread
    plan = [(n, None) for n in SIZES] + [(SIZES[0], max(numbers))] * (max(numbers) > 2)
    for n, tours in sorted(plan, key=lambda one: one[0]):
        engines = {t: engine_with(n, t, tours) for t in numbers}
        speeds: dict[int, list[float]] = {t: [] for t in numbers}
        for _ in range(REPEATS):  # alternating, so that other load on the machine affects all equally
            for t, (engine, _) in engines.items():
                speeds[t].append(kicks_a_second(engine, seconds))
        for t, (_, windows) in engines.items():
            ratio = [a / b for a, b in zip(speeds[t], speeds[numbers[0]], strict=True)]
            table.add(
                f"random:{n}",
                "whole tours" if windows.search.whole else "windows",
                windows.n_windows,
                t,
                statistics.median(speeds[t]),
                spread(speeds[t]),
                statistics.median(ratio),
                spread(ratio),
            )
    table.write()


def resident(field: str) -> int:
    """Return memory of this process in bytes: VmRSS is resident now, VmHWM is the peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return 1024 * int(value.split()[0])
    raise KeyError(field)


def run_alone(n: int, seconds: float) -> dict[str, float]:
    """Measure the memory before and during a run on n random cities; call it in a new process."""
    run_for(load_tsp("random:200"), 0.1, 0, "cpu")  # loads all that a run needs
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before, generations = resident("VmRSS"), []
    run_for(load_tsp(f"random:{n}"), seconds, 1, "cpu", lambda algorithm: generations.append(algorithm.n_gen))
    return {"before": before, "peak": resident("VmHWM"), "generations": len(generations)}


def memory_of(n: int, seconds: float) -> dict[str, float]:
    """Return the result of ``run_alone`` in a new process."""
    options = ["--alone", "--cities", str(n), "--seconds", str(seconds)]
    command = [sys.executable, "-W", "ignore", __file__, *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def memory_table(sizes: list[int]) -> None:
    header = "instance | generations | MiB before:0 | peak MiB:0 | bytes a city:0"
    parameters = {"algorithm": "GPUMemetic()", "seconds": RUN}
    table = Table("cpu_memory", "Memory a city on the CPU", header, parameters, [MEMORY_NOTE])
    for n in sizes:
        memory = memory_of(n, RUN)
        before, peak = memory["before"], memory["peak"]
        table.add(f"random:{n}", memory["generations"], before / 2**20, peak / 2**20, (peak - before) / n)
    table.write()


def main() -> None:
    parser = parser_for(__doc__, folder="none", only=("memory", "threads"))
    cores = thread_count()
    usual = sorted({1, 2, *(t for t in (4, 8, 16, 32, 64) if t < cores), cores} & set(range(1, cores + 1)))
    parser.add_argument("--threads", type=int, nargs="+", default=usual)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--cities", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(run_alone(arguments.cities[0], arguments.seconds)))
        return
    if "memory" in arguments.only:
        memory_table(arguments.cities)
    if "threads" in arguments.only:
        threads_table(sorted(arguments.threads), arguments.seconds)


if __name__ == "__main__":
    main()
