"""Call of a command, and the commands ``bench`` and ``info``."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from pymoo.core.termination import TerminateIfAny
from pymoo.termination.max_time import TimeBasedTermination

from pymoo_gpuaco.algorithms import GPUMMAS, GPUMemetic
from pymoo_gpuaco.algorithms.display import gap_percent
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.cli.job import complain
from pymoo_gpuaco.cli.options import BENCH_INSTANCES, parser
from pymoo_gpuaco.cli.solve import Terminated, solve
from pymoo_gpuaco.problems import TSP, load_tsp
from pymoo_gpuaco.runtime.clock import CLOCK
from pymoo_gpuaco.runtime.stop import DEFERRED
from pymoo_gpuaco.runtime.threads import thread_count
from pymoo_gpuaco.versions import show_versions


def run(argv: Sequence[str]) -> int:
    """Run one command.

    Returns 0; 1 if a best tour violates constraints; 2 after an error of the user or a failed device, reported in one
    line; 130 or 143 after an interrupt.
    """
    try:
        command_line = parser()
        if "_ARGCOMPLETE" in os.environ:  # the shell asks for words to complete
            import argcomplete

            argcomplete.autocomplete(command_line)
        arguments = command_line.parse_args(argv)
        with _sigterm_as_interrupt(), _configured_messages(arguments):
            if arguments.command is None:
                command_line.print_help()
                return 0
            return int(_COMMANDS[arguments.command](arguments) or 0)
    except BrokenPipeError:  # the reader of a pipe has ended, as in "| head"
        # avoids an error in the flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as stop:
        print("\npymoo-gpuaco: interrupted", file=sys.stderr)
        return 143 if isinstance(stop, Terminated) else 130
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}" if error.filename and error.strerror else error)
        return 2
    except (ValueError, TypeError, ImportError, MemoryError, BackendUnavailable, DeviceFailed) as error:
        complain(error)
        return 2


def _terminate(number: int, frame: Any) -> NoReturn:
    raise Terminated


DEFERRED.append(_terminate)


@contextmanager
def _sigterm_as_interrupt() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM in a with block; outside the main thread do nothing."""
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if in_main else None
    try:
        yield
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _configured_messages(arguments: argparse.Namespace) -> Iterator[None]:
    """Print each warning in one line, with --quiet none; with --quiet or --json log only errors."""

    def show(message: Warning | str, *place: Any, **more: Any) -> None:
        complain(f"warning: {message}")

    log = logging.getLogger("pymoo_gpuaco")
    level = log.level
    quiet, json = (getattr(arguments, name, False) for name in ("quiet", "json"))
    with warnings.catch_warnings():
        warnings.showwarning = show
        if quiet:
            warnings.simplefilter("ignore")
        if quiet or json:
            log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


def bench(arguments: argparse.Namespace) -> None:
    """Measure construction and trials per second on this machine, and the best length after some seconds.

    Construction by GPUMMAS takes a fifth of the time; set-up and compilation are not counted. A run ends early only at
    the best known length.
    """
    # load all first, so that a wrong name raises an error before any measurement
    problems = {name: load_tsp(name) for name in arguments.instance or BENCH_INSTANCES}
    print(f"GPUMemetic, seed 1, {arguments.time:g} s an instance; CPU threads: {thread_count()}")
    for number, device in enumerate(cuda_devices()):
        print(f"CUDA device {number}: {device}")
    header = f"{'instance':<10}  {'cities':>6}  {'backend':<7}  {'construction/s':>14}  {'trials/s':>9}"
    print(f"{header}  {'best':>12}  {'gap %':>8}  {'after s':>7}", flush=True)
    place = {"backend": arguments.backend, "device": arguments.device}
    for name, problem in problems.items():
        construction = _construction_speed(problem, place, 0.2 * arguments.time)
        own = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
        termination = TerminateIfAny(own, TimeBasedTermination(arguments.time))
        algorithm = GPUMemetic(**place).setup(problem, termination=termination, seed=1)
        kind, before = algorithm.engine.kind, CLOCK.monotonic()
        length = float(algorithm.run().F[0])
        spent = CLOCK.monotonic() - before
        gap = f"{gap_percent(length, problem.best_known):.3f}" if problem.best_known else "-"
        print(
            f"{problem.label or name:<10}  {problem.n_cities:6d}  {kind:<7}  {construction:14.0f}  "
            f"{algorithm.engine.n_trials / spent:9.0f}  {length:12.10g}  {gap:>8}  {spent:7.1f}",
            flush=True,
        )
    print(
        "construction/s: tours built by the ants of GPUMMAS; trials/s: kicks of GPUMemetic, each with its repair"
    )


def _construction_speed(problem: TSP, place: dict[str, Any], seconds: float) -> float:
    """Return tours per second of ants with candidate lists, on equal trails, without local search."""
    engine = GPUMMAS(local_search=False, **place).setup(problem, seed=1).engine
    engine.reset_trails(1.0)
    engine.construct(0)  # warm-up
    rounds, begin = 0, CLOCK.monotonic()
    while rounds == 0 or CLOCK.monotonic() - begin < seconds:
        rounds += 1
        engine.construct(rounds)
    return float(rounds * engine.n_ants / (CLOCK.monotonic() - begin))


_COMMANDS = {"solve": solve, "bench": bench, "info": lambda _: show_versions()}
