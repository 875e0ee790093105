"""``pymoo-gpuaco solve`` of several objectives: one run, whose front is said, written and drawn."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from numpy.typing import NDArray

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms.front_run import FrontTermination, measured_at_once
from pymoo_gpuaco.cli.job import Job, in_words
from pymoo_gpuaco.cli.keep import deliver, save_picture
from pymoo_gpuaco.cli.progress import FrontProgress
from pymoo_gpuaco.cli.search import Outcome, search, status_of, time_limit
from pymoo_gpuaco.pareto.stairs import hull_of
from pymoo_gpuaco.problems import Front, as_multi_objective
from pymoo_gpuaco.problems.writing import ids_in_files
from pymoo_gpuaco.visualization import plot_front


def solve_front(job: Job) -> int:
    """Search for the front of the one instance and return the exit status."""
    ((name, given),) = job.problems.items()
    problem = as_multi_objective(given)
    arguments = job.arguments
    limit = time_limit(arguments)
    objectives = "; ".join(
        f"{objective} {part.distances_in_words}"
        for objective, part in zip(problem.names, problem.parts, strict=True)
    )
    job.print(f"{name}: {problem.n_cities} cities, {problem.n_obj} objectives: {objectives}")
    most = "no time limit" if limit is None else f"at most {limit:g} s"
    job.print(f"{in_words(job)}, seed {arguments.seed}, {most}; preparing ..")
    termination = FrontTermination(arguments.stagnation, arguments.generations, limit)
    progress = FrontProgress(job.stream, problem.names)
    outcome = search(job, given, termination, progress, arguments.seed)
    if outcome is None:
        return status_of(job, 0, all_runs_made=False)
    progress.print(outcome.algorithm)
    if arguments.save and not job.failed:
        job.to_save = outcome.algorithm
    front = Front(outcome.result.X, outcome.result.F, problem)
    volume = front.hypervolume() if measured_at_once(front.lengths) else None
    title = f"{arguments.algorithm}: {front.size} tours"
    done = deliver(
        job,
        name,
        "tours",
        job.csv,
        lambda _: _csv(front, ids_in_files(problem)),
        lambda: _print_summary(job, front, outcome, volume),
        lambda path: save_picture(job, path, plot_front(front, title=title)),
    )
    if arguments.json:
        print(json.dumps(_about(job, name, front, outcome, progress.generation, volume)))
    if outcome.raised is not None:
        raise outcome.raised
    return status_of(job, 0 if done else 2, all_runs_made=True)


def _about(
    job: Job, name: str, front: Front, outcome: Outcome, generations: int, volume: float | None
) -> dict[str, Any]:
    return {
        "version": __version__,
        "algorithm": job.arguments.algorithm,
        "instance": name,
        "cities": front.tours.shape[1],
        "objectives": list(front.names),
        "seed": job.arguments.seed,
        "backend": outcome.algorithm.engine.kind,
        "size": front.size,
        "supported": len(hull_of(front.lengths)) if len(front.names) == 2 else None,
        "hypervolume": volume,
        "reference_point": front.reference_point().tolist(),
        "generations": generations,
        "setup_seconds": round(outcome.setup, 3),
        "seconds": round(outcome.seconds, 3),
        "stopped_by": outcome.stopped_by,
        "front": [
            {"lengths": lengths, "tour": tour}
            for lengths, tour in zip(front.lengths.tolist(), front.tours.tolist(), strict=True)
        ],
    }


def _print_summary(job: Job, front: Front, outcome: Outcome, volume: float | None) -> None:
    low, high = front.lengths.min(axis=0), front.lengths.max(axis=0)
    job.print(f"\nfront       {front.size} tours")
    for name, least, most in zip(front.names, low, high, strict=True):
        job.print(f"            {name} {least:.10g} to {most:.10g}")
    if volume is not None:
        reference = ", ".join(f"{value:.10g}" for value in front.reference_point())
        job.print(f"hypervolume {volume:.10g} below {reference}")
    if front.lengths.shape[1] == 2:
        job.print(f"supported   {len(hull_of(front.lengths))} tours, each shortest by some weighted sum")
    job.print(f"stopped by  {outcome.stopped_by}")


def _csv(front: Front, numbers: NDArray[Any]) -> str:
    """Return a line a tour: its lengths, and the numbers (n,) of its cities."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*front.names, *(f"stop {stop + 1}" for stop in range(front.tours.shape[1]))])
    for lengths, tour in zip(front.lengths, front.tours, strict=True):
        writer.writerow([*(f"{length:.17g}" for length in lengths), *numbers[tour].tolist()])
    return text.getvalue()
