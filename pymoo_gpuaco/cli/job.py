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
from pymoo_gpuaco.algorithms import ALL_ALGORITHMS, GPU2PPLS, GPUMMASQAP
from pymoo_gpuaco.algorithms.tour import TourAlgorithm
from pymoo_gpuaco.backends import devices_for
from pymoo_gpuaco.cli.options import COMMANDS, DEFAULT_ALGORITHM, NOT_WITH_RESUME, Option, parameters
from pymoo_gpuaco.islands import Islands
from pymoo_gpuaco.problems import QAP, TSP, MultiObjectiveTSP, load_qap, load_tsp, read_cities, read_tour
from pymoo_gpuaco.problems.qaplib import is_qap
from pymoo_gpuaco.problems.table import READING
from pymoo_gpuaco.problems.tsp import constrained
from pymoo_gpuaco.problems.writing import check_route

STANDARD = "-"  # standard input or output
_ALGORITHMS = {**ALL_ALGORITHMS, **{cls.__name__: cls for cls in (GPU2PPLS, GPUMMASQAP)}}
# options with an effect on quadratic assignment
_FOR_ASSIGNMENTS = {
    "instance", "--set", "--seed", "--seeds", "--backend", "--device", "--time", "--target", "--generations",
    "--stagnation", "--tour", "--stats", "--json", "--quiet",
}  # fmt: skip
INSTANCE_PLACE, SEED_PLACE = "{instance}", "{seed}"  # placeholders in file names


def complain(message: object) -> None:
    """Print an error or a warning in one line."""
    print(f"pymoo-gpuaco: {message}", file=sys.stderr)


@dataclass
class Run:
    """Result of one run."""

    problem: Any
    tour: Any  # (n,) the best one, or a `Front` or an `Assignment`
    row: dict[str, Any]  # its row in the table of runs


@dataclass
class Job:
    """Validated instances, parameters and files of a command, and its results."""

    arguments: argparse.Namespace
    problems: dict[str, Any]  # TSP or QAP by name, or one MultiObjectiveTSP
    algorithm: str  # name of its class
    seeds: list[Any]  # of the runs of each instance
    resumed: Any = None  # the algorithm of a saved run, or None
    parameters: dict[str, Any] = field(default_factory=dict)
    runs: list[Run] = field(default_factory=list)
    to_save: dict[Any, Any] = field(default_factory=dict)  # by seed, the algorithm whose state is saved
    interrupted: KeyboardInterrupt | None = None
    failed: bool = False  # a device failed during a run

    @property
    def has_fronts(self) -> bool:
        """True if the problem has several objectives."""
        return any(problem.n_obj > 1 for problem in self.problems.values())

    @property
    def has_assignments(self) -> bool:
        """True if the problems are quadratic assignments."""
        return any(isinstance(problem, QAP) for problem in self.problems.values())

    @property
    def stream(self) -> TextIO | None:
        """Stream of progress and summary."""
        given = self.arguments
        if given.json or given.quiet:
            return None
        return sys.stderr if STANDARD in (given.tour, given.csv, given.stats) else sys.stdout

    def new_algorithm(self) -> Any:
        """Return a new algorithm, or islands of it."""
        arguments = self.arguments
        algorithm: Any = _ALGORITHMS[self.algorithm](**self.parameters)
        if arguments.islands or arguments.scheduler:
            return Islands(algorithm, arguments.islands, client=arguments.scheduler)
        return algorithm

    def print(self, text: str = "") -> None:
        """Print a line of progress or summary."""
        if self.stream is not None:
            print(text, file=self.stream, flush=True)


def prepare(arguments: argparse.Namespace) -> Job:
    """Load and validate the inputs of search and output. Raises ValueError, TypeError or OSError."""
    if arguments.resume:
        algorithm = _resumed(arguments)
        colony = algorithm.algorithm if isinstance(algorithm, Islands) else algorithm
        problems = {algorithm.problem.label or "instance": algorithm.problem}
        job = Job(arguments, problems, type(colony).__name__, [algorithm.seed], algorithm)
        _check_options(job)
    elif not arguments.instance:
        raise ValueError("no instance: give a name such as pcb442 or random:1000, or a file")
    else:
        seeds = [arguments.seed + number for number in range(arguments.seeds)]
        job = Job(arguments, _load_all(arguments), arguments.algorithm or DEFAULT_ALGORITHM, seeds)
        _check_options(job)
        if job.has_fronts or job.has_assignments:
            job.algorithm = (GPU2PPLS if job.has_fronts else GPUMMASQAP).__name__
        job.parameters = _parameters(job)
        job.new_algorithm()  # validates the parameters
    _check_files(job)
    return job


def _check_options(job: Job) -> None:
    """Raise ValueError for options that the number of objectives, instances or runs, or another option excludes."""
    arguments, fronts, n = job.arguments, job.has_fronts, len(job.problems)
    options = [option for group in COMMANDS["solve"][1].values() for option in group]
    single = [option for option in options if option.single and option.is_given(arguments)]
    if job.has_assignments:
        _check_assignments(job, options)
    if n > 1 and (arguments.from_tour or fronts):
        raise ValueError(
            f"one instance is allowed with {'several objectives' if fronts else '--from-tour'}, got {n}"
        )
    if fronts and single:
        raise ValueError(f"{single[0].flags} does not support several objectives: {single[0].single}")
    if not fronts and arguments.csv:
        raise ValueError(
            "--csv writes the front of several objectives: use --tour FILE.csv for one objective"
        )
    to_stdout = [f"--{name}" for name in ("tour", "csv", "stats") if getattr(arguments, name) == STANDARD]
    to_stdout += ["--json"] * arguments.json
    if len(to_stdout) > 1:
        raise ValueError(f"{' and '.join(to_stdout)} print to stdout: give one of them")
    for problem in job.problems.values():
        if job.algorithm != DEFAULT_ALGORITHM and getattr(problem, "constraints", None) is not None:
            kept = problem.constraints_in_words().removeprefix(", ") or "a path"
            raise ValueError(
                f"--algorithm {job.algorithm} cannot use constraints ({kept}): {DEFAULT_ALGORITHM} does"
            )


