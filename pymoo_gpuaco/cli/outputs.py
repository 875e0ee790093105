"""Output of ``solve``: progress, summaries, tours, fronts, pictures, statistics and states."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from alive_progress import alive_bar
from numpy.typing import NDArray
from pymoo.core.callback import Callback
from pymoo.util.display.column import Column

from pymoo_gpuaco import checkpoint
from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms.display import gap_percent, measured_at_once, speed
from pymoo_gpuaco.algorithms.termination import progress
from pymoo_gpuaco.candidates.bound import is_proven
from pymoo_gpuaco.cli.job import SEED_PLACE, STANDARD, Job, Run, complain, file_of
from pymoo_gpuaco.pareto.front_2d import hull_of
from pymoo_gpuaco.problems import QAP, Front
from pymoo_gpuaco.problems.constraints import violations_in_words
from pymoo_gpuaco.problems.qaplib import placement_text
from pymoo_gpuaco.problems.writing import csv_text, ids_in_files, route_text, tour_in_json, write_whole
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.solving import table_of_runs

_SECONDS = 2.0  # between two lines of progress


class Progress(Callback):
    """Progress: the columns of ``verbose=True`` and the time, one line every few seconds from the first generation on.

    On a terminal, a bar with the remaining time is below the lines from the third second on.

    Parameters
    ----------
    to : output stream; None prints nothing.
    titled : True prints the titles of the columns first.
    """

    def __init__(self, to: TextIO | None, titled: bool = True) -> None:
        super().__init__()
        self.to, self.titled = to, titled
        self.generation = 0  # last complete generation
        self.tours_before = 0  # tours of a resumed run before it was saved
        self.saver: checkpoint.Saver | None = None  # saves the run in the meantime
        self._output: Any = None
        self._time = Column("time s", width=7)
        self._last = -float("inf")
        self._printed = 0
        self._bar: Any = None
        self._open = ExitStack()  # closes the bar

    def _update(self, algorithm: Any) -> None:
        self.generation = int(algorithm.n_iter)
        if self.saver is not None:
            self.saver(algorithm)
        now = CLOCK.wall()
        if self.to is not None and now - self._last >= _SECONDS:
            self._last = now
            self.print(algorithm)
        elapsed = now - algorithm.start_time
        share = progress(algorithm.termination, algorithm.start_time)
        if self.to is not None and self.to.isatty() and elapsed >= _SECONDS and share > 0.0:
            if self._bar is None:
                looks: dict[str, Any] = {
                    "monitor": "{percent:.0%}",
                    "spinner": None,
                    "stats": False,
                    "elapsed": False,
                }
                bar = alive_bar(
                    manual=True, file=self.to, enrich_print=False, receipt=False, length=30, **looks
                )
                self._bar = self._open.enter_context(bar)
            self._bar(share)
            self._bar.text(f"{elapsed * (1.0 - share) / share:.0f} s left")

    def close(self) -> None:
        """Remove the bar."""
        self._open.close()
        self._bar = None

    def print(self, algorithm: Any) -> None:
        """Print the line of the last complete generation, unless it has been printed."""
        if self.to is None or self._printed == self.generation:
            return
        self._printed = self.generation
        first = self._output is None
        if first:
            self._output = type(algorithm.output)()
            self._output.columns.insert(0, self._time)
        output = self._output
        output(algorithm)
        elapsed = max(CLOCK.wall() - algorithm.start_time, 1e-9)
        self._time.set(f"{elapsed:.1f}")
        output.n_gen.set(self.generation)
        if self.tours_before:
            rate = speed(algorithm, algorithm.evaluator.n_eval - self.tours_before, elapsed)[1]
            output.speed.set(f"{rate:.0f}")
        titles = f"{output.header()}\n" if first and self.titled else ""
        print(f"{titles}{output.text()}", file=self.to, flush=True)


def write_best_tour(job: Job, name: str, runs: list[Run]) -> int:
    """Write the best tour of an instance, its summary, state and picture; return the exit status.

    The status is 1 if the tour violates constraints.
    """
    if not runs:
        return 0
    best = min(runs, key=lambda run: (run.row["violations"], run.row["length"]))
    done = _deliver(
        job,
        name,
        (runs, best),
        ("tour", job.arguments.tour),
        lambda run, suffix: route_text(run.problem, run.tour, suffix, name),
        lambda: _print_summary(job, runs, best),
        lambda run: _drawn(job, run),
    )
    broken = best.row["violations"]
    if broken:
        complain(f"{name}: {violations_in_words(broken)}")
    return 2 if not done else 1 if broken else 0


def write_best_placement(job: Job, name: str, runs: list[Run]) -> int:
    """Write the best placement of a quadratic assignment and the table of its runs; return the exit status."""
    if not runs:
        return 0
    best = min(runs, key=lambda run: run.row["length"])
    done = _deliver(
        job,
        name,
        (runs, best),
        ("placement", job.arguments.tour),
        lambda run, _: placement_text(run.problem, run.tour),
        lambda: job.print("\n".join(["", *table_of_runs([run.row for run in runs])])),
        lambda _: None,
    )
    return 0 if done else 2


def write_front(job: Job, name: str, runs: list[Run]) -> int:
    """Write the front of the only run, its summary, state and picture; return the exit status."""
    if not runs:
        return 0
    front, about = runs[0].tour, runs[0].row
    volume = front.hypervolume() if measured_at_once(front.lengths) else None
    supported = len(hull_of(front.lengths)) if len(front.names) == 2 else None
    point = front.reference_point().tolist()
    lines = [f"\nfront       {front.size} tours"]
    for objective, lengths in zip(front.names, front.lengths.T, strict=True):
        lines.append(f"            {objective} {lengths.min():.10g} to {lengths.max():.10g}")
    if volume is not None:
        lines.append(f"hypervolume {volume:.10g} below {', '.join(f'{value:.10g}' for value in point)}")
    if supported is not None:
        lines.append(f"supported   {supported} tours, each minimises a weighted sum")
    lines.append(f"stopped by  {about['stopped_by']}")
    numbers = ids_in_files(front.problem)
    done = _deliver(
        job,
        name,
        (runs, runs[0]),
        ("tours", job.arguments.csv),
        lambda _, suffix: _csv_of_front(front, numbers),
        lambda: job.print("\n".join(lines)),
        lambda _: _drawn_front(job, front),
    )
    if job.arguments.json:
        found = {
            "version": __version__,
            "algorithm": job.algorithm,
            "instance": name,
            "cities": front.tours.shape[1],
            "objectives": list(front.names),
            "size": front.size,
            "supported": supported,
            "hypervolume": volume,
            "reference_point": point,
            **about,
        }
        found["front"] = [
            {"lengths": lengths, "tour": tour}
            for lengths, tour in zip(front.lengths.tolist(), front.tours.tolist(), strict=True)
        ]
        print(json.dumps(found))
    return 0 if done else 2


def _deliver(
    job: Job,
    name: str,
    of: tuple[list[Run], Run],
    output: tuple[str, str | None],
    text_of: Callable[[Run, str], str],
    print_summary: Callable[[], None],
    draw: Callable[[Run], Any],
) -> bool:
    """Write results, print their summary, save states and draw; return True if all succeeded.

    After any failure, the best result is in its file or on the screen.

    name : name of the instance.
    of : its runs, and the best one, which is written and drawn; with the seed in a file name, all are.
    output : label of the results, and the pattern of their files, or None.
    text_of : returns the contents of a file with a suffix; "" for the screen.
    draw : returns a figure, or None.
    """
    what, pattern = output
    runs, best = of
    delivered = done = False
    try:
        if pattern == STANDARD:
            print(text_of(best, ""), end="", flush=True)
        files = _files(pattern, name, runs, best) if pattern != STANDARD else {}
        for path, run in files.items():
            write_whole(path, text_of(run, path.suffix).encode("utf-8"))
        delivered = bool(pattern)
        print_summary()
        for path in files:
            job.print(f"{what:<11} {path}")
        saved = _save_states(job, name)
        for path, run in _files(job.arguments.picture, name, runs, best).items():
            if (figure := draw(run)) is not None:
                contents = io.BytesIO()
                figure.savefig(contents, dpi=150, format=path.suffix[1:].lower())
                write_whole(path, contents.getvalue())
                job.print(f"picture     {path}")
        done = saved
    except (OSError, ValueError, MemoryError) as error:
        complain(error)
    finally:
        if not done and not delivered:
            print(text_of(best, ""), end="", flush=True)
    return done


def _files(pattern: str | None, name: str, runs: list[Run], best: Run) -> dict[Path, Run]:
    """Return the files of a pattern and their runs: all if it names the seed, otherwise the best."""
    chosen = runs if SEED_PLACE in (pattern or "") else [best]
    return {file_of(pattern, name, run.row["seed"]): run for run in chosen} if pattern else {}


def _save_states(job: Job, name: str) -> bool:
    """Write the states of the runs; return True if all are in their files."""
    done = True
    for seed, algorithm in job.to_save.items():
        path = file_of(job.arguments.save, name, seed)
        algorithm.callback = Callback()  # the progress output of this command is not part of the run
        try:
            checkpoint.save(algorithm, path)
            job.print(f"state       {path}")
        except (OSError, MemoryError) as error:
            message = error.strerror if isinstance(error, OSError) and error.strerror else error
            complain(f"--save {path}: {message}")
            done = False
    job.to_save.clear()
    return done


def _drawn_front(job: Job, front: Front) -> Any:
    from pymoo_gpuaco.visualization import plot_front

    return plot_front(front, title=f"{job.algorithm}: {front.size} tours")


def _drawn(job: Job, run: Run) -> Any:
    """Return a picture of a tour, or None without positions of the cities."""
    if run.problem.positions is None:
        job.print("picture     none: the instance has no positions to draw")
        return None
    from pymoo_gpuaco.visualization import plot_tour

    title = f"{run.problem.label or ''} {run.row['length']:.10g}".strip()
    return plot_tour(run.problem, run.tour, title=title)


def _print_summary(job: Job, runs: list[Run], best: Run) -> None:
    known, found = best.problem.best_known, best.row
    if len(runs) > 1:
        job.print("\n".join(["", *table_of_runs([run.row for run in runs])]))
    job.print(f"\nbest tour   {found['length']:.10g}")
    if found["gap_percent"] is not None:
        job.print(f"best known  {known:.10g}  (gap {found['gap_percent']:.3f} %)")
    elif found["lower_bound"] and not found["violations"]:
        bound = found["lower_bound"]
        proven = is_proven(best.problem.instance, best.tour, bound)
        gap = f"gap at most {gap_percent(found['length'], bound):.3f} %"
        job.print(f"lower bound {bound:.10g}  ({'no tour is shorter' if proven else gap})")
    if len(runs) == 1:
        job.print(f"stopped by  {found['stopped_by']}")


def write_statistics(job: Job) -> int:
    """Write the table of runs for --stats and print it for --json; return the exit status."""
    arguments, rows, status = job.arguments, [run.row for run in job.runs], 0
    if arguments.stats and rows:
        text = csv_text([rows[0], *(row.values() for row in rows)])
        try:
            if arguments.stats == STANDARD:
                print(text, end="", flush=True)
            else:
                write_whole(arguments.stats, text.encode())
                job.print(f"statistics  {arguments.stats}")
        except OSError as error:
            complain(f"--stats {arguments.stats}: {error}")
            status = 2
    if arguments.json:
        found = [run.row | _in_json(run) for run in job.runs]
        about = {"version": __version__, "algorithm": job.algorithm}
        print(json.dumps({**about, "runs": found}, default=str))
    return status


def _in_json(run: Run) -> dict[str, Any]:
    """Return the tour of a run, or its placement, with locations from 1 on as in QAPLIB."""
    if isinstance(run.problem, QAP):
        return {"placement": (run.tour.placement + 1).tolist()}
    return tour_in_json(run.problem, run.tour)


def _csv_of_front(front: Front, numbers: NDArray[Any]) -> str:
    """Return one line per tour: its lengths, and the numbers (n,) of its cities."""
    rows: list[list[Any]] = [[*front.names, *(f"stop {stop + 1}" for stop in range(front.tours.shape[1]))]]
    for lengths, tour in zip(front.lengths, front.tours, strict=True):
        rows.append([*(f"{length:.17g}" for length in lengths), *numbers[tour].tolist()])
    return csv_text(rows)
