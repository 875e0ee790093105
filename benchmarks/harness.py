"""Common parts of all benchmarks: options, instances, timed runs, published figures, and results."""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import math
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pymoo.optimize import minimize
from register import MEASURES, later_commits

import pymoo_gpuaco
from pymoo_gpuaco import TSP, GPUMemetic, load_tsp
from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.problems.datasets import available_instances
from pymoo_gpuaco.runtime import compiling
from pymoo_gpuaco.runtime.threads import thread_count

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
REFERENCES = ROOT / "benchmarks" / "references"
# Load average of the last minute before the measurements.
LOAD_BEFORE = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
MOST_LOAD = 0.5
if LOAD_BEFORE > MOST_LOAD:
    print(f"the machine is not idle (load {LOAD_BEFORE:.1f}): times will be wrong", file=sys.stderr)


# ---- options and instances


def parser_for(
    description: str | None,
    folder: Literal["needed", "optional", "none"] = "needed",
    seeds: int | None = None,
    only: Iterable[str] = (),
    add: bool = False,
    backend: str | None = None,
) -> argparse.ArgumentParser:
    """Return a parser whose help is the docstring of a script.

    folder : argument for a folder of TSPLIB files; "optional": the default is the current folder.
    seeds, backend : defaults of ``--seeds`` and ``--backend``; None: no such option.
    only : choices of ``--only``, all by default.
    add : True for ``--add``, which preserves the other rows of the file.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    if folder == "needed":
        parser.add_argument("folder", type=Path, help="folder of TSPLIB files")
    elif folder == "optional":
        parser.add_argument("folder", type=Path, nargs="?", default=Path("."), help="folder of TSPLIB files")
    if seeds is not None:
        parser.add_argument("--seeds", type=int, default=seeds, help="runs per row")
    if choices := list(only):
        parser.add_argument("--only", nargs="+", choices=choices, default=choices)
    if add:
        parser.add_argument("--add", action="store_true", help="preserve the other rows of the result")
    if backend is not None:
        parser.add_argument("--backend", choices=("cpu", "cuda"), default=backend)
    return parser


def problems_of(folder: Path, names: Iterable[str]) -> dict[str, TSP]:
    """Load the instances of the folder or the package, and random:N; print those that are skipped."""
    problems = {}
    for name in names:
        path = next((p for p in (folder / f"{name}.tsp", folder / f"{name}.atsp") if p.exists()), None)
        if path is not None:
            problems[name] = load_tsp(path)
        elif name in available_instances() or name.startswith("random:"):
            problems[name] = load_tsp(name)
        else:
            print(f"{name}: not in {folder}, skipped")
    return problems


# ---- runs of GPUMemetic() with a time limit counted from the call


class Run(NamedTuple):
    """Best length and wall time of a call of ``minimize``."""

    length: float
    wall: float


def run_for(
    problem: TSP, seconds: float, seed: int, backend: str, note: Callable[[Any], None] | None = None
) -> Run:
    """Run ``minimize(problem, GPUMemetic(), ("time", seconds))``, set-up included; ``note`` is the callback."""
    gc.collect()  # frees the device memory of the last run
    before = time.perf_counter()
    algorithm = GPUMemetic(backend=backend)
    result = minimize(problem, algorithm, ("time", seconds), seed=seed, callback=note)
    return Run(float(result.F[0]), time.perf_counter() - before)


def runs_for(problem: TSP, seconds: float, seeds: int, backend: str) -> list[Run]:
    """Compile kernels and load machine code, then run once per seed."""
    run_for(problem, 0.1, 0, backend)
    return [run_for(problem, seconds, seed, backend) for seed in range(1, seeds + 1)]


def set_up_seconds(problem: TSP, backend: str) -> float:
    """Return the seconds of set-up, without compilation of kernels and loading of machine code."""
    run_for(problem, 0.1, 0, backend)
    with compiling.timed() as took:
        GPUMemetic(backend=backend).setup(problem, termination=("time", 60.0), seed=0)
    return took.seconds


#: shortest tours, unproven, of instances outside TSPLIB
BEST_KNOWN = {"mona-lisa100K": (5_757_191.0, "the tour of Y. Nagata, 2009")}


def reference(problem: TSP) -> tuple[float, str]:
    """Return the length that gaps are relative to, and its name: the best known, or the expected for random cities.

    n uniform cities on a torus of area A have an expected optimum of 0.7124 sqrt(n A) (Johnson, McGeoch and Rothberg,
    SODA 1996). The border of a square adds 0.59 sqrt(A), according to optimal tours of 1000 cities (23.12 in the unit
    square). Maps differ by about 0.3 sqrt(A). For a million cities the factor is that of the best known tour of DIMACS
    E1M.0.
    """
    if problem.best_known is not None:
        return float(problem.best_known), "best known"
    if problem.label in BEST_KNOWN:
        return BEST_KNOWN[problem.label]
    n, side = problem.n_cities, 1e6  # side of ``random_map``
    if n == 1_000_000:
        return 0.7132 * math.sqrt(n) * side, "0.7132 sqrt(nA)"
    return (0.7124 * math.sqrt(n) + 0.59) * side, "0.7124 sqrt(nA) + 0.59 sqrt(A)"


def gap(length: Any, to: float | None) -> Any:
    """Return by how many percent a length, or an array of lengths, exceeds ``to``, which must be known."""
    assert to is not None
    return 100.0 * (length / to - 1.0)


def spread(values: Sequence[float]) -> str:
    """Format the least and the largest value."""
    return f"{min(values):.3g} .. {max(values):.3g}"


# ---- published figures. Each file of benchmarks/references is a source: {"source": str, "figures": {name: figure}}

#: keys of a figure: description, unit, place in the source, device, date, commit, compiler flags and command of the
#: measurement, and its values; null if unknown
FIELDS = ("what", "unit", "where", "device", "date", "commit", "flags", "command", "values")


@cache
def _read(source: str) -> dict[str, Any]:
    file: dict[str, Any] = json.loads((REFERENCES / f"{source}.json").read_text(encoding="utf-8"))
    for name, figure in file["figures"].items():
        if tuple(figure) != FIELDS:
            raise ValueError(f"{source}.json: {name} must have exactly {', '.join(FIELDS)}")
    return file


def values(source: str, name: str) -> Any:
    """Return the values of a figure; decimal keys become ints."""
    return _with_numbers(_read(source)["figures"][name]["values"])


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {int(key) if key.isdecimal() else key: _with_numbers(entry) for key, entry in value.items()}
    return value


# ---- the machine and the code


def commit() -> str:
    """Return the short commit of the measured code; "-dirty" if files differ or the package is not the checkout's.

    For a copy without history, set the variable PYMOO_GPUACO_COMMIT.
    """
    if given := os.environ.get("PYMOO_GPUACO_COMMIT"):
        return given
    name = _git("rev-parse", "--short", "HEAD")
    # results, references and generated tables do not affect measurements
    beside = ("benchmarks/results", "benchmarks/references", "docs/generated", "README.md")
    changed = _git("status", "--porcelain", "--", ".", *(f":!{path}" for path in beside))
    elsewhere = not Path(pymoo_gpuaco.__file__).resolve().is_relative_to(ROOT)
    return f"{name}-dirty" if name and (changed or elsewhere) else name or "unknown"


def holds(measured: str, script: str) -> bool:
    """Return True if what a script measured at a commit holds for this code."""
    return measured == commit() or later_commits(measured, MEASURES.get(script, ()), script) == 0


def _git(*arguments: str) -> str:
    answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def processor() -> str:
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def nvidia_driver() -> str | None:
    """Return the version of the NVIDIA driver, or None."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.split()[0] if answer.split() else None


