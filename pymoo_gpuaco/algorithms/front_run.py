"""A search for a front beside pymoo: its individuals, how it ends by itself, and what it prints."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from moocore import hypervolume
from numpy.typing import NDArray
from pymoo.core.individual import Individual, default_config
from pymoo.core.population import Population
from pymoo.util.display.column import Column
from pymoo.util.display.output import Output

from pymoo_gpuaco.algorithms.termination import ColonyTermination
from pymoo_gpuaco.pareto.front_2d import hull_of
from pymoo_gpuaco.pareto.instance import MOST_FOR_ALL_TOURS
from pymoo_gpuaco.problems.multi_objective import WORST

_MOST_POINTS = {2: 1_000_000, 3: 20_000, 4: 500}  # by objectives, of which it takes no longer than a moment


def population_of(tours: NDArray[np.int64], objectives: NDArray[np.float64]) -> Population:
    """Make evaluated individuals of tours (f, n), which they share with the array; they share their settings, too."""
    none = np.empty(0)
    alike = vars(Individual(default_config(), G=none, H=none))
    individuals = []
    for row, values in zip(tours, objectives, strict=True):
        one = Individual.__new__(Individual)  # its constructor takes three times as long
        vars(one).update(alike, data={}, evaluated={"F", "G", "H"})
        one.X, one.F = row, values
        individuals.append(one)
    return Population(individuals)


class FrontTermination(ColonyTermination):
    """Stop when the front has not changed for long, or when a generous budget is spent; ``reason`` says which.

    It is what GPU2PPLS uses when no termination is given: a run ends within the first generation that passes a minute.
    Up to 9 cities it ends as soon as every tour has been explored, in the first generation that searches.

    Parameters
    ----------
    stagnation : generations in a row without a new member of the front that end the run, >= 1, or None for no such
        limit.
    n_max_gen : most generations, >= 1, or None.
    seconds : most time, set-up without compiling counted, > 0, or None.
    """

    of_one_length = False

    def __init__(
        self, stagnation: int | None = 100, n_max_gen: int | None = None, seconds: float | None = 60.0
    ) -> None:
        super().__init__(None, stagnation, n_max_gen, seconds, None)

    def start_again(self) -> None:
        """Forget the run that this object has watched."""
        super().start_again()
        self._added = -1

    def _update(self, algorithm: Any) -> float:
        generation, added = int(algorithm.n_iter), int(algorithm.engine.archive.added)
        if added != self._added:
            self._added, self._best_generation = added, generation
        self._count_seconds(algorithm)
        if algorithm.engine.instance.n <= MOST_FOR_ALL_TOURS and algorithm.engine.n_sums:
            self.reason = "proof: every tour has been explored"
            return 1.0
        idle = generation - self._best_generation
        return self._ended_by(
            {
                f"stagnation: no new member of the front in {idle} generations": (idle, self.stagnation),
                **self._budgets(generation),
            },
            generation,
        )


class FrontOutput(Output):
    """Generation, tours built, members of the front, its hypervolume, supported ones, tours a second.

    The hypervolume is the share of the box between the shortest and the longest lengths on the front, the longest times
    1.01, that members dominate. Supported are, of two objectives, those that are shortest under a weighted sum.
    """

    def __init__(self) -> None:
        super().__init__()
        self.n_eval.name = "tours"
        self.front = Column("front", width=8)
        self.hypervolume = Column("hypervolume", width=11)
        self.supported = Column("supported", width=9)
        self.speed = Column("tours/s", width=10)
        self.columns += [self.front, self.hypervolume, self.supported, self.speed]

    def update(self, algorithm: Any) -> None:
        """Read the algorithm's state into the columns."""
        super().update(algorithm)
        points = algorithm.engine.archive.points
        self.front.set(len(points))
        self.hypervolume.set(_share_of_box(points))
        self.supported.set(len(hull_of(points)) if points.shape[1] == 2 else None)
        elapsed = max(time.time() - algorithm.start_time, 1e-9)
        self.speed.set(f"{algorithm.evaluator.n_eval / elapsed:.0f}")


def measured_at_once(points: np.ndarray) -> bool:
    """Return True if the hypervolume of points (f, k) takes no longer than a moment."""
    return len(points) <= _MOST_POINTS.get(points.shape[1], 0)


def _share_of_box(points: np.ndarray) -> str | None:
    """Share of the box of points (f, k) that they dominate, in words; None where it would take long to tell."""
    if not measured_at_once(points):
        return None
    best, worst = points.min(axis=0), WORST * points.max(axis=0)
    box = float(np.prod(worst - best))
    return f"{float(hypervolume(points, ref=worst)) / box:.6f}" if box > 0.0 else None
