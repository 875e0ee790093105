"""The best lengths known of the instances of ``asymmetric_kinds.py``, and what LKH 3 found there.

They stand in benchmarks/references/asymmetric_kinds.json, each with the sha256 of its matrix: of another one a length
means nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from record import ROOT, command, commit, processor
from references import FIELDS

from pymoo_gpuaco.runtime.threads import thread_count

PATH = ROOT / "benchmarks" / "references" / "asymmetric_kinds.json"
BEST, LKH = "", ", LKH 3"  # what a figure's name ends with
_WHAT = {BEST: "best length known", LKH: "length and seconds of one run of LKH 3"}


class Known(NamedTuple):
    """What is known of one instance."""

    length: float | None  # of the shortest tour known
    source: str | None
    lkh: tuple[float, float] | None  # length and seconds of LKH 3


def fingerprint(matrix: NDArray[np.float64]) -> str:
    """The sha256 of a matrix (n, n), by which two machines know that they have the same one."""
    return hashlib.sha256(np.ascontiguousarray(matrix, "<f8").tobytes()).hexdigest()


def known_of(kind: str, n: int, matrix: NDArray[np.float64], path: Path = PATH) -> Known:
    """What is known of a kind's instance of n cities. Raises SystemExit where that was another matrix."""
    figures = _file(path)["figures"]
    name, own = f"{kind} {n}", fingerprint(matrix)
    best, of_lkh = figures.get(name + BEST), figures.get(name + LKH)
    for figure in (best, of_lkh):
        if figure is not None and figure["values"]["sha256"] != own:
            raise SystemExit(
                f"{path.name}: the matrix of {name} is another one, its lengths mean nothing here"
            )
    return Known(
        None if best is None else best["values"]["length"],
        None if best is None else best["where"],
        None if of_lkh is None else (of_lkh["values"]["length"], of_lkh["values"]["seconds"]),
    )


def keep_best(
    kind: str, n: int, matrix: NDArray[np.float64], length: float, source: str, runs: int, path: Path = PATH
) -> bool:
    """Write a length down, found by so many runs, if it is shorter than what is known; return whether it is."""
    known = known_of(kind, n, matrix, path)
    if known.length is not None and length >= known.length:
        return False
    _write(f"{kind} {n}", BEST, matrix, source, {"length": length, "runs": runs}, path)
    return True


def keep_lkh(
    kind: str, n: int, matrix: NDArray[np.float64], found: tuple[float, float], path: Path = PATH
) -> None:
    """Write down what LKH 3 found here, in place of an earlier run."""
    known_of(kind, n, matrix, path)
    values = {"length": found[0], "seconds": round(found[1], 1)}
    _write(f"{kind} {n}", LKH, matrix, "the package elkai", values, path)


def _file(path: Path) -> dict[str, Any]:
    if path.is_file():
        file: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return file
    return {"source": "benchmarks/asymmetric_kinds.py", "figures": {}}


def _write(
    name: str, of: str, matrix: NDArray[np.float64], source: str, values: dict[str, Any], path: Path
) -> None:
    file = _file(path)
    told = (
        _WHAT[of],
        "length",
        source,
        f"{processor()}, {thread_count()} threads",
        datetime.date.today().isoformat(),
        commit(),
        None,
        command(),
        {**values, "sha256": fingerprint(matrix)},
    )
    file["figures"][name + of] = dict(zip(FIELDS, told, strict=True))
    path.write_text(json.dumps(file, indent=1) + "\n", encoding="utf-8")
