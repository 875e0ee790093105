"""Do trails help focused ants on the CPU? Runs with each use of them, beside runs whose kicks know none.

    python benchmarks/cpu_trail_uses.py FOLDER [--seeds 4] [--threads 2] [--only pr2392 ..] [--add]

FOLDER holds the TSPLIB files. Every run makes as many kicks, half a kick a city on each of eight tours, which evolve at
the end: by generations and not by time, so that how busy the machine is changes nothing. A use is compared
with "none" by a two-sided sign test over the pairs of runs of one instance and seed, equal ones left out; p is
corrected for the number of uses tried (Holm). Eight instances of four seeds took twelve minutes on two busy
cores. With --add the runs of other instances stay.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from folder import problems_of
from pymoo.optimize import minimize
from record import rows_of_others, write
from sign_tests import Pairs, verdicts

from pymoo_gpuaco import GPUMMAS, TSP
from pymoo_gpuaco.backends.cpu import engines
from pymoo_gpuaco.backends.cpu.focused import CpuWindows
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.colony.parameters import ColonyParameters
from pymoo_gpuaco.search.parameters import FocusedParameters

NAME = "cpu_trail_uses"
INSTANCES = ("nrw1379", "u1817", "u2152", "pr2392", "pcb3038", "fl3795", "fnl4461", "rl5915")
# Of a run, and kicks a city of each. With ten tours of a kick a city the one run of pr1002 that was looked at ended at
# the optimum for every use.
TOURS, KICKS = 8, 0.5


class WithoutGuide(CpuWindows):
    """No ant draws a city: stretches are as long as they happen to be."""

    def weigh(self) -> None:
        """Give every candidate the weight 0."""
        self.search.units.weights[:] = 0.0


class WhereToursDiffer(CpuWindows):
    """Ants draw edges that some of the tours have and others have not."""

    def weigh(self) -> None:
        """Weigh each candidate edge by f (1 - f), f being the share of the tours that have it."""
        candidates, tours = self.search.units.candidates, self._tours
        count, beside = np.zeros(candidates.shape), np.empty((2, len(candidates)), np.int32)
        for tour in tours:
            beside[0][tour], beside[1][tour] = np.roll(tour, -1), np.roll(tour, 1)
            count += (candidates == beside[0][:, None]) | (candidates == beside[1][:, None])
        share = count / len(tours)
        self.search.units.weights[:] = share * (1.0 - share)


# What ants are, and arguments of GPUMMAS; the first is what the others are compared with.
USES: dict[str, tuple[type[CpuWindows], dict[str, float]]] = {
    "none": (WithoutGuide, {}),
    "trails and distance (default)": (CpuWindows, {}),
    "distance alone (alpha=0)": (CpuWindows, {"alpha": 0.0}),
    "trails alone (beta=0)": (CpuWindows, {"beta": 0.0}),
    "edges of some tours": (WhereToursDiffer, {}),
}
COLUMNS = ("instance", "seed", *USES)


def gap_of(problem: TSP, use: str, seed: int) -> float:
    """Percent above the best known length at the end of a run."""
    ants, arguments = USES[use]
    focused, n = FocusedParameters(n_tours=TOURS), problem.n_cities

    def make(instance: ListedInstance, parameters: ColonyParameters) -> CpuWindows:
        return ants(instance, parameters, focused)

    engines.CpuWindows = make  # type: ignore[assignment, misc]
    try:
        algorithm = GPUMMAS(construction="focused", backend="cpu", **arguments)
        generations = math.ceil(KICKS * n / focused.trials_a_tour(n, TOURS))
        result = minimize(problem, algorithm, ("n_gen", generations), seed=seed)
    finally:
        engines.CpuWindows = CpuWindows  # type: ignore[misc]
    return 100.0 * (float(result.F[0]) / float(problem.best_known or math.nan) - 1.0)


def lines_of(rows: list[list[Any]]) -> list[str]:
    """What the pairs say of each use but the first."""
    differences = {
        use: [row[column] - row[2] for row in rows] for column, use in enumerate(list(USES)[1:], start=3)
    }
    words = verdicts({use: Pairs.of(own) for use, own in differences.items()})
    usual = statistics.mean(row[2] for row in rows)
    return [
        f"{use}: {words[use]}; mean gap {usual + statistics.mean(own):.4f} %, none {usual:.4f} %."
        for use, own in differences.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", choices=INSTANCES, default=list(INSTANCES))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--add", action="store_true", help="keep what is written of other instances")
    arguments = parser.parse_args()
    os.environ["PYMOO_GPUACO_THREADS"] = str(arguments.threads)
    parameters = {"tours": TOURS, "kicks a city and tour": KICKS, "uses compared": len(USES) - 1}
    rows: list[list[Any]] = rows_of_others(NAME, arguments.only, parameters) if arguments.add else []
    for name, problem in problems_of(arguments.folder, arguments.only).items():
        for seed in range(1, arguments.seeds + 1):
            gaps = [round(gap_of(problem, use, seed), 4) for use in USES]
            rows.append([name, seed, *gaps])
            print(rows[-1], flush=True)
        rows.sort(key=lambda row: (INSTANCES.index(row[0]), row[1]))
        notes = [
            "Percent above the best known length, one run a cell, all of as many kicks.",
            *lines_of(rows),
        ]
        write(NAME, "Uses of trails in kicks, on the CPU", COLUMNS, rows, parameters, notes)
    print("\n".join(lines_of(rows)))


if __name__ == "__main__":
    main()
