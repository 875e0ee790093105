"""Compilation time of the first run on a CPU, and of the second one, which reads the cache.

    python benchmarks/cpu_first_run.py

Every run is a separate process; the first of each pair has an empty NUMBA_CACHE_DIR. Takes about a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from typing import Any

from harness import Table

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
HEADER = "instance | searched as | run | import, s:1 | minimize, s:1 | processor, s:1 | compiling as the run reports, s"


def run(instance: str, cache: str) -> list[Any]:
    """Return the seconds of import, of the run, of the processor for both, and of compilation as the run reports."""
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, instance],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
    ).stdout
    times = [float(t) for t in answer.splitlines()[-1].split()[1:]]
    compiling = re.search(r"^compiled in (\S+) s$", answer, re.MULTILINE)
    return [*times, None if compiling is None else float(compiling[1])]


def main() -> None:
    notes = [
        '`minimize(problem, GPUMemetic(), ("n_gen", 1), verbose=True)`; - in the last column: the run reports no '
        "compilation."
    ]
    table = Table("cpu_first_run", "What the first run on a CPU waits for", HEADER, {}, notes)
    for instance, kind in INSTANCES.items():
        with tempfile.TemporaryDirectory() as cache:
            for which in ("first", "second"):
                table.add(instance, kind, which, *run(instance, cache))
    table.write()


if __name__ == "__main__":
    main()
