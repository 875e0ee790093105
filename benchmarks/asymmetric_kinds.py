"""Asymmetric instances of five kinds: gap of short runs of GPUMemetic() to the best known length, compared with LKH 3.

    python benchmarks/asymmetric_kinds.py [--kinds disk ..] [--cities 1000 3000] [--add] [--backend cpu]
        [--seeds 3] [--seconds 10]

The kinds are those of J. Cirasella, D. S. Johnson, L. A. McGeoch and W. Zhang, "The asymmetric traveling salesman
problem: algorithms, instance generators, and tests", ALENEX 2001, generated from their description.
references/asymmetric_kinds.json has the best known lengths, and length and time of one run of LKH 3 (package elkai, one
core), each with the sha256 of its matrix. Shorter lengths are printed, and gaps are relative to them. --add preserves
the rows of other instances.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable

import numpy as np
from harness import Table, gap, parser_for, runs_for, values
from numpy.typing import NDArray
from scipy.sparse.csgraph import floyd_warshall

from pymoo_gpuaco import TSP

SIDE = 1_000_000
HEADER = "kind | cities | best known | runs | mean gap %:4 | worst %:4 | wall, s:2 | LKH, gap %:4 | LKH, s:1"
NOTES = (
    "Best known: the shortest of these runs, of earlier and longer ones, and of LKH.",
    "LKH 3: elkai, one run on one core, not repeated for each commit; empty where it did not end in time.",
)


def closed_random(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return random distances, closed under shortest paths: the triangle inequality holds."""
    return floyd_warshall(rng.integers(1, SIDE, (n, n)).astype(float))


def tilted_drum(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return costs of a drill on a tilted drum, per unit: 2 for turning, 4 for moving uphill and 3 downhill."""
    x, y = rng.integers(0, SIDE, (2, n)).astype(float)
    dx, dy = np.abs(x[:, None] - x), y[None, :] - y[:, None]
    return 2.0 * dx + np.where(dy >= 0.0, 4.0 * dy, -3.0 * dy)


def disk(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return delays between files on a rotating disk: the head seeks the track, then waits for the file's start."""
    start, end = rng.integers(0, SIDE, (2, n)).astype(float)
    track_of_start, track_of_end = rng.integers(0, SIDE, (2, n)) / 10.0
    seek = np.abs(track_of_end[:, None] - track_of_start)
    turn = (start[None, :] - end[:, None]) % SIDE
    return turn + SIDE * np.maximum(0.0, np.ceil((seek - turn) / SIDE))


def stacker_crane(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return distances of a crane from the destination of a load to the origin of the next one."""
    start = rng.integers(0, SIDE, (n, 2)).astype(float)
    end = start + rng.integers(-SIDE, SIDE + 1, (n, 2)) / n**0.5
    return np.rint(np.hypot(*(end[:, None] - start[None]).transpose(2, 0, 1)))


def flow_shop(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return minimum delays between the starts of two jobs, on 50 machines without waiting."""
    times = rng.integers(0, 1001, (n, 50)).astype(float)
    done = np.cumsum(times, axis=1)
    before = done - times
    later = np.empty((n, n))
    for job in range(n):
        later[job] = (done[job] - before).max(axis=1)
    return later


KINDS: dict[str, Callable[[int, np.random.Generator], NDArray[np.float64]]] = {
    "closed random": closed_random,
    "tilted drum": tilted_drum,
    "disk": disk,
    "stacker crane": stacker_crane,
    "flow shop": flow_shop,
}


def instance(kind: str, n: int) -> NDArray[np.float64]:
    """Return the matrix of a kind and size; it is always the same."""
    matrix = KINDS[kind](n, np.random.default_rng(1000 * n + list(KINDS).index(kind)))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def known_of(name: str, matrix: NDArray[np.float64]) -> dict[str, float] | None:
    """Return the reference values of a matrix (n, n), or None. Raises SystemExit if they belong to another matrix."""
    try:
        known: dict[str, float] = values("asymmetric_kinds", name)
    except KeyError:
        return None
    if known["sha256"] != hashlib.sha256(np.ascontiguousarray(matrix, "<f8").tobytes()).hexdigest():
        raise SystemExit(f"asymmetric_kinds.json: {name} is of another matrix")
    return known


def measure(kind: str, n: int, seconds: float, seeds: int, backend: str, table: Table) -> None:
    """Run one instance and add its row."""
    matrix = instance(kind, n)
    known, lkh = known_of(f"{kind} {n}", matrix), known_of(f"{kind} {n}, LKH 3", matrix)
    runs = runs_for(TSP(matrix=matrix), seconds, seeds, backend)
    best = min(run.length for run in runs)
    if known is not None and best < known["length"]:
        print(f"shorter than any known of {kind} {n}: {best:.10g}")
    best = best if known is None else min(best, known["length"])
    gaps = [gap(run.length, best) for run in runs]
    of_lkh = (None, None) if lkh is None else (gap(lkh["length"], best), lkh["seconds"])
    worst_wall = max(run.wall for run in runs)
    table.add(kind, n, best, len(runs), statistics.mean(gaps), max(gaps), worst_wall, *of_lkh)


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=3, add=True, backend="cuda")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--cities", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--seconds", type=float, default=10.0)
    arguments = parser.parse_args()
    seconds, backend = arguments.seconds, arguments.backend
    name = "gpu_asymmetric_kinds" if backend == "cuda" else "cpu_asymmetric_kinds"
    title = "Asymmetric instances of five kinds: GPUMemetic() beside LKH 3"
    table = Table(name, title, HEADER, {"algorithm": "GPUMemetic()", "seconds": seconds}, NOTES)
    plan = [(kind, n) for n in arguments.cities for kind in arguments.kinds]
    if arguments.add:
        table.keep_others(set(plan), keys=2)
    for kind, n in plan:
        measure(kind, n, seconds, arguments.seeds, backend, table)
        table.write(lambda row: (row[1], list(KINDS).index(row[0])))


if __name__ == "__main__":
    main()
