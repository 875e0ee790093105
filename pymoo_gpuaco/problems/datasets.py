"""Instances by name: shipped with the package, in a folder of the user, or downloaded with a checksum."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from http.client import HTTPException
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.problems.multi_objective import MultiObjectiveTSP
from pymoo_gpuaco.problems.reading import read_file
from pymoo_gpuaco.problems.table import ParsedInstance, Reading, ReadingOptions
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.problems.tsplib import SUFFIXES, read_tour, stem
from pymoo_gpuaco.problems.writing import write_whole
from pymoo_gpuaco.runtime.cache import cache_folder

if TYPE_CHECKING:
    from importlib.abc import Traversable

    from typing_extensions import Unpack


DATA_VARIABLE = "PYMOO_GPUACO_DATA"
"""Environment variable with a folder of NAME.tsp and NAME.atsp files."""

_MIRROR = "https://raw.githubusercontent.com/mastqe/tsplib/master/"
_TIMEOUT_S = 20
_MAP_SIDE = 1_000_000
_MOST_CITIES = 100_000_000


# A MultiObjectiveTSP for names with a +. The type is Any, so that callers need not check it
def load_tsp(name_or_path: str | PathLike[str], **reading: Unpack[ReadingOptions]) -> TSP | Any:
    """Load an instance by name or from a file, with its best known length and optimal tour if known.

    Sources, in this order:

    1. a file or a pipe at that path, in any format of `read_cities`, whose arguments are `reading`;
    2. the instances shipped with the package (`available_instances`);
    3. NAME.tsp or NAME.atsp, also with .gz, in the folder that the environment variable PYMOO_GPUACO_DATA names;
    4. the cache of downloads: PYMOO_GPUACO_CACHE, else pymoo_gpuaco in XDG_CACHE_HOME or ~/.cache;
    5. a public mirror of TSPLIB on GitHub. A download must have the SHA-256 of TSPLIB's own file.

    "random:N" makes a `random_map` of N cities with rounded distances; "random:N:SEED" makes another one. Several of
    these joined by +, such as "kroA100+kroB100", are the objectives of a `MultiObjectiveTSP`.

    `best_known` is set for files that match a known instance in NAME, number of cities, metric and coordinates (or
    distances). Warns about a file with a known NAME that differs. A NAME.opt.tour beside the file becomes
    `optimal_tour`; one that does not fit is ignored with a warning.

    Raises FileNotFoundError for a path without a file, ValueError for an unknown name or a broken file, TypeError for
    an argument that is neither name nor path, and ConnectionError if a download fails.
    """
    given = Reading("load_tsp", reading)
    is_name = isinstance(name_or_path, str)
    if not is_name and not isinstance(name_or_path, os.PathLike):
        shown = " ".join(repr(name_or_path).split())
        raise TypeError(
            f"name_or_path must be a name or a path, got {shown:.60}; TSP takes arrays, read_cities tables and graphs"
        )
    path, text = Path(name_or_path), os.fspath(name_or_path)
    if path.is_fifo() or path.is_file():
        return _load(path, given)
    if is_name and "+" in text:
        return _several(text, reading)
    if is_name and text.startswith("random:"):
        given.allow(text)
        numbers = re.fullmatch(r"random:(\d+)(?::(\d+))?", text, re.ASCII)
        if numbers is None:
            raise ValueError(
                f"{text!r}: a random map is written random:N or random:N:SEED, as in random:10000"
            )
        return random_map(int(numbers[1]), int(numbers[2] or 1))
    given.allow(f"{text}, a TSPLIB instance", "symmetric")
    if not is_name or path.name != text:
        raise _no_file(path, text)
    name = stem(text)
    file = file_of(name)
    if file is not None:
        with resources.as_file(file) as there:
            return _load(there, given)
    if "sha256" in _registry().get(name, {}):
        return _load(_download(name), given)
    if text and path.is_dir():
        raise _no_file(path, text)
    if path.suffix:
        raise ValueError(f"there is no file {text!r} in {Path.cwd()}, and no instance of that name")
    folder = _user_folder()
    own = _names_in(folder) if folder and folder.is_dir() else []
    downloads = [known for known, entry in _registry().items() if "sha256" in entry]
    hint = checks.did_you_mean(name, [*own, *available_instances(), *downloads]) or "."
    raise ValueError(
        f"unknown instance {text!r}{hint} Shipped are {', '.join(available_instances())}. "
        f"{DATA_VARIABLE} names a folder of others ({folder or 'not set'}); the path of a file works too"
    )


def _no_file(path: Path, text: str) -> Exception:
    """Return the error for a path at which there is no file to read."""
    if path.exists():
        what = "a directory: name a file in it" if path.is_dir() else "neither a file nor a pipe"
        return ValueError(f"{path}: it is {what}")
    away = "; download a file from the web first" if "://" in text else ""
    return FileNotFoundError(f"{text}: there is no such file{away}")


def _several(text: str, reading: ReadingOptions) -> MultiObjectiveTSP:
    """Return the problem whose objectives are the names that + joins in ``text``."""
    names = [name.strip() for name in text.split("+")]
    if not all(names):
        raise ValueError(f"{text!r}: several objectives are written NAME+NAME, as in kroA100+kroB100")
    try:
        return MultiObjectiveTSP([load_tsp(name, **reading) for name in names])
    except (ValueError, FileNotFoundError) as error:
        raise type(error)(f"{text}: {error}") from error


def random_map(n: int, seed: int = 1) -> TSP:
    """Return a map of `n` cities (3 to 100,000,000) at whole coordinates in [0, 1,000,000), uniform, metric EUC_2D.

    The coordinates are x and y of city 0, of city 1 and so on, drawn from the generator Philox4x64-10 with key `seed`
    (an integer in [0, 2**63)): the same map on every machine and with every version of numpy.
    """
    checks.integer("n", n, 3, _MOST_CITIES)
    checks.integer("seed", seed, 0, 2**63 - 1)
    raw = np.random.Philox(key=seed).random_raw(2 * n)
    unit = (raw >> np.uint64(11)) * 2.0**-53  # the 53 high bits as a double in [0, 1)
    coords = np.floor(unit * _MAP_SIDE).reshape(n, 2)
    return TSP(coords, "EUC_2D", name=f"random-{n}" if seed == 1 else f"random-{n}-{seed}")


def available_instances() -> list[str]:
    """Return the names of the instances that are shipped with the package, sorted."""
    return sorted(_names_in(_data_folder()))


def _load(path: Path, reading: Reading) -> TSP:
    """Read a file, and the optimal tour beside one of TSPLIB's; warn about an invalid tour and ignore it."""
    file = read_file(path, reading)
    is_tsplib = not file.read_as
    problem = file.problem(path, reading.symmetric, _best_known(path, file) if is_tsplib else None)
    tour_path = path.with_name(f"{stem(path.name)}.opt.tour")
    if is_tsplib and tour_path.is_file():
        try:
            tour = read_tour(tour_path, problem.n_cities, file.ids)
            length, known = problem.tour_length(tour), problem.best_known
            if problem.violations(tour[None])[0]:
                raise ValueError(f"{tour_path}: it lacks fixed edges")
            if known not in (None, length):
                raise ValueError(f"{tour_path}: its length is {length:g}, the best known is {known:g}")
            problem.optimal_tour, problem.best_known = tour, length
        except ValueError as error:
            warnings.warn(f"optimal tour left out: {error}", stacklevel=3)
    return problem


