"""The TSPLIB files that a benchmark is given."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pymoo_gpuaco import TSP, load_tsp


def problems_of(folder: Path, names: Iterable[str]) -> dict[str, TSP]:
    """Load the instances that the folder has; say which are left out."""
    problems = {}
    for name in names:
        path = folder / f"{name}.tsp"
        if path.exists():
            problems[name] = load_tsp(path)
        else:
            print(f"{name}: no {path}, left out")
    return problems
