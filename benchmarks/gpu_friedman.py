"""Whether GPUMMAS's six variants find tours of the same quality: Table 8 of paper 001 on this GPU, and the CPU engine.

    python benchmarks/gpu_friedman.py FOLDER [--runs 20] [--only d198 pr2392]

FOLDER holds the TSPLIB files; instances that it lacks are left out. It takes about 60 seconds on an H200. As in the
paper: m = n ants, alpha 1, beta 2, rho 0.5, p_best 0.01, 100 iterations, no local search. A Friedman test by instance
asks whether the six variants' errors have the same median. Every run has a seed of its own: with the same seed the
three tabus would give the same tours.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from folder import problems_of
from kernel_clock import iterations
from options import parser_for
from record import write
from references import values
from scipy.stats import friedmanchisquare, mannwhitneyu

from pymoo_gpuaco import GPUMMAS, TSP, load_tsp

INSTANCES = ("d198", "pcb442", "rat783", "pr1002", "pr2392")
ALL_CITIES = ("d198", "pcb442")  # weighed without candidate lists as well
AGAINST_CPU = "pcb442"
NAMES = {"list": "LC", "bitmask": "BT", "compact": "CT"}
VARIANTS = [(s, t) for s in ("rwm", "wrs") for t in NAMES]
ITERATIONS = 100
#: test statistic and p-value of Table 8
PAPER = values("skinderowicz_2020", "table_8")


def errors(problem: TSP, runs: int, first_seed: int, **arguments: Any) -> list[float]:
    """Error of the best tour of each run, in percent of the best known length."""
    algorithm = GPUMMAS(
        problem.n_cities, rho=0.5, p_best=0.01, deposit="iteration_best", local_search=False, **arguments
    ).setup(problem, seed=1)
    return [
        100.0 * (min(iterations(algorithm, ITERATIONS, first_seed + run)) / problem.best_known - 1.0)
        for run in range(runs)
    ]


def table_of_variants(problems: dict[str, TSP], runs: int) -> None:
    rows = []
    for k in (32, None):
        for name in problems if k else [n for n in ALL_CITIES if n in problems]:
            samples = [
                errors(
                    problems[name],
                    runs,
                    1000 * variant,
                    backend="cuda",
                    candidate_list_size=k,
                    selection=selection,
                    tabu=tabu,
                )
                for variant, (selection, tabu) in enumerate(VARIANTS, start=1)
            ]
            test = friedmanchisquare(*samples)
            rows.append(
                [
                    name,
                    f"list of {k}" if k else "all",
                    *(round(statistics.mean(sample), 2) for sample in samples),
                    round(max(statistics.stdev(sample) for sample in samples), 2),
                    round(float(test.statistic), 2),
                    round(float(test.pvalue), 2),
                    *(PAPER.get(name, (None, None))),
                ]
            )
            print(rows[-1], flush=True)
    path = write(
        "gpu_friedman",
        "Quality of the six variants: mean error in percent, and the Friedman test",
        (
            "instance",
            "cities weighed",
            *(f"{s.upper()}-{NAMES[t]}" for s, t in VARIANTS),
            "largest standard deviation",
            "statistic",
            "p-value",
            "paper's statistic",
            "paper's p-value",
        ),
        rows,
        {"ants": "n", "rho": 0.5, "p_best": 0.01, "iterations": ITERATIONS, "runs": runs},
        [
            "The variants differ in quality where the p-value is below 0.05; of many tests about one in 20 is.",
            "The paper's figures are constants from Table 8 of Skinderowicz 2020 (30 runs).",
        ],
    )
    print(path)


def table_of_backends(problem: TSP, runs: int) -> None:
    samples = {
        backend: errors(problem, runs, seed, backend=backend, candidate_list_size=32)
        for backend, seed in (("cuda", 20_000), ("cpu", 30_000))
    }
    p = float(mannwhitneyu(samples["cuda"], samples["cpu"]).pvalue)
    rows = [
        [
            AGAINST_CPU,
            backend,
            len(sample),
            round(statistics.mean(sample), 3),
            round(statistics.stdev(sample), 3),
            round(min(sample), 3),
            round(max(sample), 3),
            round(p, 2),
        ]
        for backend, sample in samples.items()
    ]
    for row in rows:
        print(row)
    path = write(
        "gpu_against_cpu",
        "Quality of the CUDA and the CPU engine with the same parameters: error in percent",
        ("instance", "backend", "runs", "mean", "standard deviation", "least", "most", "p-value"),
        rows,
        {"ants": "n", "rho": 0.5, "p_best": 0.01, "iterations": ITERATIONS, "candidate_list_size": 32},
        ["p-value: Mann-Whitney test that one engine's errors tend to be larger than the other's."],
    )
    print(path)


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    problems = problems_of(arguments.folder, arguments.only)
    before = time.perf_counter()
    table_of_variants(problems, arguments.runs)
    table_of_backends(load_tsp(AGAINST_CPU), arguments.runs)
    print(f"{time.perf_counter() - before:.0f} s in all")


if __name__ == "__main__":
    main()
