"""What ``solve`` was asked for, checked before anything is computed."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checkpoint
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.cli import cities, options, outputs
from pymoo_gpuaco.cli.outputs import STDOUT, Output
from pymoo_gpuaco.islands import Islands
from pymoo_gpuaco.problems import TSP
from pymoo_gpuaco.problems.table import READING
from pymoo_gpuaco.problems.writing import check_route

DEFAULT = "GPUMemetic"


@dataclass
class Run:
    """What one run has found."""

    instance: str
    problem: TSP
    seed: int
    backend: str
    tour: NDArray[np.int64]
    length: float
    generations: int
    tours: int
    setup: float  # seconds
    seconds: float
    stopped_by: str
    violations: int = 0  # demands that the tour breaks
    bound: float | None = None  # a length that no tour falls below, where it is proven

    @property
    def gap(self) -> float | None:
        """Percent above the best known length; None where none is known or the tour breaks demands."""
        known = self.problem.best_known
        return 100.0 * (self.length / known - 1.0) if known and not self.violations else None

    @property
    def rank(self) -> tuple[int, float]:
        """What the best run has least of."""
        return self.violations, self.length

    def row(self) -> dict[str, Any]:
        """A line of the table of runs."""
        return {
            "instance": self.instance,
            "cities": self.problem.n_cities,
            "seed": self.seed,
            "backend": self.backend,
            "length": self.length,
            "violations": self.violations,
            "best_known": self.problem.best_known,
            "lower_bound": self.bound,
            "gap_percent": None if self.gap is None else round(self.gap, 6),
            "generations": self.generations,
            "tours": self.tours,
            "setup_seconds": round(self.setup, 3),
            "seconds": round(self.seconds, 3),
            "stopped_by": self.stopped_by,
        }


@dataclass
class Job:
    """All that was asked for, checked."""

    arguments: argparse.Namespace
    problems: dict[str, Any]  # TSP; or one MultiObjectiveTSP alone
    parameters: dict[str, Any]
    resumed: Any  # the algorithm of a saved run, or None
    tour: Output | None
    csv: Output | None  # of a front
    picture: Output | None
    stream: TextIO | None  # where progress and summary are printed
    runs: list[Run] = field(default_factory=list)
    to_save: Any = None  # the algorithm of the one run whose state is to be kept
    interrupted: KeyboardInterrupt | None = None
    failed: bool = False  # whether a device failed in the middle of a run

    @property
    def has_several_objectives(self) -> bool:
        """Whether there are several objectives."""
        return any(problem.n_obj > 1 for problem in self.problems.values())

    def print(self, text: str = "") -> None:
        """Print a line of progress or summary."""
        if self.stream is not None:
            print(text, file=self.stream, flush=True)


def prepare(arguments: argparse.Namespace) -> Job:
    """Load and check all that the search and the files after it need. Raises ValueError, TypeError or OSError."""
    resumed = _resumed(arguments)
    if resumed is None and not arguments.instance:
        raise ValueError("name an instance to solve, such as pcb442, random:1000 or a file")
    if arguments.save and len(arguments.instance) * arguments.seeds > 1:
        raise ValueError("--save keeps the state of one run: give one instance and one seed")
    if resumed is not None:
        colony = resumed.algorithm if isinstance(resumed, Islands) else resumed
        arguments.algorithm, arguments.seed = type(colony).__name__, resumed.seed
        problems = {resumed.problem.label or "instance": resumed.problem}
    else:
        problems = cities.load_all(arguments)
    several = any(problem.n_obj > 1 for problem in problems.values())
    if several:
        _check_front(arguments, problems)
    elif arguments.csv:
        raise ValueError("--csv is for the front of several objectives: a tour is written by --tour FILE.csv")
    else:
        arguments.algorithm = arguments.algorithm or DEFAULT
    silent = arguments.json or arguments.quiet
    picture = arguments.picture
    if picture is None:
        picture = ("front.png" if several else "tour.png") if len(problems) == 1 and not silent else ""
    stream = sys.stderr if STDOUT in (arguments.tour, arguments.csv) else sys.stdout
    for option, file in (("--tour", arguments.tour), ("--csv", arguments.csv)):
        if arguments.json and file == STDOUT:
            raise ValueError(f"--json holds the tours already: {option} - cannot go to the same place")
    job = Job(
        arguments=arguments,
        problems=problems,
        parameters=_parameters(arguments, problems),
        resumed=resumed,
        tour=Output("--tour", arguments.tour) if arguments.tour else None,
        csv=Output("--csv", arguments.csv) if arguments.csv else None,
        picture=Output("--picture", picture) if picture else None,
        stream=None if silent else stream,
    )
    _check_outputs(job)
    return job


def _check_front(arguments: argparse.Namespace, problems: dict[str, Any]) -> None:
    """Refuse what makes no sense for several objectives, and choose their algorithm."""
    if len(problems) > 1:
        raise ValueError("several objectives are searched one instance at a time: give one")
    for option, given, instead in (
        ("--target", arguments.target is not None, "a front has no one length; --time ends the search"),
        ("--tour", arguments.tour, "a front is many tours; --csv FILE writes all of them"),
        ("--stats", arguments.stats, "it tells of lengths; --json tells of the front"),
        ("--seeds", arguments.seeds != 1, "it compares lengths; give one --seed"),
        ("--algorithm", arguments.algorithm is not None and not arguments.resume, "fronts are GPU2PPLS's"),
    ):
        if given:
            raise ValueError(f"{option} is not for several objectives: {instead}")
    arguments.algorithm = GPU2PPLS.__name__


def in_words(job: Job) -> str:
    """What searches."""
    arguments = job.arguments
    of_islands = arguments.islands or arguments.scheduler or isinstance(job.resumed, Islands)
    return f"islands of {arguments.algorithm}" if of_islands else str(arguments.algorithm)


def _resumed(arguments: argparse.Namespace) -> Any:
    if not arguments.resume:
        if arguments.allow_pickle:
            raise ValueError("--allow-pickle is for --resume")
        return None
    for option, given in (
        ("an instance", arguments.instance),
        ("--set", arguments.set),
        ("--parameters", arguments.parameters),
        ("--from-tour", arguments.from_tour),
        *((f"--{name}", getattr(arguments, name) is not None) for name in READING),
        ("--open", arguments.open),
        ("--fix", arguments.fix),
        ("--forbid", arguments.forbid),
        ("--start", arguments.start is not None),
        ("--end", arguments.end is not None),
        ("--seeds", arguments.seeds != 1),
        ("--islands", arguments.islands),
    ):
        if given:
            raise ValueError(f"--resume goes on with the run as it was: {option} cannot be given with it")
    try:
        algorithm = checkpoint.load(arguments.resume, allow_pickle=arguments.allow_pickle)
    except ValueError as error:
        raise ValueError(f"--resume {error}") from error
    if not isinstance(algorithm, TourAlgorithm) or algorithm.opt is None:
        raise ValueError(f"--resume {arguments.resume}: it holds no run that has begun")
    if arguments.scheduler:
        if not isinstance(algorithm, Islands):
            raise ValueError(
                f"--scheduler needs a run of several islands, and {arguments.resume} has one colony"
            )
        algorithm.client = arguments.scheduler
    if arguments.backend != "auto" and isinstance(algorithm, Islands):
        raise ValueError("--resume goes on with islands as they were: --backend cannot be given with it")
    return algorithm


def _parameters(arguments: argparse.Namespace, problems: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the algorithm, which is made once to check them."""
    told = options.parameters(arguments.parameters, arguments.set)
    if arguments.from_tour:
        if len(problems) > 1:
            raise ValueError("--from-tour is a tour of one instance: give one instance")
        (problem,) = problems.values()
        told["sampling"] = cities.first_tour(arguments.from_tour, problem)
    told |= {"backend": arguments.backend, "device": arguments.device}
    if not arguments.resume:
        _ = make_algorithm(arguments, told)
    return told


