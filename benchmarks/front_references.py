"""Write down the best front known of an instance: several runs of GPUMOACO, and points from elsewhere, united.

    python benchmarks/front_references.py FOLDER kroA100+kroB100 --seconds 250 --seeds 1 2 3
    python benchmarks/front_references.py FOLDER kroA100+kroB100 --points FILE.csv --source "who found them"

Each call adds to benchmarks/references/fronts/NAME.json, so that it can be made in pieces.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
from front_problems import problem_of
from front_runs import METHODS, Points, record
from options import parser_for
from record import ROOT, commit

from pymoo_gpuaco.fronts.stairs import stairs_of

REFERENCES = ROOT / "benchmarks" / "references" / "fronts"


def read_reference(name: str) -> Points:
    """Points (p, 2) of the best front known."""
    text = (REFERENCES / f"{name}.json").read_text(encoding="utf-8")
    return np.array(json.loads(text)["points"], np.float64)


def unite(name: str, points: Points, source: str) -> int:
    """Add points to a reference; return how many of them are on it now."""
    path = REFERENCES / f"{name}.json"
    kept = {"sources": [], "points": []}
    if path.is_file():
        kept = json.loads(path.read_text(encoding="utf-8"))
    together = np.concatenate([np.array(kept["points"], np.float64).reshape(-1, 2), points])
    front = together[stairs_of(together)]
    known = {tuple(point) for point in points.tolist()}
    own = sum(tuple(point) in known for point in front.tolist())
    line = f"{source}, {datetime.date.today().isoformat()}: {len(points)} points, {own} of them on the front"
    REFERENCES.mkdir(parents=True, exist_ok=True)
    written = {"name": name, "sources": [*kept["sources"], line], "points": front.tolist()}
    path.write_text(json.dumps(written) + "\n", encoding="utf-8")
    return own


def main() -> None:
    """Add runs, or points, to a reference."""
    parser = parser_for(__doc__)
    parser.add_argument("name", help="such as kroA100+kroB100")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--points", type=Path, help="CSV of two columns, instead of runs")
    parser.add_argument("--source", help="where these are from")
    given = parser.parse_args()
    if given.points is not None:
        if not given.source:
            parser.error("--points needs --source")
        print(unite(given.name, np.loadtxt(given.points, delimiter=",", ndmin=2), given.source))
        return
    problem = problem_of(given.folder, given.name)
    for seed in given.seeds:
        points = record(METHODS["GPUMOACO"](problem, seed), [given.seconds])[0]
        source = f"GPUMOACO on the CPU, commit {commit()}, {given.seconds:g} s, seed {seed}"
        print(seed, len(points), unite(given.name, points, source))


if __name__ == "__main__":
    main()
