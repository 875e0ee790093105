"""Pareto fronts of several methods for two objectives at equal time: the data of a figure.

    python benchmarks/front_curves.py FOLDER kroA100+kroB100 --seconds 10

GPU2PPLS and pymoo's methods run one after another, for the same time. The first column of a row is a length by the
first objective. The others have each method's shortest length by the second, among tours not longer by the first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from front_problems import problem_of
from front_runs import METHODS, POPULATION, Points, record
from harness import Table, parser_for

from pymoo_gpuaco.pareto.front_2d import nondominated

LEVELS = 25
SHOWN = ("GPU2PPLS", "NSGA-II", "MOEA/D")  # the curve of two phases would coincide with the first


def curves(fronts: Sequence[Points], levels: int) -> list[list[float | None]]:
    """Return rows: a first length, and for each front (p, 2) the least second length up to it, or None.

    The first lengths are rounded and grow by equal factors, from the shortest of all fronts to the longest.
    """
    ordered = [front[nondominated(front)] for front in fronts]
    together = np.concatenate(ordered)
    rows: list[list[float | None]] = []
    for level in np.rint(np.geomspace(together[:, 0].min(), together[:, 0].max(), levels)).tolist():
        row: list[float | None] = [level]
        for front in ordered:
            at = int(np.searchsorted(front[:, 0], level, "right"))
            row.append(float(front[at - 1, 1]) if at else None)
        rows.append(row)
    return rows


def main() -> None:
    """Measure, and write benchmarks/results/fronts_curves.json."""
    parser = parser_for(__doc__)
    parser.add_argument("name", help="such as kroA100+kroB100")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    problem = problem_of(given.folder, given.name)
    first, second = given.name.split("+")
    notes = [
        f"The shortest by {second} among tours that are not longer by {first} than the first column.",
        "NSGA-II and MOEA/D of pymoo with order crossover and inversion.",
    ]
    title = f"Fronts of {given.name} after {given.seconds:g} s, all cores"
    header = " | ".join([f"{first} at most", *SHOWN])
    parameters = {"seed": given.seed, "population of pymoo's": POPULATION}
    table = Table("fronts_curves", title, header, parameters, notes)
    fronts = [record(METHODS[method](problem, given.seed), [given.seconds])[0] for method in SHOWN]
    for row in curves(fronts, LEVELS):
        table.add(*row)
    table.write()


if __name__ == "__main__":
    main()
