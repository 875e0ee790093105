"""After the search: the tour first, then what is said and drawn of it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pymoo.core.callback import Callback

from pymoo_gpuaco import checkpoint
from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.candidates.bound import is_proven
from pymoo_gpuaco.cli import outputs
from pymoo_gpuaco.cli.job import Job, Run
from pymoo_gpuaco.cli.outputs import STDOUT, Output
from pymoo_gpuaco.cli.signals import undisturbed
from pymoo_gpuaco.problems.demands import violations_in_words
from pymoo_gpuaco.problems.instance import as_instance
from pymoo_gpuaco.problems.writing import route_text, write_whole
from pymoo_gpuaco.visualization import plot_tour


def keep(job: Job, name: str, runs: list[Run]) -> int:
    """Write the best tour of an instance, print its summary, keep the run's state and draw it; return the exit status.

    The status is 1 where the tour breaks demands.
    """
    if not runs:
        return 0
    best = min(runs, key=lambda run: run.rank)
    done = deliver(
        job,
        name,
        "tour",
        job.tour,
        lambda suffix: route_text(best.problem, best.tour, suffix, name),
        lambda: _print_summary(job, runs, best),
        lambda path: _draw(job, path, best),
    )
    if best.violations:
        print(f"pymoo-gpuaco: {name}: {violations_in_words(best.violations)}", file=sys.stderr)
    return 2 if not done else 1 if best.violations else 0


def deliver(
    job: Job,
    name: str,
    what: str,
    output: Output | None,
    text_of: Callable[[str], str],
    print_summary: Callable[[], None],
    draw: Callable[[Path], None],
) -> bool:
    """Write what a search has found, print what it is, keep the run's state and draw; return whether all was done.

    Whatever fails, the result is in its file or on the screen.

    name : of the instance; what : the word for the result.
    output : the file that it is to be written to, or None.
    text_of : returns the contents of a file of that suffix; "" for the screen.
    """
    in_file = done = False
    try:
        if output is not None:
            with undisturbed():
                if output.pattern == STDOUT:
                    show(text_of(""))
                else:
                    path = output.of(name)
                    write_whole(path, text_of(path.suffix).encode("utf-8"))
            in_file = True
        print_summary()
        if output is not None and output.pattern != STDOUT:
            job.print(f"{what:<11} {output.of(name)}")
        saved = job.to_save is None or save_state(job)
        if job.picture is not None:
            draw(job.picture.of(name))
        done = saved
    except (OSError, ValueError, MemoryError) as error:
        print(f"pymoo-gpuaco: {error}", file=sys.stderr)
    finally:
        if not done and not in_file:
            show(text_of(""))
    return done


def show(text: str) -> None:
    """Print what a file would hold."""
    sys.stdout.write(text)
    sys.stdout.flush()


def save_state(job: Job) -> bool:
    """Keep the state of the run; return whether it is in its file."""
    path = job.arguments.save
    job.to_save.callback = Callback()  # the lines of this command's progress are no part of the run
    try:
        with undisturbed():
            checkpoint.save(job.to_save, path)
    except (OSError, MemoryError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else error
        print(f"pymoo-gpuaco: --save {path}: {said}", file=sys.stderr)
        return False
    job.print(f"state       {path}")
    return True


def _draw(job: Job, path: Path, run: Run) -> None:
    if run.problem.positions is None:
        job.print("picture     none: the instance has distances but no positions to draw")
        return
    title = f"{run.problem.label or ''} {run.length:.10g}".strip()
    save_picture(job, path, plot_tour(run.problem, run.tour, title=title))


def save_picture(job: Job, path: Path, figure: Any) -> None:
    """Write a figure of matplotlib to a file, whose suffix says in which format, and say so."""
    contents = io.BytesIO()
    figure.savefig(contents, dpi=150, format=path.suffix[1:].lower())
    write_whole(path, contents.getvalue())
    job.print(f"picture     {path}")


def _print_summary(job: Job, runs: list[Run], best: Run) -> None:
    known = best.problem.best_known
    if len(runs) > 1:
        job.print(
            f"\n{'seed':>10}  {'length':>12}  {'gap %':>8}  {'generations':>11}  {'seconds':>8}  stopped by"
        )
        for run in runs:
            gap = "-" if run.gap is None else f"{run.gap:.3f}"
            job.print(
                f"{run.seed:10d}  {run.length:12.10g}  {gap:>8}  {run.generations:11d}  {run.seconds:8.1f}  "
                f"{run.stopped_by}"
            )
        lengths = np.array([run.length for run in runs if run.violations == best.violations])
        for word, value in (("best", lengths.min()), ("mean", lengths.mean()), ("worst", lengths.max())):
            gap = f"{100.0 * (value / known - 1.0):.3f}" if known else "-"
            job.print(f"{word:>10}  {value:12.10g}  {gap:>8}")
    job.print(f"\nbest tour   {best.length:.10g}")
    if best.gap is not None:
        job.print(f"best known  {known:.10g}  (gap {best.gap:.3f} %)")
    elif best.bound and not best.violations:
        above = 100.0 * (best.length / best.bound - 1.0)
        proven = is_proven(as_instance(best.problem), best.tour, best.bound)
        words = "no tour is shorter" if proven else f"at most {above:.3f} % above the shortest"
        job.print(f"proven      {best.bound:.10g}  ({words})")
    if len(runs) == 1:
        job.print(f"stopped by  {best.stopped_by}")


def keep_statistics(job: Job) -> int:
    """Write the table of runs and print it as JSON, where that was asked for; return the exit status."""
    arguments = job.arguments
    rows = [run.row() for run in job.runs]
    status = 0
    if arguments.stats and rows:
        try:
            with undisturbed():
                write_whole(arguments.stats, outputs.table_of_runs(arguments.stats, rows))
            job.print(f"statistics  {arguments.stats}")
        except OSError as error:
            print(f"pymoo-gpuaco: --stats {arguments.stats}: {error}", file=sys.stderr)
            status = 2
    if arguments.json:
        found = [{**row, **_tour_of(run)} for row, run in zip(rows, job.runs, strict=True)]
        print(json.dumps({"version": __version__, "algorithm": arguments.algorithm, "runs": found}))
    return status


def _tour_of(run: Run) -> dict[str, Any]:
    """Return the cities in visiting order, and their names and ids where they have some."""
    order = run.tour
    told: dict[str, Any] = {"tour": order.tolist()}
    if run.problem.names is not None:
        told["names"] = [str(name) for name in run.problem.names[order]]
    if run.problem.ids is not None:
        told["ids"] = run.problem.ids[order].tolist()
    return told
