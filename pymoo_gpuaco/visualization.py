"""Plots of tours, fronts, convergence and trails, and an animation of a run, with Matplotlib."""

from __future__ import annotations

import io
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pymoo.core.callback import Callback

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.algorithms.display import gap_percent
from pymoo_gpuaco.problems.metrics import on_the_globe
from pymoo_gpuaco.problems.multi_objective import Front
from pymoo_gpuaco.problems.tsp import TSP
from pymoo_gpuaco.recorder import Recorder

__all__ = [
    "TourAnimation",
    "plot_convergence",
    "plot_front",
    "plot_pheromone",
    "plot_tour",
]

_INK, _ACCENT = "#1f4e79", "#c0392b"


class _Picture(Figure):
    """Figure that a notebook shows although pyplot is not imported."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()


def _axes(ax: Axes | None) -> Axes:
    return _Picture(figsize=(7, 7), layout="constrained").add_subplot() if ax is None else ax


def _positions(problem: Any) -> NDArray[np.float64]:
    positions = getattr(problem, "cities", None)  # also of pymoo's TravelingSalesman
    if isinstance(problem, (np.ndarray, list, tuple)):
        raise TypeError(
            f"problem must be a problem such as a TSP, got {type(problem).__name__}: it is the first argument"
        )
    if positions is None:
        raise ValueError(f"{type(problem).__name__} has no city positions to draw")
    return np.asarray(positions, dtype=float)[:, :2]


def plot_tour(problem: Any, tour: Any, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw a tour (n,) over the positions of the cities, with north at the top for latitudes and longitudes.

    `tour` may also be the result of `solve` or `minimize`. Tours with asymmetric distances have arrows; fixed edges
    have another colour. Returns the figure; ``plot_tour(..).savefig("tour.png")``. Raises ValueError if the problem has
    no positions or the tour is not a permutation, and TypeError for other types.
    """
    positions = _positions(problem)
    order = checks.tours("tour", getattr(tour, "tour", getattr(tour, "X", tour)), len(positions))[0]
    ax = _axes(ax)
    line = positions[np.append(order, order[0]) if getattr(problem, "closed", True) else order]
    size = max(0.5, min(5.0, 1500.0 / len(order)))
    width = max(0.3, min(1.2, 300.0 / len(order)))
    ax.plot(line[:, 0], line[:, 1], color=_INK, linewidth=width)
    if not getattr(problem, "symmetric", True):
        (x, y), (u, v) = line[:-1].T, np.diff(line, axis=0).T
        looks: dict[str, Any] = {"color": _INK, "width": 0.003, "headwidth": 7.0, "headlength": 8.0}
        ax.quiver(x, y, u / 2.0, v / 2.0, angles="xy", scale_units="xy", scale=1.0, **looks)
    fixed = getattr(problem, "fixed_edges", np.empty((0, 2), int))
    if len(fixed):
        ax.add_collection(LineCollection(list(positions[fixed]), colors=_ACCENT, linewidths=2.5 * width))
    ax.plot(positions[:, 0], positions[:, 1], ".", color=_ACCENT, markersize=size)
    degrees = on_the_globe(getattr(problem, "position_metric", None))
    middle = np.radians(positions[:, 1].max() + positions[:, 1].min()) / 2.0 if degrees else 0.0
    ax.set_aspect(1.0 / max(0.1, float(np.cos(middle))), adjustable="datalim")
    ax.set_axis_off()
    if title:
        ax.set_title(title)
    return _figure(ax)


def plot_convergence(run: Any, ax: Axes | None = None, over: str = "generation") -> Figure:
    """Plot the best length (or gap to the best known, in percent) over generations, seconds or tours of a run.

    `run` is the `Recorder` of a run, or the result of a run with ``save_history=True``. `over` is "generation", "tours"
    or, with a `Recorder`, "seconds". Raises ValueError if nothing was recorded, or for another `over`.
    """
    checks.choice("over", over, ("generation", "seconds", "tours"))
    if isinstance(run, Recorder):
        records, known = run.records, run.best_known
    else:
        if over == "seconds":
            raise ValueError("over='seconds' requires a Recorder: a history has no times")
        recorder = Recorder()
        for entry in getattr(run, "history", None) or ():
            recorder(entry)
        records = recorder.records
        known = getattr(getattr(run, "problem", None), "best_known", None)
    best = records["best"]
    if not len(best):
        raise ValueError("plot_convergence requires the Recorder of a run, or a run with save_history=True")
    ax = _axes(ax)
    ax.step(records[over], gap_percent(best, known) if known else best, where="post", color=_INK)
    ax.set_xlabel(over)
    ax.set_ylabel("gap to the best known [%]" if known else "length of the best tour")
    ax.grid(alpha=0.3)
    return _figure(ax)


def plot_pheromone(algorithm: AntColony, ax: Axes | None = None) -> Figure:
    """Draw the trails of all candidate edges of a colony, stronger ones darker: ``plot_pheromone(res.algorithm)``.

    Raises TypeError for an algorithm without trails.
    """
    ax = _axes(ax)
    draw_trails(ax, *trail_lines(algorithm))
    ax.autoscale()
    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()
    return _figure(ax)


