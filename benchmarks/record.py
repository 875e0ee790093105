"""How every benchmark writes down what it measured, where, and with which code."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymoo_gpuaco
from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.runtime.threads import thread_count

# Processes that wanted a core in the last minute, before anything is measured here.
LOAD_BEFORE = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
MOST_LOAD = 0.5
if LOAD_BEFORE > MOST_LOAD:
    print(
        f"the machine is not quiet (load {LOAD_BEFORE:.1f}): what is measured now means little",
        file=sys.stderr,
    )

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"


def commit() -> str:
    """Short name of the code measured, marked where files differ from it or the package is not the checkout's.

    A copy without its history is told by the variable PYMOO_GPUACO_COMMIT.
    """
    told = os.environ.get("PYMOO_GPUACO_COMMIT")
    if told:
        return told
    name = _git("rev-parse", "--short", "HEAD")
    # results, what they are compared with, and the tables made of them are no part of what is measured
    beside = ("benchmarks/results", "benchmarks/references", "docs/generated", "README.md")
    changed = _git("status", "--porcelain", "--", ".", *(f":!{path}" for path in beside))
    elsewhere = not Path(pymoo_gpuaco.__file__).resolve().is_relative_to(ROOT)
    return f"{name}-dirty" if name and (changed or elsewhere) else name or "unknown"


def _git(*arguments: str) -> str:
    answer = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip()


def processor() -> str:
    """Name of the processor, as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def nvidia_driver() -> str | None:
    """Version of the NVIDIA driver, None without one."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.split()[0] if answer.split() else None


def command() -> str:
    """What was typed, with FOLDER for a folder of instances, which is another one on every machine."""
    script = Path(sys.argv[0]).resolve()
    inside = script.relative_to(ROOT) if script.is_relative_to(ROOT) else Path(script.name)
    return shlex.join(["python", str(inside), *("FOLDER" if Path(a).is_dir() else a for a in sys.argv[1:])])


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes out that measure parts of the same result, perhaps on other GPUs."""
    import fcntl  # here: Windows has none, and no other benchmark needs it

    with open(Path(tempfile.gettempdir()) / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def rows_of_others(
    name: str, own: Container[Any], parameters: dict[str, Any], keys: int = 1
) -> list[list[Any]]:
    """Rows of a written result but ``own``; ``parameters`` get theirs, and the commands that made them.

    A row is known by its first cell, or by a tuple of its first ``keys``.

    Raises SystemExit if the code or the GPU were others.
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        return []
    earlier = json.loads(path.read_text(encoding="utf-8"))
    devices = [line for key, line in earlier["machine"].items() if key.startswith("gpu ")]
    if (earlier["commit"], devices) != (commit(), cuda_devices()):
        raise SystemExit(
            f"--add: {path.name} was measured at commit {earlier['commit']} on {devices}, this is {commit()} on "
            f"{cuda_devices()}; leave --add out to begin anew"
        )
    for parameter, value in earlier["parameters"].items():
        parameters.setdefault(parameter, value)
    parts = [*earlier["parameters"].get("other parts", []), earlier["command"]]
    parameters["other parts"] = sorted({part for part in parts if part != command()})
    return [row for row in earlier["rows"] if (row[0] if keys == 1 else tuple(row[:keys])) not in own]


def write(
    name: str,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    parameters: dict[str, Any],
    notes: Sequence[str] = (),
) -> Path:
    """Write benchmarks/results/NAME.json, which the tables of the docs are generated from."""
    machine = {"processor": processor(), "threads": str(thread_count()), "python": platform.python_version()}
    machine["load before"] = f"{LOAD_BEFORE:.1f}"
    for number, device in enumerate(cuda_devices()):
        machine[f"gpu {number}"] = device
    driver = nvidia_driver()
    if driver is not None:
        machine["driver"] = driver
    result = {
        "title": title,
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "machine": machine,
        "command": command(),
        "parameters": parameters,
        "columns": list(columns),
        "rows": [list(row) for row in rows],
        "notes": list(notes),
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return path
