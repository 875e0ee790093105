"""Plot of a front: the lengths of its tours, and maps of some of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pymoo_gpuaco.problems.multi_objective import Front
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.visualization.plots import plot_tour

_POINTS = "#1f4e79"
_CHOSEN = ("#c0392b", "#b9770e", "#1e8449", "#7d3c98", "#0e6655", "#943126", "#5d6d7e")
_MOST_MAPS = 2
_MOST_LINES = 2000  # maximum lines for tours of more than two objectives


def plot_front(front: Front, count: int = 3, title: str | None = None) -> Figure:
    """Draw a front and, beside it, `count` >= 2 tours along it, see `Front.along`.

    Tours of two objectives are points in a plane; tours of more objectives are lines, each axis from the least to the
    largest length. Maps show the positions of the objectives, or of the first two different ones. Returns the figure;
    ``plot_front(..).savefig("front.png")``. Raises ValueError for a front without tours, and TypeError or ValueError
    for an invalid `front` or `count`.
    """
    if not isinstance(front, Front):
        raise TypeError(
            f"front must be a Front, such as Front(res.X, res.F, problem), got {type(front).__name__}"
        )
    if not front.size:
        raise ValueError("plot_front needs a front with tours, got 0")
    rows = front.along(count)
    maps = _maps(front.problem)
    figure = Figure(figsize=(6.0 + 3.0 * len(rows) * bool(maps), 6.0), layout="constrained")
    grid = figure.add_gridspec(
        max(1, len(maps)), 2 + len(rows) * bool(maps), width_ratios=[1] * (2 + len(rows) * bool(maps))
    )
    axes = figure.add_subplot(grid[:, :2])
    (_points if front.lengths.shape[1] == 2 else _lines)(axes, front, rows)
    axes.set_title(title if title is not None else f"{front.size} tours")
    for number, row in enumerate(rows):
        for line, part in enumerate(maps):
            panel = figure.add_subplot(grid[line, 2 + number])
            plot_tour(part, front.tours[row], ax=panel)
            if line == 0:
                lengths = "\n".join(f"{value:.10g}" for value in front.lengths[row])
                panel.set_title(lengths, color=_colour(number), fontsize="medium")
    return figure


def _colour(number: int) -> str:
    return _CHOSEN[number % len(_CHOSEN)]


def _maps(problem: Any) -> list[TSP]:
    """Return the objectives with positions, one for each map."""
    found: list[TSP] = []
    for part in getattr(problem, "parts", ()):
        if part.positions is not None and not any(np.array_equal(part.cities, one.cities) for one in found):
            found.append(part)
    return found[:_MOST_MAPS]


def _points(ax: Axes, front: Front, rows: NDArray[np.int64]) -> None:
    ax.plot(*front.lengths.T, ".", color=_POINTS, markersize=max(1.0, min(6.0, 1500.0 / front.size)))
    for number, row in enumerate(rows):
        ax.plot(*front.lengths[row], "o", color=_colour(number), markersize=9)
    ax.set_xlabel(front.names[0])
    ax.set_ylabel(front.names[1])
    ax.grid(alpha=0.3)


def _lines(ax: Axes, front: Front, rows: NDArray[np.int64]) -> None:
    low, span = front.lengths.min(axis=0), np.ptp(front.lengths, axis=0)
    scaled = (front.lengths - low) / np.where(span > 0.0, span, 1.0)
    shown = scaled[:: -(-front.size // _MOST_LINES)]
    ax.plot(shown.T, color=_POINTS, linewidth=0.5, alpha=max(0.03, min(0.5, 50.0 / len(shown))))
    for number, row in enumerate(rows):
        ax.plot(scaled[row], "o-", color=_colour(number), linewidth=2)
    ranges = zip(front.names, low, low + span, strict=True)
    ax.set_xticks(range(len(low)), [f"{name}\n{a:.6g} to {b:.6g}" for name, a, b in ranges])
    ax.set_yticks([0, 1], ["least", "most"])
