"""One run of ``solve``: what it needs, and what is left of it however it ends."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

from pymoo.core.result import Result

from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.backends import DeviceFailed
from pymoo_gpuaco.cli.job import Job, make_algorithm
from pymoo_gpuaco.cli.progress import Progress
from pymoo_gpuaco.cli.signals import Terminated
from pymoo_gpuaco.runtime import compiling

DEFAULT_SECONDS = 30.0


@dataclass
class Outcome:
    """What a run has left."""

    algorithm: Any
    result: Result
    stopped_by: str
    setup: float  # seconds
    seconds: float
    raised: Exception | None  # is to be raised when the tours are kept


def search(
    job: Job, problem: Any, termination: ColonyTermination, progress: Progress, seed: int
) -> Outcome | None:
    """Run once; None where it was interrupted before its first tour. Raises what a run raises that has no tour."""
    arguments = job.arguments
    before = time.time()
    setup = 0.0
    algorithm = job.resumed
    ready = False
    raised: Exception | None = None
    try:
        with compiling.announced(job.print):
            if algorithm is None:
                algorithm = make_algorithm(arguments, job.parameters)
                algorithm.setup(
                    problem,
                    termination=termination,
                    seed=seed,
                    callback=progress,
                    return_least_infeasible=True,
                )
            else:
                _go_on(algorithm, termination, progress)
                if arguments.backend != "auto":
                    algorithm.backend, algorithm.device = arguments.backend, arguments.device
                with compiling.timed() as took:
                    algorithm.prepare()
                algorithm.start_time = time.time() - took.seconds
                termination.count_from(algorithm.start_time)
        setup = time.time() - before
        where = "CPU" if algorithm.engine.kind == "cpu" else "GPU"
        job.print(f"ready on the {where} after {setup:.1f} s")
        if not any(run.problem is problem for run in job.runs):
            job.print(progress.header(algorithm))
        ready = True
        result = algorithm.run()
        stopped = termination.reason or "the end"
    except KeyboardInterrupt as stop:
        job.interrupted = stop
        if algorithm is None or algorithm.opt is None:
            print("\npymoo-gpuaco: interrupted before the first tour was complete", file=sys.stderr)
            return None
        result = algorithm.result()
        stopped = "interrupted: SIGTERM" if isinstance(stop, Terminated) else "interrupted from the keyboard"
    except DeviceFailed as failure:
        if algorithm is None or algorithm.opt is None:
            raise
        print(f"\npymoo-gpuaco: {failure}", file=sys.stderr)
        job.failed = True
        result, stopped = algorithm.result(), "a failure of the device"
    except ConnectionError as error:  # the workers of islands are gone
        if algorithm is None or algorithm.opt is None:
            raise
        result = algorithm.result()
        stopped = f"lost connection: {error}"
    except Exception as error:
        if not ready or algorithm.opt is None:
            raise
        raised = error
        result, stopped = algorithm.result(), f"an error: {error}"
    return Outcome(algorithm, result, stopped, setup, time.time() - algorithm.start_time, raised)


def time_limit(arguments: argparse.Namespace) -> float | None:
    """Return the seconds that a run may take, or None for no limit."""
    if arguments.seconds is not None:
        return float(arguments.seconds)
    return None if arguments.generations or arguments.stagnation else DEFAULT_SECONDS


def status_of(job: Job, status: int, all_runs_made: bool) -> int:
    """Return the exit status of the command, given that of the files that it has written."""
    if job.failed:
        return 2
    if job.interrupted is not None and not all_runs_made:
        return 143 if isinstance(job.interrupted, Terminated) else 130
    return status


def _go_on(algorithm: Any, termination: ColonyTermination, progress: Progress) -> None:
    """Let a saved run go on: generations count from now."""
    progress.generation = int(algorithm.n_iter) - 1
    progress.tours_before = int(algorithm.evaluator.n_eval)
    if termination.n_max_gen is not None:
        termination.n_max_gen += progress.generation
    algorithm.termination = termination
    algorithm.callback = progress
