"""QAPLIB: its files, and instances by name, shipped with the package, in a folder of the user, or downloaded."""

from __future__ import annotations

import os
import warnings
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.datasets import downloaded, file_of, numbers_checksum, shipped_table
from pymoo_gpuaco.problems.qap import QAP, Assignment
from pymoo_gpuaco.problems.tsplib import parse_number

_MIRROR = "https://qaplib.mgi.polymtl.ca/data.d/"
SUFFIX = ".dat"


def load_qap(name_or_path: str | PathLike[str]) -> QAP:
    """Load a quadratic assignment problem from a .dat file, or by the name that QAPLIB gives it, such as "nug30".

    A name is looked for among the instances shipped with the package, in the folder that the environment variable
    PYMOO_GPUACO_DATA names, in the cache of downloads, and on a mirror of QAPLIB. Known instances have their best known
    value; a file with such a name that differs is loaded without it, with a warning.

    Raises FileNotFoundError for a path without a file, ValueError for an unknown name or a broken file, and
    ConnectionError if a download fails.
    """
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise TypeError(
            f"name_or_path must be a name or a path, got {type(name_or_path).__name__}; QAP takes arrays"
        )
    path, text = Path(name_or_path), os.fspath(name_or_path)
    if path.is_file():
        return _problem(path.stem, path.read_text(encoding="utf-8", errors="replace"), text)
    name = path.name.removesuffix(SUFFIX)
    if path.name != text or path.suffix not in ("", SUFFIX):
        raise FileNotFoundError(f"{text}: there is no such file")
    file = file_of(name, [SUFFIX])
    if file is not None:
        return _problem(name, file.read_text(encoding="utf-8"), str(file))
    if name not in _registry():
        hint = checks.did_you_mean(name, list(_registry())) or "."
        raise ValueError(
            f"unknown instance {text!r}{hint} load_qap takes the names of QAPLIB and paths of .dat files"
        )

    def check(content: bytes) -> None:
        with warnings.catch_warnings(record=True) as differs:
            warnings.simplefilter("always")
            _problem(name, content.decode(), name)
        if differs:
            raise ValueError(differs[0].message)

    path = downloaded(f"{name}{SUFFIX}", _MIRROR, check, "load_qap")
    return _problem(name, path.read_text(encoding="utf-8"), str(path))


def is_qap(what: Any) -> bool:
    """Return True for the name of an instance of QAPLIB, and for a .dat file with n and two matrices."""
    path, text = Path(what), os.fspath(what)
    if path.suffix == SUFFIX and path.is_file():
        return _has_two_matrices(_words(path.read_text(encoding="utf-8", errors="replace")))
    return isinstance(text, str) and text.removesuffix(SUFFIX) in _registry()


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _numbers(words: list[str], source: str) -> NDArray[np.float64]:
    """Return the numbers (m,) of a file. Raises ValueError that names the first word that is none."""
    found = np.empty(len(words))
    for k, word in enumerate(words):
        try:
            found[k] = parse_number(word)
        except ValueError:
            raise ValueError(f"{source}: {word!r:.40} is not a number") from None
    return found


def _has_two_matrices(words: list[str]) -> bool:
    """Return True if a number n, perhaps a value, and 2 n^2 numbers follow."""
    n = int(words[0]) if words and words[0].isdecimal() else 0
    return n > 0 and len(words) in (1 + 2 * n * n, 2 + 2 * n * n)


def read_placement(path: str | PathLike[str], problem: QAP) -> NDArray[np.int64]:
    """Read a .sln file: the placement (n,) of its permutation, which has the cost that the file states.

    Files of QAPLIB list the location of each item or the item of each location; the stated cost tells which. Raises
    ValueError if neither has it.
    """
    numbers, n = _numbers(_words(Path(path).read_text(encoding="utf-8")), str(path)), problem.n_locations
    if len(numbers) != n + 2 or numbers[0] != n:
        raise ValueError(f"{path}: expected {n}, a cost and {n} numbers for {problem}")
    order = numbers[2:] - numbers[2:].min()
    order = checks.permutations(str(path), order[None], n)[0]
    for placement in (order, np.argsort(order)):
        if problem.costs(placement[None])[0] == numbers[1]:
            return placement
    costs = problem.costs(np.stack([order, np.argsort(order)]))
    raise ValueError(
        f"{path}: it states the cost {numbers[1]:.17g}, but its permutation costs {costs[0]:g} or {costs[1]:g}"
    )


def placement_text(problem: QAP, found: Assignment) -> str:
    """Return a placement as a .sln file: locations of the items, then free ones, numbered from 1."""
    free = np.setdiff1d(np.arange(problem.n_locations), found.placement)
    order = [*(found.placement + 1).tolist(), *(free + 1).tolist()]
    return f"{problem.n_locations} {found.cost:.17g}\n{' '.join(map(str, order))}\n"


def _registry() -> dict[str, Any]:
    """Return by name the best known value, and the checksum of the numbers or None."""
    return shipped_table("qaplib.json")


def _problem(name: str, text: str, source: str) -> QAP:
    """Return the problem of the text of a .dat file: n, perhaps a value, and two matrices."""
    words = _words(text)
    if not _has_two_matrices(words):
        found = f"{len(words)} numbers, the first {' '.join(words[:1])!r:.20}"
        raise ValueError(f"{source}: expected n and two matrices of n x n numbers, as in QAPLIB, got {found}")
    n = int(words[0])
    numbers = _numbers(words, source)[-2 * n * n :]
    flow, distance = numbers.reshape(2, n, n)
    known, checksum = _registry().get(name, (None, None))
    if known is not None and (
        _size_of(name) != n or checksum not in (None, numbers_checksum(numbers, False))
    ):
        warnings.warn(
            f"{source} is named {name} but its numbers are not those of QAPLIB's {name}: "
            "its best known value is not used",
            stacklevel=3,
        )
        known = None
    return QAP(flow, distance, best_known=known, name=name)


def _size_of(name: str) -> int:
    return int("".join(letter for letter in name[3:] if letter.isdecimal()))