def command() -> str:
    """Return the command line, with FOLDER for folders and names for files, because paths differ between machines."""
    script = Path(sys.argv[0]).resolve()
    inside = script.relative_to(ROOT) if script.is_relative_to(ROOT) else Path(script.name)
    given = ("FOLDER" if Path(a).is_dir() else Path(a).name if Path(a).is_file() else a for a in sys.argv[1:])
    return shlex.join(["python", str(inside), *given])


# ---- results


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Exclude other processes that measure parts of the same result, within a with block."""
    import fcntl  # not on Windows

    with open(Path(tempfile.gettempdir()) / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Table:
    """Rows of a result, printed when they are added, and written to benchmarks/results/NAME.json.

    header : names of the columns, separated by `` | ``; a number after ``:`` is the number of decimals of the column.
    """

    def __init__(
        self, name: str, title: str, header: str, parameters: dict[str, Any], notes: Sequence[str] = ()
    ) -> None:
        self.name, self.title, self.parameters, self.notes = name, title, dict(parameters), notes
        cells = [re.fullmatch(r"(.*?)(?::(\d))?", cell) for cell in header.split(" | ")]
        self.columns = [cell[1] for cell in cells if cell]
        self._decimals = [int(cell[2]) if cell[2] else None for cell in cells if cell]
        self.rows: list[list[Any]] = []

    def add(self, *cells: Any) -> None:
        """Add a row."""
        rounded = [
            cell if decimals is None or cell is None else round(float(cell), decimals or None)
            for cell, decimals in zip(cells, self._decimals, strict=True)
        ]
        self.rows.append(rounded)
        print(rounded, flush=True)

    def keep_others(self, own: Container[Any], keys: int = 1) -> None:
        """Add the rows of the written result except ``own``, with their parameters and commands.

        A row is identified by its first cell, or by a tuple of its first ``keys`` cells. Raises SystemExit if code or
        GPU differ.
        """
        path = RESULTS / f"{self.name}.json"
        if not path.is_file():
            return
        earlier = json.loads(path.read_text(encoding="utf-8"))
        devices = [line for key, line in earlier["machine"].items() if key.startswith("gpu ")]
        if devices != cuda_devices() or not holds(earlier["commit"], Path(sys.argv[0]).stem):
            raise SystemExit(
                f"--add: {path.name} was measured at commit {earlier['commit']} on {devices}, this is {commit()} on "
                f"{cuda_devices()}; run without --add to replace it"
            )
        for parameter, value in earlier["parameters"].items():
            self.parameters.setdefault(parameter, value)
        parts = [*earlier["parameters"].get("other parts", []), earlier["command"]]
        self.parameters["other parts"] = sorted({part for part in parts if part != command()})
        self.rows += [
            row for row in earlier["rows"] if (row[0] if keys == 1 else tuple(row[:keys])) not in own
        ]

    def write(self, order: Callable[[list[Any]], Any] | None = None) -> None:
        """Write the file, with rows sorted by ``order``; the tables of the docs are generated from it."""
        if order is not None:
            self.rows.sort(key=order)
        machine = {"processor": processor(), "threads": str(thread_count())}
        machine |= {"python": platform.python_version(), "load before": f"{LOAD_BEFORE:.1f}"}
        machine |= {f"gpu {number}": device for number, device in enumerate(cuda_devices())}
        if (driver := nvidia_driver()) is not None:
            machine["driver"] = driver
        result = {
            "title": self.title,
            "date": datetime.date.today().isoformat(),
            "commit": commit(),
            "machine": machine,
            "command": command(),
            "parameters": self.parameters,
            "columns": self.columns,
            "rows": self.rows,
            "notes": list(self.notes),
        }
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / f"{self.name}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        print(path)
