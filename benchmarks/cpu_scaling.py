"""What more cores and more cities do to the CPU's window search: kicks a second by threads, and memory a city.

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

from options import parser_for
from record import write

from pymoo_gpuaco import load_tsp
from pymoo_gpuaco.backends.cpu.engines import warm_up_memetic
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.search import MemeticSearch
from pymoo_gpuaco.runtime.threads import thread_count

REPEATS = 5
SIZES = (10_000, 20_000)  # below and above what is searched as whole tours
RUN = 10  # seconds of the run whose memory is told


def engine_with(n: int, threads: int, tours: int | None) -> tuple[MemeticSearch, CpuWindows]:
    """An engine on n random cities that has repaired its first tour, so that all its trials are kicks."""
    os.environ["PYMOO_GPUACO_THREADS"] = str(threads)
    windows = CpuWindows(
        listed_instance(load_tsp(f"random:{n}"), 8), MemeticParameters(population_size=tours)
    )
    engine = MemeticSearch(windows)
    key = 0
    while not engine.n_trials or windows.repairs_left:
        engine.search(key)
        key += 1
    return engine, windows


def kicks_a_second(engine: MemeticSearch, seconds: float) -> float:
    """Of whole generations, for about so long."""
    before, kicks, key = time.perf_counter(), engine.n_trials, 0
    while (spent := time.perf_counter() - before) < seconds:
        engine.search(key)
        key += 1
    return (engine.n_trials - kicks) / spent


def threads_table(numbers: list[int], seconds: float) -> None:
    """Kicks a second by threads, with the usual number of tours and, where they are whole, with one a thread."""
    rows = []
    for n in SIZES:
        for many in (False, True):
            wanted = max(numbers)
            if many and (n > SIZES[0] or wanted <= 2):
                continue  # 8 windows and 2 tours are as many already
            engines = {t: engine_with(n, t, wanted if many else None) for t in numbers}
            speeds: dict[int, list[float]] = {t: [] for t in numbers}
            for _ in range(REPEATS):  # alternating, so that a busy moment of the machine hits all alike
                for t, (engine, _) in engines.items():
                    speeds[t].append(kicks_a_second(engine, seconds))
            one = speeds[numbers[0]]
            for t in numbers:
                ratio = [a / b for a, b in zip(speeds[t], one, strict=True)]
                rows.append(
                    [
                        f"random:{n}",
                        "whole tours" if engines[t][1].search.whole else "windows",
                        engines[t][1].n_windows,
                        t,
                        round(statistics.median(speeds[t])),
                        spread(speeds[t]),
                        round(statistics.median(ratio), 2),
                        spread(ratio),
                    ]
                )
                print(rows[-1], flush=True)
    columns = (
        "instance",
        "searched as",
        "tours or windows",
        "threads",
        "kicks/s",
        "spread",
        f"over {numbers[0]} thread" + "s" * (numbers[0] > 1),
        "spread of that",
    )
    parameters = {"repeats": REPEATS, "seconds": seconds, "algorithm": "GPUMemetic()"}
    notes = [
        "Wall time of whole generations, once the first tour is repaired; recombination is counted.",
        "A thread searches one tour or window at a time. `GPUMemetic()` has a tour a thread, at least 2, up to 25,000 "
        "cities, and above 8 windows of one tour.",
    ]
    print(write("cpu_threads", "Kicks a second over cores", columns, rows, parameters, notes))


def spread(values: list[float]) -> str:
    return f"{min(values):.3g} .. {max(values):.3g}"


def resident(field: str) -> int:
    """Bytes of this process: VmRSS are resident now, VmHWM were at most."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return 1024 * int(value.split()[0])
    raise KeyError(field)


def run_alone(n: int, seconds: float) -> dict[str, float]:
    """In a fresh process: how much memory a run on n random cities takes beyond what compiled code has before it."""
    from pymoo.optimize import minimize

    from pymoo_gpuaco import GPUMemetic

    warm_up_memetic(n, by_quadrant=True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = resident("VmRSS")
    result = minimize(load_tsp(f"random:{n}"), GPUMemetic(backend="cpu"), ("time", seconds), seed=1)
    return {"before": before, "peak": resident("VmHWM"), "generations": result.algorithm.n_gen}


def memory_of(n: int, seconds: float) -> dict[str, float]:
    """``run_alone`` in a process of its own."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        __file__,
        "--alone",
        "--cities",
        str(n),
        "--seconds",
        str(seconds),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def memory_table(sizes: list[int]) -> None:
    rows = []
    for n in sizes:
        memory = memory_of(n, RUN)
        grown = memory["peak"] - memory["before"]
        rows.append(
            [
                f"random:{n}",
                memory["generations"],
                round(memory["before"] / 2**20),
                round(memory["peak"] / 2**20),
                round(grown / n),
            ]
        )
        print(rows[-1], flush=True)
    columns = ("instance", "generations", "MiB before", "peak MiB", "bytes a city")
    notes = [
        "Resident memory of a fresh process: after importing and compiling, and at most during the run with its "
        "set-up. The problem is made within the run."
    ]
    parameters = {"algorithm": "GPUMemetic()", "seconds": RUN}
    print(write("cpu_memory", "Memory a city on the CPU", columns, rows, parameters, notes))


def main() -> None:
    parser = parser_for(__doc__, folder="none")
    cores = thread_count()
    usual = sorted({1, 2, *(t for t in (4, 8, 16, 32, 64) if t < cores), cores} & set(range(1, cores + 1)))
    parser.add_argument("--only", choices=("memory", "threads"), help="one of the two tables")
    parser.add_argument("--threads", type=int, nargs="+", default=usual)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--cities", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        print(json.dumps(run_alone(arguments.cities[0], arguments.seconds)))
        return
    if arguments.only != "threads":
        memory_table(arguments.cities)
    if arguments.only != "memory":
        threads_table(sorted(arguments.threads), arguments.seconds)


if __name__ == "__main__":
    main()
