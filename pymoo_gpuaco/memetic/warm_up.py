"""Compilation of the host's part of a memetic search before a run, on a few cities."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pymoo_gpuaco.candidates.graph import make_graph
from pymoo_gpuaco.candidates.listed import Candidates, ListedInstance
from pymoo_gpuaco.candidates.lists import attached, with_lists
from pymoo_gpuaco.candidates.start import MANY_THREADS, varied_tours
from pymoo_gpuaco.memetic.assembly import assemble_in_threads
from pymoo_gpuaco.memetic.parameters import FEWEST_TO_EVOLVE
from pymoo_gpuaco.memetic.penalties import penalised_lists
from pymoo_gpuaco.memetic.population import Population
from pymoo_gpuaco.problems.instance import of_coordinates, of_matrix
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.background import BackgroundTask
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.compiled import must_be_compiled
from pymoo_gpuaco.runtime.stop import Stop
from pymoo_gpuaco.runtime.threads import thread_count

_MOST_TO_WAIT = 20.0  # seconds, for a process that may hang
_processes: list[BackgroundTask[Any]] = []
if hasattr(os, "register_at_fork"):  # the thread that waits for a process does not exist in a child
    os.register_at_fork(after_in_child=_processes.clear)
# The process exits when its input ends: then the parent process has ended in whatever way.
_PROGRAM = """
import json, os, sys, threading
threading.Thread(target=lambda: os._exit(len(os.read(0, 1))), daemon=True).start()
sys.path[:] = json.loads(sys.argv[1])
from pymoo_gpuaco.memetic import warm_up
getattr(warm_up, sys.argv[2])()
"""
_CORES_FOR_THREE = 4  # cores from which a third process compiles


@functools.cache
def warm_up_host(penalised: bool, evolves: bool) -> None:
    """Compile the recombination of tours, and if set the penalties and the evolution."""
    if penalised and len(_processes) < 2:  # else another process compiles the penalties
        compile_penalties()
    for other in _processes:  # wait: they compile the same functions and started earlier
        compiling.begin(compiling.CPU)
        other.wait(CLOCK.monotonic() + _MOST_TO_WAIT)
        compiling.end()
    if penalised:
        compile_penalties()
    instance = _instance()
    population = Population(instance, make_graph(instance))
    population.merge(np.arange(40, dtype=np.int32))
    population.merge(np.random.default_rng(0).permutation(40).astype(np.int32))
    rng = np.random.default_rng(1)
    tours = np.array([rng.permutation(40) for _ in range(FEWEST_TO_EVOLVE)], np.int32)
    population.recombine(tours[:2], 0, Stop())
    if evolves:
        population.evolve(tours, 0, None)
        if thread_count() >= MANY_THREADS:
            varied_tours(with_lists(of_coordinates(rng.random((40, 2))), 8), MANY_THREADS, 0)


def _instance() -> ListedInstance:
    """Return an instance of a few cities, given by a matrix and lists: coordinates would compile more functions."""
    places = np.random.default_rng(0).random((40, 2))
    matrix = np.abs(places[:, None] - places[None]).sum(axis=2)
    near = matrix.argsort(axis=1)[:, 1:9]
    found = Candidates(near.astype(np.int32), np.take_along_axis(matrix, near, axis=1))
    return attached(of_matrix(matrix, True), found, "nearest")


@functools.cache
def compile_penalties() -> None:
    """Compile the computation of penalties."""
    penalised_lists(_instance(), 8, 1.0, 1)


def compile_recombination() -> None:
    """Compile the recombination and the evolution of tours."""
    warm_up_host(penalised=False, evolves=True)


@functools.cache
def compile_in_processes() -> None:
    """Compile in other processes as well, if the cache is empty and free cores exist.

    numba compiles one function at a time in a process. The others compile the recombination of tours and, with PyCUDA
    and enough cores, the penalties. This process needs both last and finds them in the cache. If they fail, it compiles
    them itself.
    """
    is_python = Path(sys.executable or "").name.startswith("python")
    if thread_count() < 2 or not is_python or not must_be_compiled(assemble_in_threads):
        return
    parts = [compile_recombination]
    if thread_count() >= _CORES_FOR_THREE and importlib.util.find_spec("pycuda") is not None:
        parts.append(compile_penalties)
    nothing = subprocess.DEVNULL

    def compile_elsewhere(part: str) -> int:
        call = [sys.executable, "-c", _PROGRAM, json.dumps([str(folder) for folder in sys.path]), part]
        with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=nothing, stderr=nothing) as process:
            return process.wait()

    for part in parts:
        _processes.append(BackgroundTask(functools.partial(compile_elsewhere, part.__name__)))
