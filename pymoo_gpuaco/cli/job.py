"""Job of ``solve``: instances, algorithm and files, validated before any computation."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from pymoo_gpuaco import checkpoint
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS
from pymoo_gpuaco.algorithms.base import TourAlgorithm
from pymoo_gpuaco.backends import devices_for
from pymoo_gpuaco.cli.options import COMMANDS, DEFAULT_ALGORITHM, NOT_WITH_RESUME, parameters
from pymoo_gpuaco.islands import Islands
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, load_tsp, read_cities, read_tour
from pymoo_gpuaco.problems.table import READING
from pymoo_gpuaco.problems.tsp import constrained
from pymoo_gpuaco.problems.writing import check_route

STANDARD = "-"  # standard input or output
PLACE = "{instance}"


def complain(message: object) -> None:
    """Print an error or a warning in one line."""
    print(f"pymoo-gpuaco: {message}", file=sys.stderr)


@dataclass
class Run:
    """Result of one run."""

    problem: TSP
    tour: Any  # (n,) the best one, or a `Front`
    row: dict[str, Any]  # its row in the table of runs


@dataclass
class Job:
    """Validated instances, parameters and files of a command, and its results."""

    arguments: argparse.Namespace
    problems: dict[str, Any]  # TSP by name, or one MultiObjectiveTSP
    parameters: dict[str, Any]
    resumed: Any  # the algorithm of a saved run, or None
    stream: TextIO | None  # stream of progress and summary
    runs: list[Run] = field(default_factory=list)
    to_save: Any = None  # the algorithm of the run whose state is saved
    interrupted: KeyboardInterrupt | None = None
    failed: bool = False  # a device failed during a run

    def new_algorithm(self) -> Any:
        """Return a new algorithm, or islands of it."""
        arguments = self.arguments
        algorithm: Any = ALL_ALGORITHMS.get(arguments.algorithm, GPU2PPLS)(**self.parameters)
        if arguments.islands or arguments.scheduler:
            return Islands(algorithm, arguments.islands, client=arguments.scheduler)
        return algorithm

    def print(self, text: str = "") -> None:
        """Print a line of progress or summary."""
        if self.stream is not None:
            print(text, file=self.stream, flush=True)


def prepare(arguments: argparse.Namespace) -> Job:
    """Load and validate the inputs of search and output. Raises ValueError, TypeError or OSError."""
    options = [option for group in COMMANDS["solve"][1].values() for option in group]
    single = [option for option in options if option.single and option.is_given(arguments)]
    resumed = _resumed(arguments) if arguments.resume else None
    if resumed is not None:
        colony = resumed.algorithm if isinstance(resumed, Islands) else resumed
        arguments.algorithm, arguments.seed = type(colony).__name__, resumed.seed
        problems = {resumed.problem.label or "instance": resumed.problem}
    elif not arguments.instance:
        raise ValueError("no instance: give a name such as pcb442 or random:1000, or a file")
    else:
        problems = _load_all(arguments)
    fronts = any(problem.n_obj > 1 for problem in problems.values())
    if len(problems) * arguments.seeds > 1 and arguments.save:
        raise ValueError("--save writes the state of one run: give one instance and one seed")
    if len(problems) > 1 and (arguments.from_tour or fronts):
        raise ValueError(
            f"one instance is allowed with {'several objectives' if fronts else '--from-tour'}, got {len(problems)}"
        )
    if fronts and single:
        raise ValueError(f"{single[0].flags} does not support several objectives: {single[0].single}")
    if not fronts and arguments.csv:
        raise ValueError(
            "--csv writes the front of several objectives: use --tour FILE.csv for one objective"
        )
    if arguments.json and STANDARD in (arguments.tour, arguments.csv):
        raise ValueError("--json prints the tours: do not combine it with --tour - or --csv -")
    arguments.algorithm = GPU2PPLS.__name__ if fronts else arguments.algorithm or DEFAULT_ALGORITHM
    silent = arguments.json or arguments.quiet
    if arguments.picture is None:
        drawn = len(problems) == 1 and not silent
        arguments.picture = ("front.png" if fronts else "tour.png") if drawn else ""
    given = parameters(arguments.set)
    given |= {"backend": arguments.backend, "device": _device(arguments, problems)}
    if arguments.from_tour:
        (problem,) = problems.values()
        given["sampling"] = read_tour(arguments.from_tour, problem.n_cities, problem.ids)[None]
    stream = sys.stderr if STANDARD in (arguments.tour, arguments.csv) else sys.stdout
    job = Job(arguments, problems, given, resumed, None if silent else stream)
    if resumed is None:
        job.new_algorithm()  # validates the parameters
    _check_files(job)
    return job


def _device(arguments: argparse.Namespace, problems: dict[str, Any]) -> Any:
    """Return --device, or the devices that are fastest for these instances."""
    if arguments.device is not None:
        return arguments.device
    islands = arguments.islands or arguments.scheduler
    if islands or not problems or arguments.algorithm != DEFAULT_ALGORITHM:
        return 0
    return devices_for(min(problem.n_var for problem in problems.values()))


def _resumed(arguments: argparse.Namespace) -> Any:
    """Return the algorithm of a saved run."""
    for option in NOT_WITH_RESUME:
        if option.is_given(arguments):
            raise ValueError(f"{option.flags} cannot be given with --resume: the saved run defines it")
    try:
        algorithm = checkpoint.load(arguments.resume)
    except ValueError as error:
        raise ValueError(f"--resume {error}") from error
    if not isinstance(algorithm, TourAlgorithm) or algorithm.opt is None:
        raise ValueError(f"--resume {arguments.resume}: this run has not started")
    islands = isinstance(algorithm, Islands)
    if arguments.scheduler and not islands:
        raise ValueError(f"--scheduler requires a saved run of islands, got {arguments.resume}")
    if islands and arguments.backend != "auto":
        raise ValueError("--backend cannot be given with --resume of islands: the saved run defines it")
    if arguments.scheduler:
        algorithm.client = arguments.scheduler
    return algorithm


def _load_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the instances by name: `TSP`, or `MultiObjectiveTSP` if names are joined by +."""
    problems: dict[str, Any] = {}
    for given in arguments.instance:
        problem = _load(given, arguments)
        name = problem.label or Path(given).stem
        if name in problems:
            raise ValueError(f"instance {name} is given twice")
        problems[name] = problem
    return problems