def trail_lines(algorithm: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the candidate edges (e, 2, 2) with a visible trail and their strengths (e,), at most 1.

    Raises TypeError for an algorithm without trails, ValueError for a problem without positions.
    """
    if not isinstance(algorithm, AntColony):
        hint = "; give its .algorithm" if hasattr(algorithm, "algorithm") else ""
        raise TypeError(f"{type(algorithm).__name__} has no pheromone trails{hint}")
    positions = _positions(algorithm.problem)
    neighbours, trails = algorithm.instance.neighbours, algorithm.trails("candidates")
    strength = np.clip(trails / max(float(trails.max()), np.finfo(float).tiny), 0.0, 1.0)
    shown = strength > 0.02  # fainter lines are invisible, and there are n k edges
    start, slot = np.nonzero(shown)
    return positions[np.stack([start, neighbours[start, slot]], axis=1)], strength[shown]


def draw_trails(ax: Axes, lines: NDArray[np.float64], strength: NDArray[np.float64]) -> None:
    """Draw edges (e, 2, 2), stronger ones darker."""
    ax.add_collection(LineCollection(list(lines), colors=_INK, alpha=strength, linewidths=1.0))


def _figure(ax: Axes) -> Figure:
    # in a subfigure, `ax.figure` is the subfigure; Matplotlib has get_figure(root=True) only since 3.10
    figure = ax.figure.figure
    assert isinstance(figure, Figure)
    return figure


_CHOSEN = ("#c0392b", "#b9770e", "#1e8449", "#7d3c98", "#0e6655", "#943126", "#5d6d7e")
_MOST_MAPS = 2
_MOST_LINES = 2000  # maximum lines in a plot of more than two objectives


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
        raise ValueError("front must have at least one tour, got 0")
    rows = front.along(count)
    maps = _maps(front.problem)
    n_maps = len(rows) if maps else 0  # side by side
    figure = _Picture(figsize=(4.0 + 2.0 * n_maps, 5.0), layout="constrained")
    grid = figure.add_gridspec(max(1, len(maps)), 2 + n_maps)
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
    ax.plot(*front.lengths.T, ".", color=_INK, markersize=max(1.0, min(6.0, 1500.0 / front.size)))
    for number, row in enumerate(rows):
        ax.plot(*front.lengths[row], "o", color=_colour(number), markersize=9)
    ax.locator_params(axis="x", nbins=5)  # six digits each
    ax.set_xlabel(front.names[0])
    ax.set_ylabel(front.names[1])
    ax.grid(alpha=0.3)


def _lines(ax: Axes, front: Front, rows: NDArray[np.int64]) -> None:
    low, span = front.lengths.min(axis=0), np.ptp(front.lengths, axis=0)
    scaled = (front.lengths - low) / np.where(span > 0.0, span, 1.0)
    shown = scaled[:: -(-front.size // _MOST_LINES)]
    ax.plot(shown.T, color=_INK, linewidth=0.5, alpha=max(0.03, min(0.5, 50.0 / len(shown))))
    for number, row in enumerate(rows):
        ax.plot(scaled[row], "o-", color=_colour(number), linewidth=2)
    ranges = zip(front.names, low, low + span, strict=True)
    ax.set_xticks(range(len(low)), [f"{name}\n{a:.6g} to {b:.6g}" for name, a, b in ranges])
    ax.set_yticks([0, 1], ["least", "most"])


class Frame(NamedTuple):
    """One frame: the best tour at a generation and, if requested, the trails."""

    generation: int
    length: float
    tour: NDArray[np.int64]  # (n,)
    trails: tuple[NDArray[np.float64], NDArray[np.float64]] | None  # lines (e, 2, 2), strengths (e,)


class TourAnimation(Callback):
    """Callback that stores each new best tour; call ``save("run.gif")`` after the run.

    Parameters
    ----------
    max_frames : maximum number of stored tours, >= 2; above it, every second one is dropped. Default 200.
    trails : True: store the pheromone trails and draw them behind the tour; only for ant colonies. Default False.
    """

    def __init__(self, max_frames: int = 200, trails: bool = False) -> None:
        super().__init__()
        self.max_frames = checks.integer("max_frames", max_frames, 2)
        self.trails = checks.flag("trails", trails)
        self.frames: list[Frame] = []
        self._problem: Any = None

    def _update(self, algorithm: Any) -> None:
        best = algorithm.opt[0]
        length = float(best.F[0])
        self._problem = algorithm.problem
        if not self.frames or length < self.frames[-1].length:
            trails = trail_lines(algorithm) if self.trails else None
            self.frames.append(Frame(int(algorithm.n_iter), length, np.array(best.X), trails))
            if len(self.frames) > self.max_frames:
                self.frames = self.frames[-1::-2][::-1]

    def save(self, path: str | PathLike[str], frames_per_second: int = 5) -> None:
        """Write a GIF of the stored tours. Raises ValueError before the first generation."""
        checks.integer("frames_per_second", frames_per_second, 1, 60)
        if not self.frames:
            raise ValueError("no tour recorded: pass the callback to minimize() first")
        figure = Figure(figsize=(6, 6), layout="constrained")
        ax = figure.add_subplot()

        def draw(index: int) -> list[Any]:
            frame = self.frames[index]
            ax.clear()
            if frame.trails is not None:
                draw_trails(ax, *frame.trails)
            title = f"generation {frame.generation}: {frame.length:.10g}"
            plot_tour(self._problem, frame.tour, ax=ax, title=title)
            return []

        movie = FuncAnimation(figure, draw, frames=len(self.frames))
        movie.save(str(path), writer=PillowWriter(fps=frames_per_second))
