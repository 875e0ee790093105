"""What the host does of a focused run is compiled before the run, on a few cities."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.lists import listed_instance
from pymoo_gpuaco.exchange.assembly import recombine
from pymoo_gpuaco.host import compiling
from pymoo_gpuaco.host.background import BackgroundTask
from pymoo_gpuaco.host.compiled import must_be_compiled
from pymoo_gpuaco.host.stop import Stop
from pymoo_gpuaco.host.threads import thread_count
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.search.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.search.penalties import penalised_lists
from pymoo_gpuaco.search.population import Population

_MOST_TO_WAIT = 20.0  # seconds, for a process that may hang
_beside: list[BackgroundTask[Any]] = []
if hasattr(os, "register_at_fork"):  # a child has not got the thread that would tell it of an end
    os.register_at_fork(after_in_child=_beside.clear)
# The input ends with the process that asked, however that ends.
_ELSEWHERE = """
import json, os, sys, threading
threading.Thread(target=lambda: os._exit(len(os.read(0, 1))), daemon=True).start()
sys.path[:] = json.loads(sys.argv[1])
from pymoo_gpuaco.search.warm_up import warm_up_host
warm_up_host(penalised=False, evolves=True)
"""


@functools.cache
def warm_up_host(penalised: bool, evolves: bool) -> None:
    """Compile the recombination of tours, and what finds penalties and what evolves where wanted."""
    for other in _beside:  # which compiles the same, and is ahead
        compiling.begin(compiling.CPU)
        other.wait(time.monotonic() + _MOST_TO_WAIT)
        compiling.end()
    places = np.random.default_rng(0).random((40, 2))
    # by a matrix: the lists of a plane would be compiled as well
    matrix = np.abs(places[:, None] - places[None]).sum(axis=2)
    instance = listed_instance(TSP(matrix=matrix), 8)
    if penalised:
        penalised_lists(instance, 8, 1.0, 1)
    population = Population(instance, make_graph(instance))
    population.merge(np.arange(40, dtype=np.int32))
    population.merge(np.random.default_rng(0).permutation(40).astype(np.int32))
    rng = np.random.default_rng(1)
    tours = np.array([rng.permutation(40) for _ in range(FEWEST_TO_EVOLVE)], np.int32)
    population.recombine(tours[:2], 0, Stop())
    if evolves:
        population.evolve(tours, 0, None)


@functools.cache
def compile_beside() -> None:
    """Let another process compile as well, if nothing of a focused run is kept yet and there are cores for two.

    numba compiles one function at a time in a process. The other one compiles the recombination of tours,
    which is wanted last here, and found on the disk then. Where it fails nothing is lost.
    """
    is_python = Path(sys.executable or "").name.startswith("python") and not getattr(sys, "frozen", False)
    if thread_count() < 2 or not is_python or not must_be_compiled(recombine):
        return
    call = [sys.executable, "-c", _ELSEWHERE, json.dumps([str(folder) for folder in sys.path])]
    nothing = subprocess.DEVNULL

    def compile_elsewhere() -> int:
        with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing) as process:
            return process.wait()

    _beside.append(BackgroundTask(compile_elsewhere))
