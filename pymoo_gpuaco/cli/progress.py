"""The lines that ``solve`` prints while it searches."""

from __future__ import annotations

import time
from typing import Any, TextIO

from pymoo.core.callback import Callback

from pymoo_gpuaco.algorithms.display import speed


class Progress(Callback):
    """A line of progress every so many seconds, the first generation's among them.

    Parameters
    ----------
    to : where it is printed; None prints nothing.
    every : seconds between two lines.
    """

    def __init__(self, to: TextIO | None, every: float = 2.0) -> None:
        super().__init__()
        self.to = to
        self.every = every
        self.generation = 0  # the last that is complete
        self.tours_before = 0  # of the part of a resumed run that is over
        self._last = -float("inf")
        self._printed = 0

    def header(self, algorithm: Any) -> str:
        """What stands above the lines."""
        name, _ = speed(algorithm, 0, 1.0)
        gap = "gap %" if algorithm.problem.best_known else "gap<= %"  # at most, to what is proven
        return f"{'time s':>7}  {'generation':>10}  {'tours':>9}  {'best':>12}  {gap:>8}  {name:>9}"

    def line(self, algorithm: Any) -> str:
        """Read the algorithm's state."""
        elapsed = max(time.time() - algorithm.start_time, 1e-9)
        best = float(algorithm.opt.get("F").min())
        known = algorithm.problem.best_known or getattr(algorithm.termination, "bound", None)
        feasible = bool(algorithm.opt.get("FEAS").all())
        gap = f"{100.0 * (best / known - 1.0):8.3f}" if known and feasible else f"{'-':>8}"
        tours = algorithm.evaluator.n_eval
        _, rate = speed(algorithm, tours - self.tours_before, elapsed)
        return f"{elapsed:7.1f}  {self.generation:10d}  {tours:9d}  {best:12.10g}  {gap}  {rate:9.0f}"

    def _update(self, algorithm: Any) -> None:
        self.generation = int(algorithm.n_iter)
        now = time.time()
        if self.to is not None and now - self._last >= self.every:
            self._last = now
            self.print(algorithm)

    def print(self, algorithm: Any) -> None:
        """Print the line of the last complete generation, unless it was printed last."""
        if self.to is not None and self._printed != self.generation:
            self._printed = self.generation
            print(self.line(algorithm), file=self.to, flush=True)


class FrontProgress(Progress):
    """The same of several objectives: how many tours the front has, and the shortest by each objective.

    names : of the objectives.
    """

    def __init__(self, to: TextIO | None, names: tuple[str, ...]) -> None:
        super().__init__(to)
        self.names = names

    def header(self, algorithm: Any) -> str:
        """What stands above the lines."""
        names = "  ".join(f"{name[:14]:>14}" for name in self.names)
        return f"{'time s':>7}  {'generation':>10}  {'tours':>9}  {'front':>8}  {names}"

    def line(self, algorithm: Any) -> str:
        """Read the algorithm's state."""
        elapsed = max(time.time() - algorithm.start_time, 1e-9)
        lengths = algorithm.engine.archive.points
        best = "  ".join(f"{length:14.10g}" for length in lengths.min(axis=0))
        tours = algorithm.evaluator.n_eval
        return f"{elapsed:7.1f}  {self.generation:10d}  {tours:9d}  {len(lengths):8d}  {best}"