def _best_known(path: Path, file: ParsedInstance) -> float | None:
    """Return the published length if the file is the published instance, or None.

    The name does not suffice: dsj1000 circulates with two metrics, and so with two optima. Warns about a file with a
    TSPLIB name that is another instance, because its runs have no gap.
    """
    name, numbers = file.label or "", file.matrix if file.coords is None else file.coords
    assert numbers is not None
    entry = _registry().get(name)
    if entry is None:
        return None
    if entry["dimension"] != len(numbers):
        other = f"it has {len(numbers)} cities instead of {entry['dimension']}"
    elif entry["edge_weight_type"] != file.metric:
        other = f"its EDGE_WEIGHT_TYPE is {file.metric} instead of {entry['edge_weight_type']}"
    elif entry["numbers"] != numbers_checksum(numbers, file.coords is None):
        other = f"its {'distances' if file.coords is None else 'coordinates'} differ"
    elif file.fixed_edges is not None:
        other = "some of its edges are fixed"
    else:
        return float(shipped_table("best_known.json")[name])
    warnings.warn(
        f"{path} is named {name} but is not TSPLIB's {name}: {other}. "
        "Its best known length is not used; a run has no gap and no target",
        stacklevel=4,
    )
    return None


def numbers_checksum(numbers: NDArray[np.float64], is_matrix: bool) -> str:
    """Return a checksum, 16 hexadecimal digits, of coordinates or distances, independent of their notation in a file.

    Cities are in the order of their ids; the diagonal of a matrix is ignored.
    """
    if is_matrix:
        numbers = numbers * (1.0 - np.eye(len(numbers)))
    numbers = np.ascontiguousarray(numbers + 0.0, dtype="<f8")  # + 0.0 turns -0.0 into 0.0
    return hashlib.sha256(numbers.tobytes()).hexdigest()[:16]


