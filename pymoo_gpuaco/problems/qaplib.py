"""QAPLIB: its files, and instances by name, shipped with the package, in a folder of the user, or downloaded."""

from __future__ import annotations

import hashlib
import os
import warnings
from http.client import HTTPException
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.datasets import DATA_VARIABLE, TIMEOUT_S, data_folder, shipped_table, user_folder
from pymoo_gpuaco.problems.qap import QAP, Assignment
from pymoo_gpuaco.problems.writing import write_whole
from pymoo_gpuaco.runtime.cache import cache_folder

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
    own = user_folder()
    for place in (data_folder(), *([own] if own else [])):
        file = place / f"{name}{SUFFIX}"
        if file.is_file():
            return _problem(name, file.read_text(encoding="utf-8"), str(file))
    if name not in _registry():
        hint = checks.did_you_mean(name, list(_registry())) or "."
        raise ValueError(
            f"unknown instance {text!r}{hint} load_qap takes the names of QAPLIB and paths of .dat files"
        )
    return _problem(name, _downloaded(name), name)


def is_qap(what: Any) -> bool:
    """Return True for the name of an instance of QAPLIB, and for a .dat file with n and two matrices."""
    path, text = Path(what), os.fspath(what)
    if path.suffix == SUFFIX and path.is_file():
        words = path.read_text(encoding="utf-8", errors="replace").replace(",", " ").split()
        return _has_two_matrices(words)
    return isinstance(text, str) and text.removesuffix(SUFFIX) in _registry()


def _has_two_matrices(words: list[str]) -> bool:
    """Return True if a number n, perhaps a value, and 2 n^2 numbers follow."""
    n = int(words[0]) if words and words[0].isdecimal() else 0
    return n > 0 and len(words) in (1 + 2 * n * n, 2 + 2 * n * n)


def read_placement(path: str | PathLike[str], problem: QAP) -> NDArray[np.int64]:
    """Read a .sln file: the placement (n,) of its permutation, which has the cost that the file states.

    Files of QAPLIB list the location of each item or the item of each location; the stated cost tells which. Raises
    ValueError if neither has it.
    """
    numbers = Path(path).read_text(encoding="utf-8").replace(",", " ").split()
    n = problem.n_locations
    if len(numbers) != n + 2 or not all(_is_number(word) for word in numbers) or float(numbers[0]) != n:
        raise ValueError(f"{path}: expected {n}, a cost and {n} numbers for {problem}")
    order = np.array(numbers[2:], float)
    order = checks.permutations(str(path), (order - order.min())[None], n)[0]
    for placement in (order, np.argsort(order)):
        if problem.costs(placement[None])[0] == float(numbers[1]):
            return placement
    costs = problem.costs(np.stack([order, np.argsort(order)]))
    raise ValueError(
        f"{path}: it states the cost {numbers[1]}, but its permutation costs {costs[0]:g} or {costs[1]:g}"
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
    words = text.replace(",", " ").split()
    if not _has_two_matrices(words):
        found = f"{len(words)} numbers, the first {' '.join(words[:1])!r:.20}"
        raise ValueError(f"{source}: expected n and two matrices of n x n numbers, as in QAPLIB, got {found}")
    n = int(words[0])
    wrong = next((word for word in words if not _is_number(word)), None)
    if wrong is not None:
        raise ValueError(f"{source}: {wrong!r:.40} is not a number")
    numbers = np.array(words[-2 * n * n :], np.float64)
    flow, distance = numbers.reshape(2, n, n)
    known, checksum = _registry().get(name, (None, None))
    if known is not None and (_size_of(name) != n or checksum not in (None, numbers_checksum(numbers))):
        warnings.warn(
            f"{source} is named {name} but its numbers are not those of QAPLIB's {name}: "
            "its best known value is not used",
            stacklevel=3,
        )
        known = None
    return QAP(flow, distance, best_known=known, name=name)


def numbers_checksum(numbers: NDArray[np.float64]) -> str:
    """Return a checksum, 16 hexadecimal digits, of the numbers of both matrices."""
    return hashlib.sha256(np.ascontiguousarray(numbers, "<f8").tobytes()).hexdigest()[:16]


def _size_of(name: str) -> int:
    return int("".join(letter for letter in name[3:] if letter.isdecimal()))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _downloaded(name: str) -> str:
    """Return the text of NAME.dat in the cache; download it if it is missing. Its size and checksum are verified."""
    file = cache_folder() / f"{name}{SUFFIX}"
    try:
        if file.is_file():
            return file.read_text(encoding="utf-8")
        with urlopen(_MIRROR + file.name, timeout=TIMEOUT_S) as answer:
            content = answer.read()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            _problem(name, content.decode(), _MIRROR + file.name)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
    except (OSError, HTTPException, ValueError, UserWarning) as error:
        raise ConnectionError(
            f"instance {name!r} is not shipped, and downloading {_MIRROR}{file.name} into {file.parent} failed "
            f"({error}). Put {file.name} into a folder and name the folder in {DATA_VARIABLE}, or give load_qap the "
            "file's path."
        ) from error
    return str(content.decode())
