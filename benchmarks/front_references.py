"""Extend the best known front of an instance by the fronts of runs or of a file.

    python benchmarks/front_references.py FOLDER kroA100+kroB100 --seeds 3 --seconds 250 [--backend cuda]
    python benchmarks/front_references.py FOLDER kroA100+kroB100 --csv FILE.csv --source "who found them"

The front is in benchmarks/references/fronts/NAME.json. A CSV file has two columns, the lengths by both objectives.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
from front_problems import problem_of
from front_runs import METHODS, Points, record
from harness import REFERENCES, commit, parser_for, processor

from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.pareto.front_2d import nondominated
from pymoo_gpuaco.runtime.threads import thread_count

FRONTS = REFERENCES / "fronts"
_METHODS = {"cpu": "GPU2PPLS", "cuda": "GPU2PPLS, CUDA"}


def read_reference(name: str) -> Points:
    """Return the points (p, 2) of the best known front."""
    text = (FRONTS / f"{name}.json").read_text(encoding="utf-8")
    return np.array(json.loads(text)["points"], np.float64)


def unite(name: str, points: Points, source: str) -> int:
    """Add points to a reference; return the number of them that are on the new front."""
    path = FRONTS / f"{name}.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"sources": [], "points": []}
    together = np.concatenate([np.array(known["points"], np.float64).reshape(-1, 2), points])
    front = together[nondominated(together)]
    given = {tuple(point) for point in points.tolist()}
    own = sum(tuple(point) in given for point in front.tolist())
    line = f"{source}: {len(points)} points, {own} of them on the front"
    FRONTS.mkdir(parents=True, exist_ok=True)
    written = {"name": name, "sources": [*known["sources"], line], "points": front.tolist()}
    path.write_text(json.dumps(written) + "\n", encoding="utf-8")
    return own


def main() -> None:
    """Add the points of runs, or of a file, to the reference."""
    parser = parser_for(__doc__, seeds=1, backend="cpu")
    parser.add_argument("name", help="such as kroA100+kroB100")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--csv", type=Path, help="file of points, with --source")
    parser.add_argument("--source", help="origin of the points of --csv")
    given = parser.parse_args()
    name, today = given.name, datetime.date.today().isoformat()
    if given.csv is not None:
        if given.source is None:
            parser.error("--csv needs --source")
        points = np.loadtxt(given.csv, delimiter=",", ndmin=2)
        print(len(points), unite(name, points, f"{given.source}, {today}"))
        return
    device = cuda_devices()[0] if given.backend == "cuda" else f"{thread_count()} threads of {processor()}"
    for seed in range(1, given.seeds + 1):
        points = record(
            METHODS[_METHODS[given.backend]](problem_of(given.folder, name), seed), [given.seconds]
        )[0]
        source = f"GPU2PPLS on {device}, commit {commit()}, {given.seconds:g} s, seed {seed}, {today}"
        print(len(points), unite(name, points, source), flush=True)


if __name__ == "__main__":
    main()