def _load(given: str, arguments: argparse.Namespace) -> TSP | MultiObjectiveTSP:
    choice = {name: getattr(arguments, name) for name in READING}
    if given != STANDARD:
        problem = load_tsp(given, **choice)
    elif sys.stdin is None:
        raise ValueError("stdin is closed: the instance - reads the cities from it")
    else:
        problem = read_cities(sys.stdin.buffer, name="stdin", **choice)
    if isinstance(problem, MultiObjectiveTSP):
        return problem
    fixed = [_edge(problem, "--fix", pair) for pair in arguments.fix] or None
    forbidden = [_edge(problem, "--forbid", pair) for pair in arguments.forbid] or None
    start = None if arguments.start is None else problem.city(arguments.start, "--start")
    end = None if arguments.end is None else problem.city(arguments.end, "--end")
    pairs = None
    if arguments.precedence:
        lines = Path(arguments.precedence).read_text(encoding="utf-8").splitlines()
        pairs = [_edge(problem, "--precedence", line) for line in lines if line.strip()]
    return constrained(problem, start, end, fixed, forbidden, arguments.open, pairs)


def _edge(problem: TSP, option: str, pair: str) -> list[int]:
    """Return the two cities of "A,B"; names may contain commas."""
    parts, found = pair.split(","), []
    for at in range(1, len(parts)):
        texts = (",".join(parts[:at]), ",".join(parts[at:]))
        try:
            found.append([problem.city(text.strip(), option) for text in texts])
        except ValueError:
            if len(parts) == 2:
                raise
    if len(found) != 1:
        raise ValueError(f"{option} must be two cities such as A,B, got {pair!r}")
    return found[0]


def file_of(pattern: str, instance: str) -> Path:
    """Return the file for one instance; separators in the instance's name are replaced."""
    return Path(pattern.replace(PLACE, re.sub(r"[^\w.+-]", "_", instance)))


def _picture_suffixes() -> list[str]:
    from matplotlib.backend_bases import FigureCanvasBase

    return sorted(f".{kind}" for kind in FigureCanvasBase.get_supported_filetypes())


def _check_files(job: Job) -> None:
    """Raise ValueError for an output file that cannot be written, is also read, or is written twice."""
    arguments, instances = job.arguments, list(job.problems)
    taken: dict[Path, str] = {}
    for what, file in _files_read(arguments):
        taken[file.resolve()] = f"{what} is read from the same file, which would be overwritten"
    pictures = _picture_suffixes() if arguments.picture else []
    suffixes = {"csv": (".csv", ".txt"), "picture": pictures, "stats": (".csv",)}
    for name in ("tour", "csv", "picture", "stats", "save"):
        pattern, option, known = getattr(arguments, name), f"--{name}", suffixes.get(name, ())
        if not pattern or (pattern == STANDARD and name in ("tour", "csv")):
            continue
        if known and Path(pattern).suffix.lower() not in known:
            kinds = "one of " * (len(known) > 1) + ", ".join(known)
            raise ValueError(f"{option} {pattern}: the suffix must be {kinds}")
        if len(instances) > 1 and PLACE not in pattern and name in ("tour", "picture"):
            raise ValueError(
                f"{option} {pattern}: {len(instances)} instances require a file each; put {PLACE} into the name"
            )
        for path in dict.fromkeys(file_of(pattern, instance) for instance in instances):
            _check_writable(f"{option} {path}", path)
            if path.is_file() or not path.exists():  # pipes and devices are not overwritten
                if path.resolve() in taken:
                    raise ValueError(f"{option} {path}: {taken[path.resolve()]}")
                taken[path.resolve()] = f"{option} is written to the same file"
    for problem in job.problems.values() if arguments.tour else ():
        try:
            check_route(problem, Path(arguments.tour).suffix)
        except ValueError as error:
            raise ValueError(f"--tour {arguments.tour}: {error}") from error


def _files_read(arguments: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield name in messages and path of each input file; --save may replace the file of --resume."""
    for given in arguments.instance:
        files = [given] if Path(given).is_file() else given.split("+")
        yield from ((f"instance {given}", Path(file)) for file in files)
    if arguments.from_tour:
        yield f"--from-tour {arguments.from_tour}", Path(arguments.from_tour)
    if arguments.resume and Path(arguments.resume).resolve() != Path(arguments.save or "").resolve():
        yield f"--resume {arguments.resume}", Path(arguments.resume)


def _check_writable(what: str, path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"{what}: the path must be a file, got a folder")
    if not path.parent.is_dir():
        raise ValueError(f"{what}: there is no folder {path.parent}")
    replaced = path.is_file() or not path.exists()  # requires a writable folder; pipes and devices do not
    for place in (path, path.parent) if replaced else (path,):
        if place.exists() and not os.access(place, os.W_OK):
            raise ValueError(f"{what}: {place} is not writable")
