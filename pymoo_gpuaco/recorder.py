"""A run as a table: statistics of every generation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from pymoo.core.callback import Callback

from pymoo_gpuaco import checks
from pymoo_gpuaco.backends.protocol import ColonyEngine
from pymoo_gpuaco.colony.trails import branching_factor
from pymoo_gpuaco.runtime.clock import CLOCK

__all__ = ["Recorder"]


class Recorder(Callback):
    """Callback that stores a row for every generation: ``minimize(.., callback=recorder)``, then ``recorder.records``.

    It costs a few bytes and microseconds per generation; ``save_history=True`` copies the whole colony.
    ``minimize`` uses the given object, not a copy. With several objectives, lengths are those of the first.

    Parameters
    ----------
    branching : interval in generations of the computation of the branching factor, >= 1, which reads all candidate
        edges; rows between repeat the last value. None (default): not computed. Raises ValueError or TypeError for
        other values.
    """

    #: columns of ``records``
    COLUMNS = (
        "generation",
        "seconds",
        "tours",
        "best",
        "iteration_best",
        "iteration_mean",
        "branching_factor",
    )

    def __init__(self, branching: int | None = None) -> None:
        super().__init__()
        self.branching = checks.optional_integer("branching", branching, 1)
        self.best_known: float | None = None
        self._rows: list[tuple[float, ...]] = []

    def _update(self, algorithm: Any) -> None:
        self.best_known = getattr(algorithm.problem, "best_known", None)
        generation = int(algorithm.n_iter)
        if generation == 1:
            self._rows = []  # another run with the same object
        self._rows.append(
            (
                generation,
                CLOCK.wall() - algorithm.start_time,
                algorithm.evaluator.n_eval,
                float(algorithm.opt[0].F[0]),
                min(float(individual.F[0]) for individual in algorithm.pop),
                algorithm.iteration_mean,
                self._branching_factor(algorithm, generation),
            )
        )

    def _branching_factor(self, algorithm: Any, generation: int) -> float:
        if self.branching is None or not isinstance(algorithm.engine, ColonyEngine):
            return float("nan")
        if (generation - 1) % self.branching == 0 or not self._rows:
            return branching_factor(algorithm.trails("candidates"))
        return self._rows[-1][-1]

    @property
    def records(self) -> dict[str, NDArray[Any]]:
        """The columns as arrays of equal length; ``pandas.DataFrame(recorder.records)`` is a table.

        * generation: counted from 1.
        * seconds: of the run so far, with set-up and without compilation.
        * tours: built so far.
        * best: shortest length so far.
        * iteration_best: shortest length of this generation.
        * iteration_mean: mean length of this generation; NaN for evaluated tours of a user, and for hill climbers.
        * branching_factor: mean number of open candidates per city; NaN if not computed.
        """
        table = np.array(self._rows, dtype=np.float64).reshape(len(self._rows), len(self.COLUMNS))
        columns: dict[str, NDArray[Any]] = dict(zip(self.COLUMNS, table.T.copy(), strict=True))
        for name in ("generation", "tours"):
            columns[name] = columns[name].astype(np.int64)
        return columns
