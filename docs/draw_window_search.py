"""Draw docs/images/window_*.svg: a window of a tour, exchanges and a merge, as the CPU engine makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pymoo_gpuaco import TSP
from pymoo_gpuaco.backends.cpu.search_device import CpuWindows
from pymoo_gpuaco.backends.cpu.windows.cut import cut_windows
from pymoo_gpuaco.candidates.listed import ListedInstance
from pymoo_gpuaco.candidates.lists import with_lists
from pymoo_gpuaco.candidates.start import greedy_tour
from pymoo_gpuaco.memetic.parameters import MemeticParameters
from pymoo_gpuaco.memetic.partition_crossover import difference, merge
from pymoo_gpuaco.memetic.schedule import Temperature

IMAGES = Path(__file__).resolve().parent / "images"
CITIES, WINDOW = 160, 34
REST, ONE, TWO, FIXED = "#b8b8b8", "#e45756", "#4c78a8", "#888888"
Tour = NDArray[np.int32]


def edges(axes: Any, places: NDArray[np.float64], pairs: NDArray[np.int32], **style: Any) -> None:
    """Draw edges (m, 2) between cities as one path."""
    ends = np.full((3 * len(pairs), 2), np.nan)
    ends[0::3], ends[1::3] = places[pairs[:, 0]], places[pairs[:, 1]]
    axes.plot(*ends.T, **style)


def around(tour: Tour) -> NDArray[np.int32]:
    """Edges (n, 2) of a tour."""
    return np.column_stack([tour, np.roll(tour, -1)])


def panel(axes: Any, places: NDArray[np.float64], title: str) -> None:
    """Draw the cities alone, under a title."""
    axes.plot(*places.T, ".", color=REST, markersize=3, zorder=0)
    axes.set_title(title, fontsize=9, loc="left")
    axes.set_aspect("equal")
    axes.axis("off")


def draw_window(instance: ListedInstance, tour: Tour, axes: Any) -> None:
    """The runs of one window, and the links between them, which stand for the rest of the tour."""
    n, places = instance.n, instance.coords[:, :2]
    where = np.empty(n, np.int32)
    where[tour] = np.arange(n, dtype=np.int32)
    # the second of three centres, which are spread over the tour
    positions = cut_windows(instance.neighbours, WINDOW, tour, where, 1, 1, np.zeros(n, np.uint8))[0]
    own = tour[positions]
    fixed = np.diff(np.append(positions, positions[0] + n)) != 1
    pairs = around(own)
    panel(axes, places, f"window: {len(own)} cities, {fixed.sum()} runs")
    edges(axes, places, around(tour), color=REST, linewidth=0.8)
    edges(axes, places, pairs[~fixed], color=TWO, linewidth=2.0)
    edges(axes, places, pairs[fixed], color=FIXED, linewidth=1.0, linestyle="dotted")
    axes.plot(*places[own].T, "o", color=TWO, markersize=3)


def draw_exchanges(instance: ListedInstance, tour: Tour, better: Tour, axes: Any) -> None:
    """Exchanges that turn one tour into another: some exchanges, each with as many edges out as in."""
    places = instance.coords[:, :2]
    found = difference(tour, better, instance.distance)
    out, into = tour[found.removed], tour[found.added]
    panel(axes, places, f"{len(found.gain)} exchanges: {len(out)} edges out, {len(into)} in")
    edges(axes, places, around(tour), color=REST, linewidth=0.8)
    edges(axes, places, out, color=ONE, linewidth=1.4, linestyle="dotted")
    edges(axes, places, into, color=TWO, linewidth=1.8)


def draw_merge(instance: ListedInstance, one: Tour, two: Tour, figure: Any) -> None:
    """Two tours, and what is made of them: shared edges grey, those of one tour alone in its colour."""
    places = instance.coords[:, :2]
    merged, _ = merge(one, two, instance.distance)
    panels = figure.subplots(1, 3)
    pairs = [{frozenset(map(int, pair)) for pair in around(tour)} for tour in (one, two, merged)]
    for axes, tour, name in zip(panels, (one, two, merged), ("one", "another", "merged"), strict=True):
        panel(axes, places, f"{name}: {instance.tour_length(tour):.0f}")
        own = [frozenset(map(int, pair)) for pair in around(tour)]
        colours = [REST if pair in pairs[0] & pairs[1] else ONE if pair in pairs[0] else TWO for pair in own]
        for colour in (REST, ONE, TWO):
            chosen = np.array([tuple(p) for p, c in zip(own, colours, strict=True) if c == colour], int)
            if len(chosen):
                edges(axes, places, chosen, color=colour, linewidth=0.8 if colour == REST else 1.8)


def short_run(instance: ListedInstance, key: int, trials: int) -> Tour:
    """The tour of a search of one tour after so few trials that much is left to improve."""
    windows = CpuWindows(instance, MemeticParameters(population_size=1, trials=trials, ascent=0))
    windows.load(windows.first_tour()[None], repaired=False)
    windows.anneal(key, Temperature(start=0.0, end=0.0, mean_edge=0.0, kicks_per_city=0.0))
    return windows.read()[0]


def main() -> None:
    """Draw all three."""
    places = np.random.default_rng(11).integers(0, 1000, (CITIES, 2))
    instance = with_lists(TSP(places, metric="EUC_2D").instance, 8)
    start = greedy_tour(instance)
    figures = {name: Figure(figsize=(w, 3.0), layout="constrained") for name, w in SIZES.items()}
    one, two = short_run(instance, 1, 4), short_run(instance, 4, 4)  # each is better than the other somewhere
    draw_window(instance, start, figures["window_runs"].subplots())
    draw_exchanges(
        instance, one, merge(one, two, instance.distance)[0], figures["window_exchange"].subplots()
    )
    draw_merge(instance, one, two, figures["window_merge"])
    for name, figure in figures.items():
        # text as text and no date: the same code gives the same file
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pymoo_gpuaco"}):
            figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


SIZES = {"window_runs": 3.4, "window_exchange": 3.4, "window_merge": 8.0}

if __name__ == "__main__":
    main()
