"""Quality of GPUMMAS's six variants, as in Table 8 of Skinderowicz 2020, and of the CPU engine.

    python benchmarks/gpu_friedman.py FOLDER [--runs 20] [--only d198 pr2392]

FOLDER contains the TSPLIB files; missing instances are skipped. It takes about 60 seconds on an H200. As in the paper:
m = n ants, alpha 1, beta 2, rho 0.5, p_best 0.01, 100 iterations, no local search. A Friedman test per instance
compares the medians of the six variants' errors. Every run has a different seed: with the same seed the three tabus
give the same tours.
"""

from __future__ import annotations

import statistics
from typing import Any

from harness import Table, gap, parser_for, problems_of, values
from kernel_clock import iterations
from scipy.stats import friedmanchisquare, mannwhitneyu

from pymoo_gpuaco import GPUMMAS, TSP, load_tsp

INSTANCES = ("d198", "pcb442", "rat783", "pr1002", "pr2392")
ALL_CITIES = ("d198", "pcb442")  # also without candidate lists
AGAINST_CPU = "pcb442"
NAMES = {"list": "LC", "bitmask": "BT", "compact": "CT"}
VARIANTS = [(s, t) for s in ("rwm", "wrs") for t in NAMES]
ITERATIONS = 100
SETTING = {"ants": "n", "rho": 0.5, "p_best": 0.01, "iterations": ITERATIONS}
#: test statistic and p-value of Table 8
PAPER = values("skinderowicz_2020", "table_8")


def errors(problem: TSP, runs: int, first_seed: int, **arguments: Any) -> list[float]:
    """Return the error of the best tour of each run, in percent of the best known length."""
    algorithm = GPUMMAS(
        problem.n_cities, rho=0.5, p_best=0.01, deposit="iteration_best", local_search=False, **arguments
    ).setup(problem, seed=1)
    return [
        gap(min(iterations(algorithm, ITERATIONS, first_seed + run)), problem.best_known)
        for run in range(runs)
    ]


def table_of_variants(problems: dict[str, TSP], runs: int) -> None:
    variants = " | ".join(f"{s.upper()}-{NAMES[t]}:2" for s, t in VARIANTS)
    table = Table(
        "gpu_friedman",
        "Quality of the six variants: mean error in percent, and the Friedman test",
        f"instance | cities weighed | {variants} | largest standard deviation:2 | statistic:2 | p-value:2 | "
        "paper's statistic | paper's p-value",
        SETTING | {"runs": runs},
        [
            "A p-value below 0.05 indicates different quality; of many tests of equal variants one in 20 has it.",
            "The paper's figures are constants from Table 8 of Skinderowicz 2020 (30 runs).",
        ],
    )
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
            means, widest = map(statistics.mean, samples), max(map(statistics.stdev, samples))
            of_paper = PAPER.get(name, (None, None))
            table.add(
                name, f"list of {k}" if k else "all", *means, widest, test.statistic, test.pvalue, *of_paper
            )
    table.write()


def table_of_backends(problem: TSP, runs: int) -> None:
    table = Table(
        "gpu_against_cpu",
        "Quality of the CUDA and the CPU engine with the same parameters: error in percent",
        "instance | backend | runs | mean:3 | standard deviation:3 | least:3 | most:3 | p-value:2",
        SETTING | {"candidate_list_size": 32},
        ["p-value: Mann-Whitney test that one engine's errors tend to be larger than the other's."],
    )
    samples = {
        backend: errors(problem, runs, seed, backend=backend, candidate_list_size=32)
        for backend, seed in (("cuda", 20_000), ("cpu", 30_000))
    }
    p = float(mannwhitneyu(samples["cuda"], samples["cpu"]).pvalue)
    for backend, sample in samples.items():
        of_sample = [of(sample) for of in (statistics.mean, statistics.stdev, min, max)]
        table.add(AGAINST_CPU, backend, len(sample), *of_sample, p)
    table.write()


def main() -> None:
    parser = parser_for(__doc__, only=INSTANCES)
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    table_of_variants(problems_of(arguments.folder, arguments.only), arguments.runs)
    table_of_backends(load_tsp(AGAINST_CPU), arguments.runs)


if __name__ == "__main__":
    main()
