"""All seven algorithms on ten instances, in equal time and with equally many tours, with and without local search.

    python benchmarks/family.py FOLDER [--seeds 5] [--seconds 2] [--tours 20] [--minutes 60] [--backend cpu]

FOLDER holds the TSPLIB files; instances that it lacks are left out. It takes an hour on a CPU: after ``--minutes`` no
further instance is begun, and those measured so far are compared. Colonies have the defaults of their papers, whole
tours and 20 candidates, so that what differs is the system. GPU2OptIHC is a local search and has no form without.

Ranks are those of median gaps, an instance a block. Friedman's test asks whether all algorithms rank alike, and
Nemenyi's whether one ranks like the best (J. Demsar, "Statistical comparisons of classifiers over multiple data sets",
JMLR 7, 2006).
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from folder import problems_of
from numpy.typing import NDArray
from pymoo.core.termination import TerminateIfAny, Termination
from pymoo.termination.max_eval import MaximumFunctionCallTermination
from pymoo.termination.max_time import TimeBasedTermination
from record import write
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from pymoo_gpuaco import ALL_ALGORITHMS, GPUMMAS, TSP, ColonyTermination, GPU2OptIHC

INSTANCES = (
    "eil51",
    "st70",
    "kroA100",
    "bier127",
    "u159",
    "kroA200",
    "lin318",
    "pcb442",
    "rat575",
    "rat783",
)
CANDIDATES = 20
#: tours a city are for local search; without it there are ten times as many, which take about as long
MORE_WITHOUT = 10
BUDGETS = ("time", "tours")
Cell = tuple[float, float, float]  # quartiles of the gap in percent: lower, median, upper


def algorithms(search: bool) -> list[str]:
    """Names of the algorithms that can run with local search, or without."""
    return [name for name, cls in ALL_ALGORITHMS.items() if search or cls is not GPU2OptIHC]


def make(name: str, search: bool, backend: str) -> Any:
    """An algorithm as it is compared."""
    cls = ALL_ALGORITHMS[name]
    if cls is GPU2OptIHC:
        return cls(backend=backend)
    whole_tours = {"construction": "full"} if cls is GPUMMAS else {}
    return cls(candidate_list_size=CANDIDATES, local_search=search, backend=backend, **whole_tours)


def ends(budget: str, problem: TSP, search: bool, options: argparse.Namespace) -> Termination:
    """A run's end: its budget, or the best known length."""
    optimum = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
    if budget == "time":
        return TerminateIfAny(optimum, TimeBasedTermination(options.seconds))
    tours = options.tours * problem.n_cities * (1 if search else MORE_WITHOUT)
    return TerminateIfAny(
        optimum, MaximumFunctionCallTermination(tours), TimeBasedTermination(options.most_seconds)
    )


def measure(problem: TSP, budget: str, search: bool, options: argparse.Namespace) -> list[Cell]:
    """Quartiles of the gap over the seeds, an algorithm a cell."""
    cells = []
    for name in algorithms(search):
        gaps = []
        for seed in range(1, options.seeds + 1):
            algorithm = make(name, search, options.backend)
            algorithm.setup(problem, termination=ends(budget, problem, search, options), seed=seed)
            gaps.append(100.0 * (float(algorithm.run().F[0]) / problem.best_known - 1.0))
        low, median, high = np.percentile(gaps, [25, 50, 75])
        cells.append((float(low), float(median), float(high)))
    return cells


def compare(medians: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Mean ranks (k,), the p-value of Friedman's test, and those of Nemenyi's against the best (k,).

    ``medians`` is (instances, k), k >= 3. With fewer than two instances, or where all are equal, there is no test: NaN.
    """
    blocks, k = medians.shape
    ranks = rankdata(np.round(medians, 6), axis=1).mean(axis=0)
    if blocks < 2 or np.ptp(ranks) == 0.0:
        return ranks, math.nan, np.full(k, math.nan)
    friedman = float(friedmanchisquare(*np.round(medians, 6).T).pvalue)
    # Nemenyi: differences of mean ranks over sqrt(k (k + 1) / (6 N)) are studentized ranges over sqrt(2)
    apart = (ranks - ranks.min()) / math.sqrt(k * (k + 1) / (6.0 * blocks))
    return ranks, friedman, studentized_range.sf(apart * math.sqrt(2.0), k, np.inf)


def table(
    budget: str, measured: dict[str, dict[bool, list[Cell]]], options: argparse.Namespace, all_done: bool
) -> Path:
    """Write what was measured under one budget: a row an algorithm, with local search and without."""
    rows = []
    for search in (True, False):
        cells = [by_search[search] for by_search in measured.values()]
        medians = np.array([[median for _, median, _ in row] for row in cells])
        ranks, friedman, nemenyi = compare(medians)
        for number, name in enumerate(algorithms(search)):
            texts = [f"{row[number][1]:.2f} ({row[number][0]:.2f} to {row[number][2]:.2f})" for row in cells]
            told = [_rounded(friedman), _rounded(float(nemenyi[number]))]
            rows.append(["yes" if search else "no", name, round(float(ranks[number]), 2), *told, *texts])
            print(rows[-1], flush=True)
    notes = [
        "Gap to the best known length in percent: median (lower to upper quartile) over the seeds.",
        "Friedman's p-value is for all algorithms of a kind, Nemenyi's for one against that of the least mean rank.",
    ]
    if budget == "tours":
        notes.append(f"No run is longer than {options.most_seconds:g} seconds, which climbers reach first.")
    if not all_done:
        notes.append(f"Instances that were not begun within {options.minutes:g} minutes are left out.")
    amount = (
        {"seconds": options.seconds}
        if budget == "time"
        else {"tours a city": options.tours, "without local search": options.tours * MORE_WITHOUT}
    )
    return write(
        f"{'gpu_' if options.backend == 'cuda' else ''}family_{budget}",
        "The family in equal time" if budget == "time" else "The family with equally many tours",
        ("local search", "algorithm", "mean rank", "Friedman p", "Nemenyi p", *measured),
        rows,
        {"seeds": options.seeds, **amount, "candidate_list_size": CANDIDATES},
        notes,
    )


def _rounded(p: float) -> float | None:
    return None if math.isnan(p) else round(p, 4)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", default=Path("."), type=Path)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--seeds", type=int, default=5, help="runs of each algorithm")
    parser.add_argument("--seconds", type=float, default=2.0, help="of a run in equal time")
    parser.add_argument("--tours", type=int, default=20, help="a city, of a run with local search")
    parser.add_argument("--most-seconds", type=float, default=4.0, help="of a run with equally many tours")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no instance is begun")
    parser.add_argument("--only", nargs="*", choices=INSTANCES, default=INSTANCES)
    options = parser.parse_args()
    started = time.monotonic()
    measured: dict[str, dict[str, dict[bool, list[Cell]]]] = {budget: {} for budget in BUDGETS}
    problems = problems_of(options.folder, options.only)
    for name, problem in problems.items():
        if time.monotonic() - started > 60.0 * options.minutes:
            break
        for budget in BUDGETS:
            measured[budget][name] = {
                search: measure(problem, budget, search, options) for search in (True, False)
            }
    for budget in BUDGETS:
        if measured[budget]:
            print(table(budget, measured[budget], options, len(measured[budget]) == len(problems)))


if __name__ == "__main__":
    main()
