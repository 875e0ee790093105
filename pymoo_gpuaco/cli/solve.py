"""``pymoo-gpuaco solve``: instances and seeds, one run after the other."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

import numpy as np

from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.candidates.bound import A_MOMENT, seconds_to_prove
from pymoo_gpuaco.cli.cities import as_given
from pymoo_gpuaco.cli.front import solve_front
from pymoo_gpuaco.cli.job import Job, Run, in_words, prepare
from pymoo_gpuaco.cli.keep import keep, keep_statistics
from pymoo_gpuaco.cli.progress import Progress
from pymoo_gpuaco.cli.search import search, status_of, time_limit
from pymoo_gpuaco.problems import TSP


def solve(arguments: argparse.Namespace) -> int:
    """Solve instances with progress, a summary, tours and pictures."""
    job = prepare(arguments)
    if job.has_several_objectives:
        return solve_front(job)
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
    return status_of(job, status, len(job.runs) == len(job.problems) * arguments.seeds)


def _run(job: Job, name: str, problem: TSP, seed: int) -> None:
    """Run once and append to ``job.runs``, unless it was interrupted before its first tour."""
    arguments = job.arguments
    progress = Progress(job.stream)
    known = f", best known {problem.best_known:.10g}" if problem.best_known else ""
    demanded = problem.demands_in_words(partial(as_given, problem))
    if not any(run.instance == name for run in job.runs):  # once, whatever the number of seeds
        job.print(f"{name}: {problem.n_cities} cities, {problem.distances_in_words}{demanded}{known}")
        if problem.read_as:
            job.print(f"read as: {problem.read_as}")
    limit = time_limit(arguments)
    most = "no time limit" if limit is None else f"at most {limit:g} s"
    job.print(f"{in_words(job)}, seed {seed}, {most}; preparing ..")
    termination = ColonyTermination(
        arguments.target,
        arguments.stagnation,
        arguments.generations,
        limit,
        stagnation_tours=None,
        proven=True,
    )
    outcome = search(job, problem, termination, progress, seed)
    if outcome is None:
        return
    algorithm, result = outcome.algorithm, outcome.result
    job.runs.append(
        Run(
            instance=name,
            problem=problem,
            seed=seed,
            backend=algorithm.engine.kind,
            tour=problem.from_home(np.asarray(result.X)),
            length=float(result.F[0]),
            violations=int(problem.violations(result.X[None])[0]),
            generations=progress.generation,
            tours=int(algorithm.evaluator.n_eval),
            setup=outcome.setup,
            seconds=outcome.seconds,
            stopped_by=outcome.stopped_by,
        )
    )
    if outcome.raised is not None:
        raise outcome.raised
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
    known: float | None = getattr(algorithm.termination, "bound", None)
    if known is not None or seconds_to_prove(algorithm.instance) > A_MOMENT:
        return known
    bound: float | None = algorithm.lower_bound
    return bound
