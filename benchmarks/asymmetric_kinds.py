"""Asymmetric instances of five kinds, GPUMMAS() beside LKH: how far is a short run from the best that is known?

    python benchmarks/asymmetric_kinds.py [--cities 1000 3000] [--seconds 10] [--seeds 2] [--long 30] [--lkh 200]

The kinds are those of J. Cirasella, D. S. Johnson, L. A. McGeoch and W. Zhang, "The asymmetric traveling salesman
problem: algorithms, instance generators, and tests", ALENEX 2001, made anew from their description. LKH 3 is that of
the package elkai: one run each in a process of its own, beside ours, stopped after --lkh seconds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from record import write
from scipy.sparse.csgraph import floyd_warshall
from timed_runs import run_for

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
    "mean gap %",
    "worst %",
    "wall, s",
    "LKH, gap %",
    "LKH, s",
)


def run_lkh(matrix: NDArray[np.float64], seed: int, answer: Any) -> None:
    """One run of LKH 3 on an asymmetric matrix, in a process of its own."""
    import elkai

    before = time.perf_counter()
    tour = elkai.DistanceMatrix(matrix.astype(int).tolist()).solve_tsp(runs=1)
    seconds = time.perf_counter() - before
    answer.put((float(matrix[tour[:-1], tour[1:]].sum()), seconds))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cities", type=int, nargs="+", default=[1000, 3000])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument(
        "--long", type=float, default=30.0, help="seconds of a run that looks for the best length"
    )
    parser.add_argument("--lkh", type=float, default=200.0, help="seconds that LKH has")
    parser.add_argument("--backend", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    cases = []
    for n in arguments.cities:
        for number, (kind, make) in enumerate(KINDS.items()):
            matrix = make(n, np.random.default_rng(1000 * n + number))
            np.fill_diagonal(matrix, 0.0)
            queue = context.Queue()
            process = context.Process(target=run_lkh, args=(matrix, 1, queue), daemon=True)
            process.start()
            cases.append((kind, n, matrix, process, queue, time.perf_counter()))
    rows = []
    for kind, n, matrix, process, queue, began in cases:
        problem = TSP(matrix=matrix)
        run_for(problem, 0.1, 0, arguments.backend)  # compiles
        runs = [
            run_for(problem, arguments.seconds, seed, arguments.backend)
            for seed in range(1, arguments.seeds + 1)
        ]
        long = run_for(problem, arguments.long, 99, arguments.backend).length
        process.join(max(0.0, arguments.lkh - (time.perf_counter() - began)))
        lkh, lkh_seconds = (None, None) if queue.empty() else queue.get()
        process.terminate()
        lengths = {"a long run": long, "LKH": lkh or float("inf"), "a run": min(run.length for run in runs)}
        best = min(lengths.values())
        gaps = [100.0 * (run.length / best - 1.0) for run in runs]
        rows.append(
            [
                kind,
                n,
                best,
                next(name for name, length in lengths.items() if length == best),
                round(statistics.mean(gaps), 4),
                round(max(gaps), 4),
                round(max(run.wall for run in runs), 2),
                None if lkh is None else round(100.0 * (lkh / best - 1.0), 4),
                None if lkh is None else round(lkh_seconds, 1),
            ]
        )
        print(dict(zip(COLUMNS, rows[-1], strict=True)), flush=True)
    name = "gpu" if arguments.backend == "cuda" else "cpu"
    about = {name: getattr(arguments, name) for name in ("seconds", "seeds", "long", "lkh")}
    print(
        write(
            f"{name}_asymmetric_kinds",
            "Asymmetric instances of five kinds: GPUMMAS() beside LKH 3",
            COLUMNS,
            rows,
            {"algorithm": "GPUMMAS()", **about},
            [
                "Best known: the shortest of these runs, of one long run and of LKH.",
                "LKH 3: elkai, one run on one core beside the others; empty where it was not done in time.",
            ],
        )
    )


if __name__ == "__main__":
    main()
