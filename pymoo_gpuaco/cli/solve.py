"""Command ``pymoo-gpuaco solve``: runs for all instances and seeds, one after the other."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np
from pymoo.core.result import Result

from pymoo_gpuaco.algorithms.termination import ColonyTermination, FrontTermination
from pymoo_gpuaco.backends.errors import DeviceFailed
from pymoo_gpuaco.candidates.bound import SHORT_PROOF, seconds_to_prove
from pymoo_gpuaco.cli.job import Job, Run, prepare
from pymoo_gpuaco.cli.options import DEFAULT_SECONDS
from pymoo_gpuaco.cli.outputs import Progress, write_best_tour, write_front, write_statistics
from pymoo_gpuaco.islands import Islands
from pymoo_gpuaco.problems import TSP, Front, as_multi_objective
from pymoo_gpuaco.problems.writing import ids_in_files
from pymoo_gpuaco.runtime import compiling


class Terminated(KeyboardInterrupt):
    """Interrupt by SIGTERM, which job schedulers send before SIGKILL."""


def solve(arguments: argparse.Namespace) -> int:
    """Solve instances with progress, a summary, tours and pictures; return the exit status."""
    job = prepare(arguments)
    status, made = 0, False
    name, problem = next(iter(job.problems.items()))
    if problem.n_obj > 1:
        status, made = _run_front(job, name, problem)
    else:
        try:
            for name, problem in job.problems.items():
                done = len(job.runs)
                try:
                    for number in range(arguments.seeds):
                        if not job.interrupted:
                            _run(job, name, problem, arguments.seed + number if number else arguments.seed)
                finally:  # after any end of a run, the tours found so far are written
                    status = max(status, write_best_tour(job, name, job.runs[done:]))
        finally:
            status = max(status, write_statistics(job))
        made = len(job.runs) == len(job.problems) * arguments.seeds
    if job.failed:
        return 2
    if job.interrupted and not made:
        return 143 if isinstance(job.interrupted, Terminated) else 130
    return status


def _search(
    job: Job, problem: Any, termination: ColonyTermination, progress: Progress, seed: int
) -> tuple[Any, Result, dict[str, Any], Exception | None] | None:
    """Run once; return algorithm, result, columns of the table of runs, and an error to raise once tours are written.

    None if it was interrupted before its first tour. Raises what a run without a tour raises.
    """
    arguments, algorithm = job.arguments, job.resumed
    limit = "no time limit" if termination.seconds is None else f"at most {termination.seconds:g} s"
    islands = arguments.islands or arguments.scheduler or isinstance(algorithm, Islands)
    name = f"islands of {arguments.algorithm}" if islands else arguments.algorithm
    job.print(f"{name}, seed {seed}, {limit}; preparing ..")
    before, setup, ready = time.time(), 0.0, False
    raised: Exception | None = None
    try:
        with compiling.announced(job.print):
            if algorithm is None:
                algorithm, options = (
                    job.new_algorithm(),
                    {"callback": progress, "return_least_infeasible": True},
                )
                algorithm.setup(problem, termination=termination, seed=seed, **options)
            else:
                _resume(job, termination, progress)
        setup = time.time() - before
        job.print(f"ready on the {'CPU' if algorithm.engine.kind == 'cpu' else 'GPU'} after {setup:.1f} s")
        ready = True
        result = algorithm.run()
        stopped = termination.reason or "end of the run"
    except KeyboardInterrupt as error:
        job.interrupted = error
        if algorithm is None or algorithm.opt is None:
            print("\npymoo-gpuaco: interrupted before the first tour was complete", file=sys.stderr)
            return None
        stopped = f"interrupted{': SIGTERM' if isinstance(error, Terminated) else ' from the keyboard'}"
        result = algorithm.result()
    except Exception as error:
        if not ready or algorithm.opt is None:
            raise
        result, stopped = algorithm.result(), f"an error: {error}"
        if isinstance(error, DeviceFailed):
            print(f"\npymoo-gpuaco: {error}", file=sys.stderr)
            job.failed, stopped = True, "device failure"
        elif isinstance(error, ConnectionError):  # the workers of islands are lost
            stopped = f"lost connection: {error}"
        else:
            raised = error
    about = {
        "seed": seed,
        "backend": algorithm.engine.kind,
        "generations": progress.generation,
        "setup_seconds": round(setup, 3),
        "seconds": round(time.time() - algorithm.start_time, 3),
        "stopped_by": stopped,
    }
    if arguments.save and not job.failed:
        job.to_save = algorithm
    return algorithm, result, about, raised


def _resume(job: Job, termination: ColonyTermination, progress: Progress) -> None:
    """Prepare a saved run for continuation: generations and time count from now."""
    algorithm, arguments = job.resumed, job.arguments
    progress.generation = int(algorithm.n_iter) - 1
    progress.tours_before = int(algorithm.evaluator.n_eval)
    if termination.n_max_gen is not None:
        termination.n_max_gen += progress.generation
    algorithm.termination, algorithm.callback = termination, progress
    if arguments.backend != "auto":
        algorithm.backend, algorithm.device = arguments.backend, arguments.device or 0
    with compiling.timed() as took:
        algorithm.prepare()
    algorithm.start_time = time.time() - took.seconds


def _time_limit(arguments: argparse.Namespace) -> float | None:
    """Return the time limit of a run in seconds, or None."""
    if arguments.time is not None:
        return float(arguments.time)
    return None if arguments.generations or arguments.stagnation else DEFAULT_SECONDS


def _run(job: Job, name: str, problem: TSP, seed: int) -> None:
    """Run once and append to ``job.runs``, unless interrupted before the first tour."""
    arguments = job.arguments
    first = not any(run.problem is problem for run in job.runs)  # seed of this problem
    if first:
        names = ids_in_files(problem) if problem.names is None else problem.names
        words = problem.distances_in_words + problem.constraints_in_words(lambda city: str(names[city]))
        known = f", best known {problem.best_known:.10g}" if problem.best_known else ""
        job.print(f"{name}: {problem.n_cities} cities, {words}{known}")
        if problem.read_as:
            job.print(f"read as: {problem.read_as}")
    progress = Progress(job.stream, titled=first)
    termination = ColonyTermination(
        arguments.target,
        arguments.stagnation,
        arguments.generations,
        _time_limit(arguments),
        stagnation_tours=None,
        proven=True,
    )
    outcome = _search(job, problem, termination, progress, seed)
    if outcome is None:
        return
    algorithm, result, about, raised = outcome
    length, violations = float(result.F[0]), int(problem.violations(result.X[None])[0])
    gap = 100.0 * (length / problem.best_known - 1.0) if problem.best_known and not violations else None
    row = {
        "instance": name,
        "cities": problem.n_cities,
        "seed": seed,
        "backend": about["backend"],
        "length": length,
        "violations": violations,
        "best_known": problem.best_known,
        "lower_bound": None,
        "gap_percent": None if gap is None else round(gap, 6),
        "generations": progress.generation,
        "tours": int(algorithm.evaluator.n_eval),
    }
    run = Run(problem, problem.from_home(np.asarray(result.X)), row | about)
    job.runs.append(run)
    if raised is not None:
        raise raised
    if not problem.best_known and not job.failed and not job.interrupted:
        try:  # the tour is in job.runs already
            bound = getattr(algorithm.termination, "bound", None)
            if bound is None and seconds_to_prove(algorithm.instance) <= SHORT_PROOF:
                bound = algorithm.lower_bound
            run.row["lower_bound"] = bound
        except KeyboardInterrupt as stop:
            job.interrupted = stop
    if not job.failed and not job.interrupted:
        progress.print(algorithm)


def _run_front(job: Job, name: str, given: Any) -> tuple[int, bool]:
    """Search for the front of an instance; return the exit status, and True if there is a front."""
    problem, arguments = as_multi_objective(given), job.arguments
    parts = zip(problem.names, problem.parts, strict=True)
    objectives = "; ".join(f"{objective} {part.distances_in_words}" for objective, part in parts)
    job.print(f"{name}: {problem.n_cities} cities, {problem.n_obj} objectives: {objectives}")
    termination = FrontTermination(arguments.stagnation, arguments.generations, _time_limit(arguments))
    progress = Progress(job.stream)
    outcome = _search(job, given, termination, progress, arguments.seed)
    if outcome is None:
        return 0, False
    algorithm, result, about, raised = outcome
    if not job.failed and not job.interrupted:
        progress.print(algorithm)
    done = write_front(job, name, Front(result.X, result.F, problem), about)
    if raised is not None:
        raise raised
    return 0 if done else 2, True
