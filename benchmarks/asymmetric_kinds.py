"""Asymmetric instances of five kinds, GPUMemetic() beside LKH: how far is a short run from the best that is known?

    python benchmarks/asymmetric_kinds.py [--kinds disk ..] [--cities 1000 3000] [--add] [--backend cpu]
        [--seeds 3] [--seconds 10] [--long-seeds 2] [--long 60] [--lkh 200]

The kinds are those of J. Cirasella, D. S. Johnson, L. A. McGeoch and W. Zhang, "The asymmetric traveling salesman
problem: algorithms, instance generators, and tests", ALENEX 2001, made anew from their description. LKH 3 is that of
the package elkai: one run on one core in a process of its own, with nothing beside it, stopped after --lkh seconds; 0
leaves it out, and tells what it found before. An instance takes --seeds times --seconds, --long-seeds times --long and
what LKH takes. Gaps are told to the best length known, see ``asymmetric_references.py``; a shorter one that is found
here takes its place there, and is printed. With --add other instances stay that were measured at this commit, and of
the same ones what is left out here by 0 seeds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from asymmetric_references import keep_best, keep_lkh, known_of
from numpy.typing import NDArray
from options import parser_for
from record import RESULTS, commit, rows_of_others, write
from scipy.sparse.csgraph import floyd_warshall
from timed_runs import gap, run_for

from pymoo_gpuaco import TSP

SIDE = 1_000_000


def closed_random(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Random lengths, and the shortest way wherever that is shorter: the triangle inequality holds."""
    return floyd_warshall(rng.integers(1, SIDE, (n, n)).astype(float))


