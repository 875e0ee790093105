"""All algorithms on ten instances, in equal time and with equal numbers of tours, with and without local search.

    python benchmarks/family.py FOLDER [--minutes 60] [--seeds 5] [--backend cpu]

FOLDER contains the TSPLIB files; missing instances are skipped. ``--minutes`` are divided equally among the runs: an
hour on a CPU, ``--backend cuda --minutes 7`` on a GPU. A run with equal numbers of tours also ends at the time limit of
the runs in equal time; cells with such a run are marked by *. Colonies have the package's defaults, except 20
candidates. GPU2OptIHC is a local search and runs only with it.

Ranks are those of median gaps; a block is an instance. Friedman's test: do all algorithms have equal ranks? Nemenyi's
test: does an algorithm have the rank of the best? (J. Demsar, "Statistical comparisons of classifiers over multiple
data sets", JMLR 7, 2006.)
"""

from __future__ import annotations

import argparse
import math
from typing import Any, NamedTuple

import numpy as np
from harness import Table, gap, parser_for, problems_of
from numpy.typing import NDArray
from pymoo.core.termination import TerminateIfAny, Termination
from pymoo.termination.max_eval import MaximumFunctionCallTermination
from pymoo.termination.max_time import TimeBasedTermination
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from pymoo_gpuaco import ALL_ALGORITHMS, GPUFACO, TSP, ColonyTermination, GPU2OptIHC, GPUMemetic

INSTANCES = (
    "bier127",
    "kroA200",
    "a280",
    "lin318",
    "pcb442",
    "att532",
    "u574",
    "d657",
    "rat783",
    "pr1002",
)
CANDIDATES = 20
#: tours of a run with local search: some tens of generations with the default number of ants
TOURS = {"cpu": 1000, "cuda": 100_000}
#: factor of tours without local search, which takes about the same time
MORE_WITHOUT = 20
BUDGETS = ("time", "tours")
SHARE = 0.9  # share of the minutes for runs; the rest is for set-up


class Cell(NamedTuple):
    """Quartiles of the gap in percent."""

    low: float
    median: float
    high: float
    cut: bool  # a run ended at the time limit, before it had its number of tours


def algorithms(search: bool) -> list[str]:
    """Return the names of the algorithms that can run with (or without) local search."""
    return [
        name
        for name, cls in ALL_ALGORITHMS.items()
        if cls not in (GPUFACO, GPUMemetic) and (search or cls is not GPU2OptIHC)
    ]


def make(name: str, search: bool, backend: str) -> Any:
    """Create an algorithm with the arguments of the comparison."""
    cls = ALL_ALGORITHMS[name]
    if cls is GPU2OptIHC:
        return cls(backend=backend)
    return cls(candidate_list_size=CANDIDATES, local_search=search, backend=backend)


def seconds_of_a_run(minutes: float, instances: int, seeds: int) -> float:
    """Return the seconds per run such that all runs take the given minutes."""
    runs = instances * seeds * len(BUDGETS) * (len(algorithms(True)) + len(algorithms(False)))
    return SHARE * 60.0 * minutes / max(1, runs)


def tours_of(search: bool, options: argparse.Namespace) -> int:
    """Return the number of tours of a run with equal numbers of tours."""
    return int(options.tours * (1 if search else MORE_WITHOUT))


def ends(budget: str, search: bool, options: argparse.Namespace) -> Termination:
    """Return the termination of a run: its budget, or the best known length."""
    optimum = ColonyTermination(stagnation=None, n_max_gen=None, seconds=None, stagnation_tours=None)
    clock = TimeBasedTermination(options.seconds)
    if budget == "time":
        return TerminateIfAny(optimum, clock)
    return TerminateIfAny(optimum, MaximumFunctionCallTermination(tours_of(search, options)), clock)


def measure(problem: TSP, budget: str, search: bool, options: argparse.Namespace) -> list[Cell]:
    """Return a cell per algorithm: the quartiles of the gap over the seeds."""
    cells = []
    for name in algorithms(search):
        gaps, cut = [], False
        for seed in range(1, options.seeds + 1):
            algorithm = make(name, search, options.backend)
            algorithm.setup(problem, termination=ends(budget, search, options), seed=seed)
            gaps.append(gap(float(algorithm.run().F[0]), problem.best_known))
            fewer = algorithm.evaluator.n_eval < tours_of(search, options)
            cut |= budget == "tours" and fewer and gaps[-1] > 0.0
        low, median, high = np.percentile(gaps, [25, 50, 75])
        cells.append(Cell(float(low), float(median), float(high), cut))
    return cells


