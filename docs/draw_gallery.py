"""Draw docs/images/gallery_*: a large tour, trails, a front, a map, pen strokes, an animation; some three minutes."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from pymoo.optimize import minimize

from pymoo_gpuaco import GPUMMAS, TSP, load_tsp, read_cities, solve, solve_strokes
from pymoo_gpuaco.visualization import TourAnimation, plot_front, plot_pheromone, plot_tour

# cyclic, dark enough for white pages
CYCLE = LinearSegmentedColormap.from_list(
    "cycle", ["#1f3a5f", "#1a8a9e", "#6b3fa0", "#c0392b", "#d98300", "#1f3a5f"]
)
IMAGES = Path(__file__).resolve().parent / "images"


def save(figure: Figure, name: str, dpi: int = 100) -> None:
    """Write a picture as PNG."""
    figure.savefig(IMAGES / f"gallery_{name}.png", dpi=dpi)


def coloured(axes: Any, line: Any, width: float) -> None:
    """Draw a closed line, coloured by the position along it."""
    segments = np.stack([line, np.roll(line, -1, axis=0)], axis=1)
    axes.add_collection(
        LineCollection(segments, array=np.linspace(0, 1, len(line)), cmap=CYCLE, linewidths=width)
    )
    axes.autoscale()
    axes.set_aspect("equal")
    axes.set_axis_off()


def large_tour() -> None:
    """A tour of 12,000 cities whose density follows waves."""
    rng = np.random.default_rng(3)
    points = rng.random((120_000, 2)) * (3.2, 1.0)
    x, y = points.T
    density = 0.03 + np.abs(np.sin(5.0 * x + 3.0 * np.sin(4.0 * y)) * np.cos(6.0 * y - 2.0 * x)) ** 3
    cities = points[rng.random(len(points)) < density / density.max()][:12_000]
    tour, _ = solve(TSP(cities), seconds=60, verbose=False)
    figure = Figure(figsize=(16, 5))
    axes = figure.add_axes((0, 0, 1, 1))
    coloured(axes, cities[tour], 1.6)
    axes.margins(0.005)
    save(figure, "large_tour")


def trails() -> None:
    """Trails of one colony after 5, 60 and 150 generations."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    for panel, generations in zip(figure.subplots(1, 3), (5, 60, 150), strict=True):
        colony = GPUMMAS(n_ants=25, rho=0.05, candidate_list_size=10, local_search=False)
        result = minimize(load_tsp("kroA100"), colony, ("n_gen", generations), seed=1)
        plot_pheromone(result.algorithm, ax=panel)
        panel.set_title(f"generation {generations}")
    save(figure, "trails")


def front() -> None:
    """The front of two objectives with three of its tours."""
    save(plot_front(solve("kroA100+kroB100", seconds=30)), "front")


def places() -> None:
    """A round trip through the places of the tutorial."""
    page = (IMAGES.parent / "guides" / "map.md").read_text(encoding="utf-8")
    table = page.split('TABLE = """\\\n')[1].split('"""')[0]
    solution = solve(read_cities(io.StringIO(table)), seconds=1)
    save(named(solution, f"{solution.length:.0f} km"), "map")


def roads() -> None:
    """The path of the guide to road times."""
    page = (IMAGES.parent / "guides" / "road_times.md").read_text(encoding="utf-8")
    scope: dict[str, Any] = {}
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), scope)
    save(named(scope["solution"], f"{scope['solution'].length / 60:.0f} minutes"), "roads")


def named(solution: Any, title: str) -> Figure:
    """Draw a tour with the names of its cities."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot()
    plot_tour(solution.problem, solution, ax=axes, title=title)
    x, y = axes.lines[0].get_data()
    for name, u, v in zip(solution.names, x, y, strict=False):
        axes.annotate(name, (u, v), (4, 4), textcoords="offset points", fontsize=9)
    return figure


def strokes() -> None:
    """The travel of a pen between strokes, as drawn at random and as ordered."""
    rng = np.random.default_rng(1)
    angle = rng.random(150) * 2 * np.pi
    radius = np.sqrt(rng.random(150))
    middle = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    along = 0.06 * np.column_stack([-np.sin(3 * angle), np.cos(3 * angle)])
    ends = np.stack([middle - along, middle + along], axis=1)
    ordered = solve_strokes(ends, seconds=3)
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    for panel, path, title in zip(
        figure.subplots(1, 2), (ends, ordered.path), ("random order", "solve_strokes"), strict=True
    ):
        panel.plot(*path.reshape(-1, 2).T, color="#e45756", linewidth=0.5)
        panel.add_collection(LineCollection(list(path), colors="#1f3a5f", linewidths=2.0))
        travel = np.linalg.norm(path[1:, 0] - path[:-1, 1], axis=1).sum()
        panel.set_title(f"{title}: travel {travel:.1f}")
        panel.set_aspect("equal")
        panel.set_axis_off()
    save(figure, "strokes")


def animation() -> None:
    """Best tours and trails of one run."""
    frames = TourAnimation(max_frames=14, trails=True)
    colony = GPUMMAS(n_ants=25, rho=0.1, candidate_list_size=8, local_search=False)
    minimize(load_tsp("berlin52"), colony, ("n_gen", 150), seed=1, callback=frames)
    frames.save(IMAGES / "gallery_run.gif", frames_per_second=4)


if __name__ == "__main__":
    for draw in (trails, places, roads, strokes, front, animation, large_tour):
        if not sys.argv[1:] or draw.__name__ in sys.argv[1:]:
            draw()
