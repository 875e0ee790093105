"""The command line: ``pymoo-gpuaco solve | info | bench``."""

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
from pymoo_gpuaco.backends import BACKENDS, BackendUnavailable, cuda_devices
from pymoo_gpuaco.backends.cpu.threads import thread_count
from pymoo_gpuaco.bench import measure
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
    # the time is the budget here
    own = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
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


_BENCH_INSTANCES = ("pcb442", "att532", "gr666")
_BENCH_HEADER = (
    f"{'instance':<10}  {'cities':>6}  {'backend':<7}  {'construction/s':>14}  {'with search/s':>13}"
)


def bench(arguments: argparse.Namespace) -> int:
    """Measure how fast tours are built and improved here, and how good the best is after some seconds."""
    instances = arguments.instance or _BENCH_INSTANCES
    problems = {
        name: load_tsp(name) for name in instances
    }  # a wrong name ends it before anything is measured
    print(f"GPUMMAS, seed 1, {arguments.seconds:g} s an instance; CPU threads: {thread_count()}")
    for number, device in enumerate(cuda_devices()):
        print(f"CUDA device {number}: {device}")
    print(f"{_BENCH_HEADER}  {'best':>12}  {'gap %':>8}  {'after s':>7}", flush=True)
    for name, problem in problems.items():
        m = measure(problem, arguments.backend, arguments.device, arguments.seconds)
        gap = "-" if m.gap is None else f"{m.gap:.3f}"
        print(
            f"{problem.label or name:<10}  {problem.n_cities:6d}  {m.backend:<7}  {m.construction:14.0f}  "
            f"{m.search:13.0f}  {m.length:12.10g}  {gap:>8}  {m.seconds:7.1f}",
            flush=True,
        )
    print("construction/s and with search/s: tours a second without and with local search")
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
    _add_backend(run)
    run.add_argument("--seed", type=_natural, default=1, help="same seed, same tours (default 1)")
    run.add_argument("--seconds", type=_seconds, default=30.0, help="time to search (default 30)")
    run.add_argument(
        "--picture", default="tour.png", help="where the tour is drawn; '' for none (default tour.png)"
    )
    run.add_argument("--tour", default="", help="write the tour to this file in TSPLIB's format")
    run.set_defaults(do=solve)
    short = commands.add_parser(
        "bench", help="how fast this machine is: tours a second, gap after some seconds"
    )
    short.add_argument(
        "instance", nargs="*", help=f"names or files as for solve (default {' '.join(_BENCH_INSTANCES)})"
    )
    _add_backend(short)
    short.add_argument("--seconds", type=_seconds, default=5.0, help="search of each instance (default 5)")
    short.set_defaults(do=bench)
    commands.add_parser("info", help="versions, devices and what is missing").set_defaults(do=info)
    return main_parser


def _add_backend(command: argparse.ArgumentParser) -> None:
    command.add_argument("--backend", choices=BACKENDS, default="auto")
    command.add_argument("--device", type=_natural, default=0, help="CUDA device (default 0)")


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
