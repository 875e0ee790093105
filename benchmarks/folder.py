"""The instances that a benchmark is given: TSPLIB files, and maps that are made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pymoo_gpuaco import TSP, load_tsp
from pymoo_gpuaco.problems.datasets import available_instances


def problems_of(folder: Path, names: Iterable[str]) -> dict[str, TSP]:
    """Load the instances that the folder or the package has, or that are made (random:N); say which are left out."""
    problems = {}
    for name in names:
        path = next((p for p in (folder / f"{name}.tsp", folder / f"{name}.atsp") if p.exists()), None)
        if path is not None:
            problems[name] = load_tsp(path)
        elif name in available_instances() or name.startswith("random:"):
            problems[name] = load_tsp(name)
        else:
            print(f"{name}: not in {folder}, left out")
    return problems
