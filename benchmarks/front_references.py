"""Write down the best front known of an instance: what several runs, and others, have found, united.

    python benchmarks/front_references.py run FOLDER kroA100+kroB100 --seed 1 --seconds 250 --out RUNS
    python benchmarks/front_references.py unite RUNS/*.csv
    python benchmarks/front_references.py unite FILE.csv --name kroA100+kroB100 --source "who found them"

A run is one CSV file of two columns, whose first lines tell what it is of and who found it. They are united in
benchmarks/references/fronts/NAME.json, which each call adds to, so that it can be made in pieces.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path

import numpy as np
from front_problems import problem_of
from front_runs import METHODS, Points, record
from options import parser_for
from record import ROOT, commit, processor

from pymoo_gpuaco.backends import cuda_devices
from pymoo_gpuaco.pareto.front_2d import nondominated
from pymoo_gpuaco.runtime.threads import thread_count

REFERENCES = ROOT / "benchmarks" / "references" / "fronts"
_NAME, _SOURCE = "# name: ", "# source: "
_METHODS = {"cpu": "GPU2PPLS", "cuda": "GPU2PPLS, CUDA"}


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
    front = together[nondominated(together)]
    known = {tuple(point) for point in points.tolist()}
    own = sum(tuple(point) in known for point in front.tolist())
    line = f"{source}: {len(points)} points, {own} of them on the front"
    REFERENCES.mkdir(parents=True, exist_ok=True)
    written = {"name": name, "sources": [*kept["sources"], line], "points": front.tolist()}
    path.write_text(json.dumps(written) + "\n", encoding="utf-8")
    return own


def run(folder: Path, name: str, backend: str, seed: int, seconds: float, out: Path) -> Path:
    """Search for so many seconds and write the front to a file in ``out``, whose path is returned."""
    points = record(METHODS[_METHODS[backend]](problem_of(folder, name), seed), [seconds])[0]
    device = cuda_devices()[0] if backend == "cuda" else f"{thread_count()} threads of {processor()}"
    source = f"GPU2PPLS on {device}, commit {commit()}, {seconds:g} s, seed {seed}, {_today()}"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name.replace('+', '_')}.{backend}.{seconds:g}s.seed{seed}.csv"
    np.savetxt(path, points, "%.17g", ",", header=f"{_NAME}{name}\n{_SOURCE}{source}", comments="")
    return path


def read_run(path: Path) -> tuple[str | None, str | None, Points]:
    """Return the name and the source that a file tells, None where it does not, and its points (p, 2)."""
    told: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines()[:2]:
        told.update((begin, line.removeprefix(begin)) for begin in (_NAME, _SOURCE) if line.startswith(begin))
    return told.get(_NAME), told.get(_SOURCE), np.loadtxt(path, delimiter=",", ndmin=2)


def _today() -> str:
    return datetime.date.today().isoformat()


def main() -> None:
    """Make a run, or unite runs."""
    parser = parser_for(__doc__, folder="none")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="make a run")
    one.add_argument("folder", type=Path, help="of TSPLIB files")
    one.add_argument("name", help="such as kroA100+kroB100")
    one.add_argument("--backend", choices=tuple(_METHODS), default="cpu")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--seconds", type=float, default=60.0)
    one.add_argument("--out", type=Path, required=True, help="folder for the file")
    several = commands.add_parser("unite", help="unite runs")
    several.add_argument("files", type=Path, nargs="+", help="CSV of two columns")
    several.add_argument("--name", help="of files that do not tell it")
    several.add_argument("--source", help="where these are from, of files that do not tell it")
    given = parser.parse_args()
    if given.command == "run":
        print(run(given.folder, given.name, given.backend, given.seed, given.seconds, given.out))
        return
    for path in given.files:
        name, source, points = read_run(path)
        if source is None and given.source is not None:
            source = f"{given.source}, {_today()}"
        if (name := name or given.name) is None or source is None:
            sys.exit(f"{path} tells no name or no source: --name and --source do")
        print(name, path.name, len(points), unite(name, points, source), sep="\t")


if __name__ == "__main__":
    main()