def compare(medians: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Return mean ranks (k,), the p-value of Friedman's test, and those of Nemenyi's test against the best (k,).

    ``medians`` is (instances, k), k >= 3. P-values are NaN with fewer than two instances or equal mean ranks.
    """
    blocks, k = medians.shape
    ranks = rankdata(np.round(medians, 6), axis=1).mean(axis=0)
    if blocks < 2 or np.ptp(ranks) == 0.0:
        return ranks, math.nan, np.full(k, math.nan)
    friedman = float(friedmanchisquare(*np.round(medians, 6).T).pvalue)
    # Nemenyi: differences of mean ranks over sqrt(k (k + 1) / (6 N)) are studentized ranges over sqrt(2)
    apart = (ranks - ranks.min()) / math.sqrt(k * (k + 1) / (6.0 * blocks))
    return ranks, friedman, studentized_range.sf(apart * math.sqrt(2.0), k, np.inf)


def write(budget: str, measured: dict[str, dict[bool, list[Cell]]], options: argparse.Namespace) -> None:
    """Write the results of one budget: one row per algorithm with, and one without local search."""
    notes = [
        "Gap to the best known length in percent: median (lower to upper quartile) over the seeds.",
        "Friedman's p-value is for all algorithms of a kind, Nemenyi's for one compared with the least mean rank.",
    ]
    amount = {"seconds": round(options.seconds, 3)}
    title = "The family in equal time"
    if budget == "tours":
        notes.append(
            f"*: a run ended at its time limit of {options.seconds:.3g} s, with fewer tours than the others."
        )
        amount = {"tours": tours_of(True, options), "without local search": tours_of(False, options)}
        title = "The family with equally many tours"
    table = Table(
        f"{'gpu_' if options.backend == 'cuda' else ''}family_{budget}",
        title + (", on a GPU" if options.backend == "cuda" else ""),
        " | ".join(["local search | algorithm | mean rank:2 | Friedman p:4 | Nemenyi p:4", *measured]),
        {"seeds": options.seeds, **amount, "candidate_list_size": CANDIDATES},
        notes,
    )
    for search in (True, False):
        cells = [by_search[search] for by_search in measured.values()]
        ranks, friedman, nemenyi = compare(np.array([[cell.median for cell in row] for row in cells]))
        for number, name in enumerate(algorithms(search)):
            p = [None if math.isnan(value) else value for value in (friedman, nemenyi[number])]
            texts = [_text(row[number]) for row in cells]
            table.add("yes" if search else "no", name, ranks[number], *p, *texts)
    table.write()


def _text(cell: Cell) -> str:
    return f"{cell.median:.2f} ({cell.low:.2f} to {cell.high:.2f}){' *' if cell.cut else ''}"


def main() -> None:
    parser = parser_for(__doc__, folder="optional", seeds=5, only=INSTANCES, backend="cpu")
    parser.add_argument("--minutes", type=float, default=60.0, help="approximate total time")
    parser.add_argument(
        "--tours",
        type=int,
        help=f"tours of a run with local search (default: {TOURS['cpu']}, CUDA {TOURS['cuda']})",
    )
    options = parser.parse_args()
    measured: dict[str, dict[str, dict[bool, list[Cell]]]] = {budget: {} for budget in BUDGETS}
    problems = problems_of(options.folder, options.only)
    if options.tours is None:
        options.tours = TOURS[options.backend]
    options.seconds = seconds_of_a_run(options.minutes, len(problems), options.seeds)
    print(f"{options.seconds:.2f} s per run", flush=True)
    for name, problem in problems.items():
        for budget in BUDGETS:
            measured[budget][name] = {
                search: measure(problem, budget, search, options) for search in (True, False)
            }
    for budget in BUDGETS:
        if measured[budget]:
            write(budget, measured[budget], options)


if __name__ == "__main__":
    main()
