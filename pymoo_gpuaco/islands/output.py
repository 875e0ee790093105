"""The table that islands print under ``verbose=True``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pymoo.util.display.column import Column
from pymoo.util.display.output import Output

from pymoo_gpuaco.algorithms.display import ColonyOutput
from pymoo_gpuaco.algorithms.front_run import FrontOutput

MOST_COLUMNS = 8


class _IslandColumns(Output):
    """Columns of an output, and those of islands behind them.

    Up to 8 islands have a column each; of more, two columns say something of all of them.
    """

    _of_many: tuple[str, str]  # their names

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[Column]
        self._islands: list[Column] = []

    def initialize(self, algorithm: Any) -> None:
        """Make the columns, when the number of islands is known."""
        super().initialize(algorithm)
        n = algorithm.engine.n_islands
        names = [f"island {number}" for number in range(n)] if n <= MOST_COLUMNS else self._of_many
        self._islands = [Column(name, width=9) for name in names]
        self.columns = [*self.columns, *self._islands]  # not in place: copies of the output share the list

    def _show(self, cells: Sequence[int | str]) -> None:
        """Show what the islands' columns say now."""
        for column, cell in zip(self._islands, cells, strict=True):
            column.set(cell)


class FrontIslandsOutput(_IslandColumns, FrontOutput):
    """The columns of a search for a front, and one for each island: how many tours its own front has.

    Of more than 8 islands the columns show the least and the most.
    """

    _of_many = ("least", "most")

    def update(self, algorithm: Any) -> None:
        """Read the islands' last reports into the columns."""
        super().update(algorithm)
        sizes = [int(value) for value in algorithm.engine.values]
        self._show(sizes if len(sizes) <= MOST_COLUMNS else [min(sizes), max(sizes)])


class IslandsOutput(_IslandColumns, ColonyOutput):
    """The columns of a colony, and one for each island.

    Up to 8 islands have a column each, the gap in percent of an island's best tour to the best of all. Of more,
    the columns show the largest gap and the number of islands that hold the best.
    """

    _of_many = ("furthest", "at best")

    def update(self, algorithm: Any) -> None:
        """Read the islands' last reports into the columns."""
        super().update(algorithm)
        best = float(algorithm.opt.get("F").min())
        gaps = [100.0 * (value / best - 1.0) if best else 0.0 for value in algorithm.engine.values]
        if len(gaps) <= MOST_COLUMNS:
            self._show([f"+{gap:.3f}" if gap < float("inf") else "-" for gap in gaps])
        else:
            self._show([f"+{max(gaps):.3f}", str(sum(gap <= 0.0 for gap in gaps))])