def make_algorithm(arguments: argparse.Namespace, parameters: dict[str, Any]) -> TourAlgorithm:
    """Return a new algorithm, or islands of it where several are asked for."""
    of_fronts = arguments.algorithm == GPU2PPLS.__name__
    make = GPU2PPLS if of_fronts else ALL_ALGORITHMS[arguments.algorithm]
    algorithm: Any = make(**parameters)
    if arguments.islands or arguments.scheduler:
        return Islands(algorithm, arguments.islands, client=arguments.scheduler or None)
    return algorithm


def _check_outputs(job: Job) -> None:
    files = [output for output in (job.tour, job.csv, job.picture) if output is not None]
    outputs.check(files, list(job.problems), job.picture)
    written = [
        (output.option, output.of(name))
        for output in files
        if output.pattern != STDOUT
        for name in job.problems
    ]
    arguments = job.arguments
    if arguments.stats:
        outputs.check_file("--stats", arguments.stats, (".csv", ".json"))
        written.append(("--stats", Path(arguments.stats)))
    if arguments.save:
        outputs.check_file("--save", arguments.save)
        written.append(("--save", Path(arguments.save)))
    outputs.check_apart(_read(arguments), written)
    if job.tour is not None:
        for problem in job.problems.values():
            try:
                check_route(problem, Path(job.tour.pattern).suffix)
            except ValueError as error:
                raise ValueError(f"--tour {job.tour.pattern}: {error}") from error


def _read(arguments: argparse.Namespace) -> list[tuple[str, Path | int]]:
    """What is read, and the files. A run may be saved where it was resumed from: it replaces what it goes on with."""
    read = cities.files_of(arguments)
    named = {"--from-tour": arguments.from_tour, "--parameters": arguments.parameters}
    if not (
        arguments.save and outputs.identity(Path(arguments.resume)) == outputs.identity(Path(arguments.save))
    ):
        named["--resume"] = arguments.resume
    return read + [(f"{option} {file}", Path(file)) for option, file in named.items() if file]
