"""Command ``pymoo-gpuaco solve``: runs for all instances and seeds, one after the other."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from typing import Any

from pymoo.core.result import Result

from pymoo_gpuaco.algorithms.display import gap_percent
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.backends.errors import DeviceFailed
from pymoo_gpuaco.candidates.bound import SHORT_PROOF, seconds_to_prove
from pymoo_gpuaco.checkpoint import Saver
from pymoo_gpuaco.cli.job import Job, Run, file_of, prepare
from pymoo_gpuaco.cli.options import DEFAULT_SECONDS
from pymoo_gpuaco.cli.outputs import (
    Progress,
    write_best_placement,
    write_best_tour,
    write_front,
    write_statistics,
)
from pymoo_gpuaco.islands import Islands
from pymoo_gpuaco.problems import QAP, Front, MultiObjectiveTSP, as_multi_objective
from pymoo_gpuaco.problems.writing import ids_in_files
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.solving import limits, solution_of


class Terminated(KeyboardInterrupt):
    """Interrupt by SIGTERM, which job schedulers send before SIGKILL."""


def solve(arguments: argparse.Namespace) -> int:
    """Solve instances with progress, a summary, tours and pictures; return the exit status."""
    job, status = prepare(arguments), 0
    write = (
        write_front if job.has_fronts else write_best_placement if job.has_assignments else write_best_tour
    )
    try:
        for name, problem in job.problems.items():
            done = len(job.runs)
            try:
                for seed in job.seeds:
                    if not job.interrupted:
                        _run(job, name, problem, seed)
            finally:  # after any end of a run, the tours found so far are written
                status = max(status, write(job, name, job.runs[done:]))
    finally:
        if write is not write_front:
            status = max(status, write_statistics(job))
    if job.failed:
        return 2
    if job.interrupted and len(job.runs) < len(job.problems) * len(job.seeds):
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
    name = f"islands of {job.algorithm}" if islands else job.algorithm
    job.print(f"{name}, seed {seed}, {limit}; preparing ..")
    before, setup, ready = CLOCK.wall(), 0.0, False
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
        setup = CLOCK.wall() - before
        job.print(f"ready on the {'CPU' if algorithm.engine.kind == 'cpu' else 'GPU'} after {setup:.1f} s")
        ready = True
        with closing(progress):
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
        "seconds": round(CLOCK.wall() - algorithm.start_time, 3),
        "stopped_by": stopped,
    }
    return algorithm, result, about, raised


def _resume(job: Job, termination: ColonyTermination, progress: Progress) -> None:
    """Prepare a saved run for continuation: with limits of their own, generations and time count from now."""
    algorithm, arguments = job.resumed, job.arguments
    continues = termination is algorithm.termination
    progress.generation = int(algorithm.n_iter) - 1
    progress.tours_before = int(algorithm.evaluator.n_eval)
    if termination.n_max_gen is not None and not continues:
        termination.n_max_gen += progress.generation
    algorithm.termination, algorithm.callback = termination, progress
    if arguments.backend != "auto":
        algorithm.backend, algorithm.device = arguments.backend, arguments.device or 0
    began = CLOCK.wall()
    with compiling.timed() as took:
        algorithm.prepare()
    if continues:
        algorithm.start_time += CLOCK.wall() - began - took.seconds  # compilation does not count
    else:
        algorithm.start_time = CLOCK.wall() - took.seconds


def _termination(job: Job, problem: Any) -> ColonyTermination:
    """Return the given limits; without any, those of a saved run that has not ended, else the default ones."""
    arguments = job.arguments
    seconds, others = arguments.time, (arguments.stagnation, arguments.generations)
    if seconds is None and not any(others):
        saved = None if job.resumed is None or arguments.target is not None else job.resumed.termination
        if isinstance(saved, ColonyTermination) and not saved.has_terminated():
            return saved
        seconds = DEFAULT_SECONDS
    return limits(problem, seconds, arguments.target, *others)


def _run(job: Job, name: str, problem: Any, seed: int) -> None:
    """Run once and append to ``job.runs``, unless interrupted before the first tour."""
    arguments, fronts = job.arguments, as_multi_objective(problem) if problem.n_obj > 1 else None
    first = not any(run.problem is problem for run in job.runs)  # seed of this problem
    if first:
        job.print(_in_words(name, problem, fronts))
    termination = _termination(job, problem)
    progress = Progress(job.stream, titled=first)
    if arguments.save:
        progress.saver = Saver(file_of(arguments.save, name, seed))
    outcome = _search(job, problem, termination, progress, seed)
    if outcome is None:
        return
    algorithm, result, about, raised = outcome
    if fronts is not None:
        job.runs.append(Run(problem, Front(result.X, result.F, fronts), about))
    elif job.has_assignments:
        placed = problem.solution(result.X)
        sizes = {"items": problem.n_items}
        row = _row(name, problem, about, sizes, placed.cost, 0, int(algorithm.evaluator.n_eval))
        job.runs.append(Run(problem, placed, row))
    else:
        found = solution_of(problem, result, algorithm)
        sizes = {"cities": problem.n_cities}
        row = _row(name, problem, about, sizes, found.length, found.violations, int(found.n_eval or 0))
        job.runs.append(Run(problem, found.tour, row))
    if arguments.save and not job.failed:
        job.to_save[seed] = algorithm
    if raised is not None:
        raise raised
    if fronts is None and not job.failed and not job.interrupted:
        try:  # the result is in job.runs already
            job.runs[-1].row["lower_bound"] = _lower_bound(problem, algorithm)
        except KeyboardInterrupt as stop:
            job.interrupted = stop
    if not job.failed and not job.interrupted:
        progress.print(algorithm)
    if len(job.seeds) > 1:
        algorithm.release_engine()  # before the next run needs the memory


def _in_words(name: str, problem: Any, fronts: MultiObjectiveTSP | None) -> str:
    """Describe a problem: objectives, distances, constraints and best known length, and how its file was read."""
    if fronts is not None:
        return f"{name}: {problem.n_var} cities, {fronts.n_obj} objectives: {fronts.objectives_in_words}"
    if isinstance(problem, QAP):
        return str(problem)
    names = ids_in_files(problem) if problem.names is None else problem.names
    words = problem.distances_in_words + problem.constraints_in_words(lambda city: str(names[city]))
    words += f", best known {problem.best_known:.10g}" if problem.best_known else ""
    read_as = f"\nread as: {problem.read_as}" if problem.read_as else ""
    return f"{name}: {problem.n_var} cities, {words}{read_as}"


def _lower_bound(problem: Any, algorithm: Any) -> float | None:
    """Return a bound that is known or soon computed; of a tour only without a best known length."""
    if isinstance(problem, QAP):
        bound: float | None = algorithm.lower_bound
        return bound
    if problem.best_known:
        return None
    short = seconds_to_prove(algorithm.instance) <= SHORT_PROOF
    return algorithm.lower_bound if short else algorithm.bound_in_time(0.0)


def _row(
    name: str,
    problem: Any,
    about: dict[str, Any],
    sizes: dict[str, int],
    length: float,
    broken: int,
    built: int,
) -> dict[str, Any]:
    """Return the row of a run in the table of runs; ``length`` is that of the tour, or the cost of a placement."""
    known = None if broken else problem.best_known
    return {
        "instance": name,
        **sizes,
        "seed": about["seed"],
        "backend": about["backend"],
        "length": length,
        "violations": broken,
        "best_known": problem.best_known,
        "lower_bound": None,
        "gap_percent": round(gap_percent(length, known), 6) if known else None,
        "generations": about["generations"],
        "tours": built,
        **about,
    }
