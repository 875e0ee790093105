"""Quality of GPUMMAS by evaporation rate and number of tours, with local search and without.

    python benchmarks/evaporation.py FOLDER [--seeds 5] [--backend cpu]

FOLDER contains the TSPLIB files; missing instances are skipped.
"""

from __future__ import annotations

import statistics

from harness import Table, gap, parser_for, problems_of
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS

# Evaporation rates: the default, of Skinderowicz (2020), and of Stuetzle and Hoos (2000) with local search and without.
RATES = (0.35, 0.1, 0.2, 0.02)
#: local search -> instances, and tours of a run
PLAN = {
    False: (("kroA100", "kroB100", "d198"), (5_000, 20_000, 50_000)),
    True: (("lin318", "pcb442"), (500, 2_000, 10_000)),
}
NOTES = ("Medians, and in brackets the worst run. All other parameters are the defaults.",)


def main() -> None:
    """Run every cell and write the table."""
    instances = [name for names, _ in PLAN.values() for name in names]
    parser = parser_for(__doc__, folder="optional", seeds=5, only=instances, backend="cpu")
    options = parser.parse_args()
    header = " | ".join(["instance | local search | tours", *(f"rho {rate:g}: gap, %" for rate in RATES)])
    title = "GPUMMAS by evaporation rate, the same number of tours"
    name = f"{'gpu' if options.backend == 'cuda' else 'cpu'}_evaporation"
    table = Table(name, title, header, {"seeds": options.seeds}, NOTES)
    for local_search, (names, budgets) in PLAN.items():
        for instance, problem in problems_of(options.folder, [n for n in names if n in options.only]).items():
            for tours in budgets:
                cells = []
                for rate in RATES:
                    gaps = []
                    for seed in range(1, options.seeds + 1):
                        colony = GPUMMAS(rho=rate, local_search=local_search, backend=options.backend)
                        result = minimize(problem, colony, ("n_eval", tours), seed=seed)
                        gaps.append(gap(float(result.F[0]), problem.best_known))
                    cells.append(f"{statistics.median(gaps):.2f} ({max(gaps):.2f})")
                table.add(instance, "yes" if local_search else "no", tours, *cells)
    table.write()


if __name__ == "__main__":
    main()
