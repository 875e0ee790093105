"""Updates that acceptance and tournament need for the quality of 100 exact ones: Table I of paper 004, by its method.

    python benchmarks/ant_system_updates.py FOLDER

FOLDER holds the TSPLIB files. m = n ants, alpha 1, beta 2, rho 0.5; 100 iterations with an exact rule set the goal, the
best length so far. The paper tells that several points to switch at were tried, and not which: some are tried here. The
backends draw from the same distributions, so any of them will do.
"""

from __future__ import annotations

import statistics

import numpy as np
from options import parser_for
from record import write
from references import values

from pymoo_gpuaco import GPUAS, load_tsp
from pymoo_gpuaco.algorithms.ask_tell import Tours
from pymoo_gpuaco.problems.tsp import TSP

#: updates needed in paper 004, Table I, which writes 3082 for 3038 cities
PAPER = values("murooka", "updates")
SWITCHES = (0.85, 0.95, 0.98, 0.99)
ITERATIONS = 100
MOST = 400


class Colony:
    """An Ant System that iterates, and its best length so far."""

    def __init__(
        self, problem: TSP, selection: str, backend: str, seed: int, switch: float | None = None
    ) -> None:
        self._algorithm = GPUAS(problem.n_cities, selection=selection, switch=switch, backend=backend)
        self._algorithm.setup(problem, seed=seed)
        self._algorithm._begin()
        self._keys = np.random.default_rng(seed)
        self.backend = self._algorithm.engine.kind
        self.best = float("inf")

    def iterate(self) -> None:
        """One construction and one update."""
        algorithm = self._algorithm
        lengths = algorithm.engine.construct(int(self._keys.integers(0, 2**64, dtype=np.uint64)))
        best = int(lengths.argmin())
        algorithm._learn(Tours(algorithm.engine.tours([best]), lengths[[best]]))
        self.best = min(self.best, float(lengths[best]))


def updates_needed(problem: TSP, goal: float, backend: str, seed: int, switch: float) -> int | None:
    """Updates until ``goal``, None if ``MOST`` did not do."""
    colony = Colony(problem, "acceptance_tournament", backend, seed, switch)
    for count in range(1, MOST + 1):
        colony.iterate()
        if colony.best <= goal:
            return count
    return None


def cell(needed: list[int | None]) -> str:
    """Median of the seeds, where more than half of them got there."""
    reached = [count for count in needed if count is not None]
    if len(reached) <= len(needed) // 2:
        return f"{len(reached)} of {len(needed)} got there"
    return f"{statistics.median(MOST if count is None else count for count in needed):g}"


def main() -> None:
    parser = parser_for(__doc__, seeds=3)
    parser.add_argument("--instances", nargs="+", default=tuple(PAPER), choices=tuple(PAPER))
    parser.add_argument("--backend", default="auto", choices=("auto", "cpu", "cuda"))
    arguments = parser.parse_args()
    rows, backend = [], ""
    for name in arguments.instances:
        problem = load_tsp(arguments.folder / f"{name}.tsp")
        goals: list[float] = []
        needed: dict[float, list[int | None]] = {switch: [] for switch in SWITCHES}
        for seed in range(1, arguments.seeds + 1):
            exact = Colony(problem, "auto", arguments.backend, seed)
            for _ in range(ITERATIONS):
                exact.iterate()
            goals.append(exact.best)
            backend = exact.backend
            del exact
            for switch in SWITCHES:
                needed[switch].append(
                    updates_needed(problem, goals[-1], arguments.backend, seed + 1000, switch)
                )
        rows.append([name, statistics.median(goals), *map(cell, needed.values()), PAPER[name]])
        print(rows[-1], flush=True)
    path = write(
        "as_updates_needed",
        "Ant System: updates that acceptance and tournament need for the quality of 100 exact ones",
        ("instance", "length to reach", *(f"switch {switch:g}" for switch in SWITCHES), "paper 004"),
        rows,
        {
            "alpha": 1,
            "beta": 2,
            "rho": 0.5,
            "ants": "n",
            "seeds": arguments.seeds,
            "updates at most": MOST,
            "backend": backend,
        },
        [
            "Medians over the seeds; where half of them or fewer got there, how many did. Best tours so far of both."
        ],
    )
    print(path)


if __name__ == "__main__":
    main()
