"""Cost of a first run on a CPU: time to the first generation, processor time, memory, and tours of a short run.

    python benchmarks/cpu_first_run.py [--repeats 7]

Every run is a new process, in which no GPU is visible. ``pymoo-gpuaco`` must be installed beside the Python that runs
this. Linux only. Takes about a minute and a half.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import Table, gap, parser_for, spread

from pymoo_gpuaco import solve

N, SHORT, LONG, MAPS = 60, 0.3, 3.0, 10  # cities, seconds of both runs, and number of maps
LABELS = {"wall": "wall, s", "processor": "processor, s", "peak": "peak memory, MiB", "gap": "gap, %"}
FIRST_GENERATION = """
import os, time
from pymoo_gpuaco import GPUMemetic, solve

def end(_):
    print(time.monotonic(), time.process_time(), flush=True)
    os._exit(0)

solve("pcb442", algorithm=GPUMemetic(callback=end))
"""
WHOLE_RUN = """
import sys, time
from pymoo_gpuaco import solve
from pymoo_gpuaco.memetic.search import MemeticSearch

search, spent = MemeticSearch.search, 0.0

def timed(self, key):
    global spent
    before = time.process_time()
    search(self, key)
    spent += time.process_time() - before

MemeticSearch.search = timed
solve("pcb442", float(sys.argv[1]), target=1)
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(time.process_time() - spent, peak)
"""
SHORT_RUN = """
import sys
import numpy as np
from pymoo_gpuaco import solve
n, seed, seconds = map(float, sys.argv[1:])
print(solve(np.random.default_rng(int(seed)).random((int(n), 2)), seconds).length)
"""
NOTES = (
    "Times count from the start of the process, including the start of Python. Processor times are those of all "
    "threads.",
    'Without the search: `solve("pcb442", 5)` with a target that no tour reaches, less the processor time within '
    "`MemeticSearch.search`.",
    f"Gap: `solve(cities, {SHORT})` on {MAPS} random maps of {N} cities, to the length after at most {LONG:g} s.",
)


class Ended(NamedTuple):
    """Output of a process, its start on the monotonic clock, and its wall and processor seconds."""

    answer: str
    began: float
    wall: float
    processor: float

    @property
    def numbers(self) -> list[float]:
        """The numbers that the process has printed."""
        return [float(text) for text in self.answer.split()]


def run(*command: str) -> Ended:
    """Run a process without GPUs; raises CalledProcessError if it fails."""
    began = time.monotonic()
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        answer = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Ended(answer, began, wall, used.ru_utime + used.ru_stime)


def python(code: str, *arguments: object) -> Ended:
    """Run code in a new process."""
    return run(sys.executable, "-c", code, *map(str, arguments))


def measure(repeats: int, seconds: float = 5.0) -> dict[tuple[str, str], list[float]]:
    """Return the values of every row; its key is what runs, and what is measured."""
    rows: dict[tuple[str, str], list[float]] = {}

    def add(what: str, **values: float) -> None:
        for name, value in values.items():
            rows.setdefault((what, LABELS[name]), []).append(value)

    # before all others: in a checkout the first run compiles edited functions
    maps = [np.random.default_rng(number).random((N, 2)) for number in range(MAPS)]
    best = [solve(cities, LONG).length for cities in maps]
    for _ in range(repeats):  # alternating, so that other load on the machine affects all equally
        first = python(FIRST_GENERATION)
        end, processor = first.numbers
        add('`solve("pcb442")` until its first generation', wall=end - first.began, processor=processor)
        processor, peak = python(WHOLE_RUN, seconds).numbers
        add(f'`solve("pcb442", {seconds:g})` without the search', processor=processor, peak=peak / 1024)
        program = str(Path(sys.executable).with_name("pymoo-gpuaco"))
        for what, ended in {
            "`import pymoo_gpuaco`": python("import pymoo_gpuaco"),
            "`pymoo-gpuaco --version`": run(program, "--version"),
            "Python alone": python(""),
        }.items():
            add(what, wall=ended.wall, processor=ended.processor)
    for number in range(MAPS):
        (length,) = python(SHORT_RUN, N, number, SHORT).numbers
        add(f"`solve(cities, {SHORT})`, {N} cities", gap=gap(length, best[number]))
    return rows


def main() -> None:
    parser = parser_for(__doc__, folder="none")
    parser.add_argument("--repeats", type=int, default=7, help="processes per row")
    arguments = parser.parse_args()
    parameters: dict[str, Any] = {"algorithm": "GPUMemetic()"}
    header = "what | measured | runs | median | spread"
    table = Table("cpu_first_run", "Cost of a first run on a CPU", header, parameters, NOTES)
    for (what, measured), values in measure(arguments.repeats).items():
        table.add(what, measured, len(values), float(f"{statistics.median(values):.3g}"), spread(values))
    table.write()


if __name__ == "__main__":
    main()
