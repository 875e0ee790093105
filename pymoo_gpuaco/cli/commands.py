"""Call of a command, and the commands ``bench``, ``compile`` and ``info``."""

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

import numpy as np
from pymoo.core.termination import TerminateIfAny
from pymoo.optimize import minimize
from pymoo.termination.max_time import TimeBasedTermination

from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS, GPUMMAS, GPUMemetic
from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.backends.errors import BackendUnavailable, DeviceFailed
from pymoo_gpuaco.candidates.bound import compile_proof
from pymoo_gpuaco.cli.job import complain
from pymoo_gpuaco.cli.options import BENCH_INSTANCES, parser
from pymoo_gpuaco.cli.solve import Terminated, solve
from pymoo_gpuaco.memetic.parameters import WHOLE_UP_TO
from pymoo_gpuaco.memetic.penalties import MOST_CITIES
from pymoo_gpuaco.memetic.warm_up import warm_up_host
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, load_tsp
from pymoo_gpuaco.runtime import compiling
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
        gap = f"{100.0 * (length / problem.best_known - 1.0):.3f}" if problem.best_known else "-"
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


def compile_all(arguments: argparse.Namespace) -> None:
    """Run the default algorithm and the named ones briefly, so that their code is in the cache."""
    began, before = CLOCK.monotonic(), compiling.so_far()
    device = {"backend": arguments.backend, "device": arguments.device}
    with compiling.announced(print):
        # whole tours, windows of one tour, windows without penalties, a matrix
        for n in (1000, WHOLE_UP_TO + 1000, MOST_CITIES + 1000):
            _compile(GPUMemetic(**device), _square(n))
        _compile(GPUMemetic(**device), TSP(matrix=_square(60).D))
        warm_up_host(penalised=True, evolves=True)  # code of runs on machines with more cores
        for name in arguments.algorithm:
            if name in ALL_ALGORITHMS:
                _compile(ALL_ALGORITHMS[name](**device), _square(200))
                continue
            for k in (2, 3):  # enough generations for all phases of the search
                problem = MultiObjectiveTSP([_square(10, seed) for seed in range(k)])
                minimize(problem, GPU2PPLS(n_weights=2 * k, **device), ("n_gen", 12), seed=1)
    cached = "" if compiling.so_far() > before else "everything was compiled already; "
    print(f"{cached}{CLOCK.monotonic() - began:.1f} s in total")


def _compile(algorithm: Any, problem: TSP) -> None:
    compile_proof(minimize(problem, algorithm, ("n_gen", 2), seed=1).algorithm.instance)


def _square(n: int, seed: int = 0) -> TSP:
    return TSP(np.random.default_rng(seed).random((n, 2)))


_COMMANDS = {"solve": solve, "bench": bench, "compile": compile_all, "info": lambda _: show_versions()}
