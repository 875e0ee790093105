"""Static plots by Matplotlib's object interface, without a display or pyplot state."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from pymoo_gpuaco import checks
from pymoo_gpuaco.algorithms.ask_tell import check_tours
from pymoo_gpuaco.algorithms.colony import AntColony
from pymoo_gpuaco.recorder import Recorder

_INK, _ACCENT = "#1f4e79", "#c0392b"


def _axes(ax: Axes | None) -> Axes:
    return Figure(figsize=(7, 7), layout="constrained").add_subplot() if ax is None else ax


def _positions(problem: Any) -> NDArray[np.float64]:
    positions = getattr(problem, "cities", None)  # also of pymoo's TravelingSalesman
    if isinstance(problem, (np.ndarray, list, tuple)):
        raise TypeError(
            f"problem must be a problem, such as a TSP, got {type(problem).__name__}; it comes first"
        )
    if positions is None:
        raise ValueError(f"{type(problem).__name__} has no city positions to draw")
    return np.asarray(positions, dtype=float)[:, :2]


def plot_tour(problem: Any, tour: ArrayLike, ax: Axes | None = None, title: str | None = None) -> Figure:
    """Draw a tour (n,) over the positions of the cities; north is up on the globe.

    A tour of asymmetric distances has arrows, and fixed edges have another colour. Returns the figure;
    ``plot_tour(..).savefig("tour.png")``. Raises ValueError if the problem has no positions or the tour is not a
    permutation, and TypeError for other types.
    """
    positions = _positions(problem)
    order = check_tours("tour", tour, len(positions))[0]
    ax = _axes(ax)
    line = positions[np.append(order, order[0]) if getattr(problem, "closed", True) else order]
    size = max(0.5, min(5.0, 1500.0 / len(order)))
    width = max(0.3, min(1.2, 300.0 / len(order)))
    ax.plot(line[:, 0], line[:, 1], color=_INK, linewidth=width)
    if not getattr(problem, "symmetric", True):
        (x, y), (u, v) = line[:-1].T, np.diff(line, axis=0).T
        ax.quiver(
            x,
            y,
            u / 2.0,
            v / 2.0,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            color=_INK,
            width=0.003,
            headwidth=7.0,
            headlength=8.0,
        )
    fixed = getattr(problem, "fixed_edges", np.empty((0, 2), int))
    if len(fixed):
        ax.add_collection(LineCollection(list(positions[fixed]), colors=_ACCENT, linewidths=2.5 * width))
    ax.plot(positions[:, 0], positions[:, 1], ".", color=_ACCENT, markersize=size)
    ax.set_aspect("equal", adjustable="datalim")
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
            raise ValueError("over='seconds' requires a Recorder, as a history has no times")
        records = _records_of_history(run)
        known = getattr(getattr(run, "problem", None), "best_known", None)
    best = records["best"]
    if not len(best):
        raise ValueError("plot_convergence requires the Recorder of a run, or a run with save_history=True")
    ax = _axes(ax)
    ax.step(records[over], 100.0 * (best / known - 1.0) if known else best, where="post", color=_INK)
    ax.set_xlabel(over)
    ax.set_ylabel("gap to the best known [%]" if known else "length of the best tour")
    ax.grid(alpha=0.3)
    return _figure(ax)


def _records_of_history(result: Any) -> dict[str, NDArray[Any]]:
    recorder = Recorder()
    for entry in getattr(result, "history", None) or ():
        recorder(entry)
    return recorder.records


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
    colours = np.zeros((len(lines), 4))
    colours[:, :3] = (0.12, 0.31, 0.47)
    colours[:, 3] = strength
    ax.add_collection(LineCollection(list(lines), colors=colours, linewidths=1.0))


def _figure(ax: Axes) -> Figure:
    # in a subfigure, `ax.figure` is the subfigure; Matplotlib has get_figure(root=True) only since 3.10
    figure = ax.figure.figure
    assert isinstance(figure, Figure)
    return figure
