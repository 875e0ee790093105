"""``pymoo-gpuaco bench``: how fast this machine is."""

from __future__ import annotations

import argparse

from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.bench import measure
from pymoo_gpuaco.problems import load_tsp
from pymoo_gpuaco.runtime.threads import thread_count

INSTANCES = ("pcb442", "att532", "gr666")
_HEADER = f"{'instance':<10}  {'cities':>6}  {'backend':<7}  {'construction/s':>14}  {'trials/s':>9}"


def bench(arguments: argparse.Namespace) -> int:
    """Measure how fast tours are built and improved here, and how good the best is after some seconds."""
    # all are loaded first: a wrong name ends it before anything is measured
    problems = {name: load_tsp(name) for name in arguments.instance or INSTANCES}
    print(f"GPUMemetic, seed 1, {arguments.seconds:g} s an instance; CPU threads: {thread_count()}")
    for number, device in enumerate(cuda_devices()):
        print(f"CUDA device {number}: {device}")
    print(f"{_HEADER}  {'best':>12}  {'gap %':>8}  {'after s':>7}", flush=True)
    for name, problem in problems.items():
        m = measure(problem, arguments.backend, arguments.device, arguments.seconds)
        gap = "-" if m.gap is None else f"{m.gap:.3f}"
        print(
            f"{problem.label or name:<10}  {problem.n_cities:6d}  {m.backend:<7}  {m.construction:14.0f}  "
            f"{m.trials:9.0f}  {m.length:12.10g}  {gap:>8}  {m.seconds:7.1f}",
            flush=True,
        )
    print(
        "construction/s: tours that the ants of GPUMMAS build; trials/s: kicks of GPUMemetic, each with its repair"
    )
    return 0