def _check_assignments(job: Job, options: list[Option]) -> None:
    """Raise ValueError for tours beside quadratic assignment, and for options that only tours have."""
    if not all(isinstance(problem, QAP) for problem in job.problems.values()):
        raise ValueError(
            f"instances must be all of quadratic assignment or none, got {', '.join(job.problems)}"
        )
    for option in options:
        flag = option.flags.split()[0]
        if flag not in _FOR_ASSIGNMENTS and option.is_given(job.arguments):
            raise ValueError(f"{flag} has no effect on quadratic assignment: leave it out")


def _parameters(job: Job) -> dict[str, Any]:
    """Return the arguments of the algorithm."""
    arguments = job.arguments
    given = parameters(arguments.set) | {"backend": arguments.backend, "device": arguments.device or 0}
    islands = arguments.islands or arguments.scheduler
    if arguments.device is None and job.algorithm == DEFAULT_ALGORITHM and not islands:
        given["device"] = devices_for(min(problem.n_var for problem in job.problems.values()))
    if arguments.from_tour:
        (problem,) = job.problems.values()
        given["sampling"] = read_tour(arguments.from_tour, problem.n_cities, problem.ids)[None]
    return given


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
    """Return the instances by name: `TSP` or `QAP`, or `MultiObjectiveTSP` if names are joined by +."""
    problems: dict[str, Any] = {}
    for given in arguments.instance:
        problem = _load(given, arguments)
        name = problem.label or Path(given).stem
        if name in problems:
            raise ValueError(f"instance {name} is given twice")
        problems[name] = problem
    return problems


def _load(given: str, arguments: argparse.Namespace) -> TSP | MultiObjectiveTSP | QAP:
    if is_qap(given):
        return load_qap(given)
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


def file_of(pattern: str, instance: str, seed: Any) -> Path:
    """Return the file for one run; separators in the instance's name are replaced."""
    name = pattern.replace(INSTANCE_PLACE, re.sub(r"[^\w.+-]", "_", instance))
    return Path(name.replace(SEED_PLACE, str(seed)))


def _picture_suffixes() -> list[str]:
    from matplotlib.backend_bases import FigureCanvasBase

    return sorted(f".{kind}" for kind in FigureCanvasBase.get_supported_filetypes())


def _check_files(job: Job) -> None:
    """Raise ValueError for an output file that cannot be written, is also read, or is written twice."""
    arguments = job.arguments
    taken: dict[Path, str] = {}
    for what, file in _files_read(arguments):
        taken[file.resolve()] = f"{what} is read from the same file, which would be overwritten"
    pictures = _picture_suffixes() if arguments.picture else []
    suffixes = {"csv": (".csv", ".txt"), "picture": pictures, "stats": (".csv",)}
    for name in ("tour", "csv", "picture", "stats", "save"):
        pattern, option, known = getattr(arguments, name), f"--{name}", suffixes.get(name, ())
        if not pattern or (pattern == STANDARD and name in ("tour", "csv", "stats")):
            continue
        if known and Path(pattern).suffix.lower() not in known:
            kinds = "one of " * (len(known) > 1) + ", ".join(known)
            raise ValueError(f"{option} {pattern}: the suffix must be {kinds}")
        _check_places(job, name, pattern)
        for path in dict.fromkeys(file_of(pattern, own, seed) for own in job.problems for seed in job.seeds):
            _check_writable(f"{option} {path}", path)
            if path.is_file() or not path.exists():  # pipes and devices are not overwritten
                if path.resolve() in taken:
                    raise ValueError(f"{option} {path}: {taken[path.resolve()]}")
                taken[path.resolve()] = f"{option} is written to the same file"
    for problem in job.problems.values() if arguments.tour and not job.has_assignments else ():
        try:
            check_route(problem, Path(arguments.tour).suffix)
        except ValueError as error:
            raise ValueError(f"--tour {arguments.tour}: {error}") from error


def _check_places(job: Job, name: str, pattern: str) -> None:
    """Raise ValueError for a file name with unknown placeholders, or without one that it needs."""
    known = () if name == "stats" else (INSTANCE_PLACE, SEED_PLACE)
    for place in re.findall(r"\{[^}]*\}", pattern):
        if place not in known:
            allowed = f"known are {' and '.join(known)}" if known else "one file has the lines of all runs"
            raise ValueError(f"--{name} {pattern}: unknown placeholder {place}; {allowed}")
    counts = [(INSTANCE_PLACE, len(job.problems), "instances")] if name in ("tour", "picture", "save") else []
    counts += [(SEED_PLACE, len(job.seeds), "seeds")] if name == "save" else []
    for place, count, what in counts:
        if count > 1 and place not in pattern:
            raise ValueError(
                f"--{name} {pattern}: {count} {what} require a file each; put {place} into the name"
            )


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
