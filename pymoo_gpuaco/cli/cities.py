"""Which cities ``solve`` is to visit: files, names, standard input, and round trips or paths through them."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.cli import options
from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, load_tsp, read_cities, read_tour
from pymoo_gpuaco.problems.datasets import instance_files
from pymoo_gpuaco.problems.open_path import constrained
from pymoo_gpuaco.problems.writing import ids_in_files

STDIN = "-"


def load_all(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the instances asked for by their names: `TSP`, or `MultiObjectiveTSP` where they are joined by +.

    Raises ValueError, TypeError or OSError.
    """
    problems: dict[str, Any] = {}
    for given in arguments.instance:
        problem = _load(given, arguments)
        name = problem.label or Path(given).stem
        if name in problems:
            raise ValueError(f"instance {name} is given twice")
        problems[name] = problem
    return problems


def files_of(arguments: argparse.Namespace) -> list[tuple[str, Path | int]]:
    """What the instances are called in messages, and the files that they are read from; standard input by number."""
    files: list[tuple[str, Path | int]] = []
    for given in arguments.instance:
        if given != STDIN:
            files += [(f"instance {given}", file) for file in instance_files(given)]
        elif sys.stdin is not None:
            with suppress(OSError):  # it is something else than a file of the system
                files.append(("standard input", sys.stdin.buffer.fileno()))
    return files


def _load(given: str, arguments: argparse.Namespace) -> TSP | MultiObjectiveTSP:
    choice = options.reading(arguments)
    if given == STDIN:
        if sys.stdin is None:
            raise ValueError("stdin: it is closed, and - reads the cities from it")
        problem = read_cities(sys.stdin.buffer, name="stdin", **choice)
    else:
        problem = load_tsp(given, **choice)
    if isinstance(problem, MultiObjectiveTSP):
        if arguments.open or arguments.start or arguments.end or arguments.fix or arguments.forbid:
            raise ValueError(
                f"{given}: tours of several objectives are round trips: leave out --open, --start, --end, "
                "--fix and --forbid"
            )
        return problem
    fixed, forbidden = (
        [_edge(problem, option, pair) for pair in pairs] or None
        for option, pairs in (("--fix", arguments.fix), ("--forbid", arguments.forbid))
    )
    start, end = (
        None if text is None else problem.city(text, option)
        for option, text in (("--start", arguments.start), ("--end", arguments.end))
    )
    return constrained(problem, start, end, fixed, forbidden, one_way=arguments.open)


def _edge(problem: TSP, option: str, pair: str) -> list[int]:
    """Return the two cities of "A,B"; names may have commas themselves."""
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


def as_given(problem: TSP, city: int) -> str:
    """Return a city as ``--start`` takes it: its name, or its id in the file."""
    return str((ids_in_files(problem) if problem.names is None else problem.names)[city])


def first_tour(file: str, problem: TSP | MultiObjectiveTSP) -> NDArray[np.int64]:
    """Return the tour in a file as the (1, n) array that an algorithm starts from."""
    return read_tour(file, problem.n_cities, problem.ids)[None]
