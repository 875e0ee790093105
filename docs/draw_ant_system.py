"""Draw docs/images/selection_rules.svg, how each rule of Ant System draws the next city on one row of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[1]

WEIGHTS = (5.0, 2.0, 7.0, 1.5, 4.0, 1.0, 3.0, 2.5)
VISITED = (0, 2, 6)
OPEN = tuple(j for j in range(len(WEIGHTS)) if j not in VISITED)
INVITED = (3, 5, 7)  # of a tournament
OPEN_COLOUR, VISITED_COLOUR, DRAWN_COLOUR = "#4c78a8", "#d0d0d0", "#e45756"


def row_of_boxes(axes: Any, cities: tuple[int, ...], widths: list[float], spins: list[float]) -> None:
    """Cities side by side, each as wide as it weighs, and the points that were drawn."""
    left = 0.0
    for city, width in zip(cities, widths, strict=True):
        colour = VISITED_COLOUR if city in VISITED else OPEN_COLOUR
        axes.barh(0.0, width, left=left, height=0.6, color=colour, edgecolor="white")
        if width > 0.5:
            axes.text(left + width / 2, 0.0, str(city), ha="center", va="center", fontsize=11)
        left += width
    for number, spin in enumerate(spins):
        last = number == len(spins) - 1
        axes.annotate(
            str(number + 1) if len(spins) > 1 else "",
            (spin * left, 0.32),
            (spin * left, 0.95),
            ha="center",
            fontsize=11,
            arrowprops={"arrowstyle": "->", "color": DRAWN_COLOUR if last else "#888888"},
        )


def draw_rules(path: Path) -> None:
    """Five panels, one row of weights."""
    figure = Figure(figsize=(5.6, 6.2), layout="constrained")
    panels = figure.subplots(5, 1)
    titles = (
        "roulette: visited cities weigh 0, one draw",
        "compressed: a list of the open cities, one draw",
        "stochastic trial: sums over all cities; a visited city is drawn again",
        "acceptance: a random city and height, until below the weight",
        "tournament: a few open cities, one draw among them",
    )
    everyone = tuple(range(len(WEIGHTS)))
    row_of_boxes(panels[0], everyone, [0.12 if j in VISITED else WEIGHTS[j] for j in everyone], [0.42])
    row_of_boxes(panels[1], OPEN, [WEIGHTS[j] for j in OPEN], [0.42])
    row_of_boxes(panels[2], everyone, list(WEIGHTS), [0.1, 0.45, 0.66])
    axes = panels[3]
    axes.bar(
        everyone,
        WEIGHTS,
        width=0.9,
        color=[VISITED_COLOUR if j in VISITED else OPEN_COLOUR for j in everyone],
    )
    axes.hlines(max(WEIGHTS), -0.5, len(WEIGHTS) - 0.5, colors="#888888", linestyles="dotted", linewidth=1)
    for number, (city, height) in enumerate(((2, 3.0), (5, 4.5), (7, 5.5), (4, 2.2))):
        last = number == 3
        axes.plot(city, height, marker="o", color=DRAWN_COLOUR if last else "#888888")
        axes.text(city + 0.14, height, str(number + 1), fontsize=11, va="center")
    for city in everyone:
        axes.text(city, 0.15, str(city), ha="center", fontsize=11)
    row_of_boxes(panels[4], INVITED, [WEIGHTS[j] for j in INVITED], [0.75])
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title, fontsize=11, loc="left")
        panel.axis("off")
        if panel is not panels[3]:
            panel.set_ylim(-0.35, 1.2)
            panel.set_xlim(0.0, sum(WEIGHTS))
    # text as text and no date: the same code gives the same file
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "pymoo_gpuaco"}):
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Draw it."""
    draw_rules(ROOT / "docs" / "images" / "selection_rules.svg")


if __name__ == "__main__":
    main()
