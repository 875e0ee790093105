"""The command line: ``pymoo-gpuaco solve | info``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pymoo.core.callback import Callback
from pymoo.core.termination import TerminateIfAny
from pymoo.termination.max_time import TimeBasedTermination

from pymoo_gpuaco._version import __version__
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS
from pymoo_gpuaco.backends import BACKENDS, BackendUnavailable
from pymoo_gpuaco.problems import load_tsp
from pymoo_gpuaco.termination import ColonyTermination
from pymoo_gpuaco.versions import show_versions
from pymoo_gpuaco.visualization import plot_tour


class Progress(Callback):
    """A line of progress every so many seconds, and at every target of note: the first and the last generation."""

    HEADER = f"{'time s':>7}  {'generation':>10}  {'tours':>9}  {'best':>12}  {'gap %':>8}  {'tours/s':>8}"

    def __init__(self, every: float = 2.0) -> None:
        super().__init__()
        self.every = every
        self._last = -float("inf")
        self._printed = 0

    def line(self, algorithm: Any) -> str:
        """Read the algorithm's state."""
        elapsed = max(time.time() - algorithm.start_time, 1e-9)
        best = float(algorithm.opt.get("F").min())
        known = algorithm.problem.best_known
        gap = f"{100.0 * (best / known - 1.0):8.3f}" if known else f"{'-':>8}"
        tours = algorithm.evaluator.n_eval
        return (
            f"{elapsed:7.1f}  {self._printed:10d}  {tours:9d}  {best:12.10g}  {gap}  {tours / elapsed:8.0f}"
        )

    def _update(self, algorithm: Any) -> None:
        self._printed = int(algorithm.n_iter)
        now = time.time()
        if now - self._last >= self.every:
            self._last = now
            print(self.line(algorithm), flush=True)


def solve(arguments: argparse.Namespace) -> int:
    """Solve one instance, with progress, a summary and a picture."""
    problem = load_tsp(arguments.instance)
    algorithm = ALL_ALGORITHMS[arguments.algorithm](backend=arguments.backend, device=arguments.device)
    own = ColonyTermination()
    own.stagnation = own.n_max_gen = sys.maxsize  # the time is the budget here
    termination = TerminateIfAny(own, TimeBasedTermination(arguments.seconds))
    progress = Progress()
    known = f", best known {problem.best_known:.10g}" if problem.best_known else ""
    print(f"{problem.label or arguments.instance}: {problem.n_cities} cities{known}")
    print(
        f"{arguments.algorithm}, seed {arguments.seed}, at most {arguments.seconds:g} s; preparing ..",
        flush=True,
    )
    before = time.time()
    algorithm.setup(problem, termination=termination, seed=arguments.seed, callback=progress)
    print(
        f"ready after {time.time() - before:.1f} s (compiled code is kept for the next run)\n{Progress.HEADER}"
    )
    stopped = "time"
    try:
        result = algorithm.run()
        stopped = algorithm.termination.criteria[0].reason or f"time: {arguments.seconds:g} s"
    except KeyboardInterrupt:
        stopped = "interrupted from the keyboard"
        if algorithm.opt is None:
            print("\ninterrupted before the first tour was complete")
            return 130
        result = algorithm.result()
    print(progress.line(algorithm))
    length = float(result.F[0])
    print(f"\nbest tour   {length:.10g}")
    if problem.best_known:
        print(
            f"best known  {problem.best_known:.10g}  (gap {100.0 * (length / problem.best_known - 1.0):.3f} %)"
        )
    print(f"stopped by  {stopped}")
    if arguments.tour:
        _write_tour(Path(arguments.tour), problem, result.X, length)
        print(f"tour        {arguments.tour}")
    if arguments.picture and problem.positions is not None:
        title = f"{problem.label or ''} {length:.10g}".strip()
        plot_tour(problem, result.X, title=title).savefig(arguments.picture, dpi=150)
        print(f"picture     {arguments.picture}")
    return 0


def _write_tour(path: Path, problem: Any, tour: np.ndarray, length: float) -> None:
    """Write TSPLIB's tour format, cities counted from 1."""
    lines = [f"NAME : {path.stem}", f"COMMENT : length {length:.10g}", "TYPE : TOUR"]
    lines += [
        f"DIMENSION : {problem.n_cities}",
        "TOUR_SECTION",
        *(str(city + 1) for city in tour),
        "-1",
        "EOF",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="ascii", errors="replace")


def info(arguments: argparse.Namespace) -> int:
    """Print what is installed and what the CUDA backend would need."""
    show_versions()
    return 0


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, got {text}")
    return value


def _natural(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text}")
    return value


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    main_parser = argparse.ArgumentParser(
        prog="pymoo-gpuaco", description="Ant colony optimisation for the travelling salesman problem."
    )
    main_parser.add_argument("--version", action="version", version=f"pymoo-gpuaco {__version__}")
    commands = main_parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("solve", help="solve a TSPLIB instance and draw the tour")
    run.add_argument(
        "instance", help="a shipped name (pcb442, att532, gr666, gr17), a TSPLIB name, or a file"
    )
    run.add_argument("--algorithm", choices=sorted(ALL_ALGORITHMS), default="GPUMMAS")
    run.add_argument("--backend", choices=BACKENDS, default="auto")
    run.add_argument("--device", type=_natural, default=0, help="CUDA device (default 0)")
    run.add_argument("--seed", type=_natural, default=1, help="same seed, same tours (default 1)")
    run.add_argument("--seconds", type=_seconds, default=30.0, help="time to search (default 30)")
    run.add_argument(
        "--picture", default="tour.png", help="where the tour is drawn; '' for none (default tour.png)"
    )
    run.add_argument("--tour", default="", help="write the tour to this file in TSPLIB's format")
    run.set_defaults(do=solve)
    commands.add_parser("info", help="versions, devices and what is missing").set_defaults(do=info)
    return main_parser


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; a mistake of the user ends with one line and status 2."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.do(arguments))
    except BrokenPipeError:  # the reader of a pipe has gone, as in "| head"
        sys.stderr.close()
        return 1
    except (ValueError, TypeError, OSError, MemoryError, BackendUnavailable) as error:
        print(f"pymoo-gpuaco: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
