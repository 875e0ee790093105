"""``pymoo-gpuaco solve``: instances and seeds, one run after the other."""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from typing import Any

import numpy as np

from pymoo_gpuaco.algorithms.termination import MOST_CITIES_TO_PROVE, ColonyTermination
from pymoo_gpuaco.backends import DeviceFailed
from pymoo_gpuaco.cli.cities import as_given
from pymoo_gpuaco.cli.job import Job, Run, make_algorithm, prepare
from pymoo_gpuaco.cli.keep import keep, keep_statistics
from pymoo_gpuaco.cli.progress import Progress
from pymoo_gpuaco.cli.signals import Terminated
from pymoo_gpuaco.host import compiling
from pymoo_gpuaco.problems import TSP

DEFAULT_SECONDS = 30.0


def solve(arguments: argparse.Namespace) -> int:
    """Solve instances with progress, a summary, tours and pictures."""
    job = prepare(arguments)
    status = 0
    try:
        for name, problem in job.problems.items():
            done = len(job.runs)
            try:
                for number in range(arguments.seeds):
                    _run(job, name, problem, arguments.seed + number if number else arguments.seed)
                    if job.interrupted:
                        break
            finally:  # whatever ends a run, the tours that there are come first
                status = max(status, keep(job, name, job.runs[done:]))
            if job.interrupted:
                break
    finally:
        status = max(status, keep_statistics(job))
    if job.failed:
        return 2
    if job.interrupted is not None and len(job.runs) < len(job.problems) * arguments.seeds:
        return 143 if isinstance(job.interrupted, Terminated) else 130
    return status


def _run(job: Job, name: str, problem: TSP, seed: int) -> None:
    """Run once and append to ``job.runs``, unless it was interrupted before its first tour."""
    arguments = job.arguments
    progress = Progress(job.say)
    known = f", best known {problem.best_known:.10g}" if problem.best_known else ""
    demanded = problem.demands_in_words(partial(as_given, problem))
    job.print(f"{name}: {problem.n_cities} cities, {problem.distances_in_words}{demanded}{known}")
    limit = _time_limit(arguments)
    most = "no time limit" if limit is None else f"at most {limit:g} s"
    what = (
        f"islands of {arguments.algorithm}"
        if arguments.islands or arguments.scheduler
        else arguments.algorithm
    )
    job.print(f"{what}, seed {seed}, {most}; preparing ..")
    termination = ColonyTermination(
        arguments.target,
        arguments.stagnation,
        arguments.generations,
        limit,
        stagnation_tours=None,
        proven=True,
    )
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
                algorithm.prepare()
        setup = time.time() - before
        where = "CPU" if algorithm.engine.kind == "cpu" else "GPU"
        job.print(f"ready on the {where} after {setup:.1f} s\n{progress.header(algorithm)}")
        ready = True
        result = algorithm.run()
        stopped = termination.reason or "the end"
    except KeyboardInterrupt as stop:
        job.interrupted = stop
        if algorithm is None or algorithm.opt is None:
            print("\npymoo-gpuaco: interrupted before the first tour was complete", file=sys.stderr)
            return
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
        raised = error  # is raised when the tour is among the runs
        result, stopped = algorithm.result(), f"an error: {error}"
    job.runs.append(
        Run(
            instance=name,
            problem=problem,
            seed=seed,
            backend=algorithm.engine.kind,
            tour=np.asarray(result.X),
            length=float(result.F[0]),
            violations=int(problem.violations(result.X[None])[0]),
            generations=progress.generation,
            tours=int(algorithm.evaluator.n_eval),
            setup=setup,
            seconds=time.time() - algorithm.start_time,
            stopped_by=stopped,
        )
    )
    if raised is not None:
        raise raised
    if not problem.best_known and not job.failed and not job.interrupted:
        try:  # the tour is kept already, whatever comes
            job.runs[-1].bound = _proven_bound(algorithm)
        except KeyboardInterrupt as stop:
            job.interrupted = stop
    if arguments.save and not job.failed:  # a device that has failed tells its state no more
        job.to_save = algorithm
    progress.print(algorithm)


def _proven_bound(algorithm: Any) -> float | None:
    """Return a length that no tour falls below, where proving it takes no longer than a moment."""
    if algorithm.instance.n > MOST_CITIES_TO_PROVE:
        return None
    bound: float | None = algorithm.lower_bound
    return bound


def _time_limit(arguments: argparse.Namespace) -> float | None:
    if arguments.seconds is not None:
        return float(arguments.seconds)
    return None if arguments.generations or arguments.stagnation else DEFAULT_SECONDS


def _go_on(algorithm: Any, termination: ColonyTermination, progress: Progress) -> None:
    """Let a saved run go on: time and generations count from now."""
    progress.generation = int(algorithm.n_iter) - 1
    progress.tours_before = int(algorithm.evaluator.n_eval)
    if termination.n_max_gen is not None:
        termination.n_max_gen += progress.generation
    algorithm.termination = termination
    algorithm.callback = progress
    algorithm.start_time = time.time()