def _download(name: str) -> Path:
    """Return the path of NAME.tsp in the cache; download it if it is missing."""
    wanted = _registry()[name]["sha256"]

    def check(content: bytes) -> None:
        if hashlib.sha256(content).hexdigest() != wanted:
            raise ValueError("it is not TSPLIB's own file: its SHA-256 differs")

    return downloaded(f"{name}.tsp", _MIRROR, check, "load_tsp")


def downloaded(name: str, mirror: str, check: Callable[[bytes], object], loader: str) -> Path:
    """Return the path of a file in the cache; download it if it is missing or damaged.

    ``check`` raises ValueError for wrong contents. ``loader``: the function that the message of ConnectionError names.
    """
    file = cache_folder() / name
    try:
        with contextlib.suppress(FileNotFoundError, ValueError):
            check(file.read_bytes())
            return file
        with urlopen(mirror + name, timeout=_TIMEOUT_S) as answer:
            content = answer.read()
        check(content)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, content)
    except (OSError, HTTPException, ValueError) as error:
        raise ConnectionError(
            f"instance {file.stem!r} is not shipped, and downloading {mirror}{name} into {file.parent} failed "
            f"({error}). Put {name} into a folder and name the folder in {DATA_VARIABLE}, or give {loader} the file's "
            "path."
        ) from error
    return file


def _user_folder() -> Path | None:
    """Return the folder that PYMOO_GPUACO_DATA names, or None."""
    value = os.environ.get(DATA_VARIABLE)
    # not Path.expanduser, which raises for an unknown ~user
    return Path(os.path.expanduser(value)) if value else None


def file_of(name: str, suffixes: Iterable[str] = SUFFIXES) -> Traversable | None:
    """Return the file of an instance that is shipped or in the user's folder, or None."""
    folder = _user_folder()
    places = [_data_folder(), *([folder] if folder else [])]
    files = [place / (name + suffix) for place in places for suffix in suffixes]
    return next((file for file in files if file.is_file()), None)


def _names_in(folder: Traversable) -> list[str]:
    return [stem(entry.name) for entry in folder.iterdir() if entry.name.endswith(SUFFIXES)]


def _data_folder() -> Traversable:
    """Return the folder of the shipped data."""
    return resources.files("pymoo_gpuaco.problems.data")


@cache
def shipped_table(file: str) -> dict[str, Any]:
    """Return a JSON file of the shipped data."""
    table: dict[str, Any] = json.loads((_data_folder() / file).read_text(encoding="utf-8"))
    return table


def _registry() -> dict[str, Any]:
    """Return by name: dimension, edge_weight_type, numbers (their checksum) and, for downloads, sha256."""
    return shipped_table("registry.json")
