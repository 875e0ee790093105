"""Which cities ``solve`` is to visit: files, names, standard input, and round trips or paths through them."""

from __future__ import annotations

import argparse
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco.problems import TSP, MultiObjectiveTSP, OpenPath, load_tsp, read_cities, read_tour
from pymoo_gpuaco.problems.datasets import instance_files
from pymoo_gpuaco.problems.results import numbers_of

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
    choice: dict[str, Any] = {"metric": arguments.metric, "matrix": arguments.matrix or None}
    if given == STDIN:
        if sys.stdin is None:
            raise ValueError("stdin: it is closed, and - reads the cities from it")
        problem = read_cities(sys.stdin.buffer, name="stdin", **choice)
    else:
        problem = load_tsp(given, **choice)
    if isinstance(problem, MultiObjectiveTSP):
        if arguments.open or arguments.start is not None or arguments.end is not None:
            raise ValueError(
                f"{given}: tours of several objectives are round trips: leave out --open, --start, --end"
            )
        return problem
    start = _city(problem, "--start", arguments.start)
    end = _city(problem, "--end", arguments.end)
    if not arguments.open and start is None and end is None:
        return problem
    if start is not None and start == end:
        raise ValueError(
            f"--start and --end must be two cities, got {as_given(problem, start)} for both; "
            "without them the tour is a round trip"
        )
    return OpenPath(problem, start=start, end=end)


def _city(problem: TSP, option: str, given: str | None) -> int | None:
    """Return the city of a name, or of its number in the file: from 1 on, or as TSPLIB's file has them."""
    if given is None:
        return None
    if problem.names is not None:
        found = np.flatnonzero([str(name) == given for name in problem.names])
        if len(found) > 1:
            raise ValueError(
                f"{option} {given}: {len(found)} cities have this name; give a number, the first being 1"
            )
        if len(found):
            return int(found[0])
    numbers = numbers_of(problem)
    if re.fullmatch(r"-?\d+", given):
        for city in np.flatnonzero(numbers == int(given)).tolist():
            return int(city)
    named = "a name of a city or " if problem.names is not None else ""
    own = "" if problem.numbers is None else " that the file has"
    raise ValueError(
        f"{option} must be {named}a number from {numbers[0]} to {numbers[-1]}{own}, got {given!r}"
    )


def as_given(problem: TSP, city: int) -> str:
    """Return a city as ``--start`` takes it: its name, or its number in the file."""
    return str((numbers_of(problem) if problem.names is None else problem.names)[city])


def first_tour(file: str, problem: TSP | MultiObjectiveTSP) -> NDArray[np.int64]:
    """Return the tour in a file as the (1, n) array that an algorithm starts from."""
    return read_tour(file, problem.n_cities, problem.numbers)[None]
