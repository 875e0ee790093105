"""How long the first run on a CPU waits for numba, and the second one, which finds what the first has kept.

    python benchmarks/cpu_first_run.py

Every run is a process of its own; the first of each pair has an empty NUMBA_CACHE_DIR. Takes about a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from record import write

INSTANCES = {"pcb442": "whole tours", "random:20000": "windows"}
RUN = """
import resource, sys, time
began = time.perf_counter()
from pymoo.optimize import minimize
from pymoo_gpuaco import GPUMMAS, GPUMemetic, load_tsp
imported = time.perf_counter()
minimize(load_tsp(sys.argv[1]), GPUMemetic(backend="cpu"), ("n_gen", 1), seed=1, verbose=True)
used = resource.getrusage(resource.RUSAGE_SELF)
print("times", imported - began, time.perf_counter() - imported, used.ru_utime + used.ru_stime)
"""


def run(instance: str, cache: str) -> list[Any]:
    """Seconds of the import, of the run and of the processor for both; the seconds of compiling that the run told."""
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, instance],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    ).stdout
    times = [float(t) for t in answer.splitlines()[-1].split()[1:]]
    told = re.search(r"^compiled in (\S+) s$", answer, re.MULTILINE)
    assert (told is None) == ("compiling the CPU engine with numba .." not in answer)
    return [*(round(t, 1) for t in times), None if told is None else float(told[1])]


def main() -> None:
    rows = []
    for instance, kind in INSTANCES.items():
        with tempfile.TemporaryDirectory() as cache:
            for which in ("first", "second"):
                rows.append([instance, kind, which, *run(instance, cache)])
                print(rows[-1], flush=True)
    columns = (
        "instance",
        "searched as",
        "run",
        "import, s",
        "minimize, s",
        "processor, s",
        "compiling told, s",
    )
    notes = [
        '`minimize(problem, GPUMemetic(), ("n_gen", 1), verbose=True)`; the last column is what the run itself said of '
        "compiling, - where it said nothing."
    ]
    print(write("cpu_first_run", "What the first run on a CPU waits for", columns, rows, {}, notes))


if __name__ == "__main__":
    main()
