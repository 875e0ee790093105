"""Output of a running algorithm under ``verbose=True``."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from moocore import hypervolume
from pymoo.util.display.column import Column
from pymoo.util.display.output import Output

from pymoo_gpuaco.backends import SearchEngine
from pymoo_gpuaco.candidates.bound import SHORT_PROOF
from pymoo_gpuaco.pareto.front_2d import hull_of
from pymoo_gpuaco.problems.multi_objective import WORST
from pymoo_gpuaco.runtime.clock import CLOCK

# Maximum points, by number of objectives, whose hypervolume takes about a second.
_MOST_POINTS = {2: 1_000_000, 3: 20_000, 4: 500}


def without_bar(display: Any) -> Any:
    """Return a copy of a display without its progress bar, a running generator, which cannot be copied."""
    if getattr(display, "progress", None) is not None:
        display = copy.copy(display)
        display.progress = None
    return display


def speed(algorithm: Any, tours: int, elapsed: float) -> tuple[str, float]:
    """Return unit and speed of a run: trials (a kick and its repair) of a memetic search, otherwise tours a second.

    ``tours`` were built in ``elapsed`` seconds > 0.
    """
    engine = getattr(algorithm, "engine", None)  # the output may be given to any algorithm
    if isinstance(engine, SearchEngine):
        return "trials/s", engine.n_trials / elapsed
    return "tours/s", tours / elapsed


def gap_percent(value: Any, known: float) -> Any:
    """Return by how many percent of ``known``, which is not 0, numbers exceed it; a maximised value is negative."""
    return math.copysign(100.0, known) * (value / known - 1.0)


class ColonyOutput(Output):
    """Columns: generation, tours built, best length, gap, this generation's best, tours or trials a second.

    The gap is to the best known length. Without one it is to a proven lower bound, for up to 12,000 cities in the plane
    and 1500 elsewhere; an optimal tour may be above it (0.7 % on random cities).
    """

    def __init__(self) -> None:
        super().__init__()
        self._runs: str | None = None
        self.n_eval.name = "tours"
        self.best = Column("best", width=12)
        self.gap = Column("gap %", width=8)
        self.iteration = Column("iteration", width=12)
        self.speed = Column("tours/s", width=10)
        self.columns += [self.best, self.gap, self.iteration, self.speed]

    def initialize(self, algorithm: Any) -> None:
        """Store the description of the algorithm for the header."""
        super().initialize(algorithm)
        describe = getattr(algorithm, "describe", None)  # the output may be given to any algorithm
        self._runs = None if describe is None else describe()

    def header(self, border: bool = False) -> str:
        """Return the description of the algorithm and the names of the columns."""
        header: str = super().header(border=border)
        return header if self._runs is None else f"{self._runs}\n{header}"

    def update(self, algorithm: Any) -> None:
        """Set the columns from the state of the algorithm."""
        super().update(algorithm)
        best = float(algorithm.opt.get("F").min())
        known = getattr(algorithm.problem, "best_known", None)
        self.gap.name, self.gap.width = ("gap %", 8) if known else ("gap at most %", 13)
        prove = getattr(algorithm, "bound_in_time", None)  # None: the objective is no tour length
        known = known or (None if prove is None else prove(SHORT_PROOF))
        self.best.set(f"{best:.10g}")
        feasible = bool(algorithm.opt.get("FEAS").all())
        self.gap.set(f"{gap_percent(best, known):.3f}" if known and feasible else None)
        self.iteration.set(f"{float(algorithm.pop.get('F').min()):.10g}")
        elapsed = max(CLOCK.wall() - algorithm.start_time, 1e-9)
        self.speed.name, rate = speed(algorithm, algorithm.evaluator.n_eval, elapsed)
        self.speed.set(f"{rate:.0f}")


class FrontOutput(Output):
    """Columns: generation, tours built, members of the front, hypervolume, supported members, tours a second.

    The hypervolume is a share of the box between the shortest lengths and 1.01 times the longest lengths of the front.
    With two objectives, supported members are the shortest tours of some weighted sum.
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
        """Set the columns from the state of the algorithm."""
        super().update(algorithm)
        points = algorithm.engine.archive.points
        self.front.set(len(points))
        if measured_at_once(points):
            best, worst = points.min(axis=0), WORST * points.max(axis=0)
            box = float(np.prod(worst - best))
            self.hypervolume.set(f"{hypervolume(points, ref=worst) / box:.6f}" if box > 0.0 else None)
        else:
            self.hypervolume.set(None)
        self.supported.set(len(hull_of(points)) if points.shape[1] == 2 else None)
        elapsed = max(CLOCK.wall() - algorithm.start_time, 1e-9)
        self.speed.set(f"{algorithm.evaluator.n_eval / elapsed:.0f}")


def measured_at_once(points: np.ndarray) -> bool:
    """Return True if the hypervolume of points (f, k) takes about a second or less."""
    return len(points) <= _MOST_POINTS.get(points.shape[1], 0)
