"""Output of a running colony under ``verbose=True``."""

from __future__ import annotations

import time
from typing import Any

from pymoo.util.display.column import Column
from pymoo.util.display.output import Output

from pymoo_gpuaco.backends import SearchEngine
from pymoo_gpuaco.candidates.bound import A_MOMENT


def speed(algorithm: Any, tours: int, elapsed: float) -> tuple[str, float]:
    """Unit and rate of what a run makes: trials (a kick and its repair) of a memetic search, else tours.

    ``tours`` were built in ``elapsed`` seconds > 0.
    """
    engine = getattr(algorithm, "engine", None)  # the output may be given to any algorithm
    if isinstance(engine, SearchEngine):
        return "trials/s", engine.n_trials / elapsed
    return "tours/s", tours / elapsed


class ColonyOutput(Output):
    """Generation, tours built, best length, gap, this generation's best, tours or trials a second.

    The gap is that to the best known length; where there is none, to the proven lower bound, which the best tour may be
    well above even if it is optimal (0.7 % on random cities), if that is known or proven in a moment: of up to 12,000
    cities in the plane, and 1500 elsewhere.
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
        """Note what runs, for the header."""
        super().initialize(algorithm)
        describe = getattr(algorithm, "describe", None)  # the output may be given to any algorithm
        self._runs = None if describe is None else describe()

    def header(self, border: bool = False) -> str:
        """A line that says what runs, and the names of the columns."""
        header: str = super().header(border=border)
        return header if self._runs is None else f"{self._runs}\n{header}"

    def _proven(self, algorithm: Any) -> float | None:
        """Lower bound, if it takes no longer than a moment."""
        self.gap.name = "gap<= %"
        bound: float | None = algorithm.bound_in_time(A_MOMENT)
        return bound

    def update(self, algorithm: Any) -> None:
        """Read the algorithm's state into the columns."""
        super().update(algorithm)
        best = float(algorithm.opt.get("F").min())
        known = getattr(algorithm.problem, "best_known", None) or self._proven(algorithm)
        self.best.set(f"{best:.10g}")
        feasible = bool(algorithm.opt.get("FEAS").all())
        self.gap.set(f"{100.0 * (best / known - 1.0):.3f}" if known and feasible else None)
        self.iteration.set(f"{float(algorithm.pop.get('F').min()):.10g}")
        elapsed = max(time.time() - algorithm.start_time, 1e-9)
        self.speed.name, rate = speed(algorithm, algorithm.evaluator.n_eval, elapsed)
        self.speed.set(f"{rate:.0f}")
