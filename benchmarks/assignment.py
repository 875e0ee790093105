"""Quadratic assignment (QAPLIB): time to the best known value, and gaps.

    python benchmarks/assignment.py FOLDER [--backend cuda] [--seeds 5] [--seconds 10] [--starts trails perturbed]
    python benchmarks/assignment.py FOLDER --beside --backend cpu [--acotspqap PROGRAM] [--seconds 20]

FOLDER contains .dat files, all of which are measured unless --only names some. A run ends at the best known value. The
hard instances, ``HARD``, get twice --seconds and three seeds at most. ``--beside`` compares ``GPUMMASQAP()`` with SciPy
(FAQ and 2-opt from random starts until the time ends, the better of both) and with MAX-MIN Ant System of ACOTSPQAP with
short tabu search, all on one core.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import Table, gap, parser_for
from pymoo.optimize import minimize
from scipy.optimize import quadratic_assignment

from pymoo_gpuaco import GPUMMASQAP, QAP, ColonyTermination, load_qap
from pymoo_gpuaco.assignment.parameters import MOST_TABU_ITERATIONS
from pymoo_gpuaco.runtime.clock import CLOCK

HARD = ("tai40a", "tai50a", "tai60a", "tai80a", "tai100a", "tho150", "tai150b", "tai256c")
MOST_SEEDS_OF_HARD = 3
EARLY = 1.0  # s
MOST_OF_2OPT = 50  # locations
BESIDE = ("nug30", "sko100a", "tai60a", "tai100a", "tai100b")


class Watch:
    """Callback: time of the best value, and the best value after ``EARLY`` seconds."""

    def __init__(self) -> None:
        self.best, self.at, self.early = float("inf"), 0.0, float("inf")

    def __call__(self, algorithm: Any) -> None:
        now = CLOCK.wall() - algorithm.start_time
        if now <= EARLY:
            self.early = min(self.early, float(algorithm.opt[0].F[0]))
        if algorithm.opt[0].F[0] < self.best:
            self.best, self.at = float(algorithm.opt[0].F[0]), now


def run(problem: QAP, seconds: float, seed: int, **arguments: Any) -> Watch:
    """Run until the best known value or for some seconds."""
    watch = Watch()
    minimize(
        problem, GPUMMASQAP(**arguments), ColonyTermination(seconds=seconds, stagnation=None, n_max_gen=None),
        seed=seed, callback=watch,
    )  # fmt: skip
    return watch


def gap_of(value: float, problem: QAP) -> float:
    """Return the gap in percent; of a best known value of 0 the difference."""
    return gap(value, problem.best_known) if problem.best_known else value


def measure(problems: dict[str, QAP], arguments: Any) -> None:
    """Measure `GPUMMASQAP()` alone; several starts are another result than one."""
    several = len(arguments.starts) > 1
    table = Table(
        f"{'gpu' if arguments.backend == 'cuda' else 'cpu'}_assignment{'_starts' if several else ''}",
        "Quadratic assignment: starts by trails and by perturbing the best placement"
        if several
        else "Quadratic assignment: time to the best known value, and gap",
        "instance | start | locations | best known | reached | median s to it:2 | gap %, 1 s:3 | gap %, end:3 | "
        "limit s",
        {
            "algorithm": "GPUMMASQAP()",
            "seconds": arguments.seconds,
            "seconds of hard ones": 2 * arguments.seconds,
        },
        ["A gap is the mean of all seeds. A run ends at the best known value."],
    )
    if arguments.add:
        table.keep_others(problems)
    for name, problem in problems.items():
        hard = name in HARD
        seconds, seeds = arguments.seconds * (1 + hard), range(1, arguments.seeds + 1)
        for start in arguments.starts:
            given = {"backend": arguments.backend, "start": start}
            if arguments.tabu:
                given["tabu_iterations"] = min(arguments.tabu * problem.n_var, MOST_TABU_ITERATIONS)
            minimize(problem, GPUMMASQAP(**given), ("n_gen", 1), seed=0)  # compiles
            found = [run(problem, seconds, s, **given) for s in seeds[: MOST_SEEDS_OF_HARD if hard else None]]
            times = [one.at if gap_of(one.best, problem) <= 0.0 else np.inf for one in found]
            median = statistics.median(times)
            early = [one.early for one in found]
            reached = f"{sum(np.isfinite(times))} of {len(times)}"
            table.add(
                name,
                start if not arguments.tabu else f"{start}, {arguments.tabu} n",
                problem.n_var,
                problem.best_known,
                reached,
                median if np.isfinite(median) else None,
                statistics.mean(gap_of(v, problem) for v in early) if np.isfinite(early).all() else None,
                statistics.mean(gap_of(one.best, problem) for one in found),
                seconds,
            )
    table.write(lambda row: (row[0] in HARD, row[0]))


def run_scipy(problem: QAP, seconds: float, seed: int) -> float:
    """Return the least cost by FAQ and 2-opt, in turn from random starts; 2-opt of many locations takes minutes."""
    random, best, until = np.random.default_rng(seed), np.inf, time.process_time() + seconds
    while time.process_time() < until:
        for method, options in [("faq", {"P0": "randomized"}), ("2opt", {})][
            : 1 + (problem.n_var <= MOST_OF_2OPT)
        ]:
            found = quadratic_assignment(
                problem.flow, problem.distance, method=method, options={**options, "rng": random}
            )
            best = min(best, problem.costs(found.col_ind[None])[0])
    return float(best)


def run_acotspqap(program: Path, file: Path, seconds: float, seed: int, best: float | None) -> float:
    """Return the least cost of MMAS with short tabu search."""
    options = ["--mmas", "-l", "3", "-r", "1", "-s", "1", "-t", str(seconds), "-o", f"{best:.0f}"]
    command = [str(program.resolve()), "-i", str(file.resolve()), *options, "--seed", str(seed)]
    with tempfile.TemporaryDirectory() as folder:  # for the files that it writes
        output = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout
    return float(min(map(int, re.findall(r"^best (\d+)", output, re.MULTILINE))))


def compare(problems: dict[str, QAP], arguments: Any) -> None:
    """Measure other programs beside, on one core. All times are processor time."""
    os.environ["PYMOO_GPUACO_THREADS"] = "1"
    CLOCK.wall = CLOCK.monotonic = time.process_time
    peers = ["SciPy"] + ["ACOTSPQAP"] * (arguments.acotspqap is not None)
    header = "instance | locations | gap %:3" + "".join(f" | {peer} gap %:3" for peer in peers)
    table = Table(
        "cpu_assignment_beside", f"Quadratic assignment: gap after {arguments.seconds:g} s of one core", header,
        {"runs of each cell": arguments.seeds, "seconds": arguments.seconds},
        [
            "Mean gaps; processor time. SciPy: FAQ, up to 50 locations also 2-opt, from random starts.",
            "ACOTSPQAP: --mmas -l 3.",
        ],
    )  # fmt: skip
    for name in BESIDE:
        problem, cells, seeds = problems[name], [], range(1, arguments.seeds + 1)
        cells.append([run(problem, arguments.seconds, seed, backend="cpu").best for seed in seeds])
        cells.append([run_scipy(problem, arguments.seconds, seed) for seed in seeds])
        if arguments.acotspqap is not None:
            file = arguments.folder / f"{name}.dat"
            cells.append(
                [
                    run_acotspqap(arguments.acotspqap, file, arguments.seconds, s, problem.best_known)
                    for s in seeds
                ]
            )
        table.add(
            name, problem.n_var, *(statistics.mean(gap_of(v, problem) for v in values) for values in cells)
        )
    table.write()


def main() -> None:
    parser = parser_for(__doc__, seeds=5, add=True, backend="cuda")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--starts", nargs="+", choices=("trails", "perturbed"), default=["trails"])
    parser.add_argument("--tabu", type=int, help="iterations of a tabu search for each location")
    parser.add_argument("--only", nargs="+", help="names of instances")
    parser.add_argument("--beside", action="store_true", help="other programs, on one core")
    parser.add_argument("--acotspqap", type=Path, help="its program acoqap")
    arguments = parser.parse_args()
    files = {file.stem: file for file in sorted(arguments.folder.glob("*.dat"))}
    loaded = {name: load_qap(file) for name, file in files.items() if name in (arguments.only or files)}
    problems = {name: problem for name, problem in loaded.items() if problem.best_known is not None}
    (compare if arguments.beside else measure)(problems, arguments)


if __name__ == "__main__":
    main()