def tilted_drum(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A drill over a tilted drum: turning it takes 2 for each unit, moving the drill 4 uphill and 3 downhill."""
    x, y = rng.integers(0, SIDE, (2, n)).astype(float)
    dx, dy = np.abs(x[:, None] - x), y[None, :] - y[:, None]
    return 2.0 * dx + np.where(dy >= 0.0, 4.0 * dy, -3.0 * dy)


def disk(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Files on a turning disk: the head moves across tracks while it turns, and waits for the file to come by."""
    start, end = rng.integers(0, SIDE, (2, n)).astype(float)
    track_of_start, track_of_end = rng.integers(0, SIDE, (2, n)) / 10.0
    seek = np.abs(track_of_end[:, None] - track_of_start)
    turn = (start[None, :] - end[:, None]) % SIDE
    return turn + SIDE * np.maximum(0.0, np.ceil((seek - turn) / SIDE))


def stacker_crane(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Loads to be carried a short way each: the crane goes empty from where one ends to where the next begins."""
    start = rng.integers(0, SIDE, (n, 2)).astype(float)
    end = start + rng.integers(-SIDE, SIDE + 1, (n, 2)) / n**0.5
    return np.rint(np.hypot(*(end[:, None] - start[None]).transpose(2, 0, 1)))


def flow_shop(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Jobs without waiting on 50 machines: by how much later one must begin that comes after another."""
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
COLUMNS = (
    "kind",
    "cities",
    "best known",
    "from",
    "runs",
    "mean gap %",
    "worst %",
    "wall, s",
    "long runs",
    "LKH, gap %",
    "LKH, s",
)


def run_lkh(matrix: NDArray[np.float64], answer: Any) -> None:
    """One run of LKH 3 on an asymmetric matrix, in a process of its own."""
    import elkai

    before = time.perf_counter()
    tour = elkai.DistanceMatrix(matrix.astype(int).tolist()).solve_tsp(runs=1)
    seconds = time.perf_counter() - before
    answer.put((float(matrix[tour[:-1], tour[1:]].sum()), seconds))


def lkh(matrix: NDArray[np.float64], most: float) -> tuple[float, float] | None:
    """Length and seconds of LKH, None where it was not done after ``most`` seconds."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=run_lkh, args=(matrix, answer), daemon=True)
    process.start()
    try:
        return answer.get(timeout=most)
    except queue.Empty:
        return None
    finally:
        process.terminate()
        process.join()


def instance(kind: str, n: int) -> NDArray[np.float64]:
    """The matrix of a kind; each kind and size has one."""
    matrix = KINDS[kind](n, np.random.default_rng(1000 * n + list(KINDS).index(kind)))
    np.fill_diagonal(matrix, 0.0)
    return matrix


def merged(new: dict[str, Any], old: dict[str, Any]) -> dict[str, Any]:
    """One row of two on the same instance: the better best length, and gaps to it."""
    best = min((row for row in (old, new) if row["best known"]), key=lambda row: row["best known"])

    def of(name: str) -> Any:
        source = new if new[name] is not None else old
        value = source[name]
        if value is None or not name.endswith("%"):
            return value
        return round(gap((1.0 + value / 100.0) * source["best known"], best["best known"]), 4)

    row = {name: of(name) for name in COLUMNS}
    long_runs = (new["long runs"] or 0) + (old["long runs"] or 0)
    return {
        **row,
        "best known": best["best known"],
        "from": best["from"],
        "long runs": long_runs or None,
    }


def measure(kind: str, n: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The row of one instance."""
    matrix = instance(kind, n)
    known_of(kind, n, matrix)  # refuses another matrix before hours have gone by
    problem = TSP(matrix=matrix)
    of_lkh = lkh(matrix, arguments.lkh) if arguments.lkh else None
    run_for(problem, 0.1, 0, arguments.backend)  # compiles
    first = arguments.first_seed
    runs = [
        run_for(problem, arguments.seconds, seed, arguments.backend)
        for seed in range(first, first + arguments.seeds)
    ]
    long = [
        run_for(problem, arguments.long, 100 + seed, arguments.backend).length
        for seed in range(first, first + arguments.long_seeds)
    ]
    lengths = {"a run": min((run.length for run in runs), default=float("inf"))}
    lengths["a long run"] = min(long, default=float("inf"))
    if of_lkh:
        keep_lkh(kind, n, matrix, of_lkh)
        lengths["LKH"] = of_lkh[0]
    found = min(lengths, key=lambda name: lengths[name])
    if lengths[found] < float("inf") and keep_best(
        kind, n, matrix, lengths[found], f"{found} of this script", len(runs) + len(long)
    ):
        print(f"shorter than any known of {kind} {n}: {lengths[found]:.10g}, by {found}", flush=True)
    known = known_of(kind, n, matrix)
    of_lkh = of_lkh or known.lkh
    best = float("inf") if known.length is None else known.length
    gaps = [gap(run.length, best) for run in runs]
    row = (
        kind,
        n,
        known.length,
        next((name for name, length in lengths.items() if length == best), "earlier runs")
        if known.length
        else None,
        len(runs) or None,
        round(statistics.mean(gaps), 4) if gaps else None,
        round(max(gaps), 4) if gaps else None,
        round(max(run.wall for run in runs), 2) if runs else None,
        len(long) or None,
        round(gap(of_lkh[0], best), 4) if of_lkh else None,
        round(of_lkh[1], 1) if of_lkh else None,
    )
    return dict(zip(COLUMNS, row, strict=True))


def begins_anew(file: str, measured: list[tuple[str, int]]) -> bool:
    """Whether what is written is of another commit, and all of it is measured now."""
    path = RESULTS / f"{file}.json"
    if not path.is_file():
        return True
    earlier = json.loads(path.read_text(encoding="utf-8"))
    return earlier["commit"] != commit() and all((row[0], row[1]) in measured for row in earlier["rows"])


def main() -> None:
    parser = parser_for(__doc__, folder="none", seeds=3, add=True, backend="cuda")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--cities", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--long", type=float, default=60.0, help="seconds of a run for the best length")
    parser.add_argument("--long-seeds", type=int, default=2)
    parser.add_argument("--lkh", type=float, default=200.0, help="seconds that LKH has at most")
    arguments = parser.parse_args()
    name = "gpu" if arguments.backend == "cuda" else "cpu"
    parameters: dict[str, Any] = {"algorithm": "GPUMemetic()"}
    parameters |= {key: getattr(arguments, key) for key in ("seconds", "long", "lkh")}
    file = f"{name}_asymmetric_kinds"
    all_anew = [(kind, n) for n in arguments.cities for kind in arguments.kinds]
    keeps = arguments.add and not begins_anew(file, all_anew)
    written = rows_of_others(file, (), parameters) if keeps else []
    rows = {(row[0], row[1]): dict(zip(COLUMNS, row, strict=True)) for row in written}
    for n in arguments.cities:
        for kind in arguments.kinds:
            row = measure(kind, n, arguments)
            rows[kind, n] = merged(row, rows[kind, n]) if (kind, n) in rows else row
            print(rows[kind, n], flush=True)
            order = sorted(rows, key=lambda key: (key[1], list(KINDS).index(key[0])))
            write(
                file,
                "Asymmetric instances of five kinds: GPUMemetic() beside LKH 3",
                COLUMNS,
                [list(rows[key].values()) for key in order],
                parameters,
                [
                    "Best known: the shortest of these runs, of earlier and longer ones, and of LKH.",
                    "LKH 3: elkai, one run on one core, not anew for each commit; empty where it was not done in time.",
                ],
            )


if __name__ == "__main__":
    main()
